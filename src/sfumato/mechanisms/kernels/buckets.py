"""Kernel of local hashing: three words of 32 bits per value, for the hash function, the decision and the bucket."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Word, Words, device, kernel
from sfumato.mechanisms.kernels.decisions import INDEX_BITS, ONE, ZERO, below, bernoulli, rejection_rate, split
from sfumato.mechanisms.systems.buckets import LocalHashing

__all__ = ["build"]

_THREE = np.uint64(3)


def build(mechanism: LocalHashing) -> Kernel:
    """Return the kernel of a mechanism."""
    numbers = (np.uint64(mechanism.hashes), np.uint64(mechanism.buckets))
    mean = 2.0**-32 + rejection_rate(mechanism.hashes) + rejection_rate(mechanism.buckets)
    parameters = (*split(mechanism.threshold, 32), *numbers)
    return Kernel.of(mechanism, _run, parameters, word_bits=32, auxiliary_mean=mean)


@device
def bucket_of(hash_function: Word, x: Word, buckets: Word) -> Word:
    """Return the bucket of a value: the inner product of the digits of both numbers."""
    total = ZERO
    while hash_function != ZERO and x != ZERO:
        total += hash_function % buckets * (x % buckets)
        hash_function //= buckets
        x //= buckets
    return total % buckets


@kernel(LocalHashing.name)
def _run(values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[Any], parameters: Any) -> Any:
    """Write the reports of all values to ``out``; return the number of auxiliary words read."""
    high, low, hashes, buckets = parameters
    position, first = ZERO, ZERO
    for i in range(np.uint64(len(values))):
        chosen, position = below(np.uint64(words[first]), hashes, auxiliary, position)
        keep, position = bernoulli(np.uint64(words[first + ONE]), high, low, INDEX_BITS, auxiliary, position)
        if keep:
            bucket = bucket_of(chosen, np.uint64(values[i]), buckets)
        else:
            bucket, position = below(np.uint64(words[first + ONE + ONE]), buckets, auxiliary, position)
        out[i] = chosen * buckets + bucket
        first += _THREE
    return position
