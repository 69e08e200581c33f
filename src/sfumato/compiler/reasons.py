"""Why a plan recommends its best mechanism, in a sentence."""

from __future__ import annotations

import math

from sfumato._core import ZERO
from sfumato.compiler.plans import Plan, Row
from sfumato.errors import NoMechanism
from sfumato.policy import PairwisePolicy, Policy, Prior

__all__ = ["reason_for", "tells_nothing"]

#: The error counts as proved to be the least where it is within this of the bound: what a solver resolves.
_PROVED = 1 + 1e-6
#: Reports of more bits, a kilobyte, are called long.
_LONG_REPORT = 8192


def reason_for(plan: Plan) -> str:
    """Return the recommendation of a plan for the estimation of frequencies, in a sentence."""
    try:
        best = plan.best
    except NoMechanism as error:  # no report is short enough
        return str(error)
    if math.isinf(best.risk):
        return f"{best.name}: {_nothing_learned(plan.policy)}, so no number of people suffices"
    if best.half_l1 <= 1:
        total_variation = f"total variation about {best.tv:.2g}"
    else:
        total_variation = "total variation 1, because so few people say nothing"
    parts = ", ".join([_rank(plan, best), total_variation, _length(plan, best)])
    skipped = "" if plan.skipped is None else f". NOT COMPARED: {plan.skipped}"
    return f"{best.name}: {parts}{_saving(plan)}{skipped}"


def tells_nothing(policy: Policy) -> bool:
    """Return whether no two values may be told apart at all."""
    if isinstance(policy, Prior):
        return policy.epsilon == ZERO
    return isinstance(policy, PairwisePolicy) and policy.greatest_effective[0] == ZERO


def _rank(plan: Plan, best: Row) -> str:
    """Compare the best with every mechanism where a bound says so, else with those that were compared."""
    limit = "" if plan.max_bits is None else f" within {plan.max_bits} bits"
    if best.ratio is not None and best.ratio <= _PROVED:
        return f"the least expected squared error that any mechanism can have ({best.risk:.3g})"
    if best.ratio is None:
        known = "how far from the least possible is not known"
    elif best.ratio < 2:
        known = f"at most {math.ceil((best.ratio - 1) * 1e4) / 100:.3g}% above the least any mechanism can have"
    else:
        known = f"at most {best.ratio:.3g} times the least any mechanism can have"
    return f"the least expected squared error of those compared{limit} ({best.risk:.3g}, {known})"


def _nothing_learned(policy: Policy) -> str:
    """Say why the error is infinite."""
    if tells_nothing(policy):
        return "reports that obey this policy tell nothing, for its level is 0"
    return "its reports cannot tell all values apart, for a level of this policy is 0 or too near it"


def _length(plan: Plan, best: Row) -> str:
    if best.bits <= _LONG_REPORT:
        return f"{best.bits} bits a report"
    shorter = "; max_bits asks for shorter ones" if plan.max_bits is None else ""
    return f"{best.bits:,} bits a report (some {best.bits / 8000:,.0f} kB{shorter})"


def _saving(plan: Plan) -> str:
    try:
        saving = plan.saving
    except NoMechanism:
        return "; no classical mechanism has so short reports"
    if saving <= _PROVED or math.isinf(saving):
        return ""
    return (
        f"; classical LDP would need {math.ceil(plan.n * saving):,} people where this needs {plan.n:,} "
        "for that squared error"
    )
