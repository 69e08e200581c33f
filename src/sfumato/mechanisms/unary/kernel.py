"""Kernel of unary encoding: 64 bits of a report at once; lanes that tie with their threshold are finished singly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Words, kernel
from sfumato.mechanisms.kernels.decisions import ONE, WORD_BITS, ZERO, split
from sfumato.mechanisms.kernels.planes import (
    draw_lanes,
    live_lanes,
    plane_threshold,
    store,
)
from sfumato.mechanisms.unary.mechanism import UnaryEncoding

__all__ = ["build"]


def build(mechanism: UnaryEncoding) -> Kernel:
    """Return the kernel of a mechanism."""
    k, planes = len(mechanism.domain), mechanism.layout.planes
    rest = 64 - planes
    true_high, true_low = split(mechanism.own, rest)
    other_high, other_low = split(mechanism.other, rest)
    parameters = (
        np.uint64(k),
        np.uint64(rest),
        (plane_threshold(int(true_high), planes), true_low),
        (plane_threshold(int(other_high), planes), other_low),
    )
    return Kernel.of(mechanism, _run, parameters, auxiliary_mean=k * 2.0**-planes)


@kernel(UnaryEncoding.name)
def _run(
    values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[np.uint8], parameters: Any
) -> Any:
    """Write the reports of all values to ``out``; return the number of auxiliary words read."""
    k, rest, of_true, others = parameters
    groups = (k + WORD_BITS - ONE) // WORD_BITS
    planes = WORD_BITS - rest
    position, first = ZERO, ZERO
    for i in range(np.uint64(len(values))):
        x = np.uint64(values[i])
        for group in range(groups):
            lanes = live_lanes(k, group)
            true_lane = ONE << x % WORD_BITS if group == x // WORD_BITS else ZERO
            bits, position = draw_lanes(words, first, auxiliary, position, rest, lanes, true_lane, of_true, others)
            store(out, i, group, bits)
            first += planes
    return position
