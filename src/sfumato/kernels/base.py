"""What a kernel is: a pure function from one chunk's values and random words to its reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput

__all__ = ["Kernel"]


@dataclass(frozen=True, eq=False)
class Kernel:
    """Makes the reports that a mechanism's scalar sampler makes of the same words.

    ``dtype`` and ``report_shape`` are those of one report: a number, or a row of bytes as on the wire.
    """

    dtype: np.dtype[Any]
    report_shape: tuple[int, ...]
    #: How the main stream is read, and how many such words make a frame.
    word: np.dtype[Any]
    frame_words: int
    function: Callable[..., int]
    parameters: tuple[Any, ...]

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
        count = len(values)
        _check("values", values, np.dtype(np.int64), (count,))
        _check("auxiliary", auxiliary, np.dtype(np.uint64), (len(auxiliary),))
        _check("out", out, self.dtype, (count, *self.report_shape))
        needed = count * self.frame_words * self.word.itemsize
        _check("main", main[:needed], np.dtype(np.uint8), (needed,))
        words = main[:needed].view(self.word)
        used = int(self.function(_read_only(values), _read_only(words), _read_only(auxiliary), out, self.parameters))
        return used if used <= len(auxiliary) else -1


def _check(name: str, array: npt.NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    if array.dtype != dtype or array.shape != shape or not array.flags.c_contiguous:
        got = f"{array.dtype} of shape {array.shape}"
        raise InvalidInput("Kernel.run", name, f"be contiguous {dtype} of shape {shape}", got)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # To numba an array that may be written has another type: without this each mixture would be compiled anew.
    view = array.view()
    view.setflags(write=False)
    return view
