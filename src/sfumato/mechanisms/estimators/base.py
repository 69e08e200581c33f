"""Base class of estimators: from counts to unbiased frequencies, with all moments of the estimate.

An estimator is linear in the counts, so its statements are exact for every n. The estimate is unbiased, and the
covariance from n reports is 1/n times ``covariance(p)``, the covariance from one report of a person drawn from p.

Only the estimator states the errors of a mechanism. Risks and plans use ``second_moments``, standard errors use
``variances``, intervals use ``score_laws``. Tests compare these with one another and with the exact law.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers, project_protected
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.estimators.forms import Cohort
from sfumato.mechanisms.estimators.likelihood import Fit, fit_histogram
from sfumato.mechanisms.estimators.limits import ScoreLaw, relative_spread
from sfumato.mechanisms.estimators.marginals import (
    MOST_SCORES,
    MarginalEstimator,
    ScoreMarginal,
    SummedMarginal,
    checked_axes,
)
from sfumato.mechanisms.estimators.scores import OutputScores, Scores

__all__ = ["Estimator", "HistogramEstimator", "SamplingDistribution", "ScoreEstimator", "with_some_mass"]


#: Fraction of the greatest score below which a score counts as zero; inverting a matrix leaves such rounding errors.
_NEGLIGIBLE = 1e-9
#: Maximum number of EM steps towards the law of the reports; standard errors of means then agree within 1%.
_STEPS = 50
#: Maximum number of scores in memory at once, unless those of a single value are more.
_BATCH = 2**18
#: Mass of the uniform distribution that is mixed into p before a division by p.
_LEAST_MASS = 1e-6


def with_some_mass(p: Floats) -> Floats:
    """Return p mixed with a little of the uniform distribution, so that no entry is zero."""
    return np.asarray((1 - _LEAST_MASS) * p + _LEAST_MASS / len(p))


class SamplingDistribution(ABC):
    """Law of unbiased frequencies over repeated samples of reports; all error bars are computed from it.

    A mechanism's estimator has one, and so has a combination of several estimates.
    """

    size: int

    @property
    def is_complete(self) -> bool:
        """Whether the reports determine the frequencies of all values."""
        return True

    def identifies(self, weights: Floats) -> bool:  # noqa: ARG002
        """Return whether the reports determine Σ weight·frequency, for one vector of weights or for each of several.

        Parameters
        ----------
        weights
            The weights of the values, shape (..., k), in domain order.

        Returns
        -------
        bool
            True if all of these sums have an unbiased estimate. Every sum has one if ``is_complete`` is True.
        """
        return True

    @abstractmethod
    def variances(self, p: Floats) -> Floats:
        """Return the variance of each frequency from one report at p."""

    @abstractmethod
    def covariance(self, p: Floats) -> Floats:
        """Return the covariance of the frequencies from one report at p."""

    @abstractmethod
    def variance(self, weights: Floats, p: Floats) -> float:
        """Return the variance of Σ weight·frequency from one report at p, without building the covariance matrix."""

    @abstractmethod
    def score_laws(self, p: Floats, n: int) -> Sequence[ScoreLaw]:
        """Return the law of each value's scores over n reports, with the totals and composition of the groups at p."""

    @abstractmethod
    def cohorts(self, weights: Floats, parts: Floats, n: int) -> Sequence[Cohort]:
        """Return the law of the estimate of Σ weight·frequency over n reports, in each of several parts of the people.

        A part is a distribution over the values.
        """

    @abstractmethod
    def score_bounds(self) -> tuple[Floats, Floats]:
        """Return the least and the greatest score of any report for each value, including dishonest reports.

        Raises LimitExceeded if dishonest reports can move an estimate by more than their scores.
        """

    @abstractmethod
    def honest_score_bounds(self) -> tuple[Floats, Floats]:
        """Return the least and the greatest score of an honest report for each value."""

    def revealed(self) -> npt.NDArray[np.bool_]:
        """Return which values are revealed: their scores are never negative, so their estimate is a count."""
        least, greatest = self.honest_score_bounds()
        return np.asarray((greatest > 0) & (least >= -_NEGLIGIBLE * greatest))

    def least_variances(self) -> Floats:
        """Return the least variance of each frequency from one report, for any counts."""
        return np.zeros(self.size)

    def known_groups(self) -> npt.NDArray[np.int64]:
        """Return the number of each value's group; every report reveals the group, so its total is a count."""
        return np.zeros(self.size, dtype=np.int64)


class Estimator(SamplingDistribution):
    """Base class of unbiased linear estimators of the frequencies of all values, one for each mechanism.

    :attr:`Mechanism.estimator` returns the estimator of a mechanism. Most analysts call :func:`estimate` instead, which
    also computes standard errors and intervals.

    Methods that take ``fractions`` expect ``aggregate.counts / aggregate.n`` of an :class:`Aggregate`. With
    :class:`IndexFormat`, entry y is the share of reports equal to y. With :class:`BitmapFormat`, entry i is the share
    of reports with bit i set.

    The *score* φ(y) of a report y is the vector of frequencies estimated from that report alone, shape (k,) for k
    values. The estimate from many reports is the mean of their scores.

    The reports of some mechanisms do not distinguish all values, such as the two reports of a mechanism for a mean.
    Their estimator has ``is_complete`` False. It estimates the sums of frequencies for which ``identifies`` returns
    True: ``variance``, ``scores`` and ``cohorts`` accept their weights. Methods about single frequencies raise
    :class:`NotIdentifiable`.

    Attributes
    ----------
    size : int
        The number k of values.
    is_complete : bool
        Whether the reports determine the frequencies of all values.
    condition : float
        Least singular value of the matrix that the estimator inverts, divided by the greatest. Values near 0 amplify
        rounding errors. The ratio is 1 if the estimator inverts no matrix.
    """

    #: Least singular value of the inverted matrix, divided by the greatest; 1 if the estimator inverts no matrix.
    condition: float = 1.0

    @abstractmethod
    def frequencies(self, fractions: Floats) -> Floats:
        """Estimate the frequency of every value from the counts of reports.

        Parameters
        ----------
        fractions
            The counts of an :class:`Aggregate` divided by its number of reports, in the order of ``Aggregate.counts``.

        Returns
        -------
        ndarray
            Unbiased estimates, shape (k,), in domain order. Some may be negative.
        """

    def frequencies_of_counts(self, counts: Integers, n: int) -> Floats:
        """Estimate the frequency of every value from integer counts.

        Subclasses may override this method to add up the counts without rounding errors.

        Parameters
        ----------
        counts
            The counts of an :class:`Aggregate`.
        n
            The number of reports, at least 1.

        Returns
        -------
        ndarray
            The result of :meth:`frequencies` for ``counts / n``, up to rounding errors.
        """
        return self.frequencies(counts / n)

    @abstractmethod
    def expected_counts(self, p: Floats) -> Floats:
        """Return the expected counts per report if the true values have distribution p.

        Parameters
        ----------
        p
            Probability of each value, shape (k,), in domain order.

        Returns
        -------
        ndarray
            The expectation of the ``fractions`` that :meth:`frequencies` takes, in the order of ``Aggregate.counts``.
            Because the estimate is unbiased, ``frequencies(expected_counts(p))`` equals p.
        """

    def count_bounds(self, most_cells: int) -> tuple[Floats, Floats, float, float] | None:
        """Return the least and the greatest expected counts per report over all distributions of the values.

        Subclasses that know these bounds override this method. The base class computes the expected counts of each
        value alone.

        Parameters
        ----------
        most_cells
            Maximum product of values and counts for which the expected counts are computed.

        Returns
        -------
        tuple or None
            The least and the greatest expectation of each count, or one number each if all counts have the same bounds.
            Then the least and the greatest expectation of the sum of all counts. None if the product is larger.
        """
        first = self.expected_counts(np.eye(1, self.size)[0])
        if self.size * len(first) > most_cells:
            return None
        laws = np.array([first, *map(self.expected_counts, np.eye(self.size)[1:])])
        totals = laws.sum(axis=1)
        return laws.min(axis=0), laws.max(axis=0), float(totals.min()), float(totals.max())

    @abstractmethod
    def second_moments(self) -> Floats:
        """Return the expected squared length of a report's score for each true value.

        The score φ(y) of a report y is the vector of frequencies estimated from y alone.

        Returns
        -------
        ndarray
            E[|φ(Y)|² | X = x] for the report Y of a person with value x, shape (k,), in domain order. Subclasses must
            compute it without a matrix of k by k entries.

        Notes
        -----
        If values have distribution p, the expected squared l2 error of the estimate from n reports is
        (second_moments·p - |p|²)/n. :meth:`Mechanism.risk` computes it.
        """

    def nearest(self, unbiased: Floats, fractions: Floats) -> Floats:  # noqa: ARG002
        """Project the unbiased estimate onto the probability distributions.

        Some mechanisms reveal some values, so the estimates of these values are rescaled counts and never negative.
        The projection keeps them, or scales them down if they sum to more than 1. It replaces the other estimates by
        the nearest non-negative numbers, in l2 distance, that make the total 1. If every report reveals a block, each
        block is projected separately, to the share of reports from the block.

        Parameters
        ----------
        unbiased
            The result of :meth:`frequencies`, shape (k,), in domain order.
        fractions
            The counts divided by the number of reports, from which ``unbiased`` was estimated.

        Returns
        -------
        ndarray
            Probabilities that sum to 1, shape (k,), in domain order.
        """
        return project_protected(unbiased, self.revealed())

    def distribution_for_sums(self, nearest: Floats, fractions: Floats, n: int) -> Floats:  # noqa: ARG002
        """Return the distribution at which the errors of sums of frequencies are computed.

        Parameters
        ----------
        nearest
            The result of :meth:`nearest`, shape (k,), in domain order.
        fractions
            The counts divided by the number of reports.
        n
            The number of reports.

        Returns
        -------
        ndarray
            Probabilities, shape (k,), in domain order; ``nearest`` unless a subclass has a better one.
        """
        return nearest

    # -- marginals ---------------------------------------------------------------------------------------------

    def marginal(self, shape: Sequence[int], axes: Sequence[int]) -> MarginalEstimator:
        """Return the estimate of a marginal: the frequencies of some coordinates of the values, with their errors.

        Parameters
        ----------
        shape
            Numbers of values of all coordinates, such as ``Domain.shape`` of a product; values are in row-major order.
        axes
            Positions of the coordinates of the marginal, in the order in which its cells are returned.

        Returns
        -------
        MarginalEstimator
            The estimate of all cells as a function of the counts, and its exact errors.

        Raises
        ------
        InvalidInput
            If the shape does not fit the number of values, or an axis is not one of its positions.
        NotIdentifiable
            If the reports do not determine the marginal.

        Examples
        --------
        >>> import numpy as np
        >>> import sfumato as sf
        >>> cells = sf.Domain.product(sex=sf.Domain(["f", "m"]), age=sf.Domain.range(3))
        >>> estimator = sf.mechanisms.RandomizedResponse(cells, 2).estimator
        >>> sexes = estimator.marginal(cells.shape, [0])
        >>> p = np.full(6, 1 / 6)
        >>> sexes.frequencies(estimator.expected_counts(p)).round(6)
        array([0.5, 0.5])
        >>> round(sexes.squared_error(p), 3)
        1.88
        """
        return SummedMarginal(self, shape, checked_axes(shape, axes, self.size))

    # -- methods that only some mechanisms support -------------------------------------------------------------

    def output_scores(self, weights: Floats) -> Floats:
        """Return the contribution of each output to the estimate of Σ weight·frequency.

        Parameters
        ----------
        weights
            The weight of each value, shape (k,), in domain order.

        Returns
        -------
        ndarray
            One score per output, in the order of ``Aggregate.counts``. The estimate is the mean score of the reports.

        Raises
        ------
        InvalidInput
            If the counts are not those of outputs, as counts of bits in bitmaps.
        NotIdentifiable
            If the reports do not determine the sum (see ``identifies``).
        """
        must = "have counts of outputs, because each output needs a score"
        raise InvalidInput("estimate", "the mechanism", must, Description(f"{len(weights)} values and other counts"))

    def reported_distribution(self, fractions: Floats, n: int) -> Floats:
        """Return a distribution of values whose law of reports is near the observed one, by a few steps of EM.

        The law of the reports converges long before the distribution itself.

        Parameters
        ----------
        fractions
            The share of reports equal to each output, in the order of ``Aggregate.counts``.
        n
            The number of reports.

        Returns
        -------
        ndarray
            Probabilities, shape (k,), in domain order.

        Raises
        ------
        InvalidInput
            If the class does not implement the likelihood of its counts.
        """
        return self.fit(fractions, n).frequencies

    def fit(self, fractions: Floats, n: int) -> Fit:  # noqa: ARG002
        """Estimate the distribution of the values by maximum likelihood.

        Parameters
        ----------
        fractions
            The counts divided by the number of reports, in the order of ``Aggregate.counts``.
        n
            The number of reports.

        Returns
        -------
        Fit
            The distribution, and whether the iterative search converged.

        Raises
        ------
        InvalidInput
            If the class does not implement the likelihood of its counts.
        """
        hint = "Use method 'simplex' for an estimate that is a distribution."
        must = "not be 'mle' for this mechanism, which has no likelihood of its counts"
        raise InvalidInput("estimate", "method", must, "mle", hint=hint)

    def mean_posterior(self, fractions: Floats, prior: Floats) -> Floats:  # noqa: ARG002
        """Return the posterior distribution of the value given one report, averaged over all reports.

        Parameters
        ----------
        fractions
            The share of reports equal to each output, in the order of ``Aggregate.counts``.
        prior
            Prior probability of each value, shape (k,), in domain order.

        Returns
        -------
        ndarray
            Probabilities, shape (k,), in domain order.

        Raises
        ------
        InvalidInput
            If the counts do not determine the posterior of each report, as counts of bits in bitmaps.
        """
        must = "not be 'mmse' for bitmaps, whose counts do not determine posteriors"
        hint = "Use method 'simplex' for an estimate that is a distribution."
        raise InvalidInput("estimate", "method", must, "mmse", hint=hint)

    # -- the scores of one report ------------------------------------------------------------------------------

    @abstractmethod
    def score_values(self) -> tuple[Floats, Floats]:
        """Return the possible scores of one report for each value, and their probabilities.

        The score of a report y for value x is φ(y)[x]: the frequency of x estimated from y alone.

        Returns
        -------
        tuple of ndarray
            Two arrays of equal shape, with a row per value in domain order. Row x of the first lists the possible
            scores for x. Row x of the second lists their probabilities in the report of a person whose value is x;
            some may be zero.
        """

    @abstractmethod
    def score_probabilities(self, p: Floats) -> Floats:
        """Return the probability of every score of :meth:`score_values` if values have distribution p.

        Parameters
        ----------
        p
            Probability of each value, shape (k,), in domain order.

        Returns
        -------
        ndarray
            Probabilities for one report of a person drawn from p, in the shape of the arrays of :meth:`score_values`.
        """

    def score_probabilities_outside(self) -> Floats:
        """Return the probability of every score of :meth:`score_values` for people in another revealed group.

        If every report reveals a group of values (a block), ``known_groups()`` returns the group of each value.

        Returns
        -------
        ndarray
            Probabilities in the shape of the arrays of :meth:`score_values`. Row x is for a person whose value is in
            another group than x. All are zero if the mechanism reveals no groups.
        """
        return np.zeros(self.score_values()[1].shape)

    def score_laws(self, p: Floats, n: int) -> Sequence[ScoreLaw]:
        p = with_some_mass(p)
        score_values, at_value = self.score_values()
        outside_group = self.score_probabilities_outside()
        group = self.known_groups()
        mass = np.bincount(group, weights=p)[group] if group.any() else np.ones(self.size)
        others = np.where(np.bincount(group)[group] > 1, mass - p, 0.0)
        outside = outside_group * (1 - mass)[:, None]
        rest = np.maximum(self.score_probabilities(p) - p[:, None] * at_value - outside, 0.0)
        total = rest.sum(axis=1, keepdims=True)
        in_group = np.divide(rest, total, out=outside_group.copy(), where=(others > 0)[:, None] & (total > 0))
        ones = np.ones(self.size)
        return [
            ScoreLaw(
                score_values, at_value, in_group, outside_group, np.where(others > 0, mass, 0.0), n * ones, ones, ones
            )
        ]

    def scores(self, weights: Floats) -> Scores | None:  # noqa: ARG002
        """Return the distribution of one report's contribution to a weighted sum of frequencies.

        A report y contributes Σ_x weights[x]·φ(y)[x], where φ(y)[x] is the frequency of x estimated from y alone.

        Parameters
        ----------
        weights
            The weight of each value, shape (k,), in domain order.

        Returns
        -------
        Scores or None
            The distribution of the contribution, or None if the class implements only its mean and variance.
        """
        return None

    def cohorts(self, weights: Floats, parts: Floats, n: int) -> Sequence[Cohort]:
        means = parts @ weights
        squares = np.array([self.variance(weights, part) for part in parts]) + means**2
        return [Cohort(n, 1.0, means, squares, self.scores(weights), parts)]

    def honest_score_bounds(self) -> tuple[Floats, Floats]:
        return self.score_bounds()


class HistogramEstimator(Estimator):
    """Estimator whose counts are a histogram, so that ``expected_counts`` is the law of the outputs at p."""

    @abstractmethod
    def output_scores(self, weights: Floats) -> Floats:
        """Return each output's contribution to the estimate of Σ weight·frequency: the adjoint of ``frequencies``."""

    @abstractmethod
    def adjoint(self, weights: Floats) -> Floats:
        """Return Σ_y Q(y|x)·weights_y for every value x: the adjoint of ``expected_counts``."""

    def marginal(self, shape: Sequence[int], axes: Sequence[int]) -> MarginalEstimator:
        chosen = checked_axes(shape, axes, self.size)
        cells = math.prod(shape[axis] for axis in chosen)
        if cells * len(self.expected_counts(np.full(self.size, 1 / self.size))) > MOST_SCORES:
            return SummedMarginal(self, shape, chosen)
        return ScoreMarginal(self, shape, chosen)

    def scores(self, weights: Floats) -> Scores:
        return OutputScores.of(self.output_scores(weights), self.expected_counts, self.size)

    def fit(self, fractions: Floats, n: int) -> Fit:
        # A tolerance of 1/1000 in the log-likelihood of all reports is far below their statistical uncertainty.
        tolerance = max(1e-9, 1e-3 / n)
        return fit_histogram(fractions, self.expected_counts, self.adjoint, self.size, tolerance=tolerance)

    def reported_distribution(self, fractions: Floats, n: int) -> Floats:
        law, adjoint, tolerance = self.expected_counts, self.adjoint, max(1e-9, 0.1 / n)
        return fit_histogram(fractions, law, adjoint, self.size, tolerance=tolerance, most=_STEPS).frequencies

    def mean_posterior(self, fractions: Floats, prior: Floats) -> Floats:
        # Σ_y share_y·π_x Q(y|x)/(π·Q_y).
        law = self.expected_counts(prior)
        return np.asarray(prior * self.adjoint(np.where(law > 0, fractions / np.where(law > 0, law, 1), 0)))


class ScoreEstimator(HistogramEstimator):
    """Estimator that derives all errors from the scores of the outputs; subclasses may know shorter ways."""

    def score_batches(self) -> Iterator[tuple[slice, Floats]]:
        """Yield batches of values with the scores of all outputs for them."""
        step = max(1, _BATCH // len(self.expected_counts(np.full(self.size, 1 / self.size))))
        for start in range(0, self.size, step):
            stop = min(start + step, self.size)
            yield slice(start, stop), self.scores_of(np.eye(stop - start, self.size, start))

    def scores_of(self, weights: Floats) -> Floats:
        """Return the scores of all outputs for each of several vectors of weights."""
        return np.stack([self.output_scores(row) for row in weights])

    def second_moments(self) -> Floats:
        return self.adjoint(sum(np.sum(scores**2, axis=0) for _, scores in self.score_batches()))

    def variances(self, p: Floats) -> Floats:
        law = self.expected_counts(p)
        return np.concatenate([scores**2 @ law for _, scores in self.score_batches()]) - p**2

    def covariance(self, p: Floats) -> Floats:
        law = self.expected_counts(p)
        products = np.empty((self.size, self.size))
        for values, scores in self.score_batches():
            is_whole = len(scores) == self.size
            products[values] = (
                (scores * law) @ scores.T if is_whole else [self.frequencies(law * row) for row in scores]
            )
        return (products + products.T) / 2 - np.outer(p, p)

    def variance(self, weights: Floats, p: Floats) -> float:
        return float(self.expected_counts(p) @ self.output_scores(weights) ** 2 - (weights @ p) ** 2)

    def score_values(self) -> tuple[Floats, Floats]:
        scores = np.concatenate([batch for _, batch in self.score_batches()])
        return scores, np.stack([self.expected_counts(row) for row in np.eye(self.size)])

    def score_probabilities(self, p: Floats) -> Floats:
        law = self.expected_counts(p)
        return np.broadcast_to(law, (self.size, len(law)))

    @functools.cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """The least and the greatest score of each value."""
        ends = [(scores.min(axis=1), scores.max(axis=1)) for _, scores in self.score_batches()]
        least, greatest = (np.concatenate(part) for part in zip(*ends, strict=True))
        return least, greatest

    def score_bounds(self) -> tuple[Floats, Floats]:
        return self._ends

    def laws_of_means(self, p: Floats, n: int) -> Sequence[ScoreLaw]:
        """Return the law of scores that are means over kinds of outputs, with the mean and variance of the estimate."""
        (law,) = HistogramEstimator.score_laws(self, p, n)
        # The exact scores of people with another value have mean zero, and of the value mean one; their means nearly.
        others = law.score_values - np.sum(law.in_group * law.score_values, axis=1, keepdims=True)
        at_own = law.score_values - np.sum(law.at_value * law.score_values, axis=1, keepdims=True) + 1
        none = np.zeros_like(law.at_value)
        squares = [np.sum(part * scores**2, axis=1) for part, scores in zip(law.parts, (at_own, others), strict=False)]
        rough = p * squares[0] + (1 - p) * squares[1] - p**2
        return [
            replace(
                law,
                score_values=np.hstack([at_own, others]),
                at_value=np.hstack([law.at_value, none]),
                in_group=np.hstack([none, law.in_group]),
                outside_group=np.hstack([none, none]),
                spread=relative_spread(self.variances(p), rough),
            )
        ]
