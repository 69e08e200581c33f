"""Examples of waves, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.waves.mechanism import Waves
from support.family_examples import Examples

__all__ = ["examples"]

_FEW = [(1, 1, 2, 8), (2, 2, 2, 5), (0, 5, 2, 3)]
_MANY = [(1, 1, 400, 1500), (2, 2, 400, 596), (3, 7, 350, 800), (8, 16, 350, 600), (0, 1280, 128, 600)]


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        Waves(Domain(["none", "some", "many"]), 1, modulus=5, waves=_FEW),
        Waves(Domain.range(20), "ln 2", modulus=27, waves=[(1, 1, 9, 1), (1, 14, 13, 4095)]),
        Waves(Domain.range(6), "0.5", modulus=7, waves=[(1, 1, 3, 1)]),
        Waves(Domain.range(1024), 2, modulus=1280, waves=_MANY),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    return [
        Waves(Domain.range(4), epsilon, modulus=5, waves=_FEW),
        Waves(Domain.range(6), epsilon, modulus=8, waves=[(1, 1, 3, 1), (1, 4, 2, 1)]),
    ]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [_samplers()[0], _samplers()[-1]]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
