"""The least asymptotic error of estimated frequencies: an A-optimal design over the rays of a policy's cone.

Consider n reports of a mechanism Q(y|x) = w_y·v_y(x) with v_y·p = 1 and Σ w_y v_y = 1. The efficient estimator has the
covariance (J⁻¹ - pp')/n with J = Σ_y w_y v_y v_y'. The search minimises tr J⁻¹ - |p|², which is convex in the weights
w. In each round it adds the rays that improve J the most.

The bound: for every symmetric N, tr J⁻¹ ≥ 2·tr N - tr(N²J), because |J^-½ - J^½N|² ≥ 0. For every λ, tr(N²J) = Σ
w_y·(v_y'N²v_y - λ·v_y) + λ·1 ≤ δ + λ·1, where δ is the greatest v'N²v - λ·v over the slice, because Σ w_y = 1. Hence tr
J⁻¹ ≥ 2·tr N - λ·1 - δ for every mechanism. With N = J⁻¹ and the multipliers λ of the program, this bound equals the
value if no ray is missing. If the rays can be enumerated, δ is their maximum. Otherwise a relaxation bounds the value
directly (``relaxation``).

The same search serves a fixed distribution and one that the program chooses as the least favourable (``worst_case``).
In the second case rays keep their directions and are rescaled to the slice of the distribution that was chosen last.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from sfumato._core import Floats
from sfumato.compiler.solvers.deadline import GRACE, NEVER, Deadline, OutOfTime
from sfumato.compiler.solvers.design_weights import LEAST_WEIGHT, DesignWeights, Rounds
from sfumato.compiler.solvers.interior import minimise
from sfumato.compiler.solvers.pricing import Pricing, climb, greatest, sum_of_squares
from sfumato.compiler.solvers.relaxation import least_trace, relaxation_seconds
from sfumato.compiler.solvers.slice import FRACTION_WITHIN, Slice, distinct
from sfumato.errors import NoMechanism

__all__ = ["Solve", "Solved", "best_design", "least_error", "solve_design"]


#: Worth of a ray, relative to the value, at which the search ends; about the precision of the solver.
_TOLERANCE = 1e-6
#: Number of rounds that together improve the value by less than a thousandth of the tolerance before the search ends.
_IDLE_ROUNDS = 4
#: Number of starts per coordinate from which rays are searched: normally, and after a round that improved nothing.
_STARTS = (1, 8)
#: Maximum number of coordinates for which branch and bound over rays follows the relaxation.
_FEW_COORDINATES = 10
#: Minimum number of Newton steps of a design, and seconds per step and third power of the number of rays.
_LEAST_STEPS, _STEP_SECONDS = 8, 1e-10
#: Fraction of the time for the search if the bound takes time too.
_SEARCH_FRACTION = 0.6


@dataclass(frozen=True, eq=False)
class Solved:
    """The best weights of some rays with v·p = 1, the prices for other rays, and the error tr J⁻¹ - |p|².

    No mechanism has an error below ``constant`` minus the greatest worth of any ray.
    """

    weights: Floats
    pricing: Pricing
    constant: float
    value: float
    prior: Floats


#: Function that returns the best weights of rays at a distribution, or at one that the program chooses.
Solve = Callable[[Floats, Floats, Deadline], Solved]


def best_design(
    slice_: Slice, deadline: Deadline, rounds: Rounds | None = None, solve: Solve | None = None
) -> tuple[DesignWeights, Floats]:
    """Generate rays until none is missing or the deadline passes; return the design and its distribution.

    If the rays cannot be enumerated, a part of the time is reserved for the bound.
    """
    solve = solve or least_error
    first = deadline.extended(GRACE)
    everything = slice_.all_vertices(deadline)
    rays = slice_.first_rays(first) if slice_.size > 1 else slice_.axis_vertices()
    if slice_.within is not None:
        part = deadline.part(FRACTION_WITHIN)
        with suppress(OutOfTime):
            rays = distinct(np.concatenate([rays, best_design(slice_.within, part, rounds, solve)[0].rays]))
    if np.linalg.matrix_rank(rays) < slice_.size:
        raise NoMechanism(
            "under this policy no mechanism can estimate all frequencies, or an epsilon is too near 0 for double "
            "precision. Raise the epsilons of the policy that are near 0, or choose another utility."
        )
    bound, least, idle = -np.inf, np.inf, 0
    bounding = relaxation_seconds(slice_.size, len(slice_.rows) + 2 * slice_.size)
    relaxed = everything is None and deadline.part(1 - _SEARCH_FRACTION).fits(bounding)
    end_of_search = deadline.part(_SEARCH_FRACTION) if relaxed else deadline
    solved: Solved | None = None
    solved_rays = used = rays
    while True:
        try:
            solved = solve(rays, slice_.prior, first if solved is None else end_of_search)
        except OutOfTime:
            if solved is None:
                raise
            # Fall back to the last rays that were solved in time.
            rays, done = solved_rays, False
            break
        slice_, value, pricing = slice_.at(solved.prior), solved.value, solved.pricing
        rays = scaled(rays, slice_.prior)
        solved_rays, used = rays, rays[solved.weights > LEAST_WEIGHT]
        candidates = (
            climb(slice_, pricing, used, _STARTS[min(idle, 1)], end_of_search)
            if everything is None
            else scaled(everything, slice_.prior)
        )
        worths = pricing.of(candidates)
        if everything is not None:
            bound = max(bound, solved.constant - float(worths.max()))
        if rounds is not None:
            rounds(value, bound)
        better = np.argsort(-worths)[: 4 * slice_.size]
        better = better[worths[better] > _TOLERANCE * value]
        idle = 0 if len(better) and value < least * (1 - _TOLERANCE / 1000) else idle + 1
        least = min(least, value)
        done = slice_.size == 1 or idle >= _IDLE_ROUNDS or (everything is not None and not len(better))
        if done or end_of_search.passed:
            break
        rays = distinct(np.concatenate([used, candidates[better]]))
    if everything is None:
        bound = least_trace(slice_, used, deadline) if relaxed else -np.inf
        bound -= float(slice_.prior @ slice_.prior)
        if slice_.size <= _FEW_COORDINATES:
            most, _ = greatest(slice_, pricing, used[int(pricing.of(used).argmax())], deadline, _TOLERANCE * value)
            bound = max(bound, solved.constant - most)
    # Without any noise tr J⁻¹ is one. For many coordinates, or without time for more, this is the only bound.
    bound = max(bound, 1 - float(slice_.prior @ slice_.prior))
    complete = everything is not None
    return DesignWeights(rays, solved.weights, value, min(bound, value), complete, in_time=done).used(), slice_.prior


def scaled(rays: Floats, prior: Floats) -> Floats:
    """Return the rays scaled to v·p = 1."""
    return np.asarray(rays / (rays @ prior)[:, None])


def least_error(rays: Floats, prior: Floats, deadline: Deadline = NEVER) -> Solved:
    """Return the best weights at a fixed distribution."""
    weights, pricing, constant, value = solve_design(rays, deadline)
    return Solved(weights, pricing, constant - float(prior @ prior), value - float(prior @ prior), prior)


def solve_design(rays: Floats, deadline: Deadline = NEVER) -> tuple[Floats, Pricing, float, float]:
    """Return the best weights, the prices for other rays, the bound plus the greatest worth, and the value.

    Raise OutOfTime at the deadline, because weights that have not converged do not form a mechanism.
    """
    count, size = rays.shape
    if not deadline.fits(_LEAST_STEPS * _STEP_SECONDS * count**2 * (count + 3 * size)):
        raise OutOfTime

    def inverse_trace(weights: Floats) -> tuple[float, Floats, Floats] | None:
        information = (rays * weights[:, None]).T @ rays
        try:
            np.linalg.cholesky(information)
            inverse: Floats = np.linalg.inv(information).astype(np.float64)
        except np.linalg.LinAlgError:
            return None
        turned = rays @ inverse
        hessian = 2 * (turned @ rays.T) * (turned @ turned.T)
        return float(np.trace(inverse)), -np.sum(turned**2, axis=1), hessian

    solution = minimise(inverse_trace, rays.T, np.ones(size), None, np.full(count, 1 / count), deadline=deadline)
    if not solution.converged:
        raise OutOfTime
    inverse: Floats = np.linalg.inv((rays * solution.x[:, None]).T @ rays).astype(np.float64)
    pricing = sum_of_squares(inverse, solution.equations)
    return solution.x, pricing, float(2 * np.trace(inverse) - solution.equations.sum()), float(np.trace(inverse))
