"""Report format of utility-optimized RAPPOR: bitmaps with at most one harmless bit set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.reports.bitmap import BitmapFormat
from sfumato.mechanisms.utility_optimized_rappor.mechanism import UtilityOptimizedRappor

__all__ = ["UtilityOptimizedRapporFormat"]


class UtilityOptimizedRapporFormat(BitmapFormat):
    """Bitmaps with any sensitive bits and at most one harmless bit set."""

    def __init__(self, mechanism: UtilityOptimizedRappor) -> None:
        super().__init__(len(mechanism.domain))
        self._harmless = np.packbits(~mechanism.is_sensitive, bitorder="little")

    def _check_rows(self, array: npt.NDArray[np.uint8], subject: str, first_row: int) -> None:
        revealed = np.bitwise_count(array & self._harmless).sum(axis=1, dtype=np.int64)
        self._refuse_rows(subject, first_row, array, revealed > 1, "have at most one bit of a harmless value set")
