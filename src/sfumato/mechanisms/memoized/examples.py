"""Examples of memoized mechanisms, for vectors and contract tests."""

from __future__ import annotations

from sfumato._core import Epsilon
from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.blocks.mechanism import BlockMechanism
from sfumato.mechanisms.cyclic.mechanism import CyclicDesign
from sfumato.mechanisms.examples import Examples
from sfumato.mechanisms.hadamard import examples as hadamard
from sfumato.mechanisms.high_low import examples as high_low
from sfumato.mechanisms.high_low.base import HighLowMechanism
from sfumato.mechanisms.memoized.mechanism import MemoizedMechanism
from sfumato.mechanisms.randomized_response.mechanism import RandomizedResponse
from sfumato.mechanisms.subset import examples as subset
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import Blocks, HighLow, Uniform

__all__ = ["examples"]

_SMALL = Domain(["none", "flu", "hiv", "cancer", "other"])


def _uniform(single: Mechanism, epsilon: str, **settings: int) -> MemoizedMechanism:
    """Return the memoized form of a classical mechanism."""
    policy = Uniform(single.domain, single.stated_epsilon or "1")
    return MemoizedMechanism.for_policies(single, policy, Uniform(single.domain, epsilon), **settings)


def _high_low(epsilon: str, lifetime: str) -> list[Mechanism]:
    """Return the memoized forms of mechanisms for sensitive values, every third of which protects 4 of 7 values."""
    singles = [single for single in high_low.examples().laws(epsilon)[1::3] if isinstance(single, HighLowMechanism)]
    return [
        MemoizedMechanism.for_policies(
            single, *(HighLow(single.domain, single.sensitive, level) for level in (epsilon, lifetime))
        )
        for single in singles
    ]


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    blocks = [Blocks(_SMALL, "aabbb", epsilon) for epsilon in (["1", "0.5"], ["2", "2"])]
    table = TableMechanism.from_matrix(Domain(["no", "yes"]), [["3/4", "1/4"], ["1/3", "2/3"]])
    return [
        _uniform(RandomizedResponse(_SMALL, 1), "2", max_changes=3),
        _uniform(CyclicDesign(Domain.range(1000), 1), "4"),
        _uniform(hadamard.examples().laws("1")[0], "inf", refresh_every=7, max_changes=3),
        _uniform(subset.examples().laws("1")[0], "1"),
        _uniform(RandomizedResponse(_SMALL, 0), "2"),
        *_high_low("1", "2"),
        MemoizedMechanism.for_policies(BlockMechanism.for_policy(blocks[0]), *blocks),
        _uniform(table, "3"),
        _uniform(subset.examples().laws("0.5")[1], "3"),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    lifetime = str(Epsilon(epsilon) + Epsilon(epsilon))
    return [_uniform(RandomizedResponse(Domain.range(7), epsilon), lifetime), _high_low(epsilon, lifetime)[0]]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws)
