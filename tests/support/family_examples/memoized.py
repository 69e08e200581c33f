"""Examples of memoized mechanisms, for vectors and contract tests."""

from __future__ import annotations

from sfumato._core import Epsilon
from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.memoized.mechanism import MemoizedMechanism
from sfumato.mechanisms.parts.high_low import HighLowCyclic, HighLowHadamard, HighLowSubset
from sfumato.mechanisms.parts.mechanism import Parts
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import Blocks, HighLow, Uniform
from support.family_examples import Examples, systems

__all__ = ["examples"]

_SMALL = Domain(["none", "flu", "hiv", "cancer", "other"])


def _uniform(single: Mechanism, epsilon: str, **settings: int) -> MemoizedMechanism:
    """Return the memoized form of a classical mechanism."""
    policy = Uniform(single.domain, getattr(single, "epsilon", "1"))
    return MemoizedMechanism.for_policies(single, policy, Uniform(single.domain, epsilon), **settings)


def _high_low(epsilon: str, lifetime: str) -> list[Mechanism]:
    """Return the memoized forms of mechanisms that protect 4 of 7 values."""
    policies = [HighLow(Domain.range(7), range(4), level) for level in (epsilon, lifetime)]
    arguments = Domain.range(7), range(4), epsilon
    singles = (
        HighLowHadamard(*arguments),
        HighLowSubset(*arguments),
        HighLowCyclic(*arguments, design=CyclicDesign.residues(7, 3)),
    )
    return [MemoizedMechanism.for_policies(single, *policies) for single in singles]


def _two_sizes(policy: HighLow, lifetime: HighLow) -> MemoizedMechanism:
    """Return the memoized form of subset selection among sensitive values."""
    single = HighLowSubset(policy.domain, policy.sensitive, policy.epsilon)
    return MemoizedMechanism.for_policies(single, policy, lifetime)


def _in_blocks() -> MemoizedMechanism:
    """Return a memoized form with one block of sets, one of indices and one of a single value."""
    policies = [Blocks(Domain.range(8), "aaaaabbc", epsilon) for epsilon in ("0.1", "3")]
    sets, indices = (Parts.for_policy(policies[0], name).parts for name in ("subset", "rr"))
    single = Parts(policies[0].domain, [0] * 5 + [1] * 2 + [2], [*sets[:1], *indices[1:]])
    return MemoizedMechanism.for_policies(single, *policies)


def _samplers() -> list[Mechanism]:
    """Return mechanisms for the vectors of words and decisions."""
    blocks = [Blocks(_SMALL, "aabbb", epsilon) for epsilon in (["1", "0.5"], ["2", "2"])]
    table = TableMechanism.from_matrix(Domain(["no", "yes"]), [["3/4", "1/4"], ["1/3", "2/3"]])
    at_level_one, _, at_level_zero, _ = systems.singletons().samplers()
    return [
        _uniform(at_level_one, "2", max_changes=3),
        _uniform(systems.shifts().reports()[1], "4"),
        _uniform(systems.hadamard_rows().laws("1")[0], "inf", refresh_every=7, max_changes=3),
        _uniform(systems.subsets().laws("1")[0], "1"),
        _uniform(at_level_zero, "2"),
        *_high_low("1", "2"),
        MemoizedMechanism.for_policies(Parts.for_policy(blocks[0]), *blocks),
        _uniform(table, "3"),
        _uniform(systems.subsets().laws("0.5")[1], "3"),
        # Parts whose permanent sets are smaller than those of reports; sets of one member are indices.
        _two_sizes(HighLow(Domain.range(7), range(5), "0.2"), HighLow(Domain.range(7), range(5), "1.5")),
        _two_sizes(HighLow(Domain.range(7), range(5), "0.2"), HighLow(Domain.range(7), range(5), "3")),
        _in_blocks(),
    ]


def _laws(epsilon: str) -> list[Mechanism]:
    """Return mechanisms over few values at a level ε, for the vectors of exact laws."""
    lifetime = str(Epsilon(epsilon) + Epsilon(epsilon))
    return [_uniform(systems.singletons().laws(epsilon)[0], lifetime), _high_low(epsilon, lifetime)[0]]


def examples() -> Examples:
    """Return the examples of the family."""
    return Examples(_samplers, _laws)
