"""Alias tables in integers: a row of weights becomes one uniform index and one Bernoulli decision.

``docs/words-to-decisions.md`` specifies the construction, bin by bin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers

__all__ = ["TOTAL", "TOTAL_BITS", "AliasTable"]

TOTAL_BITS = 62
#: Sum of every row of weights; the sum of two weights fits a signed 64-bit integer.
TOTAL = 2**TOTAL_BITS


@dataclass(frozen=True, eq=False)
class AliasTable:
    """Alias table: for each row and bin, the bin itself with probability threshold/capacity, otherwise its alias."""

    thresholds: Integers
    aliases: Integers
    bin_bits: int

    @property
    def bins(self) -> int:
        """Number of bins per row."""
        return 1 << self.bin_bits

    @property
    def capacity(self) -> int:
        """Weight of a full bin."""
        return 1 << TOTAL_BITS - self.bin_bits

    @classmethod
    def build(cls, weights: Integers) -> AliasTable:
        """Build the tables of all rows at once, one bin of every row per round."""
        rows, outputs = weights.shape
        bin_bits = (outputs - 1).bit_length()
        bins, capacity = 1 << bin_bits, TOTAL >> bin_bits
        left = np.zeros((rows, bins), dtype=np.int64)
        left[:, :outputs] = weights
        thresholds = np.full((rows, bins), capacity, dtype=np.int64)
        aliases = np.tile(np.arange(bins), (rows, 1))
        # Small and large bins of each row in ascending order, followed by an end mark.
        small, large = _ascending(left < capacity), _ascending(left > capacity)
        row = np.arange(rows)
        next_small, next_large = np.ones(rows, dtype=np.intp), np.ones(rows, dtype=np.intp)
        current, donor = small[:, 0].copy(), large[:, 0].copy()
        row = row[current < bins]
        while len(row):
            b, j = current[row], donor[row]
            thresholds[row, b] = left[row, b]
            aliases[row, b] = j
            left[row, j] -= capacity - left[row, b]
            spent, exact = left[row, j] < capacity, left[row, j] == capacity
            moves_on = row[spent | exact]
            donor[moves_on] = large[moves_on, next_large[moves_on]]
            next_large[moves_on] += 1
            current[row[spent]] = j[spent]
            takes_next = row[~spent]
            current[takes_next] = small[takes_next, next_small[takes_next]]
            next_small[takes_next] += 1
            row = row[current[row] < bins]
        return cls(thresholds, aliases, bin_bits)


def _ascending(member: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return for each row the positions of its members in ascending order, then the number of columns."""
    rows, columns = member.shape
    order = np.argsort(~member, axis=1, kind="stable")
    order[np.arange(columns) >= member.sum(axis=1)[:, None]] = columns
    return np.hstack([order, np.full((rows, 1), columns)])
