"""Walsh-Hadamard transform of long vectors, in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.kernels.compile import Word, device, kernel
from sfumato.mechanisms.kernels.decisions import ONE, ZERO
from sfumato.mechanisms.kernels.vectors import EIGHT, store, sum_and_difference, three_levels_within, vector_at

__all__ = ["transform_rows"]


#: Number of entries that fit the first-level cache; all levels within such a block are done before the next block.
_BLOCK = np.uint64(2**12)
_TWO, _THREE, _FOUR, _FIVE, _SIX, _SEVEN = (np.uint64(number) for number in range(2, 8))


def transform_rows(rows: Floats, scale: float = 1.0) -> Floats:
    """Return the unnormalized transform of every row, times ``scale``; equal to ``walsh_hadamard`` up to rounding."""
    result = np.multiply(rows, scale, order="C")
    _transform(result.reshape(-1), rows.shape[1])
    return result


@kernel("Walsh-Hadamard transform")
def _transform(vector: Floats, row_length: int) -> Any:
    """Transform every row of ``vector`` in place."""
    # Indices are unsigned, because a check for negative indices would take as long as the sums.
    end, length = np.uint64(len(vector)), np.uint64(row_length)
    if length < EIGHT:
        half = ONE
        while half < length:
            _short_level(vector, end, half)
            half *= _TWO
        return 0
    block = min(length, _BLOCK)
    for start in range(ZERO, end, block):
        for i in range(start, start + block, EIGHT):
            store(vector, i, three_levels_within(vector_at(vector, i)))
        _levels(vector, start, start + block, EIGHT, block)
    _levels(vector, ZERO, end, block, length)
    return 0


@device
def _levels(x: Floats, start: Word, stop: Word, half: Word, length: Word) -> None:
    """Apply all levels from distance ``half`` up to rows of ``length``, three at a time where possible."""
    while EIGHT * half <= length:
        for base in range(start, stop, EIGHT * half):
            for i in range(base, base + half, EIGHT):
                _three_levels(x, i, half)
        half *= EIGHT
    if _FOUR * half <= length:
        for base in range(start, stop, _FOUR * half):
            for i in range(base, base + half, EIGHT):
                _two_levels(x, i, half)
        half *= _FOUR
    if half < length:
        for base in range(start, stop, _TWO * half):
            for i in range(base, base + half, EIGHT):
                _one_level(x, i, half)


@device
def _three_levels(x: Floats, i: Word, half: Word) -> None:
    """Apply three levels to eight vectors."""
    a, b = sum_and_difference(vector_at(x, i), vector_at(x, i + half))
    c, d = sum_and_difference(vector_at(x, i + _TWO * half), vector_at(x, i + _THREE * half))
    e, f = sum_and_difference(vector_at(x, i + _FOUR * half), vector_at(x, i + _FIVE * half))
    g, h = sum_and_difference(vector_at(x, i + _SIX * half), vector_at(x, i + _SEVEN * half))
    (a, c), (b, d) = sum_and_difference(a, c), sum_and_difference(b, d)
    (e, g), (f, h) = sum_and_difference(e, g), sum_and_difference(f, h)
    (a, e), (b, f) = sum_and_difference(a, e), sum_and_difference(b, f)
    (c, g), (d, h) = sum_and_difference(c, g), sum_and_difference(d, h)
    store(x, i, a)
    store(x, i + half, b)
    store(x, i + _TWO * half, c)
    store(x, i + _THREE * half, d)
    store(x, i + _FOUR * half, e)
    store(x, i + _FIVE * half, f)
    store(x, i + _SIX * half, g)
    store(x, i + _SEVEN * half, h)


@device
def _two_levels(x: Floats, i: Word, half: Word) -> None:
    """Apply two levels to four vectors."""
    a, b = sum_and_difference(vector_at(x, i), vector_at(x, i + half))
    c, d = sum_and_difference(vector_at(x, i + _TWO * half), vector_at(x, i + _THREE * half))
    (a, c), (b, d) = sum_and_difference(a, c), sum_and_difference(b, d)
    store(x, i, a)
    store(x, i + half, b)
    store(x, i + _TWO * half, c)
    store(x, i + _THREE * half, d)


@device
def _one_level(x: Floats, i: Word, half: Word) -> None:
    """Apply one level to two vectors."""
    a, b = sum_and_difference(vector_at(x, i), vector_at(x, i + half))
    store(x, i, a)
    store(x, i + half, b)


@device
def _short_level(x: Floats, end: Word, half: Word) -> None:
    """Apply one level to rows that are shorter than a vector."""
    for base in range(ZERO, end, _TWO * half):
        for i in range(base, base + half):
            a, b = x[i], x[i + half]
            x[i], x[i + half] = a + b, a - b
