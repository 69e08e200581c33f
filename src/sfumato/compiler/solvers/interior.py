"""Smooth convex programs with linear constraints, solved by a primal-dual interior-point method.

Minimise f(x) subject to A·x = b and C·x ≥ 0. The A-optimal design has this form with f(w) = tr J(w)⁻¹, which acts as
its own barrier at singular J. A conic solver can solve it too, as a semidefinite program with a cone of twice the size.
Newton steps on the weights are about fifty times faster for thirty values. Each step solves the linearised conditions
∇f + A'λ - C'z = 0, A·x = b, z·Cx = μ for a decreasing μ, after Mehrotra (1992).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._core import Floats, import_late
from sfumato.compiler.solvers.deadline import NEVER, Deadline
from sfumato.errors import SolverFailed

__all__ = ["Interior", "minimise", "numerical_error"]

#: Function that returns f(x) with its gradient and Hessian, or None outside its domain.
Smooth = Callable[[Floats], tuple[float, Floats, Floats] | None]

_MOST_STEPS = 200
#: Maximum fraction of the distance to the nearest face that a step covers.
_STEP_FRACTION = 0.99


@dataclass(frozen=True, eq=False)
class Interior:
    """The minimum: x, the multipliers λ of the equations and z ≥ 0 of the inequalities, and f(x).

    If ``converged`` is false, these are the last iterates before the deadline, which also satisfy z ≥ 0 and C·x > 0.
    """

    x: Floats
    equations: Floats
    inequalities: Floats
    value: float
    converged: bool = True


def numerical_error(problem: str) -> SolverFailed:
    """Return the error of a search for which double precision is not sufficient, with advice."""
    return SolverFailed(
        f"{problem}. Double precision may be insufficient, for example if an epsilon is very near 0. Raise such an "
        "epsilon, or use plan(), which also compares mechanisms that need no search."
    )


@np.errstate(over="ignore", divide="ignore", invalid="ignore")  # numbers that are not finite raise an error below
def minimise(
    function: Smooth,
    equations: Floats,
    right: Floats,
    inequalities: Any,
    start: Floats,
    tolerance: float = 1e-10,
    deadline: Deadline = NEVER,
) -> Interior:
    """Minimise f from a start with C·x > 0 in the domain of f; A·x = b need not hold there.

    C is a dense or sparse matrix, or None for the identity.
    """
    x = start
    at = function(x)
    if at is None:
        raise numerical_error("the interior-point method cannot start")
    value, gradient, hessian = at
    slacks = x if inequalities is None else inequalities @ x
    duals = np.full(len(slacks), max(abs(value), 1e-300) / len(slacks)) / slacks
    multipliers = np.zeros(len(right))
    for _ in range(_MOST_STEPS):
        gap = float(slacks @ duals)
        miss = equations @ x - right
        slope = gradient + equations.T @ multipliers
        steep = np.abs(slope - (duals if inequalities is None else inequalities.T @ duals)).max() * np.abs(x).max()
        if gap <= tolerance * abs(value) and np.abs(miss).max() <= tolerance and steep <= 1e3 * tolerance * abs(value):
            return Interior(x, multipliers, duals, value)
        if deadline.passed:
            return Interior(x, multipliers, duals, value, converged=False)
        if not 0 < gap < np.inf:
            raise numerical_error("the interior-point method did not converge")
        weights = duals / slacks
        solve = _solver(_with_barrier(hessian, inequalities, weights), equations)
        # The predictor step aims at μ = 0. Its possible length determines how much the next step is centred.
        _, _, d_slacks, d_duals = _step(solve, slope, miss, inequalities, slacks, duals, np.zeros(len(slacks)))
        reach = min(_reach(slacks, d_slacks), _reach(duals, d_duals))
        after = float((slacks + reach * d_slacks) @ (duals + reach * d_duals))
        centred = np.full(len(slacks), gap / len(slacks) * max(after / gap, 0.0) ** 3)
        d_x, d_multipliers, d_slacks, d_duals = _step(
            solve, slope, miss, inequalities, slacks, duals, centred - reach * d_slacks * d_duals
        )
        length = _STEP_FRACTION * min(_reach(slacks, d_slacks), _reach(duals, d_duals))
        if not np.isfinite(d_x).all():
            raise numerical_error("the interior-point method could not move")
        while (at := function(x + length * d_x)) is None:
            length /= 2
            if length < 1e-12:
                raise numerical_error("the interior-point method could not move")
        x = x + length * d_x
        multipliers = multipliers + length * d_multipliers
        slacks, duals = slacks + length * d_slacks, duals + length * d_duals
        value, gradient, hessian = at
    raise numerical_error("the interior-point method did not converge")


def _with_barrier(hessian: Floats, inequalities: Any, weights: Floats) -> Floats:
    """Return the Hessian plus C'·diag(weights)·C; C is dense, sparse, or None for the identity."""
    if inequalities is None:
        system = hessian.copy()
        system.ravel()[:: len(weights) + 1] += weights
        return system
    if isinstance(inequalities, np.ndarray):
        return np.asarray(hessian + inequalities.T @ (weights[:, None] * inequalities))
    return np.asarray(hessian + (inequalities.T.multiply(weights) @ inequalities).toarray())


def _solver(system: Floats, equations: Floats) -> Callable[[Floats, Floats], tuple[Floats, Floats]]:
    """Return a function that solves system·x + A'λ = first, A·x = second."""
    cho_solve = import_late("scipy.linalg").cho_solve
    factor = _factor(system)
    inner = cho_solve(factor, equations.T, check_finite=False)
    schur = _factor(equations @ inner)

    def solve(first: Floats, second: Floats) -> tuple[Floats, Floats]:
        plain = cho_solve(factor, first, check_finite=False)
        multipliers = cho_solve(schur, equations @ plain - second, check_finite=False)
        return plain - inner @ multipliers, multipliers

    return solve


def _factor(matrix: Floats) -> tuple[Floats, bool]:
    """Return the Cholesky factor of a matrix, with a small ridge if rounding made it indefinite."""
    linalg = import_late("scipy.linalg")
    ridge = 1e-15
    while ridge < 1e-3 and np.isfinite(matrix).all():
        try:
            raised = matrix.copy()
            raised.ravel()[:: len(raised) + 1] *= 1 + ridge
            factor: tuple[Floats, bool] = linalg.cho_factor(raised, overwrite_a=True, check_finite=False)
            return factor
        except linalg.LinAlgError:
            ridge *= 100
    raise numerical_error("the interior-point method met a singular system")


def _step(
    solve: Callable[[Floats, Floats], tuple[Floats, Floats]],
    slope: Floats,
    miss: Floats,
    inequalities: Any,
    slacks: Floats,
    duals: Floats,
    products: Floats,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the Newton step of x, λ, the slacks and z towards slacks·duals = products."""
    targets = products / slacks
    d_x, d_multipliers = solve((targets if inequalities is None else inequalities.T @ targets) - slope, -miss)
    d_slacks = d_x if inequalities is None else inequalities @ d_x
    return d_x, d_multipliers, d_slacks, targets - duals - duals / slacks * d_slacks


def _reach(values: Floats, steps: Floats) -> float:
    """Return the largest step length, at most 1, that keeps all values non-negative."""
    falling = steps < 0
    return float(min(1.0, (-values[falling] / steps[falling]).min(initial=np.inf)))
