"""Type aliases of arrays."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "Integers", "Words"]

#: Doubles of any shape.
Floats: TypeAlias = npt.NDArray[np.float64]
#: Counts, indices and codes of values.
Integers: TypeAlias = npt.NDArray[np.int64]
#: Random 64-bit words, and the integers that kernels compare with them.
Words: TypeAlias = npt.NDArray[np.uint64]
