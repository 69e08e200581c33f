"""Plans for other utilities than the error at a prior, and for ``mechanism="optimal"``: a search, then candidates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato._core import Floats
from sfumato.compiler.candidates import candidates, safe_epsilon
from sfumato.compiler.expected_errors import measure_mechanism
from sfumato.compiler.plans import Plan, Row
from sfumato.compiler.requests import Request
from sfumato.compiler.solvers.deadline import GRACE, NEVER, Deadline, OutOfTime
from sfumato.compiler.solvers.goals import Estimation, ExpectedLoss, Goal
from sfumato.compiler.solvers.optimization import optimal_until
from sfumato.compiler.solvers.result import Optimum
from sfumato.domain import Frequencies
from sfumato.errors import InvalidInput, NoAnswer, NoMechanism
from sfumato.mechanisms import LARGEST_MATRIX, Mechanism, RandomizedResponse, TableMechanism, most_outputs
from sfumato.policy import Prior, Uniform

__all__ = ["plan_by_utility", "value_until"]

_NO_SEARCH = "no search was made, because max_seconds is 0"


def plan_by_utility(request: Request, deadline: Deadline) -> Plan:
    """Return the plan of one report: what a search finds, and the candidates, by the utility of the request."""
    goal = request.goal
    search_alone = request.mechanism == "optimal" or isinstance(goal, ExpectedLoss)
    if request.max_seconds == 0 and search_alone:
        must = "be positive: nothing but a search makes this mechanism"
        raise InvalidInput(request.verb, "max_seconds", must, request.max_seconds)
    optimum, skipped = _search(request, deadline)
    comparison = _Comparison(request, optimum, skipped)
    if optimum is not None and search_alone:
        return comparison.plan()
    if isinstance(goal, ExpectedLoss):
        comparison.add_decisions(goal)
    else:
        comparison.add_candidates(deadline.extended(GRACE) if request.max_seconds != 0 else NEVER)
    return comparison.plan()


def _search(request: Request, deadline: Deadline) -> tuple[Optimum | None, str | None]:
    """Return the optimal design, or why there is none."""
    if request.max_seconds == 0:
        return None, _NO_SEARCH
    outputs = most_outputs(request.max_bits)
    try:
        return optimal_until(deadline, request.policy, request.goal, request.prior, outputs, request.progress), None
    except NoAnswer as error:
        late = isinstance(error, OutOfTime)
        if request.mechanism == "optimal" or (isinstance(request.goal, ExpectedLoss) and not late):
            raise
        return None, str(error)


class _Comparison:
    """Collects the rows of a plan by a utility at a distribution."""

    def __init__(self, request: Request, optimum: Optimum | None, skipped: str | None) -> None:
        self._request, self._optimum = request, optimum
        self._skipped = [] if skipped is None else [skipped]
        prior: Frequencies | None = request.prior
        if prior is None and isinstance(request.policy, Prior):
            prior = [float(probability) for probability in request.policy.prior]
        self._stated = request.distribution(prior)
        #: Where the utility is compared: at the least favourable distribution, if the search finds that.
        self._at = self._stated if optimum is None else optimum.prior
        self._rows: list[Row] = []
        self._classical: set[str] = {"rr"}
        if optimum is not None:
            self._add("optimal", optimum.mechanism, optimum.value)

    def _add(self, name: str, mechanism: Mechanism, value: float | None, decoding: str = "k²") -> None:
        bound = None if self._optimum is None else self._optimum.bound
        row = measure_mechanism(name, mechanism, self._stated, bound=bound)
        self._rows.append(replace(row, value=value, decoding=decoding, classical=name in self._classical))

    def add_candidates(self, late: Deadline) -> None:
        """Compare the candidates by the utility; once there is a row, only those that are made in time."""
        request, goal = self._request, self._request.goal
        left_out: list[str] = []
        suitable = candidates(request.policy, request.max_bits, goal.name)
        self._classical = {name for name, candidate in suitable.by_name.items() if candidate.classical}
        for name, candidate in suitable.by_name.items():
            if not candidate.compared:
                continue
            if self._rows and (late.passed or not late.fits(candidate.seconds)):
                left_out.append(name)
                continue
            with suitable.comparing(name):
                mechanism = candidate.build()
                if request.max_bits is not None and mechanism.bits > request.max_bits:
                    continue
                value = value_until(late, goal, mechanism, self._at)
                if value is None:
                    left_out.append(name)
                if value is not None or not self._rows:
                    self._add(name, mechanism, value, candidate.decoding)
        self._skipped += suitable.skipped
        if left_out:
            self._skipped.append(f"{', '.join(left_out)}, because the time was over")

    def add_decisions(self, goal: ExpectedLoss) -> None:
        """Add randomized response at the greatest ε that implies the policy, with decisions instead of values.

        Each report is replaced by the decision that it suggests. This needs no search.
        """
        policy = self._request.policy
        epsilon = safe_epsilon(policy)
        high, low = map(float, RandomizedResponse(policy.domain, epsilon).likelihoods)
        size = len(policy.domain)
        columns = np.full((size, size), low) + (high - low) * np.eye(size)
        decisions = goal.outputs(columns / columns.sum(axis=1, keepdims=True), self._at)
        # What keeps ε between all values obeys the policy, and is checked faster.
        classical = Uniform(policy.domain, epsilon)
        mechanism = TableMechanism.from_matrix(policy.domain, decisions, policy=classical, late=lambda: True)
        self._add("rr", mechanism, goal.value_of(mechanism, self._at))

    def plan(self) -> Plan:
        """Return the plan of one report, the best row first."""
        request, goal = self._request, self._request.goal
        skipped = "; ".join(self._skipped) or None
        if not self._rows:
            raise NoMechanism(f"no mechanism could be compared by this utility: {skipped}")
        sign = 1 if goal.small_is_good else -1
        # Sorting is stable: among equals in value and bits, what the search found comes first.
        rows = sorted(self._rows, key=lambda row: (row.value is None, sign * (row.value or 0.0), row.bits))
        return Plan(
            policy=request.policy,
            n=1,
            rows=tuple(rows),
            reason=self._reason(rows[0], skipped),
            utility=goal.name,
            prior=None if request.prior is None else tuple(self._stated.tolist()),
            max_bits=request.max_bits,
            skipped=skipped,
        )

    def _reason(self, best: Row, skipped: str | None) -> str:
        name = self._request.goal.name
        if self._optimum is not None and best.name == "optimal":
            reason = f"optimal: {self._optimum.summary()}"
        elif best.value is None:
            reason = f"{best.name}: its {name} was not computed in time"
        else:
            proved = "" if best.bound is None else f", any mechanism {best.bound:.6g}"
            reason = f"{best.name}: {name} {best.value:.6g}{proved}"
        return reason if skipped is None else f"{reason}, the best of those compared. NOT COMPARED: {skipped}"


def value_until(deadline: Deadline, goal: Goal, mechanism: Mechanism, p: Floats) -> float | None:
    """Return the utility of a mechanism at p, or None where it is not computed in time or has no meaning."""
    if isinstance(goal, Estimation):  # by the mechanism's own estimator, whose error has a closed form
        return goal.value_of(mechanism, p)
    if isinstance(goal, ExpectedLoss) and mechanism.outputs != goal.matrix.shape[1]:
        return None  # its reports are no decisions
    matrix = _matrix_until(deadline, mechanism)
    return None if matrix is None else goal.value(matrix, p)


def _matrix_until(deadline: Deadline, mechanism: Mechanism) -> Floats | None:
    """Return the matrix of a mechanism, or None where it is too large or takes too long."""
    values = range(len(mechanism.domain))
    if len(values) * mechanism.outputs > LARGEST_MATRIX:
        return None
    columns = []
    for report in mechanism.reports():
        if deadline.passed:
            return None
        columns.append([float(mechanism.probability(report, x)) for x in values])
    return np.array(columns).T
