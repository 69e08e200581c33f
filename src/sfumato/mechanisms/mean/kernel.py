"""Kernels of the mechanisms for a mean."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from sfumato.mechanisms.base import Mechanism
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
from sfumato.mechanisms.kernels.repaired import looked_up_kernel, repaired_kernel
from sfumato.mechanisms.mean.geometric import TruncatedGeometric
from sfumato.mechanisms.mean.one_bit import OneBit
from sfumato.mechanisms.mean.shifted_bins import ShiftedBins
from sfumato.mechanisms.table.alias import TOTAL_BITS

__all__ = ["build"]

TWO = np.uint64(2)


@functools.singledispatch
def build(mechanism: Mechanism) -> Kernel:
    """Return the kernel of a mechanism."""
    raise NotImplementedError(mechanism.name)


# -- one bit: a word of 32 bits per value ------------------------------------------------------------------------


@build.register
def _(mechanism: OneBit) -> Kernel:
    """Return the kernel of one bit."""
    thresholds = np.array([mechanism.threshold(x) for x in range(len(mechanism.domain))], np.uint64)
    parameters = (np.uint64(len(thresholds) - 1), thresholds)
    return Kernel.of(mechanism, _run_one_bit, parameters, word_bits=32, auxiliary_mean=2.0**-32)


@device
def _quick_one_bit(x: Any, words: Words, i: Word, parameters: Any) -> tuple[Word, bool]:
    """Return the report from the frame alone, and whether it is an exception that needs more bits."""
    last, thresholds = parameters
    high = thresholds[min(np.uint64(x), last)] >> INDEX_BITS
    word = np.uint64(words[i])
    return np.uint64(word < high), word == high


@device
def _exact_one_bit(
    x: Any, words: Words, i: Word, parameters: Any, auxiliary: Words, position: Word
) -> tuple[Word, Word]:
    """Return the report as the scalar sampler does, and the new auxiliary position."""
    last, thresholds = parameters
    threshold = thresholds[min(np.uint64(x), last)]
    bit, position = bernoulli(
        np.uint64(words[i]), threshold >> INDEX_BITS, threshold & INDEX_MASK, INDEX_BITS, auxiliary, position
    )
    return np.uint64(bit), position


_run_one_bit = repaired_kernel(OneBit.name, _quick_one_bit, _exact_one_bit)


# -- bins at a random offset: two words of 64 bits per value, with a decision above and an index below ----------


@build.register
def _(mechanism: ShiftedBins) -> Kernel:
    """Return the kernel of shifted bins."""
    first, rest = max(mechanism.first_offsets, 1), mechanism.width - mechanism.first_offsets
    classes = [
        (np.uint64(count), rejections(count), *split(threshold, 32), np.uint64(bins), rejections(bins))
        for count, threshold, bins in zip((first, rest), mechanism.thresholds, mechanism.bins, strict=True)
    ]
    sizes = np.uint64(mechanism.width), np.uint64(mechanism.first_offsets)
    parameters = (*split(mechanism.share, 32), *sizes, *reciprocal(mechanism.width), *classes)
    mean = 2.0**-31 + max(rejection_rate(count) for count in (first, rest)) + max(map(rejection_rate, mechanism.bins))
    return Kernel.of(mechanism, _run_shifted_bins, parameters, auxiliary_mean=mean)


@device
def _binned(x: Any, offset: Word, width: Word, multiplier: Word, shift: Word) -> Word:
    """Return the bin of a value."""
    return (np.uint64(x) + width - ONE - offset) * multiplier >> shift


@device
def _quick_shifted_bins(x: Any, words: Words, i: Word, parameters: Any) -> tuple[Word, bool]:
    """Return the report from the frame alone, and whether it is an exception that needs more bits."""
    share, _, width, start, multiplier, shift, of_first, of_rest = parameters
    word, other = words[TWO * i], words[TWO * i + ONE]
    is_first = word >> INDEX_BITS < share
    count, rejected = (of_first[0], of_first[1]) if is_first else (of_rest[0], of_rest[1])
    high, bins, rejected_bins = (
        (of_first[2], of_first[4], of_first[5]) if is_first else (of_rest[2], of_rest[4], of_rest[5])
    )
    drawn, drawn_bin = (word & INDEX_MASK) * count, (other & INDEX_MASK) * bins
    offset = (drawn >> INDEX_BITS) + (ZERO if is_first else start)
    keep = other >> INDEX_BITS
    bin_ = _binned(x, offset, width, multiplier, shift) if keep < high else drawn_bin >> INDEX_BITS
    exception = (
        (word >> INDEX_BITS == share)
        | (drawn & INDEX_MASK < rejected)
        | (keep == high)
        | (drawn_bin & INDEX_MASK < rejected_bins)
    )
    return offset + width * bin_, exception


@device
def _exact_shifted_bins(
    x: Any, words: Words, i: Word, parameters: Any, auxiliary: Words, position: Word
) -> tuple[Word, Word]:
    """Return the report as the scalar sampler does, and the new auxiliary position."""
    share, share_low, width, start, multiplier, shift, of_first, of_rest = parameters
    word, other = words[TWO * i], words[TWO * i + ONE]
    is_first, position = bernoulli(word >> INDEX_BITS, share, share_low, INDEX_BITS, auxiliary, position)
    count, _, high, low, bins, _ = of_first if is_first else of_rest
    offset, position = below(word & INDEX_MASK, count, auxiliary, position)
    offset += ZERO if is_first else start
    keep, position = bernoulli(other >> INDEX_BITS, high, low, INDEX_BITS, auxiliary, position)
    bin_, position = below(other & INDEX_MASK, bins, auxiliary, position)
    if keep:
        bin_ = _binned(x, offset, width, multiplier, shift)
    return offset + width * bin_, position


_run_shifted_bins = repaired_kernel(ShiftedBins.name, _quick_shifted_bins, _exact_shifted_bins)


# -- geometric noise: a word of 64 bits per value, with the decision above and the bin of an alias table below ----


@build.register
def _(mechanism: TruncatedGeometric) -> Kernel:
    """Return the kernel of geometric noise."""
    table = mechanism.alias_table
    rest = TOTAL_BITS - table.bin_bits - 32
    thresholds = table.thresholds.ravel().astype(np.uint64)
    # The high part of a probability of one does not fit, so it is the greatest number that fits.
    high = np.minimum(thresholds >> np.uint64(rest), INDEX_MASK)
    entries = high << INDEX_BITS | table.aliases.ravel().astype(np.uint64)
    sizes = (np.uint64(size) for size in (len(mechanism.domain) - 1, table.bins - 1, rest))
    parameters = (*sizes, thresholds, entries)
    return Kernel.of(mechanism, _run_geometric, parameters, auxiliary_mean=2.0**-32)


@device
def _cut_off(x: Any, noise: Word, last: Word) -> Word:
    """Return the report for noise that is counted from -last."""
    total = np.uint64(x) + noise
    return min(max(total, last) - last, last)


@device
def _place(words: Words, i: Word, parameters: Any) -> Word:
    """Return the bin of the alias table."""
    return words[i] & parameters[1]


@device
def _quick_geometric(x: Any, words: Words, i: Word, parameters: Any, entry: Word) -> tuple[Word, bool]:
    """Return the report from the frame alone, and whether it is an exception that needs more bits."""
    last, mask = parameters[0], parameters[1]
    stay, high = words[i] >> INDEX_BITS, entry >> INDEX_BITS
    return _cut_off(x, words[i] & mask if stay < high else entry & INDEX_MASK, last), stay == high


@device
def _exact_geometric(
    x: Any, words: Words, i: Word, parameters: Any, auxiliary: Words, position: Word
) -> tuple[Word, Word]:
    """Return the report as the scalar sampler does, and the new auxiliary position."""
    last, mask, rest, thresholds, entries = parameters
    bin_ = words[i] & mask
    threshold = thresholds[bin_]
    low = threshold & (ONE << rest) - ONE
    stay, position = bernoulli(words[i] >> INDEX_BITS, threshold >> rest, low, rest, auxiliary, position)
    return _cut_off(x, bin_ if stay else entries[bin_] & INDEX_MASK, last), position


_run_geometric = looked_up_kernel(TruncatedGeometric.name, _place, _quick_geometric, _exact_geometric)
