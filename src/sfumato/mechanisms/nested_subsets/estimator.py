"""Estimator of nested subsets: four scores, by whether a value's block is high and whether the value is in its set."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.estimators.base import Estimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.nested_subsets.mechanism import NestedSubsets, likelihood_moments

__all__ = ["NestedSubsetsEstimator"]


class NestedSubsetsEstimator(Estimator):
    """Estimator from 2k + B counts: values in sets of high blocks, values in sets of low blocks, and high blocks.

    Let v be the likelihoods relative to the uniform law, M their mean over the value's block, and between and within
    the two ``spreads``. Then p̂_x is the mean of φ_x = (v_x - M)/within + (M - 1)/between + 1/k.

    Reports of a true value w follow the uniform law weighted by v_w. So E[φ_x φ_z | w] is a mean of φ_x φ_z v_w over
    uniform sets. It depends only on which of the three values, and which of their blocks, are equal.
    """

    def __init__(self, mechanism: NestedSubsets) -> None:
        self._spreads = _spreads(mechanism)
        if 0 in self._spreads:
            raise NotIdentifiable("distinguish all values in its reports (its epsilon is too small)", mechanism)
        between, within = map(float, self._spreads)
        self.size = len(mechanism.domain)
        self._block_of, self._blocks, self._block_size = mechanism.block_of, mechanism.blocks, mechanism.block_size
        self._high, self._sizes = mechanism.high, mechanism.sizes
        # Arrays are indexed by the block (high or low), then by the value (in its set or not).
        self._likelihoods: Floats = np.array(
            [[float(likelihood) for likelihood in pair] for pair in mechanism.likelihoods]
        )
        inside = np.array(self._sizes)[:, None] / self._block_size
        self._means = (self._likelihoods * np.hstack([inside, 1 - inside])).sum(axis=1)
        centred = self._likelihoods - self._means[:, None]
        self._between_scores = (self._means - 1) / between + 1 / self.size
        self._scores: Floats = centred / within + self._between_scores[:, None]
        score, likelihood = self._scores, self._likelihoods
        # E[φ_x φ_z v_w] for x = z, for two values of one block and for two of different blocks. Each has three cases: w
        # is x or z; w is another value of one of their blocks; w is of another block.
        self._squares = (
            self._mean(("aaa", score, score, likelihood)),
            self._mean(("aab", score, score, likelihood)),
            self._mean(("aa", score, score), ("a", likelihood)),
        )
        self._within = (
            self._mean(("aba", score, score, likelihood)),
            self._mean(("abc", score, score, likelihood)),
            self._mean(("ab", score, score), ("a", likelihood)),
        )
        self._across = (
            self._mean(("aa", score, likelihood), ("a", score)),
            self._mean(("ab", score, likelihood), ("a", score)),
            self._mean(("a", score), ("a", score), ("a", likelihood)),
        )

    # -- the estimate ----------------------------------------------------------------------------------------

    def frequencies(self, fractions: Floats) -> Floats:
        in_high, in_low, high = np.split(fractions, [self.size, 2 * self.size])
        (high_in, high_out), (low_in, low_out) = self._scores
        of_block = low_out + (high_out - low_out) * high
        return np.asarray((high_in - high_out) * in_high + (low_in - low_out) * in_low + of_block[self._block_of])

    def expected_counts(self, p: Floats) -> Floats:
        masses = self._masses(p)
        mass = masses[self._block_of]
        rows = []
        for status in (0, 1):
            indicator = np.zeros((2, 2))
            indicator[status, 0] = 1
            at_value, in_group = (
                self._mean(("aa", indicator, self._likelihoods)),
                self._mean(("ab", indicator, self._likelihoods)),
            )
            other = self._mean(("a", indicator), ("a", self._likelihoods))
            rows.append(at_value * p + in_group * (mass - p) + other * (1 - mass))
        high = self._high / self._blocks
        # Given a value of the block, it is high with probability f·M_H. The other high blocks are spread evenly over
        # the other blocks.
        true_block_high = high * self._means[0]
        other_block_high = (self._high - true_block_high) / (self._blocks - 1)
        return np.concatenate([*rows, other_block_high + (true_block_high - other_block_high) * masses])

    def score_values(self) -> tuple[Floats, Floats]:
        first = np.zeros(self.size)
        first[0] = 1.0
        at_value = self.score_probabilities(first)[0]  # the same for every value
        return np.tile(self._scores.ravel(), (self.size, 1)), np.tile(at_value, (self.size, 1))

    def score_probabilities(self, p: Floats) -> Floats:
        in_high, in_low, high = np.split(self.expected_counts(p), [self.size, 2 * self.size])
        high = high[self._block_of]
        return np.maximum(np.column_stack([in_high, high - in_high, in_low, 1 - high - in_low]), 0.0)

    def score_bounds(self) -> tuple[Floats, Floats]:
        # If the sets of low blocks are empty, no value is in one.
        possible = self._scores.ravel() if self._sizes[1] else self._scores.ravel()[[0, 1, 3]]
        return np.full(self.size, possible.min()), np.full(self.size, possible.max())

    # -- errors of the estimate ------------------------------------------------------------------------------

    def second_moments(self) -> Floats:
        # Σ_x E φ_x² is the trace of E[v v']⁻¹ at the uniform distribution; by symmetry it is the same for every value.
        between, within = self._spreads
        trace = Fraction(1, self.size) + (self._blocks - 1) / between + (self.size - self._blocks) / within
        return np.full(self.size, float(trace))

    def _masses(self, weights: Floats) -> Floats:
        """Return the sum of weights in each block."""
        return np.asarray(np.bincount(self._block_of, weights=weights, minlength=self._blocks), np.float64)

    def variances(self, p: Floats) -> Floats:
        at_value, in_group, other = self._squares
        mass = self._masses(p)[self._block_of]
        return np.asarray(at_value * p + in_group * (mass - p) + other * (1 - mass) - p**2)

    def covariance(self, p: Floats) -> Floats:
        mass, ours = self._masses(p)[self._block_of], p[:, None] + p
        at_value, in_group, other = self._within
        within = at_value * ours + in_group * (mass - ours) + other * (1 - mass)
        at_value, in_group, other = self._across
        both = mass[:, None] + mass
        across = at_value * ours + in_group * (both - ours) + other * (1 - both)
        covariance = np.where(self._block_of[:, None] == self._block_of, within, across) - np.outer(p, p)
        covariance[np.diag_indices(self.size)] = self.variances(p)
        return covariance

    def variance(self, weights: Floats, p: Floats) -> float:
        squares, masses = weights**2, self._masses(p)
        total, weighed = self._masses(weights), self._masses(weights * p)
        # Sums over pairs of one block, then of different blocks, with the sum over the second value taken first.
        pairs, ours = total**2 - self._masses(squares), 2 * (weighed * total - self._masses(squares * p))
        at_value, in_group, other = self._within
        within = at_value * ours + in_group * (masses * pairs - ours) + other * (1 - masses) * pairs
        rest = total.sum() - total
        ours_across, both = 2 * float(weighed @ rest), 2 * float((masses * total) @ rest)
        at_value, in_group, other = self._across
        across = at_value * ours_across + in_group * (both - ours_across) + other * (float(total @ rest) - both)
        alone = float(squares @ (self.variances(p) + p**2))
        return alone + float(within.sum()) + across - float(weights @ p) ** 2

    # -- means over uniform sets -------------------------------------------------------------------------------

    def _mean(self, *blocks: Any) -> float:
        """Return the mean of a product of tables over uniform sets.

        Each block is given by a string with a letter per table, then the tables; equal letters are the same value. If
        there are not enough values or blocks, the result is zero and is never used.
        """
        total = 0.0
        for statuses in itertools.product((0, 1), repeat=len(blocks)):
            product = _chance(statuses, self._high, self._blocks)
            for status, (names, *tables) in zip(statuses, blocks, strict=True):
                product *= self._mean_in_block(status, names, tables)
            total += product
        return total

    def _mean_in_block(self, status: int, names: str, tables: list[Floats]) -> float:
        """Return the mean of a product of tables over the uniform sets of one block."""
        letters, total = sorted(set(names)), 0.0
        for bits in itertools.product((0, 1), repeat=len(letters)):
            bit_of = dict(zip(letters, bits, strict=True))
            product = math.prod(float(table[status, bit_of[name]]) for name, table in zip(names, tables, strict=True))
            total += product * _chance(bits, self._sizes[status], self._block_size)
        return total


def _spreads(mechanism: NestedSubsets) -> tuple[Fraction, Fraction]:
    """Return the information between blocks and within blocks: two eigenvalues of E[v v'] under the uniform law.

    E[v v'] has the eigenvalue k for the vector of ones. It has the first of these eigenvalues for differences between
    blocks, and the second for differences within blocks. Every output has v·1 = k, so at the uniform distribution all
    outputs are equally likely. The best unbiased estimate there is E[v v']⁻¹ applied to the mean of v.
    """
    blocks, block_size = mechanism.blocks, mechanism.block_size
    fraction = Fraction(mechanism.high, blocks)
    means, variances = likelihood_moments(
        mechanism.likelihoods, [Fraction(size, block_size) for size in mechanism.sizes]
    )
    between = fraction * (1 - fraction) * (means[0] - means[1]) ** 2 * (blocks * block_size) / (blocks - 1)
    within = fraction * variances[0] + (1 - fraction) * variances[1]
    return between, within * Fraction(block_size, block_size - 1)


def _chance(places: Sequence[int], size: int, among: int) -> float:
    """Return the probability that given distinct elements are in (0) or out of (1) a uniform set."""
    inside, count = places.count(0), len(places)
    ways = math.perm(size, inside) * math.perm(among - size, count - inside)
    return ways / math.perm(among, count) if count <= among else 0.0
