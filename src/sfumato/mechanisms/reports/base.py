"""Base class of report formats."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers, quantity
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.mechanisms.reports.columns import reports_from_column

__all__ = ["AGGREGATE_AGAIN", "SMALL_BATCH_BYTES", "ReportFormat", "count_pieces", "exact_sum"]

#: Maximum number of counts of an aggregate; more would take over 32 GB.
_MOST_COUNTS = 2**32
#: Number of reports that are counted at a time; keeps them in the cache.
_PIECE = 2**18
#: Maximum bytes of reports that are counted without importing numba.
SMALL_BATCH_BYTES = 2**18
#: Bytes of reports that are processed at a time; unpacked to one byte per bit they take eight times as much memory.
_PIECE_BYTES = 2**21
#: Next step in errors about counts that no reports have.
AGGREGATE_AGAIN = "Aggregate the reports again with the mechanism that produced them."


class ReportFormat(ABC):
    """Base class of report formats: how the reports of one mechanism are encoded, validated and counted.

    A report is an integer of ``bits`` bits. Its only serialized form, ``encode(report)``, has constant length, so
    order, length and precision reveal nothing. Subclasses cannot change it, because audits compare reports in this
    form. In an array, a report has type ``dtype`` and shape ``shape``: a number, or a row of its serialized bytes.

    Counts are exact integers that can be added: ``count_size`` of them hold everything that an estimate needs.

    Attributes
    ----------
    encoding : str
        Name of the format in specs.
    bits : int
        Length of a report in bits.
    dtype : numpy.dtype
        Type of a report in an array.
    shape : tuple of int
        Shape of a report in an array: () for a number, (bytes,) for a row of bytes.
    """

    #: Name of the format in specs.
    encoding: ClassVar[str]
    #: Whether reports are indices of outputs and the counts are their histogram.
    is_histogram: ClassVar[bool] = False
    #: Whether large batches are counted by compiled code and small ones by numpy.
    counts_in_bulk: ClassVar[bool] = False

    def __init__(self, bits: int, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
        self.bits = bits
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.shape = shape

    # -- one report ----------------------------------------------------------------------------------------

    @property
    def encoded_bytes(self) -> int:
        """Length of an encoded report in bytes."""
        return (self.bits + 7) // 8

    @property
    def batch_bytes(self) -> int:
        """Length of one report in a batch, in bytes; a report of 0 bits takes one byte."""
        return max(1, self.encoded_bytes)

    @final
    def encode(self, report: int) -> bytes:
        """Return the serialized form of a report: ``bits`` bits, little-endian, in whole bytes.

        Parameters
        ----------
        report
            The report, as an integer.

        Returns
        -------
        bytes
            ``encoded_bytes`` bytes.
        """
        return report.to_bytes(self.encoded_bytes, "little")

    @final
    def decode(self, data: bytes) -> int:
        """Return the report of a serialized form.

        Parameters
        ----------
        data
            The bytes that ``encode`` returned.

        Returns
        -------
        int
            The report.
        """
        return int.from_bytes(data, "little")

    # -- arrays of reports ---------------------------------------------------------------------------------

    def empty(self, count: int) -> npt.NDArray[Any]:
        """Return an uninitialized array for reports.

        Parameters
        ----------
        count
            The number of reports.

        Returns
        -------
        ndarray
            An array of ``count`` reports with arbitrary content.
        """
        return np.empty((count, *self.shape), self.dtype)

    @property
    def array_bytes(self) -> int:
        """Number of bytes that one report takes in an array."""
        return self.dtype.itemsize * math.prod(self.shape)

    @property
    def piece_rows(self) -> int:
        """Number of reports processed at a time; a multiple of 8, so that a packed piece ends on a whole byte."""
        return max(8, _PIECE_BYTES // self.array_bytes // 8 * 8)

    def validate(self, reports: Any, subject: str = "reports", first_row: int = 0) -> npt.NDArray[Any]:
        """Return reports as an array of ``dtype``, or raise if one of them is invalid.

        Parameters
        ----------
        reports
            An array or a list of reports, or a pandas, polars or Arrow column as :func:`privatize` returns it.
        subject
            A description of the reports for error messages.
        first_row
            The number of the first row in error messages.

        Returns
        -------
        ndarray
            The reports, one per row.

        Raises
        ------
        InvalidInput
            If the array has another type or shape, or a report is missing or invalid. The error names the first such
            row.
        """
        reports = reports_from_column(self.shape, reports, subject, first_row)
        if isinstance(reports, np.ma.MaskedArray):
            hint = "Drop them with reports.compressed()."
            raise InvalidInput(subject, "the array", "have no masked rows", type(reports), hint=hint)
        try:
            array = np.asarray(reports)
        except ValueError as error:  # rows of unequal length
            raise InvalidInput(subject, "the array", "have rows of one length", str(error)) from None
        if array.shape == (0,):
            return self.empty(0)
        if array.ndim != 1 + len(self.shape) or array.shape[1:] != self.shape or array.dtype.kind not in "iu":
            kind = "integers" if not self.shape else f"rows of {quantity(self.shape[0], 'byte')}"
            raise InvalidInput(subject, "the array", f"hold {kind}", f"{array.dtype} of shape {array.shape}")
        return self._validated(array, subject, first_row)

    @abstractmethod
    def _validated(self, array: npt.NDArray[Any], subject: str, first_row: int) -> npt.NDArray[Any]:
        """Return an array of integers of the right shape as an array of reports, or raise InvalidInput."""

    def validated_pieces(self, reports: Any, subject: str = "reports") -> Iterator[npt.NDArray[Any]]:
        """Yield valid reports in pieces of ``piece_rows`` rows; only the last piece may be shorter.

        Parameters
        ----------
        reports
            One array, or an iterator of arrays. The pieces do not depend on the division into arrays, and rows are
            numbered through all of them.
        subject
            A description of the reports for error messages.

        Yields
        ------
        ndarray
            Valid reports.
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
                pieces.append(array.copy())  # the caller may reuse the array for the next reports
                length += len(array)
        if pieces:
            yield pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    # -- counts --------------------------------------------------------------------------------------------

    @functools.cached_property
    def count_size(self) -> int:
        """Number of counts.

        Raises
        ------
        LimitExceeded
            If there are more than 2^32 counts.
        """
        size = self._count_size()
        if size > _MOST_COUNTS:
            raise LimitExceeded(
                f"an aggregate would have {quantity(size, 'count')}, more than the limit of {_MOST_COUNTS:,}. "
                "Use a mechanism with fewer outputs."
            )
        return size

    @abstractmethod
    def _count_size(self) -> int:
        """Return the number of counts, without a limit."""

    @property
    def counts_per_report(self) -> int | None:
        """Number of counts that every report increments, or None if it differs between reports."""
        return None

    @abstractmethod
    def count(self, reports: npt.NDArray[Any], counts: Integers) -> None:
        """Add valid reports to counts.

        Parameters
        ----------
        reports
            Valid reports, as ``validate`` returned them.
        counts
            The counts; changed in place.
        """

    def check_counts(self, n: int, counts: Integers) -> None:
        """Check that counts can be those of n reports.

        Parameters
        ----------
        n
            The number of reports.
        counts
            The counts.

        Raises
        ------
        InvalidInput
            If no n reports have these counts.
        """
        each = self.counts_per_report
        if each is not None:
            total = exact_sum(counts)
            if total != each * n:
                must = f"sum to {each}·n = {each * n}"
                raise InvalidInput("an aggregate", "counts", must, total, hint=AGGREGATE_AGAIN)

    def warm_up(self) -> None:
        """Load and compile the code that validates and counts, so that the first report does not wait for it."""
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
        """Raise InvalidInput for the first wrong row, if there is one."""
        if wrong.any():
            row = int(wrong.argmax())
            value = array[row]
            got = value.tobytes().hex() if array.ndim > 1 else int(value)
            raise InvalidInput(subject, f"the report in row {first_row + row}", must, got, row=first_row + row)


def count_pieces(reports: npt.NDArray[Any], counts: Integers) -> Iterator[npt.NDArray[Any]]:
    """Yield the reports in pieces that fit the cache."""
    step = max(_PIECE, len(counts))  # a histogram takes time in proportion to its length, even for few reports
    for start in range(0, len(reports), step):
        yield reports[start : start + step]


def exact_sum(counts: Integers) -> int:
    """Return the exact sum of counts, which may exceed 64 bits."""
    return (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())
