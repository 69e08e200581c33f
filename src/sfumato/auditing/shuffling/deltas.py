"""The probability δ of central statements."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from sfumato._core import exact_fraction
from sfumato.errors import InvalidInput

__all__ = ["checked_delta", "delta_float"]


def checked_delta(subject: str, delta: Any) -> Fraction:
    """Return δ as an exact fraction from 0 to below 1; a float means its shortest decimal."""
    must = "be a number from 0 to below 1"
    try:
        probability = exact_fraction(delta)
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidInput(subject, "delta", must, delta) from None
    if not 0 <= probability < 1:
        raise InvalidInput(subject, "delta", must, delta)
    return probability


def delta_float(delta: Fraction) -> float:
    """Return δ as a float whose shortest decimal is at least δ."""
    nearest = float(delta)
    return nearest if exact_fraction(nearest) >= delta else math.nextafter(nearest, math.inf)
