"""Estimators of the mechanisms for a mean. All of them take time proportional to the number of outputs."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.estimators.base import Estimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.matrix import LeastSquaresEstimator, MatrixEstimator
from sfumato.mechanisms.mean.choice import by_offset
from sfumato.mechanisms.mean.geometric import TruncatedGeometric
from sfumato.mechanisms.mean.shifted_bins import ShiftedBins
from sfumato.mechanisms.mixture import ONE

__all__ = ["GeometricEstimator", "ShiftedBinsEstimator", "mean_estimator"]


class _FewScores(LeastSquaresEstimator):
    """Least squares in which a report has one of few scores for each value, which ``score_values`` lists."""

    def variances(self, p: Floats) -> Floats:
        return np.asarray(np.sum(self.score_probabilities(p) * self.score_values()[0] ** 2, axis=1) - p**2)

    def score_bounds(self) -> tuple[Floats, Floats]:
        scores, _ = self.score_values()
        return scores.min(axis=1), scores.max(axis=1)

    @staticmethod
    def _with_rest(probabilities: Floats) -> Floats:
        """Return probabilities with a first column for all other reports."""
        probabilities = np.maximum(probabilities, 0.0)
        return np.column_stack([np.maximum(1 - probabilities.sum(axis=1), 0.0), probabilities])


# -- bins at a random offset ---------------------------------------------------------------------------------


class ShiftedBinsEstimator(_FewScores):
    """Estimator from bins at a random offset, of least variance at the uniform distribution u.

    The boundary b between the values b and b+1 is a boundary of bins only at the offset r = b mod m. There, a report
    above it is likelier by π_r·γ_r for values above b. So the share of people above b has the score
    s·(1[y ≥ b+m] - T_b) + (mass of u above b) for the reports y of this offset, with s = 1/(π_r·γ_r) and T_b the
    probability of y ≥ b+m given r at u. For the reports of other offsets the score is the mass of u. Frequencies are
    differences of these shares.
    """

    def __init__(self, mechanism: ShiftedBins) -> None:
        size, width, outputs = len(mechanism.domain), mechanism.width, mechanism.outputs
        first, parts = mechanism.first_offsets, mechanism.parts
        if not all(
            share and part.threshold for share, part in zip(mechanism.weights, parts, strict=True) if part.outputs
        ):
            must = "distinguish all values in its reports (its epsilon is 0, or some offsets are impossible)"
            raise NotIdentifiable(must, mechanism)
        self.size, self._width, self._outputs = size, width, outputs
        kind = (np.arange(width) >= first).astype(np.int64)
        shares = [float(share) for share in mechanism.probabilities]
        self._offset_law = np.array([shares[0] / max(first, 1), shares[1] / (width - first)])[kind]
        self._forced = self._offset_law * np.array([float(part.gamma) for part in parts])[kind]
        self._free = self._offset_law * np.array([float((1 - part.gamma) * part.density) for part in parts])[kind]
        self._offsets = np.arange(outputs) % width
        self._scale = 1 / self._forced[np.arange(size - 1) % width]
        self._mean = np.full(size, 1 / size)
        law = self.expected_counts(self._mean)
        self._conditional = law / self._offset_law[self._offsets]
        self._above = self._tails(self._conditional)[width:]

    def _by_offset(self, outputs: Floats) -> Floats:
        """Return the sum over the reports of each offset."""
        return np.asarray(np.bincount(self._offsets, weights=outputs, minlength=self._width), np.float64)

    def _tails(self, outputs: Floats) -> Floats:
        """Return for each output the sum over it and the higher ones of the same offset."""
        table = by_offset(outputs, self._width)
        return np.asarray(np.cumsum(table[::-1], axis=0)[::-1].ravel()[: self._outputs])

    def _cumulated(self, outputs: Floats) -> Floats:
        """Return for each output the sum over it and the lower ones of the same offset."""
        return np.asarray(np.cumsum(by_offset(outputs, self._width), axis=0).ravel()[: self._outputs])

    def expected_counts(self, p: Floats) -> Floats:
        mass = np.concatenate([np.zeros(self._width), np.cumsum(p), np.full(self._width - 1, p.sum())])
        in_bin = mass[self._width :] - mass[: self._outputs]
        return np.asarray(self._forced[self._offsets] * in_bin + self._free[self._offsets] * p.sum())

    def adjoint(self, weights: Floats) -> Floats:
        sums = np.concatenate([[0.0], np.cumsum(self._forced[self._offsets] * weights)])
        free = float(self._free[self._offsets] @ weights)
        return np.asarray(sums[self._width :][: self.size] - sums[: self.size] + free)

    def frequencies(self, fractions: Floats) -> Floats:
        above = self._boundary_means(self._tails(fractions)[self._width :], self._by_offset(fractions))
        return np.asarray(fractions.sum() * self._mean + self._differences(above))

    def _boundary_means(self, tails: Floats, totals: Floats) -> Floats:
        """Return Σ_y law_y·s·(1[y ≥ b+m] - T_b) for each boundary, from the tails of a law and its mass per offset."""
        return np.asarray(self._scale * (tails - self._above * totals[np.arange(self.size - 1) % self._width]))

    @staticmethod
    def _differences(above: Floats) -> Floats:
        """Return for each value the number of the boundary below it, less that of the boundary above it."""
        padded = np.concatenate([[0.0], above, [0.0]])
        return np.asarray(padded[:-1] - padded[1:])

    def output_scores(self, weights: Floats) -> Floats:
        steps = np.concatenate([np.zeros(self._width), self._scale * np.diff(weights)])
        scores = self._cumulated(steps)
        means = self._by_offset(self._conditional * scores)
        return np.asarray(scores - means[self._offsets] + weights @ self._mean)

    def second_moments(self) -> Floats:
        # |φ(y)|² = |u|² + 2·Σ_b B_b(y)² with B_b the score of a boundary less its mean, because u has no differences.
        padding = np.zeros(self._width)
        squared = self._scale**2
        at_least = self._cumulated(np.concatenate([padding, squared * (1 - 2 * self._above)]))
        below = self._by_offset(np.concatenate([padding, squared * self._above**2]))
        return self.adjoint(float(self._mean @ self._mean) + 2 * (at_least + below[self._offsets]))

    def score_values(self) -> tuple[Floats, Floats]:
        above, below = self._scale * (1 - self._above), -self._scale * self._above
        scores = np.column_stack([np.zeros(self.size), self._sides((above, below), (-above, -below))])
        # A report of the true value's bin is above the value's lower boundary and below its upper boundary.
        offsets = np.arange(self.size - 1) % self._width
        free = self._free[offsets] * self._tails(np.ones(self._outputs))[self._width :]
        forced, totals = self._forced[offsets], self._offset_law[offsets]
        law = self._sides((forced + free, totals - forced - free), (free, totals - free))
        return scores + self._mean[:, None], self._with_rest(law)

    def score_probabilities(self, p: Floats) -> Floats:
        tails = self._tails(self.expected_counts(p))[self._width :]
        pair = tails, self._offset_law[np.arange(self.size - 1) % self._width] - tails
        return self._with_rest(self._sides(pair, pair))

    @staticmethod
    def _sides(lower: Iterable[Floats], upper: Iterable[Floats]) -> Floats:
        """Return for each value numbers of the boundary below it, then of the one above it; zero where there is none.

        The reports are on the upper side of a boundary in the first column of two, and on the lower side in the second.
        """
        below, above = (np.insert(numbers, 0, 0.0) for numbers in lower), (np.append(numbers, 0.0) for numbers in upper)
        return np.column_stack([*below, *above])


# -- geometric noise -----------------------------------------------------------------------------------------


class GeometricEstimator(_FewScores):
    """Estimator from geometric noise, the inverse of the matrix Q, which has three diagonals.

    With ratio α, an inner report y has the score (1+α²)/(1-α)² for the value y and -α/(1-α)² for its neighbours. A
    report of an end has the score 1/(1-α) for the end and -α/(1-α) for its neighbour. The law is geometric up to
    2^-45, so the bias is less than the rounding errors of doubles.
    """

    def __init__(self, mechanism: TruncatedGeometric) -> None:
        if mechanism.ratio == ONE:
            raise NotIdentifiable("distinguish all values in its reports (its epsilon is 0)", mechanism)
        self.size = len(mechanism.domain)
        ratio, gap = mechanism.ratio / ONE, (ONE - mechanism.ratio) / ONE
        self._ratio, self._inner, self._end = ratio, gap / (1 + ratio), 1 / (1 + ratio)
        #: Scores of a report for both neighbours of the equal value, and for the equal value. They sum to one.
        self._near = np.full(self.size, -ratio / gap**2)
        self._near[[0, -1]] = -ratio / gap
        self._equal = 1 - self._neighbours * self._near

    @property
    def _neighbours(self) -> Floats:
        """Number of neighbours of each value."""
        neighbours = np.full(self.size, 2.0)
        neighbours[[0, -1]] = 1.0
        return neighbours

    def _decayed(self, p: Floats) -> Floats:
        """Return Σ_x α^|x-y|·p_x for every y."""
        return self._decayed_upwards(p) + self._decayed_upwards(p[::-1])[::-1] - p

    def _decayed_upwards(self, p: Floats) -> Floats:
        """Return Σ_x α^(y-x)·p_x over x ≤ y for every y; each round doubles the number of terms."""
        total, shift, ratio = p.astype(np.float64), 1, self._ratio
        while shift < self.size:
            total[shift:] += ratio * total[:-shift].copy()
            shift, ratio = 2 * shift, ratio * ratio
        return total

    def _scaled(self, outputs: Floats) -> Floats:
        """Return numbers of the outputs times the probability of a report for the equal value."""
        scaled = self._inner * outputs
        scaled[[0, -1]] = self._end * outputs[[0, -1]]
        return np.asarray(scaled)

    def expected_counts(self, p: Floats) -> Floats:
        return self._scaled(self._decayed(p))

    def adjoint(self, weights: Floats) -> Floats:
        return self._decayed(self._scaled(weights))

    def frequencies(self, fractions: Floats) -> Floats:
        return np.asarray(fractions + self._second_differences(self._near * fractions))

    def output_scores(self, weights: Floats) -> Floats:
        return np.asarray(weights + self._near * self._second_differences(weights))

    @staticmethod
    def _second_differences(numbers: Floats) -> Floats:
        """Return the sum over the neighbours of each number less the number; the matrix of this map is symmetric."""
        return np.asarray(np.diff(np.diff(numbers), prepend=0.0, append=0.0))

    def second_moments(self) -> Floats:
        return self.adjoint(self._equal**2 + self._neighbours * self._near**2)

    def score_values(self) -> tuple[Floats, Floats]:
        scores = np.column_stack([np.zeros(self.size), self._around(self._equal, self._near)])
        equal = self._scaled(np.ones(self.size))
        return scores, self._with_rest(self._around(equal, self._ratio * equal))

    def score_probabilities(self, p: Floats) -> Floats:
        law = self.expected_counts(p)
        return self._with_rest(self._around(law, law))

    @staticmethod
    def _around(equal: Floats, near: Floats) -> Floats:
        """Return for each value the number of the equal output, of the one below and of the one above; zero if none."""
        return np.column_stack([equal, np.insert(near[:-1], 0, 0.0), np.append(near[1:], 0.0)])


@functools.singledispatch
def mean_estimator(mechanism: Mechanism) -> Estimator:
    """Return the estimator of a mechanism for a mean; by default, that of a matrix, which has few columns."""
    return MatrixEstimator.of(mechanism)


mean_estimator.register(ShiftedBins, ShiftedBinsEstimator)
mean_estimator.register(TruncatedGeometric, GeometricEstimator)
