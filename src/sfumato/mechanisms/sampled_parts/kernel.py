"""Kernel of sampled parts: the kernels of the parts on the values whose part is reached."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.draws import BitDraws
from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Words
from sfumato.mechanisms.kernels.components import ComponentRun, joined_kernel
from sfumato.mechanisms.sampled_parts.mechanism import SampledParts

__all__ = ["build"]


def build(mechanism: SampledParts) -> Kernel:
    """Return the kernel of a mechanism."""
    return joined_kernel(mechanism, mechanism.parts, _run)


def _run(values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[Any], parameters: Any) -> int:
    """Write the reports of all values to ``out``; return the number of auxiliary words read.

    Few values need auxiliary words. Their reports are drawn again by the scalar sampler, one value at a time.
    """
    mechanism, kernels = parameters
    frames = words.view(np.uint8).reshape(len(values), -1)
    products = words.reshape(len(values), -1)[:, 0].astype(np.uint64) * np.uint64(mechanism.total)
    rejected = (products & np.uint64(2**32 - 1)) < np.uint64(2**32 % mechanism.total)
    places = (products >> np.uint64(32)).astype(np.int64)
    chosen = np.searchsorted(np.cumsum(mechanism.weights), places, side="right")
    coordinates, shape = np.unravel_index(values, mechanism.domain.shape), mechanism.domain.shape
    exceptions = set(np.flatnonzero(rejected).tolist())
    for number, kernel in enumerate(kernels):
        reached = np.flatnonzero(chosen >= number)
        axes, first = mechanism.axes[number], mechanism.frame_offsets[number] // 8
        places = np.ravel_multi_index([coordinates[axis] for axis in axes], [shape[axis] for axis in axes])
        run = ComponentRun.of(kernel, places[reached], frames[reached, first : first + kernel.frame_bytes])
        exceptions.update(reached[run.exceptions(0, len(reached))].tolist())
        is_last = chosen[reached] == number
        out[reached[is_last]] = run.reports[is_last].astype(out.dtype) + out.dtype.type(mechanism.offsets[number])
    position = 0

    def read(width: int) -> int:
        """Return the next auxiliary bits; ones past the end, where the chunk is run again with more words."""
        nonlocal position
        word = int(auxiliary[position]) if position < len(auxiliary) else -1
        position += 1
        return word & (1 << width) - 1

    for i in sorted(exceptions):
        frame = int.from_bytes(frames[i].tobytes(), "little")
        out[i] = mechanism.sample(int(values[i]), BitDraws(read, mechanism.layout, frame))
        if position > len(auxiliary):
            break
    return position
