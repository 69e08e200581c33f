"""Examples of composed subsets, for vectors and contract tests."""

from __future__ import annotations

from sfumato._core import Epsilon
from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from support.family_examples import Examples

__all__ = ["examples"]

_SMALL, _LARGE = Domain(["none", "flu", "hiv", "cancer", "other"]), Domain.range(70)


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        ComposedSubsets(_SMALL, "abbba", 1, 2),
        ComposedSubsets(_LARGE, [x % 5 for x in range(70)], "ln 2", 2),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    if epsilon == "inf":
        return []
    across = Epsilon(epsilon) + Epsilon(1)
    sizes = ((2, 2), (5, 1), (6, 3))
    return [ComposedSubsets(Domain.range(7), "abbccdd", epsilon, across, sizes=pair) for pair in sizes]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws)
