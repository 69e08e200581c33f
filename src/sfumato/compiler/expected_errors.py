"""The expected errors of one mechanism, for an estimate from one report."""

from __future__ import annotations

import math
from dataclasses import replace

from sfumato._core import Floats
from sfumato.compiler.plans import Row
from sfumato.compiler.solvers.goals import Estimation, Goal
from sfumato.mechanisms import Candidate, Mechanism

__all__ = ["expected_tv", "measure", "measure_mechanism", "scale"]

#: Expected absolute value of a standard normal variable.
_MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)


def expected_tv(mechanism: Mechanism, p: Floats) -> float:
    """Return half the expected l1 error of the unbiased estimate from one report, in the normal approximation.

    This is the expected total variation error if the estimate is a distribution. With few people it may exceed 1.
    """
    variances = mechanism.estimator.variances(p)
    return float((variances.clip(min=0) ** 0.5).sum()) * _MEAN_ABSOLUTE_NORMAL / 2


def measure(name: str, candidate: Candidate, prior: Floats, goal: Goal, bound: float | None = None) -> Row:
    """Build a candidate and return its row for one report."""
    row = measure_mechanism(name, candidate.build(), prior, goal, bound=bound)
    return replace(row, decoding=candidate.decoding, classical=candidate.classical)


def measure_mechanism(name: str, mechanism: Mechanism, prior: Floats, goal: Goal, *, bound: float | None) -> Row:
    """Return the row of a mechanism for one report.

    Its value is the error of the answers if the goal is the estimation of the answers to a question, else the risk.
    """
    risk = mechanism.risk(1, prior)
    asks = isinstance(goal, Estimation) and goal.question is not None
    half_l1 = expected_tv(mechanism, prior) if math.isfinite(risk) else math.inf
    return Row(
        name=name,
        mechanism=mechanism,
        value=goal.value_of(mechanism, prior) if asks else risk,
        risk=risk,
        half_l1=half_l1,
        worst=mechanism.worst_risk(1),
        bits=mechanism.bits,
        bound=bound,
        decoding="k²",
        classical=False,
    )


def scale(row: Row, n: int, *, is_error: bool) -> Row:
    """Return the row for n reports; value and bound are divided by n if they are errors (``is_error``)."""
    row = replace(row, risk=row.risk / n, half_l1=row.half_l1 / math.sqrt(n), worst=row.worst / n)
    if not is_error:
        return row
    return replace(
        row,
        value=None if row.value is None else row.value / n,
        bound=None if row.bound is None else row.bound / n,
    )
