"""How much a mechanism tells of a value whose distribution is only known from a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._core import Result, check_keys, read_number, reads_document
from sfumato.domain import Frequencies, checked_distribution
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism, information
from sfumato.policy import ChiSquare, Policy, Secret

__all__ = ["RobustInformation", "robust_information"]

_KEYS = ("at_estimate", "at_given", "least", "entropy")


@dataclass(frozen=True, repr=False)
class RobustInformation(Result):
    """I(X;Y) in nats: at the estimated distribution, at a given one, and the least over the confidence set.

    ``least`` is a lower bound: information is concave in the distribution, so over a simplex that contains the set it
    is least at a vertex. ``entropy`` is H(X) at the estimate, the maximum that a report can reveal;
    ``fraction`` divides by it.
    """

    at_estimate: float
    at_given: float | None
    least: float
    entropy: float

    @property
    def fraction(self) -> float:
        """I(X;Y)/H(X) at the estimated distribution."""
        return self.at_estimate / self.entropy if self.entropy > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a document of plain JSON types; ``from_dict`` returns an equal result."""
        return dict(vars(self))

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> RobustInformation:
        """Return the result that a document holds: the inverse of ``to_dict``."""
        parts = check_keys("RobustInformation", "the document", document, required=_KEYS)
        subject = "RobustInformation"
        at_given = None if parts["at_given"] is None else read_number(subject, "at_given", parts["at_given"], least=0.0)
        numbers = (read_number(subject, key, parts[key], least=0.0) for key in ("at_estimate", "least", "entropy"))
        at_estimate, least, entropy = numbers
        return cls(at_estimate, at_given, least, entropy)

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        rows = {"estimate": self.at_estimate, "given": self.at_given, "least": self.least, "entropy": self.entropy}
        stated = {name: nats for name, nats in rows.items() if nats is not None}
        return {"at": list(stated), "nats": list(stated.values())}

    def _title(self) -> str:
        return "information between a value and its report"

    def __repr__(self) -> str:
        return f"<RobustInformation: {self.at_estimate:.6g} nats, at least {self.least:.6g}, of {self.entropy:.6g}>"


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
