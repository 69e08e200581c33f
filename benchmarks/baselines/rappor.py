"""Utility-optimized RAPPOR, for sensitive and harmless values (Murakami and Kawamoto 2019)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["UtilityOptimizedRappor"]

Floats = npt.NDArray[np.float64]


class UtilityOptimizedRappor:
    """One independent bit per value; the bit of a harmless value is set only if that value is the true one.

    With s = e^(ε/2), the bit of a true sensitive value is set with probability s/(s+1), that of a true harmless value
    with probability 1 - 1/s, and that of any other sensitive value with probability 1/(s+1).

    Parameters
    ----------
    sensitive
        Number of sensitive values, which come first.
    harmless
        Number of harmless values.
    epsilon
        The level ε, above 0.
    """

    def __init__(self, sensitive: int, harmless: int, epsilon: float) -> None:
        root = math.exp(epsilon / 2)
        is_sensitive = np.arange(sensitive + harmless) < sensitive
        self.size = len(is_sensitive)
        #: Probability that each bit is set if its value is not the true one, and if it is.
        self.other = np.where(is_sensitive, 1 / (root + 1), 0.0)
        self.own = np.where(is_sensitive, root / (root + 1), 1 - 1 / root)

    def risk(self, p: Floats | None = None) -> float:
        """Return n·E|p̂ - p|² of the unbiased estimate (fraction - other)/(own - other), by default at equal shares."""
        shares = np.full(self.size, 1 / self.size) if p is None else p
        rates = self.other + (self.own - self.other) * shares
        return float((rates * (1 - rates) / (self.own - self.other) ** 2).sum())

    def matrix(self) -> Floats:
        """Return the probability of each of the 2^k bitmaps for each value; for small sizes."""
        chance = np.where(np.eye(self.size, dtype=bool), self.own, self.other)
        bits = self._bitmaps()
        return np.asarray(np.where(bits, chance[:, None], 1 - chance[:, None]).prod(axis=2))

    def scores(self) -> Floats:
        """Return the estimate from each bitmap."""
        return np.asarray((self._bitmaps() - self.other) / (self.own - self.other))

    def _bitmaps(self) -> npt.NDArray[np.int64]:
        """Return all bitmaps, one per row."""
        return np.arange(1 << self.size)[:, None] >> np.arange(self.size) & 1
