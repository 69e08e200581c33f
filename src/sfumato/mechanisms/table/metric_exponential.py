"""Tables for policies that grow with a distance: the exponential mechanism, and better ones.

All answer with a value, and a value near the true one is likelier. E is the effective level throughout: the
shortest path, which obeys E(x, z) ≤ E(x, y) + E(y, z).
"""

from __future__ import annotations

import numpy as np

from sfumato._core import Floats
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import LARGEST_MATRIX
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import EpsilonMatrix, PairwisePolicy

__all__ = ["best_exponential", "exponential", "sharp_exponential", "tight_exponential"]


#: Weights are taken for a solution if every row of the matrix then misses one by no more than this.
_ROW_TOLERANCE = 1e-12
#: Logarithms of sums of rows are good to about this; what they miss, the rounding to the policy mends.
_SUM_TOLERANCE = 1e-14
#: The exponent is found to within this many halvings of ½.
_HALVINGS = 40


def exponential(policy: PairwisePolicy) -> TableMechanism:
    """Q(y|x) ∝ e^(-E(x,y)/2), the sum taken over all values y (McSherry and Talwar 2007).

    By the triangle inequality e^(-E(x,y)/2) changes from x to x' by at most a factor e^(E(x,x')/2), and so does the sum
    of each row: together e^E(x,x'). Both directions of a pair share one row sum, so where they differ the smaller
    level is kept for both.
    """
    return _table(policy, _normalised(_symmetric(policy), 0.5))


def sharp_exponential(policy: PairwisePolicy) -> TableMechanism:
    """Q(y|x) ∝ e^(-β·E(x,y)) with a β in [½, 1] as large as these sums allow.

    The sums Z of the rows mostly differ far less than the proof for β = ½ allows. What is needed is
    ln Z_x' - ln Z_x ≤ (1-β)·E(x,x') for all pairs; where all Z are equal, as on a circle, β = 1.
    """
    matrix = _symmetric(policy)
    low, high = 0.5, 1.0
    if _fits(matrix, high):
        return _table(policy, _normalised(matrix, high))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _fits(matrix, middle) else (low, middle)
    return _table(policy, _normalised(matrix, low))


def _symmetric(policy: PairwisePolicy) -> Floats:
    matrix = _epsilon_matrix(policy)
    if not np.array_equal(matrix.codes, matrix.codes.T):
        matrix = EpsilonMatrix(np.minimum(matrix.codes, matrix.codes.T), matrix.unit, matrix.table).closed()
    return matrix.floats


def _normalised(matrix: Floats, fraction: float) -> Floats:
    matrix = np.exp(-fraction * matrix)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def _fits(matrix: Floats, fraction: float) -> bool:
    sums = np.log(np.exp(-fraction * matrix).sum(axis=1))
    allowed = (1 - fraction) * matrix if fraction < 1 else np.where(np.isinf(matrix), np.inf, 0.0)
    return bool((sums - sums[:, None] <= allowed + _SUM_TOLERANCE).all())


def tight_exponential(policy: PairwisePolicy) -> TableMechanism:
    """Q(y|x) = c_y·e^-E(y,x) with weights c ≥ 0 that make every row sum to one; else ``sharp_exponential``.

    The ratio of two values in column y is e^(E(y,x')-E(y,x)) ≤ e^E(x,x'), whatever c, and equal to it at x = y: no
    level is left unused. On a line this is the truncated geometric mechanism (Ghosh, Roughgarden and Sundararajan
    2009), for one level between all values it is randomized response.
    """
    matrix = _epsilon_matrix(policy)
    # Values at level zero from one another are one value: more than one output for them would make c ambiguous.
    same = (matrix.codes == 0) & (matrix.codes.T == 0)
    stands_for = same.argmax(axis=1)
    chosen = np.unique(stands_for)
    apart = matrix.floats.T[np.ix_(chosen, chosen)]
    try:
        # K = e^-E is nearly all ones at small levels, M = 1 - K is not: Mu = 1 gives Kc = 1 for c = u/(Σu - 1).
        direction = np.linalg.solve(-np.expm1(-apart), np.ones(len(chosen)))
    except np.linalg.LinAlgError:
        return sharp_exponential(policy)
    weights = direction / (direction.sum() - 1)
    matrix = np.exp(-apart) * np.maximum(weights, 0.0)
    if not np.allclose(matrix.sum(axis=1), 1, rtol=0, atol=_ROW_TOLERANCE):
        return sharp_exponential(policy)
    return _table(policy, matrix[np.searchsorted(chosen, stands_for)][:, weights > 0])


def best_exponential(policy: PairwisePolicy) -> TableMechanism:
    """The one of the sharp and the tight table that has the less risk at the uniform distribution.

    Tight tables are the better ones at large levels. At small ones they answer nearly always with an outermost value,
    which tells a mean well and the frequency of an inner value badly.
    """
    return min(sharp_exponential(policy), tight_exponential(policy), key=lambda mechanism: mechanism.risk(1))


def _epsilon_matrix(policy: PairwisePolicy) -> EpsilonMatrix:
    if not isinstance(policy, PairwisePolicy):
        raise InvalidInput("the exponential mechanism", "policy", "bind pairs of values", policy)
    if len(policy.domain) ** 2 > LARGEST_MATRIX:
        most = int(LARGEST_MATRIX**0.5)
        raise InvalidInput(
            "the exponential mechanism", "policy", f"be over at most {most} values", f"{len(policy.domain)} values"
        )
    return policy.effective_epsilon_matrix()


def _table(policy: PairwisePolicy, matrix: Floats) -> TableMechanism:
    return TableMechanism.from_matrix(policy.domain, matrix, policy=policy)
