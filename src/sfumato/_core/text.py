"""Format numbers for messages: percentages, bounds, large counts, and counts with their nouns."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

__all__ = ["count_text", "percent", "quantity", "rounded_down", "rounded_up"]

#: Counts with at least this many bits are written as a power of two.
_LONG_BITS = 64
#: Plurals that no rule of spelling gives.
_IRREGULAR = {"person": "people"}


def percent(fraction: float) -> str:
    """Return a fraction as a percentage with all its digits, because 99.9% is not 100%.

    >>> percent(0.95), percent(0.975), percent(0.9999), percent(0.0001)
    ('95%', '97.5%', '99.99%', '0.01%')
    """
    return f"{Decimal(repr(float(fraction))).scaleb(2).normalize():f}%"


def rounded_up(number: float, digits: int) -> str:
    """Return an upper bound with few significant digits; a number means its first 15 digits.

    >>> rounded_up(2.99832093, 5), rounded_up(0.1, 4), rounded_up(1e-7, 3)
    ('2.9984', '0.1', '1e-07')
    """
    return _rounded(number, digits, ROUND_CEILING)


def rounded_down(number: float, digits: int) -> str:
    """Return a lower bound with few significant digits; a number means its first 15 digits.

    >>> rounded_down(2.99832093, 3), rounded_down(0.1, 4)
    ('2.99', '0.1')
    """
    return _rounded(number, digits, ROUND_FLOOR)


def _rounded(number: float, digits: int, rounding: str) -> str:
    """Return a number with few significant digits, rounded in one direction."""
    if not math.isfinite(number):
        return f"{number:g}"
    return f"{float(Context(digits, rounding).create_decimal(f'{number:.15g}')):.{digits}g}"


def count_text(count: int) -> str:
    """Return a count as digits, or as a power of two below it if it has 64 bits or more.

    Python refuses to convert integers of more than 4300 digits to strings.

    >>> count_text(12), count_text(10**30)
    ('12', 'over 2^99')
    """
    return str(count) if count.bit_length() < _LONG_BITS else f"over 2^{count.bit_length() - 1}"


def quantity(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count and its noun, in the singular or in the plural.

    ``plural`` is needed only for irregular nouns and for phrases whose last word is not the noun.

    >>> quantity(1, "report"), quantity(2000, "report"), quantity(0, "batch"), quantity(3, "entry")
    ('1 report', '2,000 reports', '0 batches', '3 entries')
    >>> quantity(2, "person"), quantity(2, "bit per report", "bits per report")
    ('2 people', '2 bits per report')
    """
    digits = f"{count:,}" if count.bit_length() < _LONG_BITS else count_text(count)
    return f"{digits} {noun if count == 1 else plural or _plural(noun)}"


def _plural(noun: str) -> str:
    """Return the plural of an English noun, by the rules of spelling."""
    if noun in _IRREGULAR:
        return _IRREGULAR[noun]
    if noun.endswith("y") and noun[-2:-1] not in ("a", "e", "i", "o", "u"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("ch", "s", "sh", "x", "z")) else f"{noun}s"
