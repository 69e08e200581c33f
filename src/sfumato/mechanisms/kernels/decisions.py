"""The rules of ``docs/words-to-decisions.md`` in compiled code: auxiliary reads, ``bernoulli``, ``below``.

Every number is a uint64: numba would turn a mixture of signed and unsigned ones into doubles. What reads the
auxiliary stream takes the position of the next word there, and gives the position after its reads.
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
#: ``below`` reads fields of this many bits, wherever its bound is not a power of two.
INDEX_BITS = np.uint64(32)
INDEX_MASK = np.uint64(2**32 - 1)


# -- instructions that numba does not name ---------------------------------------------------------------


@instruction
def popcount(typing_context: Any, word: Any) -> Any:  # noqa: ARG001
    """How many bits are set."""
    return word(word), lambda _context, builder, _signature, arguments: builder.ctpop(arguments[0])


@instruction
def half_bits(typing_context: Any, word: Any) -> Any:  # noqa: ARG001
    """Half the width of a word: a constant to the compiler, so that one kernel serves two widths at full speed."""
    return types.uint64(word), lambda context, *_: context.get_constant(types.uint64, word.bitwidth // 2)


# -- decisions -------------------------------------------------------------------------------------------


@device
def read(auxiliary: Words, position: Word, width: Word) -> tuple[Word, Word]:
    """The ``width`` lowest bits of the next word; past the end ones, which ``below`` never rejects."""
    word = auxiliary[position] if position < np.uint64(len(auxiliary)) else ONES
    return word & ONES >> WORD_BITS - width, position + ONE


@device
def bernoulli(value: Word, high: Word, low: Word, rest: Word, auxiliary: Words, position: Word) -> tuple[bool, Word]:
    """Whether a field is below a threshold of ``rest`` more bits, split in its high and low part."""
    if value != high:
        return value < high, position
    if low == ZERO:
        return False, position
    bits, position = read(auxiliary, position, rest)
    return bits < low, position


@device
def below(value: Word, m: Word, auxiliary: Words, position: Word) -> tuple[Word, Word]:
    """A uniform number below m, from a field of 32 bits."""
    # 2^32 mod m is less than m: the slow division is needed only where the quick test allows a rejection.
    while value * m & INDEX_MASK < m and value * m & INDEX_MASK < (ONE << INDEX_BITS) % m:
        value, position = read(auxiliary, position, INDEX_BITS)
    return value * m >> INDEX_BITS, position


# -- their parameters ------------------------------------------------------------------------------------


def split(threshold: int, rest: int) -> tuple[np.uint64, np.uint64]:
    """The high and the low part of a threshold. The high part of a probability of one is 2^(width of the field)."""
    return np.uint64(threshold >> rest), np.uint64(threshold & (1 << rest) - 1)


def rejection_rate(m: int) -> float:
    """At least the mean number of words that ``below(m)`` reads again."""
    return 2 * float(rejections(m)) / 2**32  # r/(1-r) at most, for a rejection's probability r ≤ ½


def rejections(m: int) -> np.uint64:
    """How many of the 2^32 values of a field ``below(m)`` rejects."""
    return np.uint64(2**32 % m)
