"""Examples of utility-optimized RAPPOR, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import Examples
from sfumato.mechanisms.utility_optimized_rappor.mechanism import UtilityOptimizedRappor

__all__ = ["examples"]

_SMALL, _LARGE = Domain(["none", "flu", "hiv", "cancer", "other"]), Domain.range(70)


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        UtilityOptimizedRappor(_SMALL, ["flu", "hiv", "cancer"], 1),
        UtilityOptimizedRappor(_LARGE, range(1, 70, 3), "0.5"),
        UtilityOptimizedRappor(_SMALL, _SMALL, "ln 3"),
        UtilityOptimizedRappor(_SMALL, ["hiv"], "inf"),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    return [UtilityOptimizedRappor(Domain.range(7), range(count), epsilon) for count in (1, 4, 7)]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws)
