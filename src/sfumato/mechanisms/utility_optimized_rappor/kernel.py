"""Kernel of utility-optimized RAPPOR: unary encoding in which only sensitive lanes and the true lane can be set."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Words, kernel
from sfumato.mechanisms.kernels.decisions import ONE, WORD_BITS, ZERO, split
from sfumato.mechanisms.kernels.planes import draw_lanes, plane_threshold, store
from sfumato.mechanisms.utility_optimized_rappor.mechanism import UtilityOptimizedRappor

__all__ = ["build"]


def build(mechanism: UtilityOptimizedRappor) -> Kernel:
    """Return the kernel of a mechanism."""
    k, planes = len(mechanism.domain), mechanism.layout.planes
    rest = 64 - planes
    flags = np.zeros(-(-k // 64) * 64, dtype=bool)
    flags[:k] = mechanism.is_sensitive
    sensitive = np.packbits(flags, bitorder="little").view("<u8").astype(np.uint64)

    def threshold(number: int) -> tuple[Any, np.uint64]:
        high, low = split(number, rest)
        return plane_threshold(int(high), planes), low

    thresholds = [threshold(number) for number in (mechanism.own, mechanism.harmless, mechanism.other)]
    parameters = (np.uint64(k), np.uint64(rest), sensitive, *thresholds)
    mean = (float(mechanism.is_sensitive.sum()) + 1) * 2.0**-planes
    return Kernel.of(mechanism, _run, parameters, auxiliary_mean=mean)


@kernel(UtilityOptimizedRappor.name)
def _run(
    values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[np.uint8], parameters: Any
) -> Any:
    """Write the reports of all values to ``out``; return the number of auxiliary words read."""
    k, rest, sensitive, of_sensitive, of_harmless, others = parameters
    planes = WORD_BITS - rest
    position, first = ZERO, ZERO
    for i in range(np.uint64(len(values))):
        x = np.uint64(values[i])
        for group in range(np.uint64(len(sensitive))):
            true_lane = ONE << x % WORD_BITS if group == x // WORD_BITS and x < k else ZERO
            of_true = of_harmless if true_lane & ~sensitive[group] != ZERO else of_sensitive
            # Any other lane is certain to be zero and reads no random bits.
            lanes = sensitive[group] | true_lane
            bits, position = draw_lanes(words, first, auxiliary, position, rest, lanes, true_lane, of_true, others)
            store(out, i, group, bits)
            first += planes
    return position
