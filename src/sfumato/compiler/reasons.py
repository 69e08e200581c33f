"""The sentence that explains the recommendation of a plan."""

from __future__ import annotations

import math

import numpy as np

from sfumato._core import ZERO, quantity
from sfumato.compiler.plans import Plan, Row
from sfumato.compiler.predictions import Assumption, predict
from sfumato.compiler.report_length import ReportLength
from sfumato.errors import NoMechanism
from sfumato.policy import PairwisePolicy, Policy, Prior
from sfumato.questions import Mean

__all__ = ["OPTIMAL", "alternative", "nothing_learned", "reason_for", "reveals_nothing", "within_limit"]

#: Largest ratio of error to lower bound that counts as optimal; a solver does not resolve smaller differences.
OPTIMAL = 1 + 1e-6
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
    if math.isinf(plan.error(best)):
        return f"{best.name}: {nothing_learned(plan.policy)}, so no number of people suffices"
    expected = _total_variation(plan, best) if plan.question is None else _standard_error(plan, best)
    made_for = [] if best.stronger is None else [f"made for the stronger policy of {best.stronger}"]
    parts = ", ".join([_rank(plan, best), *made_for, expected, _length(plan, best)])
    skipped = "" if plan.skipped is None else f". Not compared: {plan.skipped}"
    return f"{best.name}: {parts}{_saving(plan)}{skipped}"


def _total_variation(plan: Plan, best: Row) -> str:
    """Return the total variation error in words, and that of the recommended method if the estimate is far off.

    Without a truth, methods that shrink would be predicted at equal frequencies, to which they shrink.
    """
    method = "" if best.predicted is None else f" with method {best.predicted.method}"
    stated = f"total variation error about {_rounded(best.tv)}{method}"
    if best.tv <= 1:
        return stated
    if plan.truth is None:
        return f"{stated} for the unbiased estimate, which is not a distribution"
    better = predict(best.mechanism, plan.n, Assumption(np.array(plan.truth), plan.truth_words or "", "best"))
    return stated if better is None else f"{stated}, and about {_rounded(better.tv)} with method best"


def _rounded(error: float) -> str:
    """Return an error with two digits, but numbers such as incomes without an exponent."""
    return f"{error:,.0f}" if 100 <= error < 1e9 else f"{error:.2g}"


def _standard_error(plan: Plan, best: Row) -> str:
    """Return the standard error of the answers in words."""
    assert plan.question is not None
    names = plan.question.names
    of = f"of the answer {names[0]!r}" if len(names) == 1 else f"of {len(names)} answers (root mean square)"
    if isinstance(plan.question, Mean):
        of = "of the mean"
    return f"standard error {of} about {_rounded(plan.standard_error(best))}"


def reveals_nothing(policy: Policy) -> bool:
    """Return whether the policy forbids reports to distinguish any two values."""
    if isinstance(policy, Prior):
        return policy.epsilon == ZERO
    # If the least epsilon is positive, then so is the greatest effective one, which takes k³ steps to compute.
    if not isinstance(policy, PairwisePolicy) or policy.least[0] > ZERO:
        return False
    return policy.greatest_effective[0] == ZERO


def _rank(plan: Plan, best: Row) -> str:
    """Compare the best row with the lower bound if one is known, otherwise with the other rows."""
    if best.ratio is not None and best.ratio <= OPTIMAL:
        return f"optimal, expected squared error {plan.error(best):.3g}"
    distance = _distance_to_bound(best.ratio)
    limit = within_limit(plan, best)
    if plan.is_by_method and any(row.risk < best.risk for row in plan):
        return (
            f"smallest simulated error of the compared mechanisms{limit} (unbiased {plan.error(best):.3g}, {distance})"
        )
    return f"smallest expected squared error of the compared mechanisms{limit} ({plan.error(best):.3g}, {distance})"


def _distance_to_bound(ratio: float | None) -> str:
    """Return a ratio to the lower bound in words."""
    if ratio is None:
        return "no useful lower bound is known"
    if ratio < _TWO_DECIMALS:
        return f"at most {math.ceil((ratio - 1) * 1e4) / 100:.2g}% above the lower bound"
    return f"{ratio:,.2f}× the lower bound"


def nothing_learned(policy: Policy) -> str:
    """Return the reason why the error is infinite."""
    if reveals_nothing(policy):
        return "reports that obey this policy reveal nothing, because its epsilon is 0"
    return "reports cannot distinguish all values, because an epsilon of this policy is 0 or too close to 0"


def _length(plan: Plan, best: Row) -> str:
    """Return the length of a report in words, and what a longer or shorter one would cost."""
    length = _bits_per_report(best)
    if best.bits > _LONG_REPORT:
        shorter = "; set max_bits for shorter reports" if plan.max_bits is None else ""
        length = f"{length} (about {best.bits / 8000:,.0f} kB{shorter})"
    other = alternative(plan, best)
    if other is None or abs(plan.error(other) / plan.error(best) - 1) <= OPTIMAL - 1:
        return length
    difference = f"{other.name}: {_difference(plan.error(other) / plan.error(best))}, {_bits_per_report(other)}"
    if other.bits > best.bits:
        return f"{length}; {difference}"
    short = quantity(_report_length(plan).short or 0, "bit")
    return f"{length}; no mechanism within {short} is within 5% of this error ({difference})"


def within_limit(plan: Plan, best: Row) -> str:
    """Return the limit on the length of reports if it matters for the best row, after a space; else an empty string."""
    length = _report_length(plan)
    most = length.limit if best is plan.rows[0] else length.preferred
    return "" if most is None else f" within {quantity(most, 'bit')}"


def alternative(plan: Plan, best: Row) -> Row | None:
    """Return the row that another limit on the length of reports would recommend, or None.

    It is the best row if that one is too long to be recommended, and the best short one if a long one is recommended.
    """
    if best is not plan.rows[0]:
        return plan.rows[0]
    length = _report_length(plan)
    if length.short is None or best.bits <= length.short:
        return None
    shorter = length.first_fitting([row.bits for row in plan.rows])
    return None if shorter is None else plan.rows[shorter]


def _report_length(plan: Plan) -> ReportLength:
    return ReportLength(plan.max_bits, len(plan.policy.domain))


def _bits_per_report(row: Row) -> str:
    return quantity(row.bits, "bit per report", "bits per report")


def _difference(ratio: float) -> str:
    """Return an error relative to another one in words.

    >>> _difference(0.9969), _difference(1.273), _difference(0.25), _difference(35.21), _difference(math.inf)
    ('0.31% less error', '27% more error', '0.25× the error', '35.2× the error', 'infinite error')
    """
    if math.isinf(ratio):
        return "infinite error"
    if not 0.5 < ratio < 2:
        return f"{ratio:,.1f}× the error" if ratio > 1 else f"{ratio:.2g}× the error"
    percent = 100 * abs(ratio - 1)
    digits = f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"
    return f"{digits}% {'less' if ratio < 1 else 'more'} error"


def _saving(plan: Plan) -> str:
    """Return how many more people classical LDP needs, or an empty string if it needs no more."""
    try:
        saving = plan.saving
    except NoMechanism:
        return "; no classical mechanism has reports this short"
    if saving <= OPTIMAL or math.isinf(saving):
        return ""
    people = math.ceil(plan.n * saving)
    error = "expected squared error" if plan.classical_people is None else "total variation error by this method"
    return f"; for the same {error}, classical LDP needs {people:,} people instead of {plan.n:,}"
