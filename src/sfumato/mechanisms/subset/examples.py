"""Examples of subset selection, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import Examples
from sfumato.mechanisms.subset.mechanism import SubsetSelection

__all__ = ["examples"]

_SMALL, _LARGE = Domain(["none", "flu", "hiv", "cancer", "other"]), Domain.range(70)


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        SubsetSelection(_SMALL, 1, 2),
        SubsetSelection(_LARGE, "0.5"),
        SubsetSelection(Domain.range(64), 3),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    return [SubsetSelection(Domain.range(7), epsilon, size) for size in (1, 3, 6)]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [
        SubsetSelection(_SMALL, 1, 2),
        SubsetSelection(_LARGE, 2),
    ]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
