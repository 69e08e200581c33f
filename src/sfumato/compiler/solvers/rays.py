"""Arrays of rays, one per row: duplicates, and evenly spread numbers to start a search from."""

from __future__ import annotations

import functools

import numpy as np

from sfumato._core import Floats

__all__ = ["distinct", "weyl_numbers"]


def distinct(rays: Floats) -> Floats:
    """Return the rays that differ by more than rounding."""
    _, first = np.unique(np.round(rays, 9), axis=0, return_index=True)
    return np.asarray(rays[np.sort(first)])


def weyl_numbers(first: int, count: int, dimensions: int) -> Floats:
    """Return points of a sequence that fills the unit cube evenly, from number ``first`` on.

    The fractional parts of multiples of √prime fill a cube evenly (Weyl), so a search needs no random numbers.
    """
    numbers = first + 1 + np.arange(count)
    return np.asarray(np.modf(numbers[:, None] * np.sqrt(_primes(dimensions)))[0])


@functools.lru_cache(maxsize=8)
def _primes(count: int) -> Floats:
    """Return the first prime numbers."""
    primes: list[int] = []
    number = 2
    while len(primes) < count:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    return np.array(primes, dtype=np.float64)
