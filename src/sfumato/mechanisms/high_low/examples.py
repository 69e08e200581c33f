"""Examples of mechanisms for sensitive and harmless values, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import Examples
from sfumato.mechanisms.high_low.cyclic import HighLowCyclic
from sfumato.mechanisms.high_low.hadamard import HighLowHadamard
from sfumato.mechanisms.high_low.subset import HighLowSubset, UtilityOptimizedRR
from sfumato.mechanisms.systems.shifts import CyclicDesign

__all__ = ["examples"]

_SMALL, _LARGE = Domain(["none", "flu", "hiv", "cancer", "other"]), Domain.range(70)
_FEARED = ["flu", "hiv", "cancer"]


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        HighLowHadamard(_SMALL, _FEARED, 1, block_size=4),
        HighLowHadamard(_LARGE, range(1, 70, 3), 3, block_size=8),
        HighLowHadamard.published(_SMALL, ["hiv"], "0.5"),
        HighLowHadamard(_SMALL, _FEARED, 0, block_size=4),
        HighLowSubset(_SMALL, _FEARED, 1, 2),
        HighLowSubset(_LARGE, range(63), "0.5", 20),
        HighLowSubset(_SMALL, ["hiv"], "ln 3"),
        HighLowSubset(_SMALL, _SMALL, 2, 2),
        HighLowSubset(_SMALL, _FEARED, "inf", 2),
        UtilityOptimizedRR(_SMALL, _FEARED, 1),
        UtilityOptimizedRR(_LARGE, range(1, 70, 3), "0.5"),
        UtilityOptimizedRR(_SMALL, _SMALL, "ln 3"),
        UtilityOptimizedRR(_SMALL, _FEARED, "inf"),
        HighLowCyclic(_SMALL, _FEARED, 1, design=CyclicDesign.singer(2, 1, 3)),
        HighLowCyclic(_LARGE, range(1, 70, 3), 3, design=CyclicDesign.residues(29, 7)),
        HighLowCyclic(_SMALL, _SMALL, "inf", design=CyclicDesign.residues(7, 2, zero=1)),
        HighLowCyclic(_SMALL, _FEARED, 0, design=CyclicDesign.singer(2, 1, 3)),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    seven = Domain.range(7)
    return [
        *(HighLowHadamard(seven, range(count), epsilon) for count in (1, 4, 7)),
        *(HighLowSubset(seven, range(count), epsilon) for count in (1, 4, 7)),
        *(HighLowCyclic(seven, range(count), epsilon, design=CyclicDesign.residues(7, 3)) for count in (2, 4, 7)),
    ]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [
        HighLowSubset(Domain.range(7), range(4), 1, 2),
        HighLowSubset(_LARGE, range(63), 1, 20),
    ]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
