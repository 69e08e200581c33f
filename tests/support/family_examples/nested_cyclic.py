"""Examples of nested cyclic designs, for vectors and contract tests."""

from __future__ import annotations

from sfumato._core import Epsilon
from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.nested_cyclic.mechanism import NestedCyclic
from support.family_examples import Examples

__all__ = ["examples"]

_LARGE = Domain.range(1200)


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        NestedCyclic(Domain(["n", "e", "s", "w"]), "abba", 1, 3, max_bits=5),
        NestedCyclic(Domain.range(12), "abcabcabcabc", "0.5", 1, high=2, sizes=[2, 1], patterns=3, seed=5),
        NestedCyclic(Domain.range(7), "abbaccc", "ln 2", 2, high=1, sizes=[2, 1], patterns=2, seed=2**32 - 1),
        NestedCyclic(_LARGE, [x // 50 for x in range(1200)], 2, 3, high=4, sizes=[12, 0], patterns=27, seed=1),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    if epsilon == "inf":
        return []
    across = Epsilon(epsilon) + Epsilon(1)
    return [
        NestedCyclic(Domain.range(6), "aaabbb", epsilon, across, high=1, sizes=[1, 1], patterns=4, seed=3),
        NestedCyclic(Domain.range(6), "abcabc", epsilon, across, high=2, sizes=[1, 0], patterns=3, seed=1),
        NestedCyclic(Domain.range(5), "aaabb", epsilon, across, high=1, sizes=[2, 1], patterns=3, seed=1),
    ]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [_samplers()[0], _samplers()[-1]]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
