"""The estimator of an explicit matrix."""

from __future__ import annotations

import numpy as np

from sfumato._core import Floats
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.estimators.base import HistogramEstimator
from sfumato.mechanisms.table.mechanism import TableMechanism, left_inverse

__all__ = ["TableEstimator"]


class TableEstimator(HistogramEstimator):
    """Least squares with fixed weights, so exactly unbiased.

    The weights are the output law at the distribution that a table was designed for, for others at the uniform one.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.size = len(mechanism.domain)
        self._matrix = mechanism.matrix()
        inverse = mechanism.estimator if isinstance(mechanism, TableMechanism) else left_inverse(self._matrix)
        if inverse is None:
            raise InvalidInput("estimate", "the mechanism", "tell all values apart (its matrix is singular)", mechanism)
        self._left_inverse = inverse

    def frequencies(self, shares: Floats) -> Floats:
        return np.asarray(self._left_inverse @ shares)

    def expected_counts(self, p: Floats) -> Floats:
        return np.asarray(p @ self._matrix)

    def output_scores(self, weights: Floats) -> Floats:
        return np.asarray(weights @ self._left_inverse)

    def adjoint(self, weights: Floats) -> Floats:
        return np.asarray(self._matrix @ weights)

    def score_levels(self) -> tuple[Floats, Floats]:
        return self._left_inverse, self._matrix

    def score_probabilities(self, p: Floats) -> Floats:
        return np.broadcast_to(self.expected_counts(p), self._matrix.shape)

    def score_bounds(self) -> tuple[Floats, Floats]:
        return self._left_inverse.min(axis=1), self._left_inverse.max(axis=1)

    def variances(self, p: Floats) -> Floats:
        return np.asarray(self._left_inverse**2 @ self.expected_counts(p) - p**2)

    def variance(self, weights: Floats, p: Floats) -> float:
        return float(self.expected_counts(p) @ (weights @ self._left_inverse) ** 2 - (weights @ p) ** 2)

    def covariance(self, p: Floats) -> Floats:
        return (self._left_inverse * self.expected_counts(p)) @ self._left_inverse.T - np.outer(p, p)
