"""Validate parameters: each function returns the accepted value or raises InvalidInput."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from sfumato.errors import InvalidInput

__all__ = [
    "MOST_PEOPLE",
    "checked_count",
    "checked_integer",
    "checked_integers",
    "checked_seconds",
    "checked_type",
    "is_number",
    "plain_integer",
    "read_list",
]

#: Maximum number of people; above it, floats cannot represent every integer.
MOST_PEOPLE = 2**53


def is_number(value: object) -> bool:
    """Return whether a value is a real number, which can be compared with 0 and 1."""
    return isinstance(value, Real)


def checked_count(subject: str, n: Any, parameter: str = "n", most: int = MOST_PEOPLE) -> int:
    """Return a number of people or other items, at least 1, as an int; floats such as 1e6 are accepted."""
    is_number = isinstance(n, Real) and not isinstance(n, bool)
    if not is_number or not 1 <= n <= most or n != int(n):  # comparisons with NaN are false
        limit = f"2^{most.bit_length() - 1}"
        raise InvalidInput(subject, parameter, f"be a whole number from 1 to {limit}", n)
    return int(n)


def checked_integer(subject: str, parameter: str, value: Any, low: int, high: int) -> int:
    """Return an integer in [low, high]; strings are parsed, because specs store large integers as strings."""
    try:
        number = int(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
    except ValueError:
        number = None
    if number is None or not low <= number <= high:
        raise InvalidInput(subject, parameter, f"be an integer in [{low}, {high}]", value)
    return number


def plain_integer(value: Any) -> Any:
    """Return a NumPy integer as an int, and any other value unchanged."""
    return int(value) if isinstance(value, np.integer) else value


def checked_integers(
    subject: str, parameter: str, values: Any, ranges: Sequence[tuple[str, int, int]]
) -> tuple[int, ...]:
    """Return one integer per range; each range is (name for messages, low, high)."""
    if not isinstance(values, (list, tuple)) or len(values) != len(ranges):
        raise InvalidInput(subject, parameter, f"be {len(ranges)} integers", values)
    return tuple(
        checked_integer(subject, f"{parameter} ({name})", value, low, high)
        for value, (name, low, high) in zip(values, ranges, strict=True)
    )


def checked_type(subject: str, parameter: str, value: object, expected: type, hint: str = "") -> None:
    """Reject an object of another class; suggest swapped arguments if it is a policy or a mechanism."""
    if not isinstance(value, expected):
        others = (base.__name__ for base in type(value).__mro__ if base.__name__ in ("Mechanism", "Policy"))
        swapped = "".join(f", not a {other} (are the arguments swapped?)" for other in others)
        article = "an" if expected.__name__[0] in "AEIO" else "a"
        raise InvalidInput(subject, parameter, f"be {article} {expected.__name__}{swapped or hint}", value)


def checked_seconds(subject: str, max_seconds: Any) -> float | None:
    """Return a time limit in seconds as a float: 0 disables the search, None means the default limit."""
    if max_seconds is not None and not (isinstance(max_seconds, Real) and float(max_seconds) >= 0):
        raise InvalidInput(subject, "max_seconds", "be a number of seconds, at least 0", max_seconds)
    return None if max_seconds is None else float(max_seconds)


def read_list(subject: str, parameter: str, must: str, value: Any) -> list[Any]:
    """Return the items of a list-like parameter; reject strings, which would be split into letters."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InvalidInput(subject, parameter, must, value)
    return list(value)
