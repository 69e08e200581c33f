"""Examples of the mechanisms for a mean, for vectors and contract tests."""

from __future__ import annotations

from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.mean.geometric import TruncatedGeometric
from sfumato.mechanisms.mean.one_bit import OneBit
from sfumato.mechanisms.mean.shifted_bins import ShiftedBins
from sfumato.mechanisms.mixture import ONE
from support.family_examples import Examples

__all__ = ["examples"]

_RATINGS = Domain(["bad", "fair", "good", "excellent"])


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        OneBit(Domain.range(5), 1),
        OneBit(_RATINGS, "ln 3", positions=[0, 3, 10, 4]),
        OneBit(Domain.range(100_000), 2),
        OneBit(Domain.range(3), 0),
        OneBit(Domain.range(3), "inf"),
        ShiftedBins(_RATINGS, 1, width=3),
        ShiftedBins(Domain.range(10), 2, width=4, share=3 * ONE // 4),
        ShiftedBins(Domain.range(74), 1, width=57, share=ONE // 3),
        ShiftedBins(Domain.range(70_000), "1/2", width=61_234, share=ONE // 5),
        TruncatedGeometric(_RATINGS, 1),
        TruncatedGeometric(Domain.range(74), "0.05"),
        TruncatedGeometric(Domain.range(5_000), "0.001"),
        TruncatedGeometric(Domain.range(3), 0),
        TruncatedGeometric(Domain.range(3), "inf"),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    return [
        OneBit(Domain.range(7), epsilon),
        OneBit(Domain.range(4), epsilon, positions=[2, 0, 7, 2]),
        OneBit(Domain.range(2), epsilon),
        ShiftedBins(Domain.range(7), epsilon, width=6),
        ShiftedBins(Domain.range(7), epsilon, width=4, share=ONE // 3),
        ShiftedBins(Domain.range(5), epsilon, width=2, share=0),
        TruncatedGeometric(Domain.range(7), epsilon),
        TruncatedGeometric(Domain.range(2), epsilon),
    ]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [OneBit(Domain.range(5), 1), ShiftedBins(Domain.range(74), 1, width=57, share=ONE // 3)]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
