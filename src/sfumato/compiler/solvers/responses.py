"""The instantaneous response of a memoized mechanism: a channel from permanent answers to reports, by linear programs.

Let P be the table of permanent answers, and R a response. One report has the law Q = P·R, whose columns must lie in the
cone of the policy: linear rules on the columns of R. The error is tr(J⁻¹), with J = Σ_y Q_y·Q_y'/(p·Q_y) summed over
the columns Q_y of Q, at a distribution p of the values.

With G = J⁻², each term h(Q_y) = Q_y'·G·Q_y/(p·Q_y) is convex and homogeneous, so its tangent at the present columns is
a lower bound that is tight there. A linear program maximizes the sum of the tangents over all responses. It finds a
response with more information in this sense, or shows that the present one is stationary. Its columns replace the
present ones, or are added to them with weights of least error, so the error never increases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from sfumato._core import Floats
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.policy import Policy

__all__ = ["best_response", "merged_columns"]

#: Maximum number of entries of a response; bounds the time of a linear program.
LARGEST_RESPONSE = 4000
#: Maximum number of linear programs from one start.
_STEPS = 25
#: Relative decrease of the error below which the search ends.
_LITTLE = 1e-5
#: Shares of the new columns that are tried; 1 means that they replace the present ones.
_SHARES = (1.0, 0.9, 0.7, 0.5, 0.3, 0.1, 0.03)
#: Distance between two columns of unit sum below which they are merged, and sum below which a column is dropped.
_EQUAL, _NOTHING = 1e-6, 1e-9
#: Number of halvings that find the first response.
_HALVINGS = 40


def best_response(
    permanent: Floats, policy: Policy, prior: Floats, targets: Iterable[Floats], deadline: Deadline
) -> Floats | None:
    """Return a response of small error for one report.

    Parameters
    ----------
    permanent
        The law of permanent answers, shape (values, answers).
    policy
        The policy of one report.
    prior
        The distribution of the values at which the error counts.
    targets
        Laws of one report without permanent answers, shape (values, outputs); the search also starts near each of
        them.
    deadline
        The time by which the search must end.

    Returns
    -------
    ndarray or None
        The response, shape (answers, outputs), with rows that sum to 1. It satisfies the policy up to the tolerance of
        the linear programs. None if the problem is too large, or no response distinguishes the values.
    """
    answers = permanent.shape[1]
    if answers**2 > LARGEST_RESPONSE:
        return None
    rules = _rules(policy) @ permanent
    first = _first(permanent, rules)
    starts = [first]
    for target in targets:
        if deadline.passed or answers * target.shape[1] > LARGEST_RESPONSE:
            continue
        aligned = _program(permanent, rules, _gradient(target, prior), deadline)
        if aligned is not None:
            starts.append(merged_columns(aligned))
    best, least = None, math.inf
    for start in starts:
        response, error = _improved(permanent, rules, prior, start, deadline)
        if error < least:
            best, least = response, error
    return best


def _rules(policy: Policy) -> Floats:
    """Return rows r with r·T ≤ 0 for every likelihood vector T that the policy allows."""
    rows = []
    for rule in policy.inequalities():
        row = np.zeros(len(policy.domain))
        for x, coefficient in rule.left.items():
            row[x] += float(coefficient) * float((-rule.epsilon).exp())
        for x, coefficient in rule.right.items():
            row[x] -= float(coefficient)
        rows.append(row)
    return np.array(rows).reshape(len(rows), len(policy.domain))


def _first(permanent: Floats, rules: Floats) -> Floats:
    """Return the response that keeps the permanent answer most often, and replaces it by a typical one otherwise."""
    answers = permanent.shape[1]
    blank = np.tile(permanent.mean(axis=0), (answers, 1))
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if (rules @ (middle * np.eye(answers) + (1 - middle) * blank) <= 0).all():
            low = middle
        else:
            high = middle
    return np.asarray(low * np.eye(answers) + (1 - low) * blank)


def _information(law: Floats, prior: Floats) -> Floats:
    """Return J: the information of one report about the values."""
    sums = prior @ law
    seen = law[:, sums > 0]
    return np.asarray(seen / sums[sums > 0] @ seen.T)


def _error(law: Floats, prior: Floats) -> float:
    """Return tr(J⁻¹), or infinity if reports do not distinguish all values."""
    information = _information(law, prior)
    if np.linalg.cond(information) > 1e12:
        return math.inf
    return float(np.trace(np.linalg.inv(information)))


def _gradient(law: Floats, prior: Floats) -> Floats:
    """Return the gradient of h at every column of a law, shape (values, outputs)."""
    inverse = np.linalg.pinv(_information(law, prior))
    sums = np.maximum(prior @ law, 1e-300)
    images = inverse @ inverse @ law
    return np.asarray(2 * images / sums - prior[:, None] * ((law * images).sum(axis=0) / sums**2))


def _program(permanent: Floats, rules: Floats, gradient: Floats, deadline: Deadline) -> Floats | None:
    """Return the response that maximizes a linear function of the law of one report; None if it was not solved."""
    from scipy import sparse
    from scipy.optimize import linprog

    answers, outputs = permanent.shape[1], gradient.shape[1]
    result = linprog(
        -(permanent.T @ gradient).T.ravel(),
        A_ub=sparse.block_diag([rules] * outputs, format="csc") if len(rules) else None,
        b_ub=np.zeros(len(rules) * outputs) if len(rules) else None,
        A_eq=sparse.hstack([sparse.eye_array(answers)] * outputs, format="csc"),
        b_eq=np.ones(answers),
        method="highs",
        options={"time_limit": max(deadline.left, 0.01)} if math.isfinite(deadline.left) else None,
    )
    if result.status != 0:
        return None
    response = np.maximum(result.x.reshape(outputs, answers).T, 0.0)
    return np.asarray(response / response.sum(axis=1, keepdims=True))


def _improved(
    permanent: Floats, rules: Floats, prior: Floats, response: Floats, deadline: Deadline
) -> tuple[Floats, float]:
    """Return a response of no larger error than the given one, and its error."""
    error = _error(permanent @ response, prior)
    for _ in range(_STEPS):
        if deadline.passed or response.size > LARGEST_RESPONSE or not math.isfinite(error):
            break
        following = _program(permanent, rules, _gradient(permanent @ response, prior), deadline)
        if following is None:
            break
        options = (_blended(response, following, share) for share in _SHARES)
        best = min(options, key=lambda option: _error(permanent @ option, prior))
        least = _error(permanent @ best, prior)
        if least >= error * (1 - _LITTLE):
            break
        response, error = merged_columns(best), least
    return response, error


def _blended(response: Floats, following: Floats, share: float) -> Floats:
    """Return a response that uses another one in a share of all reports, and says which one it used."""
    return following if share == 1 else np.hstack([(1 - share) * response, share * following])


def merged_columns(response: Floats) -> Floats:
    """Return a response without columns that are proportional to another one; they tell the same."""
    columns: list[Floats] = []
    for column in response.T:
        if column.sum() <= _NOTHING:
            continue
        place = _place_of(column, columns)
        if place is None:
            columns.append(column)
        else:
            columns[place] = columns[place] + column
    merged = np.array(columns).T
    return np.asarray(merged / merged.sum(axis=1, keepdims=True))


def _place_of(column: Floats, columns: Sequence[Floats]) -> int | None:
    """Return the place of a proportional column, or None."""
    unit = column / column.sum()
    for place, other in enumerate(columns):
        if np.abs(unit - other / other.sum()).max() < _EQUAL:
            return place
    return None
