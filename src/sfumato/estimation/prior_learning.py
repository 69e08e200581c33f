"""A prior for the next collection, estimated from the reports of earlier ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sfumato._core import (
    EpsilonLike,
    FrozenData,
    Result,
    number_document,
    quantity,
    read_fractions,
    read_number,
    reads_document,
)
from sfumato.auditing import PriorBox
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.estimation.documents import VERSION, check_document, read_header
from sfumato.estimation.estimates import Estimate, value_table
from sfumato.policy import Prior, read_distribution

__all__ = ["LearntPrior", "learn_prior"]

_SUBJECT = "LearntPrior.from_dict"


@dataclass(frozen=True, eq=False, repr=False)
class LearntPrior(FrozenData, Result):
    """A prior distribution of values that was estimated from private reports and may therefore be published.

    :func:`learn_prior` returns objects of this class. :meth:`policy` builds a policy from it for the next collection.

    Parameters
    ----------
    domain
        The domain of the values.
    prior
        The prior probability of each value as an exact fraction, in domain order. The probabilities sum to one.
    shrinkage
        Weight, from 0 to 1, of the distribution towards which the estimate was shrunk; 0 means no shrinkage.
    low
        Lower confidence limit of the probability of each value, in domain order. With the confidence level of
        :func:`learn_prior`, all true probabilities lie between ``low`` and ``high``.
    high
        Upper confidence limit of the probability of each value, in domain order.
    prior_source
        Always ``"released"``: the prior was computed only from reports that were already released.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate, learn_prior
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv"]), "ln 8")
    >>> result = estimate(mechanism, aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10))
    >>> print(learn_prior(result))
    prior over 3 values, 4.09% shrunk towards another distribution
    value     prior      low     high
    none    0.69871  0.53647  0.87982
    flu     0.28766  0.13682  0.45926
    hiv    0.013629        0  0.13455
    """

    domain: Domain
    prior: tuple[Fraction, ...]
    shrinkage: float
    low: tuple[Fraction, ...]
    high: tuple[Fraction, ...]
    prior_source: str = "released"

    format: ClassVar[str] = "sfumato-learnt-prior"

    @property
    def likely(self) -> PriorBox:
        """The set of priors between ``low`` and ``high``, to pass to :func:`audit_priors`."""
        return PriorBox(self.domain, self.low, self.high)

    def policy(self, epsilon: EpsilonLike, side: str = "both") -> Prior:
        """Return the :class:`Prior` policy with this prior.

        Parameters
        ----------
        epsilon
            The ε of the policy: a report may change the probability of a value by a factor of at most e^ε.
        side
            Which changes of the probability the policy limits: ``"upper"`` (increases), ``"lower"`` (decreases) or
            ``"both"``.

        Returns
        -------
        Prior
            The policy over the same domain.
        """
        return Prior(self.domain, self.prior, epsilon, side)

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        exact = {"prior": self.prior, "low": self.low, "high": self.high}
        return value_table(self.domain, {name: np.array([float(p) for p in ps]) for name, ps in exact.items()})

    def _title(self) -> str:
        values = quantity(len(self.domain), "value")
        return f"prior over {values}, {100 * self.shrinkage:.3g}% shrunk towards another distribution"

    def __repr__(self) -> str:
        return f"LearntPrior(values={len(self.domain)}, shrinkage={self.shrinkage:.4g})"

    def to_dict(self) -> dict[str, Any]:
        """Return the prior as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            One entry per field, with exact fractions as strings such as ``"1/3"``.
        """
        exact = {"prior": self.prior, "low": self.low, "high": self.high}
        return {
            "format": self.format,
            "version": VERSION,
            "domain": self.domain.to_dict(),
            **{name: [str(p) for p in column] for name, column in exact.items()},
            "shrinkage": number_document(self.shrinkage),
            "prior_source": self.prior_source,
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> LearntPrior:
        """Return the prior that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        LearntPrior
            A prior equal to the one that was written.

        Raises
        ------
        InvalidInput
            If the dict is malformed, the prior is not a distribution, or it does not lie between its limits.
        """
        read_header(_SUBJECT, document, cls.format)
        document = check_document(_SUBJECT, document, ("domain", "prior", "low", "high", "shrinkage", "prior_source"))
        domain = Domain.from_dict(document["domain"])
        prior, low, high = (
            read_fractions(_SUBJECT, name, document[name], len(domain)) for name in ("prior", "low", "high")
        )
        if sum(prior) != 1:
            raise InvalidInput(_SUBJECT, "prior", "sum to one", float(sum(prior)))
        if not all(0 <= least <= p <= most <= 1 for least, p, most in zip(low, prior, high, strict=True)):
            raise InvalidInput(_SUBJECT, "prior", "lie between low and high, within [0, 1]", document["prior"])
        shrinkage = read_number(_SUBJECT, "shrinkage", document["shrinkage"], least=0.0, most=1.0)
        if document["prior_source"] != "released":
            raise InvalidInput(_SUBJECT, "prior_source", "be 'released'", document["prior_source"])
        return cls(domain, prior, shrinkage, low, high, document["prior_source"])


def learn_prior(
    estimate: Estimate, *, towards: Sequence[Any] | Mapping[Any, Any] | None = None, confidence: float = 0.95
) -> LearntPrior:
    """Derive a prior distribution for the next collection from the estimate of an earlier one.

    The prior is a mixture of the estimated distribution and another distribution. The noisier the estimate, the larger
    the weight of the other distribution.

    Parameters
    ----------
    estimate
        The estimate of earlier reports, from :func:`estimate` or :func:`combine`.
    towards
        The other distribution: a sequence in domain order, or a mapping with the values as labels. The default is the
        uniform distribution.
    confidence
        Confidence level of the limits ``low`` and ``high``, which hold for all values together; above 0 and below 1.

    Returns
    -------
    LearntPrior
        The prior, with its limits and the weight of ``towards``. The probabilities sum to one, and are positive
        wherever ``towards`` is positive.

    Raises
    ------
    InvalidInput
        If ``estimate`` is not an estimate, or ``towards`` is not a distribution over its domain.

    Notes
    -----
    The weight of ``towards`` is V/(V + D). Here V is the sum of the variances of the estimated frequencies, and D is
    the squared l2 distance between ``towards`` and the estimated distribution (``Estimate.nearest``).

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv"]), "ln 8")
    >>> result = estimate(mechanism, aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10))
    >>> learnt = learn_prior(result)
    >>> learnt, [round(float(p), 3) for p in learnt.prior]
    (LearntPrior(values=3, shrinkage=0.04089), [0.699, 0.288, 0.014])
    """
    if not isinstance(estimate, Estimate):
        raise InvalidInput(
            "learn_prior",
            "estimate",
            "be an Estimate",
            estimate,
            hint="Build one from private reports with estimate(mechanism, aggregate).",
        )
    domain = estimate.domain
    target = [Fraction(1, len(domain))] * len(domain) if towards is None else towards
    centre = np.array([float(p) for p in read_distribution("learn_prior", "towards", target, domain)])
    distance = float(np.sum((estimate.nearest - centre) ** 2))
    noise = float(np.sum(estimate.estimator.variances(estimate.nearest))) / estimate.n
    shrinkage = noise / (noise + distance) if noise else 0.0
    point = estimate.nearest + shrinkage * (centre - estimate.nearest)
    prior = read_distribution("learn_prior", "the estimate", point.tolist(), domain)
    low, high = estimate.interval(confidence, simultaneous=True)
    return LearntPrior(
        domain,
        prior,
        shrinkage,
        tuple(min(Fraction(float(a)), p) for a, p in zip(low, prior, strict=True)),
        tuple(max(Fraction(float(b)), p) for b, p in zip(high, prior, strict=True)),
    )
