"""Examples of local hashing, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import Examples
from sfumato.mechanisms.local_hashing.mechanism import LocalHashing

__all__ = ["examples"]

_SMALL = Domain(["none", "flu", "hiv", "cancer", "other"])


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        LocalHashing(_SMALL, 1),
        LocalHashing(Domain.range(100), "ln 3", buckets=3),
        LocalHashing(_SMALL, 0, buckets=5),
        LocalHashing(_SMALL, "inf", buckets=7),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    return [LocalHashing(Domain.range(7), epsilon, buckets=buckets) for buckets in (2, 3)]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws)
