"""Kernel of alias tables: one word of 32 or 64 bits per value, with the decision above and the bin below."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Word, Words, device
from sfumato.mechanisms.kernels.decisions import ONE, ONES, WORD_BITS, bernoulli, half_bits
from sfumato.mechanisms.kernels.repaired import repaired_kernel
from sfumato.mechanisms.table.alias import TOTAL_BITS
from sfumato.mechanisms.table.mechanism import TableMechanism

__all__ = ["build"]


def build(mechanism: TableMechanism) -> Kernel:
    """Return the kernel of a mechanism."""
    table = mechanism.alias_table
    word_bits = mechanism.layout.frame_bits
    word, half = np.dtype(f"u{word_bits // 8}"), word_bits // 2
    rest = TOTAL_BITS - table.bin_bits - half
    # One entry has the width of a word: the threshold's high part above, the alias below. The high part of a
    # probability of one does not fit, so it is the greatest number that fits; a tie with it is decided exactly.
    thresholds = table.thresholds.ravel().astype(np.uint64)
    high = np.minimum(thresholds >> np.uint64(rest), np.uint64((1 << half) - 1))
    entries = (high << np.uint64(half) | table.aliases.ravel().astype(np.uint64)).astype(word)
    sizes = (np.uint64(size) for size in (len(mechanism.domain) - 1, table.bin_bits, rest))
    parameters = (entries, thresholds, *sizes)
    return Kernel.of(mechanism, _run, parameters, word_bits=word_bits, auxiliary_mean=2.0**-half)


@device
def _cell(x: Any, word: Word, last_row: Word, bin_bits: Word) -> tuple[Word, Word]:
    """Return the bin and the position of its entry; a value beyond the last row stays inside the table."""
    bin_ = word & (ONE << bin_bits) - ONE
    return bin_, (min(np.uint64(x), last_row) << bin_bits) + bin_


@device
def _quick(x: Any, words: Words, i: Word, parameters: Any) -> tuple[Word, bool]:
    """Return the report from the frame alone, and whether it is an exception that needs more bits."""
    entries, _, last_row, bin_bits, _ = parameters
    word = words[i]
    half = half_bits(word)
    bin_, cell = _cell(x, word, last_row, bin_bits)
    entry = entries[cell]
    stay, high = word >> half, entry >> half
    return bin_ if stay < high else entry & ONES >> WORD_BITS - half, stay == high


@device
def _exact(x: Any, words: Words, i: Word, parameters: Any, auxiliary: Words, position: Word) -> tuple[Word, Word]:
    """Return the report as the scalar sampler does, and the new auxiliary position."""
    entries, thresholds, last_row, bin_bits, rest = parameters
    word = words[i]
    half = half_bits(word)
    bin_, cell = _cell(x, word, last_row, bin_bits)
    threshold = thresholds[cell]
    low = threshold & (ONE << rest) - ONE
    stay, position = bernoulli(word >> half, threshold >> rest, low, rest, auxiliary, position)
    return bin_ if stay else entries[cell] & ONES >> WORD_BITS - half, position


_run = repaired_kernel(TableMechanism.name, _quick, _exact)
