"""Distributions over a domain: how probable each value is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato.domain.domain import Domain
from sfumato.domain.labelled import align
from sfumato.errors import InvalidInput

__all__ = ["Frequencies", "checked_distribution"]

#: A number per value: in domain order, or under labels.
Frequencies: TypeAlias = Sequence[float] | Mapping[Any, float] | npt.NDArray[np.float64]


def checked_distribution(
    probabilities: Frequencies | None,
    domain: Domain,
    subject: str = "risk",
    parameter: str = "p",
    *,
    absent: float | None = None,
) -> npt.NDArray[np.float64]:
    """Return the distribution at which a risk is asked for, in domain order; uniform unless given.

    ``absent`` is the share of values that a mapping leaves out; without it, it must name all.
    """
    size = len(domain)
    if probabilities is None:
        return np.full(size, 1 / size)
    aligned = align(domain, probabilities, subject, parameter, absent=absent)
    try:
        array = np.asarray(aligned, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(subject, parameter, f"be {size} probabilities", probabilities) from None
    if array.shape != (size,):
        raise InvalidInput(subject, parameter, f"have {size} entries", array.shape)
    if not (array >= 0).all() or abs(array.sum() - 1) > 1e-9:
        raise InvalidInput(subject, parameter, "be probabilities that sum to one", float(array.sum()))
    return array
