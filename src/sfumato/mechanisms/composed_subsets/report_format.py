"""Report format of composed subsets: a set of values and a set of blocks in one bitmap."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers, quantity
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.reports.base import AGGREGATE_AGAIN, exact_sum
from sfumato.mechanisms.reports.bitmap import BitmapFormat

__all__ = ["ComposedFormat"]


class ComposedFormat(BitmapFormat):
    """Bitmaps in which both sets have a fixed number of members."""

    def __init__(self, mechanism: ComposedSubsets) -> None:
        self._size = len(mechanism.domain)
        super().__init__(self._size + mechanism.blocks)
        self._members = mechanism.values.size, mechanism.labels.size
        self._of_values = np.packbits(np.arange(self.bits) < self._size, bitorder="little")

    def _check_rows(self, array: npt.NDArray[np.uint8], subject: str, first_row: int) -> None:
        masks = (self._of_values, ~self._of_values)
        for members, among, noun in zip(self._members, masks, ("value bit", "block bit"), strict=True):
            weights = np.bitwise_count(array & among).sum(axis=1, dtype=np.int64)
            must = f"have exactly {quantity(members, noun)} set"
            self._refuse_rows(subject, first_row, array, weights != members, must)

    def check_counts(self, n: int, counts: Integers) -> None:
        values, blocks = np.split(counts, [self._size])
        expected = tuple(members * n for members in self._members)
        totals = exact_sum(values), exact_sum(blocks)
        if totals != expected:
            must = f"sum to {expected[0]} and {expected[1]} for {quantity(n, 'report')}"
            got = Description(f"sums of {totals[0]} and {totals[1]}")
            raise InvalidInput("an aggregate", "counts of values and of blocks", must, got, hint=AGGREGATE_AGAIN)
