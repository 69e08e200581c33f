"""A prior for the next collection, from the reports of past ones."""

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
    percent,
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
    """A prior that was estimated from private reports, so it may be shown: ``prior_source`` is "released".

    ``shrinkage``: how far it was drawn from the estimate to the distribution it leans on, 0 to 1. ``low`` and ``high``
    are the limits within which the estimate does not rule a prior out; ``likely`` is the set of these priors, for
    ``audit_priors``.
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
        """The priors that the estimate does not rule out."""
        return PriorBox(self.domain, self.low, self.high)

    def policy(self, epsilon: EpsilonLike, side: str = "both") -> Prior:
        """Return the policy under this prior."""
        return Prior(self.domain, self.prior, epsilon, side)

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        exact = {"prior": self.prior, "low": self.low, "high": self.high}
        return value_table(self.domain, {name: np.array([float(p) for p in ps]) for name, ps in exact.items()})

    def _title(self) -> str:
        return f"prior over {len(self.domain):,} values, {percent(self.shrinkage)} of it from the one it leans on"

    def __repr__(self) -> str:
        return f"LearntPrior(values={len(self.domain)}, shrinkage={self.shrinkage:.4g})"

    def to_dict(self) -> dict[str, Any]:
        """Return the prior as a document of plain JSON types, from which ``from_dict`` makes an equal one."""
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
        """Return the prior that ``to_dict`` described.

        Raises
        ------
        InvalidInput
            If the document is malformed, the prior is not a distribution, or it does not lie between its limits.
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
    """Learn a prior from an estimate of past reports, drawn towards another distribution by its part of noise.

    Parameters
    ----------
    estimate
        The estimate of past reports.
    towards
        The distribution that the prior leans on; uniform unless given.
    confidence
        The confidence level of the simultaneous intervals ``low`` and ``high``.

    Returns
    -------
    LearntPrior
        A mixture of the distribution nearest to the estimate and the one it leans on: it lies in [0, 1], sums to one,
        and gives no value of the latter a prior of zero.

    Raises
    ------
    InvalidInput
        If this is not an estimate, or ``towards`` not a distribution over its domain.

    Notes
    -----
    The part of ``towards`` is V/(V + D): V the sum of the variances, D the squared distance between the two.
    """
    if not isinstance(estimate, Estimate):
        raise InvalidInput("learn_prior", "estimate", "be an Estimate, made from private reports", estimate)
    domain = estimate.domain
    centre_given = [Fraction(1, len(domain))] * len(domain) if towards is None else towards
    centre = np.array([float(p) for p in read_distribution("learn_prior", "towards", centre_given, domain)])
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
