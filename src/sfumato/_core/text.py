"""Format a confidence or a fraction with all of its digits: 99.9% is not 100%."""

from __future__ import annotations

from decimal import Decimal

__all__ = ["percent"]


def percent(fraction: float) -> str:
    """Return a fraction in per cent, with the digits it was stated with.

    >>> percent(0.95), percent(0.975), percent(0.9999), percent(0.0001)
    ('95%', '97.5%', '99.99%', '0.01%')
    """
    return f"{Decimal(repr(float(fraction))).scaleb(2).normalize():f}%"
