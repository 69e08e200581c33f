"""Unary encoding: 64 bits of a report at once; lanes that equal their threshold are finished one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.kernels.base import Kernel
from sfumato.kernels.compile import Words, kernel
from sfumato.kernels.decisions import ONE, ONES, WORD_BITS, ZERO, read, split
from sfumato.kernels.planes import lanes_below, live_lanes, plane_threshold, store
from sfumato.mechanisms import UnaryEncoding

__all__ = ["build"]


def build(mechanism: UnaryEncoding) -> Kernel:
    """The kernel of one mechanism."""
    k, planes = len(mechanism.domain), mechanism.layout.planes
    rest = 64 - planes
    own_high, own_low = split(mechanism.own, rest)
    other_high, other_low = split(mechanism.other, rest)
    parameters = (
        np.uint64(k),
        np.uint64(rest),
        (plane_threshold(int(own_high), planes), own_low),
        (plane_threshold(int(other_high), planes), other_low),
    )
    frame_words = mechanism.layout.frame_bits // 64
    return Kernel(np.dtype(np.uint8), (-(-k // 8),), np.dtype(np.uint64), frame_words, _run, parameters)


@kernel(UnaryEncoding.name)
def _run(
    values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[np.uint8], parameters: Any
) -> Any:
    k, rest, (own_threshold, own_low), (other_threshold, other_low) = parameters
    groups = (k + WORD_BITS - ONE) // WORD_BITS
    planes = WORD_BITS - rest
    position, first = ZERO, ZERO
    for i in range(len(values)):
        x = np.uint64(values[i])
        for group in range(groups):
            lanes = live_lanes(k, group)
            bits, ties = lanes_below(words, first, other_threshold)
            ties = ties & lanes if other_low != ZERO else ZERO
            own = ZERO
            if x // WORD_BITS == group:
                own = ONE << x % WORD_BITS
                own_bits, own_ties = lanes_below(words, first, own_threshold)
                bits = bits & ~own | own_bits & own
                ties = ties & ~own | (own_ties & own if own_low != ZERO else ZERO)
            while ties != ZERO:
                lane = ties & ~ties + ONE
                drawn, position = read(auxiliary, position, rest)
                if drawn < (own_low if lane == own else other_low):
                    bits |= lane
                ties ^= lane
            store(out[i], group, bits & lanes)
            first += planes
    return position
