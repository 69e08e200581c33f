"""Fourier transforms of tables over blocks and positions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.mechanisms.nested_cyclic.patterns import Patterns

__all__ = ["Spectrum", "indicator_spectrum", "inverse", "power_spectrum", "spectrum"]

Spectrum = npt.NDArray[np.complex128]


def spectrum(tables: Floats) -> Spectrum:
    """Return the transform of each table; the last two axes are blocks and positions."""
    return np.asarray(np.fft.rfft2(tables), np.complex128)


def indicator_spectrum(levels: npt.NDArray[np.uint8], level: int) -> Spectrum:
    """Return the transform of the indicator of a level, for each table of levels."""
    return spectrum((levels == level).astype(np.float64))


def inverse(transformed: Spectrum, patterns: Patterns) -> Floats:
    """Return the tables of transforms."""
    return np.asarray(np.fft.irfft2(transformed, (patterns.blocks, patterns.block_size)), np.float64)


def power_spectrum(patterns: Patterns, deviations: Floats) -> Floats:
    """Return Σ_e |F_e|²/(m·B·b), where F_e is the transform of the likelihoods of pattern e.

    ``deviations`` are the likelihoods of the four levels, relative to the uniform law, minus 1. Their mean over a
    pattern is zero, so the entry at frequency zero is B·b. Rounding errors in proportion to it would hide the others.
    """
    total = np.zeros((patterns.blocks, patterns.block_size // 2 + 1))
    for levels in patterns.batches():
        transformed = spectrum(deviations[levels])
        total += (transformed.real**2 + transformed.imag**2).sum(axis=0)
    total /= patterns.outputs
    total[0, 0] = patterns.blocks * patterns.block_size
    return total
