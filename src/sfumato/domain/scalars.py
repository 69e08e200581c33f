"""Convert values to labels: built-in scalars of known types."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias, cast

import numpy as np

#: A label of a value.
Label: TypeAlias = str | int | bool | float | tuple["Label", ...]
#: The type of a label: the name of a scalar type, or a tuple of signatures.
Signature: TypeAlias = str | tuple["Signature", ...]
#: Python types that can equal a label of each type.
TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int, float),  # 3.0 equals 3, also as the key of a dict
    "float": (float, int),
    "bool": (bool,),
}


def as_label(value: object, *, tuples: bool = False) -> tuple[Signature, Label] | None:
    """Return the type name and the built-in scalar of a value, or None if it cannot be a label."""
    if isinstance(value, (bool, np.bool_)):
        return "bool", bool(value)
    if isinstance(value, str):
        string = str.__str__(value)  # a subclass may define another __str__
        return ("str", string) if string.isascii() or _is_unicode(string) else None
    if isinstance(value, np.timedelta64):  # a subclass of np.integer
        return None
    if isinstance(value, (int, np.integer)):
        return "int", int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value) + 0.0  # -0.0 becomes 0.0
        return ("float", number) if math.isfinite(number) and number == value else None
    if tuples and isinstance(value, (tuple, list)) and value:
        parts = [as_label(part, tuples=True) for part in value]
        if None not in parts:
            signatures, labels = zip(*cast("list[tuple[Signature, Label]]", parts), strict=True)
            return signatures, labels
    return None


def _is_unicode(string: str) -> bool:
    """Return whether a string can be encoded as UTF-8, and so stored in a document; a lone surrogate cannot."""
    try:
        string.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_number(value: object) -> int | float | None:
    """Return the finite int or float that equals a value, or None if it is not a number or is a bool."""
    if type(value) is int or (type(value) is float and math.isfinite(value)):  # the usual case
        return value
    plain = as_label(value)
    if plain is None or plain[0] not in ("int", "float"):
        return None
    return cast("int | float", plain[1])


def as_double(value: object) -> float | None:
    """Return the double nearest to a number, infinite if it is too large; None if it is not a number, NaN or a bool."""
    if type(value) is float:  # the usual case
        return None if value != value else value
    if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(
        value, (int, float, np.integer, np.floating, Decimal, Fraction)
    ):
        return None
    if is_missing(value):
        return None
    try:
        return float(value)
    except OverflowError:  # an int or a fraction beyond the largest double
        return math.inf if value > 0 else -math.inf


def is_missing(entry: object) -> bool:
    """Return whether an entry means a missing value: None, NaN, or the missing values of pandas."""
    if isinstance(entry, Decimal):
        return entry.is_nan()
    return (
        entry is None
        or (isinstance(entry, (float, np.floating)) and bool(entry != entry))
        or type(entry).__name__ in ("NAType", "NaTType")
    )


def reader_for(signature: Signature) -> Callable[[object], Label | None]:
    """Return a function that converts a value for lookup among labels of a signature, or returns None."""
    if isinstance(signature, tuple):
        readers = [reader_for(part) for part in signature]

        def read_tuple(value: object) -> Label | None:
            if not isinstance(value, (tuple, list)) or len(value) != len(readers):
                return None
            parts = [read(part) for read, part in zip(readers, value, strict=True)]
            return cast("Label", tuple(parts))  # a tuple that contains None does not equal any label

        return read_tuple

    types = frozenset(TYPES[signature])
    accepted = {scalar_type.__name__ for scalar_type in types}

    def read(value: object) -> Label | None:
        if type(value) in types:
            return cast("Label", value)
        plain = as_label(value)
        return plain[1] if plain is not None and plain[0] in accepted else None

    return read


_INT = re.compile(r"0|-?[1-9][0-9]{0,999}", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def _bool(string: str) -> bool | None:
    """Read ``true`` or ``false``."""
    return {"true": True, "false": False}.get(string.lower())


#: For each type of label but strings: a function that converts a string or returns None, and the requirement in words.
STRING_READERS: dict[type, tuple[Callable[[str], Label | None], str]] = {
    int: (lambda string: int(string) if _INT.fullmatch(string) else None, "be a whole number in plain digits"),
    float: (lambda string: float(string) if _FLOAT.fullmatch(string) else None, "be a number"),
    bool: (_bool, "be true or false"),
}


def is_decimal(string: str) -> bool:
    """Return whether a string is a decimal number."""
    return _FLOAT.fullmatch(string) is not None


def read_double(string: str) -> float | None:
    """Return the double nearest to a decimal, or an infinity; None for other strings."""
    return float(string) if _FLOAT.fullmatch(string) or _INFINITE.fullmatch(string) else None
