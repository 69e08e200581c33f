"""Examples of cyclic designs, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.cyclic.mechanism import CyclicDesign
from sfumato.mechanisms.examples import Examples

__all__ = ["examples"]

_SMALL = Domain(["none", "flu", "hiv", "cancer", "other"])


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        CyclicDesign(_SMALL, 1, design=CyclicDesign.residues(5, 1, zero=1)),
        CyclicDesign(_SMALL, 1, design=CyclicDesign.singer(2, 1, 3)),
        CyclicDesign(_SMALL, "inf", design=CyclicDesign.residues(11, 5)),
        CyclicDesign(Domain.range(21), 2, design=CyclicDesign.singer(2, 2, 3)),
        CyclicDesign(Domain.range(100), 3, design=CyclicDesign.residues(101, 5, zero=1)),
        CyclicDesign(Domain.range(70_000), 4, design=CyclicDesign.singer(53, 1, 4)),
        CyclicDesign(Domain.range(10_000), "1/2", design=CyclicDesign.residues(10_007, 5003)),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    designs = (
        CyclicDesign.singer(2, 1, 3),
        CyclicDesign.singer(3, 1, 3),
        CyclicDesign.residues(7, 3),
        CyclicDesign.residues(7, 2, zero=1),
        CyclicDesign.residues(11, 1, cosets=3),
    )
    return [CyclicDesign(Domain.range(7), epsilon, design=design) for design in designs]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [
        CyclicDesign(_SMALL, 1, design=CyclicDesign.singer(2, 1, 3)),
        CyclicDesign(Domain.range(1000), 1, design=CyclicDesign.residues(1013, 253, zero=1)),
        CyclicDesign(Domain.range(70_000), 4, design=CyclicDesign.singer(53, 1, 4)),
    ]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
