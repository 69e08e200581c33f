"""A bound on the best design that does not need the vertices of the slice.

For v in a cone with rows r_i·v ≥ 0, all products (r_i·v)(r_j·v) are non-negative. For every design, J = Σ w·vv'
therefore satisfies r_i'Jr_j ≥ 0, is positive semidefinite, and J·p = Σ w·v·(v·p) = 1. Minimising tr J⁻¹ under these
conditions alone is a convex program, and its minimum is a lower bound for every design.

Let N = J⁻¹ at the minimum, with multipliers λ of J·p = 1 and y ≥ 0 of the products. Up to rounding, N² is the symmetric
part of λp' - Σ y_ij·r_i r_j'. Every design therefore has tr J⁻¹ ≥ 2·tr N - tr(N²J) ≥ 2·tr N - λ·1. The rounding error
of N² enters with its greatest eigenvalue times tr J ≤ max |v|².
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.compiler.solvers.deadline import Deadline, OutOfTime
from sfumato.compiler.solvers.interior import minimise
from sfumato.compiler.solvers.slice import Slice

__all__ = ["least_trace", "relaxation_seconds"]


#: Number of violated products that a round adds, the most violated first.
_ADDED = 1000
#: Maximum number of faces; their pairs are then at most a hundred million.
_MOST_FACES = 10_000
#: Newton steps of a round, and operations per second of one core.
_STEPS, _OPERATIONS_PER_SECOND = 40, 1e10
#: Seconds to find the violated products, per pair of faces.
_PAIR_SECONDS = 3e-8
#: Minimum relative increase of the bound in a round; a smaller one ends the search.
_LEAST_GAIN = 1e-4
#: Length of an inequality, relative to the longest, below which it is a rounding error.
_BINDS = 1e-14
#: Violation of a product that is tolerated, in units of the information of the starting rays.
_VIOLATED = 1e-6


def relaxation_seconds(size: int, faces: int) -> float:
    """Estimate the seconds of the first round: about 40 Newton steps over the entries of J, with a thousand products.

    The estimate is infinite if there are too many faces.
    """
    if faces > _MOST_FACES:
        return math.inf
    entries = size * (size + 1) / 2
    return _STEPS * (entries**3 / 3 + _ADDED * entries**2) / _OPERATIONS_PER_SECOND + _PAIR_SECONDS * faces**2


def least_trace(slice_: Slice, rays: Floats, deadline: Deadline) -> float:
    """Return a lower bound on tr J⁻¹ of every design, starting from some ``rays`` of the slice.

    Every round yields a bound, including one that the deadline interrupts, and further rounds improve it. Without time
    for a round the bound is 1, the trace without any noise.
    """
    size = slice_.size
    inner = np.concatenate([rays, np.ones((1, size)) / slice_.prior.sum()])
    # Let LL' be the information of these rays and K = L⁻¹. Then J̃ = KJK' is near the identity, even if some values are
    # hard to distinguish: tr J⁻¹ = tr(KK'J̃⁻¹), r'Jr = (L'r)'J̃(L'r), J̃·L'p = K·1.
    lower = np.linalg.cholesky(inner.T @ inner / len(inner))
    scale = np.linalg.inv(lower)
    cost, average, ones = scale @ scale.T, lower.T @ slice_.prior, scale.sum(axis=1)
    try:
        limits = slice_.most(np.eye(size), deadline)
    except OutOfTime:
        return 1.0
    faces = np.concatenate([slice_.rows, np.eye(size), np.outer(limits, slice_.prior) - np.eye(size)]) @ lower
    if len(faces) > _MOST_FACES:
        return 1.0
    lengths = np.linalg.norm(faces, axis=1, keepdims=True)
    binds = lengths[:, 0] > _BINDS * lengths.max()  # a face vanishes if p has all its mass on one value
    faces = faces[binds] / lengths[binds]
    rows, columns = np.triu_indices(size)
    places = np.zeros((size, size), dtype=np.intp)
    places[rows, columns] = places[columns, rows] = np.arange(len(rows))
    twice = np.where(rows == columns, 1.0, 2.0)
    averages = np.zeros((size, len(rows)))
    np.add.at(averages, (rows, np.arange(len(rows))), average[columns])
    np.add.at(averages, (columns, np.arange(len(rows))), np.where(rows == columns, 0.0, average[rows]))

    def inverse_trace(entries: Floats) -> tuple[float, Floats, Floats] | None:
        """Return tr J⁻¹, its gradient and its Hessian by the entries of J̃; None unless J̃ is positive definite."""
        matrix = entries[places]
        try:
            np.linalg.cholesky(matrix)
            inverse: Floats = np.linalg.inv(matrix).astype(np.float64)
        except np.linalg.LinAlgError:
            return None
        square = inverse @ cost @ inverse
        value = float(np.sum(inverse * cost))
        return value, -square[rows, columns] * twice, _curvature(inverse, square, rows, columns)

    # v_x·(limit - v_x) ≥ 0 bounds J from the start. The smallest products at some design are likely to be active.
    upper = np.triu(np.ones((len(faces), len(faces)), dtype=bool))
    chosen = np.zeros(upper.shape, dtype=bool)
    values = np.where(upper, faces @ faces.T, np.inf)
    chosen.ravel()[_smallest(values)] = True
    chosen[len(slice_.rows) + np.arange(size), len(slice_.rows) + size + np.arange(size)] = True
    bound = 1.0
    while True:
        first, second = (faces[side] for side in np.nonzero(chosen))
        products = (first[:, rows] * second[:, columns] + first[:, columns] * second[:, rows]) / 2
        solution = minimise(
            inverse_trace, averages, ones, products * twice, np.eye(size)[rows, columns], 1e-7, deadline
        )
        matrix = solution.x[places]
        inverse = np.linalg.inv(matrix)
        explained = np.outer(solution.equations, average)
        explained = (explained + explained.T) / 2 - (solution.inequalities @ products)[places]
        rest = scale.T @ (inverse @ cost @ inverse - explained) @ scale
        unexplained = max(float(np.linalg.eigvalsh(rest).max()), 0.0)
        before = bound
        bound = max(
            bound, float(2 * np.sum(inverse * cost) - solution.equations @ ones - unexplained * limits @ limits)
        )
        if deadline.passed:
            return bound
        values = np.where(upper & ~chosen, faces @ matrix @ faces.T, np.inf)
        worst = _smallest(values)
        worst = worst[values.ravel()[worst] < -_VIOLATED]
        if not len(worst) or bound < before * (1 + _LEAST_GAIN):
            return bound
        chosen.ravel()[worst] = True


def _smallest(values: Floats) -> npt.NDArray[np.intp]:
    """Return the positions of the smallest values, as many as a round adds; sorting all values would take seconds."""
    flat = values.ravel()
    return np.argpartition(flat, _ADDED)[:_ADDED] if len(flat) > _ADDED else np.arange(len(flat))


def _curvature(inverse: Floats, square: Floats, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]) -> Floats:
    """Return the Hessian of tr J⁻¹ by the entries of J: tr(N²·D·N·D') + tr(N·D·N²·D') for symmetric units D, D'."""
    total = np.zeros((len(rows), len(rows)))
    for outer, middle in ((square, inverse), (inverse, square)):
        for i, j in ((rows, columns), (columns, rows)):
            for k, last in ((rows, columns), (columns, rows)):
                total += outer[np.ix_(i, last)] * middle[np.ix_(j, k)]
    halves = np.where(rows == columns, 0.5, 1.0)  # a diagonal unit is its own transpose and was counted twice
    return np.asarray(total * np.outer(halves, halves))
