"""Policies in words: what they ask, and what a stranger can learn at most from an answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

from sfumato.exact import Epsilon
from sfumato.policy.base import Policy
from sfumato.policy.blocks import Blocks
from sfumato.policy.high_low import HighLow
from sfumato.policy.metric import Metric
from sfumato.policy.pairwise import Pairwise, PairwisePolicy, representatives
from sfumato.policy.prior import Prior
from sfumato.policy.secret import Anything, Secret
from sfumato.policy.uniform import Uniform

__all__ = ["Suspicion", "asks", "least", "suspicions"]

_MOST_NAMED = 5


@singledispatch
def asks(policy: Policy) -> str:
    """What the policy asks of every output of a mechanism."""
    return "; ".join(f"{name} = {value}" for name, value in policy.parameters().items())


@asks.register
def _(policy: Uniform) -> str:
    return f"no output is more than {_times(policy.epsilon)} likelier for one value than for any other."


@asks.register
def _(policy: HighLow) -> str:
    return (
        f"no output is more than {_times(policy.epsilon)} likelier for a sensitive value ({_named(policy.sensitive)}) "
        "than for any other value; the other values may be told."
    )


@asks.register
def _(policy: Blocks) -> str:
    levels = sorted(set(policy.epsilons))
    within = _times(levels[0]) if len(levels) == 1 else f"{_times(levels[0])} to {_times(levels[-1])}, by block,"
    across = "the block itself may be told"
    if not policy.across.is_infinite:
        across = f"nor more than {_times(policy.across)} likelier than for one of another block"
    return f"no output is more than {within} likelier for one value than for another of its block; {across}."


@asks.register
def _(policy: Metric) -> str:
    return (
        f"no output is more than {_times(policy.epsilon)} likelier, per unit of distance, for one value than another."
    )


@asks.register
def _(policy: Pairwise) -> str:
    finite = sum(1 for _ in policy.inequalities())
    size = len(policy.domain)
    return (
        f"for {finite:,} of the {size * (size - 1):,} ordered pairs of values, no output is more than e^level times "
        "likelier for the first than for the second, with the level of the pair."
    )


@asks.register
def _(policy: Prior) -> str:
    moved = {"both": "more or less", "upper": "more", "lower": "less"}[policy.side]
    return f"no output makes any value more than {_times(policy.epsilon)} {moved} probable than the prior does."


@asks.register
def _(policy: Secret) -> str:
    whatever = isinstance(policy.distributions, Anything)
    known = "however the rest depends on it" if whatever else "if the rest depends on it as the policy says"
    return (
        f"no output is more than {_times(policy.epsilon)} likelier for one value of {policy.secret} than for another, "
        f"{known}."
    )


def least(policy: Policy) -> str:
    """The strictest level between two values, and between which."""
    pairwise = policy.as_pairwise if isinstance(policy, Secret) else policy
    if isinstance(pairwise, PairwisePolicy):
        epsilon, (x, other) = pairwise.least
        names = f"{policy.domain.label(x)!r} against {policy.domain.label(other)!r}"
        return "inf (nothing is asked)" if epsilon.is_infinite else f"{epsilon} ({names})"
    if isinstance(policy, Prior):
        why = "twice the epsilon of the prior" if policy.side == "both" else "what one side implies under this prior"
        return f"{policy.classical_level} (any two values; {why})"
    epsilon = Epsilon(policy.parameters()["epsilon"])
    return f"{epsilon} (any two secrets)"


@dataclass(frozen=True)
class Suspicion:
    """Of these values: believed with probability ``before`` an answer, at most with ``after`` once it is seen."""

    values: list[object]
    before: float
    after: float


def suspicions(policy: Policy, before: float) -> list[Suspicion]:
    """What a stranger can come to believe of somebody's value, by how much is left to learn; the best kept first.

    The odds of x against all else move by at most e^E, E the greatest level from x to another value. Under a prior the
    stranger's own belief is the prior's.
    """
    grouped: dict[tuple[float, float], list[object]] = {}
    labels = policy.domain.labels
    if isinstance(policy, Prior):
        for label, p in zip(labels, policy.prior, strict=True):
            grouped.setdefault((float(p), policy.posterior_interval(label)[1]), []).append(label)
    else:
        for label, after in zip(labels, _afterwards(policy, before), strict=True):
            grouped.setdefault((before, after), []).append(label)
    found = [Suspicion(values, before, after) for (before, after), values in grouped.items()]
    return sorted(found, key=lambda suspicion: suspicion.after)


def _afterwards(policy: Policy, before: float) -> list[float]:
    pairwise = policy.as_pairwise if isinstance(policy, Secret) else policy
    if not isinstance(pairwise, PairwisePolicy):
        return [1.0] * len(policy.domain)  # the secret is protected, not the value
    if len(pairwise.domain) == 1:
        return [before]
    classes = pairwise.classes()
    chosen = representatives(classes)
    levels = pairwise.effective_on(chosen).floats
    greatest = {int(classes[x]): level for x, level in zip(chosen, levels.max(axis=1).tolist(), strict=True)}
    return [_moved(before, greatest[own]) for own in classes.tolist()]


def _moved(before: float, level: float) -> float:
    return 1.0 if math.isinf(level) else before / (before + (1 - before) * math.exp(-level))


def _times(epsilon: Epsilon) -> str:
    return "any number of times" if epsilon.is_infinite else f"{epsilon.exp():.4g} times (epsilon {epsilon})"


def _named(values: Sequence[object]) -> str:
    more = len(values) - _MOST_NAMED
    return ", ".join(repr(value) for value in values[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
