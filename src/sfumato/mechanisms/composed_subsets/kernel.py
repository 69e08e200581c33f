"""Kernel of composed subsets: the coins of both sets 64 at a time, then resizing of both sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Words, kernel
from sfumato.mechanisms.kernels.decisions import INDEX_BITS, INDEX_MASK, ONE, WORD_BITS, ZERO, bernoulli, split
from sfumato.mechanisms.kernels.lane_sets import lanes_between, resize, swap_in
from sfumato.mechanisms.kernels.planes import lanes_below, plane_threshold, store
from sfumato.mechanisms.kernels.subsets import repairs

__all__ = ["build"]


def build(mechanism: ComposedSubsets) -> Kernel:
    """Return the kernel of a mechanism."""
    parts = (mechanism.values, mechanism.labels)
    parameters = (
        tuple(
            (
                np.uint64(len(part.domain)),
                np.uint64(part.size),
                *split(part.threshold, 32),
                plane_threshold(part.coin, part.planes),
            )
            for part in parts
        ),
        np.uint64(mechanism.planes),
        mechanism.block_of.astype(np.uint64),
    )
    mean, variance = map(sum, zip(*(repairs(part.system.draws()) for part in parts), strict=True))
    return Kernel.of(mechanism, _run, parameters, auxiliary_mean=mean, auxiliary_variance=variance)


@kernel(ComposedSubsets.name, allocates=True)
def _run(
    values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[np.uint8], parameters: Any
) -> Any:
    """Write the reports of all values to ``out``; return the number of auxiliary words read."""
    (of_values, of_blocks), planes, block_of = parameters
    k, size, high, low, coin = of_values
    blocks, block_size, block_high, block_low, block_coin = of_blocks
    lanes = k + blocks
    groups = (lanes + WORD_BITS - ONE) // WORD_BITS
    bits = np.empty(groups, dtype=np.uint64)
    position, first = ZERO, ZERO
    for i in range(np.uint64(len(values))):
        header = words[first]
        forced, position = bernoulli(header >> INDEX_BITS, high, low, INDEX_BITS, auxiliary, position)
        block_forced, position = bernoulli(header & INDEX_MASK, block_high, block_low, INDEX_BITS, auxiliary, position)
        first += ONE
        for group in range(groups):
            of_block = lanes_between(group, k, lanes) if (group + ONE) * WORD_BITS > k else ZERO
            flipped, _ = lanes_below(words, first, coin, of_block, block_coin)
            bits[group] = flipped & lanes_between(group, ZERO, lanes)
            first += planes
        x = np.uint64(values[i])
        position = resize(bits, ZERO, k, size, auxiliary, position)
        if forced and x < k:
            position = swap_in(bits, ZERO, k, x, size, auxiliary, position)
        position = resize(bits, k, lanes, block_size, auxiliary, position)
        if block_forced and x < k:
            position = swap_in(bits, k, lanes, k + block_of[x], block_size, auxiliary, position)
        for group in range(groups):
            store(out, i, group, bits[group])
    return position
