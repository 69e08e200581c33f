"""Examples of the mixtures of the library, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.systems.buckets import LocalHashing
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from support.family_examples import Examples

__all__ = ["buckets", "hadamard_rows", "shifts", "singletons", "subsets"]

_SMALL, _LARGE = Domain(["none", "flu", "hiv", "cancer", "other"]), Domain.range(70)


def singletons() -> Examples:
    """Return the examples of randomized response."""

    def samplers() -> list[Mechanism]:
        return [
            RandomizedResponse(_SMALL, 1),
            RandomizedResponse(Domain.range(1_000_003), "ln 3"),
            RandomizedResponse(_SMALL, 0),
            RandomizedResponse(_SMALL, "inf"),
        ]

    def laws(epsilon: str) -> list[Mechanism]:
        return [RandomizedResponse(Domain.range(7), epsilon)]

    def reports() -> list[Mechanism]:
        return [
            RandomizedResponse(_SMALL, 1),
            RandomizedResponse(Domain(["only"]), 1),
            RandomizedResponse(Domain.range(256), 1),
        ]

    return Examples(samplers, laws, reports)


def subsets() -> Examples:
    """Return the examples of subset selection."""

    def samplers() -> list[Mechanism]:
        return [
            SubsetSelection(_SMALL, 1, 2),
            SubsetSelection(_LARGE, "0.5"),
            SubsetSelection(Domain.range(64), 3),
        ]

    def laws(epsilon: str) -> list[Mechanism]:
        return [SubsetSelection(Domain.range(7), epsilon, size) for size in (1, 3, 6)]

    def reports() -> list[Mechanism]:
        return [
            SubsetSelection(_SMALL, 1, 2),
            SubsetSelection(_LARGE, 2),
        ]

    return Examples(samplers, laws, reports)


def hadamard_rows() -> Examples:
    """Return the examples of Hadamard response."""

    def samplers() -> list[Mechanism]:
        return [
            HadamardResponse(_SMALL, 1),
            HadamardResponse(_SMALL, 3),
            HadamardResponse(Domain.range(65_535), 1, block_size=2**16),
            HadamardResponse(Domain.range(65_536), 1, block_size=2**17),
            HadamardResponse(Domain.range(200_000), 1, block_size=2**17),
            HadamardResponse(_SMALL, "inf", block_size=4, blocks=3),
        ]

    def laws(epsilon: str) -> list[Mechanism]:
        shapes = ((7, 2, 7), (7, 4, 3), (7, 8, 3), (7, 16, 2), (1, 16, None), (2, 16, None), (3, 16, None))
        return [
            HadamardResponse(Domain.range(values), epsilon, block_size=size, blocks=blocks)
            for values, size, blocks in shapes
        ]

    def reports() -> list[Mechanism]:
        return [
            HadamardResponse(_SMALL, 1),
            HadamardResponse(_SMALL, 3, block_size=4, blocks=3),
            HadamardResponse(Domain.range(70_000), 1),
        ]

    return Examples(samplers, laws, reports)


def shifts() -> Examples:
    """Return the examples of cyclic designs."""

    def samplers() -> list[Mechanism]:
        return [
            CyclicDesign(_SMALL, 1, design=CyclicDesign.residues(5, 1, zero=1)),
            CyclicDesign(_SMALL, 1, design=CyclicDesign.singer(2, 1, 3)),
            CyclicDesign(_SMALL, "inf", design=CyclicDesign.residues(11, 5)),
            CyclicDesign(Domain.range(21), 2, design=CyclicDesign.singer(2, 2, 3)),
            CyclicDesign(Domain.range(100), 3, design=CyclicDesign.residues(101, 5, zero=1)),
            CyclicDesign(Domain.range(70_000), 4, design=CyclicDesign.singer(53, 1, 4)),
            CyclicDesign(Domain.range(10_000), "1/2", design=CyclicDesign.residues(10_007, 5003)),
        ]

    def laws(epsilon: str) -> list[Mechanism]:
        designs = (
            CyclicDesign.singer(2, 1, 3),
            CyclicDesign.singer(3, 1, 3),
            CyclicDesign.residues(7, 3),
            CyclicDesign.residues(7, 2, zero=1),
            CyclicDesign.residues(11, 1, cosets=3),
        )
        return [CyclicDesign(Domain.range(7), epsilon, design=design) for design in designs]

    def reports() -> list[Mechanism]:
        return [
            CyclicDesign(_SMALL, 1, design=CyclicDesign.singer(2, 1, 3)),
            CyclicDesign(Domain.range(1000), 1, design=CyclicDesign.residues(1013, 253, zero=1)),
            CyclicDesign(Domain.range(70_000), 4, design=CyclicDesign.singer(53, 1, 4)),
        ]

    return Examples(samplers, laws, reports)


def buckets() -> Examples:
    """Return the examples of local hashing."""

    def samplers() -> list[Mechanism]:
        return [
            LocalHashing(_SMALL, 1),
            LocalHashing(Domain.range(100), "ln 3", buckets=3),
            LocalHashing(_SMALL, 0, buckets=5),
            LocalHashing(_SMALL, "inf", buckets=7),
        ]

    def laws(epsilon: str) -> list[Mechanism]:
        return [LocalHashing(Domain.range(7), epsilon, buckets=buckets) for buckets in (2, 3)]

    return Examples(samplers, laws)
