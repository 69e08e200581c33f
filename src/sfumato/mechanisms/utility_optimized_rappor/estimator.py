"""Estimator of utility-optimized RAPPOR: sensitive bits are noisy, harmless bits are certain."""

from __future__ import annotations

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.estimators.base import Estimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.likelihood import Fit, fit_bit_counts
from sfumato.mechanisms.estimators.scores import BitScores, Scores
from sfumato.mechanisms.two_level import ONE
from sfumato.mechanisms.utility_optimized_rappor.mechanism import UtilityOptimizedRappor

__all__ = ["UtilityOptimizedRapporEstimator"]


class UtilityOptimizedRapporEstimator(Estimator):
    """Estimator from the counts of set bits: p̂_x = (fraction_x - b_x)/g_x.

    A sensitive bit is set with probability a for its own value and b for any other value. A harmless bit is set with
    probability c for its own value, and never for another. Bits are independent given the value. So the fraction of
    reports in which both of two bits are set is:

    - b² + (p_x+p_y)·b(a-b) for two sensitive bits;
    - b·c·p_y for a sensitive and a harmless bit;
    - 0 for two harmless bits.
    """

    def __init__(self, mechanism: UtilityOptimizedRappor) -> None:
        self.size = len(mechanism.domain)
        self._sensitive = mechanism.is_sensitive
        # The bit of x is set in a fraction other_x + gap_x·p_x of all reports.
        self.other = np.where(self._sensitive, mechanism.other / ONE, 0.0)
        self.gap = np.where(self._sensitive, (mechanism.own - mechanism.other) / ONE, mechanism.harmless / ONE)
        if not self.gap.all():
            raise NotIdentifiable("distinguish all values in its reports (its epsilon is 0)", mechanism)
        first = mechanism.representatives()[0]
        self._noise, self._slope = float(self.other[first]), float(self.gap[first])

    def frequencies(self, fractions: Floats) -> Floats:
        return np.asarray((fractions - self.other) / self.gap)

    def expected_counts(self, p: Floats) -> Floats:
        return np.asarray(self.other + self.gap * p)

    def second_moments(self) -> Floats:
        # φ_x = (bit_x - b)/g, and bit x is set with probability b, or b + g if x is the true value.
        other, gap = self.other, self.gap
        return np.asarray(np.sum(other * (1 - other) / gap**2) + (1 - 2 * other) / gap)

    def fit(self, fractions: Floats, n: int) -> Fit:  # noqa: ARG002
        return fit_bit_counts(fractions, self.other, self.gap)

    def variances(self, p: Floats) -> Floats:
        rates = self.expected_counts(p)
        return np.asarray(rates * (1 - rates) / self.gap**2)

    def covariance(self, p: Floats) -> Floats:
        rates, sensitive = self.expected_counts(p), self._sensitive
        revealed = np.where(sensitive, 0.0, rates)
        both = self._noise**2 + (p[:, None] + p) * (self._noise * self._slope)
        both[~sensitive] = self._noise * revealed[~sensitive][:, None]
        both[:, ~sensitive] = self._noise * revealed[~sensitive]
        both[np.ix_(~sensitive, ~sensitive)] = 0.0
        both[np.diag_indices(self.size)] = rates
        return np.asarray((both - np.outer(rates, rates)) / np.outer(self.gap, self.gap))

    def variance(self, weights: Floats, p: Floats) -> float:
        rates, scaled = self.expected_counts(p), weights / self.gap
        noisy, revealed = scaled[self._sensitive], scaled[~self._sensitive] @ rates[~self._sensitive]
        total = noisy.sum()
        # Σ_{x≠y} w_x w_y E[both], with the sums over y taken first.
        pairs = self._noise**2 * (total**2 - noisy @ noisy)
        pairs += 2 * self._noise * self._slope * ((noisy * p[self._sensitive]) @ (total - noisy))
        pairs += 2 * self._noise * total * revealed
        return float(scaled**2 @ rates + pairs - (scaled @ rates) ** 2)

    def scores(self, weights: Floats) -> Scores:
        return BitScores(weights / self.gap, self.other, self.gap)

    def score_values(self) -> tuple[Floats, Floats]:
        at_value = self.other + self.gap
        return np.column_stack([-self.other, 1 - self.other]) / self.gap[:, None], np.column_stack(
            [1 - at_value, at_value]
        )

    def score_probabilities(self, p: Floats) -> Floats:
        rates = self.expected_counts(p)
        return np.column_stack([1 - rates, rates])

    def score_bounds(self) -> tuple[Floats, Floats]:
        return -self.other / self.gap, (1 - self.other) / self.gap
