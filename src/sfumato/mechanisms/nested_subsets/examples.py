"""Examples of nested subsets, for vectors and contract tests."""

from __future__ import annotations

from sfumato._core import Epsilon
from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import Examples
from sfumato.mechanisms.nested_subsets.mechanism import NestedSubsets

__all__ = ["examples"]

_LARGE = Domain.range(70)


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        NestedSubsets(Domain(["n", "e", "s", "w"]), "abba", 1, 3),
        NestedSubsets(Domain.range(12), "abcabcabcabc", "0.5", 1, high=2, sizes=[2, 1]),
        NestedSubsets(_LARGE, [x % 5 for x in range(70)], "ln 2", 2),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    if epsilon == "inf":
        return []
    return [NestedSubsets(Domain.range(6), "aaabbb", epsilon, Epsilon(epsilon) + Epsilon(1))]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws)
