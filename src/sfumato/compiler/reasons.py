"""The sentence that explains the recommendation of a plan."""

from __future__ import annotations

import math

from sfumato._core import ZERO, quantity
from sfumato.compiler.plans import Plan, Row
from sfumato.errors import NoMechanism
from sfumato.policy import PairwisePolicy, Policy, Prior

__all__ = ["nothing_learned", "reason_for", "reveals_nothing"]

#: Largest ratio of error to lower bound that counts as optimal; a solver does not resolve smaller differences.
_OPTIMAL = 1 + 1e-6
#: Smallest ratio that two decimals distinguish from 1; smaller ones are stated as a percentage.
_TWO_DECIMALS = 1.005
#: Report length in bits (one kilobyte) above which the reason also states the length in kilobytes.
_LONG_REPORT = 8192


def reason_for(plan: Plan) -> str:
    """Return the recommendation of a plan for the estimation of frequencies, in one sentence."""
    try:
        best = plan.best
    except NoMechanism as error:  # max_bits is too small for every mechanism
        return str(error)
    if math.isinf(best.risk):
        return f"{best.name}: {nothing_learned(plan.policy)}, so no number of people suffices"
    if best.half_l1 <= 1:
        total_variation = f"total variation error about {best.tv:.2g}"
    else:
        total_variation = f"total variation error 1, because {_people(plan.n)} too few to learn anything"
    parts = ", ".join([_rank(plan, best), total_variation, _length(plan, best)])
    skipped = "" if plan.skipped is None else f". Not compared: {plan.skipped}"
    return f"{best.name}: {parts}{_saving(plan)}{skipped}"


def reveals_nothing(policy: Policy) -> bool:
    """Return whether the policy forbids reports to distinguish any two values."""
    if isinstance(policy, Prior):
        return policy.epsilon == ZERO
    return isinstance(policy, PairwisePolicy) and policy.greatest_effective[0] == ZERO


def _rank(plan: Plan, best: Row) -> str:
    """Compare the best row with the lower bound if one is known, otherwise with the other rows."""
    if best.ratio is not None and best.ratio <= _OPTIMAL:
        return f"optimal, expected squared error {best.risk:.3g}"
    limit = "" if plan.max_bits is None else f" within {quantity(plan.max_bits, 'bit')}"
    distance = _distance_to_bound(best.ratio)
    return f"smallest expected squared error of the compared mechanisms{limit} ({best.risk:.3g}, {distance})"


def _distance_to_bound(ratio: float | None) -> str:
    """Return a ratio to the lower bound in words."""
    if ratio is None:
        return "no lower bound is known"
    if ratio < _TWO_DECIMALS:
        return f"at most {math.ceil((ratio - 1) * 1e4) / 100:.2g}% above the lower bound"
    return f"{ratio:,.2f}× the lower bound"


def nothing_learned(policy: Policy) -> str:
    """Return the reason why the error is infinite."""
    if reveals_nothing(policy):
        return "reports that obey this policy reveal nothing, because its epsilon is 0"
    return "reports cannot distinguish all values, because an epsilon of this policy is 0 or too close to 0"


def _people(n: int) -> str:
    return "1 person is" if n == 1 else f"{n:,} people are"


def _length(plan: Plan, best: Row) -> str:
    """Return the length of a report in words."""
    length = quantity(best.bits, "bit per report", "bits per report")
    if best.bits <= _LONG_REPORT:
        return length
    shorter = "; set max_bits for shorter reports" if plan.max_bits is None else ""
    return f"{length} (about {best.bits / 8000:,.0f} kB{shorter})"


def _saving(plan: Plan) -> str:
    """Return how many more people classical LDP needs, or an empty string if it needs no more."""
    try:
        saving = plan.saving
    except NoMechanism:
        return "; no classical mechanism has reports this short"
    if saving <= _OPTIMAL or math.isinf(saving):
        return ""
    people = math.ceil(plan.n * saving)
    return f"; for the same expected squared error, classical LDP needs {people:,} people instead of {plan.n:,}"
