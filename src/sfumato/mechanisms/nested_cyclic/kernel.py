"""Kernel of nested cyclic designs: one 64-bit word per value, with two decisions of 16 bits and an index of 32."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Word, Words, device
from sfumato.mechanisms.kernels.decisions import (
    INDEX_BITS,
    INDEX_MASK,
    ONE,
    ZERO,
    below,
    bernoulli,
    rejection_rate,
    rejections,
    split,
)
from sfumato.mechanisms.kernels.hadamard_rows import reciprocal
from sfumato.mechanisms.kernels.repaired import repaired_kernel
from sfumato.mechanisms.nested_cyclic.mechanism import NestedCyclic

__all__ = ["build"]

#: Mask of a field of 16 bits, position of the first such field, and number of bits of a threshold beyond it.
_FIELD_MASK, _FIRST, _REST = np.uint64(2**16 - 1), np.uint64(48), np.uint64(48)
#: Position of the bit that is set in a negative difference.
_SIGN = np.uint64(63)
_TWO = np.uint64(2)


def build(mechanism: NestedCyclic) -> Kernel:
    """Return the kernel of a mechanism."""
    patterns, block_size = mechanism.patterns, mechanism.block_size
    rows, members, choices, counts = [], [], [], []
    for of_status, sets in patterns.tables:
        pattern = np.repeat(np.arange(patterns.count), len(of_status) // patterns.count)
        rows.append(pattern * patterns.blocks << 32 | of_status)
        members.append(sets.ravel())
        choices += [max(sets.shape[1], 1), block_size]
        counts += [len(of_status)] * 2
    bounds = [count * choice for count, choice in zip(counts, choices, strict=True)]
    multipliers, shifts = zip(*map(reciprocal, choices), strict=True)
    # A row for high and forced, high and free, low and forced, low and free.
    kinds = np.array([bounds, [int(rejections(bound)) for bound in bounds], choices, multipliers, shifts], np.uint64)
    parameters = (
        tuple(split(threshold, int(_REST)) for threshold in mechanism.thresholds),
        (np.uint64(patterns.blocks), np.uint64(block_size)),
        np.ascontiguousarray(kinds.T),
        (np.uint64(len(rows[0])), np.uint64(len(members[0]))),
        np.concatenate(rows).astype(np.uint64),
        # One entry at the end, for low blocks with empty sets.
        np.concatenate([*members, [0]]).astype(np.uint32),
        (mechanism.block_of << 32 | mechanism.position_of).astype(np.uint64),
    )
    mean = 2.0**-15 + max(map(rejection_rate, bounds))
    return Kernel.of(mechanism, _run, parameters, auxiliary_mean=mean)


@device
def _mask(bit: Word) -> Word:
    """Return 64 copies of a bit.

    Selecting with masks takes two thirds of the time, because the compiler turns a conditional into a jump, and random
    decisions are not predictable.
    """
    return ZERO - bit


@device
def _difference(number: Word, other: Word, modulus: Word) -> Word:
    """Return the difference of two residues."""
    difference = number - other
    return difference + (modulus & _mask(difference >> _SIGN))


@device
def _report(x: Any, low: Word, free: Word, number: Word, parameters: Any) -> Word:
    """Return the report of a value, from the two decisions (the block is low, the shift is free) and the index."""
    _, (blocks, block_size), kinds, (low_rows, low_members), rows, members, values = parameters
    kind, is_low, is_free = _TWO * low + free, _mask(low), _mask(free)
    value = values[min(np.uint64(x), np.uint64(len(values)) - ONE)]
    row = number * kinds[kind, 3] >> kinds[kind, 4]
    place = number - row * kinds[kind, 2]
    entry = rows[row + (low_rows & is_low)]
    # Of no use if the shift is free, but inside the table.
    member = np.uint64(members[(number & ~is_free) + (low_members & is_low)])
    block_shift = _difference(value >> INDEX_BITS, entry & INDEX_MASK, blocks)
    shift = _difference(value & INDEX_MASK, member, block_size)
    return ((entry >> INDEX_BITS) + block_shift) * block_size + (shift & ~is_free | place & is_free)


@device
def _quick(x: Any, words: Words, i: Word, parameters: Any) -> tuple[Word, bool]:
    """Return the report from the frame alone, and whether it is an exception that needs more bits."""
    ((high_part, _), (in_high, _), (in_low, _)), _, kinds = parameters[:3]
    first, second = words[i] >> _FIRST, words[i] >> INDEX_BITS & _FIELD_MASK
    low = np.uint64(first >= high_part)
    threshold = in_high ^ (in_high ^ in_low) & _mask(low)
    free = np.uint64(second >= threshold)
    kind = _TWO * low + free
    product = (words[i] & INDEX_MASK) * kinds[kind, 0]
    exception = (first == high_part) | (second == threshold) | (product & INDEX_MASK < kinds[kind, 1])
    return _report(x, low, free, product >> INDEX_BITS, parameters), exception


@device
def _exact(x: Any, words: Words, i: Word, parameters: Any, auxiliary: Words, position: Word) -> tuple[Word, Word]:
    """Return the report as the scalar sampler does, and the new auxiliary position."""
    (of_blocks, of_high, of_low), _, kinds = parameters[:3]
    first, second = words[i] >> _FIRST, words[i] >> INDEX_BITS & _FIELD_MASK
    high, position = bernoulli(first, of_blocks[0], of_blocks[1], _REST, auxiliary, position)
    threshold, rest = of_high if high else of_low
    forced, position = bernoulli(second, threshold, rest, _REST, auxiliary, position)
    low, free = ZERO if high else ONE, ZERO if forced else ONE
    number, position = below(words[i] & INDEX_MASK, kinds[_TWO * low + free, 0], auxiliary, position)
    return _report(x, low, free, number, parameters), position


_run = repaired_kernel(NestedCyclic.name, _quick, _exact)
