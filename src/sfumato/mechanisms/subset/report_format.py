"""Report format of subset selection: bitmaps with a fixed number of bits set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato._core import quantity
from sfumato.mechanisms.reports.bitmap import BitmapFormat
from sfumato.mechanisms.subset.mechanism import SubsetSelection

__all__ = ["SubsetFormat"]


class SubsetFormat(BitmapFormat):
    """Bitmaps with exactly ``size`` bits set."""

    def __init__(self, mechanism: SubsetSelection) -> None:
        super().__init__(len(mechanism.domain))
        self.size = mechanism.size

    @property
    def counts_per_report(self) -> int:
        return self.size

    def _check_rows(self, array: npt.NDArray[np.uint8], subject: str, first_row: int) -> None:
        weights = np.bitwise_count(array).sum(axis=1, dtype=np.int64)
        must = f"have exactly {quantity(self.size, 'bit')} set"
        self._refuse_rows(subject, first_row, array, weights != self.size, must)
