"""Kernel of subset selection: coins 64 at a time, then resizing of the set, sixteen elements at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Word, Words, allocation, device, kernel
from sfumato.mechanisms.kernels.decisions import (
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
from sfumato.mechanisms.kernels.planes import PlaneThreshold, coins_below, live_lanes, plane_threshold, store
from sfumato.mechanisms.kernels.select import nth_set_bit
from sfumato.mechanisms.kernels.vectors import (
    SIXTEEN,
    count_reached,
    raise_reached,
    store as store_vector,
    vector_at,
    zeros,
)
from sfumato.mechanisms.systems.base import MixtureDraws
from sfumato.mechanisms.systems.subsets import SubsetSelection

__all__ = ["build", "draw_subset", "include", "repairs", "subset_space"]

#: Maximum number of words of a set for which toggling one element after another is fastest.
_SMALL_GROUPS = np.uint64(2)


def build(mechanism: SubsetSelection) -> Kernel:
    """Return the kernel of a mechanism."""
    k = len(mechanism.domain)
    parameters = (
        np.uint64(k),
        np.uint64(mechanism.size),
        *split(mechanism.threshold, 32),
        plane_threshold(mechanism.coin, mechanism.planes),
    )
    mean, variance = repairs(mechanism.system.draws())
    return Kernel.of(mechanism, _run, parameters, auxiliary_mean=mean, auxiliary_variance=variance)


def repairs(draws: MixtureDraws) -> tuple[float, float]:
    """Return approximate mean and variance of a value's auxiliary words: one per surplus or missing coin, one to swap.

    The surplus of the coins is nearly normal, which gives the moments of its absolute value.
    """
    k, probability = draws.values, draws.coin / 2**draws.planes
    bias, variance = abs(k * probability - draws.members), k * probability * (1 - probability)
    mean = bias
    if variance > 0:
        spread = math.sqrt(2 * variance)
        mean = spread / math.sqrt(math.pi) * math.exp(-((bias / spread) ** 2)) + bias * math.erf(bias / spread)
    return mean + 1, variance + bias**2 - mean**2 + 1


@kernel(SubsetSelection.name, allocates=True)
def _run(
    values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[np.uint8], parameters: Any
) -> Any:
    """Write the reports of all values to ``out``; return the number of auxiliary words read."""
    k, size, high, low, coin = parameters
    groups = (k + WORD_BITS - ONE) // WORD_BITS
    chosen, space = np.empty(groups, dtype=np.uint64), subset_space(k)
    position, first = ZERO, ZERO
    for i in range(np.uint64(len(values))):
        forced, position = bernoulli(words[first] >> INDEX_BITS, high, low, INDEX_BITS, auxiliary, position)
        position = draw_subset(chosen, space, k, size, coin, words, first + ONE, auxiliary, position)
        x = np.uint64(values[i])
        if forced and x < k:
            position = include(chosen, groups, x, size, auxiliary, position)
        for group in range(groups):
            store(out, i, group, chosen[group])
        first += ONE + groups * np.uint64(len(coin[0]))
    return position


@allocation
def subset_space(k: Word) -> Any:
    """Return work arrays for ``draw_subset`` of at most k: coins, members before each word, ranks, and their words."""
    groups = (k + WORD_BITS - ONE) // WORD_BITS
    coins, before = np.empty(groups, dtype=np.uint64), np.empty(groups, dtype=np.uint32)
    ranks, places = np.empty(k + SIXTEEN, dtype=np.uint32), np.empty(k + SIXTEEN, dtype=np.uint32)
    return coins, before, ranks, places


@device
def draw_subset(
    chosen: Words,
    space: Any,
    k: Word,
    size: Word,
    coin: PlaneThreshold,
    words: Words,
    first: Word,
    auxiliary: Words,
    position: Word,
) -> Word:
    """Write a uniform subset of ``size`` of k to ``chosen``; return the new auxiliary position."""
    coins = space[0]
    groups, planes = (k + WORD_BITS - ONE) // WORD_BITS, np.uint64(len(coin[0]))
    for group in range(groups):
        coins[group] = coins_below(words, first + group * planes, coin)
    coins[groups - ONE] &= live_lanes(k, groups - ONE)
    count = ZERO
    for group in range(groups):
        chosen[group] = coins[group]
        count += popcount(coins[group])
    # Lanes beyond the domain are absent too, but they come last, so no rank below k - count reaches them.
    if groups > _SMALL_GROUPS:
        inverted, total, repairs = (ZERO, count, count - size) if count >= size else (ONES, k - count, size - count)
        return _toggle_many(chosen, space, groups, inverted, total, repairs, auxiliary, position)
    while count > size:
        position = toggle_one(chosen, groups, ZERO, count, auxiliary, position)
        count -= ONE
    while count < size:
        position = toggle_one(chosen, groups, ONES, k - count, auxiliary, position)
        count += ONE
    return position


@device
def toggle_one(chosen: Words, groups: Word, inverted: Word, total: Word, auxiliary: Words, position: Word) -> Word:
    """Toggle a uniform one of the ``total`` set bits of ``chosen ^ inverted``; return the new auxiliary position."""
    value, position = read(auxiliary, position, INDEX_BITS)
    rank, position = below(value, total, auxiliary, position)
    group = ZERO
    if groups <= _SMALL_GROUPS:
        for _ in range(ONE, groups):  # no early exit: a mispredicted branch takes longer than all the steps
            inside = popcount(chosen[group] ^ inverted)
            beyond = rank >= inside
            rank -= inside if beyond else ZERO
            group += ONE if beyond else ZERO
    else:
        while rank >= popcount(chosen[group] ^ inverted):
            rank -= popcount(chosen[group] ^ inverted)
            group += ONE
    chosen[group] ^= nth_set_bit(chosen[group] ^ inverted, rank)
    return position


@device
def _toggle_many(
    chosen: Words,
    space: Any,
    groups: Word,
    inverted: Word,
    total: Word,
    repairs: Word,
    auxiliary: Words,
    position: Word,
) -> Word:
    """Toggle ``repairs`` bits as ``toggle_one`` does, among the bits of ``coins`` that ``chosen`` still has.

    A rank is drawn among the bits that earlier repairs left. Toggling each bit before the next look-up would make every
    look-up wait for the previous one. So ranks among the bits left are converted to ranks among all bits: ranks from r
    on increase by one for every earlier bit of rank r that was removed.
    """
    coins, before, ranks, places = space
    for drawn in range(repairs):
        value, position = read(auxiliary, position, INDEX_BITS)
        rank, position = below(value, total - drawn, auxiliary, position)
        ranks[drawn] = np.uint32(rank)
    seen = ZERO
    for group in range(groups):
        before[group] = np.uint32(seen)
        seen += popcount(coins[group] ^ inverted)
    last = repairs
    while last > ZERO:  # the last sixteen first, while the earlier ranks are still as drawn
        start = (last - ONE) // SIXTEEN * SIXTEEN
        sixteen = vector_at(ranks, start)
        earlier = last - ONE
        while earlier > start:
            earlier -= ONE
            sixteen = raise_reached(sixteen, np.uint64(ranks[earlier]), earlier - start)
        while earlier > ZERO:
            earlier -= ONE
            sixteen = count_reached(sixteen, sixteen, np.uint64(ranks[earlier]))
        reached = zeros()
        for group in range(ONE, groups):
            reached = count_reached(reached, sixteen, np.uint64(before[group]))
        store_vector(ranks, start, sixteen)
        store_vector(places, start, reached)
        last = start
    for repair in range(repairs):
        place = np.uint64(places[repair])
        chosen[place] ^= nth_set_bit(coins[place] ^ inverted, np.uint64(ranks[repair]) - np.uint64(before[place]))
    return position


@device
def include(chosen: Words, groups: Word, x: Word, size: Word, auxiliary: Words, position: Word) -> Word:
    """Swap a uniform member of the subset for x, unless x is a member; return the new auxiliary position."""
    if not chosen[x // WORD_BITS] >> x % WORD_BITS & ONE:
        position = toggle_one(chosen, groups, ZERO, size, auxiliary, position)
        chosen[x // WORD_BITS] |= ONE << x % WORD_BITS
    return position
