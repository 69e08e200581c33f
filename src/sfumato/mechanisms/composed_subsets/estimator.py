"""The estimator of composed subsets: the values' own estimate, moved towards that of the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sfumato._core import Floats
from sfumato.errors import InvalidInput
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.estimators.base import Estimator
from sfumato.mechanisms.estimators.forms import Cohort
from sfumato.mechanisms.estimators.limits import ScoreLaw, relative_spread
from sfumato.mechanisms.estimators.scores import StretchedScores, SubsetScores
from sfumato.mechanisms.subset.mechanism import SubsetSelection

__all__ = ["ComposedSubsetsEstimator"]


class ComposedSubsetsEstimator(Estimator):
    """Counts of values, then of blocks: p̂ = p̂₁ + D·r, r = q̂ - S·p̂₁ (see ``ComposedSubsets.correction``).

    With the second moments of p̂₁ and q̂, which are independent given the true value,
    E[r_i p̂₁_z] = p_z·1[z in i] - (the sum of E[p̂₁_y p̂₁_z] over the values y of block i).
    """

    def __init__(self, mechanism: ComposedSubsets) -> None:
        if mechanism.moments is None:
            raise InvalidInput("estimate", "the mechanism", "tell values apart (its epsilon is too small)", mechanism)
        self.size = len(mechanism.domain)
        self._mechanism = mechanism
        self._moments = mechanism.moments[0]
        self._block_of, self._blocks = mechanism.block_of, mechanism.blocks
        self._correction, self._sizes = mechanism.correction, mechanism.block_sizes
        (self._other, self._gap), (self._label_other, self._label_gap) = (
            (float(part.inclusion[1]), float(part.inclusion[0] - part.inclusion[1]))
            for part in (mechanism.values, mechanism.labels)
        )

    def _masses(self, weights: Floats) -> Floats:
        return np.asarray(np.bincount(self._block_of, weights=weights, minlength=self._blocks), np.float64)

    def frequencies(self, shares: Floats) -> Floats:
        alone = (shares[: self.size] - self._other) / self._gap
        of_blocks = (shares[self.size :] - self._label_other) / self._label_gap
        return np.asarray(alone + (self._correction @ (of_blocks - self._masses(alone)))[self._block_of])

    def expected_counts(self, p: Floats) -> Floats:
        of_blocks = self._label_other + self._label_gap * self._masses(p)
        return np.concatenate([self._other + self._gap * p, of_blocks])

    # -- its errors ------------------------------------------------------------------------------------------

    def _moved(self, p: Floats) -> tuple[Floats, Floats, Floats]:
        """E[(D·r)_i p̂₁_z] = D_ij·own_z + free_i + slope_i·p_z, j the block of z: (own, free, slope)."""
        moments, towards = self._moments, self._correction @ self._sizes
        own = p - moments.own - moments.own_slope * p
        free = -moments.both * towards - moments.slope * (self._correction @ self._masses(p))
        return own, free, -moments.slope * towards

    def _corrections(self, p: Floats) -> Floats:
        """E[(D·r)(D·r)']: one row and column a block."""
        residuals = self._mechanism.residuals(self._masses(p))
        return np.asarray(self._correction @ residuals @ self._correction.T)

    def variances(self, p: Floats) -> Floats:
        moments = self._moments
        alone = moments.own + moments.both + (moments.own_slope + 2 * moments.slope) * p
        own, free, slope = self._moved(p)
        moved = np.diag(self._correction)[self._block_of] * own + free[self._block_of] + slope[self._block_of] * p
        return np.asarray(alone + 2 * moved + np.diag(self._corrections(p))[self._block_of] - p**2)

    def covariance(self, p: Floats) -> Floats:
        own, free, slope = self._moved(p)
        moved = self._correction[:, self._block_of] * own + free[:, None] + np.outer(slope, p)
        crossed = moved[self._block_of]
        corrections = self._corrections(p)[self._block_of][:, self._block_of]
        return np.asarray(self._moments.matrix(p) + crossed + crossed.T + corrections - np.outer(p, p))

    def variance(self, weights: Floats, p: Floats) -> float:
        moments, total, mean = self._moments, float(weights.sum()), float(weights @ p)
        alone = float(weights**2 @ (moments.own + moments.own_slope * p))
        alone += moments.both * total**2 + 2 * moments.slope * total * mean
        own, free, slope = self._moved(p)
        by_block = self._masses(weights)
        moved = by_block @ self._correction @ self._masses(weights * own)
        moved += by_block @ free * total + by_block @ slope * mean
        return alone + 2 * float(moved) + float(by_block @ self._corrections(p) @ by_block) - mean**2

    # -- the scores of one report ------------------------------------------------------------------------------

    def score_levels(self) -> tuple[Floats, Floats]:
        """Return the scores of p̂₁, which the correction by blocks changes little but for their variance."""
        own = self._other + self._gap
        levels = (np.array([0.0, 1.0]) - self._other) / self._gap
        return np.tile(levels, (self.size, 1)), np.tile([1 - own, own], (self.size, 1))

    def score_probabilities(self, p: Floats) -> Floats:
        held = self._other + self._gap * p
        return np.column_stack([1 - held, held])

    def score_laws(self, p: Floats, n: int) -> Sequence[ScoreLaw]:
        """Return the law of p̂₁, with the variance of the corrected estimate."""
        (law,) = super().score_laws(p, n)
        held = self._other + self._gap * p
        alone = held * (1 - held) / self._gap**2
        return [replace(law, spread=relative_spread(self.variances(p), alone))]

    def cohorts(self, weights: Floats, parts: Floats, n: int) -> Sequence[Cohort]:
        """Return the law of p̂₁, with the variance of the corrected estimate."""
        values = self._mechanism.values
        constant = -self._other * float(weights.sum()) / self._gap
        scores = SubsetScores(weights / self._gap, values.size, float(values.gamma), constant)
        moments, means, total = self._moments, parts @ weights, float(weights.sum())
        alone = weights**2 @ (moments.own + moments.own_slope * parts.T)
        alone = alone + moments.both * total**2 + 2 * moments.slope * total * means
        exact = np.array([self.variance(weights, part) for part in parts])
        stretched = StretchedScores(scores, means, relative_spread(exact, alone - means**2))
        return [Cohort(n, 1.0, means, exact + means**2, stretched, parts)]

    # -- the reach of one report -------------------------------------------------------------------------------

    def score_bounds(self) -> tuple[Floats, Floats]:
        # An estimate is a sum over the members of both sets: greatest for the members that count most.
        ends = np.array([[self._end(block, sign) for block in range(self._blocks)] for sign in (-1, 1)])
        return -ends[0][self._block_of], ends[1][self._block_of]

    def _end(self, block: int, sign: int) -> float:
        """The most that sign·estimate can be, for a value of this block."""
        row, mechanism = sign * self._correction[block], self._mechanism
        # The value itself, and the values of each block but for it.
        counts = np.append(self._sizes - (np.arange(self._blocks) == block), 1)
        each = np.append(-row, sign - row[block])
        of_values = _most(each, counts, mechanism.values) - self._other * float(each @ counts)
        of_labels = _most(row, np.ones(self._blocks), mechanism.labels) - self._label_other * float(row.sum())
        return of_values / self._gap + of_labels / self._label_gap


def _most(each: Floats, counts: Floats, part: SubsetSelection) -> float:
    """The greatest sum over a set of the part's size, of numbers that occur ``counts`` times."""
    order = np.argsort(-each)
    before = np.cumsum(counts[order]) - counts[order]
    taken = np.clip(part.size - before, 0, counts[order])
    return float(each[order] @ taken)
