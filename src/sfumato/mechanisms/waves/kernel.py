"""Kernel of waves: one 64-bit word per value, with the wave, a decision of 20 bits and an index of 32."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Word, Words, device
from sfumato.mechanisms.kernels.decisions import (
    INDEX_BITS,
    INDEX_MASK,
    ZERO,
    below,
    bernoulli,
    rejection_rate,
    rejections,
    split,
)
from sfumato.mechanisms.kernels.repaired import repaired_kernel
from sfumato.mechanisms.waves.mechanism import Waves

__all__ = ["build"]

#: Mask of the decision, and bits of a threshold beyond it.
_DECISION_MASK, _REST = np.uint64(2**20 - 1), np.uint64(44)
#: Number of bits of a word.
_WORD = 64
#: Position of the bit that is set in a negative difference.
_SIGN = np.uint64(63)


def build(mechanism: Waves) -> Kernel:
    """Return the kernel of a mechanism."""
    modulus, rows, starts = mechanism.modulus, [], 0
    for part, shifts in zip(mechanism.parts, mechanism.waves, strict=True):
        size = len(shifts.elements)
        rows.append([*split(part.threshold, int(_REST)), size, int(rejections(size)), starts])
        starts += size
    table = np.repeat(np.arange(len(rows), dtype=np.uint16), mechanism.weights)
    parameters = (
        # The highest bits of a word are the number of an entry; a shift by 64 bits is not defined.
        (np.uint64(_WORD - max(len(table).bit_length() - 1, 1)), np.resize(table, max(len(table), 2))),
        np.array(rows, np.uint64),
        (np.uint64(modulus), rejections(modulus)),
        np.concatenate([shifts.elements for shifts in mechanism.waves]).astype(np.uint32),
    )
    bounds = [modulus, *(len(shifts.elements) for shifts in mechanism.waves)]
    mean = 2.0**-20 + max(map(rejection_rate, bounds))
    return Kernel.of(mechanism, _run, parameters, auxiliary_mean=mean)


@device
def _report(x: Any, wave: Word, free: Word, number: Word, parameters: Any) -> Word:
    """Return the report of a value, from the wave, the decision (the shift is free) and the index."""
    _, rows, (modulus, _), members = parameters
    is_free = ZERO - free
    # Of no use if the shift is free, but inside the table.
    member = np.uint64(members[rows[wave, 4] + (number & ~is_free)])
    difference = np.uint64(x) - member
    shift = difference + (modulus & ZERO - (difference >> _SIGN))
    return wave * modulus + (shift & ~is_free | number & is_free)


@device
def _quick(x: Any, words: Words, i: Word, parameters: Any) -> tuple[Word, bool]:
    """Return the report from the frame alone, and whether it is an exception that needs more bits."""
    (highest, table), rows, (modulus, rejected), _ = parameters
    wave = np.uint64(table[words[i] >> highest])
    decision = words[i] >> INDEX_BITS & _DECISION_MASK
    free = np.uint64(decision >= rows[wave, 0])
    is_free = ZERO - free
    product = (words[i] & INDEX_MASK) * (rows[wave, 2] ^ (rows[wave, 2] ^ modulus) & is_free)
    least = rows[wave, 3] ^ (rows[wave, 3] ^ rejected) & is_free
    exception = (decision == rows[wave, 0]) | (product & INDEX_MASK < least)
    return _report(x, wave, free, product >> INDEX_BITS, parameters), exception


@device
def _exact(x: Any, words: Words, i: Word, parameters: Any, auxiliary: Words, position: Word) -> tuple[Word, Word]:
    """Return the report as the scalar sampler does, and the new auxiliary position."""
    (highest, table), rows, (modulus, _), _ = parameters
    wave = np.uint64(table[words[i] >> highest])
    decision = words[i] >> INDEX_BITS & _DECISION_MASK
    forced, position = bernoulli(decision, rows[wave, 0], rows[wave, 1], _REST, auxiliary, position)
    free = np.uint64(not forced)
    bound = rows[wave, 2] if forced else modulus
    number, position = below(words[i] & INDEX_MASK, bound, auxiliary, position)
    return _report(x, wave, free, number, parameters), position


_run = repaired_kernel(Waves.name, _quick, _exact)
