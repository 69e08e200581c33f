"""The length of reports: which of the compared mechanisms a plan recommends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sfumato._core import checked_count
from sfumato.errors import InvalidInput
from sfumato.mechanisms import short_bits

__all__ = ["SHORT", "MaxBits", "ReportLength", "checked_max_bits"]

#: A limit in bits, ``"short"`` for reports of few bits where that costs little, or None for no limit.
MaxBits: TypeAlias = int | Literal["short"] | None

#: The default value of ``max_bits``.
SHORT: Literal["short"] = "short"
#: Ratio to the best value up to which a short report is preferred to a longer one.
_CLOSE = 1.05
#: Largest value of ``max_bits``.
_MOST_BITS = 2**32


def checked_max_bits(subject: str, max_bits: Any) -> MaxBits:
    """Return a valid ``max_bits``, or raise InvalidInput."""
    if max_bits is None:
        return None
    if isinstance(max_bits, str):
        if max_bits == SHORT:
            return SHORT
        must = f"be 'short', None or a whole number from 1 to 2^{_MOST_BITS.bit_length() - 1}"
        raise InvalidInput(subject, "max_bits", must, max_bits)
    return checked_count(subject, max_bits, "max_bits", _MOST_BITS)


@dataclass(frozen=True)
class ReportLength:
    """The meaning of ``max_bits`` for a domain.

    Parameters
    ----------
    max_bits
        The parameter of ``plan`` or ``design``.
    values
        Number of values of the domain.
    """

    max_bits: MaxBits
    values: int

    @property
    def limit(self) -> int | None:
        """Maximum length of a recommended report in bits, or None if longer ones may be recommended."""
        return None if self.max_bits == SHORT else self.max_bits

    @property
    def short(self) -> int | None:
        """Maximum length of a short report in bits, or None unless ``max_bits`` is ``"short"``."""
        return short_bits(self.values) if self.max_bits == SHORT else None

    @property
    def preferred(self) -> int | None:
        """Maximum length of a report in bits, as a limit or as a preference; None for neither."""
        return self.limit if self.short is None else self.short

    def first_fitting(self, bits: Sequence[int]) -> int | None:
        """Return the index of the first report of at most ``preferred`` bits, or None if there is none."""
        most = self.preferred
        return next((index for index, length in enumerate(bits) if most is None or length <= most), None)

    def recommended(self, values: Sequence[float | None], bits: Sequence[int]) -> int | None:
        """Return the index of the recommended mechanism, or None if every report is too long.

        Parameters
        ----------
        values
            The errors or utilities of the compared mechanisms, the best first; None if not known.
        bits
            The length of a report of each of them.
        """
        fitting = self.first_fitting(bits)
        if self.short is None or not bits:
            return fitting
        return fitting if fitting is not None and _is_close(values[fitting], values[0]) else 0


def _is_close(value: float | None, best: float | None) -> bool:
    """Return whether a value is within 5% of the best one, for errors and for utilities."""
    if value is None or best is None:
        return value is best
    if value == best:  # also if both are 0 or infinite
        return True
    if value * best <= 0 or not math.isfinite(value) or not math.isfinite(best):
        return False
    return max(value / best, best / value) <= _CLOSE
