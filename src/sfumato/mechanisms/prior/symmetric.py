"""Optimal symmetric mechanism for two values under a prior (Jiang, Li, Tandon, Prop. 4)."""

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
    """Mechanism for two values that exchanges them with one probability, the least that ε-LIP allows.

    A report is one of the two values.

    Parameters
    ----------
    domain
        The two values.
    prior
        The distribution of the values, known to an observer.
    epsilon
        The level ε of localized information privacy.
    weights
        Integer weights over 2^62, as a spec states them; computed from the prior and ``epsilon`` by default.

    Notes
    -----
    With t = e^ε and p the smaller prior, a value is reported as the other with probability q = (1-p)/(t + 1 - 2p)
    (Jiang, Li, Tandon, Prop. 4). At p = 0 this is randomized response, and at p = 1/2 it equals :class:`PriorBinary`.
    In between its reports hold less information than those of :class:`PriorBinary`. The q of the paper is correct; its
    errors, eq. 22 and 23, are not: see ``sfumato.estimation.information_privacy.symmetric_mse``.

    At ε = 0 the report is a fair coin, at ε = ∞ it is the value. The weight of the true value over 2^62 is rounded
    down, so that the policy holds exactly.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import PriorSymmetric
    >>> PriorSymmetric(Domain(["no", "yes"]), ["3/4", "1/4"], "ln 2").matrix().round(4).tolist()
    [[0.7, 0.3], [0.3, 0.7]]
    """

    name = "prior-symmetric"

    def __init__(self, domain: Domain, prior: Sequence[Any], epsilon: EpsilonLike, *, weights: Any = None) -> None:
        self.check_two_values("domain", domain)
        #: The policy that the mechanism obeys.
        self.policy = Prior(domain, prior, epsilon)
        if weights is None:
            likelier = int(self.policy.prior[1] > self.policy.prior[0])
            edge = prior_edge(self.policy, likelier)
            weight = greatest_first_weight(edge, edge) or TOTAL // 2
            weights = [[weight, TOTAL - weight], [TOTAL - weight, weight]]
        super().__init__(domain, weights)

    @classmethod
    def for_policy(cls, policy: Policy) -> PriorSymmetric:
        """Build the optimal symmetric mechanism for a prior policy over two values.

        Parameters
        ----------
        policy
            A prior policy with ``side="both"``.

        Returns
        -------
        PriorSymmetric
            A mechanism that obeys the policy.

        Raises
        ------
        InvalidInput
            If the policy is not a prior policy of both sides over two values.
        """
        if not isinstance(policy, Prior) or policy.side != "both":
            hint = "For one side, use PriorBinary."
            raise InvalidInput("PriorSymmetric", "policy", 'be a prior policy with side="both"', policy, hint=hint)
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
