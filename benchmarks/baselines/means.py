"""Published mechanisms for a mean: one bit, piecewise, hybrid, and geometric noise.

Each mechanism is a channel with finitely many outputs and one score per output. The score of a report is an unbiased
estimate of the value, so the estimate of a mean is the mean of the scores, and its variance is exact.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["Geometric", "Hybrid", "MeanMechanism", "OneBit", "Piecewise", "SteepBit", "least_variance"]

Floats = npt.NDArray[np.float64]

#: Fraction of the greatest eigenvalue below which an eigenvalue counts as zero.
_RANK = 1e-11
#: Least ε at which the hybrid mechanism mixes in the piecewise mechanism (Wang et al. 2019, eq. 6), about 0.61.
_ROOT = math.sqrt(241)
HYBRID_EPSILON = math.log((2 * math.cbrt(6353 - 405 * _ROOT) + 2 * math.cbrt(6353 + 405 * _ROOT) - 5) / 27)


def least_variance(matrix: Floats, workload: Floats, prior: Floats) -> float:
    """Return the least variance per report of unbiased linear estimates of ``workload @ p`` from a channel.

    It is tr(W J⁻ Wᵀ) - |Wp|² with J = Σ_y Q_y Q_yᵀ / q_y, or infinite if a row of W is not in the range of J.
    """
    workload = np.atleast_2d(workload)
    law = prior @ matrix
    columns = matrix[:, law > 0]
    information = (columns / law[law > 0]) @ columns.T
    values, vectors = np.linalg.eigh(information)
    used = values > _RANK * values[-1]
    coordinates = workload @ vectors
    if np.abs(coordinates[:, ~used]).max(initial=0.0) > 1e-6 * np.abs(workload).max():
        return math.inf
    return float((coordinates[:, used] ** 2 / values[used]).sum() - ((workload @ prior) ** 2).sum())


class MeanMechanism:
    """A channel with one score per output; the mean of the scores of reports estimates the mean of the values.

    Attributes
    ----------
    values : ndarray
        The number of each value of the domain.
    matrix : ndarray
        Probability of each output (column) for each value (row).
    scores : ndarray
        Unbiased estimate of a person's number from each output.
    """

    def __init__(self, values: Floats, matrix: Floats, scores: Floats) -> None:
        self.values = np.asarray(values, dtype=np.float64)
        self.matrix = matrix
        self.scores = scores

    def variance(self, prior: Floats) -> float:
        """Return the variance of the score of one report of a person drawn from a distribution."""
        return float(prior @ self.matrix @ self.scores**2 - (prior @ self.values) ** 2)

    def least_variance(self, prior: Floats) -> float:
        """Return the least variance that other unbiased scores for the same reports can have at a distribution."""
        return least_variance(self.matrix, self.values, prior)


class OneBit(MeanMechanism):
    """The one-bit mechanism of Duchi, Jordan and Wainwright (2013; one-dimensional as in Wang et al. 2019, alg. 1).

    The probability of the bit is linear in the value and reaches the two levels that ε allows at the ends.
    """

    def __init__(self, values: Floats, epsilon: float) -> None:
        self.middle, self.half, positions = _normalised(values)
        self.reach = 1 / math.tanh(epsilon / 2)
        chance = 0.5 + positions / (2 * self.reach)
        scores = self.middle + self.half * self.reach * np.array([-1.0, 1.0])
        super().__init__(values, np.stack([1 - chance, chance], axis=1), scores)


class SteepBit(MeanMechanism):
    """One bit whose probability is linear in the value and as steep as a metric policy allows.

    The policy allows the ratio exp(ε·|v - v'|) between the values v and v'. Unbiased estimates from one bit need a
    probability that is linear in the value. The slope is limited where the probability is least.
    """

    def __init__(self, values: Floats, epsilon_per_unit: float) -> None:
        values = np.asarray(values, dtype=np.float64)
        middle, half, positions = _normalised(values)
        # (1/2 - s + s·δ) / (1/2 - s) <= exp(ε·δ·half) for every distance δ from the least position; likewise above.
        steps = np.concatenate([positions + 1, 1 - positions])
        growth = np.expm1(epsilon_per_unit * half * steps[steps > 0])
        slope = float((growth / (2 * (steps[steps > 0] + growth))).min())
        chance = 0.5 + slope * positions
        super().__init__(values, np.stack([1 - chance, chance], axis=1), middle + half * np.array([-0.5, 0.5]) / slope)


class Piecewise(MeanMechanism):
    """The piecewise mechanism (Wang et al. 2019, alg. 2) on a finite domain.

    The published report is a point of [-C, C]: uniform in a window around the value with the greater density, else
    uniform outside it. The ends of all windows cut [-C, C] into intervals. Within an interval the point does not depend
    on the value, so the interval is a sufficient statistic. The score of an interval is its midpoint.
    """

    def __init__(self, values: Floats, epsilon: float) -> None:
        self.middle, self.half, self.positions = _normalised(values)
        root = math.exp(epsilon / 2)
        reach = (root + 1) / (root - 1)
        self._root, self.reach = root, reach
        left = (reach + 1) / 2 * self.positions - (reach - 1) / 2
        right = left + reach - 1
        ends = np.unique(np.round(np.concatenate([[-reach, reach], left, right]), 12))
        centres, lengths = (ends[1:] + ends[:-1]) / 2, np.diff(ends)
        inside = (left[:, None] < centres) & (centres < right[:, None])
        weights = np.where(inside, math.exp(epsilon), 1.0) * lengths
        matrix = weights / weights.sum(axis=1, keepdims=True)
        super().__init__(values, matrix, self.middle + self.half * centres)
        self.lengths = self.half * lengths

    def published_variance(self, prior: Floats) -> float:
        """Return the variance of the continuous report (Wang et al. 2019, lemma 1), with that of the values."""
        root = self._root
        noise = self.positions**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
        return float(self.half**2 * (prior @ noise) + _spread(self.values, prior))


class Hybrid(MeanMechanism):
    """The hybrid mechanism (Wang et al. 2019, sec. III-C): the piecewise mechanism with probability β, else one bit.

    β is 1 - exp(-ε/2) above ε = 0.61 and 0 below. Above it, the variance given the value does not depend on the value.
    """

    def __init__(self, values: Floats, epsilon: float) -> None:
        self.share = -math.expm1(-epsilon / 2) if epsilon > HYBRID_EPSILON else 0.0
        self.parts = Piecewise(values, epsilon), OneBit(values, epsilon)
        piecewise, bit = self.parts
        if self.share == 0:
            super().__init__(values, bit.matrix, bit.scores)
        else:
            matrix = np.concatenate([self.share * piecewise.matrix, (1 - self.share) * bit.matrix], axis=1)
            super().__init__(values, matrix, np.concatenate([piecewise.scores, bit.scores]))

    def published_variance(self, prior: Floats) -> float:
        """Return the variance of the report with the continuous piecewise mechanism."""
        piecewise, bit = self.parts
        return self.share * piecewise.published_variance(prior) + (1 - self.share) * bit.variance(prior)


class Geometric(MeanMechanism):
    """Two-sided geometric noise on consecutive integers, for metric policies (Ghosh et al. 2012).

    Reports outside the domain are replaced by its ends. They have proportional likelihoods, so nothing is lost. The
    scores of the ends are the means of the reports that they replace.
    """

    def __init__(self, values: Floats, epsilon_per_unit: float) -> None:
        values = np.asarray(values, dtype=np.float64)
        if not np.array_equal(np.diff(values), np.ones(len(values) - 1)):
            raise ValueError("geometric noise needs consecutive integers")
        self.ratio = math.exp(-epsilon_per_unit)
        matrix = self.ratio ** np.abs(np.subtract.outer(values, values)) / (1 + self.ratio)
        matrix[:, 1:-1] *= 1 - self.ratio
        beyond = self.ratio / (1 - self.ratio)
        scores = values.copy()
        scores[0] -= beyond
        scores[-1] += beyond
        super().__init__(values, matrix, scores)

    def published_variance(self, prior: Floats) -> float:
        """Return the variance of a report that is not replaced by an end."""
        return 2 * self.ratio / (1 - self.ratio) ** 2 + _spread(self.values, prior)


def _normalised(values: Floats) -> tuple[float, float, Floats]:
    """Return the middle and half the length of the range of values, and the positions of the values in [-1, 1]."""
    values = np.asarray(values, dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    middle, half = (low + high) / 2, (high - low) / 2
    return middle, half, (values - middle) / half


def _spread(values: Floats, prior: Floats) -> float:
    """Return the variance of the values."""
    return float(prior @ values**2 - (prior @ values) ** 2)
