"""Decisions of memoized kernels, which read the auxiliary stream alone, and the mixtures that they draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.mechanisms.cyclic.kernel import shifted
from sfumato.mechanisms.kernels.compile import Word, Words, device
from sfumato.mechanisms.kernels.decisions import (
    INDEX_BITS,
    INDEX_MASK,
    ONE,
    ONES,
    WORD_BITS,
    ZERO,
    below,
    popcount,
    read,
)
from sfumato.mechanisms.local_hashing.kernel import bucket_of
from sfumato.mechanisms.subset.kernel import toggle_one

__all__ = ["draw_index", "draw_set", "extend_set", "flip", "keep_parameters", "keeps_answer"]

#: How the decision between the permanent answer and a blank report reads its bits.
_ALWAYS, _NEVER, _BITS, _BELOW, _BELOW_WIDE = (np.uint64(number) for number in range(5))


def keep_parameters(numerator: int, denominator: int) -> tuple[np.uint64, ...]:
    """Return how the decision reads, its bits or number of choices, the numerator, and the rejected words."""
    if numerator == denominator:
        return _ALWAYS, ONE, ONE, ZERO
    if numerator == 0:
        return _NEVER, ONE, ZERO, ZERO
    if denominator & denominator - 1 == 0:
        return _BITS, np.uint64(denominator.bit_length() - 1), np.uint64(numerator), ZERO
    mode = _BELOW if denominator <= 1 << 32 else _BELOW_WIDE
    return mode, np.uint64(denominator), np.uint64(numerator), np.uint64(2**64 % denominator)


@device
def flip(high: Word, low: Word, auxiliary: Words, position: Word) -> tuple[bool, Word]:
    """Return true with probability threshold/2^64, for the halves of the threshold."""
    word, position = read(auxiliary, position, WORD_BITS)
    above = word >> INDEX_BITS
    return above < high or (above == high and word & INDEX_MASK < low), position


@device
def _number(m: Word, auxiliary: Words, position: Word) -> tuple[Word, Word]:
    """Return a uniform number below m."""
    value, position = read(auxiliary, position, INDEX_BITS)
    return below(value, m, auxiliary, position)


@device
def _high_product(first: Word, second: Word) -> Word:
    """Return the high half of a product of two words."""
    a, b = first >> INDEX_BITS, first & INDEX_MASK
    c, d = second >> INDEX_BITS, second & INDEX_MASK
    middle = a * d + (b * d >> INDEX_BITS)
    other = b * c + (middle & INDEX_MASK)
    return a * c + (middle >> INDEX_BITS) + (other >> INDEX_BITS)


@device
def keeps_answer(keep: Any, auxiliary: Words, position: Word) -> tuple[bool, Word]:
    """Return whether a report keeps the permanent answer."""
    mode, choices, numerator, rejected = keep
    if mode <= _NEVER:  # both are certain, so nothing is read
        return mode == _ALWAYS, position
    if mode == _BITS:
        bits, position = read(auxiliary, position, choices)
        return bits < numerator, position
    if mode == _BELOW:
        number, position = _number(choices, auxiliary, position)
        return number < numerator, position
    word, position = read(auxiliary, position, WORD_BITS)
    while word * choices < rejected:
        word, position = read(auxiliary, position, WORD_BITS)
    return _high_product(word, choices) < numerator, position


@device
def draw_index(x: Word, high: Word, low: Word, index: Any, auxiliary: Words, position: Word) -> tuple[Word, Word]:
    """Return a report of an index mixture, as its scalar sampler draws it.

    ``index`` has the numbers of the mixture: whether it hashes, columns, choices, shifts, modulus, and the start of its
    shifts in a table. A value of all ones is outside the mixture, and is returned if the report is forced.
    """
    hashes, columns, choices, shifts, modulus, start, table = index
    if hashes != ZERO:
        chosen, position = _number(choices, auxiliary, position)
        forced, position = flip(high, low, auxiliary, position)
        if forced:
            return chosen * columns + bucket_of(chosen, x, columns), position
        bucket, position = _number(columns, auxiliary, position)
        return chosen * columns + bucket, position
    forced, position = flip(high, low, auxiliary, position)
    if shifts != ZERO:
        if forced and x == ONES:
            return x, position
        number, position = _number(shifts if forced else choices, auxiliary, position)
        return shifted(x, table[start + number], modulus) if forced else number, position
    if columns == ZERO:
        other, position = _number(choices, auxiliary, position)
        return x if forced else other, position
    column, position = _number(columns, auxiliary, position)
    block = ZERO
    if choices > ONE:
        block, position = _number(choices, auxiliary, position)
    if forced:
        if x == ONES:
            return x, position
        block = x // (columns - ONE)
        row = x % (columns - ONE) + ONE
        if popcount(row & column) & ONE:
            column ^= row & ~row + ONE
    return block * columns + column, position


@device
def draw_set(chosen: Words, k: Word, subset: Any, auxiliary: Words, position: Word) -> Word:
    """Write a uniform set to ``chosen``: a coin per value, then repairs; return the new auxiliary position."""
    size, coin, planes = subset
    groups = (k + WORD_BITS - ONE) // WORD_BITS
    for group in range(groups):
        chosen[group] = ZERO
    count = ZERO
    for i in range(k):
        bits, position = read(auxiliary, position, planes)
        if bits < coin:
            chosen[i // WORD_BITS] |= ONE << i % WORD_BITS
            count += ONE
    while count > size:
        position = toggle_one(chosen, groups, ZERO, count, auxiliary, position)
        count -= ONE
    return extend_set(chosen, k, count, size, auxiliary, position)


@device
def extend_set(chosen: Words, k: Word, count: Word, size: Word, auxiliary: Words, position: Word) -> Word:
    """Add uniform members to a set of ``count`` until it has ``size``; return the new auxiliary position."""
    groups = (k + WORD_BITS - ONE) // WORD_BITS
    while count < size:
        position = toggle_one(chosen, groups, ONES, k - count, auxiliary, position)
        count += ONE
    return position
