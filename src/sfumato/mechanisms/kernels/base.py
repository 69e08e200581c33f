"""What a kernel is: a pure function from one chunk's values and random words to its reports."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Mechanism

__all__ = ["Kernel"]

_VALUE, _BYTE, _WORD = np.dtype(np.int64), np.dtype(np.uint8), np.dtype(np.uint64)


@dataclass(frozen=True, eq=False)
class Kernel:
    """Makes the reports that a mechanism's scalar sampler would make of the same words."""

    #: Type and shape of one report: a number, or a row of bytes as the report format encodes it.
    dtype: np.dtype[Any]
    report_shape: tuple[int, ...]
    frame_bytes: int
    #: As what the function reads the main stream.
    word: np.dtype[Any]
    function: Callable[..., int]
    parameters: tuple[Any, ...]
    #: Mean and variance, about, of the number of auxiliary words that one value needs.
    auxiliary_mean: float
    auxiliary_variance: float

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        function: Callable[..., int],
        parameters: tuple[Any, ...],
        *,
        word_bits: int = 64,
        auxiliary_mean: float,
        auxiliary_variance: float | None = None,
    ) -> Kernel:
        """A mechanism's kernel. Unless given, the variance is that of rare events: the mean."""
        return cls(
            dtype=mechanism.report_format.dtype,
            report_shape=mechanism.report_format.shape,
            frame_bytes=mechanism.layout.frame_bits // 8,
            word=np.dtype(f"u{word_bits // 8}"),
            function=function,
            parameters=parameters,
            auxiliary_mean=auxiliary_mean,
            auxiliary_variance=auxiliary_mean if auxiliary_variance is None else auxiliary_variance,
        )

    def auxiliary_words(self, count: int) -> int:
        """Enough auxiliary words for nearly every chunk of ``count`` values; ``run`` says if they were too few."""
        return math.ceil(count * self.auxiliary_mean + 6 * math.sqrt(count * self.auxiliary_variance)) + 16

    def run(
        self,
        values: npt.NDArray[np.int64],
        main: npt.NDArray[np.uint8],
        auxiliary: npt.NDArray[np.uint64],
        out: npt.NDArray[Any],
    ) -> int:
        """Write the reports of one chunk to ``out``; give the number of auxiliary words that were read.

        -1 means that there were too few of them: run the chunk again with more; ``out`` holds nothing of use.
        Values must lie in the domain. One that does not gets a report without meaning, but no memory is touched
        that is not given here.
        """
        values, out = self.checked(values, out)
        frames = main[: len(values) * self.frame_bytes]
        _check("main", frames, _BYTE, (len(values) * self.frame_bytes,))
        _check("auxiliary", auxiliary, _WORD, (len(auxiliary),))
        return self.run_checked(values, frames.view(self.word), auxiliary, out)

    def checked(
        self, values: npt.NDArray[np.int64], out: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Values and room for their reports, which ``run_checked`` takes; so may be those of many chunks at once."""
        _check("values", values, _VALUE, (len(values),))
        _check("out", out, self.dtype, (len(values), *self.report_shape))
        # To numba an array that must not be written has another type. Of these only the values may come so or so:
        # without this view every kernel would be compiled for both.
        values = values.view()
        values.setflags(write=False)
        return values, out

    def run_checked(
        self,
        values: npt.NDArray[np.int64],
        frames: npt.NDArray[Any],
        auxiliary: npt.NDArray[np.uint64],
        out: npt.NDArray[Any],
    ) -> int:
        """As ``run``: pieces of what is ``checked``, the frames of these values in words, 64-bit words."""
        used = int(self.function(values, frames, auxiliary, out, self.parameters))
        return used if used <= len(auxiliary) else -1


def _check(name: str, array: npt.NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    if array.dtype != dtype or array.shape != shape or not array.flags.c_contiguous:
        got = f"{array.dtype} of shape {array.shape}"
        raise InvalidInput("Kernel.run", name, f"be contiguous {dtype} of shape {shape}", got)
