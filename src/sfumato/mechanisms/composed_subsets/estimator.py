"""Estimator of composed subsets: the estimate from the values, corrected towards the estimate from the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.estimators.base import Estimator
from sfumato.mechanisms.estimators.forms import Cohort
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.limits import ScoreLaw, relative_spread
from sfumato.mechanisms.estimators.mixture import SubsetsEstimator
from sfumato.mechanisms.estimators.scores import StretchedScores

__all__ = ["ComposedSubsetsEstimator"]

#: Variance below which it counts as zero; rounding leaves such values.
_NO_NOISE = 1e-12


class ComposedSubsetsEstimator(Estimator):
    """Estimator from counts of values, then of blocks: p̂ = p̂₁ + D·r, r = q̂ - S·p̂₁ (see ``_best_correction``).

    The estimates p̂₁ and q̂ are independent given the true value. So E[r_i p̂₁_z] is p_z·1[z in i] minus the sum of
    E[p̂₁_y p̂₁_z] over the values y of block i.
    """

    def __init__(self, mechanism: ComposedSubsets) -> None:
        if 0 in (mechanism.values.threshold, mechanism.labels.threshold):
            raise NotIdentifiable("distinguish all values in its reports (its epsilon is too small)", mechanism)
        self.size = len(mechanism.domain)
        self._block_of, self._blocks = mechanism.block_of, mechanism.blocks
        self._sizes = np.bincount(self._block_of).astype(np.float64)
        self._values, self._labels = SubsetsEstimator(mechanism.values), SubsetsEstimator(mechanism.labels)
        self._moments, self._label_moments = _PairMoments.of(self._values), _PairMoments.of(self._labels)
        self._correction = self._best_correction()

    def _masses(self, weights: Floats) -> Floats:
        """Return the sum of weights in each block."""
        return np.asarray(np.bincount(self._block_of, weights=weights, minlength=self._blocks), np.float64)

    def frequencies(self, fractions: Floats) -> Floats:
        alone = self._values.frequencies(fractions[: self.size])
        of_blocks = self._labels.frequencies(fractions[self.size :])
        return np.asarray(alone + (self._correction @ (of_blocks - self._masses(alone)))[self._block_of])

    def expected_counts(self, p: Floats) -> Floats:
        return np.concatenate([self._values.expected_counts(p), self._labels.expected_counts(self._masses(p))])

    def _best_correction(self) -> Floats:
        """Return D of p̂ = p̂₁ + D·(q̂ - S·p̂₁), with one row for all values of a block; S sums over blocks.

        Both terms in brackets estimate the blocks' frequencies, so their difference r has mean zero and the estimate is
        unbiased for every D. The best D is -Cov(p̂₁, r)·Var(r)⁻¹. At the uniform distribution Cov(p̂₁) = α(I - 11'/k),
        and Cov(p̂₁, q̂) = (I - 11'/k)S'/k, because the reports are independent given the value. The entries of r sum to
        zero, so any inverse of Var(r) on such vectors suffices.
        """
        size, sizes = self.size, self._sizes
        alpha = self._moments.diagonal + self._moments.diagonal_slope / size
        masses = sizes / size
        residual = self._label_moments.matrix(masses) - np.outer(masses, masses)
        residual += (alpha - 2 / size) * (np.diag(sizes) - np.outer(sizes, sizes) / size)
        spread = float(np.trace(residual))
        if spread < _NO_NOISE:
            return np.zeros((self._blocks, self._blocks))  # both estimates are certain and need no correction
        inverse = np.linalg.inv(residual + spread / self._blocks**2)
        return np.asarray((alpha - 1 / size) * (inverse - sizes @ inverse / size))

    # -- errors of the estimate ------------------------------------------------------------------------------

    def _moved(self, p: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (in_block, free, slope) of E[(D·r)_i p̂₁_z] = D_ij·in_block_z + free_i + slope_i·p_z, z in block j."""
        moments, towards = self._moments, self._correction @ self._sizes
        in_block = p - moments.diagonal - moments.diagonal_slope * p
        free = -moments.both * towards - moments.slope * (self._correction @ self._masses(p))
        return in_block, free, -moments.slope * towards

    def _corrections(self, p: Floats) -> Floats:
        """Return E[(D·r)(D·r)'], with a row and a column per block."""
        # E[r r'], where q̂ and S·p̂₁ are independent given the value.
        masses = self._masses(p)
        residuals = self._label_moments.matrix(masses) - 2 * np.diag(masses) + self._moments.matrix(masses, self._sizes)
        return np.asarray(self._correction @ residuals @ self._correction.T)

    def second_moments(self) -> Floats:
        of_values, of_labels = self._moments, self._label_moments
        sizes, D, size = self._sizes, self._correction, self.size
        # Σ_x E[p̂_x²] = Σ E[p̂₁²] + 2·Σ E[p̂₁·(D r)] + Σ_j size_j·E[(D r)_j²], for a true value of each block.
        alone = size * (of_values.diagonal + of_values.both) + of_values.diagonal_slope + 2 * of_values.slope
        diagonal, towards, back = np.diag(D), D @ sizes, sizes @ D
        moved = diagonal * (1 - of_values.diagonal_slope) - of_values.slope * (back + towards)
        moved -= of_values.diagonal * (diagonal @ sizes) + of_values.both * (sizes @ towards)
        weights = D.T @ (sizes[:, None] * D)
        diagonal_weights = np.diag(weights)
        spread = diagonal_weights * (of_labels.diagonal_slope + of_values.diagonal_slope - 2)
        spread += 2 * of_labels.slope * weights.sum(axis=1) + 2 * of_values.slope * (weights @ sizes)
        spread += diagonal_weights @ (of_labels.diagonal + of_values.diagonal * sizes)
        spread += of_labels.both * weights.sum() + of_values.both * (sizes @ weights @ sizes)
        return np.asarray((alone + 2 * moved + spread)[self._block_of])

    def variances(self, p: Floats) -> Floats:
        moments = self._moments
        alone = moments.diagonal + moments.both + (moments.diagonal_slope + 2 * moments.slope) * p
        in_block, free, slope = self._moved(p)
        moved = np.diag(self._correction)[self._block_of] * in_block + free[self._block_of] + slope[self._block_of] * p
        return np.asarray(alone + 2 * moved + np.diag(self._corrections(p))[self._block_of] - p**2)

    def covariance(self, p: Floats) -> Floats:
        in_block, free, slope = self._moved(p)
        moved = self._correction[:, self._block_of] * in_block + free[:, None] + np.outer(slope, p)
        crossed = moved[self._block_of]
        corrections = self._corrections(p)[self._block_of][:, self._block_of]
        return np.asarray(self._moments.matrix(p) + crossed + crossed.T + corrections - np.outer(p, p))

    def variance(self, weights: Floats, p: Floats) -> float:
        moments, total, mean = self._moments, float(weights.sum()), float(weights @ p)
        alone = float(weights**2 @ (moments.diagonal + moments.diagonal_slope * p))
        alone += moments.both * total**2 + 2 * moments.slope * total * mean
        in_block, free, slope = self._moved(p)
        by_block = self._masses(weights)
        moved = by_block @ self._correction @ self._masses(weights * in_block)
        moved += by_block @ free * total + by_block @ slope * mean
        return alone + 2 * float(moved) + float(by_block @ self._corrections(p) @ by_block) - mean**2

    # -- the scores of one report ------------------------------------------------------------------------------

    def score_values(self) -> tuple[Floats, Floats]:
        """Return the scores of p̂₁; the correction by blocks changes little except their variance."""
        return self._values.score_values()

    def score_probabilities(self, p: Floats) -> Floats:
        return self._values.score_probabilities(p)

    def score_laws(self, p: Floats, n: int) -> Sequence[ScoreLaw]:
        """Return the law of p̂₁, with the variance of the corrected estimate."""
        (law,) = super().score_laws(p, n)
        return [replace(law, spread=relative_spread(self.variances(p), self._values.variances(p)))]

    def cohorts(self, weights: Floats, parts: Floats, n: int) -> Sequence[Cohort]:
        """Return the law of p̂₁, with the variance of the corrected estimate."""
        scores = self._values.set_scores(weights)
        moments, means, total = self._moments, parts @ weights, float(weights.sum())
        alone = weights**2 @ (moments.diagonal + moments.diagonal_slope * parts.T)
        alone = alone + moments.both * total**2 + 2 * moments.slope * total * means
        exact = np.array([self.variance(weights, part) for part in parts])
        stretched = StretchedScores(scores, means, relative_spread(exact, alone - means**2))
        return [Cohort(n, 1.0, means, exact + means**2, stretched, parts)]

    # -- the reach of one report -------------------------------------------------------------------------------

    def score_bounds(self) -> tuple[Floats, Floats]:
        # An estimate is a sum over the members of both sets, so it is greatest for the members of greatest score.
        ends = np.array([[self._end(block, sign) for block in range(self._blocks)] for sign in (-1, 1)])
        return -ends[0][self._block_of], ends[1][self._block_of]

    def _end(self, block: int, sign: int) -> float:
        """Return the greatest sign·estimate for a value of this block."""
        row, values, labels = sign * self._correction[block], self._values, self._labels
        # The other values of each block, and last the value itself.
        counts = np.append(self._sizes - (np.arange(self._blocks) == block), 1)
        each = np.append(-row, sign - row[block])
        of_values = _greatest_sum(each, counts, values.each) - values.other * float(each @ counts)
        of_labels = _greatest_sum(row, np.ones(self._blocks), labels.each) - labels.other * float(row.sum())
        return of_values / values.gap + of_labels / labels.gap


def _greatest_sum(each: Floats, counts: Floats, size: int) -> float:
    """Return the greatest sum over a set of this size, of numbers that occur ``counts`` times."""
    order = np.argsort(-each)
    before = np.cumsum(counts[order]) - counts[order]
    members = np.clip(size - before, 0, counts[order])
    return float(each[order] @ members)


@dataclass(frozen=True)
class _PairMoments:
    """Second moments E[p̂p̂'] of subset selection's estimate from one report.

    They are diag(diagonal + diagonal_slope·p) + both·11' + slope·(1p' + p1').
    """

    diagonal: float
    diagonal_slope: float
    both: float
    slope: float

    @classmethod
    def of(cls, estimator: SubsetsEstimator) -> _PairMoments:
        """Return the second moments of an estimator."""
        # p̂_x = (1[x in set] - b)/(a-b); two values are in the set with probability c₀ + (p_x + p_y)(c₁ - c₀).
        inclusion = estimator.inclusion
        assert inclusion is not None
        other, gap, without_true = inclusion.other, inclusion.gap, inclusion.without_true
        step = inclusion.with_true - without_true
        scaled = (other - without_true, gap - 2 * step, without_true - other**2, step - other * gap)
        return cls(*(float(part / gap**2) for part in scaled))

    def matrix(self, p: Floats, sizes: Floats | None = None) -> Floats:
        """Return the matrix at p, or with ``sizes`` that of sums over blocks, where p are the blocks' frequencies."""
        ones = np.ones(len(p)) if sizes is None else sizes
        crossed = np.outer(ones, p)
        return np.asarray(
            np.diag(self.diagonal * ones + self.diagonal_slope * p)
            + self.both * np.outer(ones, ones)
            + self.slope * (crossed + crossed.T)
        )
