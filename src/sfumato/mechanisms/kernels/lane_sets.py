"""Sets of lanes: a range of the bits of an array of words is a set, which is resized and swapped element by element."""

from __future__ import annotations

from sfumato.mechanisms.kernels.compile import Word, Words, device
from sfumato.mechanisms.kernels.decisions import INDEX_BITS, ONE, ONES, WORD_BITS, ZERO, below, popcount, read
from sfumato.mechanisms.kernels.select import nth_set_bit

__all__ = ["fill", "has", "lanes_between", "resize", "swap_in"]


@device
def lanes_between(group: Word, start: Word, stop: Word) -> Word:
    """Return the lanes of a word for positions from ``start`` to before ``stop``; at least one must be in the word."""
    first = group * WORD_BITS
    lanes = ONES << start - first if start > first else ONES
    return lanes if stop - first >= WORD_BITS else lanes & (ONE << stop - first) - ONE


@device
def has(bits: Words, position: Word) -> bool:
    """Return whether a bit is set."""
    return bool(bits[position // WORD_BITS] >> position % WORD_BITS & ONE)


@device
def fill(bits: Words, start: Word, stop: Word, value: Word) -> None:
    """Set a range of bits to the bits of ``value``, which is all ones or all zeros."""
    for group in range(start // WORD_BITS, (stop - ONE) // WORD_BITS + ONE):
        lanes = lanes_between(group, start, stop)
        bits[group] = bits[group] & ~lanes | value & lanes


@device
def resize(bits: Words, start: Word, stop: Word, size: Word, auxiliary: Words, position: Word) -> Word:
    """Add or remove uniform elements until the set in this range has its size; return the new auxiliary position."""
    count = ZERO
    for group in range(start // WORD_BITS, (stop - ONE) // WORD_BITS + ONE):
        count += popcount(bits[group] & lanes_between(group, start, stop))
    while count > size:
        position = _toggle_one(bits, start, stop, ZERO, count, auxiliary, position)
        count -= ONE
    while count < size:
        position = _toggle_one(bits, start, stop, ONES, stop - start - count, auxiliary, position)
        count += ONE
    return position


@device
def swap_in(bits: Words, start: Word, stop: Word, lane: Word, size: Word, auxiliary: Words, position: Word) -> Word:
    """Swap a uniform member for the bit ``lane``, unless it is a member; return the new auxiliary position."""
    if not has(bits, lane):
        position = _toggle_one(bits, start, stop, ZERO, size, auxiliary, position)
        bits[lane // WORD_BITS] |= ONE << lane % WORD_BITS
    return position


@device
def _toggle_one(
    bits: Words, start: Word, stop: Word, inverted: Word, count: Word, auxiliary: Words, position: Word
) -> Word:
    """Toggle one of the ``count`` bits of the range that differ from ``inverted``, drawn uniformly."""
    value, position = read(auxiliary, position, INDEX_BITS)
    rank, position = below(value, count, auxiliary, position)
    group = start // WORD_BITS
    candidates = (bits[group] ^ inverted) & lanes_between(group, start, stop)
    while rank >= popcount(candidates):
        rank -= popcount(candidates)
        group += ONE
        candidates = (bits[group] ^ inverted) & lanes_between(group, start, stop)
    bits[group] ^= nth_set_bit(candidates, rank)
    return position
