"""The verb ``plan``: every suitable mechanism for a policy, with the error to expect before anybody is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import MOST_PEOPLE, ZERO, ProgressCallback, checked_count, checked_kind, checked_seconds
from sfumato.compiler.bounds import least_risk
from sfumato.compiler.candidates import candidates
from sfumato.compiler.solvers.deadline import GRACE, Deadline, OutOfTime, one_thread
from sfumato.compiler.solvers.optimization import optimal_until
from sfumato.compiler.solvers.orbits import best_orbits
from sfumato.compiler.solvers.result import Optimum
from sfumato.domain import Frequencies, checked_distribution
from sfumato.errors import InvalidInput, NoAnswer, NoMechanism
from sfumato.mechanisms import Mechanism, most_outputs
from sfumato.policy import Blocks, HighLow, PairwisePolicy, Policy, Prior, Uniform, disclosure_warnings, structure_of

__all__ = [
    "SEARCHED_VALUES",
    "SEARCH_SECONDS",
    "Plan",
    "Row",
    "checked_bits",
    "expected_tv",
    "plan",
]

#: Maximum number of values for which the optimal mechanism is searched unless ``max_seconds`` says otherwise.
SEARCHED_VALUES = 64
#: Maximum duration of that search in seconds.
SEARCH_SECONDS = 10.0
#: No search is made by itself above this many values (it takes a second there) where some mechanism has at most this
#: many times the least error any can have.
_FEW_VALUES, _NEARLY_LEAST = 10, 1.01
#: A search whose bound is farther than this factor from its own mechanism bounds nothing that matters: no ratio to it
#: is given.
_USEFUL_BOUND = 2.0
#: The error counts as proved to be the least where it is within this of the bound: what a solver resolves.
_PROVED = 1 + 1e-6

#: Reports of more bits, a kilobyte, are called long.
_LONG_REPORT = 8192

#: E|N(0, 1)|.
_MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class Row:
    """One mechanism for the policy, and what to expect of it.

    ``name`` is what the plan calls it, ``bits`` the length of a report, ``decoding`` the work of an estimate.
    ``risk``: exact expected squared l2 error of the unbiased estimate. ``half_l1``: half its expected l1 error, in the
    normal approximation; it falls with √n. ``bound``: at most the least risk that any mechanism can have
    asymptotically; None where no such bound is known that is near what a mechanism has.
    ``worst``: the risk at the least favourable distribution. ``classical``: it keeps ε-LDP between all values, at the
    greatest ε that implies the policy.
    """

    name: str
    mechanism: Mechanism
    risk: float
    half_l1: float
    bits: int
    decoding: str
    bound: float | None
    worst: float
    classical: bool

    @property
    def tv(self) -> float:
        """The expected total variation error, at most 1.

        It is ``half_l1`` while that is below 1. An unbiased estimate may be farther from the truth than any
        distribution is; then there are too few people to learn anything, and 1 says so.
        """
        return min(self.half_l1, 1.0)

    @property
    def shown_tv(self) -> str:
        """The total variation error in print."""
        return f"{self.tv:.4g}" if self.half_l1 <= 1 else "> 1"

    @property
    def ratio(self) -> float | None:
        """How far from the bound: 1 is the best there can be. None where no finite one is known."""
        return None if not self.bound or math.isinf(self.bound) else self.risk / self.bound


@dataclass(frozen=True)
class Plan:
    """All suitable mechanisms, the best first; ``n`` is what was asked, or what a target needs.

    ``skipped`` says what was not compared, and why; None where nothing was left out.
    """

    policy: Policy
    n: int
    rows: tuple[Row, ...]
    max_bits: int | None = None
    skipped: str | None = None

    @property
    def best(self) -> Row:
        """The least risk within ``max_bits``; among equals the fewest bits."""
        return self._best_of(self.rows)

    @property
    def classical(self) -> Row:
        """The best of the mechanisms that keep classical LDP."""
        return self._best_of(tuple(row for row in self.rows if row.classical))

    @property
    def saving(self) -> float:
        """How many times as many people classical LDP needs for the expected squared error of the best.

        Both sides by the same method: the exact expected squared l2 error of the unbiased estimate, at the distribution
        of the plan. The errors of projected estimates, and total variation, are in other proportions.
        """
        if self.best.risk == 0 or math.isinf(self.best.risk):
            return 1.0 if self.classical.risk == self.best.risk else math.inf
        return self.classical.risk / self.best.risk

    @property
    def warnings(self) -> list[str]:
        """What a single reply may give away under the policy; empty where it protects every value."""
        return disclosure_warnings(self.policy)

    def _best_of(self, rows: tuple[Row, ...]) -> Row:
        fitting = [row for row in rows if self.max_bits is None or row.bits <= self.max_bits]
        if not fitting:
            least = min(row.bits for row in rows)
            raise NoMechanism(f"no mechanism here has reports of at most {self.max_bits} bits (the least is {least})")
        return min(fitting, key=lambda row: (row.risk, row.bits))

    def why(self) -> str:
        """The recommendation in a sentence."""
        best = self.best
        if math.isinf(best.risk):
            return f"{best.name}: {self._told_nothing()}, so no number of people suffices"
        if best.half_l1 <= 1:
            total_variation = f"total variation about {best.tv:.2g}"
        else:
            total_variation = "total variation 1, because so few people say nothing"
        return f"{best.name}: {self._rank()}, {total_variation}, {self._length()}{self._saved()}{self._left_out()}"

    def _rank(self) -> str:
        """How the best compares: with every mechanism where a bound says so, else with those that were compared."""
        best = self.best
        limit = "" if self.max_bits is None else f" within {self.max_bits} bits"
        if best.ratio is not None and best.ratio <= _PROVED:
            return f"the least expected squared error that any mechanism can have ({best.risk:.3g})"
        if best.ratio is None:
            known = "how far from the least possible is not known"
        elif best.ratio < 2:
            known = f"at most {math.ceil((best.ratio - 1) * 1e4) / 100:.3g}% above the least any mechanism can have"
        else:
            known = f"at most {best.ratio:.3g} times the least any mechanism can have"
        return f"the least expected squared error of those compared{limit} ({best.risk:.3g}, {known})"

    def _left_out(self) -> str:
        return "" if self.skipped is None else f". NOT COMPARED: {self.skipped}"

    def _told_nothing(self) -> str:
        """Why the error is infinite."""
        if _tells_nothing(self.policy):
            return "reports that obey this policy tell nothing, for its level is 0"
        return "its reports cannot tell all values apart, for a level of this policy is 0 or too near it"

    def _length(self) -> str:
        bits = self.best.bits
        if bits <= _LONG_REPORT:
            return f"{bits} bits a report"
        shorter = "; max_bits asks for shorter ones" if self.max_bits is None else ""
        return f"{bits:,} bits a report (some {bits / 8000:,.0f} kB{shorter})"

    def _saved(self) -> str:
        try:
            saving = self.saving
        except NoMechanism:
            return "; no classical mechanism has so short reports"
        if saving <= _PROVED or math.isinf(saving):
            return ""
        return (
            f"; classical LDP would need {math.ceil(self.n * saving):,} people where this needs {self.n:,} "
            "for that squared error"
        )

    def __str__(self) -> str:
        lines = [f"{self.policy.kind} policy over {len(self.policy.domain)} values, n = {self.n}"]
        lines.append(f"{'':2}{'mechanism':18}{'l2 risk':>12}{'TV':>10}{'bits':>8}  decoding      of the bound")
        for row in self.rows:
            mark = "* " if row is self.best else "  "
            ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
            lines.append(
                f"{mark}{row.name:18}{row.risk:12.4g}{row.shown_tv:>10}{row.bits:8}  {row.decoding:13} {ratio}"
            )
        return "\n".join([*lines, self.why(), *(f"WARNING: {warning}" for warning in self.warnings)])


def plan(
    policy: Policy,
    n: int | None = None,
    *,
    target: float | None = None,
    p: Frequencies | None = None,
    max_bits: int | None = None,
    max_seconds: float | None = None,
    progress: ProgressCallback | None = None,
) -> Plan:
    """Compare every suitable mechanism at n reports, or find the n at which the best one meets a target.

    ``target`` is an expected total variation error. ``p`` is the distribution at which errors are predicted, uniform
    unless given (for most of these mechanisms the worst case): in domain order, or with labels (a mapping, a pandas
    Series), by which it is aligned. ``max_bits`` limits the recommendation. Where no
    structure of the policy says what is best, the optimal design is searched for and compared too, and bounds what any
    mechanism can do. ``max_seconds`` is the time for all of it, and 0 asks for no search: it takes at most a fifth
    and 2 s longer, also where two other programs keep the cores busy. ``Plan.skipped`` names what did not fit.
    Left out, domains of up to 64 values get 10 seconds, and larger ones no search, which ``Plan.skipped`` then says.
    ``progress`` is called with a :class:`Progress` (value and bound) after every round of a search.
    """
    if (n is None) == (target is None):
        raise InvalidInput("plan", "n and target", "be given one without the other", (n, target))
    checked_kind("plan", "the policy", policy, Policy)
    n = None if n is None else checked_count("plan", n)
    target = None if target is None else _checked_target(target)
    max_bits = checked_bits("plan", max_bits)
    max_seconds = checked_seconds("plan", max_seconds)
    if len(policy.domain) < 2:
        raise InvalidInput("plan", "the domain", "have at least two values", policy.domain)
    deadline = Deadline(max_seconds or SEARCH_SECONDS)  # before solvers are loaded, which takes time too
    with one_thread():
        one = _plan_of_one_report(deadline, policy, p, max_bits, max_seconds, progress)
    if n is None:
        assert target is not None
        n = _people_for(target, one)
    return replace(one, n=n, rows=tuple(_scaled(row, n) for row in one.rows))


def checked_bits(what: str, max_bits: int | None) -> int | None:
    """The most bits that a report may have, or no limit."""
    return None if max_bits is None else checked_count(what, max_bits, "max_bits", 2**32)


def _checked_target(target: Any) -> float:
    if not isinstance(target, Real) or not 0 < float(target) < 1:
        raise InvalidInput("plan", "target", "lie between 0 and 1", target)
    return float(target)


def _people_for(target: float, one: Plan) -> int:
    """How many meet a total variation error, from the plan of one report."""
    tv = one.best.half_l1
    if math.isinf(tv):
        raise NoMechanism(f"no number of people meets a target under this policy; {one.why()}")
    root = tv / target
    if root > math.sqrt(MOST_PEOPLE):
        digits = 2 * (math.log10(tv) - math.log10(target))
        raise InvalidInput("plan", "target", f"be met by at most 2^53 people, not some 10^{digits:.0f}", target)
    return max(1, math.ceil(root**2))


def _tells_nothing(policy: Policy) -> bool:
    """Whether no two values may be told apart at all."""
    if isinstance(policy, Prior):
        return policy.epsilon == ZERO
    return isinstance(policy, PairwisePolicy) and policy.greatest_effective[0] == ZERO


def _plan_of_one_report(
    deadline: Deadline,
    policy: Policy,
    p: Any,
    max_bits: int | None,
    max_seconds: float | None,
    progress: ProgressCallback | None,
) -> Plan:
    late = deadline.extended(GRACE)
    distribution = checked_distribution(p, policy.domain, "plan")
    bound = _least_risk(policy) if p is None else None
    rows: list[Row] = []
    skipped: list[str] = []

    def row(name: str, mechanism: Mechanism, decoding: str, classical: bool = False) -> Row:
        risk = mechanism.risk(1, distribution)
        half_l1 = expected_tv(mechanism, distribution) if math.isfinite(risk) else math.inf
        return Row(name, mechanism, risk, half_l1, mechanism.bits, decoding, bound, mechanism.worst_risk(1), classical)

    for name, candidate in candidates(policy, max_bits).items():
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
        try:
            rows.append(row(name, candidate.build(), candidate.decoding, candidate.classical))
        except NoAnswer:  # no such mechanism has reports of so few bits
            continue
    if _needs_search(policy, max_bits):
        why_not = _why_no_search(policy, max_seconds, min((r.ratio for r in rows if r.ratio is not None), default=None))
        optimum = None
        if why_not is None:
            optimum, why_not = _optimum(deadline, policy, distribution, max_bits, max_seconds, progress)
        if optimum is not None:
            if bound is None and optimum.value <= _USEFUL_BOUND * optimum.bound < math.inf:
                bound = optimum.bound
                rows = [replace(other, bound=bound) for other in rows]
            rows.append(row("optimal", optimum.mechanism, "k²"))
        if why_not:
            skipped.append(
                f"the optimal mechanism, because {why_not}. It may have several times less error, so that several "
                "times fewer people would do"
            )
    rows.sort(key=lambda row: (row.risk, row.bits))
    return Plan(policy, 1, tuple(rows), max_bits, "; ".join(skipped) or None)


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
    if _tells_nothing(policy):
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
    if size > _FEW_VALUES and ratio is not None and ratio <= _NEARLY_LEAST:
        return ""
    if size > SEARCHED_VALUES:
        return (
            f"{size} values are more than the {SEARCHED_VALUES} that are searched by default (max_seconds asks for it)"
        )
    return None


def _optimum(
    deadline: Deadline,
    policy: Policy,
    p: npt.NDArray[np.float64],
    max_bits: int | None,
    max_seconds: float | None,
    progress: ProgressCallback | None,
) -> tuple[Optimum | None, str | None]:
    """The optimal design, or why there is none."""
    try:
        deadline.require()
        return optimal_until(deadline, policy, "estimation", p, most_outputs(max_bits), progress), None
    except OutOfTime:
        return None, f"its search did not fit in {max_seconds or SEARCH_SECONDS:g} s (max_seconds gives it more)"
    except NoAnswer as error:
        return None, f"its search failed: {error}"


def expected_tv(mechanism: Mechanism, p: npt.NDArray[np.float64]) -> float:
    """Half the expected l1 error of the unbiased estimate from one report, in the normal approximation.

    It is the total variation error where the estimate is a distribution; from few people it may exceed 1.
    """
    deviations = np.sqrt(np.maximum(mechanism.estimator.variances(p), 0))
    return float(deviations.sum()) * _MEAN_ABSOLUTE_NORMAL / 2


def _scaled(row: Row, n: int) -> Row:
    bound = None if row.bound is None else row.bound / n
    return replace(row, risk=row.risk / n, half_l1=row.half_l1 / math.sqrt(n), bound=bound, worst=row.worst / n)
