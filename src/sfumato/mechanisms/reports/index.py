"""Reports that are indices of outputs; the counts are their histogram."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers
from sfumato.mechanisms.reports.base import SMALL_BATCH_BYTES, ReportFormat, count_pieces

__all__ = ["IndexFormat"]


class IndexFormat(ReportFormat):
    """Format of reports that are integers from 0 to outputs - 1, in as few bits as the greatest integer needs.

    Count y of an aggregate is the number of reports equal to y.

    Parameters
    ----------
    outputs
        The number of distinct reports.

    Examples
    --------
    >>> from sfumato.mechanisms import IndexFormat
    >>> report_format = IndexFormat(1000)
    >>> report_format.bits
    10
    >>> report_format.validate([3, 999]).tolist()
    [3, 999]
    """

    encoding = "index"
    is_histogram = True
    counts_in_bulk = True

    def __init__(self, outputs: int) -> None:
        bits = (outputs - 1).bit_length()
        super().__init__(bits, np.uint32 if bits <= 32 else np.uint64, ())
        self.outputs = outputs

    def _validated(self, array: npt.NDArray[Any], subject: str, first_row: int) -> npt.NDArray[Any]:
        if array.min() < 0 or array.max() >= self.outputs:  # fast check first, because batches are large
            wrong = (array < 0) | (array >= self.outputs)
            self._refuse_rows(subject, first_row, array, wrong, f"be in 0 … {self.outputs - 1}")
        return array.astype(self.dtype, copy=False)

    def _count_size(self) -> int:
        return self.outputs

    @property
    def counts_per_report(self) -> int:
        return 1

    def count(self, reports: npt.NDArray[Any], counts: Integers) -> None:
        if reports.nbytes > SMALL_BATCH_BYTES:
            from sfumato.mechanisms.kernels.counting import add_histogram

            add_histogram(reports, counts)
            return
        for piece in count_pieces(reports, counts):
            counts += np.bincount(piece.astype(np.intp), minlength=len(counts))

    def count_pairs(self, first: npt.NDArray[Any], second: npt.NDArray[Any], counts: Integers) -> None:
        np.add.at(counts, (first.astype(np.intp), second.astype(np.intp)), 1)
