"""A prior for the next collection, from the reports of past ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._core import EpsilonLike
from sfumato.auditing import PriorBox
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.estimation.result import Estimate
from sfumato.policy import Prior, read_distribution

__all__ = ["LearntPrior", "learn_prior"]


@dataclass(frozen=True)
class LearntPrior:
    """A prior that was estimated from private reports, so it may be shown: ``prior_source`` is "released".

    ``shrinkage``: how far it was drawn from the estimate to the distribution it leans on, 0 to 1. ``likely``: the
    priors that the estimate does not rule out, for ``audit_priors``.
    """

    domain: Domain
    prior: tuple[Fraction, ...]
    shrinkage: float
    likely: PriorBox
    prior_source: str = "released"

    def policy(self, epsilon: EpsilonLike, side: str = "both") -> Prior:
        """The policy under this prior."""
        return Prior(self.domain, self.prior, epsilon, side)


def learn_prior(
    estimate: Estimate, *, towards: Sequence[Any] | Mapping[Any, Any] | None = None, level: float = 0.95
) -> LearntPrior:
    """A prior from an estimate of past reports, drawn towards ``towards`` (uniform unless given) by its share of noise.

    It is a mixture of the distribution nearest to the estimate and the one leant on, so it lies in [0, 1], sums to one,
    and gives no value of the latter a prior of zero. The share of the latter is V/(V + D): V the sum of the
    variances, D the squared distance between the two. ``level``: of the simultaneous intervals of ``likely``.
    """
    if not isinstance(estimate, Estimate):
        raise InvalidInput("learn_prior", "estimate", "be an Estimate, made from private reports", estimate)
    domain = estimate.domain
    given = [Fraction(1, len(domain))] * len(domain) if towards is None else towards
    centre = np.array([float(p) for p in read_distribution("learn_prior", "towards", given, domain)])
    distance = float(np.sum((estimate.nearest - centre) ** 2))
    noise = float(np.sum(estimate.estimator.variances(estimate.nearest))) / estimate.n
    shrinkage = noise / (noise + distance) if noise else 0.0
    point = estimate.nearest + shrinkage * (centre - estimate.nearest)
    prior = read_distribution("learn_prior", "the estimate", point.tolist(), domain)
    low, high = estimate.interval(level, simultaneous=True)
    likely = PriorBox(
        domain,
        [min(Fraction(float(a)), p) for a, p in zip(low, prior, strict=True)],
        [max(Fraction(float(b)), p) for b, p in zip(high, prior, strict=True)],
    )
    return LearntPrior(domain, prior, shrinkage, likely)
