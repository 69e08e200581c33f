"""Estimator of cyclic designs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato._core import Floats, Integers
from sfumato.mechanisms.cyclic.correlation import gather, gather_exactly, spread
from sfumato.mechanisms.cyclic.mechanism import CyclicDesign
from sfumato.mechanisms.estimators.base import HistogramEstimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.inclusion import mixture_moments
from sfumato.mechanisms.estimators.likelihood import Fit, fit_histogram
from sfumato.mechanisms.estimators.parts import PartEstimator
from sfumato.mechanisms.estimators.scores import ColumnScores

__all__ = ["CyclicEstimator"]


class CyclicEstimator(HistogramEstimator, PartEstimator):
    """Estimator from the share of reports whose set contains a value, computed by one circular correlation.

    Every set contains the true value with probability a = γ + (1-γ)d/v and a given other value with probability
    b = γ(d-1)/(v-1) + (1-γ)d/v. The score of a value is (1 - b)/(a - b) if the set contains it, else -b/(a - b). A
    2-design balances pairs, not triples, so covariances depend on the law of the reports.
    """

    each = 1

    def __init__(self, mechanism: CyclicDesign) -> None:
        if mechanism.threshold == 0:
            raise NotIdentifiable("distinguish all values in its reports (its epsilon is 0)", mechanism)
        self.size = len(mechanism.domain)
        design, gamma, density = mechanism.design, mechanism.gamma, mechanism.density
        self._design = design
        company = (density * design.modulus - 1) / (design.modulus - 1)
        self.gamma, self._rest = float(gamma), float(1 - gamma)
        self._forced = float(gamma / design.elements.size)
        self._pull, self._free = float(gamma * company), float((1 - gamma) * density)
        self.other, self.gap = float(gamma * company + (1 - gamma) * density), float(gamma * (1 - company))
        self.revealed_score = float((1 - gamma) * (company - density) / (gamma * (1 - company)))
        moments = mixture_moments(self.size, design.modulus, Fraction(design.size), gamma, 1 - gamma)
        self._moment, self._unprotected_moment = map(float, moments)

    def _rates(self, p: Floats, total: float) -> Floats:
        """Return for each value the probability of a set that contains it."""
        return np.asarray(self.gap * p + self._pull * p.sum() + self._free * total)

    def _gathered(self, outputs: Floats) -> Floats:
        """Return for each value the sum over the outputs whose set contains it."""
        # Subtracting the mean keeps the rounding error of the transform in proportion to the differences.
        mean = float(outputs.mean())
        return gather(self._design, outputs - mean)[: self.size] + mean * self._design.elements.size

    def frequencies(self, fractions: Floats) -> Floats:
        return (self._gathered(fractions) - self.other) / self.gap

    def frequencies_of_counts(self, counts: Integers, n: int) -> Floats:
        return (gather_exactly(self._design, counts)[: self.size] / n - self.other) / self.gap

    def expected_counts(self, p: Floats) -> Floats:
        return self.law(p, 1.0)

    def law(self, p: Floats, total: float) -> Floats:
        law = np.maximum(spread(self._design, p), 0.0)
        law *= self._forced
        law += self._rest * total / self._design.outputs
        return law

    def decode(self, counts: Floats, protected: float, total: float) -> Floats:
        return np.asarray((self._gathered(counts) - self._pull * protected - self._free * total) / self.gap)

    def fit_part(self, fractions: Floats) -> Fit:
        return fit_histogram(fractions, self.expected_counts, self.adjoint, self.size)

    def second_moments(self) -> Floats:
        return np.full(self.size, self._moment)

    def unprotected_second_moment(self) -> float:
        return self._unprotected_moment

    def squared_scores(self, p: Floats, total: float) -> Floats:
        sets = self.gamma * float(p.sum()) + self._rest * total
        return np.asarray((self._rates(p, total) * (1 - 2 * self.other) + sets * self.other**2) / self.gap**2)

    def products(self, p: Floats, total: float) -> Floats:
        law, rates = self.law(p, total), self._rates(p, total)
        both = np.empty((self.size, self.size))
        elements, modulus = self._design.elements, self._design.modulus
        first = modulus * np.arange(self._design.blocks)[:, None]
        for x in range(self.size):
            sets = first + (elements + x) % modulus  # those that contain x
            of_value = np.zeros(self._design.outputs)
            of_value[sets] = law[sets]
            both[x] = self._gathered(of_value)
        both -= self.other * (rates[:, None] + rates)
        both += float(law.sum()) * self.other**2
        both /= self.gap**2
        both[np.diag_indices(self.size)] = self.squared_scores(p, total)
        return both

    def quadratic(self, weights: Floats, p: Floats, total: float) -> float:
        return float(self.law(p, total) @ self.output_scores(weights) ** 2)

    def output_scores(self, weights: Floats) -> Floats:
        return np.asarray((spread(self._design, weights) - self.other * weights.sum()) / self.gap)

    def set_scores(self, weights: Floats) -> ColumnScores:
        return ColumnScores(self.output_scores(weights), self.law)

    def adjoint(self, weights: Floats) -> Floats:
        return np.asarray(self._forced * self._gathered(weights) + self._rest * weights.mean())

    @property
    def set_score_values(self) -> Floats:
        """The scores of a value that is not in the set, and of a value that is."""
        return (np.array([0.0, 1.0]) - self.other) / self.gap

    def set_probabilities(self, p: Floats, total: float) -> Floats:
        rates = self._rates(p, total)
        sets = self.gamma * float(p.sum()) + self._rest * total
        return np.column_stack([np.maximum(sets - rates, 0.0), rates])

    def score_values(self) -> tuple[Floats, Floats]:
        true_probability = self.other + self.gap
        at_value = np.array([1 - true_probability, true_probability])
        return np.tile(self.set_score_values, (self.size, 1)), np.tile(at_value, (self.size, 1))

    def score_probabilities(self, p: Floats) -> Floats:
        return self.set_probabilities(p, 1.0)

    def score_bounds(self) -> tuple[Floats, Floats]:
        least, greatest = self.set_score_values
        return np.full(self.size, least), np.full(self.size, greatest)
