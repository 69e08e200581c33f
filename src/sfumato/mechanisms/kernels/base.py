"""Kernels: compiled functions from the values and random words of one chunk to its reports."""

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
    """Compiled sampler that returns the same reports as a mechanism's scalar sampler for the same words."""

    #: Type and shape of one report: a number, or a row of bytes as the report format encodes it.
    dtype: np.dtype[Any]
    report_shape: tuple[int, ...]
    frame_bytes: int
    #: Type of the words in which the function reads the main stream.
    word: np.dtype[Any]
    function: Callable[..., int]
    parameters: tuple[Any, ...]
    #: Approximate mean and variance of the number of auxiliary words that one value needs.
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
        """Return a mechanism's kernel; the default variance is that of rare events, equal to the mean."""
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
        """Return a number of auxiliary words that suffices for nearly every chunk of ``count`` values."""
        return math.ceil(count * self.auxiliary_mean + 6 * math.sqrt(count * self.auxiliary_variance)) + 16

    def run(
        self,
        values: npt.NDArray[np.int64],
        main: npt.NDArray[np.uint8],
        auxiliary: npt.NDArray[np.uint64],
        out: npt.NDArray[Any],
    ) -> int:
        """Write the reports of one chunk to ``out``; return the number of auxiliary words that were read.

        A result of -1 means that there were too few auxiliary words: run the chunk again with more, because the content
        of ``out`` is not usable. Values must lie in the domain. A value outside it gets a meaningless report, but no
        memory outside the arguments is accessed.
        """
        values, out = self.checked(values, out)
        frames = main[: len(values) * self.frame_bytes]
        _check("main", frames, _BYTE, (len(values) * self.frame_bytes,))
        _check("auxiliary", auxiliary, _WORD, (len(auxiliary),))
        return self.run_checked(values, frames.view(self.word), auxiliary, out)

    def checked(
        self, values: npt.NDArray[np.int64], out: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Return values and their output array, checked for ``run_checked``; they may belong to many chunks at once."""
        _check("values", values, _VALUE, (len(values),))
        _check("out", out, self.dtype, (len(values), *self.report_shape))
        # Numba has a separate type for read-only arrays. Only the values may be read-only or writable, so without this
        # view every kernel would be compiled for both types.
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
        """Run on pieces of ``checked`` arrays, without further checks; frames are in words."""
        used = int(self.function(values, frames, auxiliary, out, self.parameters))
        return used if used <= len(auxiliary) else -1


def _check(name: str, array: npt.NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Raise InvalidInput if an array has another type, shape or memory layout."""
    if array.dtype != dtype or array.shape != shape or not array.flags.c_contiguous:
        got = f"{array.dtype} of shape {array.shape}"
        raise InvalidInput("Kernel.run", name, f"be a contiguous array of {dtype} with shape {shape}", got)
