"""Probability distributions over a domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._core import Result, quantity
from sfumato.domain.domain import Domain
from sfumato.domain.labelled import align
from sfumato.errors import Description, InvalidInput

__all__ = ["Frequencies", "checked_distribution"]

#: One number per value: in the order of the domain, or with labels.
Frequencies: TypeAlias = Sequence[float] | Mapping[Any, float] | npt.NDArray[np.float64] | Result


def checked_distribution(
    probabilities: Frequencies | None,
    domain: Domain,
    subject: str = "risk",
    parameter: str = "p",
    *,
    absent: float | None = None,
) -> npt.NDArray[np.float64]:
    """Return a distribution over the domain as an array in domain order; uniform if it is None.

    ``absent`` is the probability of values that a mapping leaves out; if it is None, the mapping must name all values.
    """
    size = len(domain)
    if probabilities is None:
        return np.full(size, 1 / size)
    aligned = align(domain, probabilities, subject, parameter, absent=absent)
    try:
        array = np.asarray(aligned, dtype=np.float64)
    except (TypeError, ValueError):
        must = f"be {quantity(size, 'probability')}"
        raise InvalidInput(subject, parameter, must, probabilities) from None
    if array.shape != (size,):
        must = f"have {quantity(size, 'entry')}, one per value of the domain"
        raise InvalidInput(subject, parameter, must, _shape(array))
    wrong = ~(array >= 0)
    if wrong.any() or abs(array.sum() - 1) > 1e-9:
        x = int(wrong.argmax())
        got = Description(
            f"{array[x]:.6g} for {domain.label(x)!r}" if wrong.any() else f"a sum of {float(array.sum()):.12g}"
        )
        is_estimate = wrong.any() or isinstance(probabilities, Result)
        hint = "Unbiased estimates may be negative or have another sum; estimate with method='simplex'."
        raise InvalidInput(
            subject, parameter, "be probabilities that sum to one", got, hint=hint if is_estimate else None
        )
    return array


def _shape(array: npt.NDArray[np.float64]) -> Description:
    """Describe the shape of an array that does not have one entry per value."""
    return Description(quantity(len(array), "entry") if array.ndim == 1 else f"an array of shape {array.shape}")
