"""The verb ``plan``: compare the suitable mechanisms for a policy before any data is collected."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sfumato._core import (
    MOST_PEOPLE,
    EpsilonLike,
    Floats,
    ProgressCallback,
    checked_count,
    did_you_mean,
    one_thread,
)
from sfumato.auditing import checked_delta
from sfumato.compiler.approximations import outer_bound
from sfumato.compiler.candidates import Candidates, candidates, short_reason
from sfumato.compiler.central import CentralTarget, with_central_levels
from sfumato.compiler.classes import Classes
from sfumato.compiler.expected_errors import measure, measure_mechanism, scale
from sfumato.compiler.known_bounds import exact_bound
from sfumato.compiler.plans import Plan, Row, ordered_by_method
from sfumato.compiler.predictions import Assumption, people_for, predict
from sfumato.compiler.products import coordinate_policies, product_mechanism
from sfumato.compiler.reasons import OPTIMAL, nothing_learned, reason_for, reveals_nothing
from sfumato.compiler.report_length import SHORT, MaxBits
from sfumato.compiler.requests import Request, checked_target
from sfumato.compiler.set_distances import has_set_distances, seconds_of_set_distances, set_distances
from sfumato.compiler.solvers.coarsening import coarse_slice_of_policy
from sfumato.compiler.solvers.deadline import GRACE, NEVER, Deadline, OutOfTime
from sfumato.compiler.solvers.estimation import EXHAUSTIVE, Effort, best_design
from sfumato.compiler.solvers.goals import Estimation, Goal
from sfumato.compiler.solvers.one_answer import bound_of_one_answer
from sfumato.compiler.solvers.optimization import DEFAULT_SECONDS, optimal_until
from sfumato.compiler.solvers.result import USEFUL_RATIO, Optimum
from sfumato.compiler.solvers.slice import LARGEST_SEARCHED
from sfumato.compiler.strategies import Strategies, Way
from sfumato.compiler.utility_planning import plan_by_utility, value_until
from sfumato.domain import Frequencies
from sfumato.errors import Description, InvalidInput, NoAnswer, NoMechanism
from sfumato.mechanisms import Candidate, Mechanism, most_outputs
from sfumato.policy import Blocks, HighLow, PairwisePolicy, Policy, Uniform, structure_of
from sfumato.questions import Marginals, Question

__all__ = ["SEARCHED_VALUES", "SEARCH_SECONDS", "needs_search", "plan", "plan_for_target", "plan_request"]

#: Maximum number of values for which ``plan`` searches for the optimal mechanism without ``max_seconds``.
SEARCHED_VALUES = 256
#: Maximum duration of that search in seconds.
SEARCH_SECONDS = 20.0
#: Without ``max_seconds``, the search ends when ten rounds improve the error by less than a thousandth.
_DEFAULT_EFFORT = Effort(least_progress=1e-3)
#: Maximum processor time to build a mechanism in seconds if there is no search (``max_seconds=0``).
_BUILD_SECONDS = 2.0
#: Duration in seconds after which the bound of one answer begins no further round in that case.
_QUICK_SECONDS = 0.5
#: Fraction of the time for an exact bound, for the factors of a product, and for the bound of one answer.
_KNOWN_FRACTION, _PRODUCT_FRACTION, _ANSWER_FRACTION = 0.15, 0.3, 0.3
#: Fraction of the time for a bound from bins of many values.
_BINS_FRACTION = 0.5
#: Number of values above which a product is compared; up to it, the search over all mechanisms finds better ones.
_LARGEST_WITHOUT_PRODUCT = 64
#: Number of values above which the default search takes more than a second, and ratio of error to lower bound at which
#: it is skipped there because it would gain little.
_SMALL_DOMAIN, _NEARLY_OPTIMAL = 10, 1.01


def plan(
    policy: Policy,
    n: int | None = None,
    *,
    target: float | None = None,
    mechanism: str | None = None,
    utility: str | Goal = "estimation",
    question: Question | str | None = None,
    prior: Frequencies | None = None,
    truth: str | Frequencies | None = None,
    method: str = "unbiased",
    central: EpsilonLike | None = None,
    delta: Any = None,
    max_bits: MaxBits = SHORT,
    max_seconds: float | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: ProgressCallback | None = None,
) -> Plan:
    """Compare mechanisms that obey a policy by their expected error, before any data is collected.

    The comparison covers:

    - mechanisms made for this kind of policy, such as block mechanisms for :class:`Blocks`;
    - mechanisms made for :class:`HighLow` and :class:`Blocks` policies that imply the policy, for a matrix of epsilons;
    - a table of distances to sets of values, if all pairs of 65 to 1024 values have a limit;
    - classical mechanisms, which satisfy ε-LDP with one ε for all pairs of values. The ε is the greatest one that
      implies the policy;
    - the result of a search over all mechanisms (see :func:`optimal`), if none of the others is known to be optimal.
      The search adds the row ``"optimal"`` and a lower bound on the error of every mechanism.

    Parameters
    ----------
    policy
        The policy that every mechanism must obey.
    n
        Number of people who send one report each. Pass either ``n`` or ``target``.
    target
        Expected total variation error to reach, above 0 and below 1: half the sum of the absolute errors of all
        frequencies. With a question, it is the standard error of the answer to reach, or the root mean square of the
        standard errors of several answers. The plan is then for the number of people at which the best mechanism meets
        this target.
    mechanism
        Short name of the only mechanism to include, such as ``"rr"`` (randomized response), ``"subset"`` or
        ``"hadamard"``, or its name in the literature, such as ``"oue"``. ``"optimal"`` searches for the optimal
        mechanism under any policy. By default, all are compared.
    utility
        Quantity by which mechanisms are compared:

        - ``"estimation"``: expected squared error of all frequencies together, if values follow the prior;
        - ``"worst-estimation"``: the same error at the distribution of values where it is greatest;
        - ``"mutual-information"``: mutual information between a value and its report, in nats;
        - ``"mmse"``: mean squared error of the label of one person, estimated from the report; labels must be numbers;
        - a :class:`SquaredError`: the same for a numeric score of your choice;
        - an :class:`ExpectedLoss`: loss of a decision that is taken from one report.
    question
        What is to be learned, for the utilities ``"estimation"`` and ``"worst-estimation"``: a :class:`Question` such
        as :class:`Mean`, or its name. Mechanisms are then compared by the expected squared error of the answers, added
        up. By default, all frequencies.
    prior
        Distribution of values at which errors are predicted: a sequence in domain order, or a mapping or pandas Series
        with the values as labels. The default is the uniform distribution, which is the worst case for most of these
        mechanisms. Under a :class:`Prior` policy, a comparison by another utility than estimation, or with
        ``mechanism="optimal"``, uses the prior of the policy instead. Leave it out for ``"worst-estimation"``.
    truth
        True distribution at which the errors of ``method`` are predicted by simulation, in one of these forms:

        - ``"uniform"``, ``"zipf"`` (the i-th value has weight 1/i) or ``"geometric"`` (weight 0.95^i);
        - a sequence in domain order;
        - a mapping, where missing values have frequency 0, or a pandas Series with the values as labels.

        By default the prior, or equally frequent values without one. The table states it.
    method
        Method of :func:`estimate` that you will use. If it is not ``"unbiased"``, or if ``truth`` is passed, the plan
        simulates the error of each mechanism. The order of the rows, ``Plan.best``, ``target`` and ``Plan.saving`` then
        refer to the simulated total variation error. Leave ``truth`` and ``method`` out with a question, whose answers
        are estimated without bias.
    central
        Central level ε that n shuffled reports must not exceed at ``delta`` (see :func:`amplify`). Each mechanism is
        then compared at the greatest local level that meets this target and does not exceed the policy. The search over
        all mechanisms is not compared.
    delta
        Probability δ of the central statement. The rows then state their central levels, ``Row.central``.
    max_bits
        Length of a recommended report in bits:

        - ``"short"``, the default: at most ⌈log2 k⌉ + 8 bits for k values, the best mechanism among these. If its value
          is not within 5% of the best one, the best mechanism of any length is recommended instead;
        - an integer: at most this number of bits;
        - None: no limit.

        The plan may also list mechanisms with longer reports.
    max_seconds
        Time limit of the call in seconds; 0 disables the search and skips mechanisms that take more than 2 s to build.
        The call takes at most 20% plus 2 s longer, even while two other programs keep the cores busy. By default, a
        search for estimation takes at most 20 s for up to 256 values, ends when it makes little progress, and is
        skipped for more values. A search for another utility takes at most 60 s. ``Plan.skipped`` names the mechanisms
        that did not fit in the time.
    cache
        Folder of earlier searches; no folder by default. A search that was done before, with at least as much time, is
        read from the folder, audited and not repeated. Other searches are stored there.
    progress
        Function that is called with a :class:`Progress` after every round of a search. ``Progress.value`` is the
        utility of the best mechanism so far, and ``Progress.bound`` the bound so far.

    Returns
    -------
    Plan
        The compared mechanisms with their expected errors, the smallest first. ``Plan.best`` is the recommended one,
        and ``Plan.reason`` explains the recommendation.

    Raises
    ------
    InvalidInput
        If neither or both of ``n`` and ``target`` are passed, or if a parameter is invalid.
    PolicyViolated
        If ``mechanism`` names a mechanism that another package registered, and the audit shows that it does not obey
        the policy. Without a name, such a mechanism is listed in ``Plan.skipped`` instead.
    NoAnswer
        If no number of people meets the target, or if ``mechanism="optimal"`` and the search does not fit in the time
        limit.

    Examples
    --------
    >>> from sfumato import Domain, Uniform
    >>> compared = plan(Uniform(Domain(["yes", "no", "maybe"]), 1), n=1000)
    >>> compared.best.name, round(compared["subset"].tv, 3)
    ('rr', 0.049)
    >>> plan(Uniform(Domain(["yes", "no", "maybe"]), 1), target=0.01).n
    24001

    The same for 100 values with the method and the distribution of values that you expect:

    >>> zipf = plan(Uniform(Domain.range(100), 1), n=10_000, truth="zipf", method="simplex", max_seconds=0)
    >>> round(zipf.best.tv, 1), zipf.best.predicted.tv_error < 0.01
    (0.4, True)
    """
    if (n is None) == (target is None):
        hint = "Pass either a number of people (n) or an error to reach (target)."
        got = Description("neither" if n is None else "both")
        raise InvalidInput("plan", "exactly one of n and target", "be passed", got, hint=hint)
    n = None if n is None else checked_count("plan", n)
    request = Request.read(
        "plan",
        policy,
        utility,
        question,
        mechanism=mechanism,
        prior=prior,
        max_bits=max_bits,
        max_seconds=max_seconds,
        progress=progress,
        cache=cache,
    )
    target = None if target is None else checked_target("plan", target, request.question)
    assumed = _assumption(request, truth, method)
    target_level = None if central is None else CentralTarget("plan", central, delta, n)
    probability = None if delta is None else checked_delta("plan", delta)
    one = plan_request(request) if target_level is None else plan_for_target(request, target_level)
    if n is None:
        assert target is not None
        n = _people_for(target, one, assumed)
    is_error = isinstance(request.goal, Estimation)
    rows = [scale(row, n, is_error=is_error) for row in one.rows]
    if isinstance(structure_of(request.policy), Uniform):  # every mechanism that obeys it is classical
        rows = [replace(row, classical=True) for row in rows]
    scaled = replace(one, n=n, rows=tuple(rows))
    if target_level is None and probability is not None:
        scaled = with_central_levels(scaled, probability)
    if assumed is not None:
        scaled = _predicted(scaled, assumed)
    return replace(scaled, reason=reason_for(scaled)) if _is_compared_by_risk(request) else scaled


def _assumption(request: Request, truth: str | Frequencies | None, method: str) -> Assumption | None:
    """Return the truth and the method at which errors are simulated; None if the formulas suffice."""
    if truth is None and method == "unbiased":
        return None
    if request.question is not None:
        hint = "Pass prior= to predict the error of the answers at another distribution."
        parameter, got = ("truth", truth) if truth is not None else ("method", method)
        raise InvalidInput(request.verb, parameter, "be left out with a question", got, hint=hint)
    return Assumption.read(request.verb, truth, method, request.prior, request.policy.domain)


def _predicted(scaled: Plan, assumed: Assumption) -> Plan:
    """Return a plan with the simulated errors of a method, and the people that classical LDP needs by this method."""
    rows = tuple(replace(row, predicted=predict(row.mechanism, scaled.n, assumed)) for row in scaled.rows)
    truth = tuple(assumed.truth.tolist())
    predicted = replace(scaled, rows=rows, method=assumed.method, truth=truth, truth_words=assumed.words)
    result = ordered_by_method(predicted)
    try:
        best, classical = result.best, result.classical
    except NoMechanism:
        return result
    if best is classical:
        return replace(result, classical_people=result.n)
    if best.predicted is None or classical.predicted is None or not best.predicted.tv > 0:
        return result
    start = result.n * classical.risk / best.risk
    return replace(result, classical_people=people_for(best.predicted.tv, classical.mechanism, assumed, start))


#: Names of mechanisms in the literature; ``docs/how-to/names-of-the-literature.md`` states what they mean.
LITERATURE = {
    **dict.fromkeys(("grr", "krr", "warner", "crosswise"), "rr"),
    **dict.fromkeys(("sue", "rappor"), "unary"),
    "oue": "unary-optimized",
    "ss": "subset",
    "hr": "hadamard",
    "pgr": "cyclic",
    "olh": "local-hashing",
    "duchi": "one-bit",
    "mangat": "high-low-subset",
}


def plan_for_target(request: Request, target: CentralTarget) -> Plan:
    """Return the plan for one report of mechanisms that meet a central target, each at its own local level."""
    one = plan_request(replace(request, max_seconds=0.0) if request.mechanism is None else request)
    rows = target.rows(one, request, lambda named: _plan_of_one_mechanism(named, named.mechanism or "").rows[0])
    # A bound for the policy does not hold at the smaller levels of the rows.
    return replace(one, rows=tuple(replace(row, bound=None) for row in rows))


def plan_request(request: Request) -> Plan:
    """Return the plan for one report."""
    if request.mechanism is not None and request.mechanism != "optimal":
        return _plan_of_one_mechanism(request, request.mechanism)
    seconds = request.max_seconds
    if _is_compared_by_risk(request):
        deadline = Deadline(seconds or SEARCH_SECONDS)  # set before solvers are imported, which takes time too
        with one_thread():
            return _plan_by_risk(request, deadline)
    deadline = Deadline(DEFAULT_SECONDS if seconds is None else seconds)
    with one_thread():
        return plan_by_utility(request, deadline)


def _is_compared_by_risk(request: Request) -> bool:
    """Return whether candidates are compared by their risk at the prior, without a search requested by name."""
    return request.goal.name == "estimation" and request.mechanism is None


def _plan_of_one_mechanism(request: Request, name: str) -> Plan:
    """Return the plan of the mechanism that the caller names."""
    suitable = candidates(request.policy, request.length.max_bits, request.goal.name, question=request.question)
    deadline = Deadline(SEARCH_SECONDS if request.max_seconds is None else request.max_seconds)
    _offer_product(suitable, request, deadline)
    _offer_strategies(suitable, request, deadline)
    _offer_set_distances(suitable, request, NEVER)
    requested, name = name, LITERATURE.get(name.lower(), name)
    if name not in suitable.by_name:
        near = f" ({requested!r} is {name!r})"
        if name == requested:
            near = did_you_mean(requested, [*suitable.by_name, *LITERATURE])
        must = f"be one of optimal, {', '.join(suitable.by_name)} for this policy{near}"
        raise InvalidInput(request.verb, "mechanism", must, requested)
    candidate, prior = suitable.by_name[name], request.distribution(request.prior)
    row = replace(measure(name, candidate, prior, request.goal), stronger=suitable.stronger.get(name))
    if request.goal.name != "estimation":
        late = Deadline(GRACE if request.max_seconds is None else request.max_seconds + GRACE)
        row = replace(row, value=value_until(late, request.goal, row.mechanism, prior))
    return Plan(
        policy=request.policy,
        n=1,
        rows=(row,),
        reason=f"{name}: requested by name, not compared with other mechanisms",
        utility=request.goal.name,
        prior=None if request.prior is None else tuple(prior.tolist()),
        max_bits=request.length.max_bits,
        question=request.question,
    )


def _offer_product(suitable: Candidates, request: Request, deadline: Deadline) -> None:
    """Add a product of mechanisms, one per coordinate, if the epsilons of the policy are sums over coordinates."""
    if len(request.policy.domain.shape) < 2 or coordinate_policies(request.policy) is None:
        return
    limit = most_outputs(request.length.limit)

    def build() -> Mechanism:
        mechanism = product_mechanism(request.policy, deadline, max_outputs=limit)
        assert mechanism is not None
        return mechanism

    suitable.by_name["product"] = Candidate(build, "k^1.5")


def _offer_strategies(suitable: Candidates, request: Request, deadline: Deadline) -> None:
    """Add separate and sampled reports of the attributes, if the question is about marginal tables."""
    question = request.question
    if not isinstance(question, Marginals) or not request.with_strategies:
        return
    strategies = Strategies(request.policy, question, request.length.limit, deadline)
    for name, build in strategies.ways():
        suitable.by_name[name.replace(" ", "-")] = Candidate(functools.partial(_mechanism_of, build), "k per table")


def _mechanism_of(build: Callable[[], Way]) -> Mechanism:
    """Build a way to ask for several attributes, and return its mechanism."""
    return build().mechanism


def _offer_set_distances(suitable: Candidates, request: Request, deadline: Deadline) -> None:
    """Add a table of distances to sets of values for a policy over many values."""
    policy, goal = request.policy, request.goal
    if has_set_distances(policy):
        answers = goal.answers(request.distribution(None)) if isinstance(goal, Estimation) else None
        build = functools.partial(set_distances, policy, deadline, answers)
        seconds = seconds_of_set_distances(len(policy.domain))
        suitable.by_name["set-distances"] = Candidate(build, "k²", seconds=seconds)


def _people_for(target: float, one: Plan, assumed: Assumption | None) -> int:
    """Return the number of people that meets a target, from the plan for one report.

    The target is a total variation error, or the standard error of the answers to a question. With an assumption, the
    error is simulated.
    """
    tv = one.best.half_l1 if one.question is None else one.standard_error(one.best)
    if math.isinf(tv):
        raise NoMechanism(
            f"no number of people meets the target {target:g}: {nothing_learned(one.policy)}. Use a policy with larger "
            "epsilons."
        )
    root = tv / target
    if root > math.sqrt(MOST_PEOPLE):
        digits = 2 * (math.log10(tv) - math.log10(target))
        must = "be an error that at most 2^53 people can reach"
        hint = f"It would take about 10^{digits:.0f} people. Raise the target, or use a policy with larger epsilons."
        raise InvalidInput("plan", "target", must, target, hint=hint)
    people = max(1, math.ceil(root**2))
    if assumed is None:
        return people
    rows = tuple(replace(row, predicted=predict(row.mechanism, people, assumed)) for row in one.rows)
    truth = tuple(assumed.truth.tolist())
    best = ordered_by_method(replace(one, n=people, rows=rows, method=assumed.method, truth=truth)).best
    return people if best.predicted is None else people_for(target, best.mechanism, assumed, people) or people


def _plan_by_risk(request: Request, deadline: Deadline) -> Plan:
    """Compare all candidates by their risk at the prior, and the optimal design if it may be better."""
    policy, max_seconds = request.policy, request.max_seconds
    late = deadline.extended(GRACE)
    prior = request.distribution(request.prior)
    asks, goal = request.question is not None, request.goal
    no_prior = request.prior is None and not asks
    bound = exact_bound(policy, deadline=deadline.part(_KNOWN_FRACTION)) if no_prior else None
    rows: list[Row] = []
    suitable = candidates(
        policy, request.length.max_bits, deadline=late if max_seconds else NEVER, question=request.question
    )
    if len(policy.domain) > _LARGEST_WITHOUT_PRODUCT and max_seconds != 0:
        _offer_product(suitable, request, deadline.part(_PRODUCT_FRACTION))
    _offer_strategies(suitable, request, deadline.part(_PRODUCT_FRACTION))
    _offer_set_distances(suitable, request, late if max_seconds else NEVER)
    skipped = suitable.skipped
    for name, candidate in suitable.by_name.items():
        if not candidate.compared:
            continue
        if _is_too_slow(candidate, max_seconds, late):
            limit = "set max_seconds to allow it" if max_seconds is None else f"max_seconds is {max_seconds:g}"
            skipped.append(f"{name}, because building it takes about {candidate.seconds:.2g} s ({limit})")
            continue
        if max_seconds and rows and late.passed:
            skipped.append(f"{name}, because the time limit was reached (max_seconds is {max_seconds:g})")
            continue
        with suitable.comparing(name):
            rows.append(replace(measure(name, candidate, prior, goal, bound), stronger=suitable.stronger.get(name)))
    is_exact = bound is not None
    if rows and bound is None and no_prior:
        weaker = outer_bound(policy, late if max_seconds else NEVER, least=min(r.risk for r in rows) / USEFUL_RATIO)
        bound = None if weaker is None else weaker[0]
        rows = [replace(row, bound=bound) for row in rows]
    if rows and request.question is not None and len(request.question.names) == 1:
        weights = request.question.matrix(prior)[0]
        end = Deadline(_QUICK_SECONDS) if max_seconds == 0 else deadline.part(_ANSWER_FRACTION)
        bound = bound_of_one_answer(policy, weights, prior, deadline=end)
        rows = [replace(row, bound=bound) for row in rows]
    if needs_search(policy, request.length.limit, asks=asks):
        size = _distinguished(request, prior)
        if asks and bound is None and size > SEARCHED_VALUES and rows and max_seconds != 0:
            bound = _bound_of_bins(request, prior, deadline.part(_BINS_FRACTION))
            if bound is not None and min(row.value or 0.0 for row in rows) > USEFUL_RATIO * bound:
                bound = None
            rows = [replace(other, bound=bound) for other in rows]
        least_ratio = min((r.ratio for r in rows if r.ratio is not None), default=None)
        why_not = _why_no_search(size, max_seconds, least_ratio)
        optimum = None
        if why_not is None:
            optimum, why_not = _optimum(request, deadline, prior)
        if optimum is not None:
            is_better = not is_exact and optimum.bound > (bound or 0.0)
            if is_better and optimum.value <= USEFUL_RATIO * optimum.bound < math.inf:
                bound = optimum.bound
                rows = [replace(other, bound=bound) for other in rows]
            rows.append(measure_mechanism("optimal", optimum.mechanism, prior, goal, bound=bound))
        if why_not:
            skipped.append(f"the optimal mechanism, because {why_not}")
            if bound is None:
                skipped[-1] += ". Its error may be several times smaller, so it may need several times fewer people"
    # Risks that agree in nine digits count as equal, because a solver does not resolve more. Shorter reports win ties.
    rows.sort(key=lambda row: (float(f"{row.value:.9g}"), row.bits))
    compared = Plan(
        policy=policy,
        n=1,
        rows=tuple(rows),
        reason="",
        prior=None if request.prior is None else tuple(prior.tolist()),
        max_bits=request.length.max_bits,
        skipped="; ".join(skipped) or None,
        question=request.question,
    )
    return replace(compared, reason=reason_for(compared))


def _is_too_slow(candidate: Candidate, max_seconds: float | None, late: Deadline) -> bool:
    """Return whether building a candidate would exceed the time limit by more than the tolerance that ``plan`` states.

    Without a limit, and without a search (``max_seconds=0``), only the estimate of the candidate decides, so the rows
    of the plan do not depend on the machine.
    """
    if not max_seconds:
        return candidate.seconds > (SEARCH_SECONDS if max_seconds is None else _BUILD_SECONDS)
    return candidate.seconds > 0 and not late.fits(candidate.seconds)


def needs_search(policy: Policy, max_bits: int | None, *, asks: bool) -> bool:
    """Return whether the optimal design may beat the candidates and fits in the report length.

    For all frequencies, the best mechanism is known under some policies. For another question (``asks``) it is not.
    """
    simplest = structure_of(policy)
    outputs = most_outputs(max_bits)
    if reveals_nothing(policy):
        return False
    if asks:
        return True
    if isinstance(simplest, (Uniform, HighLow)) or (isinstance(simplest, Blocks) and simplest.across.is_infinite):
        return False
    if isinstance(simplest, PairwisePolicy) and len(policy.domain) == 2:
        return False
    return outputs is None or outputs >= len(policy.domain)


def _bound_of_bins(request: Request, prior: Floats, deadline: Deadline) -> float | None:
    """Return a lower bound on the error of the answers, from a search over bins of values; None if it is not known."""
    assert request.question is not None
    if request.question.axes is not None:
        return None  # values of a product have no order, and tables distinguish all of them
    coarse = coarse_slice_of_policy(request.policy, request.question.matrix(prior), prior)
    if coarse is None:
        return None
    try:
        return best_design(coarse, deadline)[0].bound
    except NoAnswer:
        return None


def _distinguished(request: Request, prior: Floats) -> int:
    """Return the number of values that a search distinguishes: those of the policy, or classes of the question."""
    question, size = request.question, len(request.policy.domain)
    if question is None or (question.axes is not None and size > SEARCHED_VALUES):
        return size
    classes = Classes.of(request.policy, question.matrix(prior))
    return len((request.policy if classes is None else classes.policy).domain)


def _why_no_search(size: int, max_seconds: float | None, ratio: float | None) -> str | None:
    """Return why no search over this many values runs: empty if it would gain little, None if it runs."""
    if ratio is not None and ratio <= OPTIMAL:
        return ""
    if max_seconds is not None:
        return None if max_seconds > 0 else "max_seconds is 0"
    if size > _SMALL_DOMAIN and ratio is not None and ratio <= _NEARLY_OPTIMAL:
        return ""
    if size > SEARCHED_VALUES:
        if size > LARGEST_SEARCHED:
            return f"{size} values are more than the search supports, {LARGEST_SEARCHED}"
        return f"{size} values are more than the default limit of {SEARCHED_VALUES} (set max_seconds to search anyway)"
    return None


def _optimum(request: Request, deadline: Deadline, prior: Floats) -> tuple[Optimum | None, str | None]:
    """Return the optimal design, or None and the reason why there is none."""
    outputs = most_outputs(request.length.limit)
    try:
        deadline.require()
        effort = _DEFAULT_EFFORT if request.max_seconds is None else EXHAUSTIVE
        policy, progress, cache = request.policy, request.progress, request.cache
        return optimal_until(deadline, policy, request.goal, prior, outputs, progress, effort, cache), None
    except OutOfTime:
        seconds = request.max_seconds or SEARCH_SECONDS
        return None, f"its search did not finish in {seconds:g} s (raise max_seconds to search longer)"
    except NoAnswer as error:
        return None, f"its search failed: {short_reason(error)}"
