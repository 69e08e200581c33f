"""The best mechanism for any policy and any of four utilities, exact, with a bound on what any mechanism could do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput
from sfumato.mechanisms import TableMechanism
from sfumato.mechanisms.base import checked_distribution
from sfumato.optimize.deadline import GRACE, Deadline, OutOfTime, one_thread
from sfumato.optimize.estimation import best_design, scaled
from sfumato.optimize.goals import Estimation, Goal, SumGoal, WorstEstimation, goal_of
from sfumato.optimize.interior import lost
from sfumato.optimize.mixture import best_mixture, solve_weights
from sfumato.optimize.result import Optimum
from sfumato.optimize.slice import Slice
from sfumato.optimize.utilities import Utility
from sfumato.optimize.weighted import Progress, Weighted
from sfumato.optimize.worst_case import LEAST_SHARE
from sfumato.policy import Policy, Prior

__all__ = ["DEFAULT_SECONDS", "optimal", "optimal_until"]

Floats = npt.NDArray[np.float64]

#: Seconds that ``optimal`` may take unless it is given others.
DEFAULT_SECONDS = 60.0
#: Seconds that rounding to an exact table takes for each of its entries.
_ENTRY_SECONDS = 6e-5
#: In tables of more entries ties are not decided exactly, for that takes minutes: it costs a millionth of the utility.
_LARGE_TABLE = 20_000
#: A design has some four outputs for each value.
_OUTPUTS_PER_VALUE = 4
#: No more than this share of the time is kept for rounding, and after this share beyond all of it rounding is given up.
_MOST_ROUNDING, _LATE = 0.4, 0.15


def optimal(
    policy: Policy,
    utility: str | Goal = "estimation",
    *,
    p: Sequence[float] | Floats | None = None,
    max_seconds: float | None = None,
    max_outputs: int | None = None,
    progress: Progress | None = None,
) -> Optimum:
    """The best mechanism under the policy at the distribution p (uniform, or the prior of a prior policy).

    ``utility``: "estimation" (the least error of all frequencies together), "worst-estimation" (the same at the p where
    it is greatest), "mutual-information", "mmse" (of numeric labels), ``SquaredError`` or ``ExpectedLoss``. After
    ``max_seconds`` (60 unless given), the best found so far, with its bound; all together takes at most 1.2 times as
    long and 2 s. CannotDecide where not even a first mechanism fits in that.
    ``max_outputs`` asks for fewer outputs, at some cost.
    """
    limit = DEFAULT_SECONDS if max_seconds is None else max_seconds
    if not limit > 0:
        raise InvalidInput("optimal", "max_seconds", "be positive", max_seconds)
    with one_thread():
        return optimal_until(Deadline(limit), policy, utility, p, max_outputs, progress)


def optimal_until(
    deadline: Deadline,
    policy: Policy,
    utility: str | Goal,
    p: Sequence[float] | Floats | None,
    max_outputs: int | None,
    progress: Progress | None,
) -> Optimum:
    """As ``optimal``, until a deadline."""
    latest = deadline.extended(_LATE * deadline.left + GRACE)
    size = len(policy.domain)
    if p is None and isinstance(policy, Prior):
        p = [float(share) for share in policy.prior]
    distribution = np.maximum(checked_distribution(p, size, "optimal"), LEAST_SHARE / size)
    distribution /= distribution.sum()
    goal = goal_of(utility, policy.domain)
    if isinstance(goal, WorstEstimation) and p is not None and not isinstance(policy, Prior):
        raise InvalidInput("optimal", "p", "not be given where the worst distribution is designed for", p)
    slice_ = Slice.of(policy, distribution)
    if max_outputs is not None and max_outputs < slice_.size:
        must = f"be at least {slice_.size}, the number of values that can be told apart"
        raise InvalidInput("optimal", "max_outputs", must, max_outputs)
    expected_outputs = min(_OUTPUTS_PER_VALUE * slice_.size, max_outputs or math.inf)
    kept = min(_rounding_seconds(slice_, expected_outputs), _MOST_ROUNDING * deadline.left)
    search = deadline.part(1.0, reserve=kept)
    if isinstance(goal, Estimation):
        found, shares = _designed(slice_, goal, search, max_outputs, progress)
        distribution = distribution * (shares / slice_.p)[slice_.group_of]
    else:
        assert isinstance(goal, SumGoal)
        found = _mixed(slice_, goal.on(slice_, distribution), search, max_outputs, progress)
    if _rounding_seconds(slice_, len(found.weights)) > max(latest.left, GRACE):
        raise OutOfTime(
            f"a table of {size} by {len(found.weights)} exact numbers does not fit in the time of the search"
        )
    # Q(y|x) = w_y·v_y(x), the same for every value of a group; rows sum to one but for rounding.
    columns = (found.weights[:, None] * found.rays).T[slice_.group_of]
    matrix = goal.outputs(columns / columns.sum(axis=1, keepdims=True), distribution)
    large = matrix.size > _LARGE_TABLE
    mechanism = TableMechanism.from_matrix(policy.domain, matrix, policy=policy, late=lambda: large or deadline.passed)
    value = goal.value(mechanism.matrix(), distribution)
    if isinstance(goal, Estimation) and math.isinf(value) and not slice_.merges:
        raise lost("no error can be told of the best mechanism found")
    return Optimum(
        mechanism,
        goal,
        distribution,
        value=value,
        bound=goal.bound(found.bound, slice_, distribution),
        status="time" if not found.in_time else "optimal" if found.complete else "gap",
        seconds=deadline.spent,
    )


def _rounding_seconds(slice_: Slice, outputs: float) -> float:
    """About how long it takes to round a design of so many outputs and to hold it against the policy."""
    return outputs * len(slice_.group_of) * _ENTRY_SECONDS


def _designed(
    slice_: Slice, goal: Estimation, deadline: Deadline, max_outputs: int | None, progress: Progress | None
) -> tuple[Weighted, Floats]:
    """The rays and weights of the least error, and the distribution of the groups it is the error at."""
    found, p = best_design(slice_, deadline, progress, goal.solve)
    while max_outputs is not None and len(found.weights) > max_outputs:
        kept = found.rays[np.argsort(found.weights)[_dropped(found, max_outputs, deadline) :]]
        solved = goal.solve(kept, p)
        p = solved.p
        found = replace(found, rays=scaled(kept, p), weights=solved.weights, complete=False).used()
    return found, p


def _mixed(
    slice_: Slice, worth: Utility, deadline: Deadline, max_outputs: int | None, progress: Progress | None
) -> Weighted:
    """The rays and weights of the greatest utility."""
    found = best_mixture(slice_, worth, deadline, progress)
    while max_outputs is not None and len(found.weights) > max_outputs:
        kept = found.rays[np.argsort(found.weights)[_dropped(found, max_outputs, deadline) :]]
        weights = solve_weights(kept, worth.of(kept))[0]
        found = replace(found, rays=kept, weights=weights, complete=False).used()
    return found


def _dropped(found: Weighted, max_outputs: int, deadline: Deadline) -> int:
    """How many of the lightest rays to drop before the others are weighed again: one, or half the excess when late."""
    return max(1, (len(found.weights) - max_outputs) // 2) if deadline.passed else 1
