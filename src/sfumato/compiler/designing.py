"""The verb ``design``: the mechanism that a plan recommends for a policy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato._core import ProgressCallback, checked_count, checked_kind, checked_seconds
from sfumato.compiler.candidates import candidates, safe_epsilon
from sfumato.compiler.planning import checked_bits, plan
from sfumato.compiler.solvers.deadline import GRACE, NEVER, Deadline, OutOfTime, one_thread
from sfumato.compiler.solvers.goals import Estimation, ExpectedLoss, Goal, WorstEstimation, goal_of
from sfumato.compiler.solvers.optimization import DEFAULT_SECONDS, optimal_until
from sfumato.domain import Frequencies, checked_distribution
from sfumato.errors import InvalidInput, NoAnswer, NoMechanism
from sfumato.mechanisms import LARGEST_MATRIX, Candidate, Mechanism, RandomizedResponse, TableMechanism, most_outputs
from sfumato.policy import Policy, Prior, Uniform

__all__ = ["design", "designed"]


def design(
    policy: Policy,
    n: int | None = None,
    *,
    mechanism: str | None = None,
    utility: str | Goal = "estimation",
    p: Frequencies | None = None,
    max_bits: int | None = None,
    max_seconds: float | None = None,
    progress: ProgressCallback | None = None,
) -> Mechanism:
    """The mechanism that ``plan`` recommends, or the one asked for by its short name.

    Candidates are the mechanisms made for the structure of the policy, classical ones at the greatest ε that implies
    it, and the optimal design (``mechanism="optimal"`` asks for it whatever the policy). For a ``utility`` other than
    "estimation" ("worst-estimation", "mutual-information", "mmse", ``SquaredError`` or ``ExpectedLoss``) the best of
    the same at p. ``max_seconds`` is the time for all of it, and 0 asks for no search: it takes at most a fifth and
    2 s longer, also where two other programs keep the cores busy. However short it is, a mechanism that obeys the
    policy is returned, the best of those that fit. ``mechanism="optimal"`` raises NoAnswer where no search does.
    Left out, a plan's search gets 10 seconds for up to 64 values and none for more, and that for another utility a
    minute. ``progress`` is called with a :class:`Progress` (value and bound) after every round of a search.
    """
    return designed(policy, n, mechanism, utility, p, max_bits, max_seconds, progress)[0]


def designed(
    policy: Policy,
    n: int | None = None,
    mechanism: str | None = None,
    utility: str | Goal = "estimation",
    p: Frequencies | None = None,
    max_bits: int | None = None,
    max_seconds: float | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[Mechanism, str]:
    """The mechanism, and in a sentence why this one."""
    checked_kind("design", "the policy", policy, Policy)
    n = 1 if n is None else checked_count("design", n)
    max_bits = checked_bits("design", max_bits)
    if len(policy.domain) < 2:
        raise InvalidInput("design", "the domain", "have at least two values", policy.domain)
    max_seconds = checked_seconds("design", max_seconds)
    goal = goal_of(utility, policy.domain)
    if isinstance(goal, WorstEstimation) and p is not None:
        raise InvalidInput("design", "p", "not be given where the worst distribution is designed for", p)
    suitable = candidates(policy, max_bits, goal.name)
    if mechanism is not None and mechanism != "optimal":
        checked_kind("design", "mechanism", mechanism, str)
        if mechanism not in suitable:
            must = f"be one of optimal, {', '.join(suitable)} for this policy"
            raise InvalidInput("design", "mechanism", must, mechanism)
        return suitable[mechanism].build(), f"{mechanism}, as asked"
    if goal.name == "estimation" and mechanism is None:
        found = plan(policy, n, p=p, max_bits=max_bits, max_seconds=max_seconds, progress=progress)
        return found.best.mechanism, found.why()
    if max_seconds == 0 and (mechanism == "optimal" or isinstance(goal, ExpectedLoss)):
        raise InvalidInput(
            "design", "max_seconds", "be positive: nothing but a search makes this mechanism", max_seconds
        )
    deadline = Deadline(DEFAULT_SECONDS if max_seconds is None else max_seconds)
    with one_thread():
        return _best_for(deadline, goal, policy, suitable, mechanism, p, max_bits, max_seconds, progress)


def _best_for(
    deadline: Deadline,
    goal: Goal,
    policy: Policy,
    suitable: dict[str, Candidate],
    mechanism: str | None,
    p: Frequencies | None,
    max_bits: int | None,
    max_seconds: float | None,
    progress: ProgressCallback | None,
) -> tuple[Mechanism, str]:
    """The best at another utility than that of a plan: what a search finds, or a candidate that is better."""
    late = deadline.extended(GRACE) if max_seconds != 0 else NEVER
    best: tuple[Mechanism, str] | None = None
    shares, value, proved, skipped = p, None, "", "no search was made, because max_seconds is 0"
    if max_seconds != 0:
        try:
            optimum = optimal_until(deadline, policy, goal, p, most_outputs(max_bits), progress)
            best, skipped = (optimum.mechanism, f"optimal: {optimum}"), ""
            shares, value, proved = optimum.p, optimum.value, f", any mechanism {optimum.bound:.6g}"
        except NoAnswer as error:
            if mechanism == "optimal" or (isinstance(goal, ExpectedLoss) and not isinstance(error, OutOfTime)):
                raise
            skipped = str(error)
    if best is not None and (mechanism == "optimal" or isinstance(goal, ExpectedLoss)):
        return best
    if shares is None and isinstance(policy, Prior):
        shares = [float(share) for share in policy.prior]
    distribution = checked_distribution(shares, policy.domain, "design")
    if isinstance(goal, ExpectedLoss):
        return _decided_by_response(goal, policy, distribution, skipped)
    left_out: list[str] = []
    for name, candidate in suitable.items():
        if not candidate.compared:
            continue
        if best is not None and not (late.fits(candidate.seconds) and not late.passed):
            left_out.append(name)
            continue
        try:
            other = candidate.build()
        except NoAnswer:  # too many bits
            continue
        if max_bits is not None and other.bits > max_bits:
            continue
        if isinstance(goal, Estimation):  # by the mechanism's own estimator, whose error has a closed form
            reached = goal.value_of(other, distribution)
        elif (matrix := _matrix_until(late, other)) is not None:
            reached = goal.value(matrix, distribution)
        else:
            best = best or (other, f"{name}: its {goal.name} was not computed in time")
            left_out.append(name)
            continue
        if value is None or (reached < value if goal.small_is_good else reached > value):
            value, best = reached, (other, f"{name}: {goal.name} {reached:.6g}{proved}")
    if best is None:
        raise NoMechanism(f"no mechanism could be compared by this utility: {skipped}")
    if left_out:
        skipped = "; ".join([*filter(None, [skipped]), f"{', '.join(left_out)}, because the time was over"])
    return best[0], best[1] if not skipped else f"{best[1]}, the best of those compared. NOT COMPARED: {skipped}"


def _decided_by_response(
    goal: ExpectedLoss, policy: Policy, p: npt.NDArray[np.float64], skipped: str
) -> tuple[Mechanism, str]:
    """Randomized response at the greatest ε that implies the policy, each report replaced by the decision it suggests.

    No search is needed for it: what there is where none fits in the time.
    """
    epsilon = safe_epsilon(policy)
    response = RandomizedResponse(policy.domain, epsilon)
    high, low = (float(level) for level in response.levels)
    columns = np.full((len(p), len(p)), low) + (high - low) * np.eye(len(p))
    decisions = goal.outputs(columns / columns.sum(axis=1, keepdims=True), p)
    # What keeps ε between all values obeys the policy, and is checked faster.
    classical = Uniform(policy.domain, epsilon)
    made = TableMechanism.from_matrix(policy.domain, decisions, policy=classical, late=lambda: True)
    reached = goal.value_of(made, p)
    return made, f"randomized response: {goal.name} {reached:.6g}. NOT COMPARED: {skipped}"


def _matrix_until(deadline: Deadline, mechanism: Mechanism) -> npt.NDArray[np.float64] | None:
    """The matrix of a mechanism, or None where it is too large or takes too long."""
    values = range(len(mechanism.domain))
    if len(values) * mechanism.outputs > LARGEST_MATRIX:
        return None
    columns = []
    for report in mechanism.reports():
        if deadline.passed:
            return None
        columns.append([float(mechanism.probability(report, x)) for x in values])
    return np.array(columns).T
