"""Numbers in messages: fractions with all their digits, because 99.9% is not 100%, and counts of any size."""

from __future__ import annotations

from decimal import Decimal

__all__ = ["count_text", "percent"]

#: Counts of at least this many bits are written as a power of two.
_LONG_BITS = 64


def percent(fraction: float) -> str:
    """Return a fraction in per cent, with the digits it was stated with.

    >>> percent(0.95), percent(0.975), percent(0.9999), percent(0.0001)
    ('95%', '97.5%', '99.99%', '0.01%')
    """
    return f"{Decimal(repr(float(fraction))).scaleb(2).normalize():f}%"


def count_text(count: int) -> str:
    """Return a count in digits, or the power of two below it if it is long: Python refuses to write 4300 digits.

    >>> count_text(12), count_text(10**30)
    ('12', 'over 2^99')
    """
    return str(count) if count.bit_length() < _LONG_BITS else f"over 2^{count.bit_length() - 1}"
