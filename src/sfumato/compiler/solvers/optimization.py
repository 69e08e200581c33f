"""The best mechanism for any policy and any of four utilities, exact, with a bound on what any mechanism could do."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from sfumato._core import ZERO, Floats, ProgressCallback, checked_type
from sfumato.compiler.solvers.deadline import GRACE, Deadline, OutOfTime, one_thread
from sfumato.compiler.solvers.design_weights import DesignWeights, Rounds, count_rounds
from sfumato.compiler.solvers.estimation import best_design, scaled
from sfumato.compiler.solvers.goals import Estimation, Goal, SumGoal, WorstEstimation, goal_of
from sfumato.compiler.solvers.interior import numerical_error
from sfumato.compiler.solvers.mixture import best_mixture, solve_weights
from sfumato.compiler.solvers.result import Optimum
from sfumato.compiler.solvers.slice import Slice, groups
from sfumato.compiler.solvers.utilities import Utility
from sfumato.compiler.solvers.worst_case import LEAST_PROBABILITY
from sfumato.domain import Frequencies, checked_distribution
from sfumato.errors import InvalidInput
from sfumato.mechanisms import TableMechanism
from sfumato.policy import ChiSquare, PairwisePolicy, Policy, Prior, Secret

__all__ = ["DEFAULT_SECONDS", "optimal", "optimal_until"]


#: Seconds that ``optimal`` may take unless it is given others.
DEFAULT_SECONDS = 60.0
#: Rounding may cost this fraction of the value…
_CLOSE = 1e-6
#: …before mechanisms are compared that keep epsilons up to these as if they were 0.
_SMALL_EPSILONS = (1e-6, 1e-3)
#: A slice at p is bounded enough where every ray that has one at a distribution of least probabilities keeps this much
#: of it.
_BOUNDED = 0.5
#: Least total probability of values that do not occur, by which they are lifted: it moves an information by about as
#: much.
_LEAST_TOTAL = 4e-7
#: A table is designed for at least this probability of every value, far below what an estimate would notice.
_LEAST_PRIOR = 2.0**-60
#: A mechanism is called optimal if its value and the bound are no farther apart than this, relatively.
_OPTIMAL = 1e-4
#: Processor time in seconds that a slice takes for each pair of values: at most a second at 225 values.
_SLICE_SECONDS = 2e-5
#: Processor time in seconds that rounding to an exact table takes for each of its entries, in one try…
_ENTRY_SECONDS = 4e-6
#: …and for each output and pair of secrets, where a policy has a confidence set.
_PROOF_SECONDS = 8e-5
#: In tables of more entries ties are not decided exactly, because that takes minutes to gain a millionth in utility.
_LARGE_TABLE = 20_000
#: A design has some four outputs for each value.
_OUTPUTS_PER_VALUE = 4
#: At most this fraction of the time is reserved for rounding, and after this fraction beyond all of it rounding is
#: given up.
_MOST_ROUNDING, _LATE = 0.4, 0.15


def optimal(
    policy: Policy,
    utility: str | Goal = "estimation",
    *,
    prior: Frequencies | None = None,
    max_seconds: float | None = None,
    max_outputs: int | None = None,
    progress: ProgressCallback | None = None,
) -> Optimum:
    """Search for the best mechanism under a policy, whatever its structure.

    Parameters
    ----------
    policy
        The policy that the mechanism must obey.
    utility
        What to be best at: ``"estimation"`` (the least error of all frequencies together), ``"worst-estimation"`` (the
        same at the distribution where it is greatest), ``"mutual-information"``, ``"mmse"`` (of numeric labels), a
        ``SquaredError`` or an ``ExpectedLoss``.
    prior
        The distribution of values that the design assumes; uniform unless given, or that of a prior policy.
    max_seconds
        Time for the search, 60 unless given; all together takes at most 1.2 times as long and 2 s.
    max_outputs
        Maximum number of outputs; fewer outputs cost some utility.
    progress
        Called with a :class:`Progress` (value and bound) after every round.

    Returns
    -------
    Optimum
        The best mechanism found in the time, with its bound.

    Raises
    ------
    SolverFailed
        If not even a first mechanism fits in the time.
    """
    checked_type("optimal", "the policy", policy, Policy)
    limit = DEFAULT_SECONDS if max_seconds is None else max_seconds
    if not limit > 0:
        raise InvalidInput("optimal", "max_seconds", "be positive", max_seconds)
    with one_thread():
        return optimal_until(Deadline(limit), policy, utility, prior, max_outputs, progress)


def optimal_until(
    deadline: Deadline,
    policy: Policy,
    utility: str | Goal,
    prior: Frequencies | None,
    max_outputs: int | None,
    progress: ProgressCallback | None,
) -> Optimum:
    """Design as ``optimal`` does, with at most ``max_outputs`` outputs, until a deadline."""
    latest = deadline.extended(_LATE * deadline.left + GRACE)
    size = len(policy.domain)
    if prior is None and isinstance(policy, Prior):
        prior = [float(probability) for probability in policy.prior]
    stated = checked_distribution(prior, policy.domain, "optimal", "prior")
    stated = stated / stated.sum()
    goal = goal_of(utility, policy.domain)
    if isinstance(goal, WorstEstimation) and prior is not None and not isinstance(policy, Prior):
        raise InvalidInput("optimal", "prior", "not be given where the worst distribution is designed for", prior)
    if not latest.fits(_SLICE_SECONDS * size**2):
        raise OutOfTime
    slice_, design_prior = _sliced(policy, stated, goal)
    if latest.passed:
        raise OutOfTime
    if max_outputs is not None and max_outputs < slice_.size:
        must = f"be at least {slice_.size}, the number of values that can be told apart"
        raise InvalidInput("optimal", "max_outputs", must, max_outputs)
    expected_outputs = min(_OUTPUTS_PER_VALUE * slice_.size, max_outputs or math.inf)
    reserve = min(_rounding_seconds(policy, expected_outputs), _MOST_ROUNDING * deadline.left)
    search, rounds = deadline.part(1.0, reserve=reserve), count_rounds(progress)
    if isinstance(goal, Estimation):
        if slice_.is_coarse:
            raise numerical_error("no error can be computed for the best mechanism")
        design, prior = _designed(slice_, goal, search, max_outputs, rounds)
        if isinstance(goal, WorstEstimation):
            stated = design_prior = design_prior * (prior / slice_.prior)[slice_.group_of]
    else:
        assert isinstance(goal, SumGoal)
        design = _mixed(slice_, goal.on(slice_, design_prior), search, max_outputs, rounds)
    if not latest.fits(_rounding_seconds(policy, len(design.weights))):
        raise OutOfTime(
            f"a table of {size} by {len(design.weights)} exact numbers does not fit in the time of the search"
        )
    # Q(y|x) = w_y·v_y(x), the same for every value of a group; rows sum to one but for rounding.
    columns = (design.weights[:, None] * design.rays).T[slice_.group_of]
    matrix = goal.outputs(columns / columns.sum(axis=1, keepdims=True), design_prior)
    target, bound = (goal.bound(reached, slice_, design_prior) for reached in (design.value, design.bound))
    if stated is not design_prior:
        bound = _bound_at(stated, goal, bound, slice_, design_prior, deadline)
    is_uniform = np.allclose(design_prior, 1 / size, rtol=1e-9, atol=0)
    carried = np.maximum(design_prior, _LEAST_PRIOR) if isinstance(goal, Estimation) and not is_uniform else None
    large = matrix.size > _LARGE_TABLE
    rounded = functools.partial(
        TableMechanism.from_matrix,
        policy.domain,
        design_prior=carried,
        late=lambda: large or deadline.passed,
    )
    mechanism, value = _rounded(_roundings(policy, matrix, rounded), goal, stated, target, deadline)
    if isinstance(goal, Estimation) and math.isinf(value) and not slice_.merges:
        raise numerical_error("no error can be computed for the best mechanism found")
    optimum = Optimum(mechanism, goal.name, goal.small_is_good, stated, value, bound, "gap", seconds=deadline.spent)
    if not design.in_time:
        return replace(optimum, status="time")
    resolution = goal.resolution(stated)
    if not goal.small_is_good and slice_.size > 1 and bound <= resolution:
        return replace(optimum, bound=resolution)  # something can be learned, if less than doubles resolve
    close = optimum.gap <= _OPTIMAL or abs(value - bound) <= resolution
    return replace(optimum, status="optimal") if design.complete and close else optimum


def _sliced(policy: Policy, prior: Floats, goal: Goal) -> tuple[Slice, Floats]:
    """Return the slice at the prior, and the prior, in which probabilities that leave rays without a bound are lifted.

    They are lifted in any case where the distribution is designed for too.
    """
    least = LEAST_PROBABILITY if isinstance(goal, Estimation) else _LEAST_TOTAL
    if prior.min() >= least / len(prior):
        return Slice.of(policy, prior), prior
    floored = np.maximum(prior, least / len(prior))
    floored /= floored.sum()
    slice_ = Slice.of(policy, floored)
    if isinstance(goal, WorstEstimation) or slice_.simplices or slice_.within is not None:
        return slice_, floored
    group_prior = np.bincount(slice_.group_of, weights=prior).astype(np.float64)
    nearest = float(group_prior @ slice_.farthest(-group_prior[None])[0])
    return (slice_, floored) if nearest < _BOUNDED else (Slice.of(policy, prior), prior)


def _bound_at(prior: Floats, goal: Goal, bound: float, slice_: Slice, floored: Floats, deadline: Deadline) -> float:
    """What no mechanism is better than at p, from the bound at p with some probabilities lifted."""
    if isinstance(goal, SumGoal):
        scale = float(prior.max() / floored[prior.argmax()])
        return goal.bound_without(bound, scale, np.maximum(scale * floored - prior, 0.0), prior)
    # Rays without a bound at p tell of some values at no cost. What remains is the error of the others.
    group_prior = np.bincount(slice_.group_of, weights=prior).astype(np.float64)
    free = np.array([group_prior @ slice_.farthest(axis[None])[0] < _BOUNDED for axis in np.eye(slice_.size)])
    rest = slice_.without(free, group_prior)
    mass = float(group_prior[~free].sum())
    least = 1.0  # tr J⁻¹ without any noise: all that is known where there is no time for more
    with suppress(OutOfTime):
        least = best_design(rest, deadline)[0].bound + float(rest.prior @ rest.prior)
    return goal.bound(mass * least - float(prior @ prior), slice_, prior)


def _rounded(
    tables: Iterator[TableMechanism], goal: Goal, prior: Floats, target: float, deadline: Deadline
) -> tuple[TableMechanism, float]:
    """The first table whose value is near enough to that of the search, or the best made in time, and its value."""
    best: tuple[TableMechanism, float] | None = None
    for table in tables:
        value = goal.value_of(table, prior)
        if best is None or (value < best[1] if goal.small_is_good else value > best[1]):
            best = table, value
        if value == target or abs(value - target) <= _CLOSE * abs(target) or deadline.passed:
            break
    assert best is not None
    return best


def _roundings(policy: Policy, matrix: Floats, rounded: Callable[..., TableMechanism]) -> Iterator[TableMechanism]:
    """Exact mechanisms near a matrix.

    A solver breaks rules by some 1e-9. Where an epsilon is not far above that, it takes much of a constant to make up
    for it, and a mechanism that keeps epsilon 0 there may be better.
    """
    yield rounded(matrix, policy=policy)
    if isinstance(policy, Secret) and policy.epsilon > ZERO and float(policy.epsilon) <= max(_SMALL_EPSILONS):
        yield rounded(matrix, policy=Secret(policy.domain, policy.secret, ZERO, policy.distributions))
    elif isinstance(policy, PairwisePolicy):
        merged = matrix
        for group_of in (groups(policy, epsilon) for epsilon in _SMALL_EPSILONS):
            means = np.array([matrix[group_of == number].mean(axis=0) for number in range(group_of.max() + 1)])
            if not np.array_equal(means[group_of], merged):
                merged = means[group_of]
                yield rounded(merged, policy=policy)


def _rounding_seconds(policy: Policy, outputs: float) -> float:
    """Estimate the processor time to round a design of this many outputs once and to check it against the policy."""
    pairs = 0
    if isinstance(policy, Secret) and isinstance(policy.distributions, ChiSquare):
        pairs = len(policy.cells) * (len(policy.cells) - 1)
    return outputs * (len(policy.domain) * _ENTRY_SECONDS + pairs * _PROOF_SECONDS)


def _designed(
    slice_: Slice, goal: Estimation, deadline: Deadline, max_outputs: int | None, rounds: Rounds | None
) -> tuple[DesignWeights, Floats]:
    """The rays and weights of the least error, and the distribution of the groups it is the error at."""
    design, prior = best_design(slice_, deadline, rounds, goal.solve)
    while max_outputs is not None and len(design.weights) > max_outputs:
        rays = design.rays[np.argsort(design.weights)[_dropped(design, max_outputs, deadline) :]]
        solved = goal.solve(rays, prior)
        prior = solved.prior
        design = replace(design, rays=scaled(rays, prior), weights=solved.weights, complete=False).used()
    return design, prior


def _mixed(
    slice_: Slice, pricing: Utility, deadline: Deadline, max_outputs: int | None, rounds: Rounds | None
) -> DesignWeights:
    """The rays and weights of the greatest utility."""
    design = best_mixture(slice_, pricing, deadline, rounds)
    while max_outputs is not None and len(design.weights) > max_outputs:
        rays = design.rays[np.argsort(design.weights)[_dropped(design, max_outputs, deadline) :]]
        weights = solve_weights(rays, pricing.of(rays), slice_.prior)[0]
        design = replace(design, rays=rays, weights=weights, complete=False).used()
    return design


def _dropped(design: DesignWeights, max_outputs: int, deadline: Deadline) -> int:
    """How many of the lightest rays to drop before the others are weighed again: one, or half the excess when late."""
    return max(1, (len(design.weights) - max_outputs) // 2) if deadline.passed else 1
