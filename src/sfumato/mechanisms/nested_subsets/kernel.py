"""Kernel of nested subsets: coins 64 at a time, then resizing of the set of blocks and of the set of each block."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Word, Words, device, kernel
from sfumato.mechanisms.kernels.decisions import (
    INDEX_BITS,
    INDEX_MASK,
    ONE,
    ONES,
    WORD_BITS,
    ZERO,
    bernoulli,
    popcount,
    split,
)
from sfumato.mechanisms.kernels.lane_sets import fill, has, lanes_between, resize, swap_in, swap_out
from sfumato.mechanisms.kernels.planes import lanes_below, live_lanes, plane_threshold
from sfumato.mechanisms.nested_subsets.mechanism import NestedSubsets

__all__ = ["build"]

_BYTE_BITS = np.uint64(8)


def build(mechanism: NestedSubsets) -> Kernel:
    """Return the kernel of a mechanism."""
    rank = np.empty(len(mechanism.order), np.uint64)
    rank[mechanism.order] = np.arange(len(rank))
    parameters = (
        (np.uint64(mechanism.blocks), np.uint64(mechanism.block_size)),
        (np.uint64(mechanism.high), *(np.uint64(size) for size in mechanism.sizes)),
        tuple(split(threshold, 32) for threshold in mechanism.thresholds),
        tuple(plane_threshold(coin, mechanism.planes) for coin in mechanism.coins),
        np.uint64(mechanism.planes),
        mechanism.order.astype(np.uint64),
        rank,
    )
    mean, variance = _repairs(mechanism)
    return Kernel.of(mechanism, _run, parameters, auxiliary_mean=mean, auxiliary_variance=variance)


def _repairs(mechanism: NestedSubsets) -> tuple[float, float]:
    """Return mean and variance, or slightly more, of the auxiliary words that one value needs."""
    blocks, of_blocks, *of_sets = mechanism.blocks, *(coin / 2**mechanism.planes for coin in mechanism.coins)
    variance = blocks * of_blocks * (1 - of_blocks)
    moved = math.sqrt(variance) + abs(blocks * of_blocks - mechanism.high)
    mean = moved + 2
    for count, probability, size in zip(
        (mechanism.high, blocks - mechanism.high), of_sets, mechanism.sizes, strict=True
    ):
        if size:
            spread = mechanism.block_size * probability * (1 - probability)
            mean += count * (math.sqrt(spread) + abs(mechanism.block_size * probability - size))
            variance += count * spread
    # A block whose status changes after its values' coins were flipped needs additional repairs.
    step = abs(of_sets[0] - of_sets[1]) * mechanism.block_size
    return mean + moved * step, variance * (1 + step**2)


@kernel(NestedSubsets.name, allocates=True)
def _run(
    values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[np.uint8], parameters: Any
) -> Any:
    """Write the reports of all values to ``out``; return the number of auxiliary words read."""
    (blocks, block_size), (high_size, in_high, in_low), thresholds, coins, planes, order, rank = parameters
    (block_threshold, high_threshold, low_threshold), (block_coin, high_coin, low_coin) = thresholds, coins
    k = blocks * block_size
    lanes = blocks + k
    groups = (lanes + WORD_BITS - ONE) // WORD_BITS
    bits = np.empty(groups, dtype=np.uint64)
    in_high_blocks = np.empty(groups, dtype=np.uint64)
    position, first = ZERO, ZERO
    for i in range(np.uint64(len(values))):
        x = np.uint64(values[i])
        inside = x < k
        true_rank = rank[x] if inside else ZERO
        true_block = true_rank // block_size
        high, position = _decide(words[first] >> INDEX_BITS, block_threshold, auxiliary, position)
        threshold = high_threshold if high else low_threshold
        forced, position = _decide(words[first] & INDEX_MASK, threshold, auxiliary, position)
        first += ONE
        _flip_blocks(bits, in_high_blocks, blocks, block_size, block_coin, words, first, planes)
        for group in range(blocks // WORD_BITS, groups):
            flipped, _ = lanes_below(words, first + group * planes, low_coin, in_high_blocks[group], high_coin)
            bits[group] |= flipped & lanes_between(group, blocks, lanes)
        first += groups * planes
        position = resize(bits, ZERO, blocks, high_size, auxiliary, position)
        if inside and high:
            position = swap_in(bits, ZERO, blocks, true_block, high_size, auxiliary, position)
        elif inside:
            position = swap_out(bits, ZERO, blocks, true_block, high_size, auxiliary, position)
        for block in range(blocks):
            start = blocks + block * block_size
            stop = start + block_size
            size = in_high if has(bits, block) else in_low
            if size == ZERO:
                fill(bits, start, stop, ZERO)
            else:
                position = resize(bits, start, stop, size, auxiliary, position)
                if forced and inside and block == true_block:
                    position = swap_in(bits, start, stop, blocks + true_rank, size, auxiliary, position)
        _write(out, i, bits, blocks, k, order)
    return position


@device
def _decide(value: Word, threshold: Any, auxiliary: Words, position: Word) -> tuple[bool, Word]:
    """Return a Bernoulli decision and the new auxiliary position."""
    high, low = threshold
    return bernoulli(value, high, low, INDEX_BITS, auxiliary, position)


@device
def _flip_blocks(
    bits: Words,
    in_high_blocks: Words,
    blocks: Word,
    block_size: Word,
    coin: Any,
    words: Words,
    first: Word,
    planes: Word,
) -> None:
    """Write the coins of the blocks, followed by zeros, and the lanes of values whose block's coin is high."""
    for group in range(np.uint64(len(bits))):
        bits[group] = ZERO
        in_high_blocks[group] = ZERO
    for group in range((blocks + WORD_BITS - ONE) // WORD_BITS):
        flipped, _ = lanes_below(words, first + group * planes, coin, ZERO, coin)
        bits[group] = flipped & live_lanes(blocks, group)
    for block in range(blocks):
        if has(bits, block):
            start = blocks + block * block_size
            fill(in_high_blocks, start, start + block_size, ONES)


@device
def _write(out: npt.NDArray[np.uint8], i: Word, bits: Words, blocks: Word, k: Word, order: Words) -> None:
    """Write row i: the bits of the values in domain order, then the bits of the blocks."""
    for byte in range(np.uint64(out.shape[1])):
        out[i, byte] = np.uint8(0)
    for group in range(np.uint64(len(bits))):
        left = bits[group]
        while left != ZERO:
            lane = group * WORD_BITS + popcount((left & ~left + ONE) - ONE)
            place = k + lane if lane < blocks else order[lane - blocks]
            out[i, place // _BYTE_BITS] |= np.uint8(ONE << place % _BYTE_BITS)
            left &= left - ONE
