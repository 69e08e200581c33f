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
    """Symmetric mechanism for two values: report the other value with probability q, whichever value is true.

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
    weights
        The probabilities of the reports times 2^62, as integers, that a stored spec holds: a row per value. Omit them
        to compute them from the other parameters.

    Notes
    -----
    With t = e^ε and p the smaller of the two prior probabilities, q = (1-p)/(t + 1 - 2p) (Jiang, Li and Tandon 2018,
    "Context-aware Data Aggregation with Localized Information Privacy", Prop. 4). At p = 0 this is randomized response,
    and at p = 1/2 it equals :class:`PriorBinary`. In between, its reports hold less information than those of
    :class:`PriorBinary`. The paper's q is correct, but its formulas for the estimation error (eq. 22 and 23) are not:
    see ``sfumato.estimation.information_privacy.symmetric_mse``.

    At ε = 0 the report is a fair coin, at ε = ∞ it is the value. The probability of the true value is rounded down to a
    multiple of 2^-62, so that the policy holds exactly.

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
        """Build the symmetric mechanism of least noise for a :class:`Prior` policy over two values.

        Symmetric means that both values are reported as the other one with the same probability. This probability is
        the least that the policy allows.

        Parameters
        ----------
        policy
            A :class:`Prior` policy with ``side="both"``, the default, over two values.

        Returns
        -------
        PriorSymmetric
            The mechanism, which obeys the policy exactly.

        Raises
        ------
        InvalidInput
            If the policy is not a :class:`Prior` with ``side="both"``, or its domain does not have exactly two values.
        """
        if not isinstance(policy, Prior) or policy.side != "both":
            hint = "For a Prior policy with another side, use PriorBinary."
            raise InvalidInput("PriorSymmetric", "policy", 'be a Prior policy with side="both"', policy, hint=hint)
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
