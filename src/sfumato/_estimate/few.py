"""Limits of a share of which few reports tell, by the exact law of their count."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["FEW", "limits_of_few"]

Floats = npt.NDArray[np.float64]

#: From so many reports on a normal interval of 95% holds the truth as often as it says, to within one per cent.
FEW = 100
#: Of a law with a mean below FEW, no outcome beyond these has a probability that can be told from none.
_MOST = 3 * FEW
#: A limit is found to within 2^-60 of where it may lie.
_HALVINGS = 60


def limits_of_few(counts: Floats, n: int, alpha: float) -> tuple[Floats, Floats]:
    """Limits of the probability of success after ``counts`` of n trials succeeded, each count below FEW.

    Where so many, and where so few, have probability α/2, the count itself counted half (mid-P). For no success the
    upper limit is that of Clopper and Pearson at α: (1 - share)^n = α. A count between two integers, from reports that
    count unequally, has the lower limit of the lesser and the upper limit of the greater.
    """
    near = 1e-6  # what rounding may take from an integer
    below = np.maximum(np.floor(counts + near), 0).astype(np.int64)
    above = np.minimum(np.ceil(counts - near), n).astype(np.int64)
    # Many values have one count: the limits of each count are found once, and looked up.
    lesser, greater = np.flatnonzero(np.bincount(below)), np.flatnonzero(np.bincount(above))
    outcomes = np.arange(min(n, _MOST) + 1)
    ways = np.concatenate([[0.0], np.cumsum(np.log((n - outcomes[:-1]) / outcomes[1:]))])

    def chance(share: Floats, counted: Floats) -> Floats:
        """The probability of the outcomes that are counted, for each of the shares."""
        among = outcomes[: counted.shape[1]]
        # Neither end, whose logarithm is none.
        inside = np.clip(share, np.finfo(np.float64).tiny, 1 - 2.0**-53)[:, None]
        logs = ways[among] + among * np.log(inside) + (n - among) * np.log1p(-inside)
        return np.asarray((np.exp(logs) * counted).sum(axis=1))

    many = np.heaviside(outcomes - lesser[:, None], 0.5)
    few = np.heaviside(greater[:, None] - outcomes[: FEW + 1], 0.5)
    low = _last(lambda share: chance(share, many) <= alpha / 2, np.zeros(len(lesser)), lesser / n)
    high = _last(lambda share: chance(share, few) >= alpha / 2, greater / n, np.ones(len(greater)))
    return low[np.searchsorted(lesser, below)], high[np.searchsorted(greater, above)]


def _last(holds: Callable[[Floats], npt.NDArray[np.bool_]], low: Floats, high: Floats) -> Floats:
    """The last number between ``low`` and ``high`` at which a condition holds that holds up to some number."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        held = holds(middle)
        low, high = np.where(held, middle, low), np.where(held, high, middle)
    return low
