"""Estimates of marginals: the distribution of a few coordinates of a value, with the errors of all its cells.

A marginal sums the frequencies of all values that agree in some coordinates. Its estimate is linear in the counts, as
that of single frequencies. For products and sampled parts, its errors follow from a few digits of the reports, so
neither a matrix over all values nor one over all outputs is needed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np

from sfumato._core import Floats, Integers, count_text
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.policy import LARGEST_DENSE

if TYPE_CHECKING:
    from sfumato.mechanisms.estimators.base import Estimator, HistogramEstimator

__all__ = [
    "MOST_SCORES",
    "FactoredMarginal",
    "HistogramMarginal",
    "MarginalEstimator",
    "ScoreMarginal",
    "SummedMarginal",
    "along_axes",
    "axes_of_factors",
    "checked_axes",
    "kept_axes",
    "kronecker",
]

#: Maximum number of scores (cells times outputs) in memory; bounds it to 512 MB.
MOST_SCORES = 2**26
#: Maximum number of cells times values for which variances are computed cell by cell; bounds the time.
_MOST_STEPS = 2**31


class MarginalEstimator(ABC):
    """Unbiased estimate of one marginal, with its exact errors.

    :meth:`Estimator.marginal` returns objects of this class. Errors are those of one report; divide variances by the
    number n of reports for those of an estimate. Cells are in row-major order of the axes, as they were asked for.

    Attributes
    ----------
    shape : tuple of int
        Numbers of values of the chosen coordinates.
    """

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    @abstractmethod
    def frequencies(self, fractions: Floats) -> Floats:
        """Estimate the frequencies of all cells.

        Parameters
        ----------
        fractions
            The counts of an :class:`Aggregate` divided by its number of reports.

        Returns
        -------
        ndarray
            Unbiased estimates, one per cell. Some may be negative. They sum to one, up to rounding errors, if the
            estimates of all frequencies do.
        """

    @abstractmethod
    def variances(self, p: Floats) -> Floats:
        """Return the variance of each cell from one report.

        Parameters
        ----------
        p
            Probability of each value of the whole domain, shape (k,), in domain order.

        Returns
        -------
        ndarray
            The exact variances, one per cell, for people whose values follow p.
        """

    @abstractmethod
    def covariance(self, p: Floats) -> Floats:
        """Return the covariance matrix of all cells from one report.

        Parameters
        ----------
        p
            Probability of each value of the whole domain, shape (k,), in domain order.

        Returns
        -------
        ndarray
            The exact covariance for people whose values follow p, with a row and a column per cell.

        Raises
        ------
        LimitExceeded
            If the marginal has too many cells, or if no short form of its covariance is known for the mechanism.
        """

    @abstractmethod
    def observed_variances(self, fractions: Floats) -> Floats:
        """Return the variance of each cell from one report, estimated from the counts.

        Parameters
        ----------
        fractions
            The counts divided by the number of reports.

        Returns
        -------
        ndarray
            The variances of the scores of the observed reports, or, if counts are not those of outputs, the variances
            at the distribution nearest to the estimate.
        """

    @abstractmethod
    def observed_covariance(self, fractions: Floats) -> Floats:
        """Return the covariance matrix of all cells from one report, estimated from the counts.

        Parameters
        ----------
        fractions
            The counts divided by the number of reports.

        Returns
        -------
        ndarray
            The covariance of the scores of the observed reports; see :meth:`observed_variances`.

        Raises
        ------
        LimitExceeded
            As for :meth:`covariance`.
        """

    def second_moments_inside(self, shape: Sequence[int], axes: Sequence[int]) -> Floats:
        """Return the mean squared score of each cell for people in the cell, whose values are equally frequent.

        Parameters
        ----------
        shape
            The number of values of each attribute of the whole domain.
        axes
            The attributes of the marginal.

        Returns
        -------
        ndarray
            One mean per cell, at least 1, because the mean score of people in the cell is 1.
        """
        cells = _cells(shape, axes)
        inside = ((cells == cell) / np.count_nonzero(cells == cell) for cell in range(self.size))
        return np.array([self.variances(p)[cell] + 1.0 for cell, p in enumerate(inside)])

    def squared_error(self, p: Floats) -> float:
        """Return the expected squared error of one report, summed over the cells.

        Parameters
        ----------
        p
            Probability of each value of the whole domain, shape (k,), in domain order.

        Returns
        -------
        float
            E[Σ (estimate - frequency)²] for people whose values follow p. Divide it by n for n reports.
        """
        return float(self.variances(p).sum())


class HistogramMarginal(MarginalEstimator):
    """Marginal from counts of outputs, whose errors are moments of the scores under the law of the outputs.

    Subclasses state the law at a distribution of values, and the moments under any law.
    """

    @abstractmethod
    def law(self, p: Floats) -> Floats:
        """Return the law of the outputs if values follow p."""

    @abstractmethod
    def squares(self, law: Floats) -> Floats:
        """Return the mean of each cell's squared score under a law of the outputs."""

    @abstractmethod
    def products(self, law: Floats) -> Floats:
        """Return the mean of the product of the scores of two cells, for all pairs of cells, under a law."""

    def observed_variances(self, fractions: Floats) -> Floats:
        return np.asarray(np.maximum(self.squares(fractions) - self.frequencies(fractions) ** 2, 0.0))

    def observed_covariance(self, fractions: Floats) -> Floats:
        means = self.frequencies(fractions)
        return self.products(fractions) - np.outer(means, means)

    def variances(self, p: Floats) -> Floats:
        return self.observed_variances(self.law(p))

    def covariance(self, p: Floats) -> Floats:
        return self.observed_covariance(self.law(p))


class ScoreMarginal(HistogramMarginal):
    """Marginal from the score of every output for every cell, for an estimator with few outputs."""

    def __init__(self, estimator: HistogramEstimator, shape: Sequence[int], axes: Sequence[int]) -> None:
        self.shape = tuple(shape[axis] for axis in axes)
        self._law = estimator.expected_counts
        cells = _cells(shape, axes)
        self._scores = np.stack([estimator.output_scores((cells == c).astype(np.float64)) for c in range(self.size)])

    def law(self, p: Floats) -> Floats:
        return self._law(p)

    def frequencies(self, fractions: Floats) -> Floats:
        return np.asarray(self._scores @ fractions)

    def squares(self, law: Floats) -> Floats:
        return np.asarray(self._scores**2 @ law)

    def second_moments_inside(self, shape: Sequence[int], axes: Sequence[int]) -> Floats:
        cells = _cells(shape, axes)
        inside = ((cells == cell) / np.count_nonzero(cells == cell) for cell in range(self.size))
        return np.array([scores**2 @ self._law(p) for scores, p in zip(self._scores, inside, strict=True)])

    def products(self, law: Floats) -> Floats:
        return np.asarray((self._scores * law) @ self._scores.T)


class SummedMarginal(MarginalEstimator):
    """Marginal of any estimator that determines all frequencies, by summing them."""

    def __init__(self, estimator: Estimator, shape: Sequence[int], axes: Sequence[int]) -> None:
        self.shape = tuple(shape[axis] for axis in axes)
        self._estimator, self._values = estimator, _cells(shape, axes)

    def frequencies(self, fractions: Floats) -> Floats:
        return self.summed(self._estimator.frequencies(fractions))

    def summed(self, frequencies: Floats) -> Floats:
        """Return the sum over the values of each cell."""
        return np.bincount(self._values, weights=frequencies, minlength=self.size).astype(np.float64)

    def variances(self, p: Floats) -> Floats:
        if self.size * len(self._values) > _MOST_STEPS:
            raise LimitExceeded(
                f"the variances of {count_text(self.size)} cells over {count_text(len(self._values))} values would "
                "take too long for this mechanism. Use a product or sampled parts, or fewer cells."
            )
        indicators = ((self._values == cell).astype(np.float64) for cell in range(self.size))
        return np.array([self._estimator.variance(indicator, p) for indicator in indicators])

    def covariance(self, p: Floats) -> Floats:
        if len(self._values) > LARGEST_DENSE:
            raise LimitExceeded(
                f"a covariance matrix over {count_text(len(self._values))} values exceeds the limit of {LARGEST_DENSE} "
                "values for this mechanism. Use variances, or a product or sampled parts."
            )
        of_values = self._estimator.covariance(p)
        order = np.argsort(self._values, kind="stable")
        by_cell = of_values[np.ix_(order, order)].reshape(self.size, -1, self.size, len(order) // self.size)
        return np.asarray(by_cell.sum(axis=(1, 3)))

    def _nearest(self, fractions: Floats) -> Floats:
        """Return the distribution nearest to the estimate of all frequencies."""
        return self._estimator.nearest(self._estimator.frequencies(fractions), fractions)

    def observed_variances(self, fractions: Floats) -> Floats:
        return self.variances(self._nearest(fractions))

    def observed_covariance(self, fractions: Floats) -> Floats:
        return self.covariance(self._nearest(fractions))


class FactoredMarginal(HistogramMarginal):
    """Marginal of independent digits: the score of a report is a product of the scores of some of its digits.

    Parameters
    ----------
    scores
        For each digit of the report, the scores of its outputs for the cells of its coordinates, with a row per cell;
        None for a digit that the marginal does not use.
    laws
        For each digit, the probability of each output for each value of its coordinate.
    order
        Position of each axis of the marginal among the axes of the used digits, in their order.
    shape
        Numbers of values of the axes of the used digits, in the order of the digits.
    """

    def __init__(
        self, scores: Sequence[Floats | None], laws: Sequence[Floats], shape: Sequence[int], order: Sequence[int]
    ) -> None:
        self._scores = [matrix for matrix in scores if matrix is not None]
        self._used = [number for number, matrix in enumerate(scores) if matrix is not None]
        self._laws = [laws[number] for number in self._used]
        self._values = [len(law) for law in laws]
        self._outputs = [law.shape[1] for law in laws]
        self._inner, self._order = tuple(shape), tuple(order)
        self.shape = tuple(shape[axis] for axis in order)

    def _ordered(self, array: Floats) -> Floats:
        """Return cells in the order of the marginal's axes, given those in the order of the digits."""
        return np.asarray(array.reshape(self._inner).transpose(self._order).reshape(-1))

    def law(self, p: Floats) -> Floats:
        """Return the law of the used digits."""
        return along_axes([law.T for law in self._laws], kept_axes(p, self._values, self._used))

    def _digits(self, fractions: Floats) -> Floats:
        """Return the shares of the used digits, from those of whole reports unless they are these already."""
        if len(fractions) == math.prod(self._outputs[number] for number in self._used):
            return fractions
        return kept_axes(fractions, self._outputs, self._used)

    def frequencies(self, fractions: Floats) -> Floats:
        return self._ordered(along_axes(self._scores, self._digits(fractions)))

    def squares(self, law: Floats) -> Floats:
        return self._ordered(along_axes([scores**2 for scores in self._scores], self._digits(law)))

    @cached_property
    def _matrix(self) -> Floats:
        """The score of every combination of the used digits for every cell."""
        outputs = math.prod(scores.shape[1] for scores in self._scores)
        if self.size * max(outputs, self.size) > MOST_SCORES:
            raise LimitExceeded(
                f"the covariance of {count_text(self.size)} cells from {count_text(outputs)} outputs is too large. Use "
                "variances, or a marginal with fewer cells."
            )
        rows = self._ordered(np.arange(self.size, dtype=np.float64)).astype(np.intp)
        return kronecker([np.ones((1, 1)), *self._scores])[rows]

    def products(self, law: Floats) -> Floats:
        return np.asarray((self._matrix * self._digits(law)) @ self._matrix.T)


def along_axes(matrices: Sequence[Floats], array: Floats) -> Floats:
    """Return (M₁ ⊗ M₂ ⊗ …)·array, one axis at a time."""
    result = array.reshape([matrix.shape[1] for matrix in matrices])
    for matrix in matrices:
        # The axis in front is replaced and moved to the end, so after all matrices the order is the original one.
        result = np.tensordot(result, matrix, axes=(0, 1))
    return np.asarray(result.reshape(-1))


def kronecker(arrays: Iterable[Floats]) -> Floats:
    """Return the Kronecker product of vectors or of matrices."""
    return reduce(lambda left, right: np.asarray(np.kron(left, right), np.float64), arrays)


def kept_axes(array: Floats, shape: Sequence[int], axes: Sequence[int]) -> Floats:
    """Return an array in row-major order, summed over all axes but some, which are in ascending order.

    A constant array from ``np.broadcast_to`` takes no time and memory, however many values there are.
    """
    others = tuple(axis for axis in range(len(shape)) if axis not in axes)
    if array.strides == (0,) and array.size:
        return np.full(math.prod(shape[axis] for axis in axes), array[0] * math.prod(shape[axis] for axis in others))
    return np.asarray(array.reshape(shape).sum(axis=others).reshape(-1))


def axes_of_factors(shape: Sequence[int], sizes: Sequence[int]) -> list[list[int]] | None:
    """Return the axes of a shape that each factor covers, or None if the sizes are not products of runs of axes."""
    runs: list[list[int]] = []
    axis = 0
    for number, size in enumerate(sizes):
        run, product = [], 1
        while axis < len(shape) and (product < size or shape[axis] == 1 or number == len(sizes) - 1):
            run.append(axis)
            product *= shape[axis]
            axis += 1
        if product != size:
            return None
        runs.append(run)
    return runs


def checked_axes(shape: Sequence[int], axes: Sequence[int], size: int) -> tuple[int, ...]:
    """Return the axes of a marginal, or raise InvalidInput."""
    if math.prod(shape) != size:
        raise InvalidInput("a marginal", "shape", f"be sizes whose product is {size}, the number of values", shape)
    chosen = tuple(axes)
    if len(set(chosen)) != len(chosen) or not all(0 <= axis < len(shape) for axis in chosen):
        must = f"be different numbers in 0 … {len(shape) - 1}, one per coordinate of the marginal"
        raise InvalidInput("a marginal", "axes", must, chosen)
    return chosen


def _cells(shape: Sequence[int], axes: Sequence[int]) -> Integers:
    """Return the number of the cell of every value."""
    cells = np.zeros([1] * len(shape), np.int64)
    for axis in axes:
        place = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])
        cells = cells * shape[axis] + place
    return np.broadcast_to(cells, shape).reshape(-1)
