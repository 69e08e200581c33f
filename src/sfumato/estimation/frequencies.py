"""The verb ``estimate``: frequencies with errors from the counts of reports."""

from __future__ import annotations

from sfumato._core import Floats, one_thread
from sfumato.collecting import Aggregate
from sfumato.domain import Frequencies, checked_distribution
from sfumato.errors import Description, InvalidInput
from sfumato.estimation.empirical_bayes import Choice, Shrinkage, choose, fit_posterior
from sfumato.estimation.estimators import estimator_of
from sfumato.estimation.mechanism_estimates import (
    METHODS,
    PARTIAL_METHODS,
    SHRINKING_METHODS,
    MechanismEstimate,
    PartialEstimate,
)
from sfumato.mechanisms import Fit, Mechanism, NotIdentifiable

__all__ = ["METHODS", "estimate", "shrunk"]


def estimate(
    mechanism: Mechanism,
    aggregate: Aggregate,
    method: str = "unbiased",
    *,
    prior: Frequencies | None = None,
    smooth: bool = False,
) -> MechanismEstimate | PartialEstimate:
    """Estimate how frequent each value is among the people who reported.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports.
    aggregate
        The exact counts of the reports, from :func:`aggregate`.
    method
        Method of estimation: ``"unbiased"``, ``"efficient"``, ``"simplex"``, ``"mle"``, ``"mmse"``, ``"bayes"`` or
        ``"best"`` (see Notes). All methods provide standard errors and intervals.
    prior
        The distribution of values that method ``"mmse"`` assumes: a sequence in domain order, or a mapping or pandas
        Series with the values as labels. Other methods do not accept it.
    smooth
        Whether the methods ``"bayes"`` and ``"best"`` let neighbouring values share a prior. This requires a grid or
        ascending numbers.

    Returns
    -------
    MechanismEstimate or PartialEstimate
        The frequency of every value as a fraction of people, with standard errors, intervals and covariance. If the
        reports do not distinguish all values, the result is a :class:`PartialEstimate`. It has no frequencies, but
        estimates the sums of frequencies that the reports determine, such as a mean.

    Raises
    ------
    InvalidInput
        If the counts do not belong to the mechanism, contain no report, or the mechanism does not support the method.
    NotIdentifiable
        If the reports do not distinguish all values, and the method is neither ``"unbiased"`` nor ``"efficient"``.
    LimitExceeded
        If the method needs the matrix Q(y|x) of the mechanism, and it has too many entries.

    Notes
    -----
    - ``"unbiased"``: the estimator of the mechanism. It is correct on average and may leave [0, 1].
    - ``"efficient"``: also unbiased, by weighted least squares. The weights are the inverse probabilities of the
      reports if values are uniformly distributed, or follow the distribution that a table mechanism was designed for.
      The method requires reports that are indices (not bitmaps) and a mechanism whose matrix Q(y|x) can be written out.
      It differs from ``"unbiased"`` only if there are more possible reports than values.
    - ``"simplex"``: the distribution nearest to the unbiased estimate in l2 distance. If reports reveal the block of a
      value, each block is projected separately. Values that reports reveal exactly keep their frequencies.
    - ``"mle"``: maximum likelihood. Reports that are indices are fitted by expectation maximisation (EM), and bitmaps
      by the composite likelihood of the counts of their bits. With many values and few reports, ``"simplex"`` is
      usually closer to the truth.
    - ``"mmse"``: the mean, over all reports, of the posterior distribution of the value under ``prior``. It requires
      reports that are indices.
    - ``"bayes"``: posterior means under a prior that is fitted to all frequencies, moved to the nearest distribution
      with the known totals. It is usually much closer to the truth than ``"simplex"`` if there are many values. The
      prior is a nonparametric maximum-likelihood estimate (Kiefer and Wolfowitz 1956).
    - ``"best"``: ``"bayes"`` if simulations with a fixed seed show that its errors are smaller, else ``"simplex"``.
      ``Estimate.choice`` states the errors.

    Examples
    --------
    >>> from sfumato import Domain, aggregate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv"]), "ln 8")
    >>> counts = aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10)
    >>> print(estimate(mechanism, counts))
    100 reports, method unbiased, 95% intervals
    value  frequency  standard_error      low     high
    none     0.71429         0.06999  0.56744  0.85244
    flu      0.28571         0.06547  0.16058  0.42831
    hiv      0.00000         0.04286  0.00000  0.10889
    1 of 3 values cannot be distinguished from zero.
    >>> estimate(mechanism, counts, "mle").frequencies.round(3).tolist()
    [0.714, 0.285, 0.001]
    """
    if method not in METHODS:
        raise InvalidInput("estimate", "method", f"be one of {', '.join(METHODS)}", method)
    _check(mechanism, aggregate)
    if aggregate.n == 0:
        hint = "Aggregate at least one report first."
        got = Description("0 reports")
        raise InvalidInput("estimate", "the aggregate", "have at least one report", got, hint=hint)
    if method == "mmse" and prior is None:
        hint = "Pass the distribution of values that you assume, or use method 'unbiased'."
        raise InvalidInput("estimate", "prior", "be passed with method 'mmse'", None, hint=hint)
    if method != "mmse" and prior is not None:
        hint = "Only method 'mmse' uses a prior."
        raise InvalidInput("estimate", "prior", f"be left out with method {method!r}", prior, hint=hint)
    if smooth and method not in SHRINKING_METHODS:
        hint = "Only the methods 'bayes' and 'best' use neighbours."
        raise InvalidInput("estimate", "smooth", f"be left out with method {method!r}", smooth, hint=hint)
    estimator = estimator_of(mechanism, method)
    if not estimator.is_complete:
        if method not in PARTIAL_METHODS:
            must = f"distinguish all values in its reports for method {method!r}"
            raise NotIdentifiable(must, mechanism, hint="Use method 'unbiased', and ask for a sum such as mean().")
        return PartialEstimate(method, mechanism=mechanism, counts=aggregate)
    fractions = aggregate.counts / aggregate.n
    unbiased = estimator.frequencies_of_counts(aggregate.counts, aggregate.n)
    nearest = estimator.nearest(unbiased, fractions)
    fit: Fit | None = None
    choice: Choice | None = None
    frequencies = unbiased
    if method == "simplex":
        frequencies = nearest
    elif method == "mle":
        fit = estimator.fit(fractions, aggregate.n)
        frequencies = fit.frequencies
    elif method == "mmse":
        distribution = checked_distribution(prior, mechanism.domain, "estimate", "prior")
        frequencies = estimator.mean_posterior(fractions, distribution)
    elif method in SHRINKING_METHODS:
        frequencies, choice = shrunk(mechanism, unbiased, nearest, aggregate.n, method, smooth=smooth)
    return MechanismEstimate(
        method,
        frequencies,
        unbiased,
        nearest,
        fit=fit,
        mechanism=mechanism,
        counts=aggregate,
        choice=choice,
        smooth=bool(smooth),
    )


def shrunk(
    mechanism: Mechanism,
    unbiased: Floats,
    nearest: Floats,
    n: int,
    method: str,
    *,
    smooth: bool = False,
    early: bool = False,
) -> tuple[Floats, Choice | None]:
    """Return the frequencies of the method "bayes" or "best", and the choice of the latter.

    ``unbiased`` and ``nearest`` are the frequencies of the methods "unbiased" and "simplex" from n reports.
    With ``early``, the simulations by which "best" chooses end as soon as the choice is clear.
    """
    model = Shrinkage.of(mechanism.estimator, unbiased, nearest, n)
    with one_thread():
        posterior = fit_posterior(model, mechanism.domain, smooth=smooth)
        choice = choose(posterior, early=early) if method == "best" else None
    return nearest if choice is not None and choice.method == "simplex" else posterior.frequencies(), choice


def _check(mechanism: object, aggregate: object) -> None:
    """Raise InvalidInput unless the counts belong to the mechanism."""
    if not isinstance(mechanism, Mechanism):
        hint = "Build one with design(policy), or read one with mechanism_from_spec(spec)."
        raise InvalidInput("estimate", "the mechanism", "be a Mechanism", mechanism, hint=hint)
    if not isinstance(aggregate, Aggregate):
        hint = "Count the reports with aggregate(mechanism, reports)."
        raise InvalidInput("estimate", "the aggregate", "be an Aggregate", aggregate, hint=hint)
    aggregate.check(mechanism)
