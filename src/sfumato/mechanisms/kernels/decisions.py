"""The rules of ``docs/words-to-decisions.md`` in compiled code: auxiliary reads, ``bernoulli``, ``below``.

Every number is a uint64, because numba converts a mixture of signed and unsigned numbers to doubles. Functions that
read the auxiliary stream take the position of its next word, and return the position after their reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from sfumato.mechanisms.kernels.compile import Word, Words, device, instruction

__all__ = [
    "INDEX_BITS",
    "INDEX_MASK",
    "ONE",
    "ONES",
    "WORD_BITS",
    "ZERO",
    "below",
    "bernoulli",
    "half_bits",
    "popcount",
    "read",
    "rejection_rate",
    "rejections",
    "split",
]

ZERO, ONE = np.uint64(0), np.uint64(1)
WORD_BITS = np.uint64(64)
ONES = np.uint64(2**64 - 1)
#: Width in bits of the fields that ``below`` reads if its bound is not a power of two.
INDEX_BITS = np.uint64(32)
INDEX_MASK = np.uint64(2**32 - 1)


# -- instructions that numba does not name ---------------------------------------------------------------


@instruction
def popcount(typing_context: Any, word: Any) -> Any:  # noqa: ARG001
    """Return the number of set bits."""
    return word(word), lambda _context, builder, _signature, arguments: builder.ctpop(arguments[0])


@instruction
def half_bits(typing_context: Any, word: Any) -> Any:  # noqa: ARG001
    """Return half the width of a word, as a compile-time constant, so that one kernel serves two widths."""
    return types.uint64(word), lambda context, *_: context.get_constant(types.uint64, word.bitwidth // 2)


# -- decisions -------------------------------------------------------------------------------------------


@device
def read(auxiliary: Words, position: Word, width: Word) -> tuple[Word, Word]:
    """Return the ``width`` lowest bits of the next word; past the end they are ones, which ``below`` never rejects."""
    word = auxiliary[position] if position < np.uint64(len(auxiliary)) else ONES
    return word & ONES >> WORD_BITS - width, position + ONE


@device
def bernoulli(value: Word, high: Word, low: Word, rest: Word, auxiliary: Words, position: Word) -> tuple[bool, Word]:
    """Return whether a field is below a threshold of ``rest`` more bits, given as its high and low part."""
    if value != high:
        return value < high, position
    if low == ZERO:
        return False, position
    bits, position = read(auxiliary, position, rest)
    return bits < low, position


@device
def below(value: Word, m: Word, auxiliary: Words, position: Word) -> tuple[Word, Word]:
    """Return a uniform number below m, from a field of 32 bits."""
    # 2^32 mod m is less than m, so the slow division is needed only if the quick test allows a rejection.
    while value * m & INDEX_MASK < m and value * m & INDEX_MASK < (ONE << INDEX_BITS) % m:
        value, position = read(auxiliary, position, INDEX_BITS)
    return value * m >> INDEX_BITS, position


# -- parameters of decisions -----------------------------------------------------------------------------


def split(threshold: int, rest: int) -> tuple[np.uint64, np.uint64]:
    """Return the high and the low part of a threshold; the high part of probability one is 2^(width of the field)."""
    return np.uint64(threshold >> rest), np.uint64(threshold & (1 << rest) - 1)


def rejection_rate(m: int) -> float:
    """Return an upper bound on the mean number of words that ``below(m)`` reads again."""
    return 2 * float(rejections(m)) / 2**32  # at least r/(1-r), for a rejection probability r ≤ 1/2


def rejections(m: int) -> np.uint64:
    """Return how many of the 2^32 values of a field ``below(m)`` rejects."""
    return np.uint64(2**32 % m)
