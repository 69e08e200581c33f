"""The least asymptotic error of frequencies or answers: an A-optimal design over the rays of a policy's cone.

Consider n reports of a mechanism Q(y|x) = w_y·v_y(x) with v_y·p = 1 and Σ w_y v_y = 1. The efficient estimator has the
covariance (J⁻¹ - pp')/n with J = Σ_y w_y v_y v_y'. The search minimises tr J⁻¹ - |p|², which is convex in the weights
w. In each round it adds the rays that improve J the most.

The bound: for every symmetric N, tr J⁻¹ ≥ 2·tr N - tr(N²J), because |J^-½ - J^½N|² ≥ 0. For every λ, tr(N²J) = Σ
w_y·(v_y'N²v_y - λ·v_y) + λ·1 ≤ δ + λ·1, where δ is the greatest v'N²v - λ·v over the slice, because Σ w_y = 1. Hence tr
J⁻¹ ≥ 2·tr N - λ·1 - δ for every mechanism. With N = J⁻¹ and the multipliers λ of the program, this bound equals the
value if no ray is missing. If the rays can be enumerated, δ is their maximum. Otherwise a relaxation bounds the value
directly (``relaxation``).

For the answers W·p to a question (``answers``), the search minimises tr(W·J⁻·W') - |W·p|² instead. With N = J⁻·W', the
bound is 2·tr(W·N) - λ·1 - δ, where δ is the greatest |N'v|² - λ·v.

The same search serves a fixed distribution and one that the program chooses as the least favourable (``worst_case``).
In the second case rays keep their directions and are rescaled to the slice of the distribution that was chosen last.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.compiler.solvers.answers import Answers, rays_of_answers
from sfumato.compiler.solvers.clusters import components, trace_of_clusters
from sfumato.compiler.solvers.coarsening import LARGEST_FINE, coarse_slice
from sfumato.compiler.solvers.deadline import GRACE, NEVER, Deadline, OutOfTime
from sfumato.compiler.solvers.design_weights import LEAST_WEIGHT, DesignWeights, Rounds
from sfumato.compiler.solvers.interior import minimise
from sfumato.compiler.solvers.pricing import Pricing, climb, greatest, sum_of_squares
from sfumato.compiler.solvers.rays import distinct
from sfumato.compiler.solvers.relaxation import least_trace
from sfumato.compiler.solvers.slice import FRACTION_WITHIN, Slice
from sfumato.errors import NoMechanism, SolverFailed

__all__ = ["EXHAUSTIVE", "Effort", "Solve", "Solved", "balanced", "best_design", "least_error", "solve_design"]


#: Worth of a ray, relative to the value, at which the search ends; about the precision of the solver.
_TOLERANCE = 1e-6
#: Number of rounds that together improve the value by less than a thousandth of the tolerance before the search ends.
_IDLE_ROUNDS = 4
#: Number of starts per coordinate from which rays are searched: normally, and after a round that improved nothing.
_STARTS = (1, 8)
#: The same for the local search, whose rays take less time.
_LOCAL_STARTS = (4, 16)
#: Number of rounds over which the progress of a search is measured.
_PROGRESS_ROUNDS = 10
#: Precision of the weights in the first round and after the last one; in between it follows the progress.
_FIRST_PRECISION, _LAST_PRECISION = 1e-4, 1e-10
#: Greatest probability of an output, relative to the average weight, below which its ray is dropped between rounds.
_LIGHT = 0.1
#: Number of rays per coordinate that are kept in a search for the best answers to a question.
_KEPT = 12
#: Factor by which this limit decreases if the other rays do not suffice for a design.
_LIGHTER = 0.01
#: Relative distance to the best possible value at which the search ends.
_ON_TARGET = 2e-5
#: Maximum number of coordinates for which branch and bound over rays follows the relaxation.
_FEW_COORDINATES = 10
#: Maximum number of answers for which it does; each is one direction of the branching.
_FEW_DIRECTIONS = 2
#: Relative distance between value and bound at which no other bound is computed.
_CLOSE = 1e-4
#: Minimum number of Newton steps of a design, and seconds per step and third power of the number of rays.
_LEAST_STEPS, _STEP_SECONDS = 8, 1e-10
#: Fraction of the time for the search if not all rays are known; the rest is for the bound.
_SEARCH_FRACTION = 0.7


@dataclass(frozen=True, eq=False)
class Solved:
    """The best weights of some rays with v·p = 1, the prices for other rays, and the error tr(W·J⁻·W') - |W·p|².

    No mechanism has an error below ``constant`` minus the greatest worth of any ray.
    """

    weights: Floats
    pricing: Pricing
    constant: float
    value: float
    prior: Floats


class Solve(Protocol):
    """Function that returns the best weights of rays at a distribution, or at one that the program chooses."""

    def __call__(self, slice_: Slice, rays: Floats, deadline: Deadline, *, precision: float) -> Solved:
        """Return the weights; raise OutOfTime at the deadline."""


@dataclass(frozen=True, eq=False)
class Effort:
    """How long a search goes on, apart from its deadline.

    Parameters
    ----------
    least_progress
        Relative improvement of the value over ten rounds below which the search ends; 0 to continue until no ray
        improves the value.
    most_rounds
        Maximum number of rounds, or None for no limit.
    target
        Value at which the search ends, because no design is better.
    """

    least_progress: float = 0.0
    most_rounds: int | None = None
    target: float = -np.inf


#: The search goes on until no ray improves the design.
EXHAUSTIVE = Effort()
#: The search ends when ten rounds improve the design by less than one percent; a bound needs no better design.
_QUICK = Effort(least_progress=0.01)


def best_design(
    slice_: Slice,
    deadline: Deadline,
    rounds: Rounds | None = None,
    solve: Solve | None = None,
    *,
    warm: Floats | None = None,
    effort: Effort = EXHAUSTIVE,
) -> tuple[DesignWeights, Floats]:
    """Generate rays until none is missing or the deadline passes; return the design and its distribution.

    The search starts from the rays in ``warm``, if any, and from rays in all directions. If the rays cannot be
    enumerated, a part of the time is reserved for the bound.
    """
    solve = solve or least_error
    first = deadline.extended(GRACE)
    everything = slice_.all_vertices(deadline)
    rays = slice_.first_rays(first) if slice_.size > 1 else slice_.axis_vertices()
    if slice_.answers is not None and slice_.ray_search is not None and slice_.epsilons is not None:
        proposed = rays_of_answers(slice_.answers, slice_.epsilons)
        warm = proposed if warm is None else np.concatenate([warm, proposed])
    if warm is not None and len(warm):
        rays = distinct(np.concatenate([rays, scaled(warm, slice_.prior)]))
    if slice_.within is not None:
        part = deadline.part(FRACTION_WITHIN)
        with suppress(OutOfTime):
            rays = distinct(np.concatenate([rays, best_design(slice_.within, part, rounds, solve)[0].rays]))
    if np.linalg.matrix_rank(rays) < slice_.size:
        raise NoMechanism(
            "under this policy no mechanism can estimate all frequencies, or an epsilon is too near 0 for double "
            "precision. Raise the epsilons of the policy that are near 0, or choose another utility."
        )
    search = _Search(slice_, solve, everything, rays, effort)
    is_bounded = everything is not None or effort.target > 0
    search.run(first, deadline if is_bounded else deadline.part(_SEARCH_FRACTION), rounds)
    slice_, solved = search.slice_, search.solved
    bound = search.bound
    if everything is None and effort.target > 0:
        bound = effort.target  # another method has proven it
    elif everything is None:
        few = len(solved.pricing.directions) <= _FEW_DIRECTIONS
        if few:
            bound = _bound_by_branching(slice_, search, deadline)
        if bound < solved.value * (1 - _CLOSE):
            trace = _bound_on_trace(slice_, search.rays, solved.weights, deadline)
            bound = max(bound, trace - slice_.offset)
        if slice_.size <= _FEW_COORDINATES and not few:
            bound = max(bound, _bound_by_branching(slice_, search, deadline))
    # The error without any noise. For many coordinates, or without time for more, this is the only bound.
    bound = max(bound, slice_.least_trace - slice_.offset)
    complete = everything is not None
    design = DesignWeights(
        search.rays, solved.weights, solved.value, min(bound, solved.value), complete, in_time=search.done
    )
    return design.used(), slice_.prior


def _bound_by_branching(slice_: Slice, search: _Search, deadline: Deadline) -> float:
    """Return a lower bound on the error of every design, from the greatest worth of any ray."""
    solved, used = search.solved, search.used
    start = used[int(solved.pricing.of(used).argmax())]
    most, _ = greatest(slice_, solved.pricing, start, deadline, _TOLERANCE * solved.value)
    return solved.constant - most


def _bound_on_trace(slice_: Slice, rays: Floats, weights: Floats, deadline: Deadline) -> float:
    """Return a lower bound on tr J⁻¹ of every design, by a relaxation, or by clusters of values.

    Values without rules between them form clusters, and so do many values.
    """
    coarse = coarse_slice(slice_) if slice_.size > LARGEST_FINE else None
    if coarse is not None:
        return best_design(coarse, deadline, effort=_QUICK)[0].bound
    parts: npt.NDArray[np.int64] | None = components(slice_)
    if parts is not None and not parts.any():
        bound, parts = least_trace(slice_, rays, weights, deadline), None
        if bound > slice_.least_trace:
            return bound

    def trace_of(part: Slice, end: Deadline) -> float:
        return best_design(part, end, effort=_QUICK)[0].bound + part.offset

    return trace_of_clusters(slice_, trace_of, deadline, parts)


class _Search:
    """The rounds of a search: the best weights of the rays so far, then new rays that improve them.

    After ``run``, the attributes describe the best design of all rounds.
    """

    def __init__(self, slice_: Slice, solve: Solve, everything: Floats | None, rays: Floats, effort: Effort) -> None:
        self.slice_ = slice_
        #: The rays of the last solution, and those of its rays that have weight.
        self.rays = self.used = rays
        self.bound = -np.inf
        #: Whether no further round would improve the design.
        self.done = False
        self._solve, self._everything, self._effort = solve, everything, effort
        self._idle, self._values = 0, [np.inf]
        self._light = _LIGHT

    def run(self, first: Deadline, deadline: Deadline, rounds: Rounds | None) -> None:
        """Run rounds until none improves the design or the deadline passes; the first round ends at ``first``."""
        self.solved = self._solve(self.slice_, self.rays, first, precision=self._precision)
        most = self._effort.most_rounds
        while True:
            new = self._round()
            candidates, worths = self._candidates(deadline)
            if self._everything is not None:
                self.bound = max(self.bound, self.solved.constant - float(worths.max()))
            if rounds is not None:
                rounds(self.solved.value, self.bound)
            better = np.argsort(-worths, kind="stable")[: 4 * self.slice_.size]
            better = better[worths[better] > _TOLERANCE * self.solved.value]
            self._idle = 0 if len(better) and new else self._idle + 1
            self.done = self._is_done(len(better))
            if self.done or deadline.passed or (most is not None and len(self._values) > most):
                break
            try:
                self._improve(candidates[better], deadline)
            except OutOfTime:  # the solutions so far remain
                self.done = False
                break
            except SolverFailed:  # a limit of double precision, which more time does not overcome
                self.done = True
                break
        self.solved, self.slice_, self.rays, self.used = self._best
        if self.done and self._precision > _LAST_PRECISION:
            with suppress(SolverFailed):
                self.solved = self._solve(self.slice_, self.rays, deadline, precision=_LAST_PRECISION)
                self._round()

    def _improve(self, candidates: Floats, deadline: Deadline) -> None:
        """Find the best weights of the rays in use and new ones; with all earlier rays if these do not suffice."""
        try:
            self._weigh(self.used, candidates, deadline, self._precision)
        except OutOfTime:
            raise
        except SolverFailed:  # without the light rays, the others may not mix to the constant vector
            self._light *= _LIGHTER
            precision = self._precision if self.slice_.ray_search is None else _FIRST_PRECISION
            self._weigh(self.rays, candidates, deadline, precision)

    def _weigh(self, rays: Floats, candidates: Floats, deadline: Deadline, precision: float) -> None:
        """Find the best weights of rays and candidates together."""
        rays = distinct(np.concatenate([rays, candidates]))
        self.solved = self._solve(self.slice_, rays, deadline, precision=precision)
        self.rays = rays

    def _round(self) -> bool:
        """Move to the distribution of the solution; return whether the value decreased."""
        self.slice_ = self.slice_.at(self.solved.prior)
        self.rays = scaled(self.rays, self.slice_.prior)
        weights = self.solved.weights
        used = weights > LEAST_WEIGHT
        answers = self.slice_.answers
        if answers is not None and len(answers.rows) <= self.slice_.size // 2:
            # A few rays suffice for a few answers. The others keep the prices from changing much between rounds.
            used[np.argsort(-weights, kind="stable")[: _KEPT * self.slice_.size]] = True
        elif self.slice_.ray_search is not None:
            # Every value has its reports from some rays; a ray with a small part in each of them is dropped.
            used &= weights * self.rays.max(axis=1) > self._light / len(weights)
        self.used = self.rays[used]
        least = self._values[-1]
        if self.solved.value <= least:  # dropped rays may make a later design worse
            self._best = self.solved, self.slice_, self.rays, self.used
        self._values.append(min(self.solved.value, least))
        return self.solved.value < least * (1 - _TOLERANCE / 1000)

    @property
    def _precision(self) -> float:
        """Precision of the next weights: a hundredth of the last improvement."""
        if self._everything is not None or self.slice_.ray_search is None:
            return _LAST_PRECISION
        last, value = self._values[-2:] if len(self._values) > 2 else (np.inf, 1.0)
        return float(np.clip((last - value) / value / 100, 1e-8, _FIRST_PRECISION))

    def _is_done(self, better: int) -> bool:
        """Return whether the search has converged or makes too little progress to go on."""
        if self.slice_.size == 1 or self._idle >= _IDLE_ROUNDS or (self._everything is not None and not better):
            return True
        if self.solved.value <= self._effort.target * (1 + _ON_TARGET):
            return True
        if len(self._values) <= _PROGRESS_ROUNDS + 1 or self._everything is not None:
            return False
        earlier, value = self._values[-1 - _PROGRESS_ROUNDS], self._values[-1]
        return earlier - value < self._effort.least_progress * value

    def _candidates(self, deadline: Deadline) -> tuple[Floats, Floats]:
        """Return rays that may improve the design, with their worths."""
        slice_, pricing = self.slice_, self.solved.pricing
        starts = min(self._idle, 1)
        if self._everything is not None:
            candidates = scaled(self._everything, slice_.prior)
        elif slice_.ray_search is None:
            candidates = climb(slice_, pricing, self.used, _STARTS[starts], deadline)
        else:
            search = slice_.ray_search
            most = search.most_rays()
            likely = self.used[np.argsort(-pricing.of(self.used), kind="stable")[: most // 2]]
            new = search.starts(min(_LOCAL_STARTS[starts] * slice_.size, most - len(likely)), self.used)
            rays = np.concatenate([likely, new])
            candidates = search.climb(rays, pricing.directions, pricing.multipliers, deadline)
        return candidates, pricing.of(candidates)


def scaled(rays: Floats, prior: Floats) -> Floats:
    """Return the rays scaled to v·p = 1."""
    return np.asarray(rays / (rays @ prior)[:, None])


def least_error(
    slice_: Slice, rays: Floats, deadline: Deadline = NEVER, *, precision: float = _LAST_PRECISION
) -> Solved:
    """Return the best weights at the distribution of a slice."""
    weights, pricing, constant, value = solve_design(rays, deadline, precision, slice_.answers)
    return Solved(weights, pricing, constant - slice_.offset, value - slice_.offset, slice_.prior)


def solve_design(
    rays: Floats, deadline: Deadline = NEVER, precision: float = _LAST_PRECISION, answers: Answers | None = None
) -> tuple[Floats, Pricing, float, float]:
    """Return the best weights, the prices for other rays, the bound plus the greatest worth, and the value.

    Raise OutOfTime at the deadline, because weights that have not converged do not form a mechanism.
    """
    count, size = rays.shape
    factor = None if answers is None else answers.factor()
    if not deadline.fits(_LEAST_STEPS * _STEP_SECONDS * count**2 * (count + 3 * size)):
        raise OutOfTime

    def inverse_trace(weights: Floats) -> tuple[float, Floats, Floats] | None:
        information = (rays * weights[:, None]).T @ rays
        try:
            np.linalg.cholesky(information)
            inverse: Floats = np.linalg.inv(information).astype(np.float64)
        except np.linalg.LinAlgError:
            return None
        half = rays @ inverse
        turned = half if factor is None else half @ factor.T
        value = np.trace(inverse) if factor is None else np.einsum("ij,ij->", factor @ inverse, factor)
        hessian = 2 * (half @ rays.T) * (turned @ turned.T)
        return float(value), -np.sum(turned**2, axis=1), hessian

    start = np.full(count, 1 / count)
    solution = minimise(inverse_trace, rays.T, np.ones(size), None, start, precision, deadline)
    if not solution.converged:
        raise OutOfTime
    weights = balanced(solution.x, rays)
    inverse: Floats = np.linalg.inv((rays * weights[:, None]).T @ rays).astype(np.float64)
    directions = inverse if answers is None else answers.rows @ inverse
    value = float(np.trace(inverse) if answers is None else np.einsum("ij,ij->", directions, answers.rows))
    pricing = sum_of_squares(directions, solution.equations)
    return weights, pricing, 2 * value - float(solution.equations.sum()), value


def balanced(weights: Floats, rays: Floats) -> Floats:
    """Return weights with Σ w·v = 1, changed in proportion to themselves; the solver leaves a small difference."""
    weighted = rays * weights[:, None]
    change = weighted @ np.linalg.solve(weighted.T @ rays, 1 - weighted.sum(axis=0))
    return np.asarray(np.maximum(weights + change, 0.0))
