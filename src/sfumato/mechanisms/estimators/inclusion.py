"""Estimators that count, for each value, the reports whose set contains it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._core import Floats, project_to_simplex
from sfumato.mechanisms.estimators.base import Estimator, HistogramEstimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.likelihood import Fit, fit_bit_counts
from sfumato.mechanisms.estimators.marginals import MarginalEstimator, SummedMarginal, checked_axes
from sfumato.mechanisms.estimators.parts import PartEstimator
from sfumato.mechanisms.estimators.scores import BitScores, Scores, SubsetScores
from sfumato.mechanisms.two_level import InclusionMixture, TwoLevelMechanism

__all__ = ["Inclusion", "InclusionEstimator", "ResponseEstimator", "SetEstimator", "mixture_moments"]


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

    @classmethod
    def of_mixture(cls, mechanism: InclusionMixture) -> Inclusion:
        """Return the probabilities of uniform sets that are forced with probability γ to contain the true value."""
        size, density, gamma, company = len(mechanism.domain), mechanism.density, mechanism.gamma, _company(mechanism)
        third = company * (density * size - 2) / (size - 2) if size > 2 else Fraction(0)
        free, free_pair = (1 - gamma) * density, (1 - gamma) * density * company
        return cls(gamma + free, gamma * company + free, gamma * company + free_pair, gamma * third + free_pair)


def _company(mechanism: InclusionMixture) -> Fraction:
    """Return the probability that a set forced to contain one value contains a given other value."""
    size = len(mechanism.domain)
    return (mechanism.density * size - 1) / (size - 1) if size > 1 else Fraction(0)


class InclusionEstimator(Estimator):
    """Estimator from the counts of reports whose set contains a value: p̂ = (fraction - b)/(a - b).

    The set contains the true value with probability a, and a given other value with probability b. It contains two
    given values with probability c₁ if one of them is the true value, and c₀ otherwise. So E[both] = c₀ + (p_x +
    p_y)(c₁ - c₀).
    """

    def __init__(self, mechanism: TwoLevelMechanism, inclusion: Inclusion) -> None:
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
        return _InclusionMarginal(self, shape, checked_axes(shape, axes, self.size))

    def covariance_of_cells(self, p: Floats, values: int) -> Floats:
        """Return the covariance of the frequencies of cells with p and this number of values each."""
        rates, slope = values * self.other + self.gap * p, self._with_true - self._without_true
        both = self._without_true * values**2 + slope * values * (p[:, None] + p)
        # A set that contains a value twice does so with the probability of containing it once.
        both[np.diag_indices(len(p))] += rates - values * self._without_true - 2 * slope * p
        return np.asarray((both - np.outer(rates, rates)) / self.gap**2)

    def variances_of_cells(self, p: Floats, values: int) -> Floats:
        """Return the diagonal of ``covariance_of_cells``."""
        rates, slope = values * self.other + self.gap * p, self._with_true - self._without_true
        both = self._without_true * values * (values - 1) + 2 * slope * (values - 1) * p
        return np.asarray((both + rates - rates**2) / self.gap**2)

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


class _InclusionMarginal(SummedMarginal):
    """Marginal from inclusion counts: its covariance depends on the frequencies of its cells only."""

    def __init__(self, estimator: InclusionEstimator, shape: Sequence[int], axes: Sequence[int]) -> None:
        super().__init__(estimator, shape, axes)
        self._inclusion, self._each = estimator, estimator.size // self.size

    def variances(self, p: Floats) -> Floats:
        return self._inclusion.variances_of_cells(self.summed(p), self._each)

    def covariance(self, p: Floats) -> Floats:
        return self._inclusion.covariance_of_cells(self.summed(p), self._each)

    def second_moments_inside(self, shape: Sequence[int], axes: Sequence[int]) -> Floats:  # noqa: ARG002
        return self._inclusion.variances_of_cells(np.ones(self.size), self._each) + 1.0

    def _observed(self, fractions: Floats) -> Floats:
        """Return the distribution of the cells nearest to their estimate."""
        return project_to_simplex(self.frequencies(fractions))

    def observed_variances(self, fractions: Floats) -> Floats:
        return self._inclusion.variances_of_cells(self._observed(fractions), self._each)

    def observed_covariance(self, fractions: Floats) -> Floats:
        return self._inclusion.covariance_of_cells(self._observed(fractions), self._each)


def mixture_moments(values: Any, modulus: Any, members: Any, gamma: Any, rest: Any) -> tuple[Any, Any]:
    """Return the mean of |φ|² for a protected value, and for an unprotected value of the same part.

    Sets have ``members`` of ``modulus`` elements, balanced in pairs; ``values`` of the elements are values. Numbers are
    Fractions, doubles, or arrays of them. ``rest`` is 1 - γ, which doubles would lose at γ near 1.
    """
    company, density = (members - 1) / max(modulus - 1, 1), members / modulus
    other, gap = rest * density + gamma * company, gamma * (1 - company)
    # A value has score (1 - b)/(a - b) if the set contains it, else -b/(a - b). So |φ|² follows from the mean number of
    # values in the set, for a forced set and for a uniform one.
    forced, free = 1 + (values - 1) * company, values * density
    of_forced, of_free = ((n * (1 - other) ** 2 + (values - n) * other**2) / gap**2 for n in (forced, free))
    # An unprotected value that is revealed has score 1/γ, and the estimated mass of all protected values is 1 - 1/γ. So
    # each protected value has score (-company·γ·(1 - 1/γ) - (1 - γ)·density)/(a - b).
    of_revealed = values * (rest * (company - density) / gap) ** 2 + 1 / gamma**2
    return gamma * of_forced + rest * of_free, gamma * of_revealed + rest * of_free


class SetEstimator(InclusionEstimator, PartEstimator):
    """Estimator from uniform sets of d of k values, forced with probability γ to contain the true value."""

    def __init__(self, mechanism: InclusionMixture) -> None:
        super().__init__(mechanism, Inclusion.of_mixture(mechanism))
        company, density, gamma = _company(mechanism), mechanism.density, mechanism.gamma
        free_pair = (1 - gamma) * density * company
        with_true, without_true = self.inclusion.with_true, self.inclusion.without_true
        self.each = int(density * self.size)
        self.gamma, self._rest = float(gamma), float(1 - gamma)
        self._pull, self._free = float(gamma * company), float((1 - gamma) * density)
        self._pair_protected, self._pair_total = float(without_true - free_pair), float(free_pair)
        self._pair_slope = float(with_true - without_true)
        self.revealed_score = float((1 - gamma) * (company - density) / (gamma * (1 - company)))
        moments = mixture_moments(self.size, self.size, density * self.size, gamma, 1 - gamma)
        self._moment, self._unprotected_moment = map(float, moments)

    def second_moments(self) -> Floats:
        return np.full(self.size, self._moment)

    def unprotected_second_moment(self) -> float:
        return self._unprotected_moment

    def scores(self, weights: Floats) -> Scores:
        return self.set_scores(weights)

    def set_scores(self, weights: Floats) -> SubsetScores:
        constant = -self.other * float(weights.sum()) / self.gap
        return SubsetScores(weights / self.gap, self.each, self.gamma, constant)

    def law(self, p: Floats, total: float) -> Floats:
        return np.asarray(self.gap * p + self._pull * p.sum() + self._free * total)

    def decode(self, counts: Floats, protected: float, total: float) -> Floats:
        return np.asarray((counts - self._pull * protected - self._free * total) / self.gap)

    def fit_part(self, fractions: Floats) -> Fit:
        return fit_bit_counts(fractions, self.other, self.gap)

    def squared_scores(self, p: Floats, total: float) -> Floats:
        sets = self.gamma * float(p.sum()) + self._rest * total
        return np.asarray((self.law(p, total) * (1 - 2 * self.other) + sets * self.other**2) / self.gap**2)

    def set_probabilities(self, p: Floats, total: float) -> Floats:
        rates = self.law(p, total)
        sets = self.gamma * float(p.sum()) + self._rest * total
        return np.column_stack([np.maximum(sets - rates, 0.0), rates])

    def products(self, p: Floats, total: float) -> Floats:
        intercept, sets, rates = self._pairs(p, total)
        both = intercept + self._pair_slope * (p[:, None] + p) - self.other * (rates[:, None] + rates)
        both += sets * self.other**2
        both /= self.gap**2
        both[np.diag_indices(self.size)] = self.squared_scores(p, total)
        return np.asarray(both)

    def quadratic(self, weights: Floats, p: Floats, total: float) -> float:
        intercept, sets, rates = self._pairs(p, total)
        everything = float(weights.sum())
        pairs = intercept * (everything**2 - weights @ weights)
        pairs += 2 * self._pair_slope * ((weights * p) @ (everything - weights))
        offset = self.other * everything
        squares = weights**2 @ rates + pairs - 2 * offset * (weights @ rates) + offset**2 * sets
        return float(squares) / self.gap**2

    def _pairs(self, p: Floats, total: float) -> tuple[float, float, Floats]:
        """Return P(z and w in the set) without its slope·(p_z + p_w), the mass of sets, and P(z in the set)."""
        protected = float(p.sum())
        intercept = self._pair_protected * protected + self._pair_total * total
        return intercept, self.gamma * protected + self._rest * total, self.law(p, total)


class ResponseEstimator(HistogramEstimator, SetEstimator):
    """Estimator of randomized response: sets are single values, so their counts are the histogram."""

    def marginal(self, shape: Sequence[int], axes: Sequence[int]) -> MarginalEstimator:
        return SetEstimator.marginal(self, shape, axes)

    def output_scores(self, weights: Floats) -> Floats:
        return np.asarray((weights - self.other * weights.sum()) / self.gap)

    def adjoint(self, weights: Floats) -> Floats:
        return np.asarray(self.other * weights.sum() + self.gap * weights)
