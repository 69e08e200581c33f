"""Estimators that count, for each value, the reports whose set contains it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato._core import Floats, project_to_simplex
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.estimators.base import Estimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.likelihood import Fit, fit_bit_counts
from sfumato.mechanisms.estimators.marginals import MarginalEstimator, SummedMarginal, checked_axes
from sfumato.mechanisms.estimators.scores import BitScores, Scores

__all__ = ["Inclusion", "InclusionEstimator", "InclusionMarginal"]


@dataclass(frozen=True)
class Inclusion:
    """Exact probabilities that a report's set contains given values.

    ``true_probability`` and ``other`` are the probabilities that it contains the true value, and a given other value.
    ``with_true`` and ``without_true`` are the probabilities that it contains two given values, if one of them is the
    true value, and if neither is.
    """

    true_probability: Fraction
    other: Fraction
    with_true: Fraction
    without_true: Fraction

    @property
    def gap(self) -> Fraction:
        """Difference between the probabilities of containing the true value and another value."""
        return self.true_probability - self.other

    @classmethod
    def of_bits(cls, true_probability: Fraction, other: Fraction) -> Inclusion:
        """Return the probabilities of sets whose members are independent."""
        return cls(true_probability, other, true_probability * other, other * other)


class InclusionEstimator(Estimator):
    """Estimator from the counts of reports whose set contains a value: p̂ = (fraction - b)/(a - b).

    The set contains the true value with probability a, and a given other value with probability b. It contains two
    given values with probability c₁ if one of them is the true value, and c₀ otherwise. So E[both] = c₀ + (p_x +
    p_y)(c₁ - c₀).
    """

    def __init__(self, mechanism: Mechanism, inclusion: Inclusion) -> None:
        if inclusion.gap == 0:
            raise NotIdentifiable("distinguish all values in its reports (its epsilon is 0)", mechanism)
        self.size = len(mechanism.domain)
        self.inclusion = inclusion
        self.other, self.gap = float(inclusion.other), float(inclusion.gap)
        self._with_true, self._without_true = float(inclusion.with_true), float(inclusion.without_true)

    def frequencies(self, fractions: Floats) -> Floats:
        return (fractions - self.other) / self.gap

    def expected_counts(self, p: Floats) -> Floats:
        return self.other + self.gap * p

    def count_bounds(self, most_cells: int) -> tuple[Floats, Floats, float, float]:  # noqa: ARG002
        total = self.size * self.other + self.gap  # for every value, so that it does not depend on their distribution
        return np.array(self.other), np.array(self.other + self.gap), total, total

    def second_moments(self) -> Floats:
        # φ_x = (1[x in set] - b)/(a - b), and the set contains x with probability b + (a - b)·1[x true]. So
        # Σ_z E φ_z² = (k·b(1-b) + (a-b)(1-2b))/(a-b)² for every true value.
        other, gap = self.inclusion.other, self.inclusion.gap
        return np.full(self.size, float((self.size * other * (1 - other) + gap * (1 - 2 * other)) / gap**2))

    def variances(self, p: Floats) -> Floats:
        rates = self.expected_counts(p)
        return rates * (1 - rates) / self.gap**2

    def covariance(self, p: Floats) -> Floats:
        rates = self.expected_counts(p)
        both = self._without_true + (p[:, None] + p) * (self._with_true - self._without_true)
        both[np.diag_indices(self.size)] = rates
        return np.asarray((both - np.outer(rates, rates)) / self.gap**2)

    def variance(self, weights: Floats, p: Floats) -> float:
        rates, total = self.expected_counts(p), float(weights.sum())
        # Σ_{x≠y} w_x w_y E[both], with the sums over y taken first.
        pairs = self._without_true * (total**2 - weights @ weights)
        pairs += 2 * (self._with_true - self._without_true) * ((weights * p) @ (total - weights))
        return float(weights**2 @ rates + pairs - (weights @ rates) ** 2) / self.gap**2

    def marginal(self, shape: Sequence[int], axes: Sequence[int]) -> MarginalEstimator:
        return InclusionMarginal(self, self.inclusion, shape, checked_axes(shape, axes, self.size))

    def fit(self, fractions: Floats, n: int) -> Fit:  # noqa: ARG002
        return fit_bit_counts(fractions, self.other, self.gap)

    def score_values(self) -> tuple[Floats, Floats]:
        true_probability = self.other + self.gap
        return np.tile(self.set_score_values, (self.size, 1)), np.tile(
            [1 - true_probability, true_probability], (self.size, 1)
        )

    def score_probabilities(self, p: Floats) -> Floats:
        rates = self.expected_counts(p)
        return np.column_stack([1 - rates, rates])

    def scores(self, weights: Floats) -> Scores:
        ones = np.ones(self.size)
        return BitScores(weights / self.gap, self.other * ones, self.gap * ones)

    @property
    def set_score_values(self) -> Floats:
        """The scores of a value that is not in the set, and of a value that is."""
        return (np.array([0.0, 1.0]) - self.other) / self.gap

    def score_bounds(self) -> tuple[Floats, Floats]:
        least, greatest = self.set_score_values
        return np.full(self.size, least), np.full(self.size, greatest)


class InclusionMarginal(SummedMarginal):
    """Marginal from inclusion counts: its covariance depends on the frequencies of its cells only."""

    def __init__(self, estimator: Estimator, inclusion: Inclusion, shape: Sequence[int], axes: Sequence[int]) -> None:
        super().__init__(estimator, shape, axes)
        self._each = estimator.size // self.size
        self._other, self._gap = float(inclusion.other), float(inclusion.gap)
        self._without_true, self._slope = (
            float(inclusion.without_true),
            float(inclusion.with_true - inclusion.without_true),
        )

    def _covariance(self, cells: Floats) -> Floats:
        """Return the covariance of the frequencies of the cells."""
        values, rates = self._each, self._each * self._other + self._gap * cells
        both = self._without_true * values**2 + self._slope * values * (cells[:, None] + cells)
        # A set that contains a value twice does so with the probability of containing it once.
        both[np.diag_indices(len(cells))] += rates - values * self._without_true - 2 * self._slope * cells
        return np.asarray((both - np.outer(rates, rates)) / self._gap**2)

    def _variances(self, cells: Floats) -> Floats:
        """Return the diagonal of ``_covariance``."""
        values, rates = self._each, self._each * self._other + self._gap * cells
        both = self._without_true * values * (values - 1) + 2 * self._slope * (values - 1) * cells
        return np.asarray((both + rates - rates**2) / self._gap**2)

    def variances(self, p: Floats) -> Floats:
        return self._variances(self.summed(p))

    def covariance(self, p: Floats) -> Floats:
        return self._covariance(self.summed(p))

    def second_moments_inside(self, shape: Sequence[int], axes: Sequence[int]) -> Floats:  # noqa: ARG002
        return self._variances(np.ones(self.size)) + 1.0

    def observed_variances(self, fractions: Floats) -> Floats:
        return self._variances(project_to_simplex(self.frequencies(fractions)))

    def observed_covariance(self, fractions: Floats) -> Floats:
        return self._covariance(project_to_simplex(self.frequencies(fractions)))
