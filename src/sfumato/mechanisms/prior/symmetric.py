"""The best mechanism under a prior that exchanges two values with one probability (Jiang, Li, Tandon, Prop. 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato._core import EpsilonLike
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.prior.binary import prior_edge
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.binary import BinaryMechanism, greatest_first_weight
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import Policy, Prior

__all__ = ["PriorSymmetric"]


class PriorSymmetric(BinaryMechanism):
    """Each value is reported as the other with the same probability, the least that ε-LIP allows.

    With t = e^ε and p the smaller prior it is q = (1-p)/(t + 1 - 2p): randomized response at p = 0, and the same as
    ``PriorBinary`` at p = ½. In between it tells less than that. The paper's q is right; its errors, eq. 22 and 23, are
    not (``sfumato.estimation.information_privacy.symmetric_mse``). At ε = 0 the report is a fair coin, at ε = ∞ the
    value itself.

    The weight over 2^62 of the true value is rounded down, so the policy is kept exactly.
    """

    name = "prior-symmetric"

    def __init__(self, domain: Domain, prior: Sequence[Any], epsilon: EpsilonLike, *, weights: Any = None) -> None:
        self.check_two_values("domain", domain)
        #: What the mechanism promises.
        self.policy = Prior(domain, prior, epsilon)
        if weights is None:
            likelier = int(self.policy.prior[1] > self.policy.prior[0])
            edge = prior_edge(self.policy, likelier)
            weight = greatest_first_weight(edge, edge) or TOTAL // 2
            weights = [[weight, TOTAL - weight], [TOTAL - weight, weight]]
        super().__init__(domain, weights)

    @classmethod
    def for_policy(cls, policy: Policy) -> PriorSymmetric:
        """The best symmetric mechanism for a prior policy over two values."""
        if not isinstance(policy, Prior) or policy.side != "both":
            raise InvalidInput("PriorSymmetric", "policy", "be a prior policy of both sides", policy)
        cls.check_two_values("policy", policy.domain, "be over exactly two values")
        return cls(policy.domain, policy.prior, policy.epsilon)

    def parameters(self) -> dict[str, Any]:
        return {
            "prior": [str(p) for p in self.policy.prior],
            "epsilon": str(self.policy.epsilon),
            **super().parameters(),
        }

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> PriorSymmetric:
        table = dict(parameters)
        stated = table.pop("prior"), table.pop("epsilon")
        return cls(domain, *stated, weights=TableMechanism.from_parameters(domain, table).weights)
