"""Counting of reports in compiled code: histograms of indices, and column sums of bitmaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from sfumato._core import Integers, by_threads
from sfumato.mechanisms.kernels.compile import Word, Words, device, instruction, kernel
from sfumato.mechanisms.kernels.decisions import ONE, WORD_BITS, ZERO

__all__ = ["add_bit_sums", "add_histogram"]


#: Minimum number of reports, or bytes of bitmaps, per thread.
_LEAST_INDICES = 2**20
_LEAST_BYTES = 2**22
#: Number of counts that fit the first-level cache.
_NEAR_COUNTS = 2**12
#: Number of indices that are prefetched at a time, and distance ahead at which they are prefetched.
_FETCHED, _AHEAD = np.uint64(2**8), np.uint64(2**10)
_LINE_BYTES = np.uint64(64)
_BYTE_ZERO, _BYTE_ONE = np.uint8(0), np.uint8(1)
#: Number of bits of the vertical counters, and maximum number of rows that they count without overflow.
_PLANES = 16
_MOST_ROWS = 2**16 - 16
_TWO, _THREE, _SIXTEEN = np.uint64(2), np.uint64(3), np.uint64(16)


def add_histogram(indices: npt.NDArray[Any], counts: Integers) -> None:
    """Add the number of occurrences of each index; every index must be below the number of counts."""
    plain = np.ascontiguousarray(indices).view()
    plain.setflags(write=False)

    def counted(piece: slice) -> Integers:
        partial = np.zeros_like(counts)
        _histogram(plain[piece], partial)
        return partial

    if len(plain) < 2 * _LEAST_INDICES:  # a single thread needs no partial histogram
        _histogram(plain, counts)
        return
    for _, partial in by_threads(len(plain), max(_LEAST_INDICES, len(counts)), counted):
        counts += partial


def add_bit_sums(rows: npt.NDArray[np.uint8], counts: Integers) -> None:
    """Add the number of rows with each bit set, one count per bit; the first bit is the lowest."""
    words = -(-rows.shape[1] // 8)

    def counted(piece: slice) -> Integers:
        partial = np.zeros(64 * words, np.int64)
        for start in range(piece.start, piece.stop, _MOST_ROWS):
            planes = np.zeros((_PLANES + 1) * words, np.uint64)
            _vertical_counts(_in_words(rows[start : min(start + _MOST_ROWS, piece.stop)]), planes, partial)
        return partial

    for _, partial in by_threads(len(rows), max(1, _LEAST_BYTES // rows.shape[1]), counted):
        counts += partial[: len(counts)]


def _in_words(rows: npt.NDArray[np.uint8]) -> Words:
    """Return the rows, one after the other, as 64-bit words, padded with zeros to whole words."""
    spare = -rows.shape[1] % 8
    whole = np.pad(rows, ((0, 0), (0, spare))) if spare else np.ascontiguousarray(rows)
    if whole.ctypes.data % 8:
        whole = whole.copy()
    words = whole.reshape(-1).view("<u8")
    words.setflags(write=False)  # numba has a separate type for read-only arrays
    return words


@kernel("histogram", allocates=True)
def _histogram(indices: npt.NDArray[Any], counts: Integers) -> Any:
    """Add the number of occurrences of each index to the counts."""
    if len(counts) <= _NEAR_COUNTS or len(indices) < len(counts):
        for i in range(len(indices)):
            counts[indices[i]] += 1
        return 0
    # Counts outside the first-level cache are slow, so bytes are counted instead: eight times as many fit the cache. A
    # byte that overflows is carried to its count. Indices are prefetched explicitly, because the many cache misses keep
    # the processor from fetching them early enough.
    low = np.zeros(len(counts), np.uint8)
    line, end = _LINE_BYTES // np.uint64(indices.itemsize), np.uint64(len(indices))
    for start in range(ZERO, end, _FETCHED):
        for i in range(start + _AHEAD, start + _AHEAD + _FETCHED, line):
            _fetch(indices, i)
        for i in range(start, min(start + _FETCHED, end)):
            index = indices[i]
            more = np.uint8(low[index] + _BYTE_ONE)
            low[index] = more
            if more == _BYTE_ZERO:
                counts[index] += 256
    for index in range(np.uint64(len(counts))):
        counts[index] += low[index]
    return 0


@instruction
def _fetch(typing_context: Any, array: Any, index: Any) -> Any:  # noqa: ARG001
    """Prefetch this element of an array to the second-level cache; an index beyond the end is harmless."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        fetch_type = ir.FunctionType(ir.VoidType(), (byte, number, number, number))
        fetch = builder.module.declare_intrinsic("llvm.prefetch", (byte,), fetch_type)
        reading, second_cache, data = number(0), number(2), number(1)
        place = builder.bitcast(builder.gep(view.data, [arguments[1]]), byte)
        builder.call(fetch, [place, reading, second_cache, data])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


@device
def _add(a: Word, b: Word, c: Word) -> Any:
    """Return the carries and the sums of 64 full adders."""
    either = a ^ b
    return (a & b) | (either & c), either ^ c


@device
def _two_rows(words: Words, first: Word, width: Word, ones: Word) -> Any:
    """Add the same word of two rows."""
    return _add(ones, words[first], words[first + width])


@kernel("column sums")
def _vertical_counts(words: Words, planes: Words, counts: Integers) -> Any:
    """Count bits in planes: plane j holds bit j of a counter for every bit of a row; the last plane holds carries.

    Sixteen rows are added at a time by a tree of adders (Harley and Seal), which leaves one carry for the planes above.
    The inner loops run along a row, so that the compiler adds several words at once.
    """
    width = np.uint64(len(planes)) // np.uint64(_PLANES + 1)
    carries = np.uint64(_PLANES) * width
    length = np.uint64(len(words)) // width
    whole = length // _SIXTEEN * _SIXTEEN
    for row in range(ZERO, whole, _SIXTEEN):
        for word in range(width):
            ones, twos, fours = planes[word], planes[width + word], planes[_TWO * width + word]
            first = row * width + word
            twos_a, ones = _two_rows(words, first, width, ones)
            twos_b, ones = _two_rows(words, first + _TWO * width, width, ones)
            fours_a, twos = _add(twos, twos_a, twos_b)
            twos_a, ones = _two_rows(words, first + np.uint64(4) * width, width, ones)
            twos_b, ones = _two_rows(words, first + np.uint64(6) * width, width, ones)
            fours_b, twos = _add(twos, twos_a, twos_b)
            eights_a, fours = _add(fours, fours_a, fours_b)
            twos_a, ones = _two_rows(words, first + np.uint64(8) * width, width, ones)
            twos_b, ones = _two_rows(words, first + np.uint64(10) * width, width, ones)
            fours_a, twos = _add(twos, twos_a, twos_b)
            twos_a, ones = _two_rows(words, first + np.uint64(12) * width, width, ones)
            twos_b, ones = _two_rows(words, first + np.uint64(14) * width, width, ones)
            fours_b, twos = _add(twos, twos_a, twos_b)
            eights_b, fours = _add(fours, fours_a, fours_b)
            carry, eights = _add(planes[_THREE * width + word], eights_a, eights_b)
            planes[word], planes[width + word], planes[_TWO * width + word] = ones, twos, fours
            planes[_THREE * width + word], planes[carries + word] = eights, carry
        _carry(planes, width, carries, np.uint64(4))
    for row in range(whole, length):
        for word in range(width):
            planes[carries + word] = words[row * width + word]
        _carry(planes, width, carries, ZERO)
    for plane in range(np.uint64(_PLANES)):
        for word in range(width):
            bits = planes[plane * width + word]
            for bit in range(WORD_BITS):
                counts[word * WORD_BITS + bit] += np.int64((bits >> bit & ONE) << plane)
    return 0


@device
def _carry(planes: Words, width: Word, carries: Word, plane: Word) -> None:
    """Add the carries to a plane, then the new carries to the next plane, until none are left."""
    left = ONE
    while left != ZERO:
        left = ZERO
        for word in range(width):
            bits, carry = planes[plane * width + word], planes[carries + word]
            planes[plane * width + word] = bits ^ carry
            planes[carries + word] = bits & carry
            left |= bits & carry
        plane += ONE
