"""The least error at the least favourable distribution: one program for the weights of rays and that distribution.

The error tr J(p)⁻¹ - |p|² of the efficient estimate, with J(p) = Σ_y q_y q_y'/(q_y·p), is convex in the mixture of
rays. It is concave in p, because it is the minimum of Σ_y (q_y·p)·|d_y|² - |p|² over unbiased estimates d. A saddle
point therefore exists. The dual of the design at p maximises 2·tr N - λ·1 subject to |N·v|² ≤ (λ·v)·(v·p) for every ray
v, a second-order cone in p as well. The least favourable p is therefore one more variable of the dual, and the
multipliers of the cones are the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, import_late
from sfumato.compiler.solvers.answers import Answers
from sfumato.compiler.solvers.deadline import NEVER, Deadline, OutOfTime
from sfumato.compiler.solvers.estimation import Solved, scaled
from sfumato.compiler.solvers.interior import numerical_error
from sfumato.compiler.solvers.pricing import sum_of_squares
from sfumato.compiler.solvers.slice import Slice

__all__ = ["LEAST_PROBABILITY", "least_worst_error"]


#: Minimum probability of a value, as a fraction of the uniform distribution; it bounds the slice.
LEAST_PROBABILITY = 1e-5
_TOLERANCE = 1e-10
#: Seconds per step of the solver, per ray and fourth power of the number of coordinates.
_STEP_SECONDS = 2e-8


def least_worst_error(slice_: Slice, rays: Floats, deadline: Deadline = NEVER) -> Solved:
    """Return the best weights and the least favourable distribution for these rays, scaled to that distribution.

    If little is revealed, N and λ are large and nearly cancel on every ray. The program therefore uses units of an
    information J = Q·diag(s)·Q' of these rays: λ = T·Q·diag(s)^-½·μ with μ of order one, where T is the error at J, and
    similar units for N (``_Unknowns``).
    """
    rays = rays / rays.max(axis=1, keepdims=True)
    count, size = rays.shape
    if _STEP_SECONDS * count * size**4 > deadline.left:  # the solver checks the clock only between steps
        raise OutOfTime
    even = scaled(rays, np.full(size, 1 / size))
    spectrum, turn = np.linalg.eigh(even.T @ even / count)
    if not spectrum[0] > 0:
        raise numerical_error("the least favourable distribution was not found")
    unit = turn / np.sqrt(spectrum)
    unknowns = _unknowns(slice_.answers, spectrum, unit)
    trace, names = unknowns.trace, unknowns.names
    matrix = _cones(rays, rays @ unit, unknowns)
    variables = matrix.shape[1]
    first_prior = variables - size
    sparse, clarabel = import_late("scipy.sparse"), import_late("clarabel")
    # The solver minimises ½x'Px + c·x with offset - A·x in the cones. Σ p = 1, and every p is at least its minimum.
    total, floors = np.zeros((1, variables)), np.zeros((size, variables))
    total[0, first_prior:] = 1
    floors[np.arange(size), first_prior + np.arange(size)] = -1
    constraints = sparse.vstack([sparse.csr_matrix(total), sparse.csr_matrix(floors), -matrix]).tocsc()
    offset = np.concatenate([[1.0], np.full(size, -LEAST_PROBABILITY / size), np.zeros(matrix.shape[0])])
    square = np.eye(size) if slice_.answers is None else slice_.answers.square
    curvature = sparse.block_diag(
        [sparse.csc_matrix((first_prior, first_prior)), sparse.csc_matrix(np.triu(2 * square / trace))]
    ).tocsc()
    costs = np.zeros(variables)
    np.add.at(costs, names, unknowns.costs)
    costs[first_prior - size : first_prior] = unit.sum(axis=0)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.time_limit = deadline.left
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
    height = len(names) + 2
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(size), *[clarabel.SecondOrderConeT(height)] * count]
    solution = clarabel.DefaultSolver(curvature, costs, constraints, offset, cones, settings).solve()
    if str(solution.status) == "MaxTime":
        raise OutOfTime
    if str(solution.status) not in ("Solved", "AlmostSolved", "InsufficientProgress"):
        raise numerical_error(f"the least favourable distribution was not found (solver status: {solution.status})")
    x = np.array(solution.x)
    multipliers = np.array(solution.z)[1 + size :].reshape(count, height)
    worst = np.maximum(x[first_prior:], LEAST_PROBABILITY / size)
    worst /= worst.sum()
    rays_there = scaled(rays, worst)
    # The derivative by λ is Σ_y (z₀ + z₁)·v_y = 1. The residual of the solver is spread over all rays.
    weights = np.maximum(multipliers[:, 0] + multipliers[:, 1], 0.0) * (rays @ worst)
    weights += (
        (1 - weights @ rays_there)
        @ np.linalg.pinv((rays_there * weights[:, None]).T @ rays_there)
        @ (rays_there * weights[:, None]).T
    )
    matrix_n, slopes = unknowns.turned(x[names]), trace * unit @ x[first_prior - size : first_prior]
    information = (rays_there * weights[:, None]).T @ rays_there
    rows = np.eye(size) if slice_.answers is None else slice_.answers.rows
    matrix_n = matrix_n[: len(rows)]
    mean = float(worst @ square @ worst)
    try:
        value = float(np.einsum("ij,ij->", rows @ np.linalg.inv(information), rows)) - mean
    except np.linalg.LinAlgError:
        raise numerical_error("the least favourable distribution was not found") from None
    gain = float(np.einsum("ij,ij->", matrix_n, rows))
    return Solved(weights, sum_of_squares(matrix_n, slopes), 2 * gain - float(slopes.sum()) - mean, value, worst)


@dataclass(frozen=True, eq=False)
class _Unknowns:
    """The matrix N of the program in units of an information, as a matrix K of variables.

    Parameters
    ----------
    names
        The number of the variable of each entry of K.
    scales
        The factor of each row of K in the cones.
    costs
        The coefficient of each entry of K in the objective.
    trace
        The error at the information, the unit of the objective.
    turned
        Function that returns N for given K.
    """

    names: npt.NDArray[np.int64]
    scales: Floats
    costs: Floats
    trace: float
    turned: Callable[[Floats], Floats]


def _unknowns(answers: Answers | None, spectrum: Floats, unit: Floats) -> _Unknowns:
    """Return the variables of N; for frequencies, N = Q·diag(s)^-½·K·diag(s)^-½·Q' with symmetric K."""
    size = len(spectrum)
    names: npt.NDArray[np.int64]
    if answers is None:
        trace = float(np.sum(1 / spectrum))
        names = np.zeros((size, size), dtype=np.int64)
        upper = np.triu_indices(size)
        names[upper] = names.T[upper] = np.arange(len(upper[0]))
        costs = np.diag(-2.0 / (spectrum * trace))
        return _Unknowns(names, 1 / np.sqrt(spectrum * trace), costs, trace, lambda k: np.asarray(unit @ k @ unit.T))
    rows = answers.regular_rows()
    turned = rows @ unit
    trace = float(np.sum(turned**2))
    names = np.arange(turned.size, dtype=np.int64).reshape(turned.shape)
    costs, root = -2.0 / np.sqrt(trace) * turned, np.sqrt(trace)
    return _Unknowns(names, np.ones(len(rows)), costs, trace, lambda k: np.asarray(root * k @ unit.T))


def _cones(rays: Floats, turned: Floats, unknowns: _Unknowns) -> Any:
    """Return the rows (μ·w + v·p, μ·w - v·p, 2·scales·K·w) for each ray v, where w is v in scaled units.

    The result is a sparse matrix over the variables of K, then μ and p.
    """
    count, size = rays.shape
    names, scales = unknowns.names, unknowns.scales
    first, height = int(names.max()) + 1, len(names) + 2
    y, i, j = (numbers.ravel() for numbers in np.indices((count, *names.shape)))
    ray, x = (numbers.ravel() for numbers in np.indices((count, size)))
    entries, rows, columns = (
        np.concatenate(parts)
        for parts in (
            (turned.ravel(), rays.ravel(), turned.ravel(), -rays.ravel(), 2 * scales[i] * turned[y, j]),
            (ray * height, ray * height, ray * height + 1, ray * height + 1, y * height + 2 + i),
            (first + x, first + size + x, first + x, first + size + x, names[i, j]),
        )
    )
    shape = (count * height, first + 2 * size)
    return import_late("scipy.sparse").csr_matrix((entries, (rows, columns)), shape=shape)
