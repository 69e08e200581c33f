"""Estimator of Hadamard response."""

from __future__ import annotations

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.estimators.base import HistogramEstimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.likelihood import Fit, fit_histogram
from sfumato.mechanisms.estimators.parts import PartEstimator
from sfumato.mechanisms.estimators.scores import ColumnScores
from sfumato.mechanisms.hadamard.mechanism import HadamardResponse, walsh_hadamard

__all__ = ["HadamardEstimator"]

#: Number of entries below which a transform does not import numba.
_SMALL_SIZE = 2**14


def _transform(rows: Floats, scale: float = 1.0) -> Floats:
    """Return the transform of every row, times ``scale``; scaling afterwards would need a second array of that size."""
    if rows.size < _SMALL_SIZE:
        return walsh_hadamard(rows) * scale
    from sfumato.mechanisms.hadamard.transform_kernel import transform_rows

    return transform_rows(rows, scale)


class HadamardEstimator(HistogramEstimator, PartEstimator):
    """Estimator with scores ±1/γ in the value's block, computed by one fast transform per block.

    The product of the scores of two values of a block is the score of the row row_x XOR row_y. Its mean is γ times the
    frequency of the value with this row, or zero if no value has it.
    """

    each = 1
    revealed_score = 0.0

    def __init__(self, mechanism: HadamardResponse) -> None:
        if mechanism.threshold == 0:
            raise NotIdentifiable("distinguish all values in its reports (its epsilon is 0)", mechanism)
        self.size = len(mechanism.domain)
        self._blocks, self._columns = mechanism.blocks, mechanism.block_size
        self.gamma, self._rest = float(mechanism.gamma), float(1 - mechanism.gamma)

    def _by_row(self, p: Floats) -> Floats:
        """Return a row per block: nothing in column 0, then the block's values."""
        rows = np.zeros((self._blocks, self._columns))
        full, rest = divmod(self.size, self._columns - 1)
        rows[:full, 1:] = p[: self.size - rest].reshape(full, self._columns - 1)
        rows[full : full + 1, 1 : rest + 1] = p[self.size - rest :]
        return rows

    def _of_values(self, rows: Floats) -> Floats:
        """Return the entries of values; the inverse of ``_by_row``."""
        return rows[:, 1:].reshape(-1)[: self.size]

    def _of_blocks(self, blocks: Floats) -> Floats:
        """Return for every value the number of its block."""
        return np.repeat(blocks, self._columns - 1)[: self.size]

    def frequencies(self, fractions: Floats) -> Floats:
        return self._of_values(_transform(fractions.reshape(self._blocks, self._columns), 1 / self.gamma))

    def expected_counts(self, p: Floats) -> Floats:
        return self.law(p, 1.0)

    def law(self, p: Floats, total: float) -> Floats:
        rows = self._by_row(p)
        rows[:, 0] = rows.sum(axis=1)  # row 0 is +1 everywhere; adding it selects the columns of sign +1
        law = _transform(rows, self.gamma / self._columns)
        law += self._rest * total / (self._blocks * self._columns)
        return law.ravel()

    def decode(self, counts: Floats, protected: float, total: float) -> Floats:  # noqa: ARG002
        return self.frequencies(counts)  # uniform columns cancel

    def fit_part(self, fractions: Floats) -> Fit:
        return fit_histogram(fractions, self.expected_counts, self.adjoint, self.size)

    def second_moments(self) -> Floats:
        # φ_x = ±1/γ in the value's block, because rows are orthogonal and row 0 is skipped. A report in a block of s
        # values has |φ|² = s/γ², and lies in the value's block with probability γ + (1-γ)/B.
        rows = self._columns - 1
        block_sizes = np.minimum(rows, self.size - np.arange(self.size) // rows * rows)
        return np.asarray(block_sizes / self.gamma + self._rest * self.size / (self._blocks * self.gamma**2))

    def unprotected_second_moment(self) -> float:
        return self._rest * self.size / (self._blocks * self.gamma**2) + 1 / self.gamma

    def squared_scores(self, p: Floats, total: float) -> Floats:
        in_block = self.gamma * self._by_row(p).sum(axis=1) + self._rest * total / self._blocks
        return np.asarray(self._of_blocks(in_block) / self.gamma**2)

    def products(self, p: Floats, total: float) -> Floats:
        rows = self._by_row(p)
        block, row = np.divmod(np.arange(self.size), self._columns - 1)
        row += 1
        same = block[:, None] == block
        products = np.where(same, rows[block[:, None], row[:, None] ^ row] / self.gamma, 0.0)
        products[np.diag_indices(self.size)] = self.squared_scores(p, total)
        return products

    def quadratic(self, weights: Floats, p: Floats, total: float) -> float:
        return float(self.law(p, total) @ self.output_scores(weights) ** 2)

    def output_scores(self, weights: Floats) -> Floats:
        return _transform(self._by_row(weights)).ravel() / self.gamma

    def set_scores(self, weights: Floats) -> ColumnScores:
        return ColumnScores(self.output_scores(weights), self.law)

    def adjoint(self, weights: Floats) -> Floats:
        scores = _transform(weights.reshape(self._blocks, self._columns), self.gamma / self._columns)
        result = self._of_blocks(scores[:, 0])
        result += self._of_values(scores)
        result += weights.sum() * self._rest / (self._blocks * self._columns)
        return result

    @property
    def set_score_values(self) -> Floats:
        """The scores of a value for a column of its block, by sign, and for a column of another block."""
        score_values = np.array([-1.0, 1.0, 0.0]) / self.gamma
        return score_values[:2] if self._blocks == 1 else score_values

    def set_probabilities(self, p: Floats, total: float) -> Floats:
        in_block = self._of_blocks(self.gamma * self._by_row(p).sum(axis=1) + self._rest * total / self._blocks)
        columns = self.gamma * float(p.sum()) + self._rest * total
        signs = [(in_block - self.gamma * p) / 2, (in_block + self.gamma * p) / 2, columns - in_block]
        return np.maximum(np.column_stack(signs[: len(self.set_score_values)]), 0.0)

    def score_values(self) -> tuple[Floats, Floats]:
        in_block = self.gamma + self._rest / self._blocks
        at_value = np.array([(in_block - self.gamma) / 2, (in_block + self.gamma) / 2, 1 - in_block])
        score_values = self.set_score_values
        return np.tile(score_values, (self.size, 1)), np.tile(at_value[: len(score_values)], (self.size, 1))

    def score_probabilities(self, p: Floats) -> Floats:
        return self.set_probabilities(p, 1.0)

    def score_bounds(self) -> tuple[Floats, Floats]:
        return np.full(self.size, -1 / self.gamma), np.full(self.size, 1 / self.gamma)
