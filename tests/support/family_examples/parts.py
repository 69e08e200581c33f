"""Examples of parts, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.parts.high_low import HighLowCyclic, HighLowHadamard, HighLowSubset, UtilityOptimizedRR
from sfumato.mechanisms.parts.mechanism import Parts
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.policy import Blocks
from support.family_examples import Examples

__all__ = ["examples"]

_SMALL, _LARGE = Domain(["none", "flu", "hiv", "cancer", "other"]), Domain.range(70)
_FEARED = ["flu", "hiv", "cancer"]
_TWO_AND_THREE = Blocks(_SMALL, "abbba", [1, "ln 3"])


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        Parts.for_policy(_TWO_AND_THREE, "rr"),
        Parts.for_policy(_TWO_AND_THREE, "subset"),
        Parts.for_policy(_TWO_AND_THREE, "hadamard"),
        Parts(
            _LARGE,
            [0] * 40 + [1] * 20 + [2] * 9 + [3],
            [
                SubsetSelection(Domain.range(40), 1, 10),
                HadamardResponse(Domain.range(20), 3, block_size=8),
                RandomizedResponse(Domain.range(9), 2),
                RandomizedResponse(Domain.range(1), "inf"),
            ],
        ),
        Parts(
            _LARGE,
            [0] * 40 + [1] * 20 + [2] * 9 + [3],
            [
                CyclicDesign(Domain.range(40), 1, design=CyclicDesign.residues(41, 10, zero=1)),
                HadamardResponse(Domain.range(20), 3, block_size=8),
                CyclicDesign(Domain.range(9), 2, design=CyclicDesign.singer(3, 1, 3)),
                RandomizedResponse(Domain.range(1), "inf"),
            ],
        ),
        Parts(
            _SMALL,
            [0, 1, 1, 1, 0],
            [
                SubsetSelection(Domain.range(2), 1, 1),
                CyclicDesign(Domain.range(3), "ln 3", design=CyclicDesign.residues(7, 2)),
            ],
        ),
        # Several parts of which some have unprotected values.
        Parts(
            _LARGE,
            [x % 3 for x in range(70)],
            [
                SubsetSelection(Domain.range(19), 1, 5),
                HadamardResponse(Domain.range(22), 3, block_size=8),
                CyclicDesign(Domain.range(19), "0.5", design=CyclicDesign.residues(29, 7)),
            ],
            [0, 3, 6, 9, 10, 11, 12, 20, 23, 26],
        ),
        HighLowHadamard(_SMALL, _FEARED, 1, block_size=4),
        HighLowHadamard(_LARGE, range(1, 70, 3), 3, block_size=8),
        HighLowHadamard(_SMALL, ["hiv"], "0.5", published=True),
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
    policy = Blocks(seven, "abbccdd", epsilon)
    inner = [
        CyclicDesign(Domain.range(3), epsilon, design=CyclicDesign.singer(2, 1, 3)),
        *(RandomizedResponse(Domain.range(2), epsilon),) * 2,
    ]
    return [
        *(Parts.for_policy(policy, inner) for inner in (None, "rr", "hadamard")),
        Parts(Domain.range(7), [0, 0, 0, 1, 1, 2, 2], inner),
        Parts(
            Domain.range(7), [0, 0, 0, 1, 1, 1, 2], [inner[1], inner[0], RandomizedResponse(Domain.range(1), 1)], [1]
        ),
        *(HighLowHadamard(seven, range(count), epsilon) for count in (1, 4, 7)),
        *(HighLowSubset(seven, range(count), epsilon) for count in (1, 4, 7)),
        *(HighLowCyclic(seven, range(count), epsilon, design=CyclicDesign.residues(7, 3)) for count in (2, 4, 7)),
    ]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [
        Parts(
            Domain.range(12),
            [0] * 5 + [1] * 6 + [2],
            [
                SubsetSelection(Domain.range(5), 1, 2),
                HadamardResponse(Domain.range(6), 2, block_size=4, blocks=3),
                RandomizedResponse(Domain.range(1), "inf"),
            ],
        ),
        HighLowSubset(Domain.range(7), range(4), 1, 2),
        HighLowSubset(_LARGE, range(63), 1, 20),
    ]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
