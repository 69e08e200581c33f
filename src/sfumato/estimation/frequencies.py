"""The verb ``estimate``: counts become frequencies with honest errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.collecting import Aggregate
from sfumato.domain import Frequencies, checked_distribution
from sfumato.errors import InvalidInput
from sfumato.estimation.combination import combine
from sfumato.estimation.groups import GroupedEstimate, merged
from sfumato.estimation.result import Estimate, LinearEstimate
from sfumato.mechanisms import (
    Estimator,
    Fit,
    HistogramEstimator,
    InclusionEstimator,
    Mechanism,
    PartitionedEstimator,
    TableEstimator,
    UtilityOptimizedRapporEstimator,
    estimator_for,
    fit_bits,
    fit_histogram,
)

__all__ = [
    "METHODS",
    "Estimate",
    "GroupedEstimate",
    "LinearEstimate",
    "combine",
    "estimate",
    "estimate_groups",
    "estimator_of_method",
]

METHODS = ("unbiased", "efficient", "simplex", "mle", "mmse")


def estimate(
    mechanism: Mechanism,
    aggregate: Aggregate,
    method: str = "unbiased",
    *,
    prior: Frequencies | None = None,
) -> Estimate:
    """Estimate how frequent each value is among the people who reported.

    ``unbiased``: right on average, may leave [0, 1]; the mechanism's own estimator. ``efficient``: as right, by least
    squares weighted with the law of the outputs at the uniform distribution (or at the one that a table was designed
    for), for mechanisms with indexed reports and a matrix that can be written out; it differs from the former where
    outputs outnumber values. ``simplex``: the nearest
    distribution to the unbiased estimate, block by block where the reports tell the block, and beside the values that
    are told in clear. ``mle``: maximum likelihood (EM for indices; composite likelihood of the bit counts for bitmaps);
    at many values with few reports a projection is usually closer to the truth. ``mmse``: the mean over reports of the
    posterior under a given ``prior``, for mechanisms with indexed reports. Standard errors and intervals come with all
    of them.
    """
    if method not in METHODS:
        raise InvalidInput("estimate", "method", f"be one of {', '.join(METHODS)}", method)
    _check(mechanism, aggregate)
    if aggregate.n == 0:
        raise InvalidInput("estimate", "the aggregate", "have at least one report", 0)
    if (method == "mmse") != (prior is not None):
        raise InvalidInput("estimate", "prior", "be given with method 'mmse', and only with it", method)
    estimator = estimator_of_method(mechanism, method)
    shares = aggregate.counts / aggregate.n
    unbiased = estimator.frequencies(shares)
    nearest = estimator.nearest(unbiased, shares)
    fit: Fit | None = None
    frequencies = unbiased
    if method == "simplex":
        frequencies = nearest
    elif method == "mle":
        fit = _fit(estimator, shares, aggregate.n)
        frequencies = fit.frequencies
    elif method == "mmse":
        believed = checked_distribution(prior, mechanism.domain, "estimate", "prior")
        frequencies = _mean_posterior(mechanism, estimator, shares, believed)
    return Estimate(mechanism.domain, aggregate.n, method, frequencies, unbiased, nearest, estimator, fit)


def _check(mechanism: object, aggregate: object) -> None:
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput("estimate", "the mechanism", "be one, such as design(policy, n) gives", mechanism)
    if not isinstance(aggregate, Aggregate):
        raise InvalidInput(
            "estimate", "the aggregate", "be that of the reports: aggregate(mechanism, reports)", aggregate
        )
    aggregate.check(mechanism)


def estimator_of_method(mechanism: Mechanism, method: str) -> Estimator:
    """Return the estimator that ``estimate`` uses for a method."""
    if method != "efficient":
        return estimator_for(mechanism)
    if mechanism.encoding != "index":
        must = "not be 'efficient' for bitmaps, whose own estimate is"
        raise InvalidInput("estimate", "method", must, mechanism.name)
    return TableEstimator(mechanism)


def _fit(estimator: Estimator, shares: npt.NDArray[np.float64], n: int) -> Fit:
    if isinstance(estimator, HistogramEstimator):
        # To within a thousandth in the log-likelihood of all reports: far below what they can tell.
        return fit_histogram(
            shares, estimator.expected_counts, estimator.adjoint, estimator.size, tolerance=max(1e-9, 1e-3 / n)
        )
    if isinstance(estimator, PartitionedEstimator):
        return estimator.fit(shares)
    if isinstance(estimator, (InclusionEstimator, UtilityOptimizedRapporEstimator)):
        return fit_bits(shares, estimator.other, estimator.gap)
    raise InvalidInput("estimate", "method", "not be 'mle' for this mechanism", type(estimator).__name__)


def _mean_posterior(
    mechanism: Mechanism, estimator: Estimator, shares: npt.NDArray[np.float64], prior: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Σ_y share_y·π_x Q(y|x)/(π·Q_y): what each report makes of the prior, on average over the reports."""
    if not isinstance(estimator, HistogramEstimator):
        raise InvalidInput(
            "estimate", "method", "not be 'mmse' for bitmaps, whose counts do not hold it", mechanism.name
        )
    law = estimator.expected_counts(prior)
    return np.asarray(prior * estimator.adjoint(np.where(law > 0, shares / np.where(law > 0, law, 1), 0)))


def estimate_groups(
    mechanism: Mechanism, aggregates: Mapping[Any, Aggregate], method: str = "unbiased"
) -> GroupedEstimate:
    """An estimate for each public group of people, and for all of them together."""
    if not isinstance(aggregates, Mapping):
        raise InvalidInput("estimate_groups", "the aggregates", "be a mapping from groups to aggregates", aggregates)
    groups = {name: estimate(mechanism, aggregate, method) for name, aggregate in aggregates.items()}
    return GroupedEstimate(groups, estimate(mechanism, merged(aggregates), method))
