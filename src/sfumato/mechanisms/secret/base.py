"""Building blocks of independent and conditional reporting: set responses of one attribute, and their budgets.

Source: Lopuhaä-Zwakenberg, Goseling, "The Privacy-Utility Tradeoff of Robust Local Differential Privacy" (RLDP),
Sections VI and VII.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.errors import InvalidInput
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.matrix import MatrixEstimator
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import ChiSquare, Policy, Secret

__all__ = [
    "checked_policy",
    "information",
    "memberships",
    "offered_sizes",
    "reporting_table",
    "risk_of",
    "set_response",
    "set_sizes",
    "utility_at",
    "zoom",
]


_UTILITIES = ("estimation", "mutual-information")
#: Maximum number of sets of one size; larger families of sets are not offered as outputs.
_MOST_SETS = 256
#: Relative amount by which designs stay below ε; rounding to integers needs far less.
_MARGIN = 1e-9
#: Maximum level of a design, so that e^ε is a finite double; a higher level is treated as this one.
_HIGHEST_EPSILON = 300.0


def reporting_table(name: str, policy: Secret, budget: dict[str, Any], matrix: Floats) -> TableMechanism:
    """Return the table of a design, rounded to obey the policy; rows are ordered by (secret, other)."""
    rows = np.empty_like(matrix)
    rows[policy.cells.ravel()] = matrix
    rows = rows[:, rows.any(axis=0)]
    provenance = {"from": name, "secret": policy.secret, "budget": budget}
    return TableMechanism.from_matrix(policy.domain, rows, policy=policy, provenance=provenance)


def checked_policy(subject: str, policy: Policy, utility: str) -> tuple[Secret, ChiSquare, float]:
    """Return the policy, its confidence set, and the ε of a design, slightly below its ε; or raise InvalidInput."""
    if not isinstance(policy, Secret) or not isinstance(policy.distributions, ChiSquare):
        hint = "For any other set of distributions, use SecretRandomizedResponse."
        raise InvalidInput(subject, "policy", "be a Secret policy with ChiSquare distributions", policy, hint=hint)
    if utility not in _UTILITIES:
        raise InvalidInput(subject, "utility", f"be one of {', '.join(_UTILITIES)}", utility)
    return policy, policy.distributions, min(float(policy.epsilon), _HIGHEST_EPSILON) * (1 - _MARGIN)


# -- responses of one attribute --------------------------------------------------------------------------


def offered_sizes(values: int) -> list[int]:
    """Return the sizes of which there are few enough sets; sets larger than half of the values add no information."""
    return [size for size in range(1, max(values // 2, 1) + 1) if size == 1 or math.comb(values, size) <= _MOST_SETS]


@functools.cache
def memberships(values: int, size: int) -> npt.NDArray[np.bool_]:
    """Return all sets of ``size`` values, one per row."""
    sets = np.zeros((math.comb(values, size), values), dtype=bool)
    for row, chosen in enumerate(itertools.combinations(range(values), size)):
        sets[row, list(chosen)] = True
    sets.setflags(write=False)
    return sets


def set_response(values: int, size: int, gain: float) -> Floats:
    """Return the matrix of a set response: a set is 1 + gain times likelier for its members than for other values.

    Rows are values. Sets of one value are randomized response at ε = ln(1 + gain), larger sets are subset selection.
    With infinite gain only sets that contain the value are possible. With gain 0 there is a single output.
    """
    if gain == 0:
        return np.ones((values, 1))
    sets = memberships(values, size).T.astype(np.float64)
    matrix = sets if math.isinf(gain) else 1 + gain * sets
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def set_sizes(values: int, gain: float) -> list[int]:
    """Return the set sizes to compare: one, and those next to k/(e^ε + 1), where subset selection is best."""
    if values == 1 or math.isinf(gain):
        return [1]
    near = values / (gain + 2)
    return [size for size in offered_sizes(values) if size == 1 or abs(size - near) < 1]


# -- the utility of a design -----------------------------------------------------------------------------


def information(p: Floats, matrix: Floats) -> float:
    """Return the mutual information I(X;Y) in nats, for X drawn from p."""
    joint = p[:, None] * matrix
    law = joint.sum(axis=0)
    ratio = np.where(joint > 0, matrix / np.where(law > 0, law, 1), 1.0)
    return float(np.sum(joint * np.log(ratio)))


def risk_of(*factors: Floats) -> float:
    """Return n times the risk of the unbiased estimate from n reports, at the uniform distribution.

    Several factors stand for their Kronecker product, whose inverse and second moments are products of theirs.
    """
    moment, size = 1.0, 1
    for matrix in factors:
        try:
            moment *= float(np.mean(MatrixEstimator(matrix).second_moments()))
        except NotIdentifiable:
            return math.inf
        size *= len(matrix)
    return moment - 1 / size


def utility_at(confidence: ChiSquare, utility: str, matrix: Floats) -> float:
    """Return the utility of a matrix whose rows are ordered by (secret, other), at the observed frequencies."""
    return -risk_of(matrix) if utility == "estimation" else information(confidence.frequencies.ravel(), matrix)


def zoom(utility_of: Callable[..., float], *ranges: tuple[float, float]) -> Sequence[float]:
    """Return the point of a box at which ``utility_of`` is greatest: a grid, then finer grids around the best point.

    The ends of every range are evaluated exactly, because a budget that goes to one attribute alone is often the best.
    """
    points, finer, rounds = (33, 9, 7) if len(ranges) == 1 else (9, 5, 6)
    low, high = [a for a, _ in ranges], [b for _, b in ranges]
    best, best_point = -math.inf, tuple(low)
    for _ in range(rounds):
        axes = [np.linspace(a, b, points).tolist() for a, b in zip(low, high, strict=True)]
        for at in itertools.product(*axes):
            value = utility_of(*at)
            if value > best:
                best, best_point = value, at
        widths = [(b - a) / (points - 1) for a, b in zip(low, high, strict=True)]
        low = [max(at - width, a) for at, width, (a, _) in zip(best_point, widths, ranges, strict=True)]
        high = [min(at + width, b) for at, width, (_, b) in zip(best_point, widths, ranges, strict=True)]
        points = finer
    return best_point
