"""How much a mechanism tells of a value whose distribution is only known from a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.domain import Frequencies, checked_distribution
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism, information
from sfumato.policy import ChiSquare, Policy, Secret

__all__ = ["RobustInformation", "robust_information"]


@dataclass(frozen=True)
class RobustInformation:
    """I(X;Y) in nats: at the estimated distribution, at a given one, and the least over the confidence set.

    ``least`` is a lower bound: information is concave in the distribution, so over a simplex that contains the set it
    is least at a vertex. ``entropy`` is H(X) at the estimate, the most that could be told; ``share`` divides by it.
    """

    at_estimate: float
    at_given: float | None
    least: float
    entropy: float

    @property
    def share(self) -> float:
        """I(X;Y)/H(X) at the estimated distribution."""
        return self.at_estimate / self.entropy if self.entropy > 0 else 0.0


def robust_information(mechanism: Mechanism, policy: Policy, p: Frequencies | None = None) -> RobustInformation:
    """What a mechanism tells under a ``Secret`` policy with ``ChiSquare``; ``p`` is another distribution to ask for."""
    if not isinstance(policy, Secret) or not isinstance(policy.distributions, ChiSquare):
        raise InvalidInput("robust_information", "policy", "be a Secret under ChiSquare", policy)
    if mechanism.domain != policy.domain:
        raise InvalidInput("robust_information", "policy", "have the mechanism's domain", policy.domain)
    rows = mechanism.matrix()[policy.cells.ravel()]
    confidence = policy.distributions
    estimate = confidence.frequencies.ravel()
    distribution = (
        None if p is None else checked_distribution(p, mechanism.domain, "robust_information")[policy.cells.ravel()]
    )
    least = min(information(corner, rows) for corner in confidence.corners())
    return RobustInformation(
        information(estimate, rows),
        None if distribution is None else information(distribution, rows),
        max(least * (1 - 1e-9), 0.0),
        information(estimate, np.eye(len(estimate))),
    )
