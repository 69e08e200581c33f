"""Patterns of nested cyclic designs: a set of high blocks, and a set of positions in every block, from a seed.

Blocks are numbered modulo B and positions in a block modulo b. A pattern is a set of g high blocks, with a set of d
positions in each of them and of d' positions in each low block. All shifts of all patterns, by blocks and by positions,
are the outputs of a mechanism. Privacy needs only the sizes of these sets. That they look random serves the estimate.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers
from sfumato.mechanisms.split_mix import ranks, split_mix_keys

__all__ = ["HIGH_IN", "HIGH_OUT", "LOW_IN", "LOW_OUT", "Patterns"]

#: The four levels of likelihood: by a value's block, high or low, and by its position, in the set or out.
HIGH_IN, HIGH_OUT, LOW_IN, LOW_OUT = range(4)

#: Maximum number of outputs in a batch, unless a single pattern has more.
_BATCH = 2**18


@dataclass(frozen=True)
class Patterns:
    """Several patterns over B blocks of b positions, derived from a seed.

    Parameters
    ----------
    count
        Number m of patterns.
    blocks
        Number B of blocks.
    block_size
        Number b of positions in a block.
    high
        Number g of high blocks in a pattern.
    sizes
        The numbers d and d' of positions in the sets of high and of low blocks.
    seed
        Seed of the generator SplitMix64, which gives the block β of pattern e the key number e·B + β, and position i in
        it the key number m·B + (e·B + β)·b + i. The g blocks of a pattern with the least keys are high. The set of a
        block holds the positions with its least keys.
    """

    count: int
    blocks: int
    block_size: int
    high: int
    sizes: tuple[int, int]
    seed: int

    @property
    def outputs(self) -> int:
        """Number m·B·b of shifted patterns."""
        return self.count * self.blocks * self.block_size

    @functools.cached_property
    def levels(self) -> npt.NDArray[np.uint8]:
        """The level of every pattern, block and position, shape (m, B, b)."""
        shape = (self.count, self.blocks, self.block_size)
        keys = split_mix_keys(self.seed, self.count * self.blocks + self.outputs)
        of_blocks, of_positions = np.split(keys, [self.count * self.blocks])
        is_high = ranks(of_blocks.reshape(shape[:2])) < self.high
        size = np.where(is_high, *self.sizes)[:, :, None]
        is_out = ranks(of_positions.reshape(shape)) >= size
        return np.asarray(np.where(is_high, HIGH_IN, LOW_IN)[:, :, None] + is_out, np.uint8)

    def batches(self) -> Iterator[npt.NDArray[np.uint8]]:
        """Yield ``levels`` in pieces of several patterns, which bound the memory of transforms."""
        count = max(1, _BATCH // (self.blocks * self.block_size))
        for start in range(0, self.count, count):
            yield self.levels[start : start + count]

    @functools.cached_property
    def tables(self) -> tuple[tuple[Integers, Integers], tuple[Integers, Integers]]:
        """The tables of the sampler for high and for low blocks.

        Each is a list of all blocks of this status, pattern by pattern in ascending order, and the set of each listed
        block, a row per block.
        """
        is_high = self.levels[:, :, 0] <= HIGH_OUT
        return self._tables(is_high, HIGH_IN, self.sizes[0]), self._tables(~is_high, LOW_IN, self.sizes[1])

    def _tables(self, chosen: npt.NDArray[np.bool_], level: int, size: int) -> tuple[Integers, Integers]:
        """Return the chosen blocks and their sets."""
        rows = self.levels[chosen]
        members = np.nonzero(rows == level)[1].reshape(len(rows), size)
        return np.nonzero(chosen)[1].astype(np.int64), members.astype(np.int64)
