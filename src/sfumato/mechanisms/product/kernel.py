"""Kernel of products: the kernels of the factors on the coordinates, each with its part of the frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers
from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Words
from sfumato.mechanisms.kernels.components import ComponentRun
from sfumato.mechanisms.product.mechanism import ProductMechanism
from sfumato.mechanisms.registry import kernel_for

__all__ = ["build"]


def build(mechanism: ProductMechanism) -> Kernel:
    """Return the kernel of a mechanism."""
    kernels = [kernel for factor in mechanism.factors if (kernel := kernel_for(factor)) is not None]
    assert len(kernels) == len(mechanism.factors)
    return Kernel.of(
        mechanism,
        _run,
        (mechanism.sizes, mechanism.radices, tuple(kernels)),
        word_bits=32,
        auxiliary_mean=sum(kernel.auxiliary_mean for kernel in kernels),
        auxiliary_variance=sum(kernel.auxiliary_variance for kernel in kernels),
    )


def _run(values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[Any], parameters: Any) -> int:
    """Write the reports of all values to ``out``; return the number of auxiliary words read.

    The scalar sampler reads the auxiliary words value by value. Few values need any, so every factor's kernel first
    runs without them. The exceptions are then drawn again, one value at a time and in order.
    """
    sizes, radices, kernels = parameters
    frames = words.view(np.uint8).reshape(len(values), -1)
    factors, offset = [], 0
    for kernel, coordinates in zip(kernels, _coordinates(values, sizes), strict=True):
        factors.append(ComponentRun.of(kernel, coordinates, frames[:, offset : offset + kernel.frame_bytes]))
        offset += kernel.frame_bytes
    position = 0
    for i in sorted({i for factor in factors for i in factor.exceptions(0, len(values))}):
        for factor in factors:
            position += factor.run(i, i + 1, auxiliary[position:])
    out[:] = 0
    for factor, radix in zip(factors, radices, strict=True):
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
