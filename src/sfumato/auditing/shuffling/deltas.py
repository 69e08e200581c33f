"""The probability δ of central statements."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from sfumato._core import exact_fraction
from sfumato.errors import InvalidInput

__all__ = ["checked_delta"]


def checked_delta(subject: str, delta: Any) -> Fraction:
    """Return δ as an exact fraction from 0 to below 1; a float means its shortest decimal."""
    must = "be a number from 0 to below 1"
    try:
        probability = Fraction(delta) if isinstance(delta, str) else exact_fraction(delta)
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidInput(subject, "delta", must, delta) from None
    if not 0 <= probability < 1:
        raise InvalidInput(subject, "delta", must, delta)
    return probability
