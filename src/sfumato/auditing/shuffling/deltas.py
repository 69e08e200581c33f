"""The probability δ of central statements."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

from sfumato._core import exact_fraction
from sfumato.errors import InvalidInput

__all__ = ["checked_delta", "delta_float"]


#: A decimal or a fraction as a string. Longer exponents would fill the memory, because δ is kept exactly.
_DELTA = re.compile(
    r"\s*\+?(\d{1,1000}/\d{1,1000}|(\d{1,1000}(\.\d{0,1000})?|\.\d{1,1000})(e[+-]?\d{1,4})?)\s*",
    re.ASCII | re.IGNORECASE,
)


def checked_delta(subject: str, delta: Any) -> Fraction:
    """Return δ as an exact fraction from 0 to below 1; a float means its shortest decimal."""
    must = "be a number from 0 to below 1"
    try:
        if isinstance(delta, str) and not _DELTA.fullmatch(delta):
            raise ValueError
        probability = Fraction(delta) if isinstance(delta, str) else exact_fraction(delta)
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidInput(subject, "delta", must, delta) from None
    if not 0 <= probability < 1:
        raise InvalidInput(subject, "delta", must, delta)
    return probability


def delta_float(delta: Fraction) -> float:
    """Return δ as a float whose shortest decimal is at least δ."""
    nearest = float(delta)
    return nearest if exact_fraction(nearest) >= delta else math.nextafter(nearest, math.inf)
