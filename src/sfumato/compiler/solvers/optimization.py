"""The search for the optimal mechanism under any policy and utility, with a bound on every mechanism."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import cast

import numpy as np

from sfumato._core import ZERO, Floats, ProgressCallback, checked_count, checked_type, one_thread
from sfumato.compiler.classes import Classes
from sfumato.compiler.known_bounds import known_optimum
from sfumato.compiler.solvers.answers import Answers
from sfumato.compiler.solvers.deadline import GRACE, Deadline, OutOfTime
from sfumato.compiler.solvers.design_weights import DesignWeights, Rounds, count_rounds
from sfumato.compiler.solvers.estimation import EXHAUSTIVE, Effort, best_design, scaled
from sfumato.compiler.solvers.goals import Estimation, ExpectedLoss, Goal, SumGoal, WorstEstimation, read_goal
from sfumato.compiler.solvers.interior import numerical_error
from sfumato.compiler.solvers.losses import FEW_VALUES, least_loss
from sfumato.compiler.solvers.mixture import best_mixture, solve_weights
from sfumato.compiler.solvers.result import Optimum
from sfumato.compiler.solvers.search_cache import SearchCache
from sfumato.compiler.solvers.slice import Slice, groups
from sfumato.compiler.solvers.utilities import Utility
from sfumato.compiler.solvers.worst_case import LEAST_PROBABILITY
from sfumato.compiler.warm_starts import warm_rays
from sfumato.domain import Frequencies, checked_distribution
from sfumato.errors import InvalidInput, NoAnswer
from sfumato.mechanisms import TableMechanism
from sfumato.policy import ChiSquare, PairwisePolicy, Policy, Prior, Secret
from sfumato.questions import Question

__all__ = ["DEFAULT_SECONDS", "optimal", "optimal_until"]


#: Default time limit of ``optimal`` in seconds.
DEFAULT_SECONDS = 60.0
#: Maximum relative loss of utility by rounding before other roundings are tried.
_CLOSE = 1e-6
#: Epsilons up to which the other roundings treat an epsilon as 0.
_SMALL_EPSILONS = (1e-6, 1e-3)
#: Minimum p·v of the rays with v·p' = 1 at the raised prior p'; below it, the slice at p counts as unbounded.
_BOUNDED = 0.5
#: Minimum total probability of values that do not occur; it changes an information by about as much.
_LEAST_TOTAL = 4e-7
#: Minimum probability of a value that a table is designed for; too small to affect an estimate.
_LEAST_PRIOR = 2.0**-60
#: Maximum relative gap between value and bound at which a mechanism is called optimal.
_OPTIMAL = 1e-4
#: Processor time in seconds to build a slice, per pair of values; at most one second for 225 values.
_SLICE_SECONDS = 2e-5
#: Processor time in seconds to round an exact table once, per entry.
_ENTRY_SECONDS = 4e-6
#: Processor time in seconds to check a rounding, per output and pair of secrets, if the policy has a confidence set.
_PROOF_SECONDS = 8e-5
#: Entries above which ties in a table are not decided exactly, because that takes minutes and gains a millionth.
_LARGE_TABLE = 20_000
#: Typical number of outputs of a design per value.
_OUTPUTS_PER_VALUE = 4
#: Fraction of the time for bounds and rays that need no search.
_KNOWN_FRACTION = 0.15
#: Number of rays that the search starts from: per value, and at most.
_WARM, _MOST_WARM = 4, 256
#: Number of values above which they come from known mechanisms if the policy has no symmetric form.
_WARM_SIZE = 64
#: Maximum fraction of the time reserved for rounding, and fraction beyond the deadline at which rounding is aborted.
_MOST_ROUNDING, _LATE = 0.4, 0.15


def optimal(
    policy: Policy,
    utility: str | Goal = "estimation",
    *,
    question: Question | str | None = None,
    prior: Frequencies | None = None,
    max_seconds: float | None = None,
    max_outputs: int | None = None,
    max_rounds: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: ProgressCallback | None = None,
) -> Optimum:
    """Search all mechanisms that a policy allows for the one with the best utility.

    The result also states a bound on the utility of every mechanism, which shows how close to optimal the result is.
    :func:`plan` and :func:`design` include this search and compare its result with known mechanisms.

    Parameters
    ----------
    policy
        The policy that the mechanism must obey, over at most 512 values. For an :class:`ExpectedLoss` and a policy on
        pairs of values, more values are possible: 1024 values of a grid or a line, each with rules for its neighbours.
    utility
        Quantity to optimise:

        - ``"estimation"``: expected squared error of all frequencies together, if values follow the prior;
        - ``"worst-estimation"``: the same error at the distribution of values where it is greatest;
        - ``"mutual-information"``: mutual information between a value and its report, in nats;
        - ``"mmse"``: mean squared error of the label of one person, estimated from the report; labels must be numbers;
        - a :class:`SquaredError`: the same for a numeric score of your choice;
        - an :class:`ExpectedLoss`: loss of a decision that is taken from one report.
    question
        What is to be learned, for ``"estimation"`` or ``"worst-estimation"``: a :class:`Question` such as
        :class:`Mean`, or its name. The error is then that of the answers. By default, all frequencies.
    prior
        Distribution of values that the design assumes: a sequence in domain order, or a mapping or pandas Series with
        the values as labels. The default is the prior of the policy if it is a :class:`Prior`, otherwise the uniform
        distribution. Leave it out for ``"worst-estimation"``.
    max_seconds
        Time limit of the search in seconds, 60 by default. The call takes at most 20% plus 2 s longer.
    max_outputs
        Maximum number of different reports (outputs) of the mechanism; no limit by default. A limit may cost utility.
    max_rounds
        Maximum number of rounds of a search for ``"estimation"`` or ``"worst-estimation"``; no limit by default. A
        search that ends by rounds and not by time returns the same mechanism in every run with the same versions of
        the packages.
    cache
        Folder of earlier results; no folder by default. A result for the same policy, utility, prior and limits is
        returned at once if it was optimal or its search had at least as much time. Its mechanism is audited first.
        Otherwise the search runs, and its result is stored.
    progress
        Function that is called with a :class:`Progress` after every round. ``Progress.value`` is the utility of the
        best mechanism so far, and ``Progress.bound`` the bound so far.

    Returns
    -------
    Optimum
        The best mechanism that was found within the time limit, with its utility and the bound.

    Raises
    ------
    InvalidInput
        If a parameter is invalid, for example if ``max_seconds`` is not positive.
    LimitExceeded
        If the domain has more values than the search supports, or the policy has more than 250,000 inequalities.
    NoMechanism
        If the utility is an estimation error, and an epsilon is so near 0 that the search finds no reports which
        distinguish all values. If an epsilon is exactly 0, the result has the value ``inf`` instead.
    SolverFailed
        If the search finds no mechanism within the time limit (``OutOfTime``), or if double precision is not
        sufficient, for example because an epsilon is very near 0.

    Examples
    --------
    >>> from sfumato import Domain, Metric
    >>> result = optimal(Metric(Domain.range(4), "absolute", 1))
    >>> result.status, round(result.value, 3), round(result.bound, 3)
    ('optimal', 5.215, 5.215)
    """
    checked_type("optimal", "the policy", policy, Policy)
    limit = DEFAULT_SECONDS if max_seconds is None else max_seconds
    if not limit > 0:
        raise InvalidInput("optimal", "max_seconds", "be positive", max_seconds)
    if max_rounds is not None:
        checked_count("optimal", max_rounds, "max_rounds")
    effort = Effort(most_rounds=max_rounds)
    with one_thread():
        stored = SearchCache.read("optimal", cache)
        goal = read_goal("optimal", utility, policy.domain, question)
        return optimal_until(Deadline(limit), policy, goal, prior, max_outputs, progress, effort, stored)


def optimal_until(
    deadline: Deadline,
    policy: Policy,
    utility: str | Goal,
    prior: Frequencies | None,
    max_outputs: int | None,
    progress: ProgressCallback | None,
    effort: Effort = EXHAUSTIVE,
    cache: SearchCache | None = None,
) -> Optimum:
    """Design as ``optimal`` does until a deadline, or return an earlier result from the cache."""
    if prior is None and isinstance(policy, Prior):
        prior = [float(probability) for probability in policy.prior]
    stated = checked_distribution(prior, policy.domain, "optimal", "prior")
    stated = stated / stated.sum()
    goal = read_goal("optimal", utility, policy.domain)
    if isinstance(goal, WorstEstimation) and prior is not None and not isinstance(policy, Prior):
        must = "be left out for the utility 'worst-estimation', which chooses the distribution itself"
        raise InvalidInput("optimal", "prior", must, prior)
    if cache is None:
        return _searched(deadline, policy, goal, stated, max_outputs, progress, effort)
    seconds = deadline.left
    path = cache.path(policy, goal, stated, {"max_outputs": max_outputs, "max_rounds": effort.most_rounds})
    earlier = cache.find(path, policy, seconds)
    if earlier is not None:
        return earlier
    optimum = _searched(deadline, policy, goal, stated, max_outputs, progress, effort)
    cache.store(path, optimum, seconds)
    return optimum


def _searched(
    deadline: Deadline,
    policy: Policy,
    goal: Goal,
    stated: Floats,
    max_outputs: int | None,
    progress: ProgressCallback | None,
    effort: Effort,
) -> Optimum:
    """Search for the best mechanism at the stated distribution until a deadline."""
    latest = deadline.extended(_LATE * deadline.left + GRACE)
    size = len(policy.domain)
    if isinstance(goal, Estimation) and size == 1:
        goal = type(goal)()  # all answers are known, as the frequency is
    if isinstance(goal, ExpectedLoss) and isinstance(policy, PairwisePolicy) and size > FEW_VALUES:
        optimum = _decided(policy, goal, stated, deadline, max_outputs, progress)
        if optimum is not None:
            return optimum
    if isinstance(goal, Estimation) and goal.question is not None:
        classes = Classes.of(policy, goal.question.matrix(stated))
        if classes is not None:
            return _classified(classes, deadline, policy, goal, stated, max_outputs, progress, effort)
    if not latest.fits(_SLICE_SECONDS * size**2):
        raise OutOfTime
    slice_, design_prior = _sliced(policy, stated, goal)
    if isinstance(goal, Estimation) and (answers := goal.answers(stated)) is not None:
        slice_.answers = Answers.of(answers, slice_.group_of, slice_.prior)
        if slice_.answers is None:
            return _unanswerable(policy, goal, stated, deadline)
    if latest.passed:
        raise OutOfTime
    if max_outputs is not None and max_outputs < slice_.size:
        must = f"be at least {slice_.size}, the number of values that reports can distinguish"
        raise InvalidInput("optimal", "max_outputs", must, max_outputs)
    known, warm = _known(policy, goal, stated, slice_, deadline.part(_KNOWN_FRACTION))
    expected_outputs = min(_OUTPUTS_PER_VALUE * slice_.size, max_outputs or math.inf)
    reserve = min(_rounding_seconds(policy, expected_outputs), _MOST_ROUNDING * deadline.left)
    search, rounds = deadline.part(1.0, reserve=reserve), count_rounds(progress)
    if isinstance(goal, Estimation):
        is_infinite = slice_.answers is None and _has_equal_values(policy)
        if slice_.is_coarse and not is_infinite:
            raise numerical_error("the error of the best mechanism cannot be computed")
        if known is not None and stated is design_prior and not isinstance(goal, WorstEstimation):
            effort = replace(effort, target=known)
        try:
            design, prior = _designed(slice_, goal, search, max_outputs, rounds, effort, warm)
        except NoAnswer as error:
            if isinstance(error, OutOfTime) or not is_infinite:
                raise
            # The error is infinite in any case, so epsilons that are too small for doubles may count as 0.
            slice_ = Slice.of(policy, design_prior, max(_SMALL_EPSILONS))
            design, prior = _designed(slice_, goal, search, max_outputs, rounds, effort, None)
        if isinstance(goal, WorstEstimation):
            stated = design_prior = design_prior * (prior / slice_.prior)[slice_.group_of]
    else:
        assert isinstance(goal, SumGoal)
        design = _mixed(slice_, goal.on(slice_, design_prior), search, max_outputs, rounds)
    if not latest.fits(_rounding_seconds(policy, len(design.weights))):
        raise OutOfTime(
            f"rounding the mechanism to {size} × {len(design.weights)} exact probabilities exceeds the time limit"
        )
    # Q(y|x) = w_y·v_y(x) is the same for every value of a group. Rows sum to one up to rounding.
    columns = (design.weights[:, None] * design.rays).T[slice_.group_of]
    matrix = goal.outputs(columns / columns.sum(axis=1, keepdims=True), design_prior)
    target, bound = (goal.bound(over_rays, slice_, design_prior) for over_rays in (design.value, design.bound))
    if stated is not design_prior:
        bound = _bound_at(stated, goal, bound, slice_, design_prior, deadline)
    if known is not None:
        bound = max(bound, known) if goal.small_is_good else min(bound, known)
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
        raise numerical_error("the error of the best mechanism cannot be computed")
    optimum = Optimum(mechanism, goal.name, goal.small_is_good, stated, value, bound, "gap", seconds=deadline.spent)
    resolution = goal.resolution(stated)
    close = optimum.gap <= _OPTIMAL or abs(value - bound) <= resolution
    # The bounds of estimation hold for every mechanism. Those of other utilities do if the search was complete.
    is_proven = close and (design.complete or known is not None or isinstance(goal, Estimation))
    if not design.in_time and not is_proven:
        return replace(optimum, status="time")
    if not goal.small_is_good and slice_.size > 1 and bound <= resolution:
        return replace(optimum, bound=resolution)  # the information is positive but below double precision
    return replace(optimum, status="optimal") if is_proven else optimum


def _classified(
    classes: Classes,
    deadline: Deadline,
    policy: Policy,
    goal: Estimation,
    stated: Floats,
    max_outputs: int | None,
    progress: ProgressCallback | None,
    effort: Effort,
) -> Optimum:
    """Search for the best mechanism over classes of values that the question does not distinguish."""
    over_classes = type(goal)(classes.question.checked(classes.policy.domain))
    optimum = _searched(deadline, classes.policy, over_classes, classes.together(stated), max_outputs, progress, effort)
    prior = classes.spread(optimum.prior) if isinstance(goal, WorstEstimation) else stated
    mechanism = classes.expand(cast("TableMechanism", optimum.mechanism), policy.domain, prior)
    return replace(optimum, mechanism=mechanism, prior=prior, seconds=deadline.spent)


def _unanswerable(policy: Policy, goal: Estimation, prior: Floats, deadline: Deadline) -> Optimum:
    """Return a constant mechanism, because a question distinguishes values that the policy does not."""
    constant = TableMechanism.from_matrix(policy.domain, np.ones((len(policy.domain), 1)), policy=policy)
    return Optimum(constant, goal.name, True, prior, math.inf, math.inf, "optimal", seconds=deadline.spent)


def _decided(
    policy: PairwisePolicy,
    goal: ExpectedLoss,
    prior: Floats,
    deadline: Deadline,
    max_outputs: int | None,
    progress: ProgressCallback | None,
) -> Optimum | None:
    """Return the decisions with the least expected loss for many values; None if the policy has too many rules."""
    shape = goal.matrix.shape
    if max_outputs is not None and max_outputs < shape[1]:
        return None
    latest = deadline.extended(_LATE * deadline.left + GRACE)
    rounding = _rounding_seconds(policy, shape[1])
    search = deadline.part(1.0, reserve=min(rounding, _MOST_ROUNDING * deadline.left))
    design = least_loss(policy, goal.matrix, prior, search, count_rounds(progress))
    if design is None:
        return None
    if not latest.fits(rounding):
        raise OutOfTime(f"rounding the mechanism to {shape[0]} × {shape[1]} exact probabilities exceeds the time limit")
    matrix = goal.outputs(design.matrix, prior)
    late = not latest.fits(2 * rounding)
    mechanism = TableMechanism.from_matrix(policy.domain, matrix, policy=policy, late=lambda: late or deadline.passed)
    value = goal.value_of(mechanism, prior)
    optimum = Optimum(mechanism, goal.name, True, prior, value, design.bound, "gap", seconds=deadline.spent)
    if not design.in_time:
        return replace(optimum, status="time")
    return replace(optimum, status="optimal") if optimum.gap <= _OPTIMAL else optimum


def _sliced(policy: Policy, prior: Floats, goal: Goal) -> tuple[Slice, Floats]:
    """Return the slice at the prior, and that prior with small probabilities raised if they leave rays unbounded.

    For ``WorstEstimation``, small probabilities are always raised.
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


def _has_equal_values(policy: Policy) -> bool:
    """Return whether an epsilon of 0 between values makes some of them indistinguishable, so the error is infinite."""
    return isinstance(policy, PairwisePolicy) and int(groups(policy).max()) + 1 < len(policy.domain)


def _bound_at(prior: Floats, goal: Goal, bound: float, slice_: Slice, floored: Floats, deadline: Deadline) -> float:
    """Return a bound on every mechanism at p, from the bound at p with small probabilities raised."""
    if isinstance(goal, SumGoal):
        scale = float(prior.max() / floored[prior.argmax()])
        return goal.bound_without(bound, scale, np.maximum(scale * floored - prior, 0.0), prior)
    # Rays that are unbounded at p reveal some values at no cost. The error of the other values remains.
    group_prior = np.bincount(slice_.group_of, weights=prior).astype(np.float64)
    free = np.array([group_prior @ slice_.farthest(axis[None])[0] < _BOUNDED for axis in np.eye(slice_.size)])
    rest = slice_.without(free, group_prior)
    mass = float(group_prior[~free].sum())
    least = rest.least_trace  # a valid bound if the time runs out
    if not rest.is_constant:
        with suppress(OutOfTime):
            least = best_design(rest, deadline)[0].bound + rest.offset
    there = slice_.at(group_prior)
    least += there.squared_mean(np.flatnonzero(~free))
    return goal.bound(mass * least - there.offset, slice_, prior)


def _rounded(
    tables: Iterator[TableMechanism], goal: Goal, prior: Floats, target: float, deadline: Deadline
) -> tuple[TableMechanism, float]:
    """Return the first table whose value is close to that of the search, or the best in time, with its value."""
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
    """Yield exact mechanisms close to a matrix.

    A solver violates rules by about 1e-9. If an epsilon is not much larger, rounding must mix in a large constant part
    to restore the rules. A mechanism that treats this epsilon as 0 may then be better.
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


def _known(
    policy: Policy, goal: Goal, prior: Floats, slice_: Slice, deadline: Deadline
) -> tuple[float | None, Floats | None]:
    """Return a bound that needs no search, and likelihood vectors over the groups of the slice to start from."""
    if slice_.ray_search is None and not isinstance(policy, Prior):
        return None, None  # all rays are enumerated, or the rules have no symmetric form
    bound, orbits = (None, None) if slice_.answers is not None else known_optimum(policy, goal, prior, deadline)
    if bound is not None and not 0 < bound < math.inf:
        bound = None
    rays, limit = np.zeros((0, len(policy.domain))), min(_WARM * slice_.size, _MOST_WARM)
    if orbits is not None and orbits.orbits and isinstance(goal, Estimation):
        rays = orbits.rays(images=max(1, limit // len(orbits.orbits)))[0]
    elif isinstance(goal, Estimation) and slice_.size > _WARM_SIZE and not deadline.passed:
        rays = warm_rays(policy, limit, goal.question)
    first = np.unique(slice_.group_of, return_index=True)[1]
    rays = rays[:, first]
    return bound, rays[(rays @ slice_.prior) > 0] if len(rays) else None


def _designed(
    slice_: Slice,
    goal: Estimation,
    deadline: Deadline,
    max_outputs: int | None,
    rounds: Rounds | None,
    effort: Effort,
    warm: Floats | None,
) -> tuple[DesignWeights, Floats]:
    """Return the rays and weights with the least error, and the distribution of the groups at which it occurs."""
    design, prior = best_design(slice_, deadline, rounds, goal.solve, warm=warm, effort=effort)
    while max_outputs is not None and len(design.weights) > max_outputs:
        rays = design.rays[np.argsort(design.weights)[_dropped(design, max_outputs, deadline) :]]
        solved = goal.solve(slice_.at(prior), rays)
        prior = solved.prior
        design = replace(design, rays=scaled(rays, prior), weights=solved.weights, complete=False).used()
    return design, prior


def _mixed(
    slice_: Slice, pricing: Utility, deadline: Deadline, max_outputs: int | None, rounds: Rounds | None
) -> DesignWeights:
    """Return the rays and weights with the greatest utility."""
    design = best_mixture(slice_, pricing, deadline, rounds)
    while max_outputs is not None and len(design.weights) > max_outputs:
        rays = design.rays[np.argsort(design.weights)[_dropped(design, max_outputs, deadline) :]]
        weights = solve_weights(rays, pricing.of(rays), slice_.prior)[0]
        design = replace(design, rays=rays, weights=weights, complete=False).used()
    return design


def _dropped(design: DesignWeights, max_outputs: int, deadline: Deadline) -> int:
    """Return how many of the lightest rays to drop at once: one, or half the excess after the deadline."""
    return max(1, (len(design.weights) - max_outputs) // 2) if deadline.passed else 1
