"""Unary encoding: 64 bits of a report at once; lanes that equal their threshold are finished one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Words, kernel
from sfumato.mechanisms.kernels.decisions import ONE, ONES, WORD_BITS, ZERO, split
from sfumato.mechanisms.kernels.planes import blend, finish_ties, lanes_below, live_lanes, plane_threshold, store
from sfumato.mechanisms.unary.mechanism import UnaryEncoding

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
    return Kernel.of(mechanism, _run, parameters, auxiliary_mean=k * 2.0**-planes)


@kernel(UnaryEncoding.name)
def _run(
    values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[np.uint8], parameters: Any
) -> Any:
    k, rest, (own_threshold, own_low), (other_threshold, other_low) = parameters
    groups = (k + WORD_BITS - ONE) // WORD_BITS
    planes = WORD_BITS - rest
    # A threshold without a low part is decided at once.
    own_tie = ONES if own_low != ZERO else ZERO
    others_tie = ONES if other_low != ZERO else ZERO
    position, first = ZERO, ZERO
    for i in range(np.uint64(len(values))):
        x = np.uint64(values[i])
        for group in range(groups):
            lanes = live_lanes(k, group)
            own = ONE << x % WORD_BITS if group == x // WORD_BITS else ZERO
            bits, ties = lanes_below(words, first, other_threshold, own, own_threshold)
            ties &= lanes & blend(others_tie, own, own_tie)
            bits, position = finish_ties(auxiliary, position, rest, bits, ties, other_low, own, own_low)
            store(out, i, group, bits & lanes)
            first += planes
    return position
