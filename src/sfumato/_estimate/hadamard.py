"""The decoder of Hadamard response."""

from __future__ import annotations

import numpy as np

from sfumato._estimate.decoder import Floats, HistogramDecoder
from sfumato.errors import InvalidInput
from sfumato.mechanisms import HadamardResponse
from sfumato.mechanisms.hadamard import walsh_hadamard

__all__ = ["HadamardDecoder"]


class HadamardDecoder(HistogramDecoder):
    """Scores ±1 in the own block: p̂ = mean score / γ, by one fast transform per block.

    The product of the scores of two values of a block is the score of the row row_x XOR row_y, whose mean is γ times
    the frequency of the value that owns this row, or zero if none does. It also decodes a part of a larger mechanism,
    as ``SetDecoder`` does.
    """

    each = 1
    #: A report in clear of an open value says nothing of the hidden ones.
    in_clear = 0.0

    def __init__(self, mechanism: HadamardResponse) -> None:
        if mechanism.threshold == 0:
            raise InvalidInput("estimate", "the mechanism", "tell values apart (its epsilon is 0)", mechanism)
        self.size = len(mechanism.domain)
        self._blocks, self._columns = mechanism.blocks, mechanism.block_size
        self.gamma, self._rest = float(mechanism.gamma), float(1 - mechanism.gamma)
        index = np.arange(self.size)
        self._block, self._row = index // (self._columns - 1), index % (self._columns - 1) + 1

    def _by_row(self, p: Floats) -> Floats:
        rows = np.zeros((self._blocks, self._columns))
        rows[self._block, self._row] = p
        return rows

    def frequencies(self, shares: Floats) -> Floats:
        scores = walsh_hadamard(shares.reshape(self._blocks, self._columns))
        return np.asarray(scores[self._block, self._row] / self.gamma)

    def shares(self, p: Floats) -> Floats:
        return self.law(p, 1.0)

    def law(self, p: Floats, total: float) -> Floats:
        """How often each column is reported."""
        rows = self._by_row(p)
        rows[:, 0] = rows.sum(axis=1)  # +1 everywhere: together they select the columns of sign +1
        law = self.gamma / self._columns * walsh_hadamard(rows) + self._rest * total / (self._blocks * self._columns)
        return law.ravel()

    def decode(self, counts: Floats, hidden: float, total: float) -> Floats:  # noqa: ARG002
        """As ``frequencies``: the uniform columns of any mass cancel."""
        return self.frequencies(counts)

    def energy(self, p: Floats, total: float) -> Floats:
        """E[φ²; a column] of each value's score φ = ±1/γ in its block."""
        mass = np.bincount(self._block, weights=p, minlength=self._blocks)
        in_block = self.gamma * mass + self._rest * total / self._blocks
        return np.asarray(in_block[self._block] / self.gamma**2)

    def products(self, p: Floats, total: float) -> Floats:
        """E[φφ'; a column]."""
        rows = self._by_row(p)
        same = self._block[:, None] == self._block
        products = np.where(same, rows[self._block[:, None], self._row[:, None] ^ self._row] / self.gamma, 0.0)
        products[np.diag_indices(self.size)] = self.energy(p, total)
        return products

    def quadratic(self, weights: Floats, p: Floats, total: float) -> float:
        """E[(Σ weight·φ)²; a column], without the matrix."""
        scores = walsh_hadamard(self._by_row(weights)).ravel() / self.gamma
        return float(self.law(p, total) @ scores**2)

    def pull(self, weights: Floats) -> Floats:
        scores = walsh_hadamard(weights.reshape(self._blocks, self._columns))
        own = (scores[self._block, 0] + scores[self._block, self._row]) * self.gamma / self._columns
        return np.asarray(own + weights.sum() * self._rest / (self._blocks * self._columns))

    def reach(self) -> tuple[Floats, Floats]:
        return np.full(self.size, -1 / self.gamma), np.full(self.size, 1 / self.gamma)

    def variances(self, p: Floats) -> Floats:
        return self.energy(p, 1.0) - p**2

    def variance(self, weights: Floats, p: Floats) -> float:
        return self.quadratic(weights, p, 1.0) - float(weights @ p) ** 2

    def covariance(self, p: Floats) -> Floats:
        return self.products(p, 1.0) - np.outer(p, p)
