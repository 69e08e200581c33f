"""Positions: the numbers of the values on an integer scale, from 0 for the least to the greatest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._core import Integers, checked_integer, exact_fraction, read_list
from sfumato.errors import InvalidInput

__all__ = ["LARGEST_POSITION", "checked_positions", "integer_positions"]

#: Maximum position. Probabilities are multiples of 2^-64, so 24 bits are left for the step between two positions.
LARGEST_POSITION = 2**40


def integer_positions(numbers: Iterable[Any]) -> list[int]:
    """Return the numbers as integers from 0 on the coarsest scale that keeps them exactly proportional.

    A float counts as its shortest decimal. Numbers that need more than 2^40 steps are rounded to 2^-40 of their range.
    """
    exact = [exact_fraction(number) for number in numbers]
    least = min(exact)
    gaps = [number - least for number in exact]
    denominator = math.lcm(*(gap.denominator for gap in gaps))
    whole = [gap.numerator * (denominator // gap.denominator) for gap in gaps]
    unit = math.gcd(*whole) or 1
    greatest = max(whole) // unit
    if greatest <= LARGEST_POSITION:
        return [number // unit for number in whole]
    return [round(Fraction(number // unit * LARGEST_POSITION, greatest)) for number in whole]


def checked_positions(
    subject: str, size: int, positions: Sequence[int | str] | Integers | None
) -> tuple[int, ...] | None:
    """Return the position of each value; None if they are the indices of the values, whether stated or not."""
    if positions is None:
        return None
    listed = positions.tolist() if isinstance(positions, np.ndarray) else positions
    entries = read_list(subject, "positions", f"be {size} integers, one per value", listed)
    if len(entries) != size:
        raise InvalidInput(subject, "positions", f"be {size} integers, one per value", positions)
    checked = tuple(checked_integer(subject, "a position", entry, 0, LARGEST_POSITION) for entry in entries)
    if min(checked) != 0 or max(checked) == 0:
        raise InvalidInput(subject, "positions", "differ, with the least equal to 0", positions)
    return None if checked == tuple(range(size)) else checked
