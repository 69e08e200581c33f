"""The greatest utility of a mechanism if the utility is a sum over outputs: a linear program over rays.

Maximise Σ w_y·f(v_y) subject to Σ w_y·v_y = 1 and w ≥ 0, over the rays v of a slice. For fixed rays this is a linear
program. Its multipliers λ price a new ray at f(v) - λ·v. For any λ, no mechanism has a utility above λ·1 + max(f(v) -
λ·v), because Σ w_y = 1.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from sfumato._core import Floats
from sfumato.compiler.solvers.deadline import GRACE, NEVER, Deadline, OutOfTime
from sfumato.compiler.solvers.design_weights import DesignWeights, Rounds
from sfumato.compiler.solvers.linear_program import best_weights
from sfumato.compiler.solvers.rays import distinct
from sfumato.compiler.solvers.slice import Slice
from sfumato.compiler.solvers.utilities import Utility
from sfumato.errors import SolverFailed

__all__ = ["best_mixture", "solve_weights"]


#: Distance of bound and value, relative to the value, at which the search ends.
_TOLERANCE = 3e-7
#: Relative distance at which a search that rounding stopped still counts as complete.
_COMPLETE = 1e-6
#: Utilities below this are scaled, because the solver treats 1e-7 as zero.
_SMALL = 1e-6
#: Distances of rays from the constant ray below this are rounding errors.
_NO_REACH = 1e-12
#: Fraction of the time for the search under listed rules if not all rules can be listed; it finds most rays.
_FRACTION_WITHIN = 0.35
#: Fraction of the time for rays, before the bound, if rules must be generated too.
_SEARCH_FRACTION = 0.75
#: Weight of the multipliers of the best bound in the prices of rays (Wentges 1997).
_SMOOTHING = 0.7


def best_mixture(slice_: Slice, utility: Utility, deadline: Deadline, rounds: Rounds | None = None) -> DesignWeights:
    """Generate rays until the bound meets the value or the deadline passes.

    The search switches to the bound at half time at the latest, or later if the rules themselves must be generated.
    """
    first = deadline.extended(GRACE)
    everything = slice_.all_vertices(deadline)
    if everything is not None:
        everything, weights, multipliers, value = _solved(everything, utility, slice_.prior, first)
        # The multipliers are exact only up to the tolerance of the solver, so the bound is computed over every ray.
        bound = float(multipliers.sum() + (utility.of(everything) - everything @ multipliers).max())
        return DesignWeights(everything, weights, value, max(bound, value), complete=True, in_time=True).used()
    end_of_search = deadline.part(1 / 2)
    rays = slice_.first_rays(first)
    if slice_.within is not None:
        part = deadline.part(_FRACTION_WITHIN)
        end_of_search = deadline.part(_SEARCH_FRACTION)
        with suppress(OutOfTime):
            rays = distinct(np.concatenate([rays, best_mixture(slice_.within, utility, part, rounds).rays]))
    bound, centre, smooth = np.inf, None, True
    solved: tuple[Floats, Floats, float] | None = None
    while True:
        in_time = not deadline.passed
        try:
            rays, weights, multipliers, value = _solved(
                rays, utility, slice_.prior, first if solved is None else deadline
            )
        except OutOfTime:
            if solved is None:
                raise
            (rays, weights, value), in_time = solved, False
            break
        solved = rays, weights, value
        tolerated = _TOLERANCE * max(abs(value), _TOLERANCE)
        if bound - value <= tolerated or not in_time:
            break
        # Multipliers of few rays oscillate. Prices near the multipliers of the best bound so far stabilise them.
        prices = multipliers if centre is None or not smooth else _SMOOTHING * centre + (1 - _SMOOTHING) * multipliers
        base, rules = float(prices.sum()), len(slice_.rows)
        enough = value - base + tolerated if not end_of_search.passed else np.inf
        most, candidates = utility.search(slice_, prices, rays[weights > 0], enough, deadline)
        if base + most < bound:
            bound, centre = base + most, prices
        if rounds is not None:
            rounds(value, bound)
        worths = utility.of(candidates) - candidates @ multipliers
        better = np.argsort(-worths)[: 4 * slice_.size]
        better = better[worths[better] > 0.1 * tolerated]
        if not len(better) and not smooth and len(slice_.rows) == rules:
            break
        smooth = len(better) > 0
        rays = distinct(np.concatenate([rays, candidates[better]]))
    complete = bool(bound - value <= _COMPLETE * abs(value))
    return DesignWeights(rays, weights, value, max(bound, value), complete=complete, in_time=complete or in_time).used()


def _solved(rays: Floats, utility: Utility, prior: Floats, deadline: Deadline) -> tuple[Floats, Floats, Floats, float]:
    """Return the rays with their best weights, the multipliers and the value; add the constant ray if needed."""
    # The first tolerance is tight, because a long ray has a small weight that must not be rounded to zero. In a thin
    # slice, double precision allows weights that reach the constant only approximately.
    for tolerance in (1e-10, 1e-7):
        try:
            return rays, *solve_weights(rays, utility.of(rays), prior, deadline, tolerance)
        except OutOfTime:
            raise
        except SolverFailed:
            continue
    rays = np.concatenate([rays, np.ones((1, len(prior)))])
    return rays, *solve_weights(rays, utility.of(rays), prior, deadline)


def solve_weights(
    rays: Floats, utilities: Floats, prior: Floats, deadline: Deadline = NEVER, tolerance: float = 1e-7
) -> tuple[Floats, Floats, float]:
    """Maximise utilities·w subject to Σ w·v = 1 and w ≥ 0; return the weights, the multipliers and the value."""
    deadline.require()
    most = float(np.abs(utilities).max())
    scale = most if 0 < most < _SMALL else 1.0
    # Σ w = 1 and Σ w·(v - 1) = 0, in units of the distance of rays from 1, because the solver neglects small numbers.
    reach = np.abs(rays - 1).max(axis=0)
    reach[reach < _NO_REACH] = 1.0
    equations = np.concatenate([(rays - 1) / reach, np.ones((len(rays), 1))], axis=1).T
    right = np.append(np.zeros(rays.shape[1]), 1.0)
    weights, prices, cost = best_weights(-utilities / scale, equations, right, tolerance, deadline)
    *slopes, constant = -scale * prices
    multipliers = np.array(slopes) / reach
    # Since v·p = 1, the constant is a multiple of p.
    return weights, multipliers + (constant - multipliers.sum()) * prior, -scale * cost
