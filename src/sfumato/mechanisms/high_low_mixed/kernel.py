"""Kernel of subset selection with two sizes: a coin chooses the size, then coins and resizing as for one size."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.high_low_mixed.mechanism import HighLowMixedSubsets
from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Words, kernel
from sfumato.mechanisms.kernels.decisions import INDEX_BITS, INDEX_MASK, ONE, ONES, WORD_BITS, ZERO, bernoulli, split
from sfumato.mechanisms.kernels.planes import plane_threshold
from sfumato.mechanisms.kernels.subsets import draw_subset, include, repairs, subset_space
from sfumato.mechanisms.partitioned.kernel import store_parted, value_tables

__all__ = ["build"]


def build(mechanism: HighLowMixedSubsets) -> Kernel:
    """Return the kernel of a mechanism."""
    draws = [part.system.draws() for part in mechanism.parts]
    thresholds = [split(part.threshold, 32) for part in mechanism.parts]
    coins = [plane_threshold(each.coin, mechanism.planes) for each in draws]
    columns = (
        # A part without members has a single output, the set of all sensitive values.
        [each.members for each in draws],
        [high for high, _ in thresholds],
        [low for _, low in thresholds],
        [equal for _, equal in coins],
        [planes for planes, _ in coins],
    )
    parameters = (
        value_tables(mechanism),
        split(mechanism.weight, 32),
        tuple(np.array(column, dtype=np.uint64) for column in columns),
        np.uint64(draws[0].values),
        np.uint64(mechanism.layout.frame_bits // 64),
        np.uint64(mechanism.body_bits),
        np.uint64(mechanism.bits),
    )
    needs = [repairs(each) for each in draws if each.members]
    mean, variance = max(mean for mean, _ in needs), max(variance for _, variance in needs)
    return Kernel.of(mechanism, _run, parameters, auxiliary_mean=mean, auxiliary_variance=variance)


@kernel(HighLowMixedSubsets.name, allocates=True)
def _run(
    values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[np.uint8], parameters: Any
) -> Any:
    """Write the reports of all values to ``out``; return the number of auxiliary words read."""
    (numbers, open_numbers), weight, sizes, s, frame_words, body_bits, bits = parameters
    members, highs, lows, equals, masks = sizes
    last = np.uint64(len(numbers) - 1)
    body, space = np.empty((bits + WORD_BITS - ONE) // WORD_BITS, dtype=np.uint64), subset_space(bits)
    position, first = ZERO, ZERO
    for i in range(np.uint64(len(values))):
        x = min(np.uint64(values[i]), last)  # a value outside the domain must not read outside the tables
        header, number = words[first], numbers[x]
        second, position = bernoulli(header & INDEX_MASK, weight[0], weight[1], INDEX_BITS, auxiliary, position)
        part = ONE if second else ZERO
        forced, position = bernoulli(header >> INDEX_BITS, highs[part], lows[part], INDEX_BITS, auxiliary, position)
        body[:] = ZERO
        if members[part] != ZERO:
            coin = (masks[part], equals[part])
            position = draw_subset(body, space, s, members[part], coin, words, first + ONE, auxiliary, position)
        head = part
        if forced and number == ONES:
            body[:] = ZERO
            head = np.uint64(len(members)) + open_numbers[x]
        elif forced and members[part] != ZERO:
            position = include(body, np.uint64(len(body)), number, members[part], auxiliary, position)
        store_parted(out, i, body, head, body_bits)
        first += frame_words
    return position
