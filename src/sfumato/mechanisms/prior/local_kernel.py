"""Thresholds of many users, each with a separate prior: exact integers of 62 bits, with products of 124 bits.

Every rounding is towards more privacy; ``docs/proofs/local-priors.md`` has the proof.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.mechanisms.kernels.compile import Word, Words, device, kernel
from sfumato.mechanisms.kernels.decisions import INDEX_BITS, INDEX_MASK, ONE, WORD_BITS, ZERO
from sfumato.mechanisms.table.alias import TOTAL, TOTAL_BITS

__all__ = ["write_thresholds"]

_TWO = np.uint64(2)
_BITS = np.uint64(TOTAL_BITS)
_WHOLE = np.uint64(TOTAL)
_HALF = np.uint64(TOTAL // 2)
_TOP = WORD_BITS - ONE


@device
def _product(x: Word, y: Word) -> tuple[Word, Word]:
    """Return the high and the low word of x·y."""
    x1, x0, y1, y0 = x >> INDEX_BITS, x & INDEX_MASK, y >> INDEX_BITS, y & INDEX_MASK
    low, middle, other = x0 * y0, x1 * y0, x0 * y1
    carry = (low >> INDEX_BITS) + (middle & INDEX_MASK) + (other & INDEX_MASK)
    high = x1 * y1 + (middle >> INDEX_BITS) + (other >> INDEX_BITS) + (carry >> INDEX_BITS)
    return high, carry << INDEX_BITS | low & INDEX_MASK


@device
def _scaled_product(x: Word, y: Word, up: bool) -> Word:
    """Return x·y/2^62, rounded down or up."""
    high, low = _product(x, y)
    rest = low & _WHOLE - ONE
    return (high << WORD_BITS - _BITS | low >> _BITS) + (ONE if up and rest != ZERO else ZERO)


@device
def _ratio(x: Word, divisor: Word, up: bool) -> Word:
    """Return 2^62·x/divisor, rounded down or up, for x/4 < divisor ≤ 2^63, bit by bit."""
    remainder, low, quotient = x >> WORD_BITS - _BITS, x << _BITS, ZERO
    for _ in range(64):
        remainder, low = remainder << ONE | low >> _TOP, low << ONE
        quotient <<= ONE
        if remainder >= divisor:
            remainder -= divisor
            quotient |= ONE
    return quotient + (ONE if up and remainder != ZERO else ZERO)


@device
def _edge(prior: Word, least: Word) -> Word:
    """Return the edge of the cone for the value with this prior, rounded up."""
    other = _WHOLE - prior
    edge = ZERO
    # The greater of the two bounds applies, and only if its divisor is at least a half.
    if other >= _HALF - _TWO and least > prior:
        edge = _ratio(least - prior, other, True)
    below = _WHOLE - _scaled_product(other, least, True)
    if below >= _HALF - _TWO:
        edge = max(edge, _ratio(_scaled_product(prior, least, True), below, True))
    return min(edge, _WHOLE)


@kernel("local-priors")
def write_thresholds(priors: Words, least: Any, out: Words) -> int:
    """Write both thresholds of every user to ``out``, from 2^62·P₁ and 2^62·e^-ε rounded up."""
    least = np.uint64(least)
    for i in range(len(priors)):
        prior = np.uint64(priors[i])
        first, second = _edge(_WHOLE - prior, least), _edge(prior, least)
        left, right = _WHOLE - first, _WHOLE - second
        whole = left + right - _scaled_product(left, right, False)
        first_threshold = _HALF if whole == ZERO else _ratio(right, whole, False)
        out[i, 0] = first_threshold
        out[i, 1] = _HALF if whole == ZERO else _scaled_product(first, first_threshold, True)
    return len(priors)
