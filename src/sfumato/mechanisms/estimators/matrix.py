"""Estimator from the exact law: the default for every mechanism whose reports are indices."""

from __future__ import annotations

from typing import Self

import numpy as np

from sfumato._core import Floats, count_text, quantity
from sfumato.errors import Description, InvalidInput, LimitExceeded
from sfumato.mechanisms.base import LARGEST_MATRIX, Mechanism
from sfumato.mechanisms.estimators.base import Estimator, HistogramEstimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable

__all__ = ["LeastSquaresEstimator", "MatrixEstimator", "default_estimator", "efficient_estimator"]


class LeastSquaresEstimator(HistogramEstimator):
    """Base class of estimators with the least variance of all linear unbiased ones at some distribution of values."""


class MatrixEstimator(LeastSquaresEstimator):
    """Least squares, weighted by the law of the outputs at one distribution, which is uniform by default.

    p̂ = A·fractions with A = J⁻¹Q/law, J = Σ_y Q_y Q_y'/law_y. The weights are fixed, so the estimate is linear and
    exactly unbiased at every distribution. At the given distribution it has the least variance of all such estimates.
    """

    def __init__(self, matrix: Floats, p: Floats | None = None) -> None:
        self.size = len(matrix)
        self._matrix = matrix
        law = matrix.mean(axis=0) if p is None else p @ matrix
        used = law > 0
        scaled = matrix[:, used] / np.sqrt(law[used])
        left, singular_values, right = np.linalg.svd(scaled, full_matrices=False)
        rank = len(singular_values)
        self.condition = float(singular_values[-1] / singular_values[0]) if rank == self.size else 0.0
        if self.condition <= self.size * np.finfo(float).eps:
            must = "distinguish all values in its reports (its matrix is singular)"
            hint = "Use a mechanism with a larger epsilon, or a matrix whose rows are linearly independent."
            got = Description(f"a matrix of {quantity(len(matrix), 'value')} by {quantity(matrix.shape[1], 'output')}")
            raise NotIdentifiable(must, got, hint=hint)
        self._left_inverse = np.zeros_like(matrix)
        self._left_inverse[:, used] = (left / singular_values) @ right / np.sqrt(law[used])

    @classmethod
    def of(cls, mechanism: Mechanism, p: Floats | None = None) -> Self:
        """Return the estimator of a mechanism whose law can be listed in full."""
        values, outputs = len(mechanism.domain), mechanism.outputs
        if values * outputs > LARGEST_MATRIX:
            raise LimitExceeded(
                f"the estimator needs the full matrix of {mechanism.name}, but {values} values by "
                f"{count_text(outputs)} outputs are more than the limit of {LARGEST_MATRIX:,} entries. "
                "Use method 'unbiased'. If you registered the mechanism, pass estimator= to sfumato.register."
            )
        return cls(mechanism.matrix(), p)

    def frequencies(self, fractions: Floats) -> Floats:
        return np.asarray(self._left_inverse @ fractions)

    def expected_counts(self, p: Floats) -> Floats:
        return np.asarray(p @ self._matrix)

    def output_scores(self, weights: Floats) -> Floats:
        return np.asarray(weights @ self._left_inverse)

    def adjoint(self, weights: Floats) -> Floats:
        return np.asarray(self._matrix @ weights)

    def second_moments(self) -> Floats:
        return np.asarray(self._matrix @ np.sum(self._left_inverse**2, axis=0))

    def variances(self, p: Floats) -> Floats:
        return np.asarray(self._left_inverse**2 @ self.expected_counts(p) - p**2)

    def variance(self, weights: Floats, p: Floats) -> float:
        return float(self.expected_counts(p) @ (weights @ self._left_inverse) ** 2 - (weights @ p) ** 2)

    def covariance(self, p: Floats) -> Floats:
        return (self._left_inverse * self.expected_counts(p)) @ self._left_inverse.T - np.outer(p, p)

    def score_values(self) -> tuple[Floats, Floats]:
        return self._left_inverse, self._matrix

    def score_probabilities(self, p: Floats) -> Floats:
        return np.broadcast_to(self.expected_counts(p), self._matrix.shape)

    def score_bounds(self) -> tuple[Floats, Floats]:
        return self._left_inverse.min(axis=1), self._left_inverse.max(axis=1)


def default_estimator(mechanism: Mechanism) -> Estimator:
    """Return the estimator of a mechanism whose family defines none, from the exact law of its outputs."""
    if not mechanism.report_format.is_histogram:
        must = "report an index, or have an estimator"
        hint = "Pass a function that returns its Estimator to sfumato.register with estimator=."
        raise InvalidInput("estimate", "the mechanism", must, mechanism, hint=hint)
    return MatrixEstimator.of(mechanism)


def efficient_estimator(mechanism: Mechanism) -> Estimator:
    """Return the estimator of least variance at the uniform distribution, or at a table's design prior.

    Raises InvalidInput for bitmaps, and LimitExceeded if the law has too many entries.
    """
    if not mechanism.report_format.is_histogram:
        must, hint = "not be 'efficient' for bitmaps", "Use method 'unbiased', which is efficient for bitmaps."
        raise InvalidInput("estimate", "method", must, Description(f"the mechanism {mechanism.name}"), hint=hint)
    estimator = mechanism.estimator
    return estimator if isinstance(estimator, LeastSquaresEstimator) else MatrixEstimator.of(mechanism)
