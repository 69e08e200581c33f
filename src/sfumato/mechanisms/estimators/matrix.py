"""Estimator from the exact law: the default for every mechanism whose reports are indices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Self

import numpy as np

from sfumato._core import Floats, count_text, quantity
from sfumato.errors import Description, InvalidInput, LimitExceeded
from sfumato.mechanisms.base import LARGEST_MATRIX, Mechanism
from sfumato.mechanisms.estimators.base import Estimator, ScoreEstimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable

__all__ = ["LeastSquaresEstimator", "MatrixEstimator", "default_estimator", "efficient_estimator"]

_EPS = float(np.finfo(float).eps)
#: Relative size of a singular value that rounding alone may cause, per row or column of the matrix.
_ROUNDING = 8 * _EPS
#: Largest difference between weights and an identified sum, relative to half the range of the weights.
_LARGEST_BIAS = 1e-7
#: Largest bias that rounding of the matrix may cause, relative to half the range of the weights.
_LARGEST_ROUNDING = 1e-6
_HINT = (
    "Ask for a mean or another sum that the reports determine, such as mean() or linear(weights), or use a mechanism "
    "whose matrix has linearly independent rows."
)


class LeastSquaresEstimator(ScoreEstimator):
    """Base class of estimators with the least variance of all linear unbiased ones at some distribution of values."""

    def distribution_for_sums(self, nearest: Floats, fractions: Floats, n: int) -> Floats:
        if np.allclose(nearest, self.frequencies(fractions), rtol=0, atol=1e-9):
            return nearest
        # A mechanism for a mean leaves single frequencies so uncertain that their projection has another law of
        # reports. The standard error of the mean would be wrong by up to a fifth.
        return self.reported_distribution(fractions, n)


class MatrixEstimator(LeastSquaresEstimator):
    """Least squares, weighted by the law of the outputs at one distribution, which is uniform by default.

    p̂ = A·fractions with A = J⁺Q/law, J = Σ_y Q_y Q_y'/law_y. The weights are fixed, so the estimate is linear and
    exactly unbiased at every distribution. At the given distribution it has the least variance of all such estimates.

    If J is singular, the reports determine Σ weight·frequency for weights in its range only. For them w·A is unbiased
    and has the least variance.

    Notes
    -----
    Doubles do not decide whether weights lie in a range, so ``identifies`` checks the scores s = w·A themselves. They
    are unbiased if Q·s = w. The difference must be explained by rounding, and the bias that rounding of Q may cause,
    |Q|·|s| times the machine precision, must be negligible. Weights within 10⁻⁷ of an identified sum, relative to half
    their range, are accepted, because a search finds the columns of a table up to a tolerance. The bias is then at most
    as large.
    """

    def __init__(self, matrix: Floats, p: Floats | None = None) -> None:
        self.size = len(matrix)
        self._matrix = matrix
        law = matrix.mean(axis=0) if p is None else p @ matrix
        used = law > 0
        scaled = matrix[:, used] / np.sqrt(law[used])
        left, singular_values, right = np.linalg.svd(scaled, full_matrices=False)
        relative = singular_values / singular_values[0]
        self.rank = int(np.count_nonzero(relative > _ROUNDING * max(scaled.shape)))
        self.condition = float(relative[self.rank - 1])
        chosen = slice(self.rank)
        self._left_inverse = np.zeros_like(matrix)
        self._left_inverse[:, used] = (left[:, chosen] / singular_values[chosen]) @ right[chosen] / np.sqrt(law[used])

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

    @cached_property
    def is_complete(self) -> bool:
        """Whether the reports determine the frequencies of all values."""
        return self.rank == self.size and self.identifies(np.eye(self.size))

    def identifies(self, weights: Floats) -> bool:
        _, centred = _centred(np.asarray(weights, np.float64).reshape(-1, self.size))
        half_range = centred.max(axis=1, keepdims=True)
        scores = centred @ self._left_inverse
        rounding = _EPS * (np.abs(scores) @ self._matrix.T)
        bias = np.abs(scores @ self._matrix.T - centred)
        explained = bias <= _LARGEST_BIAS * half_range + (self._matrix.shape[1] + 4) * rounding
        return bool(np.all(explained & (rounding <= _LARGEST_ROUNDING * half_range)))

    def _require_complete(self) -> None:
        """Raise NotIdentifiable unless the reports determine the frequencies of all values."""
        if not self.is_complete:
            must = "distinguish all values in its reports (its matrix is singular)"
            raise NotIdentifiable(must, self._description, hint=_HINT)

    def _require(self, weights: Floats) -> None:
        """Raise NotIdentifiable unless the reports determine the sum with these weights."""
        if not self.is_complete and not self.identifies(weights):
            raise NotIdentifiable("determine this sum of frequencies by its reports", self._description, hint=_HINT)

    @property
    def _description(self) -> Description:
        """Size and rank of the matrix for messages."""
        values, outputs = self._matrix.shape
        size = f"{quantity(values, 'value')} by {quantity(outputs, 'output')}"
        return Description(f"a matrix of {size} with rank {self.rank}")

    def frequencies(self, fractions: Floats) -> Floats:
        self._require_complete()
        return np.asarray(self._left_inverse @ fractions)

    def expected_counts(self, p: Floats) -> Floats:
        return np.asarray(p @ self._matrix)

    def output_scores(self, weights: Floats) -> Floats:
        self._require(weights)
        centre, centred = _centred(weights)
        return np.asarray(centre + centred @ self._left_inverse)

    def adjoint(self, weights: Floats) -> Floats:
        return np.asarray(self._matrix @ weights)

    def score_batches(self) -> Iterator[tuple[slice, Floats]]:
        self._require_complete()
        yield slice(self.size), self._left_inverse

    def variance(self, weights: Floats, p: Floats) -> float:
        _, centred = _centred(weights)
        return float(self.expected_counts(p) @ self.output_scores(centred) ** 2 - (centred @ p) ** 2)


def _centred(weights: Floats) -> tuple[Floats, Floats]:
    """Return the middle of the range of weights, and the weights minus it.

    The middle is estimated without error, because frequencies sum to one.
    """
    centre = (weights.min(axis=-1, keepdims=True) + weights.max(axis=-1, keepdims=True)) / 2
    return centre, weights - centre


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
