"""What a estimator is: from counts to unbiased frequencies, and the exact covariance of that estimate.

A estimator is linear in the counts, so what it says is exact for every n: the estimate is unbiased, and the covariance
of n reports is 1/n of what ``covariance(p)`` gives for one report of a person drawn from p.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, project_protected
from sfumato.mechanisms.estimators.forms import Cohort
from sfumato.mechanisms.estimators.limits import ScoreLaw
from sfumato.mechanisms.estimators.scores import LevelScores, Scores

__all__ = ["Estimator", "HistogramEstimator", "with_some_mass"]


#: Beside what a report counts for a value, this is nothing: rounding of a matrix that was inverted.
_NOTHING = 1e-9
#: Mass of the uniform distribution that is mixed into p before it is divided by.
_LEAST_MASS = 1e-6


def with_some_mass(p: Floats) -> Floats:
    """Return p with some mass for every value, so that it can be divided by."""
    return np.asarray((1 - _LEAST_MASS) * p + _LEAST_MASS / len(p))


class Estimator(ABC):
    """The unbiased linear estimate of one mechanism."""

    size: int

    @abstractmethod
    def frequencies(self, shares: Floats) -> Floats:
        """The estimate from shares: counts divided by the number of reports."""

    @abstractmethod
    def expected_counts(self, p: Floats) -> Floats:
        """The expected shares at p: ``frequencies(expected_counts(p)) == p``."""

    def nearest(self, unbiased: Floats, shares: Floats) -> Floats:  # noqa: ARG002
        """A distribution near the unbiased estimate, among those with the totals that the counts know.

        Values told in clear keep what they are told to have; the others are the nearest in l2 to theirs.
        """
        return project_protected(unbiased, self.revealed())

    def revealed(self) -> npt.NDArray[np.bool_]:
        """Which values are told in clear: no report counts against them, so their estimate is a count of reports."""
        least, greatest = self.honest_score_bounds()
        return np.asarray((greatest > 0) & (least >= -_NOTHING * greatest))

    @abstractmethod
    def variances(self, p: Floats) -> Floats:
        """The variance of each frequency from one report at p."""

    @abstractmethod
    def covariance(self, p: Floats) -> Floats:
        """The covariance of the frequencies from one report at p."""

    @abstractmethod
    def variance(self, weights: Floats, p: Floats) -> float:
        """The variance of Σ weight·frequency from one report at p: weights·covariance·weights, without the matrix."""

    @abstractmethod
    def score_levels(self) -> tuple[Floats, Floats]:
        """Return the scores that a report can have for each value, and their probabilities for people who have it.

        Both have a row per value. A score that a value does not have may stand in its row with probability zero.
        """

    @abstractmethod
    def score_probabilities(self, p: Floats) -> Floats:
        """Return the probabilities of the scores of ``score_levels`` for one report at p."""

    def score_elsewhere(self) -> Floats:
        """Return the probabilities of the scores for people whose value is of another group of ``known_groups``."""
        return np.zeros(self.score_levels()[1].shape)

    def score_laws(self, p: Floats, n: int) -> Sequence[ScoreLaw]:
        """Return the law of each value's scores over n reports, with the groups' totals and make-up at p."""
        p = with_some_mass(p)
        levels, own = self.score_levels()
        elsewhere = self.score_elsewhere()
        group = self.known_groups()
        mass = np.bincount(group, weights=p)[group] if group.any() else np.ones(self.size)
        others = np.where(np.bincount(group)[group] > 1, mass - p, 0.0)
        outside = elsewhere * (1 - mass)[:, None]
        rest = np.maximum(self.score_probabilities(p) - p[:, None] * own - outside, 0.0)
        total = rest.sum(axis=1, keepdims=True)
        same = np.divide(rest, total, out=elsewhere.copy(), where=(others > 0)[:, None] & (total > 0))
        ones = np.ones(self.size)
        return [ScoreLaw(levels, own, same, elsewhere, np.where(others > 0, mass, 0.0), n * ones, ones, ones)]

    def scores(self, weights: Floats) -> Scores | None:  # noqa: ARG002
        """Return the score of one report for Σ weight·frequency, or None if only its moments are known."""
        return None

    def cohorts(self, weights: Floats, parts: Floats, n: int) -> Sequence[Cohort]:
        """Return the law of the estimate of Σ weight·frequency over n reports, in each of several parts of the people.

        A part is a distribution over the values.
        """
        means = parts @ weights
        squares = np.array([self.variance(weights, part) for part in parts]) + means**2
        return [Cohort(n, 1.0, means, squares, self.scores(weights), parts)]

    @abstractmethod
    def score_bounds(self) -> tuple[Floats, Floats]:
        """The least and the greatest that one report can count for each frequency."""

    def least_variances(self) -> Floats:
        """The variance from one report that each frequency has at least, whatever the counts seem to say."""
        return np.zeros(self.size)

    def known_groups(self) -> npt.NDArray[np.int64]:
        """For each value the number of its group: every report tells the group, so its total is a count of reports."""
        return np.zeros(self.size, dtype=np.int64)

    def honest_score_bounds(self) -> tuple[Floats, Floats]:
        """The least and the greatest that one honest report counts: what intervals from few reports rest on."""
        return self.score_bounds()


class HistogramEstimator(Estimator):
    """A estimator whose counts are a histogram over the outputs: ``shares`` is the law of the outputs at p."""

    @abstractmethod
    def output_scores(self, weights: Floats) -> Floats:
        """Return what a report of each output adds to the estimate of Σ weight·frequency: ``frequencies``' adjoint."""

    def scores(self, weights: Floats) -> Scores:
        return LevelScores.of(self.output_scores(weights), self.expected_counts, self.size)

    @abstractmethod
    def adjoint(self, weights: Floats) -> Floats:
        """Σ_y Q(y|x)·weights_y for every value x: the adjoint of ``shares``."""
