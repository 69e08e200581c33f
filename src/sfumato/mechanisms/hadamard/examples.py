"""Examples of Hadamard response, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import Examples
from sfumato.mechanisms.hadamard.mechanism import HadamardResponse

__all__ = ["examples"]

_SMALL = Domain(["none", "flu", "hiv", "cancer", "other"])


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        HadamardResponse(_SMALL, 1),
        HadamardResponse(_SMALL, 3),
        HadamardResponse(Domain.range(65_535), 1, block_size=2**16),
        HadamardResponse(Domain.range(65_536), 1, block_size=2**17),
        HadamardResponse(Domain.range(200_000), 1, block_size=2**17),
        HadamardResponse(_SMALL, "inf", block_size=4, blocks=3),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    shapes = ((7, 2, 7), (7, 4, 3), (7, 8, 3), (7, 16, 2), (1, 16, None), (2, 16, None), (3, 16, None))
    return [
        HadamardResponse(Domain.range(values), epsilon, block_size=size, blocks=blocks)
        for values, size, blocks in shapes
    ]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [
        HadamardResponse(_SMALL, 1),
        HadamardResponse(_SMALL, 3, block_size=4, blocks=3),
        HadamardResponse(Domain.range(70_000), 1),
    ]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
