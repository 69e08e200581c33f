"""How a level or a share is written for people: all of its digits, for 99.9% is not 100%."""

from __future__ import annotations

from decimal import Decimal

__all__ = ["percent"]


def percent(share: float) -> str:
    """A share in per cent, as it was stated.

    >>> percent(0.95), percent(0.975), percent(0.9999), percent(0.0001)
    ('95%', '97.5%', '99.99%', '0.01%')
    """
    return f"{Decimal(repr(float(share))).scaleb(2).normalize():f}%"
