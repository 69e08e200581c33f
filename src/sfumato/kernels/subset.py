"""Subset selection: coins 64 at a time, then the set's size is mended element by element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.kernels.base import Kernel
from sfumato.kernels.compile import Word, Words, device, kernel
from sfumato.kernels.decisions import (
    INDEX_BITS,
    ONE,
    ONES,
    WORD_BITS,
    ZERO,
    below,
    bernoulli,
    popcount,
    read,
    split,
)
from sfumato.kernels.planes import PlaneThreshold, lanes_below, live_lanes, plane_threshold, store
from sfumato.kernels.select import nth_set_bit
from sfumato.mechanisms import SubsetSelection

__all__ = ["build", "draw_subset", "include", "repairs"]


def build(mechanism: SubsetSelection) -> Kernel:
    """The kernel of one mechanism."""
    k = len(mechanism.domain)
    parameters = (
        np.uint64(k),
        np.uint64(mechanism.size),
        *split(mechanism.threshold, 32),
        plane_threshold(mechanism.coin, mechanism.planes),
        np.uint64(mechanism.planes),
    )
    mean, variance = repairs(mechanism)
    return Kernel.of(mechanism, _run, parameters, auxiliary_mean=mean, auxiliary_variance=variance)


def repairs(mechanism: SubsetSelection) -> tuple[float, float]:
    """Mean and variance, about, of a value's auxiliary words: one for each coin too many or too few, one to swap."""
    k, share = len(mechanism.domain), mechanism.coin / 2**mechanism.planes
    variance = k * share * (1 - share)
    return math.sqrt(variance) + abs(k * share - mechanism.size) + 1, variance


@kernel(SubsetSelection.name)
def _run(
    values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[np.uint8], parameters: Any
) -> Any:
    k, size, high, low, coin, planes = parameters
    groups = (k + WORD_BITS - ONE) // WORD_BITS
    chosen = np.empty(groups, dtype=np.uint64)
    position, first = ZERO, ZERO
    for i in range(np.uint64(len(values))):
        forced, position = bernoulli(words[first] >> INDEX_BITS, high, low, INDEX_BITS, auxiliary, position)
        position = draw_subset(chosen, k, size, coin, words, first + ONE, planes, auxiliary, position)
        x = np.uint64(values[i])
        if forced and x < k:
            position = include(chosen, x, size, auxiliary, position)
        for group in range(groups):
            store(out, i, group, chosen[group])
        first += ONE + groups * planes
    return position


@device
def draw_subset(
    chosen: Words,
    k: Word,
    size: Word,
    coin: PlaneThreshold,
    words: Words,
    first: Word,
    planes: Word,
    auxiliary: Words,
    position: Word,
) -> Word:
    """A uniform subset of ``size`` of k, from coins and repairs, written to ``chosen``; give the new position."""
    count = ZERO
    for group in range((k + WORD_BITS - ONE) // WORD_BITS):
        coins, _ = lanes_below(words, first, coin, ZERO, coin)
        chosen[group] = coins & live_lanes(k, group)
        count += popcount(chosen[group])
        first += planes
    while count > size:
        position = _toggle_one(chosen, ZERO, count, auxiliary, position)
        count -= ONE
    while count < size:
        # Lanes beyond the domain are absent too, but come last: no rank below k - count reaches them.
        position = _toggle_one(chosen, ONES, k - count, auxiliary, position)
        count += ONE
    return position


@device
def include(chosen: Words, x: Word, size: Word, auxiliary: Words, position: Word) -> Word:
    """Swap a uniform member of the subset for x, if x is none; give the new position."""
    if not chosen[x // WORD_BITS] >> x % WORD_BITS & ONE:
        position = _toggle_one(chosen, ZERO, size, auxiliary, position)
        chosen[x // WORD_BITS] |= ONE << x % WORD_BITS
    return position


@device
def _toggle_one(chosen: Words, inverted: Word, count: Word, auxiliary: Words, position: Word) -> Word:
    """Toggle one of the ``count`` set bits of ``chosen ^ inverted``, drawn uniformly; give the new position."""
    value, position = read(auxiliary, position, INDEX_BITS)
    rank, position = below(value, count, auxiliary, position)
    group = ZERO
    bits = chosen[group] ^ inverted
    while rank >= popcount(bits):
        rank -= popcount(bits)
        group += ONE
        bits = chosen[group] ^ inverted
    chosen[group] ^= nth_set_bit(bits, rank)
    return position
