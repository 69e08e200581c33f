"""Validation and counting of reports in the "parted" encoding, in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import by_threads
from sfumato.mechanisms.kernels.compile import Word, Words, device, kernel
from sfumato.mechanisms.kernels.decisions import ONE, ONES, WORD_BITS, ZERO, popcount
from sfumato.mechanisms.kernels.planes import live_lanes
from sfumato.mechanisms.parts.mechanism import Parts

__all__ = ["add_counts", "first_fault"]

_BYTE_BITS = _WORD_BYTES = np.uint64(8)

Rows = npt.NDArray[np.uint8]

#: Minimum number of rows per thread.
_LEAST_ROWS = 10_000


def first_fault(mechanism: Parts, rows: Rows) -> int:
    """Return the first row that is not a valid report, or the number of rows."""
    parameters, plain, unused = _parameters(mechanism), _plain(rows), np.zeros(0, np.int64)

    def fault_in(piece: slice) -> int:
        return int(_first_fault(plain[piece], unused, parameters))

    for piece, fault in by_threads(len(rows), _LEAST_ROWS, fault_in):
        if piece.start + fault < piece.stop:
            return int(piece.start) + fault
    return len(rows)


def add_counts(mechanism: Parts, rows: Rows, counts: npt.NDArray[np.int64]) -> None:
    """Add the counts of validated reports."""
    parameters, plain = _parameters(mechanism), _plain(rows)

    def counted(piece: slice) -> npt.NDArray[np.int64]:
        partial = np.zeros_like(counts)
        _add_counts(plain[piece], partial, parameters)
        return partial

    for _, partial in by_threads(len(rows), _LEAST_ROWS, counted):
        counts += partial


def _plain(rows: Rows) -> Rows:
    """Return the rows as a read-only contiguous array, so that no kernel is compiled for two types."""
    plain = np.ascontiguousarray(rows).view()
    plain.setflags(write=False)
    return plain


def _parameters(mechanism: Parts) -> tuple[Any, ...]:
    """Return the parameters of the kernels."""
    formats = [part.report_format for part in mechanism.parts]
    # A part with bitmaps has a number of members and of values; a part with indices has zero members and its outputs.
    members = [0 if each.is_histogram else each.counts_per_report for each in formats]
    sizes = [each.count_size for each in formats]
    numbers = (len(mechanism.unprotected), mechanism.numbering.body_bits, mechanism.bits)
    arrays = (members, sizes, mechanism.numbering.count_offsets)
    return (*(np.array(array, dtype=np.uint64) for array in arrays), *(np.uint64(number) for number in numbers))


@device
def _load(rows: Rows, i: Word, group: Word) -> Word:
    """Return 64 bits of row i, or as many as it has."""
    first = group * _WORD_BYTES
    left = np.uint64(rows.shape[1]) - first
    word = ZERO
    if left >= _WORD_BYTES:
        for byte in range(8):  # the length is constant, so the compiler emits a single load
            word |= np.uint64(rows[i, first + np.uint64(byte)]) << _BYTE_BITS * np.uint64(byte)
    else:
        for byte in range(left):
            word |= np.uint64(rows[i, first + byte]) << _BYTE_BITS * byte
    return word


@device
def _head(rows: Rows, i: Word, body_bits: Word, groups: Word) -> Word:
    """Return the number above the body of row i."""
    group, shift = body_bits // WORD_BITS, body_bits % WORD_BITS
    head = _load(rows, i, group) >> shift if group < groups else ZERO
    if shift != ZERO and group + ONE < groups:
        head |= _load(rows, i, group + ONE) << WORD_BITS - shift
    return head


@device
def _body(rows: Rows, i: Word, group: Word, body_bits: Word) -> Word:
    """Return 64 bits of the body of row i."""
    return _load(rows, i, group) & live_lanes(body_bits, group)


@kernel("validity of parted reports")
def _first_fault(rows: Rows, _: Words, parameters: Any) -> Any:
    """Return the first row that is not a valid report, or the number of rows."""
    members, sizes, _offsets, open_values, body_bits, bits = parameters
    parts = np.uint64(len(members))
    groups = (bits + WORD_BITS - ONE) // WORD_BITS
    body_groups = (body_bits + WORD_BITS - ONE) // WORD_BITS
    for i in range(np.uint64(len(rows))):
        head = _head(rows, i, body_bits, groups)
        if head >= parts + open_values:
            return i
        weight, outside = ZERO, ZERO
        allowed = sizes[head] if head < parts and members[head] != ZERO else ZERO
        for group in range(body_groups):
            word = _body(rows, i, group, body_bits)
            weight += popcount(word)
            inside = live_lanes(allowed, group) if group * WORD_BITS < allowed else ZERO
            outside |= word & ~inside
        if head < parts and members[head] == ZERO:
            # An index fits one word; any bit above it makes it too large.
            above = weight != popcount(_body(rows, i, ZERO, body_bits)) if body_groups > ONE else False
            if above or (body_groups > ZERO and _body(rows, i, ZERO, body_bits) >= sizes[head]):
                return i
        elif outside != ZERO or weight != (members[head] if head < parts else ZERO):
            return i
    return np.uint64(len(rows))


@kernel("counts of parted reports")
def _add_counts(rows: Rows, counts: npt.NDArray[np.int64], parameters: Any) -> Any:
    """Add the counts of validated reports."""
    members, _, offsets, _, body_bits, bits = parameters
    parts = np.uint64(len(members))
    groups = (bits + WORD_BITS - ONE) // WORD_BITS
    body_groups = (body_bits + WORD_BITS - ONE) // WORD_BITS
    for i in range(np.uint64(len(rows))):
        head = _head(rows, i, body_bits, groups)
        if head >= parts:
            counts[offsets[parts] + head - parts] += 1
        elif members[head] == ZERO:
            counts[offsets[head] + _body(rows, i, ZERO, body_bits)] += 1
        else:
            for group in range(body_groups):
                word = _body(rows, i, group, body_bits)
                first = offsets[head] + group * WORD_BITS
                while word != ZERO:
                    counts[first + popcount((word & ~word + ONE) - ONE)] += 1
                    word &= word - ONE
    return ONES
