"""Base class of estimators: from counts to unbiased frequencies, with all moments of the estimate.

An estimator is linear in the counts, so its statements are exact for every n. The estimate is unbiased, and the
covariance from n reports is 1/n times ``covariance(p)``, the covariance from one report of a person drawn from p.

Only the estimator states the errors of a mechanism. Risks and plans use ``second_moments``, standard errors use
``variances``, intervals use ``score_laws``. Tests compare these with one another and with the exact law.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, project_protected
from sfumato.errors import InvalidInput
from sfumato.mechanisms.estimators.forms import Cohort
from sfumato.mechanisms.estimators.likelihood import Fit, fit_histogram
from sfumato.mechanisms.estimators.limits import ScoreLaw
from sfumato.mechanisms.estimators.scores import OutputScores, Scores

__all__ = ["Estimator", "HistogramEstimator", "SamplingDistribution", "with_some_mass"]


#: Fraction of the greatest score below which a score counts as zero; inverting a matrix leaves such rounding errors.
_NEGLIGIBLE = 1e-9
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
    """Unbiased linear estimator of one mechanism.

    The score φ(y) of a report y is the estimate from that report alone, and the estimate is the mean score. Fractions
    are counts divided by the number of reports.

    Attributes
    ----------
    size : int
        The number of values.
    condition : float
        The least singular value that the estimate divides by, relative to the greatest; 1 if it inverts no matrix.
    """

    #: Least singular value that the estimate divides by, relative to the greatest; 1 if it inverts no matrix.
    condition: float = 1.0

    @abstractmethod
    def frequencies(self, fractions: Floats) -> Floats:
        """Return the estimate from fractions.

        Parameters
        ----------
        fractions
            Counts divided by the number of reports.

        Returns
        -------
        ndarray
            The unbiased estimate of each value's frequency, in domain order.
        """

    @abstractmethod
    def expected_counts(self, p: Floats) -> Floats:
        """Return the expected fractions if values have distribution p.

        Parameters
        ----------
        p
            The distribution of the values.

        Returns
        -------
        ndarray
            The expected counts per report; ``frequencies(expected_counts(p))`` is p.
        """

    @abstractmethod
    def second_moments(self) -> Floats:
        """Return the mean of |φ(Y)|² for each true value.

        Returns
        -------
        ndarray
            A second moment per value. The risk follows from Σ variances(p) = second_moments·p - |p|². Implementations
            must not build a matrix of values by values.
        """

    def nearest(self, unbiased: Floats, fractions: Floats) -> Floats:  # noqa: ARG002
        """Return a distribution near the unbiased estimate, with the totals that the counts reveal.

        Revealed values keep their estimates. The other values have the nearest distribution in l2.

        Parameters
        ----------
        unbiased
            The unbiased estimate.
        fractions
            Counts divided by the number of reports.

        Returns
        -------
        ndarray
            A probability per value.
        """
        return project_protected(unbiased, self.revealed())

    # -- methods that only some mechanisms support -------------------------------------------------------------

    def fit(self, fractions: Floats, n: int) -> Fit:  # noqa: ARG002
        """Return the distribution of maximum likelihood for the counts of n reports.

        Parameters
        ----------
        fractions
            Counts divided by the number of reports.
        n
            The number of reports.

        Returns
        -------
        Fit
            The distribution, and whether the search converged.

        Raises
        ------
        InvalidInput
            If no likelihood of the counts is known.
        """
        hint = "Use method 'simplex' for an estimate that is a distribution."
        raise InvalidInput("estimate", "method", "not be 'mle' for this mechanism", type(self).__name__, hint=hint)

    def mean_posterior(self, fractions: Floats, prior: Floats) -> Floats:  # noqa: ARG002
        """Return the mean over the reports of the posterior distribution under a prior.

        Parameters
        ----------
        fractions
            Counts divided by the number of reports.
        prior
            The prior distribution of the values.

        Returns
        -------
        ndarray
            A probability per value.

        Raises
        ------
        InvalidInput
            If the counts do not determine the posteriors.
        """
        must = "not be 'mmse' for bitmaps, whose counts do not determine posteriors"
        hint = "Use method 'simplex' for an estimate that is a distribution."
        raise InvalidInput("estimate", "method", must, type(self).__name__, hint=hint)

    # -- the scores of one report ------------------------------------------------------------------------------

    @abstractmethod
    def score_values(self) -> tuple[Floats, Floats]:
        """Return the scores that a report can have for each value, and their probabilities given that value.

        Returns
        -------
        tuple of ndarray
            Two arrays with a row per value: scores, and their probabilities for people who have the value. A row may
            list a score that does not occur for its value, with probability zero.
        """

    @abstractmethod
    def score_probabilities(self, p: Floats) -> Floats:
        """Return the probabilities of the scores of ``score_values`` for one report.

        Parameters
        ----------
        p
            The distribution of the values.

        Returns
        -------
        ndarray
            A row of probabilities per value.
        """

    def score_probabilities_outside(self) -> Floats:
        """Return the probabilities of the scores for people whose value is in another group of ``known_groups``.

        Returns
        -------
        ndarray
            A row of probabilities per value.
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
        """Return the law of one report's score for Σ weight·frequency.

        Parameters
        ----------
        weights
            A weight per value.

        Returns
        -------
        Scores or None
            The law, or None if only its moments are known.
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

    def scores(self, weights: Floats) -> Scores:
        return OutputScores.of(self.output_scores(weights), self.expected_counts, self.size)

    def fit(self, fractions: Floats, n: int) -> Fit:
        # A tolerance of 1/1000 in the log-likelihood of all reports is far below their statistical uncertainty.
        tolerance = max(1e-9, 1e-3 / n)
        return fit_histogram(fractions, self.expected_counts, self.adjoint, self.size, tolerance=tolerance)

    def mean_posterior(self, fractions: Floats, prior: Floats) -> Floats:
        # Σ_y share_y·π_x Q(y|x)/(π·Q_y).
        law = self.expected_counts(prior)
        return np.asarray(prior * self.adjoint(np.where(law > 0, fractions / np.where(law > 0, law, 1), 0)))
