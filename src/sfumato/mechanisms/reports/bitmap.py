"""Reports of one bit per value; each count is the number of reports with that bit set."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers, quantity
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.reports.base import SMALL_BATCH_BYTES, ReportFormat, count_pieces

__all__ = ["BitmapFormat", "RowFormat", "bit_sums"]


class RowFormat(ReportFormat):
    """Reports as rows of serialized bytes, in which the bits above ``bits`` are zero."""

    def __init__(self, bits: int) -> None:
        super().__init__(bits, np.uint8, ((bits + 7) // 8,))

    def _validated(self, array: npt.NDArray[Any], subject: str, first_row: int) -> npt.NDArray[Any]:
        if array.dtype != np.uint8:
            raise InvalidInput(subject, "the array", "hold bytes (dtype uint8)", Description(f"dtype {array.dtype}"))
        spare = 8 * self.shape[0] - self.bits
        if spare:
            wrong = array[:, -1] >> 8 - spare != 0
            must = f"leave its last {quantity(spare, 'bit')} zero"
            self._refuse_rows(subject, first_row, array, wrong, must)
        self._check_rows(array, subject, first_row)
        return array

    def _check_rows(self, array: npt.NDArray[np.uint8], subject: str, first_row: int) -> None:
        """Raise InvalidInput if a row is not a valid report."""


class BitmapFormat(RowFormat):
    """Format of reports that are bitmaps, such as one bit per value.

    Count i of an aggregate is the number of reports with bit i set.

    Parameters
    ----------
    bits
        The number of bits of a report.
    size
        The number of bits that are set in every report; any number by default.

    Examples
    --------
    >>> from sfumato.mechanisms import BitmapFormat
    >>> BitmapFormat(12).encode(0b1000_0000_0001).hex()
    '0108'
    """

    encoding = "bitmap"
    counts_in_bulk = True

    def __init__(self, bits: int, size: int | None = None) -> None:
        super().__init__(bits)
        self.size = size

    @property
    def counts_per_report(self) -> int | None:
        return self.size

    def _count_size(self) -> int:
        return self.bits

    def _check_rows(self, array: npt.NDArray[np.uint8], subject: str, first_row: int) -> None:
        if self.size is not None:
            weights = np.bitwise_count(array).sum(axis=1, dtype=np.int64)
            must = f"have exactly {quantity(self.size, 'bit')} set"
            self._refuse_rows(subject, first_row, array, weights != self.size, must)

    def count(self, reports: npt.NDArray[Any], counts: Integers) -> None:
        if reports.nbytes > SMALL_BATCH_BYTES:
            from sfumato.mechanisms.kernels.counting import add_bit_sums

            add_bit_sums(reports, counts)
            return
        for piece in count_pieces(reports, counts):
            counts += bit_sums(piece, self.bits)

    def indicators(self, reports: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        return np.unpackbits(reports, axis=1, count=self.bits, bitorder="little")


def bit_sums(rows: npt.NDArray[np.uint8], bits: int) -> Integers:
    """Return the number of rows with each bit set."""
    sums = np.zeros(bits, np.int64)
    step = max(1, 2**22 // max(bits, 1))
    for start in range(0, len(rows), step):
        unpacked = np.unpackbits(rows[start : start + step], axis=1, count=bits, bitorder="little")
        sums += unpacked.sum(axis=0, dtype=np.int64)
    return sums
