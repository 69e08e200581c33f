"""Examples of unary encoding, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from support.family_examples import Examples

__all__ = ["examples"]

_SMALL, _LARGE = Domain(["none", "flu", "hiv", "cancer", "other"]), Domain.range(70)


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        UnaryEncoding(_SMALL, 1),
        UnaryEncoding(_LARGE, "0.5", optimized=True),
        UnaryEncoding(_SMALL, "inf"),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    seven = Domain.range(7)
    return [UnaryEncoding(seven, epsilon), UnaryEncoding(seven, epsilon, optimized=True)]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [
        UnaryEncoding(_SMALL, 1),
        UnaryEncoding(Domain.range(16), 1, optimized=True),
        UnaryEncoding(_LARGE, 1),
    ]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
