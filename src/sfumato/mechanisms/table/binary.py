"""Optimal mechanisms for two values: for a level per direction (Acharya et al. 2020, Thm 2), and for a prior (LIP).

Any convex policy on two values is a cone in the plane with two edges, so one construction covers them all. LIP is
localized information privacy (Jiang, Li, Tandon 2018, "Context-aware Data Aggregation with Localized Information
Privacy"). Theorem 2 there gives one formula for all priors, which keeps only one of the two inequalities of the
definition; see ``one_sided_as_printed``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato._core import ZERO, Epsilon, EpsilonLike, Terms, quantity, sign_of_sum
from sfumato.domain import Domain, checked_domain
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import PairwisePolicy, Policy, Prior

__all__ = ["BinaryOptimal", "PriorBinary", "PriorSymmetric", "binary_for_policy", "one_sided_as_printed"]

#: A number in [0, 1] as a ratio of two sums Σ c·e^ε; an empty list of terms is zero.
Edge: TypeAlias = tuple[Terms, Terms]


def BinaryOptimal(domain: Domain, epsilon_first: EpsilonLike, epsilon_second: EpsilonLike) -> TableMechanism:  # noqa: N802
    """Return the optimal mechanism for two values, with a separate privacy level for each direction.

    It is optimal because every mechanism with these two levels is this one followed by a random map of its reports. A
    report is one of the two values, as its index 0 or 1.

    Parameters
    ----------
    domain
        The two values.
    epsilon_first
        The level of the first value: every report is at most e^epsilon_first times likelier for the first value than
        for the second.
    epsilon_second
        The level of the second value: every report is at most e^epsilon_second times likelier for the second value
        than for the first.

    Returns
    -------
    TableMechanism
        The mechanism, whose probabilities are rounded so that both levels hold exactly.

    Notes
    -----
    With a = e^-epsilon_first and b = e^-epsilon_second, the probabilities of the reports, with a row per value, are::

        Q = 1/(1-ab) · [[1-b, b(1-a)], [a(1-b), 1-a]]

    This is eq. 9 of Acharya et al. (2020, "Context-Aware Local Differential Privacy") as printed at ICML; the preprint
    has it with the levels exchanged. Theorem 2 of the paper proves that it is optimal. Special cases:

    - equal levels: Warner's randomized response (1965);
    - one infinite level: Mangat's method (1994). The value with the finite level is always reported as itself, and the
      other one as it with probability e^-ε, so a person who reports the sensitive value can deny having it;
    - two infinite levels: the report is the value;
    - a level of zero: both rows are equal, and the report holds no information;
    - both levels zero: the report is a fair coin.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import BinaryOptimal
    >>> answers = Domain(["no", "yes"])
    >>> BinaryOptimal(answers, "ln 3", "ln 3").matrix().tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    >>> BinaryOptimal(answers, "inf", "ln 4").matrix().tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    _check_two_values("BinaryOptimal", domain)
    first = Epsilon(epsilon_first, subject="BinaryOptimal", parameter="epsilon_first")
    second = Epsilon(epsilon_second, subject="BinaryOptimal", parameter="epsilon_second")
    weights = _weights_rounded_to_privacy(*(([_term(-e)] if not e.is_infinite else [], _ONE) for e in (first, second)))
    return TableMechanism(domain, weights, provenance={"from": "binary-optimal", "epsilons": [str(first), str(second)]})


def PriorBinary(domain: Domain, prior: Sequence[Any], epsilon: EpsilonLike, side: str = "both") -> TableMechanism:  # noqa: N802
    """Return the optimal mechanism for two values under localized information privacy (LIP) at level ε.

    LIP assumes an observer who knows the distribution of the values (the prior). No report may change the observer's
    probability of a value by more than a factor e^ε, up or down. The mechanism is optimal because every mechanism that
    obeys the policy is this one followed by a random map of its reports. A report is one of the two values.

    Parameters
    ----------
    domain
        The two values.
    prior
        The distribution (P₀, P₁) of the values, known to an observer; in domain order or with labels.
    epsilon
        The level ε of localized information privacy.
    side
        The direction that is bounded: ``"lower"`` (a report divides a value's probability by at most e^ε), ``"upper"``
        (multiplies it by at most e^ε), or ``"both"``; see :class:`Prior`.

    Returns
    -------
    TableMechanism
        The mechanism, whose probabilities are rounded so that the policy holds exactly.

    Notes
    -----
    With t = e^ε, the first value is reported as the second with probability q₀, and the second as the first with
    probability q₁::

        P₁ < 1/(t+1)         q₀ = (1 - P₁t)/(P₀(t+1))    q₁ = 1/(t+1)
        in between           q₀ = P₁/t                   q₁ = P₀/t
        P₁ > t/(t+1)         q₀ = 1/(t+1)                q₁ = (1 - P₀t)/(P₁(t+1))

    This table is for ``side="both"``; the proof of optimality is in ``docs/proofs/prior-binary.md``. Theorem 2 of
    Jiang, Li and Tandon (2018, "Context-aware Data Aggregation with Localized Information Privacy") prints the middle
    row for every prior. Outside the middle range, that row violates the policy.

    A value of prior zero stays protected: both values are then reported as by randomized response at ε. At ε = 0 the
    report is a fair coin, at ε = ∞ it is the value.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import PriorBinary
    >>> answers = Domain(["no", "yes"])
    >>> PriorBinary(answers, ["1/2", "1/2"], "ln 2").matrix().tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    >>> PriorBinary(answers, ["9/10", "1/10"], "ln 3").matrix().round(4).tolist()
    [[0.8056, 0.1944], [0.25, 0.75]]
    """
    _check_two_values("PriorBinary", domain)
    policy = Prior(domain, prior, epsilon, side)
    weights = _weights_rounded_to_privacy(_prior_edge(policy, 0), _prior_edge(policy, 1))
    return TableMechanism(domain, weights, provenance=_prior_provenance("prior-binary", policy))


def one_sided_as_printed(domain: Domain, prior: Sequence[Any], epsilon: EpsilonLike) -> TableMechanism:
    """Return the published mechanism, which satisfies **only one side** of localized information privacy.

    It is Theorem 2 of Jiang, Li and Tandon (2018) as printed. Use it to reproduce the paper; for data, use
    :func:`PriorBinary`.

    Parameters
    ----------
    domain
        The two values.
    prior
        The distribution (P₀, P₁) of the values.
    epsilon
        The level ε: a report divides the probability of a value by at most e^ε, but may multiply it by more.

    Returns
    -------
    TableMechanism
        The mechanism that reports the first value as the second with probability P₁/e^ε, and the second as the first
        with probability P₀/e^ε.

    Notes
    -----
    The mechanism is optimal for ``Prior(..., side="lower")``. It violates the other side if P₁ < 1/(e^ε+1) or
    P₁ > e^ε/(e^ε+1). For example, at P₁ = 0.01 and ε = 1 a report makes the rare value e^4.15 times as probable.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import one_sided_as_printed
    >>> one_sided_as_printed(Domain(["no", "yes"]), ["3/4", "1/4"], "ln 2").matrix().round(3).tolist()
    [[0.875, 0.125], [0.375, 0.625]]
    """
    return PriorBinary(domain, prior, epsilon, "lower")


def PriorSymmetric(domain: Domain, prior: Sequence[Any], epsilon: EpsilonLike) -> TableMechanism:  # noqa: N802
    """Return the symmetric mechanism for two values: it reports the other value with probability q, whichever is true.

    q is the least probability that localized information privacy (LIP) at level ε allows: no report may change the
    probability that an observer assigns to a value by more than a factor e^ε, up or down. A report is one of the two
    values.

    Parameters
    ----------
    domain
        The two values.
    prior
        The distribution of the values, known to an observer; in domain order or with labels.
    epsilon
        The level ε of localized information privacy.

    Returns
    -------
    TableMechanism
        The mechanism. The probability of the true value is rounded down to a multiple of 2^-62, so that the policy
        holds exactly.

    Notes
    -----
    With t = e^ε and p the smaller of the two prior probabilities, q = (1-p)/(t + 1 - 2p) (Jiang, Li and Tandon 2018,
    "Context-aware Data Aggregation with Localized Information Privacy", Prop. 4). At p = 0 this is randomized response,
    and at p = 1/2 it equals :func:`PriorBinary`. In between, its reports hold less information than those of
    :func:`PriorBinary`. The paper's q is correct, but its formulas for the estimation error (eq. 22 and 23) are not:
    see ``sfumato.estimation.information_privacy.symmetric_mse``.

    At ε = 0 the report is a fair coin, at ε = ∞ it is the value.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import PriorSymmetric
    >>> PriorSymmetric(Domain(["no", "yes"]), ["3/4", "1/4"], "ln 2").matrix().round(4).tolist()
    [[0.7, 0.3], [0.3, 0.7]]
    """
    _check_two_values("PriorSymmetric", domain)
    policy = Prior(domain, prior, epsilon)
    edge = _prior_edge(policy, int(policy.prior[1] > policy.prior[0]))
    weight = _greatest_first_weight(edge, edge) or TOTAL // 2
    weights = [[weight, TOTAL - weight], [TOTAL - weight, weight]]
    return TableMechanism(domain, weights, provenance=_prior_provenance("prior-symmetric", policy))


def binary_for_policy(policy: Policy) -> TableMechanism:
    """Return the optimal mechanism for a policy on the two values of its domain.

    Every mechanism that obeys the policy is this one followed by a random map of its reports.

    Parameters
    ----------
    policy
        A policy over two values: a :class:`Prior`, or one that bounds ratios of pairs of values, such as
        :class:`Uniform`, :class:`HighLow`, :class:`Blocks`, :class:`Pairwise` or :class:`Metric`.

    Returns
    -------
    TableMechanism
        The mechanism of :func:`PriorBinary` or :func:`BinaryOptimal`, which obeys the policy exactly.

    Raises
    ------
    InvalidInput
        If the policy is of another kind, or its domain does not have exactly two values.

    Examples
    --------
    >>> import sfumato as sf
    >>> from sfumato.mechanisms import binary_for_policy
    >>> binary_for_policy(sf.HighLow(sf.Domain(["no", "yes"]), ["yes"], "ln 4")).matrix().tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    if not isinstance(policy, (PairwisePolicy, Prior)):
        must = "be a Uniform, HighLow, Blocks, Pairwise, Metric or Prior policy"
        raise InvalidInput("binary_for_policy", "policy", must, policy)
    _check_two_values("binary_for_policy", policy.domain)
    if isinstance(policy, Prior):
        return PriorBinary(policy.domain, policy.prior, policy.epsilon, policy.side)
    return BinaryOptimal(policy.domain, policy.effective_epsilon(0, 1), policy.effective_epsilon(1, 0))


def _check_two_values(subject: str, domain: Domain) -> None:
    """Raise InvalidInput unless the domain has two values."""
    if len(checked_domain(subject, domain)) != 2:
        raise InvalidInput(subject, "domain", "have exactly two values", Description(quantity(len(domain), "value")))


def _prior_provenance(name: str, policy: Prior) -> dict[str, Any]:
    """Return the provenance of a mechanism for a prior."""
    prior = [str(p) for p in policy.prior]
    return {"from": name, "prior": prior, "epsilon": str(policy.epsilon), "side": policy.side}


# -- edges of the cone, and weights on them ------------------------------------------------------------------


def _term(epsilon: Epsilon) -> tuple[Fraction, Epsilon]:
    """Return e^ε as a term of a sum."""
    return Fraction(1), epsilon


_ONE: Terms = [_term(ZERO)]


def _prior_edge(policy: Prior, x: int) -> Edge:
    """Return the least likelihood of the other value that the policy allows if value x has likelihood one.

    With s = e^-ε, P the prior of x and P' that of the other value, ``lower`` requires P·s/(1-P'·s), and ``upper``
    requires (s-P)/P' if that is positive. Both sides together require the greater of the two, which is the second if
    and only if P < s/(1+s).
    """
    probability, other = policy.prior[x], policy.prior[1 - x]
    least = [] if policy.epsilon.is_infinite else [_term(-policy.epsilon)]
    if policy.side != "lower" and _upper_binds(probability, policy.epsilon, policy.side == "both"):
        return [*least, (-probability, ZERO)], [(other, ZERO)]
    if policy.side == "upper" or probability == 0:
        return [], _ONE
    return [(probability * c, e) for c, e in least], [*_ONE, *((-other * c, e) for c, e in least)]


def _upper_binds(probability: Fraction, epsilon: Epsilon, with_lower: bool) -> bool:
    """Return whether T_x ≤ e^ε·(π·T) binds, certified: P < s/(1+s), or P < s for the upper side alone."""
    if epsilon.is_infinite:
        return False
    return sign_of_sum([(probability, ZERO), ((probability if with_lower else 0) - 1, -epsilon)]) < 0


def _weights_rounded_to_privacy(first: Edge, second: Edge) -> list[list[int]]:
    """Return the integer weights of the optimal mechanism with T₂ ≥ first·T₁ and T₁ ≥ second·T₂ in both columns.

    ``docs/proofs/binary-optimal.md`` has the proof.
    """
    first_weight = _greatest_first_weight(first, second)
    if first_weight is None:
        first_weight = second_weight = TOTAL // 2
    else:
        # The least integer that is at least ``first`` times the first weight. Because the first weight was rounded
        # down, no other constraint binds.
        second_weight = bisect_left(
            range(first_weight + 1), True, key=lambda weight: _is_at_least(weight, first_weight, first)
        )
    return [[first_weight, TOTAL - first_weight], [second_weight, TOTAL - second_weight]]


def _greatest_first_weight(first: Edge, second: Edge) -> int | None:
    """Return ⌊2^62·(1-b)/(1-ab)⌋ with a = first and b = second, certified, or None if ab = 1."""
    (a, below_a), (b, below_b) = first, second
    # (1-b)/(1-ab) = part/whole, with the denominators of a and b cleared.
    part = _times(below_a, [*below_b, *_negative(b)])
    whole = [*_times(below_a, below_b), *_negative(_times(a, b))]
    if sign_of_sum(whole) == 0:
        return None

    def is_above(weight: int) -> bool:
        return sign_of_sum([*((weight * c, e) for c, e in whole), *((-TOTAL * c, e) for c, e in part)]) > 0

    return bisect_left(range(1, TOTAL + 1), True, key=is_above)


def _is_at_least(weight: int, first_weight: int, edge: Edge) -> bool:
    """Return whether weight ≥ edge·first_weight, certified."""
    top, bottom = edge
    return sign_of_sum([*((weight * c, e) for c, e in bottom), *((-first_weight * c, e) for c, e in top)]) >= 0


def _times(one: Terms, other: Terms) -> Terms:
    """Return the product of two sums."""
    return [(c * d, e + f) for c, e in one for d, f in other]


def _negative(terms: Terms) -> Terms:
    """Return the negative of a sum."""
    return [(-c, e) for c, e in terms]
