"""Checks of parameters: each returns the accepted value or raises InvalidInput, which names what was wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from sfumato.errors import InvalidInput

__all__ = [
    "MOST_PEOPLE",
    "checked_count",
    "checked_integer",
    "checked_integers",
    "checked_seconds",
    "checked_type",
    "is_number",
    "read_list",
]

#: No more people are reckoned with: beyond this, doubles skip whole numbers.
MOST_PEOPLE = 2**53


def is_number(value: object) -> bool:
    """Whether this is a real number: what can be compared with 0 and 1."""
    return isinstance(value, Real)


def checked_count(subject: str, n: Any, parameter: str = "n", most: int = MOST_PEOPLE) -> int:
    """A number of people, or of anything that there is at least one of: 1e6 is a million, whatever its type."""
    is_number = isinstance(n, Real) and not isinstance(n, bool)
    if not is_number or not 1 <= n <= most or n != int(n):  # comparisons with nan are false
        limit = f"2^{most.bit_length() - 1}"
        raise InvalidInput(subject, parameter, f"be a whole number from 1 to {limit}", n)
    return int(n)


def checked_integer(subject: str, parameter: str, value: Any, low: int, high: int) -> int:
    """An integer parameter within its range; strings are parsed, because specs hold large integers as strings."""
    try:
        number = int(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
    except ValueError:
        number = None
    if number is None or not low <= number <= high:
        raise InvalidInput(subject, parameter, f"be an integer in [{low}, {high}]", value)
    return number


def checked_integers(
    subject: str, parameter: str, values: Any, ranges: Sequence[tuple[str, int, int]]
) -> tuple[int, ...]:
    """One integer for each range, whose name says what it is."""
    if not isinstance(values, (list, tuple)) or len(values) != len(ranges):
        raise InvalidInput(subject, parameter, f"be {len(ranges)} integers", values)
    return tuple(
        checked_integer(subject, f"{parameter} ({name})", value, low, high)
        for value, (name, low, high) in zip(values, ranges, strict=True)
    )


def checked_type(subject: str, parameter: str, value: object, expected: type, hint: str = "") -> None:
    """Reject an object of another class; say so if a policy and a mechanism seem to be swapped."""
    if not isinstance(value, expected):
        others = (base.__name__ for base in type(value).__mro__ if base.__name__ in ("Mechanism", "Policy"))
        swapped = "".join(f", not a {other} (are the arguments swapped?)" for other in others)
        raise InvalidInput(subject, parameter, f"be a {expected.__name__}{swapped or hint}", value)


def checked_seconds(subject: str, max_seconds: Any) -> float | None:
    """The time for a search: a number of seconds, 0 for no search, or None for what is usual."""
    if max_seconds is not None and not (isinstance(max_seconds, Real) and float(max_seconds) >= 0):
        raise InvalidInput(subject, "max_seconds", "be a number of at least 0", max_seconds)
    return None if max_seconds is None else float(max_seconds)


def read_list(subject: str, parameter: str, must: str, value: Any) -> list[Any]:
    """The items of a list-like parameter; a string is not a list of its letters."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InvalidInput(subject, parameter, must, value)
    return list(value)
