"""Optimal mechanism for two values under a prior (localized information privacy, LIP), for every prior.

Source: Jiang, Li, Tandon, "Context-aware Data Aggregation with Localized Information Privacy". Theorem 2 there gives
one formula for all priors, which keeps only one of the two inequalities of the definition; see
``one_sided_as_printed``.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sfumato._core import ZERO, Epsilon, EpsilonLike, sign_of_sum
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.table.binary import BinaryMechanism, Edge, weights_rounded_to_privacy
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import Policy, Prior

__all__ = ["PriorBinary", "prior_edge"]


class PriorBinary(BinaryMechanism):
    """Optimal mechanism for two values under localized information privacy (LIP) at level ε.

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
    weights
        The probabilities of the reports times 2^62, as integers, that a stored spec holds: a row per value. Omit them
        to compute them from the other parameters.

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
    report is a fair coin, at ε = ∞ it is the value. The probabilities are rounded so that the policy holds exactly.

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

    name = "prior-binary"

    def __init__(
        self, domain: Domain, prior: Sequence[Any], epsilon: EpsilonLike, side: str = "both", *, weights: Any = None
    ) -> None:
        self.check_two_values("domain", domain)
        #: The policy that the mechanism obeys.
        self.policy = Prior(domain, prior, epsilon, side)
        if weights is None:
            weights = weights_rounded_to_privacy(prior_edge(self.policy, 0), prior_edge(self.policy, 1))
        super().__init__(domain, weights)

    @classmethod
    def for_policy(cls, policy: Policy) -> PriorBinary:
        """Build the optimal mechanism for a :class:`Prior` policy over two values.

        Every mechanism that obeys the policy is this one followed by a random map of its reports.

        Parameters
        ----------
        policy
            A :class:`Prior` policy over two values, with any ``side``.

        Returns
        -------
        PriorBinary
            The mechanism, which obeys the policy exactly.

        Raises
        ------
        InvalidInput
            If the policy is not a :class:`Prior`, or its domain does not have exactly two values.
        """
        if not isinstance(policy, Prior):
            hint = "For a policy on pairs of values, use BinaryOptimal."
            raise InvalidInput("PriorBinary", "policy", "be a Prior policy", policy, hint=hint)
        cls.check_two_values("policy", policy.domain, "be over exactly two values")
        return cls(policy.domain, policy.prior, policy.epsilon, policy.side)

    @classmethod
    def one_sided_as_printed(cls, domain: Domain, prior: Sequence[Any], epsilon: EpsilonLike) -> PriorBinary:
        """Build the published mechanism, which satisfies **only one side** of localized information privacy.

        It is Theorem 2 of Jiang, Li and Tandon (2018) as printed. Use it to reproduce the paper; for data, use
        :meth:`for_policy`.

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
        PriorBinary
            The mechanism that reports the first value as the second with probability P₁/e^ε, and the second as the
            first with probability P₀/e^ε.

        Notes
        -----
        The mechanism is optimal for ``Prior(..., side="lower")``. It violates the other side if P₁ < 1/(e^ε+1) or
        P₁ > e^ε/(e^ε+1). For example, at P₁ = 0.01 and ε = 1 a report makes the rare value e^4.15 times as probable.
        """
        return cls(domain, prior, epsilon, "lower")

    def parameters(self) -> dict[str, Any]:
        return {
            "prior": [str(p) for p in self.policy.prior],
            "epsilon": str(self.policy.epsilon),
            "side": self.policy.side,
            **super().parameters(),
        }

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> PriorBinary:
        table = dict(parameters)
        stated = table.pop("prior"), table.pop("epsilon"), table.pop("side")
        return cls(domain, *stated, weights=TableMechanism.from_parameters(domain, table).weights)


def prior_edge(policy: Prior, x: int) -> Edge:
    """Return the least likelihood of the other value that the policy allows if value x has likelihood one.

    With s = e^-ε, P the prior of x and P' that of the other value, ``lower`` requires P·s/(1-P'·s), and ``upper``
    requires (s-P)/P' if that is positive. Both sides together require the greater of the two, which is the second if
    and only if P < s/(1+s).
    """
    probability, other = policy.prior[x], policy.prior[1 - x]
    one = [(Fraction(1), ZERO)]
    least = [] if policy.epsilon.is_infinite else [(Fraction(1), -policy.epsilon)]
    if policy.side != "lower" and _upper_binds(probability, policy.epsilon, policy.side == "both"):
        return [*least, (-probability, ZERO)], [(other, ZERO)]
    if policy.side == "upper" or probability == 0:
        return [], one
    return [(probability * c, e) for c, e in least], [*one, *((-other * c, e) for c, e in least)]


def _upper_binds(probability: Fraction, epsilon: Epsilon, with_lower: bool) -> bool:
    """Return whether T_x ≤ e^ε·(π·T) binds, certified: P < s/(1+s), or P < s for the upper side alone."""
    if epsilon.is_infinite:
        return False
    return sign_of_sum([(probability, ZERO), ((probability if with_lower else 0) - 1, -epsilon)]) < 0
