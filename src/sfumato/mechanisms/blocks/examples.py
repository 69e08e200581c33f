"""Examples of block mechanisms, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.blocks.mechanism import BlockMechanism
from sfumato.mechanisms.examples import Examples
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.policy import Blocks

__all__ = ["examples"]

_SMALL, _LARGE = Domain(["none", "flu", "hiv", "cancer", "other"]), Domain.range(70)
_TWO_AND_THREE = Blocks(_SMALL, "abbba", [1, "ln 3"])


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        BlockMechanism.for_policy(_TWO_AND_THREE, "rr"),
        BlockMechanism.for_policy(_TWO_AND_THREE, "subset"),
        BlockMechanism.for_policy(_TWO_AND_THREE, "hadamard"),
        BlockMechanism(
            _LARGE,
            [0] * 40 + [1] * 20 + [2] * 9 + [3],
            [
                SubsetSelection(Domain.range(40), 1, 10),
                HadamardResponse(Domain.range(20), 3, block_size=8),
                RandomizedResponse(Domain.range(9), 2),
                RandomizedResponse(Domain.range(1), "inf"),
            ],
        ),
        BlockMechanism(
            _LARGE,
            [0] * 40 + [1] * 20 + [2] * 9 + [3],
            [
                CyclicDesign(Domain.range(40), 1, design=CyclicDesign.residues(41, 10, zero=1)),
                HadamardResponse(Domain.range(20), 3, block_size=8),
                CyclicDesign(Domain.range(9), 2, design=CyclicDesign.singer(3, 1, 3)),
                RandomizedResponse(Domain.range(1), "inf"),
            ],
        ),
        BlockMechanism(
            _SMALL,
            [0, 1, 1, 1, 0],
            [
                SubsetSelection(Domain.range(2), 1, 1),
                CyclicDesign(Domain.range(3), "ln 3", design=CyclicDesign.residues(7, 2)),
            ],
        ),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    policy = Blocks(Domain.range(7), "abbccdd", epsilon)
    inner = [
        CyclicDesign(Domain.range(3), epsilon, design=CyclicDesign.singer(2, 1, 3)),
        *(RandomizedResponse(Domain.range(2), epsilon),) * 2,
    ]
    return [
        *(BlockMechanism.for_policy(policy, inner) for inner in (None, "rr", "hadamard")),
        BlockMechanism(Domain.range(7), [0, 0, 0, 1, 1, 2, 2], inner),
    ]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [
        BlockMechanism(
            Domain.range(12),
            [0] * 5 + [1] * 6 + [2],
            [
                SubsetSelection(Domain.range(5), 1, 2),
                HadamardResponse(Domain.range(6), 2, block_size=4, blocks=3),
                RandomizedResponse(Domain.range(1), "inf"),
            ],
        ),
    ]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
