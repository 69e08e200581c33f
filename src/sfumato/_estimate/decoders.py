"""From counts to unbiased frequencies, and the exact covariance of that estimate, for each kind of mechanism.

A decoder is linear in the counts, so what it says is exact for every n: the estimate is unbiased, and the covariance
of n reports is 1/n of what ``covariance(p)`` gives for one report of a person drawn from p.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput
from sfumato.mechanisms import (
    HadamardResponse,
    Mechanism,
    RandomizedResponse,
    SubsetSelection,
    TableMechanism,
    UnaryEncoding,
)
from sfumato.mechanisms.hadamard import walsh_hadamard
from sfumato.mechanisms.two_level import InclusionMechanism

__all__ = ["Decoder", "HistogramDecoder", "InclusionDecoder", "decoder_for"]

Floats = npt.NDArray[np.float64]


class Decoder(ABC):
    """The unbiased linear estimate of one mechanism."""

    size: int

    @abstractmethod
    def frequencies(self, shares: Floats) -> Floats:
        """The estimate from shares: counts divided by the number of reports."""

    @abstractmethod
    def shares(self, p: Floats) -> Floats:
        """The expected shares at p: ``frequencies(shares(p)) == p``."""

    @abstractmethod
    def variances(self, p: Floats) -> Floats:
        """The variance of each frequency from one report at p."""

    @abstractmethod
    def covariance(self, p: Floats) -> Floats:
        """The covariance of the frequencies from one report at p."""

    @abstractmethod
    def variance(self, weights: Floats, p: Floats) -> float:
        """The variance of Σ weight·frequency from one report at p: weights·covariance·weights, without the matrix."""

    @abstractmethod
    def reach(self) -> tuple[Floats, Floats]:
        """The least and the greatest that one report can count for each frequency."""


class HistogramDecoder(Decoder):
    """A decoder whose counts are a histogram over the outputs: ``shares`` is the law of the outputs at p."""

    @abstractmethod
    def pull(self, weights: Floats) -> Floats:
        """Σ_y Q(y|x)·weights_y for every value x: the adjoint of ``shares``."""


class InclusionDecoder(Decoder):
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

    def shares(self, p: Floats) -> Floats:
        return self.other + self.gap * p

    def variances(self, p: Floats) -> Floats:
        held = self.shares(p)
        return held * (1 - held) / self.gap**2

    def covariance(self, p: Floats) -> Floats:
        held = self.shares(p)
        both = self._without_own + (p[:, None] + p) * (self._with_own - self._without_own)
        both[np.diag_indices(self.size)] = held
        return np.asarray((both - np.outer(held, held)) / self.gap**2)

    def variance(self, weights: Floats, p: Floats) -> float:
        held, total = self.shares(p), float(weights.sum())
        # Σ_{x≠y} w_x w_y E[both], with the sums over y done first.
        pairs = self._without_own * (total**2 - weights @ weights)
        pairs += 2 * (self._with_own - self._without_own) * ((weights * p) @ (total - weights))
        return float(weights**2 @ held + pairs - (weights @ held) ** 2) / self.gap**2

    def reach(self) -> tuple[Floats, Floats]:
        ends = np.array([0.0, 1.0]) - self.other
        return np.full(self.size, ends[0] / self.gap), np.full(self.size, ends[1] / self.gap)


class ResponseDecoder(InclusionDecoder, HistogramDecoder):
    """Randomized response: the sets are single values, so their counts are the histogram."""

    def pull(self, weights: Floats) -> Floats:
        return np.asarray(self.other * weights.sum() + self.gap * weights)


class HadamardDecoder(HistogramDecoder):
    """Scores ±1 in the own block: p̂ = mean score / γ, by one fast transform per block.

    The product of the scores of two values of a block is the score of the row row_x XOR row_y, whose mean is γ times
    the frequency of the value that owns this row, or zero if none does.
    """

    def __init__(self, mechanism: HadamardResponse) -> None:
        if mechanism.threshold == 0:
            raise InvalidInput("estimate", "the mechanism", "tell values apart (its epsilon is 0)", mechanism)
        self.size = len(mechanism.domain)
        self._blocks, self._columns = mechanism.blocks, mechanism.block_size
        self._gamma, self._rest = float(mechanism.gamma), float(1 - mechanism.gamma)
        index = np.arange(self.size)
        self._block, self._row = index // (self._columns - 1), index % (self._columns - 1) + 1

    def _by_row(self, p: Floats) -> Floats:
        rows = np.zeros((self._blocks, self._columns))
        rows[self._block, self._row] = p
        return rows

    def frequencies(self, shares: Floats) -> Floats:
        scores = walsh_hadamard(shares.reshape(self._blocks, self._columns))
        return np.asarray(scores[self._block, self._row] / self._gamma)

    def shares(self, p: Floats) -> Floats:
        rows = self._by_row(p)
        rows[:, 0] = rows.sum(axis=1)  # +1 everywhere: together they select the columns of sign +1
        law = self._gamma / self._columns * walsh_hadamard(rows) + self._rest / (self._blocks * self._columns)
        return law.ravel()

    def pull(self, weights: Floats) -> Floats:
        scores = walsh_hadamard(weights.reshape(self._blocks, self._columns))
        own = (scores[self._block, 0] + scores[self._block, self._row]) * self._gamma / self._columns
        return np.asarray(own + weights.sum() * self._rest / (self._blocks * self._columns))

    def reach(self) -> tuple[Floats, Floats]:
        return np.full(self.size, -1 / self._gamma), np.full(self.size, 1 / self._gamma)

    def _in_block(self, p: Floats) -> Floats:
        mass = np.bincount(self._block, weights=p, minlength=self._blocks)
        return np.asarray(self._gamma * mass + self._rest / self._blocks)

    def variances(self, p: Floats) -> Floats:
        return self._in_block(p)[self._block] / self._gamma**2 - p**2

    def variance(self, weights: Floats, p: Floats) -> float:
        scores = walsh_hadamard(self._by_row(weights)).ravel() / self._gamma
        return float(self.shares(p) @ scores**2 - (weights @ p) ** 2)

    def covariance(self, p: Floats) -> Floats:
        rows = self._by_row(p)
        same = self._block[:, None] == self._block
        products = rows[self._block[:, None], self._row[:, None] ^ self._row] / self._gamma
        covariance = np.where(same, products, 0.0) - np.outer(p, p)
        covariance[np.diag_indices(self.size)] = self.variances(p)
        return covariance


class TableDecoder(HistogramDecoder):
    """Least squares, weighted by the output law at the uniform distribution: fixed weights, so exactly unbiased."""

    def __init__(self, mechanism: TableMechanism) -> None:
        self.size = len(mechanism.domain)
        self._matrix = mechanism.matrix()
        left_inverse = mechanism.left_inverse()
        if left_inverse is None:
            raise InvalidInput("estimate", "the mechanism", "tell all values apart (its matrix is singular)", mechanism)
        self._left_inverse = left_inverse

    def frequencies(self, shares: Floats) -> Floats:
        return np.asarray(self._left_inverse @ shares)

    def shares(self, p: Floats) -> Floats:
        return np.asarray(p @ self._matrix)

    def pull(self, weights: Floats) -> Floats:
        return np.asarray(self._matrix @ weights)

    def reach(self) -> tuple[Floats, Floats]:
        return self._left_inverse.min(axis=1), self._left_inverse.max(axis=1)

    def variances(self, p: Floats) -> Floats:
        return np.asarray(self._left_inverse**2 @ self.shares(p) - p**2)

    def variance(self, weights: Floats, p: Floats) -> float:
        return float(self.shares(p) @ (weights @ self._left_inverse) ** 2 - (weights @ p) ** 2)

    def covariance(self, p: Floats) -> Floats:
        return (self._left_inverse * self.shares(p)) @ self._left_inverse.T - np.outer(p, p)


def decoder_for(mechanism: Mechanism) -> Decoder:
    """The decoder of a mechanism."""
    if isinstance(mechanism, RandomizedResponse):
        return ResponseDecoder(mechanism, Fraction(0), Fraction(0))
    if isinstance(mechanism, UnaryEncoding):
        own, other = mechanism.inclusion
        return InclusionDecoder(mechanism, own * other, other * other)
    if isinstance(mechanism, SubsetSelection):
        return InclusionDecoder(mechanism, *_pairs_in_subset(mechanism))
    if isinstance(mechanism, HadamardResponse):
        return HadamardDecoder(mechanism)
    if isinstance(mechanism, TableMechanism):
        return TableDecoder(mechanism)
    raise InvalidInput("estimate", "the mechanism", "have a decoder", mechanism)


def _pairs_in_subset(mechanism: SubsetSelection) -> tuple[Fraction, Fraction]:
    """Probabilities that two given values are in the set: one of them being the true one, or neither."""
    k, d, gamma = len(mechanism.domain), mechanism.size, mechanism.gamma
    free = (1 - gamma) * Fraction(d * (d - 1), k * (k - 1))
    forced_with = Fraction(d - 1, k - 1)
    forced_without = Fraction((d - 1) * (d - 2), (k - 1) * (k - 2)) if k > 2 else Fraction(0)
    return gamma * forced_with + free, gamma * forced_without + free
