"""Tables for policies that grow with a distance: the exponential mechanism and improvements of it.

All report a value, and a value near the true one is likelier. E is the effective level throughout: the shortest path,
which satisfies E(x, z) ≤ E(x, y) + E(y, z).
"""

from __future__ import annotations

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import EpsilonMatrix, PairwisePolicy

__all__ = ["best_exponential", "sharp", "tight"]

#: Maximum distance from one of a row's sum at which weights are accepted as a solution.
_ROW_TOLERANCE = 1e-12
#: Precision of logarithms of row sums; rounding to the policy corrects the remaining error.
_SUM_TOLERANCE = 1e-14
#: Number of entries above which ties in a table are not decided exactly, because that takes long and gains a millionth.
_LARGE_TABLE = 20_000
#: Number of bisection steps for the exponent, starting from an interval of length 1/2.
_HALVINGS = 40


def best_exponential(policy: PairwisePolicy) -> TableMechanism:
    """Return the sharp or the tight table, whichever has less risk at the uniform distribution.

    Tight tables are better at large levels. At small levels they nearly always report an outermost value, which suits
    estimates of a mean but not the frequency of an inner value.
    """
    matrix = min((table for table in (sharp(policy), tight(policy)) if table is not None), key=_risk)
    is_large = matrix.size > _LARGE_TABLE
    return TableMechanism.from_matrix(policy.domain, matrix, policy=policy, late=lambda: is_large)


def sharp(policy: PairwisePolicy) -> Floats:
    """Return the table Q(y|x) ∝ e^(-β·E(x,y)) with the largest β in [1/2, 1] that the row sums allow.

    β = 1/2 is the exponential mechanism (McSherry and Talwar 2007). By the triangle inequality e^(-E(x,y)/2) changes
    from x to x' by at most a factor e^(E(x,x')/2), and so does the sum of each row. Both directions of a pair share one
    row sum, so if their levels differ the smaller one is used for both. The row sums Z usually differ far less than
    that. The condition is ln Z_x' - ln Z_x ≤ (1-β)·E(x,x') for all pairs. If all Z are equal, as on a circle, β = 1.
    """
    matrix = _symmetric(policy)
    low, high = 0.5, 1.0
    if _fits(matrix, high):
        return _normalised(matrix, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _fits(matrix, middle) else (low, middle)
    return _normalised(matrix, low)


def _symmetric(policy: PairwisePolicy) -> Floats:
    """Return the levels as a symmetric matrix, with the smaller level of both directions."""
    matrix = policy.effective_epsilon_matrix()
    if not np.array_equal(matrix.codes, matrix.codes.T):
        matrix = EpsilonMatrix(np.minimum(matrix.codes, matrix.codes.T), matrix.unit, matrix.table).closed()
    return matrix.floats


def _normalised(matrix: Floats, fraction: float) -> Floats:
    """Return e^(-fraction·level), with rows that sum to one."""
    matrix = np.exp(-fraction * matrix)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def _fits(matrix: Floats, fraction: float) -> bool:
    """Return whether the row sums allow an exponent."""
    sums = np.log(np.exp(-fraction * matrix).sum(axis=1))
    allowed = (1 - fraction) * matrix if fraction < 1 else np.where(np.isinf(matrix), np.inf, 0.0)
    return bool((sums - sums[:, None] <= allowed + _SUM_TOLERANCE).all())


def tight(policy: PairwisePolicy) -> Floats | None:
    """Return Q(y|x) = c_y·e^-E(y,x) with weights c ≥ 0 that make every row sum to one, or None if there are none.

    The ratio of two values in column y is e^(E(y,x')-E(y,x)) ≤ e^E(x,x') for any c, with equality at x = y, so every
    level is used fully. On a line this is the truncated geometric mechanism (Ghosh, Roughgarden and Sundararajan 2009);
    for one level between all values it is randomized response.
    """
    matrix = policy.effective_epsilon_matrix()
    # Values at level zero from one another are treated as one value; several outputs for them would make c ambiguous.
    same = (matrix.codes == 0) & (matrix.codes.T == 0)
    stands_for = same.argmax(axis=1)
    chosen = np.unique(stands_for)
    apart = matrix.floats.T[np.ix_(chosen, chosen)]
    try:
        # At small levels K = e^-E is nearly all ones, so M = 1 - K is solved instead: Mu = 1 gives Kc = 1 for
        # c = u/(Σu - 1).
        direction = np.linalg.solve(-np.expm1(-apart), np.ones(len(chosen)))
    except np.linalg.LinAlgError:
        return None
    weights = direction / (direction.sum() - 1)
    columns = np.exp(-apart) * np.maximum(weights, 0.0)
    if not np.allclose(columns.sum(axis=1), 1, rtol=0, atol=_ROW_TOLERANCE):
        return None
    return np.asarray(columns[np.searchsorted(chosen, stands_for)][:, weights > 0])


def _risk(matrix: Floats) -> float:
    """Return n·E|p̂-p|² of the efficient estimate at the uniform distribution, in doubles: tr J⁻¹ - 1/k."""
    law = matrix.mean(axis=0)
    information = matrix / law @ matrix.T
    try:
        return float(np.trace(np.linalg.inv(information))) - 1 / len(matrix)
    except np.linalg.LinAlgError:
        return np.inf
