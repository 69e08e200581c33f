"""Kernels of mechanisms whose decisions seldom need more than their frame: a vector pass, then the exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.kernels.compile import Words, kernel

__all__ = ["repaired_kernel"]

#: Number of values that are scanned again if one of them is an exception; small enough that ties at 2^-16 take little
#: time, large enough for the vector loop.
_BLOCK = 1024


def repaired_kernel(name: str, quick: Callable[..., Any], exact: Callable[..., Any]) -> Callable[..., int]:
    """Return a kernel that joins the two samplers of a mechanism, both device functions.

    ``quick(x, words, i, parameters)`` returns the report of value number i from its frame alone, and whether it is an
    exception, whose report may be wrong. It must not branch, so that the compiler vectorizes the loop.
    ``exact(…, auxiliary, position)`` then follows the scalar sampler exactly, for the exceptions in their order.
    """

    @kernel(name)
    def run(
        values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[Any], parameters: Any
    ) -> Any:
        count, position = len(values), np.uint64(0)
        for start in range(0, count, _BLOCK):
            # Indices are unsigned, because the check for negative indices would prevent vectorization.
            block = range(np.uint64(start), np.uint64(min(start + _BLOCK, count)))
            exceptions = 0
            for i in block:
                out[i], exception = quick(values[i], words, i, parameters)
                exceptions += exception
            if exceptions:
                for i in block:
                    if quick(values[i], words, i, parameters)[1]:
                        out[i], position = exact(values[i], words, i, parameters, auxiliary, position)
        return position

    return run
