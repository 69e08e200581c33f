"""The mutual information of value and report, if the distribution of values is known only from a sample."""

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
    """The mutual information I(X;Y) of a person's value X and report Y, over a confidence set of distributions of X.

    :func:`robust_information` returns objects of this class. All numbers are in nats.

    Parameters
    ----------
    at_estimate
        I(X;Y) at the distribution that was estimated from the sample of the policy.
    at_given
        I(X;Y) at the distribution ``p`` that the caller passed; None if none was passed.
    least
        Lower bound on I(X;Y) over all distributions of the confidence set. It is the least information at the vertices
        of a simplex that contains the set, because information is concave in the distribution.
    entropy
        Entropy H(X) at the estimated distribution, the maximum of I(X;Y) there.

    Examples
    --------
    >>> from sfumato import ChiSquare, Domain, Secret, design, robust_information
    >>> domain = Domain.product(smokes=["no", "yes"], ill=["no", "yes"])
    >>> policy = Secret(domain, "ill", 1, ChiSquare([[30, 20], [10, 40]], 0.05))
    >>> robust_information(design(policy, max_seconds=0), policy)
    <RobustInformation: 0.249948 nats of 1.27985 nats entropy, at least 0.159072 over the confidence set>
    """

    at_estimate: float
    at_given: float | None
    least: float
    entropy: float

    @property
    def fraction(self) -> float:
        """Share of the entropy of a value that one report reveals: ``at_estimate / entropy``, from 0 to 1."""
        return self.at_estimate / self.entropy if self.entropy > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            One entry per field, in nats.
        """
        return dict(vars(self))

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> RobustInformation:
        """Return the result that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        RobustInformation
            A result equal to the one that was written.

        Raises
        ------
        InvalidInput
            If the dict is malformed, or a number in it is negative.
        """
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
        return "mutual information of value and report"

    def __repr__(self) -> str:
        return (
            f"<RobustInformation: {self.at_estimate:.6g} nats of {self.entropy:.6g} nats entropy, "
            f"at least {self.least:.6g} over the confidence set>"
        )


def robust_information(mechanism: Mechanism, policy: Policy, p: Frequencies | None = None) -> RobustInformation:
    """Return the mutual information of value and report, if the distribution of values is known only from a sample.

    The policy holds the sample: a :class:`ChiSquare` confidence set of distributions around the frequencies of a table
    of counts.

    Parameters
    ----------
    mechanism
        The mechanism, over the domain of the policy.
    policy
        A :class:`Secret` policy whose distributions are a :class:`ChiSquare` confidence set.
    p
        Another distribution of values at which to compute the information: a sequence in domain order, or a mapping or
        pandas Series with the values as labels.

    Returns
    -------
    RobustInformation
        The information in nats at the estimated distribution, at ``p``, and a lower bound over the confidence set.

    Raises
    ------
    InvalidInput
        If the policy is not a ``Secret`` with ``ChiSquare``, or if its domain is not that of the mechanism.

    Examples
    --------
    >>> from sfumato import ChiSquare, Domain, Secret, design
    >>> domain = Domain.product(smokes=["no", "yes"], ill=["no", "yes"])
    >>> policy = Secret(domain, "ill", 1, ChiSquare([[30, 20], [10, 40]], 0.05))
    >>> result = robust_information(design(policy, max_seconds=0), policy)
    >>> round(result.at_estimate, 3), round(result.least, 3)
    (0.25, 0.159)
    """
    if not isinstance(policy, Secret) or not isinstance(policy.distributions, ChiSquare):
        hint = "Build one with Secret(domain, secret, epsilon, ChiSquare(counts, alpha))."
        must = "be a Secret policy with a ChiSquare confidence set"
        raise InvalidInput("robust_information", "policy", must, policy, hint=hint)
    if mechanism.domain != policy.domain:
        raise InvalidInput("robust_information", "policy", "have the domain of the mechanism", policy.domain)
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
