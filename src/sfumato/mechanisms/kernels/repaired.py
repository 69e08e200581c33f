"""Kernels of mechanisms whose decisions seldom need more than their frame: all at once, then the exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.kernels.compile import Words, kernel

__all__ = ["repaired_kernel"]

#: Values that are looked through again for the sake of one exception: few enough that ties at 2^-16 cost little,
#: many enough for the vector loop.
_BLOCK = 1024


def repaired_kernel(name: str, quick: Callable[..., Any], exact: Callable[..., Any]) -> Callable[..., int]:
    """Join the two samplers of a mechanism, both device functions.

    ``quick(x, words, i, parameters)`` gives the report of value number i by its frame alone, and whether it is an
    exception, so that this report may be wrong. It must not branch: the compiler makes a vector loop of it.
    ``exact(…, auxiliary, position)`` then follows the sampler to the letter, for the exceptions in their order.
    """

    @kernel(name)
    def run(
        values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[Any], parameters: Any
    ) -> Any:
        count, position = len(values), np.uint64(0)
        for start in range(0, count, _BLOCK):
            # Unsigned: a signed index may count from the end, and that question keeps a loop from being a vector's.
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
