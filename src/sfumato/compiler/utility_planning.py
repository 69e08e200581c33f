"""Plans for other utilities than estimation, and for ``mechanism="optimal"``: a search, then the candidates."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sfumato._core import Floats, quantity
from sfumato.compiler.bounds import least_worst_risk
from sfumato.compiler.candidates import candidates, safe_epsilon, short_reason
from sfumato.compiler.expected_errors import measure_mechanism
from sfumato.compiler.plans import Plan, Row
from sfumato.compiler.reasons import alternative, within_limit
from sfumato.compiler.requests import Request
from sfumato.compiler.solvers.deadline import GRACE, NEVER, Deadline, OutOfTime
from sfumato.compiler.solvers.goals import Estimation, ExpectedLoss, Goal, WorstEstimation
from sfumato.compiler.solvers.optimization import DEFAULT_SECONDS, optimal_until
from sfumato.compiler.solvers.result import Optimum
from sfumato.compiler.solvers.slice import LARGEST_SEARCHED, groups
from sfumato.domain import Frequencies
from sfumato.errors import InvalidInput, NoAnswer, NoMechanism
from sfumato.mechanisms import LARGEST_MATRIX, Mechanism, RandomizedResponse, TableMechanism, most_outputs
from sfumato.policy import PairwisePolicy, Policy, Prior, Uniform

__all__ = ["plan_by_utility", "value_until"]

#: Ratio of an error to its lower bound up to which no search for a better mechanism runs.
_NEARLY_OPTIMAL = 1.001
_NO_SEARCH = "the optimal mechanism, because max_seconds is 0"


def plan_by_utility(request: Request, deadline: Deadline) -> Plan:
    """Return the plan for one report: the result of a search and the candidates, compared by the requested utility."""
    goal = request.goal
    search_alone = request.mechanism == "optimal" or isinstance(goal, ExpectedLoss)
    if request.max_seconds == 0 and search_alone:
        must = "be positive, because only a search can find a mechanism for this request"
        raise InvalidInput(request.verb, "max_seconds", must, request.max_seconds)
    bound = _known_bound(request)
    late = deadline.extended(GRACE) if request.max_seconds != 0 else NEVER
    if bound is not None and not search_alone:
        known = _Comparison(request, None, None, bound)
        known.add_candidates(late)
        if known.is_nearly_optimal:
            return known.plan()
    optimum, skipped = _search(request, deadline)
    comparison = _Comparison(request, optimum, skipped, bound)
    if optimum is not None and search_alone:
        return comparison.plan()
    if isinstance(goal, ExpectedLoss):
        comparison.add_decisions(goal)
    else:
        comparison.add_candidates(late)
    return comparison.plan()


def _known_bound(request: Request) -> float | None:
    """Return a finite bound on the utility of every mechanism that needs no search, or None."""
    bound = None
    if isinstance(request.goal, WorstEstimation) and request.question is None:
        bound = least_worst_risk(request.policy)
    return bound if bound is not None and math.isfinite(bound) else None


def _search(request: Request, deadline: Deadline) -> tuple[Optimum | None, str | None]:
    """Return the optimal design, or None and the reason why there is none."""
    if request.max_seconds == 0:
        return None, _NO_SEARCH
    outputs = most_outputs(request.length.limit)
    try:
        if not isinstance(request.goal, ExpectedLoss):
            _check_outputs(request.policy, outputs)
        optimum = optimal_until(
            deadline, request.policy, request.goal, request.prior, outputs, request.progress, cache=request.cache
        )
        return optimum, None
    except NoAnswer as error:
        late = isinstance(error, OutOfTime)
        if request.mechanism == "optimal" or (isinstance(request.goal, ExpectedLoss) and not late):
            raise
        seconds = DEFAULT_SECONDS if request.max_seconds is None else request.max_seconds
        end = f"did not finish in {seconds:g} s (raise max_seconds to search longer)"
        return None, f"the optimal mechanism, because its search {end if late else f'failed: {short_reason(error)}'}"


def _check_outputs(policy: Policy, outputs: int | None) -> None:
    """Raise NoMechanism if there are fewer different reports than values that reports can distinguish."""
    values = len(policy.domain)
    if outputs is None or outputs >= values:
        return
    if isinstance(policy, PairwisePolicy) and values <= LARGEST_SEARCHED:
        values = int(groups(policy).max()) + 1
    if outputs < values:
        raise NoMechanism(
            f"{values} values need as many different reports, and max_bits allows {outputs}. Raise max_bits."
        )


class _Comparison:
    """Collect the rows of a plan, compared by a utility at one distribution."""

    def __init__(self, request: Request, optimum: Optimum | None, skipped: str | None, bound: float | None) -> None:
        self._request, self._optimum = request, optimum
        #: Bound on every mechanism: the one that needs no search, if it is known, or that of the search.
        self._bound = optimum.bound if bound is None and optimum is not None else bound
        self._skipped = [] if skipped is None else [skipped]
        prior: Frequencies | None = request.prior
        if prior is None and isinstance(request.policy, Prior):
            prior = [float(probability) for probability in request.policy.prior]
        self._stated = request.distribution(prior)
        #: Distribution at which utilities are compared: the least favourable one if the search determined it.
        self._at = self._stated if optimum is None else optimum.prior
        self._rows: list[Row] = []
        self._classical: set[str] = {"rr"}
        if optimum is not None:
            self._add("optimal", optimum.mechanism, optimum.value)

    def _add(
        self,
        name: str,
        mechanism: Mechanism,
        value: float | None,
        decoding: str = "k²",
        stronger: str | None = None,
    ) -> None:
        """Append the row of a mechanism with this utility."""
        row = measure_mechanism(name, mechanism, self._stated, self._request.goal, bound=self._bound)
        classical = name in self._classical
        self._rows.append(replace(row, value=value, decoding=decoding, classical=classical, stronger=stronger))

    @property
    def is_nearly_optimal(self) -> bool:
        """Whether the error of a row is so close to the bound that a search would gain little."""
        return any(row.ratio is not None and row.ratio <= _NEARLY_OPTIMAL for row in self._rows)

    def add_candidates(self, late: Deadline) -> None:
        """Compare the candidates by the utility; after the first row, only candidates that fit in the time."""
        request, goal, limit = self._request, self._request.goal, self._request.length.limit
        left_out: list[str] = []
        suitable = candidates(request.policy, request.length.max_bits, goal.name, late, request.question)
        self._classical = {name for name, candidate in suitable.by_name.items() if candidate.classical}
        for name, candidate in suitable.by_name.items():
            if not candidate.compared:
                continue
            if self._rows and (late.passed or not late.fits(candidate.seconds)):
                left_out.append(name)
                continue
            with suitable.comparing(name):
                mechanism = candidate.build()
                if limit is not None and mechanism.bits > limit:
                    continue
                value = value_until(late, goal, mechanism, self._at)
                if value is None:
                    left_out.append(name)
                if value is not None or not self._rows:
                    self._add(name, mechanism, value, candidate.decoding, suitable.stronger.get(name))
        self._skipped += suitable.skipped
        if left_out:
            self._skipped.append(f"{', '.join(left_out)}, because the time limit was reached")

    def add_decisions(self, goal: ExpectedLoss) -> None:
        """Add randomized response at the greatest ε that implies the policy, with decisions as reports.

        Each report is replaced by the decision with the least expected loss given that report. This needs no search.
        """
        policy = self._request.policy
        epsilon = safe_epsilon(policy)
        high, low = map(float, RandomizedResponse(policy.domain, epsilon).likelihoods)
        size = len(policy.domain)
        columns = np.full((size, size), low) + (high - low) * np.eye(size)
        decisions = goal.outputs(columns / columns.sum(axis=1, keepdims=True), self._at)
        # A mechanism that satisfies ε-LDP obeys the policy, and ε-LDP is faster to check.
        classical = Uniform(policy.domain, epsilon)
        mechanism = TableMechanism.from_matrix(policy.domain, decisions, policy=classical, late=lambda: True)
        self._add("rr", mechanism, goal.value_of(mechanism, self._at))

    def plan(self) -> Plan:
        """Return the plan for one report, the best row first."""
        request, goal = self._request, self._request.goal
        skipped = "; ".join(self._skipped) or None
        if not self._rows:
            raise NoMechanism(
                f"no mechanism could be compared by the utility {goal.name!r} (not compared: {skipped}). "
                "Raise max_seconds or max_bits, or choose another utility."
            )
        sign = 1 if goal.small_is_good else -1
        # Sorting is stable: of rows with equal value and bits, the result of the search comes first.
        rows = sorted(self._rows, key=lambda row: (row.value is None, sign * (row.value or 0.0), row.bits))
        plan = Plan(
            policy=request.policy,
            n=1,
            rows=tuple(rows),
            reason="",
            utility=goal.name,
            prior=None if request.prior is None else tuple(self._stated.tolist()),
            max_bits=request.length.max_bits,
            skipped=skipped,
            question=request.question,
        )
        return replace(plan, reason=self._reason(plan))

    def _reason(self, plan: Plan) -> str:
        """Return the sentence that explains the recommendation."""
        name, best = self._request.goal.name, plan.best
        if self._optimum is not None and best.name == "optimal":
            reason = f"optimal: {self._optimum.summary()}"
        elif best.value is None:
            reason = f"{best.name}: its {name} was not computed within the time limit"
        else:
            side = "lower" if self._request.goal.small_is_good else "upper"
            bound = "" if best.bound is None else f", {side} bound {best.bound:.6g}"
            reason = f"{best.name}: {name} {best.value:.6g}{bound}"
        if isinstance(self._request.goal, Estimation) and best.value is not None and np.isfinite(best.value):
            reason += " (errors from 1 report; divide by n)"
        other = alternative(plan, best)
        if plan.skipped is not None:
            reason += f", the best of the compared mechanisms{within_limit(plan, best)}"
        if other is not None and other.value is not None:
            length = quantity(other.bits, "bit per report", "bits per report")
            reason += f"; {other.name}: {name} {other.value:.6g}, {length}"
        return reason if plan.skipped is None else f"{reason}. Not compared: {plan.skipped}"


def value_until(deadline: Deadline, goal: Goal, mechanism: Mechanism, p: Floats) -> float | None:
    """Return the utility of a mechanism at p; None if it is not computed in time or not defined."""
    if isinstance(goal, Estimation):  # the error of the mechanism's estimator has a closed form
        return goal.value_of(mechanism, p)
    if isinstance(goal, ExpectedLoss) and mechanism.outputs != goal.matrix.shape[1]:
        return None  # its reports are not decisions
    matrix = _matrix_until(deadline, mechanism)
    return None if matrix is None else goal.value(matrix, p)


def _matrix_until(deadline: Deadline, mechanism: Mechanism) -> Floats | None:
    """Return the matrix of a mechanism; None if it is too large or not computed in time."""
    values = range(len(mechanism.domain))
    if len(values) * mechanism.outputs > LARGEST_MATRIX:
        return None
    columns = []
    for report in mechanism.reports():
        if deadline.passed:
            return None
        columns.append([float(mechanism.probability(report, x)) for x in values])
    return np.array(columns).T
