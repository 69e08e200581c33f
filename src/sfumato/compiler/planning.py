"""The verb ``plan``: every suitable mechanism for a policy, with the error to expect before anybody is asked."""

from __future__ import annotations

import math
from dataclasses import replace

from sfumato._core import MOST_PEOPLE, Floats, ProgressCallback, checked_count
from sfumato.compiler.bounds import least_risk
from sfumato.compiler.candidates import candidates
from sfumato.compiler.expected_errors import measure, measure_mechanism, scale
from sfumato.compiler.plans import Plan, Row
from sfumato.compiler.reasons import reason_for, tells_nothing
from sfumato.compiler.requests import Request, checked_target
from sfumato.compiler.solvers.deadline import GRACE, Deadline, OutOfTime, one_thread
from sfumato.compiler.solvers.goals import Estimation, Goal
from sfumato.compiler.solvers.optimization import DEFAULT_SECONDS, optimal_until
from sfumato.compiler.solvers.orbits import best_orbits
from sfumato.compiler.solvers.result import Optimum
from sfumato.compiler.utility_planning import plan_by_utility, value_until
from sfumato.domain import Frequencies
from sfumato.errors import InvalidInput, NoAnswer, NoMechanism
from sfumato.mechanisms import most_outputs
from sfumato.policy import Blocks, HighLow, PairwisePolicy, Policy, Uniform, structure_of

__all__ = ["SEARCHED_VALUES", "SEARCH_SECONDS", "plan", "plan_request"]

#: Maximum number of values for which the optimal mechanism is searched unless ``max_seconds`` says otherwise.
SEARCHED_VALUES = 64
#: Maximum duration of that search in seconds.
SEARCH_SECONDS = 10.0
#: No search is made by itself above this many values (it takes a second there) where some mechanism has at most this
#: many times the least error any can have.
_SMALL_DOMAIN, _NEARLY_LEAST = 10, 1.01
#: A search whose bound is farther than this factor from its own mechanism bounds nothing that matters: no ratio to it
#: is given.
_USEFUL_BOUND = 2.0


def plan(
    policy: Policy,
    n: int | None = None,
    *,
    target: float | None = None,
    mechanism: str | None = None,
    utility: str | Goal = "estimation",
    prior: Frequencies | None = None,
    max_bits: int | None = None,
    max_seconds: float | None = None,
    progress: ProgressCallback | None = None,
) -> Plan:
    """Compare every suitable mechanism at n reports, or find the n at which the best one meets a target.

    Where no structure of the policy says what is best, the optimal design is searched for and compared too, and bounds
    what any mechanism can do.

    Parameters
    ----------
    policy
        The policy that every mechanism must obey.
    n
        Number of people.
    target
        Expected total variation error, from which n follows. Give either n or a target.
    mechanism
        Short name of the only mechanism to look at; ``"optimal"`` searches for the optimal design whatever the policy.
    utility
        What mechanisms are compared by: ``"estimation"`` (the error of all frequencies together at the prior),
        ``"worst-estimation"`` (the same at the distribution where it is greatest), ``"mutual-information"``, ``"mmse"``
        (of numeric labels), a ``SquaredError`` or an ``ExpectedLoss``.
    prior
        The distribution at which errors are predicted, uniform unless given (for most of these mechanisms the worst
        case): in domain order, or with labels (a mapping, a pandas Series), by which it is aligned.
    max_bits
        Maximum length of a report that is recommended, in bits.
    max_seconds
        Time for all of it, 0 for no search. The call takes at most a fifth and 2 s longer, also where two other
        programs keep the cores busy. By default a search for estimation gets 10 seconds for up to 64 values and none
        for more, and one for another utility a minute. ``Plan.skipped`` names what did not fit.
    progress
        Called with a :class:`Progress` (value and bound) after every round of a search.

    Returns
    -------
    Plan
        The mechanisms with their errors, the best first, with reason, bound and gap.

    Raises
    ------
    PolicyViolated
        If ``mechanism`` names a registered mechanism that does not obey the policy. Such mechanisms are audited, and
        without a name ``Plan.skipped`` says which were left out.
    NoAnswer
        If no number of people meets the target, or ``mechanism="optimal"`` and no search fits in the time.

    Examples
    --------
    >>> from sfumato import Domain, Uniform
    >>> compared = plan(Uniform(Domain(["yes", "no", "maybe"]), 1), n=1000)
    >>> compared.best.name, round(compared["subset"].tv, 3)
    ('rr', 0.049)
    """
    if (n is None) == (target is None):
        raise InvalidInput("plan", "n and target", "be given one without the other", (n, target))
    n = None if n is None else checked_count("plan", n)
    target = None if target is None else checked_target("plan", target)
    request = Request.read(
        "plan",
        policy,
        utility,
        mechanism=mechanism,
        prior=prior,
        max_bits=max_bits,
        max_seconds=max_seconds,
        progress=progress,
    )
    one = plan_request(request)
    if n is None:
        assert target is not None
        n = _people_for(target, one)
    is_error = isinstance(request.goal, Estimation)
    scaled = replace(one, n=n, rows=tuple(scale(row, n, is_error=is_error) for row in one.rows))
    return replace(scaled, reason=reason_for(scaled)) if _is_compared_by_risk(request) else scaled


def plan_request(request: Request) -> Plan:
    """Return the plan of one report."""
    if request.mechanism is not None and request.mechanism != "optimal":
        return _plan_of_one_mechanism(request, request.mechanism)
    seconds = request.max_seconds
    if _is_compared_by_risk(request):
        deadline = Deadline(seconds or SEARCH_SECONDS)  # before solvers are loaded, which takes time too
        with one_thread():
            return _plan_by_risk(request, deadline)
    deadline = Deadline(DEFAULT_SECONDS if seconds is None else seconds)
    with one_thread():
        return plan_by_utility(request, deadline)


def _is_compared_by_risk(request: Request) -> bool:
    """Return whether candidates are compared by the risk at the prior, and no search is asked for by name."""
    return request.goal.name == "estimation" and request.mechanism is None


def _plan_of_one_mechanism(request: Request, name: str) -> Plan:
    """Return the plan of the mechanism that the caller names."""
    suitable = candidates(request.policy, request.max_bits, request.goal.name)
    if name not in suitable.by_name:
        must = f"be one of optimal, {', '.join(suitable.by_name)} for this policy"
        raise InvalidInput(request.verb, "mechanism", must, name)
    candidate, prior = suitable.by_name[name], request.distribution(request.prior)
    row = measure(name, candidate, prior)
    if request.goal.name != "estimation":
        late = Deadline(GRACE if request.max_seconds is None else request.max_seconds + GRACE)
        row = replace(row, value=value_until(late, request.goal, row.mechanism, prior))
    return Plan(
        policy=request.policy,
        n=1,
        rows=(row,),
        reason=f"{name}, as asked",
        utility=request.goal.name,
        prior=None if request.prior is None else tuple(prior.tolist()),
        max_bits=request.max_bits,
    )


def _people_for(target: float, one: Plan) -> int:
    """How many meet a total variation error, from the plan of one report."""
    tv = one.best.half_l1
    if math.isinf(tv):
        raise NoMechanism(f"no number of people meets a target under this policy; {one.reason}")
    root = tv / target
    if root > math.sqrt(MOST_PEOPLE):
        digits = 2 * (math.log10(tv) - math.log10(target))
        raise InvalidInput("plan", "target", f"be met by at most 2^53 people, not some 10^{digits:.0f}", target)
    return max(1, math.ceil(root**2))


def _plan_by_risk(request: Request, deadline: Deadline) -> Plan:
    """Compare all candidates by their risk at the prior, and the optimal design where that may be better."""
    policy, max_seconds = request.policy, request.max_seconds
    late = deadline.extended(GRACE)
    prior = request.distribution(request.prior)
    bound = _least_risk(policy) if request.prior is None else None
    rows: list[Row] = []
    suitable = candidates(policy, request.max_bits)
    skipped = suitable.skipped
    for name, candidate in suitable.by_name.items():
        if not candidate.compared:
            continue
        if max_seconds and candidate.seconds and not late.fits(candidate.seconds):
            skipped.append(
                f"{name}, which takes some {candidate.seconds:.2g} s to make (max_seconds is {max_seconds:g})"
            )
            continue
        if max_seconds and rows and late.passed:
            skipped.append(f"{name}, because the time was over (max_seconds is {max_seconds:g})")
            continue
        with suitable.comparing(name):
            rows.append(measure(name, candidate, prior, bound))
    if _needs_search(policy, request.max_bits):
        why_not = _why_no_search(policy, max_seconds, min((r.ratio for r in rows if r.ratio is not None), default=None))
        optimum = None
        if why_not is None:
            optimum, why_not = _optimum(request, deadline, prior)
        if optimum is not None:
            if bound is None and optimum.value <= _USEFUL_BOUND * optimum.bound < math.inf:
                bound = optimum.bound
                rows = [replace(other, bound=bound) for other in rows]
            rows.append(measure_mechanism("optimal", optimum.mechanism, prior, bound=bound))
        if why_not:
            skipped.append(
                f"the optimal mechanism, because {why_not}. It may have several times less error, so that several "
                "times fewer people would do"
            )
    # Risks that agree in nine digits are equal: a solver resolves no more, and short reports are better.
    rows.sort(key=lambda row: (float(f"{row.risk:.9g}"), row.bits))
    compared = Plan(
        policy=policy,
        n=1,
        rows=tuple(rows),
        reason="",
        prior=None if request.prior is None else tuple(prior.tolist()),
        max_bits=request.max_bits,
        skipped="; ".join(skipped) or None,
    )
    return replace(compared, reason=reason_for(compared))


def _least_risk(policy: Policy) -> float | None:
    """The least risk of one report that any mechanism can have at the uniform distribution, where it is known."""
    known = least_risk(policy)
    if known is not None:
        return known
    try:
        symmetric = best_orbits(policy)
    except NoAnswer:
        return None
    return None if symmetric is None else symmetric.bound


def _needs_search(policy: Policy, max_bits: int | None) -> bool:
    """Whether something can be told, no structure of the policy says how best, and tables have reports short enough."""
    simplest = structure_of(policy)
    if tells_nothing(policy):
        return False
    if isinstance(simplest, (Uniform, HighLow)) or (isinstance(simplest, Blocks) and simplest.across.is_infinite):
        return False
    if isinstance(simplest, PairwisePolicy) and len(policy.domain) == 2:
        return False
    outputs = most_outputs(max_bits)
    return outputs is None or outputs >= len(policy.domain)


def _why_no_search(policy: Policy, max_seconds: float | None, ratio: float | None) -> str | None:
    """Why the optimal mechanism is not searched for; empty where a search would gain next to nothing, None if it is."""
    size = len(policy.domain)
    if max_seconds is not None:
        return None if max_seconds > 0 else "max_seconds is 0"
    if size > _SMALL_DOMAIN and ratio is not None and ratio <= _NEARLY_LEAST:
        return ""
    if size > SEARCHED_VALUES:
        return (
            f"{size} values are more than the {SEARCHED_VALUES} that are searched by default (max_seconds asks for it)"
        )
    return None


def _optimum(request: Request, deadline: Deadline, prior: Floats) -> tuple[Optimum | None, str | None]:
    """Return the optimal design, or why there is none."""
    outputs = most_outputs(request.max_bits)
    try:
        deadline.require()
        return optimal_until(deadline, request.policy, "estimation", prior, outputs, request.progress), None
    except OutOfTime:
        seconds = request.max_seconds or SEARCH_SECONDS
        return None, f"its search did not fit in {seconds:g} s (max_seconds gives it more)"
    except NoAnswer as error:
        return None, f"its search failed: {error}"
