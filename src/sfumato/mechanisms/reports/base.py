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
from sfumato.errors import Description, InvalidInput, LimitExceeded
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
    """Base class of report formats, which encode, validate and count the reports of one mechanism.

    :attr:`Mechanism.report_format` returns the format of a mechanism.

    A report is an integer of ``bits`` bits. Its only serialized form, ``encode(report)``, has constant length, so
    order, length and precision reveal nothing. Subclasses cannot change this form, because audits compare reports in
    it. In an array of n reports, of shape ``(n, *shape)``, a report is a number or a row of its serialized bytes.

    An aggregate of reports is a vector of ``count_size`` integer counts. Counts of several batches can be added, and
    hold everything that an estimate needs. In :class:`IndexFormat`, count y is the number of reports equal to y. In
    :class:`BitmapFormat`, count i is the number of reports with bit i set.

    Attributes
    ----------
    encoding : str
        Name of the format in the specs of mechanisms, such as ``"index"`` or ``"bitmap"``.
    bits : int
        Length of a report in bits.
    dtype : numpy.dtype
        Type of the entries of an array of reports.
    shape : tuple of int
        Shape of one report in an array: () for a number, (bytes,) for a row of bytes.
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
        """Length of an encoded report in bytes: ``bits`` divided by 8, rounded up."""
        return (self.bits + 7) // 8

    @property
    def batch_bytes(self) -> int:
        """Length in bytes of one report in a batch that a client sends: ``encoded_bytes``, and at least 1."""
        return max(1, self.encoded_bytes)

    @final
    def encode(self, report: int) -> bytes:
        """Return the serialized form of a report: its bits in little-endian order, padded with zeros to whole bytes.

        Parameters
        ----------
        report
            The report, as an integer.

        Returns
        -------
        bytes
            A string of ``encoded_bytes`` bytes.
        """
        return report.to_bytes(self.encoded_bytes, "little")

    @final
    def decode(self, data: bytes) -> int:
        """Return the report that :meth:`encode` serialized; the report is not validated.

        Parameters
        ----------
        data
            The bytes that :meth:`encode` returned.

        Returns
        -------
        int
            The report.
        """
        return int.from_bytes(data, "little")

    # -- arrays of reports ---------------------------------------------------------------------------------

    def empty(self, count: int) -> npt.NDArray[Any]:
        """Return an uninitialized array that can hold reports.

        Parameters
        ----------
        count
            The number of reports.

        Returns
        -------
        ndarray
            An array of type ``dtype`` and shape ``(count, *shape)`` with arbitrary content.
        """
        return np.empty((count, *self.shape), self.dtype)

    @property
    def array_bytes(self) -> int:
        """Number of bytes that one report takes in an array."""
        return self.dtype.itemsize * math.prod(self.shape)

    @property
    def piece_rows(self) -> int:
        """Number of reports per piece of :meth:`validated_pieces`: a multiple of 8 that bounds the memory used."""
        return max(8, _PIECE_BYTES // self.array_bytes // 8 * 8)

    def validate(self, reports: Any, subject: str = "reports", first_row: int = 0) -> npt.NDArray[Any]:
        """Return reports as an array of ``dtype``, or raise if one of them is invalid.

        Parameters
        ----------
        reports
            An array or a list of reports, or a pandas, polars or Arrow column as :func:`privatize` returns it. Arrays
            with one report each, as a ledger returns them, may be listed or stacked.
        subject
            Name of the reports at the start of error messages.
        first_row
            Number of the first row of ``reports`` in error messages, if they continue earlier ones.

        Returns
        -------
        ndarray
            The reports, of shape ``(n, *shape)``.

        Raises
        ------
        InvalidInput
            If the array has another type or shape, or a report is missing or invalid. The error names the first such
            row.
        """
        reports = reports_from_column(self.shape, reports, subject, first_row)
        if isinstance(reports, np.ma.MaskedArray):
            hint = "Drop them with np.ma.compress_rows(reports), or reports.compressed() if each report is a number."
            raise InvalidInput(subject, "the array", "have no masked rows", type(reports), hint=hint)
        try:
            array = np.asarray(reports)
        except ValueError as error:  # rows of unequal length
            raise InvalidInput(subject, "the array", "have rows of one length", Description(error)) from None
        if array.shape == (0,):
            return self.empty(0)
        if array.ndim == 2 + len(self.shape) and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1 + len(self.shape) or array.shape[1:] != self.shape or array.dtype.kind not in "iu":
            kind = "integers" if not self.shape else f"rows of {quantity(self.shape[0], 'byte')}"
            got = Description(f"{array.dtype} of shape {array.shape}")
            raise InvalidInput(subject, "the array", f"hold {kind}", got)
        return self._validated(array, subject, first_row)

    @abstractmethod
    def _validated(self, array: npt.NDArray[Any], subject: str, first_row: int) -> npt.NDArray[Any]:
        """Return an array of integers of the right shape as an array of reports, or raise InvalidInput."""

    def validated_pieces(self, reports: Any, subject: str = "reports") -> Iterator[npt.NDArray[Any]]:
        """Validate reports and yield them in pieces of ``piece_rows`` rows; only the last piece may be shorter.

        Parameters
        ----------
        reports
            One array as :meth:`validate` takes it, or an iterator of such arrays. Arrays of an iterator are joined, so
            their lengths do not change the pieces. Errors number the rows across all arrays.
        subject
            Name of the reports at the start of error messages.

        Yields
        ------
        ndarray
            Valid reports, as :meth:`validate` returns them.
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
        """Length of the vector of counts of an aggregate, such as the number of outputs or of bits.

        Raises
        ------
        LimitExceeded
            If an aggregate would have more than 2^32 counts.
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
        """Number of counts that each report increments by one, or None if this number differs between reports."""
        return None

    @abstractmethod
    def count(self, reports: npt.NDArray[Any], counts: Integers) -> None:
        """Add reports to counts, in place.

        Parameters
        ----------
        reports
            Valid reports, as :meth:`validate` returned them.
        counts
            Counts of earlier reports, or zeros: int64, shape (count_size,). The method increments them.
        """

    def indicators(self, reports: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        """Return the counts of each report alone.

        Parameters
        ----------
        reports
            Valid reports, as :meth:`validate` returned them.

        Returns
        -------
        ndarray
            One row per report, shape (n, count_size), with entries 0 and 1.
        """
        rows = np.zeros((len(reports), self.count_size), np.int64)
        for number, row in enumerate(rows):
            self.count(reports[number : number + 1], row)
        return rows.astype(np.uint8)

    def count_pairs(self, first: npt.NDArray[Any], second: npt.NDArray[Any], counts: Integers) -> None:
        """Add pairs of reports of the same people to joint counts, in place.

        Parameters
        ----------
        first
            The first report of each person, as :meth:`validate` returned them.
        second
            The second report of each person, in the same order.
        counts
            Joint counts of earlier pairs, or zeros: int64, shape (count_size, count_size). Entry (i, j) is the number
            of people whose first report increments count i and whose second report increments count j.
        """
        step = max(1, _PIECE_BYTES // self.count_size)
        for start in range(0, len(first), step):
            rows, columns = (self.indicators(part[start : start + step]) for part in (first, second))
            # A product of doubles is exact, because no sum exceeds the number of rows.
            counts += (rows.T.astype(np.float64) @ columns).astype(np.int64)

    def check_counts(self, n: int, counts: Integers) -> None:
        """Raise an error if n valid reports cannot have these counts.

        Parameters
        ----------
        n
            The number of reports.
        counts
            The counts, shape (count_size,).

        Raises
        ------
        InvalidInput
            If the counts have a sum that n reports cannot have, or fail another test of the format.
        """
        each = self.counts_per_report
        if each is not None:
            total = exact_sum(counts)
            if total != each * n:
                must = f"sum to {each * n}, {each} for each of {quantity(n, 'report')}"
                raise InvalidInput("an aggregate", "counts", must, total, hint=AGGREGATE_AGAIN)

    def warm_up(self) -> None:
        """Compile the code that validates and counts reports, so that the first batch does not wait for it."""
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
