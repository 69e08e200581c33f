"""The generator SplitMix64, from which designs derive sets that look random; it protects nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers

__all__ = ["ranks", "split_mix_keys"]

#: Constants of SplitMix64 (Steele, Lea, Flood 2014).
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


def split_mix_keys(seed: int, count: int) -> npt.NDArray[np.uint64]:
    """Return the first outputs of SplitMix64."""
    keys = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * _STEP
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        keys = (keys ^ keys >> shift) * factor
    return np.asarray(keys ^ keys >> _SHIFTS[2], np.uint64)


def ranks(keys: npt.NDArray[np.uint64]) -> Integers:
    """Return the rank of each key in its row; equal keys are ranked in their order."""
    order = np.argsort(keys, axis=-1, kind="stable")
    places = np.empty(keys.shape, np.int64)
    np.put_along_axis(places, order, np.arange(keys.shape[-1]), axis=-1)
    return places
