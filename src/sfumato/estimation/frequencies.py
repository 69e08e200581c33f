"""The verb ``estimate``: counts become frequencies with honest errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.collecting import Aggregate
from sfumato.domain import Frequencies, checked_distribution
from sfumato.errors import InvalidInput
from sfumato.estimation.combination import combine
from sfumato.estimation.groups import GroupedEstimate, merged
from sfumato.estimation.result import Estimate, LinearEstimate
from sfumato.mechanisms import Estimator, Fit, Mechanism, efficient_estimator

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
        fit = estimator.fit(shares, aggregate.n)
        frequencies = fit.frequencies
    elif method == "mmse":
        distribution = checked_distribution(prior, mechanism.domain, "estimate", "prior")
        frequencies = estimator.mean_posterior(shares, distribution)
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
    return efficient_estimator(mechanism) if method == "efficient" else mechanism.estimator


def estimate_groups(
    mechanism: Mechanism, aggregates: Mapping[Any, Aggregate], method: str = "unbiased"
) -> GroupedEstimate:
    """An estimate for each public group of people, and for all of them together."""
    if not isinstance(aggregates, Mapping):
        raise InvalidInput("estimate_groups", "the aggregates", "be a mapping from groups to aggregates", aggregates)
    groups = {name: estimate(mechanism, aggregate, method) for name, aggregate in aggregates.items()}
    return GroupedEstimate(groups, estimate(mechanism, merged(aggregates), method))
