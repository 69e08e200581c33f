"""Kernel of products: the kernels of the factors on the coordinates, each with its part of the frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers
from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Words
from sfumato.mechanisms.kernels.components import ComponentRun, joined_kernel
from sfumato.mechanisms.product.mechanism import ProductMechanism

__all__ = ["build"]


def build(mechanism: ProductMechanism) -> Kernel:
    """Return the kernel of a mechanism."""
    return joined_kernel(mechanism, mechanism.factors, _run)


def _run(values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[Any], parameters: Any) -> int:
    """Write the reports of all values to ``out``; return the number of auxiliary words read.

    The scalar sampler reads the auxiliary words value by value. Few values need any, so every factor's kernel first
    runs without them. The exceptions are then drawn again, one value at a time and in order.
    """
    mechanism, kernels = parameters
    frames = words.view(np.uint8).reshape(len(values), -1)
    factors, offset = [], 0
    for kernel, coordinates in zip(kernels, _coordinates(values, mechanism.sizes), strict=True):
        factors.append(ComponentRun.of(kernel, coordinates, frames[:, offset : offset + kernel.frame_bytes]))
        offset += kernel.frame_bytes
    position = 0
    for i in sorted({i for factor in factors for i in factor.exceptions(0, len(values))}):
        for factor in factors:
            position += factor.run(i, i + 1, auxiliary[position:])
    out[:] = 0
    for factor, radix in zip(factors, mechanism.radices, strict=True):
        out *= out.dtype.type(radix)
        out += factor.reports
    return position


def _coordinates(values: npt.NDArray[np.int64], sizes: tuple[int, ...]) -> list[Integers]:
    """Return the coordinates of values."""
    coordinates = []
    for size in reversed(sizes):
        values, coordinate = np.divmod(values, size)
        coordinates.append(coordinate)
    return coordinates[::-1]
