"""The order of the values of a domain, on which distributions, ranges and quantiles depend."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato._core import Floats, Integers
from sfumato.domain import Domain
from sfumato.errors import InvalidInput

__all__ = ["check_order", "numeric_labels", "positions_between", "prefix_names"]


def check_order(domain: Domain, subject: str) -> None:
    """Raise InvalidInput unless the order of the values is their order in the domain.

    Labels that are not numbers are in the order in which the user listed them. Numbers must be increasing.
    """
    if len(domain.shape) > 1:
        raise InvalidInput(subject, "the domain", "have one dimension, because its values must be in an order", domain)
    if not domain.is_ordered:
        hint = "List the numbers from the least to the greatest."
        raise InvalidInput(subject, "the labels of the domain", "be increasing if they are numbers", domain, hint=hint)


def numeric_labels(domain: Domain) -> Floats | None:
    """Return the number of each value, NaN for missing answers; None if the values are not numbers."""
    return domain.numeric_values if domain.is_numeric else None


def prefix_names(domain: Domain) -> tuple[str, ...]:
    """Return a name for the values up to each value but the last, such as "≤ 17", or "< 25" for the bin [20, 25)."""
    labels = list(map(str, domain.labels[:-1]))
    if domain.kind != "numbers":
        return tuple(f"≤ {label}" for label in labels)
    ends = [(label.rpartition(", ")[2][:-1], label.endswith(")")) for label in labels]
    return tuple(f"{'<' if is_open else '≤'} {end}" for end, is_open in ends)


def positions_between(domain: Domain, low: Any, high: Any, subject: str) -> Integers:
    """Return the positions of the values from ``low`` to ``high``, both included.

    For numeric labels the limits are any numbers; for bins they are edges, and the bins between them count. For other
    labels the limits are values of the domain. None means no limit. The value for missing answers is in no range.
    """
    if domain.kind == "numbers":
        edges = domain.bin_edges
        ends = edges[0] if low is None else low, edges[-1] if high is None else high
        return np.array([domain.index(label) for label in domain.between(*ends)], dtype=np.int64)
    numbers = numeric_labels(domain)
    if numbers is not None:
        limits = [(-np.inf if low is None else low), (np.inf if high is None else high)]
        for limit in limits:
            if isinstance(limit, bool) or not isinstance(limit, (int, float, np.number)) or np.isnan(limit):
                raise InvalidInput(subject, "a limit of a range", "be a number or None", limit)
        positions = np.flatnonzero((numbers >= limits[0]) & (numbers <= limits[1]))
    else:
        first = 0 if low is None else domain.index(low)
        last = len(domain) - 1 - (domain.missing is not None) if high is None else domain.index(high)
        positions = np.arange(first, last + 1)
    if not len(positions):
        raise InvalidInput(subject, "a range", "contain at least one value of the domain", (low, high))
    return positions.astype(np.int64)
