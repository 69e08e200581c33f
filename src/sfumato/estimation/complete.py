"""Estimates of the frequencies of all values, as data: the base class of estimates that have frequencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato._core import (
    Floats,
    number_document,
    read_flag,
    read_integer,
    read_number,
    read_only,
    read_string,
)
from sfumato.errors import Description, InvalidInput
from sfumato.estimation.documents import numbers, read_distribution_of, read_numbers_of
from sfumato.estimation.estimates import Estimate
from sfumato.mechanisms import Fit

__all__ = ["RESULT_KEYS", "CompleteEstimate"]

_SUBJECT = "Estimate.from_dict"

#: Keys of the documents of estimates that have frequencies, in addition to format and version.
RESULT_KEYS = ("method", "frequencies", "unbiased", "nearest", "fit")


@dataclass(frozen=True, eq=False, repr=False)
class CompleteEstimate(Estimate):
    """Fields of estimates from which the frequencies of all values follow; see :class:`Estimate`."""

    method: str
    frequencies: Floats
    unbiased: Floats
    nearest: Floats
    fit: Fit | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("frequencies", "unbiased", "nearest"):
            array = np.array(getattr(self, name), np.float64)
            if array.shape != (len(self.domain),):
                must = f"have shape ({len(self.domain)},), one entry per value of the domain"
                raise InvalidInput("Estimate", name, must, Description(f"shape {array.shape}"))
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if self.fit is not None:
            object.__setattr__(self, "fit", replace(self.fit, frequencies=read_only(self.fit.frequencies)))

    def _results(self) -> dict[str, Any]:
        return {
            "frequencies": numbers(self.frequencies),
            "unbiased": numbers(self.unbiased),
            "nearest": numbers(self.nearest),
            "fit": _fit_document(self.fit),
        }

    @staticmethod
    def _read_results(document: Mapping[str, Any], size: int) -> dict[str, Any]:
        """Return the constructor arguments that all estimates share."""
        method = read_string(_SUBJECT, "method", document["method"])
        arrays = {name: read_numbers_of(_SUBJECT, name, document[name], size) for name in ("frequencies", "unbiased")}
        arrays["nearest"] = read_distribution_of(_SUBJECT, "nearest", document["nearest"], size)
        return {"method": method, "fit": _read_fit(document["fit"], arrays["frequencies"]), **arrays}


def _fit_document(fit: Fit | None) -> dict[str, Any] | None:
    """Return the description of a maximum-likelihood search as a document."""
    if fit is None:
        return None
    gain, bound = number_document(fit.gain), number_document(fit.bound)
    return {"converged": bool(fit.converged), "iterations": int(fit.iterations), "gain": gain, "bound": bound}


def _read_fit(document: Any, frequencies: Floats) -> Fit | None:
    """Return the description of a maximum-likelihood search from a document."""
    if document is None:
        return None
    keys = ("converged", "iterations", "gain", "bound")
    if not isinstance(document, Mapping) or set(document) != set(keys):
        raise InvalidInput(_SUBJECT, "fit", f"have the keys {', '.join(keys)}", document)
    gain, bound = (read_number(_SUBJECT, f"the {key} of fit", document[key]) for key in ("gain", "bound"))
    converged = read_flag(_SUBJECT, "converged of fit", document["converged"])
    iterations = read_integer(_SUBJECT, "iterations of fit", document["iterations"])
    return Fit(frequencies, converged, iterations, gain, bound)
