"""Examples of randomized response, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import Examples
from sfumato.mechanisms.randomized_response.mechanism import RandomizedResponse

__all__ = ["examples"]

_SMALL = Domain(["none", "flu", "hiv", "cancer", "other"])


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        RandomizedResponse(_SMALL, 1),
        RandomizedResponse(Domain.range(1_000_003), "ln 3"),
        RandomizedResponse(_SMALL, 0),
        RandomizedResponse(_SMALL, "inf"),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    return [RandomizedResponse(Domain.range(7), epsilon)]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [
        RandomizedResponse(_SMALL, 1),
        RandomizedResponse(Domain(["only"]), 1),
        RandomizedResponse(Domain.range(256), 1),
    ]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
