"""What is counted of a mechanism's reports: exact integers that add.

For indices a histogram over the outputs; for bitmaps the number of reports with each bit set. A mechanism whose
estimate needs other counts has a tally of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import CannotDecide, InvalidInput
from sfumato.mechanisms import Mechanism, SubsetSelection

__all__ = ["check_counts", "count_reports", "count_size"]

#: Counts of more outputs than this would take over 32 GB.
_MOST_COUNTS = 2**32
#: Reports are counted in pieces that stay in the cache.
_PIECE = 2**18

Counts = npt.NDArray[np.int64]


def count_size(mechanism: Mechanism) -> int:
    """How many counts there are: of outputs, or of bits."""
    size = mechanism.outputs if mechanism.encoding == "index" else mechanism.bits
    if size > _MOST_COUNTS:
        raise CannotDecide(f"an aggregate of {size} counts is refused (at most {_MOST_COUNTS})")
    return size


def count_reports(mechanism: Mechanism, reports: npt.NDArray[Any], counts: Counts) -> None:
    """Add the counts of checked reports."""
    step = max(_PIECE, len(counts))  # a histogram of few reports costs as much as its length
    for start in range(0, len(reports), step):
        piece = reports[start : start + step]
        if mechanism.encoding == "index":
            counts += np.bincount(piece.astype(np.intp), minlength=len(counts))
        else:
            counts += bit_sums(piece, mechanism.bits)


def check_counts(mechanism: Mechanism, n: int, counts: Counts) -> None:
    """Refuse counts that no n reports can have."""
    # Every report adds to one count, or, as a subset, to as many as it has members.
    each = mechanism.size if isinstance(mechanism, SubsetSelection) else 1
    if mechanism.encoding == "index" or isinstance(mechanism, SubsetSelection):
        total = exact_sum(counts)
        if total != each * n:
            raise InvalidInput("an aggregate", "counts", f"sum to {each}·n = {each * n}", total)


def exact_sum(counts: Counts) -> int:
    """The sum of counts that may overflow 64 bits together."""
    return (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())


def bit_sums(rows: npt.NDArray[np.uint8], bits: int) -> Counts:
    """How many of the rows have each bit set."""
    sums = np.zeros(bits, np.int64)
    step = max(1, 2**22 // max(bits, 1))
    for start in range(0, len(rows), step):
        unpacked = np.unpackbits(rows[start : start + step], axis=1, count=bits, bitorder="little")
        sums += unpacked.sum(axis=0, dtype=np.int64)
    return sums
