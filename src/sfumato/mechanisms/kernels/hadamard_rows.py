"""Kernel of Hadamard response: a word of 32 or 64 bits per value, with a second word for the block.

The decision is in the high half of the word, the column in the low half.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Word, Words, device
from sfumato.mechanisms.kernels.decisions import (
    INDEX_BITS,
    INDEX_MASK,
    ONE,
    WORD_BITS,
    ZERO,
    below,
    bernoulli,
    half_bits,
    popcount,
    rejection_rate,
    rejections,
    split,
)
from sfumato.mechanisms.kernels.repaired import repaired_kernel
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse

__all__ = ["build", "reciprocal"]

TWO = np.uint64(2)


def build(mechanism: HadamardResponse) -> Kernel:
    """Return the kernel of a mechanism."""
    blocks, rows = mechanism.blocks, mechanism.block_size - 1
    word_bits = mechanism.layout.frame_bits // (1 if blocks == 1 else 2)
    high, low = split(mechanism.threshold, 64 - word_bits // 2)
    as_word = np.dtype(f"u{word_bits // 8}").type  # narrow numbers let the compiler use more vector lanes
    parameters: tuple[Any, ...] = (as_word(high), low, as_word(rows))
    ties = 2.0 ** -(word_bits // 2)
    if blocks == 1:
        return Kernel.of(mechanism, _run_one_block, parameters, word_bits=word_bits, auxiliary_mean=ties)
    parameters += (*reciprocal(rows), np.uint64(blocks), rejections(blocks))
    mean = ties + rejection_rate(blocks)
    return Kernel.of(mechanism, _run_blocks, parameters, word_bits=word_bits, auxiliary_mean=mean)


def reciprocal(divisor: int) -> tuple[np.uint64, np.uint64]:
    """Return (m, s) with x·m >> s = ⌊x/divisor⌋ for 0 ≤ x < 2^31, because vectors can multiply but not divide.

    With s = 31 + ⌈log2 divisor⌉ and m = ⌈2^s/divisor⌉ ≤ 2^32 the error x·(m·divisor - 2^s)/2^s stays below one, because
    m·divisor - 2^s < divisor (Granlund and Montgomery 1994, theorem 4.2). The product x·m fits 63 bits.
    """
    shift = 31 + (divisor - 1).bit_length()
    return np.uint64(-(-(1 << shift) // divisor)), np.uint64(shift)


@device
def _signed(column: Word, row: Word, force: bool) -> Word:
    """Return the column, or its partner of sign +1 if the column is forced and has sign -1."""
    odd = popcount(row & column) & ONE
    return column ^ (row & ~row + ONE if force and odd == ONE else ZERO)


# -- one block -------------------------------------------------------------------------------------------


@device
def _quick_one_block(x: Any, words: Words, i: Word, parameters: Any) -> tuple[Word, bool]:
    """Return the report from the frame alone, and whether it is an exception that needs more bits."""
    high, _, rows = parameters
    word = words[i]
    force = word >> half_bits(word)
    return _signed(word & rows, np.uint64(x) + ONE, force < high), force == high


@device
def _exact_one_block(
    x: Any, words: Words, i: Word, parameters: Any, auxiliary: Words, position: Word
) -> tuple[Word, Word]:
    """Return the report as the scalar sampler does, and the new auxiliary position."""
    high, low, rows = parameters
    word = words[i]
    half = half_bits(word)
    force, position = bernoulli(word >> half, high, low, WORD_BITS - half, auxiliary, position)
    return _signed(word & rows, np.uint64(x) + ONE, force), position


# -- several blocks --------------------------------------------------------------------------------------


@device
def _block_and_row(x: Any, rows: Word, multiplier: Word, shift: Word) -> tuple[Word, Word]:
    """Return the block and the row of a value."""
    block = np.uint64(x) * multiplier >> shift
    return block, np.uint64(x) - block * rows + ONE


@device
def _quick_blocks(x: Any, words: Words, i: Word, parameters: Any) -> tuple[Word, bool]:
    """Return the report from the frame alone, and whether it is an exception that needs more bits."""
    high, _, rows, multiplier, shift, blocks, rejected = parameters
    word, other = words[TWO * i], words[TWO * i + ONE]
    true_block, row = _block_and_row(x, rows, multiplier, shift)
    force, product = word >> half_bits(word), (other & INDEX_MASK) * blocks
    block = true_block if force < high else product >> INDEX_BITS
    report = block * (rows + ONE) + _signed(word & rows, row, force < high)
    return report, (force == high) | (product & INDEX_MASK < rejected)


@device
def _exact_blocks(
    x: Any, words: Words, i: Word, parameters: Any, auxiliary: Words, position: Word
) -> tuple[Word, Word]:
    """Return the report as the scalar sampler does, and the new auxiliary position."""
    high, low, rows, multiplier, shift, blocks, _ = parameters
    word, other = words[TWO * i], words[TWO * i + ONE]
    true_block, row = _block_and_row(x, rows, multiplier, shift)
    half = half_bits(word)
    force, position = bernoulli(word >> half, high, low, WORD_BITS - half, auxiliary, position)
    block, position = below(other & INDEX_MASK, blocks, auxiliary, position)
    return (true_block if force else block) * (rows + ONE) + _signed(word & rows, row, force), position


_run_one_block = repaired_kernel(HadamardResponse.name, _quick_one_block, _exact_one_block)
_run_blocks = repaired_kernel(f"{HadamardResponse.name} (several blocks)", _quick_blocks, _exact_blocks)
