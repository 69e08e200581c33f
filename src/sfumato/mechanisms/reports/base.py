"""The interface of a report format, and what all formats share."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.mechanisms.reports.columns import reports_from_column

__all__ = ["SMALL_BATCH_BYTES", "ReportFormat", "count_pieces", "exact_sum"]

#: Maximum number of counts of an aggregate: integers of more would take over 32 GB.
_MOST_COUNTS = 2**32
#: Number of reports that are counted at a time, so that they stay in the cache.
_PIECE = 2**18
#: Fewer bytes of reports than this are counted before numba is imported.
SMALL_BATCH_BYTES = 2**18
#: Bytes of reports that are handled at a time; unpacked to one byte per bit they take eight times as many.
_PIECE_BYTES = 2**21


class ReportFormat(ABC):
    """How the reports of one mechanism are written, checked and counted.

    A report is an integer of ``bits`` bits. Its one serialised form, ``encode(report)``, has constant length, so order,
    length and precision reveal nothing. No subclass changes it, because audits compare reports in this form. In an
    array a report has the type ``dtype`` and the shape ``shape``: a number, or a row of its serialised bytes.

    Counts are exact integers that add: ``count_size`` of them hold all that an estimate needs.
    """

    #: The name of the format in specs.
    encoding: ClassVar[str]
    #: Whether the counts are a histogram over the outputs, which the reports number.
    is_histogram: ClassVar[bool] = False
    #: Whether many reports are counted by other code than few.
    counts_in_bulk: ClassVar[bool] = False

    def __init__(self, bits: int, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
        self.bits = bits
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.shape = shape

    # -- one report ----------------------------------------------------------------------------------------

    @property
    def encoded_bytes(self) -> int:
        """The length of an encoded report in bytes."""
        return (self.bits + 7) // 8

    @property
    def batch_bytes(self) -> int:
        """The length of one report in a batch, in whole bytes: a report of no bits takes one."""
        return max(1, self.encoded_bytes)

    @final
    def encode(self, report: int) -> bytes:
        """Return the one serialised form of a report: ``bits`` bits, little-endian, in whole bytes."""
        return report.to_bytes(self.encoded_bytes, "little")

    @final
    def decode(self, data: bytes) -> int:
        """Return the report of its serialised form."""
        return int.from_bytes(data, "little")

    # -- arrays of reports ---------------------------------------------------------------------------------

    def empty(self, count: int) -> npt.NDArray[Any]:
        """Return an array with room for this many reports; its content is arbitrary."""
        return np.empty((count, *self.shape), self.dtype)

    @property
    def array_bytes(self) -> int:
        """The number of bytes that one report takes in an array."""
        return self.dtype.itemsize * math.prod(self.shape)

    @property
    def piece_rows(self) -> int:
        """How many reports are handled at a time: a multiple of 8, so that a packed piece ends on a whole byte."""
        return max(8, _PIECE_BYTES // self.array_bytes // 8 * 8)

    def validate(self, reports: Any, subject: str = "reports", first_row: int = 0) -> npt.NDArray[Any]:
        """Return reports as an array of ``dtype``, or raise if one of them is invalid.

        Parameters
        ----------
        reports
            An array or a list of reports, or a column of pandas, polars or Arrow as :func:`privatize` returns it.
        subject
            What the reports are, for the error.
        first_row
            The number of the first row, for the error.

        Raises
        ------
        InvalidInput
            If the array has another type or shape, or a report is missing or invalid. The error names the first such
            row.
        """
        reports = reports_from_column(self.shape, reports, subject, first_row)
        if isinstance(reports, np.ma.MaskedArray):
            raise InvalidInput(subject, "the array", "have no masked rows", type(reports))
        try:
            array = np.asarray(reports)
        except ValueError as error:  # rows of unequal length
            raise InvalidInput(subject, "the array", "have one shape", str(error)) from None
        if array.shape == (0,):
            return self.empty(0)
        if array.ndim != 1 + len(self.shape) or array.shape[1:] != self.shape or array.dtype.kind not in "iu":
            kind = "integers" if not self.shape else f"rows of {self.shape[0]} bytes"
            raise InvalidInput(subject, "the array", f"hold {kind}", f"{array.dtype} of shape {array.shape}")
        return self._validated(array, subject, first_row)

    @abstractmethod
    def _validated(self, array: npt.NDArray[Any], subject: str, first_row: int) -> npt.NDArray[Any]:
        """Return an array of integers of the right shape as one of reports, or raise."""

    def validated_pieces(self, reports: Any, subject: str = "reports") -> Iterator[npt.NDArray[Any]]:
        """Yield valid reports in pieces of ``piece_rows``; only the last piece may be shorter.

        ``reports`` is one array or an iterator of arrays. How these were divided leaves no trace, and rows are numbered
        through all of them. Errors name the reports as ``subject``.
        """
        rows = self.piece_rows
        pieces: list[npt.NDArray[Any]] = []
        length = seen = 0
        for part in reports if isinstance(reports, Iterator) else (reports,):
            array = self.validate(part, subject, seen)
            seen += len(array)
            while length + len(array) >= rows:
                cut = rows - length
                pieces.append(array[:cut])
                yield pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
                array, pieces, length = array[cut:], [], 0
            if len(array):
                pieces.append(array.copy())  # the caller may fill the array again for the next piece
                length += len(array)
        if pieces:
            yield pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    # -- counts --------------------------------------------------------------------------------------------

    @functools.cached_property
    def count_size(self) -> int:
        """How many counts there are.

        Raises
        ------
        LimitExceeded
            If there are more than memory holds.
        """
        size = self._count_size()
        if size > _MOST_COUNTS:
            raise LimitExceeded(f"an aggregate of {size} counts is refused (at most {_MOST_COUNTS})")
        return size

    @abstractmethod
    def _count_size(self) -> int:
        """Return how many counts there are, however many."""

    @property
    def counts_per_report(self) -> int | None:
        """How many counts every report adds one to, or None if reports differ in it."""
        return None

    @abstractmethod
    def count(self, reports: npt.NDArray[Any], counts: Integers) -> None:
        """Add valid reports to ``counts``."""

    def check_counts(self, n: int, counts: Integers) -> None:
        """Raise InvalidInput if no n reports have these counts."""
        each = self.counts_per_report
        if each is not None:
            total = exact_sum(counts)
            if total != each * n:
                raise InvalidInput("an aggregate", "counts", f"sum to {each}·n = {each * n}", total)

    def warm_up(self) -> None:
        """Load the code that validates and counts, so that the first report need not wait for it."""
        none, counts = self.empty(0), np.zeros(self.count_size, np.int64)
        if self.shape:
            self.validate(none)
        self.count(none, counts)
        if self.counts_in_bulk:
            row = np.zeros((1, *self.shape), self.dtype)
            self.count(np.repeat(row, 2 * SMALL_BATCH_BYTES // row.nbytes + 1, axis=0), counts)

    # -- errors --------------------------------------------------------------------------------------------

    @staticmethod
    def _refuse_rows(
        subject: str, first_row: int, array: npt.NDArray[Any], wrong: npt.NDArray[np.bool_], must: str
    ) -> None:
        """Raise InvalidInput with the first row that is wrong, if one is."""
        if wrong.any():
            row = int(wrong.argmax())
            value = array[row]
            got = value.tobytes().hex() if array.ndim > 1 else int(value)
            raise InvalidInput(subject, f"the report in row {first_row + row}", must, got, row=first_row + row)


def count_pieces(reports: npt.NDArray[Any], counts: Integers) -> Iterator[npt.NDArray[Any]]:
    """Yield the reports in pieces that stay in the cache."""
    step = max(_PIECE, len(counts))  # a histogram of few reports costs as much as its length
    for start in range(0, len(reports), step):
        yield reports[start : start + step]


def exact_sum(counts: Integers) -> int:
    """Return the sum of counts, which may exceed 64 bits."""
    return (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())
