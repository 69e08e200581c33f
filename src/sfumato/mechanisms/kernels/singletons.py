"""Kernel of k-ary randomized response: one 64-bit word per value, with the decision above and the index below."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Word, Words, device
from sfumato.mechanisms.kernels.decisions import (
    INDEX_BITS,
    INDEX_MASK,
    below,
    bernoulli,
    rejection_rate,
    rejections,
    split,
)
from sfumato.mechanisms.kernels.repaired import repaired_kernel
from sfumato.mechanisms.systems.singletons import RandomizedResponse

__all__ = ["build"]


def build(mechanism: RandomizedResponse) -> Kernel:
    """Return the kernel of a mechanism."""
    k = len(mechanism.domain)
    parameters = (*split(mechanism.threshold, 32), np.uint64(k), rejections(k))
    return Kernel.of(mechanism, _run, parameters, auxiliary_mean=2.0**-32 + rejection_rate(k))


@device
def _quick(x: Any, words: Words, i: Word, parameters: Any) -> tuple[Word, bool]:
    """Return the report from the frame alone, and whether it is an exception that needs more bits."""
    high, _, k, rejected = parameters
    keep, product = words[i] >> INDEX_BITS, (words[i] & INDEX_MASK) * k
    report = np.uint64(x) if keep < high else product >> INDEX_BITS
    return report, (keep == high) | (product & INDEX_MASK < rejected)


@device
def _exact(x: Any, words: Words, i: Word, parameters: Any, auxiliary: Words, position: Word) -> tuple[Word, Word]:
    """Return the report as the scalar sampler does, and the new auxiliary position."""
    high, low, k, _ = parameters
    keep, position = bernoulli(words[i] >> INDEX_BITS, high, low, INDEX_BITS, auxiliary, position)
    other, position = below(words[i] & INDEX_MASK, k, auxiliary, position)
    return np.uint64(x) if keep else other, position


_run = repaired_kernel(RandomizedResponse.name, _quick, _exact)
