"""Kernels of mechanisms whose decisions seldom need more than their frame: a vector pass, then the exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.kernels.compile import Words, kernel

__all__ = ["looked_up_kernel", "repaired_kernel"]

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


def looked_up_kernel(
    name: str, place: Callable[..., Any], quick: Callable[..., Any], exact: Callable[..., Any]
) -> Callable[..., int]:
    """Return a kernel as ``repaired_kernel`` does, whose quick sampler needs an entry of a table.

    The table is the last parameter. ``place(words, i, parameters)`` returns the place of the entry, always inside the
    table, and ``quick`` takes the entry as its last argument. The lookup is a separate loop: the compiler cannot prove
    that reports are not written to the table, so it would not vectorize a loop that does both.
    """

    @kernel(name, allocates=True)
    def run(
        values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[Any], parameters: Any
    ) -> Any:
        count, position, table = len(values), np.uint64(0), parameters[-1]
        entries = np.empty(_BLOCK, np.uint64)
        for start in range(0, count, _BLOCK):
            first, length = np.uint64(start), range(np.uint64(min(_BLOCK, count - start)))
            for j in length:
                entries[j] = place(words, first + j, parameters)
            for j in length:
                entries[j] = table[entries[j]]
            exceptions = 0
            for j in length:
                i = first + j
                out[i], exception = quick(values[i], words, i, parameters, entries[j])
                exceptions += exception
            if exceptions:
                for j in length:
                    i = first + j
                    if quick(values[i], words, i, parameters, entries[j])[1]:
                        out[i], position = exact(values[i], words, i, parameters, auxiliary, position)
        return position

    return run
