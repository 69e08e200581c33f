"""Kernels inside kernels: the compiled sampler of a component, on its part of the frames of a chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Words
from sfumato.mechanisms.registry import kernel_for

__all__ = ["ComponentRun", "joined_kernel"]

_NO_WORDS = np.empty(0, np.uint64)


def joined_kernel(mechanism: Mechanism, components: Sequence[Mechanism], function: Callable[..., int]) -> Kernel:
    """Return a kernel whose function gets the mechanism and the kernels of its components as parameters."""
    kernels = tuple(kernel for component in components if (kernel := kernel_for(component)) is not None)
    assert len(kernels) == len(components)
    return Kernel.of(
        mechanism,
        function,
        (mechanism, kernels),
        word_bits=32,
        auxiliary_mean=sum(kernel.auxiliary_mean for kernel in kernels),
        auxiliary_variance=sum(kernel.auxiliary_variance for kernel in kernels),
    )


@dataclass(frozen=True)
class ComponentRun:
    """The kernel of a component with the coordinates, frames and reports of a chunk."""

    kernel: Kernel
    values: npt.NDArray[np.int64]
    words: Words
    reports: npt.NDArray[Any]

    @classmethod
    def of(cls, kernel: Kernel, values: npt.NDArray[np.int64], frames: npt.NDArray[np.uint8]) -> ComponentRun:
        """Return the run of a kernel on the component's part of the frames, with a row of bytes per value."""
        words = np.ascontiguousarray(frames).reshape(-1).view(kernel.word)
        values = values.view()
        values.setflags(write=False)  # the type for which kernels are compiled
        return cls(kernel, values, words, np.empty(len(values), kernel.dtype))

    def run(self, start: int, stop: int, auxiliary: Words) -> int:
        """Write the reports of some values; return the number of auxiliary words that they need."""
        width = self.kernel.frame_bytes // self.kernel.word.itemsize
        words, reports = self.words[start * width : stop * width], self.reports[start:stop]
        return int(self.kernel.function(self.values[start:stop], words, auxiliary, reports, self.kernel.parameters))

    def exceptions(self, start: int, stop: int) -> list[int]:
        """Write the reports of some values; return the values that need auxiliary words, whose reports are wrong."""
        if start == stop or self.run(start, stop, _NO_WORDS) == 0:
            return []
        if stop - start == 1:
            return [start]
        middle = (start + stop) // 2
        return self.exceptions(start, middle) + self.exceptions(middle, stop)
