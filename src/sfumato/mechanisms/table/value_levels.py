"""Tables for policies that protect some values more than others: T_x ≤ e^(e_x)·T_x' for all x'.

The level e_x is the least epsilon from x to another value, so these rules imply a policy on pairs. It is infinite for a
value that may be revealed. One finite level for all values is classical LDP, and one for some values is HighLow.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.split_mix import ranks, split_mix_keys
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import INFINITE_CODE, PairwisePolicy

__all__ = ["LARGEST_LEVELLED", "gain_of_levels", "levels_table"]

#: Maximum number of values. The table has four to eight outputs per value, and its spec a number per entry.
LARGEST_LEVELLED = 256
#: Maximum number of outputs per value, and of entries. With m outputs per value, the error is about 1/(1 - 1/m) times
#: that of all sets.
_OUTPUTS_PER_VALUE, _MOST_ENTRIES = 8, 2**18
#: Number of shares of forced reports that are compared.
_SHARES = 64
#: Level up to which no table is offered, because squares of its shares underflow.
_LEAST_LEVEL = 1e-100


def levels_table(policy: PairwisePolicy) -> TableMechanism:
    """Return a table in which a value x has a set of outputs where it is likelier by a factor of up to e^(e_x).

    With probability γ the report is uniform over the set of the true value, and otherwise uniform over all outputs. Let
    the set of x have the fraction u of all outputs. In an output of this set, x is at most 1 + γ/((1-γ)·u) times as
    likely as another value. With K = γ/(1-γ), sets with u ≥ K/(e^(e_x)-1) therefore keep the level e_x.
    A value at an infinite level has a separate output instead, which reveals it with probability γ.

    This is subset selection (Ye and Barg 2018) with one size per level, in the way in which ``HighLowSubset`` adds
    unprotected values. The sets look random, so that two of them have few outputs in common.
    """
    levels = _levels(policy)
    is_finite = np.isfinite(levels)
    size, sensitive = len(levels), int(is_finite.sum())
    outputs = min(_OUTPUTS_PER_VALUE * size, _MOST_ENTRIES // size)
    share, _ = _best_share(levels)
    members = np.ceil(share * outputs / np.expm1(np.minimum(levels[is_finite], 700.0))).clip(1, outputs - 1)
    keys = split_mix_keys(0, sensitive * outputs).reshape(sensitive, outputs)
    matrix = np.zeros((size, outputs + size - sensitive))
    matrix[:, :outputs] = 1.0
    matrix[is_finite, :outputs] += (ranks(keys) < members[:, None]) * (share * outputs / members)[:, None]
    matrix[~is_finite, outputs:] = np.eye(size - sensitive) * share * outputs
    matrix /= matrix.sum(axis=1, keepdims=True)
    return TableMechanism.from_matrix(policy.domain, matrix, policy=policy, late=lambda: True)


def gain_of_levels(policy: PairwisePolicy) -> float:
    """Return the factor by which levels of single values reduce the error of the least level for all, before rounding.

    It is 1 if all protected values have the same level, and 0 if the table cannot be built.
    """
    levels = _levels(policy)
    least = float(levels.min())
    if not _LEAST_LEVEL < least < math.inf:
        return 0.0
    _, error = _best_share(levels)
    return _best_share(np.where(np.isfinite(levels), least, np.inf))[1] / error


def _levels(policy: PairwisePolicy) -> Floats:
    """Return the least epsilon from each value to any other one."""
    matrix = policy.epsilon_matrix()
    codes = matrix.codes.copy()
    np.fill_diagonal(codes, INFINITE_CODE)
    return np.array([float(matrix.epsilon(code)) for code in codes.min(axis=1).tolist()])


def _best_share(levels: Floats) -> tuple[float, float]:
    """Return K = γ/(1-γ) of least error, and that error: Σ u/((1-u)·γ²) over sets, and Σ 1/(k·γ) over other values.

    A value is in the set of its report with probability u, or γ + (1-γ)·u if it is the true value. The variance of the
    estimate of a small frequency is therefore u·(1-u)/(γ·(1-u))².
    """
    is_finite = np.isfinite(levels)
    odds = np.expm1(np.minimum(levels[is_finite], 700.0))
    shares = odds.min() * np.linspace(0, 1, _SHARES + 2)[1:-1]
    fractions = shares[:, None] / odds
    forced = shares / (1 + shares)
    errors = (fractions / (1 - fractions)).sum(axis=1) / forced**2 + (~is_finite).mean() / forced
    best = int(errors.argmin())
    return float(shares[best]), float(errors[best])
