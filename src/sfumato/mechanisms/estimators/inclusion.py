"""Estimators that count, for each value, the reports whose set holds it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato._core import Floats
from sfumato.errors import InvalidInput
from sfumato.mechanisms.estimators.base import Estimator, HistogramEstimator
from sfumato.mechanisms.estimators.scores import BitScores, Scores, SubsetScores
from sfumato.mechanisms.two_level import InclusionMechanism, InclusionMixture

__all__ = ["InclusionEstimator", "ResponseEstimator", "SetEstimator"]


class InclusionEstimator(Estimator):
    """Counts of the reports whose set holds a value: p̂ = (share - b)/(a - b).

    The set holds the true value with probability a, a given other one with b; two given values with c₁ if one of
    them is the true one, else with c₀. So E[both] = c₀ + (p_x + p_y)(c₁ - c₀).
    """

    def __init__(self, mechanism: InclusionMechanism, with_own: Fraction, without_own: Fraction) -> None:
        own, other = mechanism.inclusion
        if own == other:
            raise InvalidInput("estimate", "the mechanism", "tell values apart (its epsilon is 0)", mechanism)
        self.size = len(mechanism.domain)
        self.other, self.gap = float(other), float(own - other)
        self._with_own, self._without_own = float(with_own), float(without_own)

    def frequencies(self, shares: Floats) -> Floats:
        return (shares - self.other) / self.gap

    def expected_counts(self, p: Floats) -> Floats:
        return self.other + self.gap * p

    def variances(self, p: Floats) -> Floats:
        held = self.expected_counts(p)
        return held * (1 - held) / self.gap**2

    def covariance(self, p: Floats) -> Floats:
        held = self.expected_counts(p)
        both = self._without_own + (p[:, None] + p) * (self._with_own - self._without_own)
        both[np.diag_indices(self.size)] = held
        return np.asarray((both - np.outer(held, held)) / self.gap**2)

    def variance(self, weights: Floats, p: Floats) -> float:
        held, total = self.expected_counts(p), float(weights.sum())
        # Σ_{x≠y} w_x w_y E[both], with the sums over y done first.
        pairs = self._without_own * (total**2 - weights @ weights)
        pairs += 2 * (self._with_own - self._without_own) * ((weights * p) @ (total - weights))
        return float(weights**2 @ held + pairs - (weights @ held) ** 2) / self.gap**2

    def score_levels(self) -> tuple[Floats, Floats]:
        own = self.other + self.gap
        return np.tile(self.set_levels, (self.size, 1)), np.tile([1 - own, own], (self.size, 1))

    def score_probabilities(self, p: Floats) -> Floats:
        held = self.expected_counts(p)
        return np.column_stack([1 - held, held])

    def scores(self, weights: Floats) -> Scores:
        rates = np.ones(self.size)
        return BitScores(weights / self.gap, self.other * rates, self.gap * rates)

    @property
    def set_levels(self) -> Floats:
        """The scores of a value that the set does not hold, and of one that it holds."""
        return (np.array([0.0, 1.0]) - self.other) / self.gap

    def score_bounds(self) -> tuple[Floats, Floats]:
        ends = np.array([0.0, 1.0]) - self.other
        return np.full(self.size, ends[0] / self.gap), np.full(self.size, ends[1] / self.gap)


class SetEstimator(InclusionEstimator):
    """Uniform sets of d of k values, forced with probability γ to hold the true one (subset selection).

    It also decodes a part of a larger mechanism: ``p`` then sums to the mass of the part's hidden values, and ``total``
    is that with the part's open values, whose reports are sets with probability 1 - γ only.
    """

    def __init__(self, mechanism: InclusionMixture) -> None:
        super().__init__(mechanism, *mechanism.pairs)
        company, share, gamma = mechanism.company, mechanism.share, mechanism.gamma
        free_pair = (1 - gamma) * share * company
        with_own, without_own = mechanism.pairs
        self.each = int(share * self.size)
        self.gamma, self._rest = float(gamma), float(1 - gamma)
        self._pull, self._free = float(gamma * company), float((1 - gamma) * share)
        self._pair_hidden, self._pair_total = float(without_own - free_pair), float(free_pair)
        self._pair_slope = float(with_own - without_own)
        #: What a report in clear of an open value counts for each hidden one.
        self.revealed_score = float((1 - gamma) * (company - share) / (gamma * (1 - company)))

    def scores(self, weights: Floats) -> Scores:
        return self.set_scores(weights)

    def set_scores(self, weights: Floats) -> SubsetScores:
        """Return what a set report adds to Σ weight·frequency."""
        constant = -self.other * float(weights.sum()) / self.gap
        return SubsetScores(weights / self.gap, self.each, self.gamma, constant)

    def law(self, p: Floats, total: float) -> Floats:
        """How often the sets hold each value."""
        return np.asarray(self.gap * p + self._pull * p.sum() + self._free * total)

    def decode(self, counts: Floats, protected: float, total: float) -> Floats:
        """The inverse of ``law``, given the mass of the hidden values."""
        return np.asarray((counts - self._pull * protected - self._free * total) / self.gap)

    def energy(self, p: Floats, total: float) -> Floats:
        """E[φ²; a set] of each value's score φ = (1[held] - b)/(a - b)."""
        sets = self.gamma * float(p.sum()) + self._rest * total
        return np.asarray((self.law(p, total) * (1 - 2 * self.other) + sets * self.other**2) / self.gap**2)

    def set_probabilities(self, p: Floats, total: float) -> Floats:
        """Return the probabilities of ``set_levels`` for each value; they sum to that of a set report."""
        held = self.law(p, total)
        sets = self.gamma * float(p.sum()) + self._rest * total
        return np.column_stack([np.maximum(sets - held, 0.0), held])

    def products(self, p: Floats, total: float) -> Floats:
        """E[φφ'; a set]."""
        level, sets, held = self._pairs(p, total)
        both = level + self._pair_slope * (p[:, None] + p) - self.other * (held[:, None] + held) + sets * self.other**2
        both /= self.gap**2
        both[np.diag_indices(self.size)] = self.energy(p, total)
        return np.asarray(both)

    def quadratic(self, weights: Floats, p: Floats, total: float) -> float:
        """E[(Σ weight·φ)²; a set], without the matrix."""
        level, sets, held = self._pairs(p, total)
        everything = float(weights.sum())
        pairs = level * (everything**2 - weights @ weights)
        pairs += 2 * self._pair_slope * ((weights * p) @ (everything - weights))
        offset = self.other * everything
        squares = weights**2 @ held + pairs - 2 * offset * (weights @ held) + offset**2 * sets
        return float(squares) / self.gap**2

    def _pairs(self, p: Floats, total: float) -> tuple[float, float, Floats]:
        """P(z and w held) less the slope times p_z + p_w; the mass of set reports; P(z held)."""
        protected = float(p.sum())
        level = self._pair_hidden * protected + self._pair_total * total
        return level, self.gamma * protected + self._rest * total, self.law(p, total)


class ResponseEstimator(SetEstimator, HistogramEstimator):
    """Randomized response: the sets are single values, so their counts are the histogram."""

    def scores(self, weights: Floats) -> Scores:
        return HistogramEstimator.scores(self, weights)

    def output_scores(self, weights: Floats) -> Floats:
        return np.asarray((weights - self.other * weights.sum()) / self.gap)

    def adjoint(self, weights: Floats) -> Floats:
        return np.asarray(self.other * weights.sum() + self.gap * weights)
