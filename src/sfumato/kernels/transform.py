"""The Walsh-Hadamard transform of long vectors, in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.kernels.compile import Word, device, kernel
from sfumato.kernels.decisions import ONE, ZERO

__all__ = ["transform_rows"]

Floats = npt.NDArray[np.float64]

#: So many numbers stay in the first cache: all twelve levels within them are done before the next are touched.
_BLOCK = np.uint64(2**12)
_TWO, _THREE, _FOUR, _FIVE, _SIX, _SEVEN, _EIGHT = (np.uint64(number) for number in range(2, 9))


def transform_rows(rows: Floats) -> Floats:
    """The unnormalised transform of every row, as ``walsh_hadamard`` gives it but for rounding."""
    result = rows.copy()
    _transform(result.reshape(-1), rows.shape[1])
    return result


@kernel("Walsh-Hadamard transform")
def _transform(vector: Floats, row_length: int) -> Any:
    # Indices are unsigned: a check for negative ones would keep the compiler from using vector instructions.
    end, length, half = np.uint64(len(vector)), np.uint64(row_length), ONE
    if length >= _BLOCK:
        for start in range(ZERO, end, _BLOCK):
            # Distances that the compiler knows: it need not ask at run time whether reads and writes overlap.
            _three_levels(vector, start, start + _BLOCK, ONE)
            _three_levels(vector, start, start + _BLOCK, np.uint64(8))
            _three_levels(vector, start, start + _BLOCK, np.uint64(64))
            _three_levels(vector, start, start + _BLOCK, np.uint64(512))
        half = _BLOCK
    while _EIGHT * half <= length:
        _three_levels(vector, ZERO, end, half)
        half *= _EIGHT
    if _FOUR * half <= length:
        _two_levels(vector, ZERO, end, half)
        half *= _FOUR
    if half < length:
        _one_level(vector, ZERO, end, half)
    return 0


@device
def _one_level(x: Floats, start: Word, stop: Word, half: Word) -> None:
    for base in range(start, stop, _TWO * half):
        for i in range(base, base + half):
            a, b = x[i], x[i + half]
            x[i], x[i + half] = a + b, a - b


@device
def _two_levels(x: Floats, start: Word, stop: Word, half: Word) -> None:
    for base in range(start, stop, _FOUR * half):
        for i in range(base, base + half):
            a, b, c, d = x[i], x[i + half], x[i + _TWO * half], x[i + _THREE * half]
            a, b, c, d = a + b, a - b, c + d, c - d
            x[i], x[i + half], x[i + _TWO * half], x[i + _THREE * half] = a + c, b + d, a - c, b - d


@device
def _three_levels(x: Floats, start: Word, stop: Word, half: Word) -> None:
    for base in range(start, stop, _EIGHT * half):
        for i in range(base, base + half):
            a, b, c, d = x[i], x[i + half], x[i + _TWO * half], x[i + _THREE * half]
            e, f, g, h = x[i + _FOUR * half], x[i + _FIVE * half], x[i + _SIX * half], x[i + _SEVEN * half]
            a, b, c, d, e, f, g, h = a + b, a - b, c + d, c - d, e + f, e - f, g + h, g - h
            a, b, c, d, e, f, g, h = a + c, b + d, a - c, b - d, e + g, f + h, e - g, f - h
            x[i], x[i + half], x[i + _TWO * half], x[i + _THREE * half] = a + e, b + f, c + g, d + h
            x[i + _FOUR * half], x[i + _FIVE * half] = a - e, b - f
            x[i + _SIX * half], x[i + _SEVEN * half] = c - g, d - h
