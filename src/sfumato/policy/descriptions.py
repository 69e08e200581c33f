"""Policies in words: what they ask, and what a stranger can learn at most from an answer."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, Floats
from sfumato.errors import LimitExceeded
from sfumato.policy.base import Policy
from sfumato.policy.blocks import Blocks
from sfumato.policy.distributions import Anything
from sfumato.policy.high_low import HighLow
from sfumato.policy.implication import binds_nothing
from sfumato.policy.metric import Metric
from sfumato.policy.pairwise import Pairwise, PairwisePolicy, representatives
from sfumato.policy.prior import Prior
from sfumato.policy.secret import Secret
from sfumato.policy.uniform import Uniform

__all__ = ["PosteriorBound", "describe", "disclosure_warnings", "posterior_bounds", "strictest"]


_MOST_NAMED = 5
#: Values are given away where a reply may leave at most this fraction of the doubt there was before.
_DOUBT_LEFT = 0.05
#: Smaller chances are called smaller than this, and epsilons are cut where e^-epsilon is smaller still.
_LEAST_CHANCE, _GREATEST_EPSILON = 1e-300, 705.0
#: Effective epsilons that are not known in closed form are computed for up to this many values: it takes k³ steps.
_LARGEST_CLOSED = 512
#: What a policy without rules asks for.
_UNCONSTRAINED = "nothing: an output may be the value itself."


@singledispatch
def describe(policy: Policy) -> str:
    """What the policy asks of every output of a mechanism."""
    return "; ".join(f"{name} = {value}" for name, value in policy.parameters().items())


@describe.register
def _(policy: Uniform) -> str:
    if policy.epsilon.is_infinite:
        return _UNCONSTRAINED
    return f"no output is more than {_times(policy.epsilon)} likelier for one value than for any other."


@describe.register
def _(policy: HighLow) -> str:
    if binds_nothing(policy):
        return _UNCONSTRAINED
    return (
        f"no output is more than {_times(policy.epsilon)} likelier for a sensitive value ({_named(policy.sensitive)}) "
        "than for any other value; the other values may be told."
    )


@describe.register
def _(policy: Blocks) -> str:
    if binds_nothing(policy):
        return _UNCONSTRAINED
    epsilons = sorted({epsilon for epsilon in policy.epsilons if not epsilon.is_infinite})
    if not epsilons:
        others = "than for one of another block; values of one block may be told apart"
        return f"no output is more than {_times(policy.across)} likelier for one value {others}."
    across = "the block itself may be told"
    within = (
        _times(epsilons[0]) if len(epsilons) == 1 else f"{_times(epsilons[0])} to {_times(epsilons[-1])}, by block,"
    )
    if not policy.across.is_infinite:
        across = f"nor more than {_times(policy.across)} likelier than for one of another block"
    if len(epsilons) < len(set(policy.epsilons)):
        across += "; values of some blocks may be told apart"
    return f"no output is more than {within} likelier for one value than for another of its block; {across}."


@describe.register
def _(policy: Metric) -> str:
    if binds_nothing(policy):
        return _UNCONSTRAINED
    if policy.epsilon.is_infinite:
        return "no output tells values at distance 0 apart; all others may be told apart."
    return (
        f"no output is more than {_times(policy.epsilon)} likelier, per unit of distance, for one value than another."
    )


@describe.register
def _(policy: Pairwise) -> str:
    if binds_nothing(policy):
        return _UNCONSTRAINED
    finite = sum(1 for _ in policy.inequalities())
    size = len(policy.domain)
    return (
        f"for {finite:,} of the {size * (size - 1):,} ordered pairs of values, no output is more than e^level times "
        "likelier for the first than for the second, with the level of the pair."
    )


@describe.register
def _(policy: Prior) -> str:
    if policy.epsilon.is_infinite:
        return _UNCONSTRAINED
    moved = {"both": "more or less", "upper": "more", "lower": "less"}[policy.side]
    return f"no output makes any value more than {_times(policy.epsilon)} {moved} probable than the prior does."


@describe.register
def _(policy: Secret) -> str:
    if policy.epsilon.is_infinite:
        return _UNCONSTRAINED
    whatever = isinstance(policy.distributions, Anything)
    known = "however the rest depends on it" if whatever else "if the rest depends on it as the policy says"
    return (
        f"no output is more than {_times(policy.epsilon)} likelier for one value of {policy.secret} than for another, "
        f"{known}."
    )


def strictest(policy: Policy) -> str:
    """The strictest epsilon between two values, and between which."""
    if binds_nothing(policy):
        return "inf (nothing is asked)"
    pairwise = policy.as_pairwise if isinstance(policy, Secret) else policy
    if isinstance(pairwise, PairwisePolicy):
        epsilon, (x, other) = pairwise.least
        return f"{epsilon} ({policy.domain.label(x)!r} against {policy.domain.label(other)!r})"
    if isinstance(policy, Prior):
        why = "twice the epsilon of the prior" if policy.side == "both" else "what one side implies under this prior"
        return f"{policy.classical_epsilon} (any two values; {why})"
    epsilon = Epsilon(policy.parameters()["epsilon"])
    return f"{epsilon} (any two secrets)"


# -- what a policy does not protect ------------------------------------------------------------------------


def disclosure_warnings(policy: Policy) -> list[str]:
    """Return warnings about what a single reply may give away under a policy; none where it protects every value.

    A value is given away where a reply may make it so certain that at most a twentieth of the doubt is left, all values
    being equally likely before (under a prior policy: as its prior says). The harmless values of a high-low policy are
    not named, as the policy says of them that they may be told.

    Parameters
    ----------
    policy
        Any policy.

    Returns
    -------
    list of str
        At most one sentence, without a full stop.

    Notes
    -----
    The likelihoods T_z = e^-E(x,z), E the effective epsilons, lie in the cone of a policy on pairs and make x as
    certain as it can be: the guess that it is x is wrong with probability 1 - 1/Σ_z e^-E(x,z).

    Examples
    --------
    >>> from sfumato import Domain
    >>> disclosure_warnings(Uniform(Domain(["no", "yes"]), 1))
    []
    >>> disclosure_warnings(Uniform(Domain(["no", "yes"]), 20))
    ['a reply is almost always the answer: a guess from it may be wrong with probability 2.1e-09 only']
    """
    if len(policy.domain) == 1:
        return []
    if binds_nothing(policy):
        return ["this policy asks nothing: a reply may be the answer itself"]
    doubts = _doubts(policy)
    exposed = [value for value, (before, after) in doubts.items() if after <= _DOUBT_LEFT * before]
    if not exposed:
        return []
    error = min(doubts[value][1] for value in exposed)
    chance = f"{error:.2g}" if error > _LEAST_CHANCE else f"below {_LEAST_CHANCE:g}"
    odds = f"a guess from it may be wrong with probability {chance} only" if error else "a guess from it may be certain"
    if isinstance(policy, Secret):
        return [f"a reply almost always tells {policy.secret}: {odds}"]
    if len(exposed) == len(policy.domain):
        return [f"a reply is almost always the answer: {odds}"]
    return [f"a reply may give away {len(exposed):,} of {len(policy.domain):,} values ({_named(exposed)}): {odds}"]


def _doubts(policy: Policy) -> dict[object, tuple[float, float]]:
    """For each protected value the probability that it is another one, before a reply and at least after it."""
    if isinstance(policy, Secret):
        secrets = list(policy.domain.factors[policy.secret])
        rest = (len(secrets) - 1) * float(_unlikelier(float(policy.epsilon)))
        return dict.fromkeys(secrets, (1 - 1 / len(secrets), rest / (1 + rest)))
    labels = policy.domain.labels
    if isinstance(policy, Prior):
        probabilities = (float(p) for p in policy.prior)
        return {
            label: (1 - p, _doubt_left(policy, p)) for label, p in zip(labels, probabilities, strict=True) if 0 < p < 1
        }
    if not isinstance(policy, PairwisePolicy):
        return {}
    protected = policy.is_sensitive if isinstance(policy, HighLow) else np.ones(len(labels), dtype=bool)
    others, before = _others(policy), 1 - 1 / len(labels)
    after = others / (1 + others)
    return {labels[x]: (before, float(after[x])) for x in np.flatnonzero(protected).tolist()}


def _doubt_left(policy: Prior, p: float) -> float:
    """The least probability, after a reply, of all values but one of prior p."""
    by_lower = (1 - p) * float(_unlikelier(float(policy.epsilon))) if policy.side != "upper" else 0.0
    by_upper = 1 - p * policy.epsilon.exp() if policy.side != "lower" else 0.0
    return max(by_lower, by_upper)


def _others(policy: PairwisePolicy) -> Floats:
    """For each value x the sum of e^-E(x,z) over all other values z, E the effective epsilons.

    Where these are too many to compute it is a little more: no E(x,z) is below the least epsilon that is declared for
    x.
    """
    size = len(policy.domain)
    if isinstance(policy, (Uniform, HighLow)):  # of which only sensitive values are asked for
        return np.full(size, (size - 1) * _unlikelier(float(policy.epsilon)))
    if isinstance(policy, Blocks):
        block_of = policy.block_of
        members = np.bincount(block_of)
        across = float(policy.across)
        around = 2 * across if len(members) > 1 else math.inf  # out of the block and back again
        within = np.minimum([float(epsilon) for epsilon in policy.epsilons], around)
        in_blocks = (members - 1) * _unlikelier(within) + (size - members) * _unlikelier(across)
        return np.asarray(in_blocks[block_of])
    if size <= _LARGEST_CLOSED:
        with contextlib.suppress(LimitExceeded):  # epsilons without a common unit
            unlikelier = _unlikelier(policy.effective_epsilon_matrix().floats)
            np.fill_diagonal(unlikelier, 0.0)
            return np.asarray(unlikelier.sum(axis=1))
    unlikelier = _unlikelier(policy.epsilon_matrix().floats)
    np.fill_diagonal(unlikelier, 0.0)
    return np.asarray((size - 1) * unlikelier.max(axis=1))


def _unlikelier(epsilon: npt.ArrayLike) -> Floats:
    """e^-epsilon, which is 0 only where the epsilon is infinite."""
    epsilons = np.asarray(epsilon, dtype=np.float64)
    return np.where(np.isinf(epsilons), 0.0, np.exp(-np.minimum(epsilons, _GREATEST_EPSILON)))


@dataclass(frozen=True)
class PosteriorBound:
    """Of these values: believed with probability ``before`` an answer, at most with ``after`` once it is seen."""

    values: list[object]
    before: float
    after: float


def posterior_bounds(policy: Policy, before: float) -> list[PosteriorBound]:
    """What a stranger can come to believe of somebody's value, by how much is left to learn; the best kept first.

    The odds of x against all else move by at most e^E, E the greatest epsilon from x to another value. Under a prior
    the stranger's own belief is the prior's.
    """
    grouped: dict[tuple[float, float], list[object]] = {}
    labels = policy.domain.labels
    if isinstance(policy, Prior):
        for label, p in zip(labels, policy.prior, strict=True):
            grouped.setdefault((float(p), policy.posterior_interval(label)[1]), []).append(label)
    else:
        for label, after in zip(labels, _afterwards(policy, before), strict=True):
            grouped.setdefault((before, after), []).append(label)
    bounds = [PosteriorBound(values, before, after) for (before, after), values in grouped.items()]
    return sorted(bounds, key=lambda bound: bound.after)


def _afterwards(policy: Policy, before: float) -> list[float]:
    pairwise = policy.as_pairwise if isinstance(policy, Secret) else policy
    if not isinstance(pairwise, PairwisePolicy):
        return [1.0] * len(policy.domain)  # the secret is protected, not the value
    if len(pairwise.domain) == 1:
        return [before]
    classes = pairwise.classes()
    chosen = representatives(classes)
    epsilons = pairwise.effective_epsilons_on(chosen).floats
    greatest = {int(classes[x]): epsilon for x, epsilon in zip(chosen, epsilons.max(axis=1).tolist(), strict=True)}
    return [_moved(before, greatest[value_class]) for value_class in classes.tolist()]


def _moved(before: float, epsilon: float) -> float:
    return 1.0 if math.isinf(epsilon) else before / (before + (1 - before) * math.exp(-epsilon))


def _times(epsilon: Epsilon) -> str:
    factor = epsilon.exp()
    return f"{factor:.4g} times (epsilon {epsilon})" if math.isfinite(factor) else f"e^{epsilon} times"


def _named(values: Sequence[object]) -> str:
    more = len(values) - _MOST_NAMED
    return ", ".join(repr(value) for value in values[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
