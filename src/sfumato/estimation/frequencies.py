"""The verb ``estimate``: counts become frequencies with honest errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.collecting import Aggregate
from sfumato.domain import Frequencies, checked_distribution
from sfumato.errors import InvalidInput
from sfumato.estimation.estimates import METHODS, MechanismEstimate
from sfumato.estimation.estimators import estimator_of
from sfumato.estimation.groups import GroupedEstimate, merged
from sfumato.mechanisms import Fit, Mechanism

__all__ = ["METHODS", "estimate", "estimate_groups"]


def estimate(
    mechanism: Mechanism,
    aggregate: Aggregate,
    method: str = "unbiased",
    *,
    prior: Frequencies | None = None,
) -> MechanismEstimate:
    """Estimate how frequent each value is among the people who reported.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports.
    aggregate
        The exact counts of the reports, from :func:`aggregate`.
    method
        One of the methods below; standard errors and intervals come with all of them.
    prior
        The distribution that method "mmse" assumes: in domain order, or with labels.

    Returns
    -------
    MechanismEstimate
        Frequencies with standard errors, intervals and covariance.

    Raises
    ------
    InvalidInput
        If the counts are not those of the mechanism, there are none, or the mechanism has no such method.

    Notes
    -----
    - ``unbiased``: right on average, may leave [0, 1]; the mechanism's own estimator.
    - ``efficient``: unbiased too, by least squares weighted with the law of the outputs at the uniform distribution (or
      at the one that a table was designed for), for mechanisms with indexed reports and a matrix that can be written
      out; it differs from the former if outputs outnumber values.
    - ``simplex``: the distribution nearest to the unbiased estimate, block by block if the reports reveal the block;
      revealed values keep their frequencies.
    - ``mle``: maximum likelihood (EM for indices; composite likelihood of the bit counts for bitmaps); at many values
      with few reports a projection is usually closer to the truth.
    - ``mmse``: the mean over reports of the posterior under a given prior, for mechanisms with indexed reports.
    """
    if method not in METHODS:
        raise InvalidInput("estimate", "method", f"be one of {', '.join(METHODS)}", method)
    _check(mechanism, aggregate)
    if aggregate.n == 0:
        raise InvalidInput("estimate", "the aggregate", "have at least one report", 0)
    if (method == "mmse") != (prior is not None):
        raise InvalidInput("estimate", "prior", "be given with method 'mmse', and only with it", method)
    estimator = estimator_of(mechanism, method)
    fractions = aggregate.counts / aggregate.n
    unbiased = estimator.frequencies(fractions)
    nearest = estimator.nearest(unbiased, fractions)
    fit: Fit | None = None
    frequencies = unbiased
    if method == "simplex":
        frequencies = nearest
    elif method == "mle":
        fit = estimator.fit(fractions, aggregate.n)
        frequencies = fit.frequencies
    elif method == "mmse":
        distribution = checked_distribution(prior, mechanism.domain, "estimate", "prior")
        frequencies = estimator.mean_posterior(fractions, distribution)
    return MechanismEstimate(method, frequencies, unbiased, nearest, fit=fit, mechanism=mechanism, counts=aggregate)


def _check(mechanism: object, aggregate: object) -> None:
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput("estimate", "the mechanism", "be one, such as design(policy, n) gives", mechanism)
    if not isinstance(aggregate, Aggregate):
        raise InvalidInput(
            "estimate", "the aggregate", "be that of the reports: aggregate(mechanism, reports)", aggregate
        )
    aggregate.check(mechanism)


def estimate_groups(
    mechanism: Mechanism, aggregates: Mapping[Any, Aggregate], method: str = "unbiased"
) -> GroupedEstimate:
    """Estimate the frequencies in each public group of people, and in all of them together.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports of all groups.
    aggregates
        The counts of each group by its name.
    method
        A method of :func:`estimate`.

    Returns
    -------
    GroupedEstimate
        The estimates of the groups and of all people, with differences and weighted sums of them.

    Raises
    ------
    InvalidInput
        If there is no group, or one of them cannot be estimated.
    """
    if not isinstance(aggregates, Mapping):
        raise InvalidInput("estimate_groups", "the aggregates", "be a mapping from groups to aggregates", aggregates)
    empty = [name for name, aggregate in aggregates.items() if getattr(aggregate, "n", 1) == 0]
    if empty:
        raise InvalidInput("estimate_groups", "every group", "have at least one report (leave out empty ones)", empty)
    groups = {name: estimate(mechanism, aggregate, method) for name, aggregate in aggregates.items()}
    return GroupedEstimate(groups, estimate(mechanism, merged(aggregates), method))
