"""Examples of subset selection with two sizes, for vectors and contract tests."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato._core import EpsilonLike
from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.high_low_mixed.mechanism import HighLowMixedSubsets
from support.family_examples import Examples

__all__ = ["examples"]

_SMALL, _LARGE = Domain(["none", "flu", "hiv", "cancer", "other"]), Domain.range(150)


def _mixed(domain: Domain, sensitive: Iterable[object], epsilon: EpsilonLike, *sizes: int) -> Mechanism:
    """Return a mechanism whose spec contains no number that a search computes."""
    return HighLowMixedSubsets(domain, sensitive, epsilon, sizes, weight=2**64 // 3, share="2/5")


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    return [
        _mixed(_SMALL, ["flu", "hiv", "cancer"], 1, 1, 2),
        _mixed(_SMALL, ["hiv", "cancer"], 1, 1, 2),
        _mixed(_LARGE, range(63), 1, 20, 21),
        _mixed(_LARGE, range(130), 2, 16, 17),
        _mixed(_SMALL, ["flu", "hiv", "cancer"], 0, 1, 2),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    domain = Domain.range(7)
    return [_mixed(domain, range(count), epsilon, *sizes) for count, sizes in ((2, (1, 2)), (4, (1, 2)), (6, (3, 6)))]


def _reports() -> list[Mechanism]:
    """Return mechanisms for the vectors of batches."""
    return [_mixed(Domain.range(7), range(4), 1, 1, 2), _mixed(_LARGE, range(63), 1, 20, 21)]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws, _reports)
