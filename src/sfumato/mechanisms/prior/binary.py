"""The best mechanism for one of two values under a prior (localized information privacy, LIP), for every prior.

Jiang, Li, Tandon: Context-aware Data Aggregation with Localized Information Privacy. Theorem 2 there gives one formula
for all priors; it keeps only one of the two inequalities that the definition asks for, see ``one_sided_as_printed``.
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
    """The most that can be told about one of two values if no report may move its probability by more than e^±ε.

    With t = e^ε and the prior (P₀, P₁), the first value is reported as the second with probability q₀, the second as
    the first with q₁::

        P₁ < 1/(t+1)         q₀ = (1 - P₁t)/(P₀(t+1))    q₁ = 1/(t+1)
        in between           q₀ = P₁/t                   q₁ = P₀/t
        P₁ > t/(t+1)         q₀ = 1/(t+1)                q₁ = (1 - P₀t)/(P₁(t+1))

    A value of prior zero stays protected: both values are then reported as by randomized response at ε. At ε = 0 the
    report is a fair coin, at ε = ∞ the value itself. ``side`` is that of the policy (``Prior``); the weights over 2^62
    are rounded so that the policy is kept exactly.
    """

    name = "prior-binary"

    def __init__(
        self, domain: Domain, prior: Sequence[Any], epsilon: EpsilonLike, side: str = "both", *, weights: Any = None
    ) -> None:
        self.check_two_values("domain", domain)
        #: What the mechanism promises.
        self.policy = Prior(domain, prior, epsilon, side)
        if weights is None:
            weights = weights_rounded_to_privacy(prior_edge(self.policy, 0), prior_edge(self.policy, 1))
        super().__init__(domain, weights)

    @classmethod
    def for_policy(cls, policy: Policy) -> PriorBinary:
        """The best mechanism for a prior policy over two values, whichever of its sides it asks for."""
        if not isinstance(policy, Prior):
            raise InvalidInput("PriorBinary", "policy", "be a prior policy", policy.kind)
        cls.check_two_values("policy", policy.domain, "be over exactly two values")
        return cls(policy.domain, policy.prior, policy.epsilon, policy.side)

    @classmethod
    def one_sided_as_printed(cls, domain: Domain, prior: Sequence[Any], epsilon: EpsilonLike) -> PriorBinary:
        """Theorem 2 as printed, q₀ = P₁/e^ε and q₁ = P₀/e^ε for every prior: **it keeps only one side of ε-LIP**.

        It is the optimum for ``Prior(..., side="lower")``. For P₁ < 1/(e^ε+1) or P₁ > e^ε/(e^ε+1) it breaks the other
        side: at P₁ = 0.01 and ε = 1 a report makes the rare value e^4.15 times as probable.
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
    """The least likelihood of the other value beside a likelihood of one for the value with index x.

    With s = e^-ε, P the prior of x and P' that of the other, ``lower`` asks for P·s/(1-P'·s), ``upper`` for (s-P)/P'
    where that is positive, and both sides for the greater of them: the second iff P < s/(1+s).
    """
    probability, other = policy.prior[x], policy.prior[1 - x]
    one = [(Fraction(1), ZERO)]
    least = [] if policy.epsilon.is_infinite else [(Fraction(1), -policy.epsilon)]
    if policy.side != "lower" and _upper_binds(probability, policy.epsilon, policy.side == "both"):
        return [*least, (-probability, ZERO)], [(other, ZERO)]
    if policy.side == "upper" or probability == 0:
        return [], one
    return [(probability * c, e) for c, e in least], [*one, *((-other * c, e) for c, e in least)]


def _upper_binds(probability: Fraction, epsilon: Epsilon, beside_lower: bool) -> bool:
    """Whether P < s/(1+s), or for the upper side alone P < s: whether T_x ≤ e^ε·(π·T) is what binds. Certified."""
    if epsilon.is_infinite:
        return False
    return sign_of_sum([(probability, ZERO), ((probability if beside_lower else 0) - 1, -epsilon)]) < 0
