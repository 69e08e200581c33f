"""Report format of nested subsets: a set of blocks, and in every block a set whose size depends on the block."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers, quantity
from sfumato.errors import InvalidInput
from sfumato.mechanisms.nested_subsets.mechanism import NestedSubsets
from sfumato.mechanisms.reports.base import AGGREGATE_AGAIN, ReportFormat, count_pieces
from sfumato.mechanisms.reports.bitmap import BitmapFormat

__all__ = ["NestedFormat"]


class NestedFormat(BitmapFormat):
    """Counts of reports with each value in a high block, with each value in a low block, and with each block high."""

    counts_in_bulk = False

    def __init__(self, mechanism: NestedSubsets) -> None:
        super().__init__(len(mechanism.domain) + mechanism.blocks)
        self._mechanism = mechanism

    def _check_rows(self, array: npt.NDArray[np.uint8], subject: str, first_row: int) -> None:
        for start in range(0, len(array), self.piece_rows):
            self._check_piece(array[start : start + self.piece_rows], subject, first_row + start)

    def _check_piece(self, array: npt.NDArray[np.uint8], subject: str, first_row: int) -> None:
        """Raise InvalidInput if a row of one piece is not a valid report."""
        mechanism = self._mechanism
        bits = np.unpackbits(array, axis=1, count=self.bits, bitorder="little")
        size, (in_high, in_low) = len(mechanism.domain), mechanism.sizes
        high = bits[:, size:]
        wrong = high.sum(axis=1, dtype=np.int64) != mechanism.high
        must = f"have exactly {quantity(mechanism.high, 'block bit')} set"
        self._refuse_rows(subject, first_row, array, wrong, must)
        members = np.take(bits, mechanism.order, axis=1).reshape(len(bits), mechanism.blocks, mechanism.block_size)
        weights = members.sum(axis=2, dtype=np.uint32)
        wrong = (weights != np.where(high, in_high, in_low)).any(axis=1)
        must = f"have exactly {quantity(in_high, 'value')} set in every high block, and {in_low} in every low block"
        self._refuse_rows(subject, first_row, array, wrong, must)

    def _count_size(self) -> int:
        return 2 * len(self._mechanism.domain) + self._mechanism.blocks

    def count(self, reports: npt.NDArray[Any], counts: Integers) -> None:
        for piece in count_pieces(reports, counts):
            counts += self._sums(piece)

    def _sums(self, rows: npt.NDArray[np.uint8]) -> Integers:
        """Return the counts of unpacked rows."""
        mechanism = self._mechanism
        size, blocks, order = len(mechanism.domain), mechanism.blocks, mechanism.order
        in_all, in_high, high_sums = (np.zeros(count, np.int64) for count in (size, size, blocks))
        for start in range(0, len(rows), 255):  # a byte counts up to 255 rows
            unpacked = np.unpackbits(rows[start : start + 255], axis=1, count=self.bits, bitorder="little")
            members = np.take(unpacked, order, axis=1).reshape(-1, blocks, mechanism.block_size)
            high = unpacked[:, size:]
            in_all[order] += members.sum(axis=0, dtype=np.uint8).ravel()
            in_high[order] += (members & high[:, :, None]).sum(axis=0, dtype=np.uint8).ravel()
            high_sums += high.sum(axis=0, dtype=np.uint8)
        return np.concatenate([in_high, in_all - in_high, high_sums])

    indicators = ReportFormat.indicators  # the counts are not the bits

    def check_counts(self, n: int, counts: Integers) -> None:
        mechanism = self._mechanism
        size = len(mechanism.domain)
        # The sum of a block's counts may exceed 64 bits, so it is computed in Python's integers.
        in_high, in_low, high = (part.astype(object) for part in np.split(counts, [size, 2 * size]))
        if high.sum() != mechanism.high * n:
            must = f"sum to {mechanism.high * n}, {mechanism.high} for each of {quantity(n, 'report')}"
            raise InvalidInput("an aggregate", "counts of high blocks", must, high.sum(), hint=AGGREGATE_AGAIN)
        for in_set, reports, each in zip((in_high, in_low), (high, n - high), mechanism.sizes, strict=True):
            block_totals = in_set[mechanism.order].reshape(mechanism.blocks, -1).sum(axis=1)
            wrong = block_totals != each * reports
            if wrong.any():
                block = int(wrong.argmax())
                parameter, must = f"counts of the values of block {block}", f"sum to {each * reports[block]}"
                raise InvalidInput("an aggregate", parameter, must, block_totals[block], hint=AGGREGATE_AGAIN)
