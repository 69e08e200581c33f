"""Describe policies in words: their rules, and how much a report may reveal."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, Floats, quantity
from sfumato.errors import LimitExceeded
from sfumato.policy.base import Policy
from sfumato.policy.blocks import Blocks
from sfumato.policy.distributions import Anything
from sfumato.policy.graph import Graph
from sfumato.policy.high_low import HighLow
from sfumato.policy.implication import binds_nothing
from sfumato.policy.metric import Metric
from sfumato.policy.pairwise import Pairwise, PairwisePolicy, representatives
from sfumato.policy.per_value import PerValue
from sfumato.policy.prior import Prior
from sfumato.policy.product import Product
from sfumato.policy.secret import Secret
from sfumato.policy.uniform import Uniform

__all__ = ["PosteriorBound", "describe", "disclosure_warnings", "posterior_bounds", "strictest"]


#: Maximum number of values that a description names.
_MOST_NAMED = 5
#: A value counts as revealed if a report can reduce the probability of a wrong guess to this fraction of what it was.
_DOUBT_LEFT = 0.05
#: Smallest probability that is printed, and largest epsilon for which e^-epsilon is computed.
_LEAST_CHANCE, _GREATEST_EPSILON = 1e-300, 705.0
#: Maximum number of values for which effective epsilons are computed by shortest paths; it takes k³ steps.
_LARGEST_CLOSED = 512
#: Description of a policy without rules.
_UNCONSTRAINED = "nothing: a report may be the value itself."


@singledispatch
def describe(policy: Policy) -> str:
    """Return the rules of a policy in words.

    Parameters
    ----------
    policy
        Any policy.

    Returns
    -------
    str
        One English sentence. It starts with a lower-case letter, so that it can follow words such as "The rule:".

    Examples
    --------
    >>> from sfumato import Domain
    >>> describe(Uniform(Domain(["no", "yes"]), "ln 3"))
    'no report is more than 3 times (epsilon ln 3) as likely for one value as for any other value.'
    """
    return "; ".join(f"{name} = {value}" for name, value in policy.parameters().items())


@describe.register
def _(policy: Uniform) -> str:
    if policy.epsilon.is_infinite:
        return _UNCONSTRAINED
    return f"no report is more than {_times(policy.epsilon)} as likely for one value as for any other value."


@describe.register
def _(policy: HighLow) -> str:
    if binds_nothing(policy):
        return _UNCONSTRAINED
    others = "" if policy.is_sensitive.all() else "; the other values may be revealed"
    return (
        f"no report is more than {_times(policy.epsilon)} as likely for a sensitive value ({_named(policy.sensitive)}) "
        f"as for any other value{others}."
    )


@describe.register
def _(policy: Blocks) -> str:
    if binds_nothing(policy):
        return _UNCONSTRAINED
    epsilons = sorted({epsilon for epsilon in policy.epsilons if not epsilon.is_infinite})
    if not epsilons:
        others = "as for a value of another block; values of the same block may be distinguished"
        return f"no report is more than {_times(policy.across)} as likely for one value {others}."
    within = _times(epsilons[0])
    if len(epsilons) > 1:
        within += f" to {_times(epsilons[-1])}, depending on the block,"
    if policy.across.is_infinite:
        across = "; the block itself may be revealed"
    else:
        across = f", or more than {_times(policy.across)} as likely as for a value of another block"
    if len(epsilons) < len(set(policy.epsilons)):
        across += "; values of some blocks may be distinguished"
    return f"no report is more than {within} as likely for one value as for another value of the same block{across}."


#: For each rule of a PerValue policy: its words, and the function of the two epsilons.
_COMBINATIONS: dict[str, tuple[str, Callable[[Floats, Floats], Floats]]] = {
    "min": ("the smaller of the epsilons", np.minimum),
    "mean": ("the mean of the epsilons", lambda first, second: (first + second) / 2),
    "max": ("the larger of the epsilons", np.maximum),
}


@describe.register
def _(policy: PerValue) -> str:
    if binds_nothing(policy):
        return _UNCONSTRAINED
    members: dict[Epsilon, list[object]] = {}
    for label, epsilon in zip(policy.domain, policy.epsilons, strict=True):
        members.setdefault(epsilon, []).append(label)
    levels = sorted(members)
    shown = [
        f"{'unlimited' if level.is_infinite else level} for {_named(members[level])}"
        for level in (levels if len(levels) <= _MOST_NAMED else [levels[0], levels[-1]])
    ]
    between = "; " if len(levels) <= _MOST_NAMED else f", and {quantity(len(levels) - 2, 'level')} up to "
    declared, implied = policy.epsilon_between(*policy.greatest_effective[1]), policy.greatest_effective[0]
    together = f"; together, these limits keep every pair within epsilon {implied}" if implied < declared else ""
    return (
        "no report is more than e^epsilon times as likely for one value as for another, where epsilon is "
        f"{_COMBINATIONS[policy.rule][0]} of the two values: {between.join(shown)}{together}."
    )


@describe.register
def _(policy: Graph) -> str:
    if binds_nothing(policy):
        return _UNCONSTRAINED
    levels = sorted({level for _, _, level in policy.edges if not level.is_infinite})
    factor = _times(levels[0])
    if len(levels) > 1:
        factor += f" to {_times(levels[-1])}, depending on the edge,"
    parts = len(policy.components)
    apart = f"; the {parts} parts of the graph that no path joins may be distinguished" if parts > 1 else ""
    return (
        f"no report is more than {factor} as likely for one value as for a neighbour in a graph with "
        f"{quantity(len(policy.edges), 'edge')}, and limits add up along paths{apart}."
    )


@describe.register
def _(policy: Metric) -> str:
    if binds_nothing(policy):
        return _UNCONSTRAINED
    if policy.epsilon.is_infinite:
        return "no report distinguishes values at distance 0; all other values may be distinguished."
    return (
        f"per unit of distance, no report is more than {_times(policy.epsilon)} as likely for one value as for another."
    )


@describe.register
def _(policy: Pairwise) -> str:
    if binds_nothing(policy):
        return _UNCONSTRAINED
    finite = sum(1 for _ in policy.inequalities())
    size = len(policy.domain)
    return (
        f"for {finite:,} of the {size * (size - 1):,} ordered pairs of values, no report is more than e^epsilon times "
        "as likely for the first value as for the second; each pair has its own epsilon."
    )


@describe.register
def _(policy: Product) -> str:
    if binds_nothing(policy):
        return _UNCONSTRAINED
    rules = "; ".join(f"for {name}, {describe(part).removesuffix('.')}" for name, part in policy.policies.items())
    return f"each attribute has its own rule, and limits add up for values that differ in several: {rules}."


@describe.register
def _(policy: Prior) -> str:
    if policy.epsilon.is_infinite:
        return _UNCONSTRAINED
    verb = {"both": "raises or lowers", "upper": "raises", "lower": "lowers"}[policy.side]
    leakage = ", which limits the pointwise maximal leakage" if policy.side == "upper" else ""
    factor = _factor(policy.epsilon)
    return f"no report {verb} the prior probability of any value by a factor of more than {factor}{leakage}."


@describe.register
def _(policy: Secret) -> str:
    if policy.epsilon.is_infinite:
        return _UNCONSTRAINED
    condition = "if the other attributes depend on it as the policy states"
    if isinstance(policy.distributions, Anything):
        condition = "however the other attributes depend on it"
    return (
        f"no report is more than {_times(policy.epsilon)} as likely for one value of {policy.secret} as for another, "
        f"{condition}."
    )


def strictest(policy: Policy) -> str:
    """Return the smallest epsilon that a policy sets between two values, and the pair, as a string.

    Parameters
    ----------
    policy
        Any policy.

    Returns
    -------
    str
        The epsilon, followed by the pair in parentheses. For a :class:`Prior` policy, it is
        :attr:`Prior.classical_epsilon`; for a :class:`Secret` policy under a known or estimated distribution, it is the
        epsilon between any two secrets.

    Examples
    --------
    >>> from sfumato import Domain
    >>> strictest(HighLow(Domain(["no", "yes"]), ["yes"], 1))
    "1 ('yes' against 'no')"
    """
    if binds_nothing(policy):
        return "inf (the policy has no rules)"
    pairwise = policy.as_pairwise if isinstance(policy, Secret) else policy
    if isinstance(pairwise, PairwisePolicy):
        epsilon, (x, other) = pairwise.least
        return f"{epsilon} ({policy.domain.label(x)!r} against {policy.domain.label(other)!r})"
    if isinstance(policy, Prior):
        reason = "twice the epsilon of the policy" if policy.side == "both" else "implied by one side under this prior"
        return f"{policy.classical_epsilon} (any two values; {reason})"
    epsilon = Epsilon(policy.parameters()["epsilon"])
    return f"{epsilon} (any two secrets)"


# -- warnings about weak policies --------------------------------------------------------------------------


def disclosure_warnings(policy: Policy) -> list[str]:
    """Return a warning if a single report may reveal a value under a policy.

    A value counts as revealed if some report can reduce the probability that a guess of this value is wrong to at most
    1/20 of what it was before. Before the report, all values are equally likely; under a :class:`Prior` policy, they
    are distributed like its prior. The non-sensitive values of a :class:`HighLow` policy are not checked, because the
    policy allows that they are revealed.

    Parameters
    ----------
    policy
        Any policy.

    Returns
    -------
    list of str
        An empty list, or a list with one warning: a sentence without a full stop. A :class:`Product` has one per
        attribute that may be revealed.

    Notes
    -----
    For a policy on pairs of values, let E(x,z) be the effective epsilon from x to z (see
    :meth:`PairwisePolicy.effective_epsilon`). The policy allows an output whose likelihood for each value z is
    proportional to e^-E(x,z). No allowed output makes x more certain. After it, the guess x is wrong with probability 1
    - 1/Σ_z e^-E(x,z).

    Examples
    --------
    >>> from sfumato import Domain
    >>> disclosure_warnings(Uniform(Domain(["no", "yes"]), 1))
    []
    >>> disclosure_warnings(Uniform(Domain(["no", "yes"]), 20))
    ['a report almost always reveals the value: a guess based on it may be wrong with a probability of only 2.1e-09']
    """
    if len(policy.domain) == 1:
        return []
    if binds_nothing(policy):
        return ["this policy protects nothing: a report may be the value itself"]
    if isinstance(policy, Product):
        by_attribute = {name: disclosure_warnings(part) for name, part in policy.policies.items()}
        return [f"{name}: {warning}" for name, warnings in by_attribute.items() for warning in warnings]
    doubts = _doubts(policy)
    exposed = [value for value, (before, after) in doubts.items() if after <= _DOUBT_LEFT * before]
    if not exposed:
        return []
    error = min(doubts[value][1] for value in exposed)
    chance = f"of only {error:.2g}" if error > _LEAST_CHANCE else f"below {_LEAST_CHANCE:g}"
    odds = (
        f"a guess based on it may be wrong with a probability {chance}"
        if error
        else "a guess based on it may be certain"
    )
    if isinstance(policy, Secret):
        return [f"a report almost always reveals {policy.secret}: {odds}"]
    if len(exposed) == len(policy.domain):
        return [f"a report almost always reveals the value: {odds}"]
    return [f"a report may reveal {len(exposed):,} of {len(policy.domain):,} values ({_named(exposed)}): {odds}"]


def _doubts(policy: Policy) -> dict[object, tuple[float, float]]:
    """Return for each protected value the probability of a wrong guess before a report, and its minimum after one."""
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
    """Return the least probability, after a report, of all values but one with prior p."""
    by_lower = (1 - p) * float(_unlikelier(float(policy.epsilon))) if policy.side != "upper" else 0.0
    by_upper = 1 - p * policy.epsilon.exp() if policy.side != "lower" else 0.0
    return max(by_lower, by_upper)


def _others(policy: PairwisePolicy) -> Floats:
    """Return for each value x the sum of e^-E(x,z) over all other values z, with the effective epsilons E.

    If there are too many values to compute E, the result is an upper bound: no E(x,z) is below the least epsilon
    declared for x.
    """
    size = len(policy.domain)
    if isinstance(policy, (Uniform, HighLow)):  # the caller uses only sensitive values
        return np.full(size, (size - 1) * _unlikelier(float(policy.epsilon)))
    if isinstance(policy, Blocks):
        block_of = policy.block_of
        members = np.bincount(block_of)
        across = float(policy.across)
        around = 2 * across if len(members) > 1 else math.inf  # a path out of the block and back
        within = np.minimum([float(epsilon) for epsilon in policy.epsilons], around)
        in_blocks = (members - 1) * _unlikelier(within) + (size - members) * _unlikelier(across)
        return np.asarray(in_blocks[block_of])
    if isinstance(policy, PerValue):
        level = np.array([float(epsilon) for epsilon in policy.epsilons])
        if policy.rule == "min":
            level = np.minimum(level, 2 * level.min())  # a path through the value of least epsilon
        distinct, places, counts = np.unique(level, return_inverse=True, return_counts=True)
        unlikelier = _unlikelier(_COMBINATIONS[policy.rule][1](distinct[:, None], distinct))
        return np.asarray((unlikelier @ counts - np.diag(unlikelier))[places])
    if size <= _LARGEST_CLOSED:
        with contextlib.suppress(LimitExceeded):  # epsilons without a common unit
            unlikelier = _unlikelier(policy.effective_epsilon_matrix().floats)
            np.fill_diagonal(unlikelier, 0.0)
            return np.asarray(unlikelier.sum(axis=1))
    unlikelier = _unlikelier(policy.epsilon_matrix().floats)
    np.fill_diagonal(unlikelier, 0.0)
    return np.asarray((size - 1) * unlikelier.max(axis=1))


def _unlikelier(epsilon: npt.ArrayLike) -> Floats:
    """Return e^-epsilon, which is 0 only if the epsilon is infinite."""
    epsilons = np.asarray(epsilon, dtype=np.float64)
    return np.where(np.isinf(epsilons), 0.0, np.exp(-np.minimum(epsilons, _GREATEST_EPSILON)))


@dataclass(frozen=True)
class PosteriorBound:
    """Upper bound on the probability that an observer assigns to a value after seeing a report.

    :func:`posterior_bounds` returns one object per group of values with the same bound.

    Parameters
    ----------
    values
        The values of the group.
    before
        Probability of each of these values before the report.
    after
        Greatest probability of each of these values after a report.

    Examples
    --------
    >>> from sfumato import Domain
    >>> [bound] = posterior_bounds(Uniform(Domain(["no", "yes"]), "ln 3"), 0.5)
    >>> bound.values, round(bound.after, 6)
    (['no', 'yes'], 0.75)
    """

    values: list[object]
    before: float
    after: float


def posterior_bounds(policy: Policy, before: float) -> list[PosteriorBound]:
    """Return how probable each value can become for an observer who sees one report.

    Parameters
    ----------
    policy
        Any policy.
    before
        Probability, from 0 to 1, that the observer assigns to a value before the report. It applies to each value in
        turn, so the probabilities of all values need not sum to one. :class:`Prior` policies use their prior instead.

    Returns
    -------
    list of PosteriorBound
        Values grouped by their bound, in ascending order of the bound. Under a :class:`Secret` policy with a known or
        estimated distribution, the bound is 1, because it protects the secret and not the value.

    Notes
    -----
    For a policy on pairs of values, the odds of x against all other values grow by at most a factor e^E. E is the
    greatest effective epsilon from x to another value (see :meth:`PairwisePolicy.effective_epsilon`).

    Examples
    --------
    >>> from sfumato import Domain
    >>> bounds = posterior_bounds(HighLow(Domain(["healthy", "flu", "HIV"]), ["HIV"], "ln 3"), 0.5)
    >>> [(bound.values, round(bound.after, 6)) for bound in bounds]
    [(['HIV'], 0.75), (['healthy', 'flu'], 1.0)]
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
    """Return the greatest probability of each value after a report."""
    pairwise = policy.as_pairwise if isinstance(policy, Secret) else policy
    if not isinstance(pairwise, PairwisePolicy):
        return [1.0] * len(policy.domain)  # the policy protects the secret, not the value
    if len(pairwise.domain) == 1:
        return [before]
    return [_moved(before, epsilon) for epsilon in _greatest_from(pairwise).tolist()]


def _greatest_from(policy: PairwisePolicy) -> Floats:
    """Return for each value the greatest effective epsilon to another value."""
    if isinstance(policy, Product):
        sums = functools.reduce(np.add.outer, [_greatest_from(part) for part in policy.policies.values()])
        return np.asarray(sums.reshape(-1))
    classes = policy.classes()
    indices = representatives(classes)
    epsilons = policy.effective_epsilons_on(indices).floats
    greatest = np.zeros(int(classes.max()) + 1)
    greatest[classes[indices]] = epsilons.max(axis=1)
    return np.asarray(greatest[classes])


def _moved(before: float, epsilon: float) -> float:
    """Return a probability after its odds have grown by a factor e^epsilon."""
    return 1.0 if math.isinf(epsilon) else before / (before + (1 - before) * math.exp(-epsilon))


def _times(epsilon: Epsilon) -> str:
    """Return e^epsilon and the epsilon, such as "3 times (epsilon ln 3)"."""
    factor = epsilon.exp()
    return f"{factor:.4g} times (epsilon {epsilon})" if math.isfinite(factor) else f"e^{epsilon} times"


def _factor(epsilon: Epsilon) -> str:
    """Return e^epsilon and the epsilon, such as "3 (epsilon ln 3)"."""
    factor = epsilon.exp()
    return f"{factor:.4g} (epsilon {epsilon})" if math.isfinite(factor) else f"e^{epsilon}"


def _named(values: Sequence[object]) -> str:
    """Return the first values, and the number of other values."""
    more = len(values) - _MOST_NAMED
    return ", ".join(repr(value) for value in values[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
