"""Labels as built-in scalars: which values are one, and of which type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias, cast

import numpy as np

Label: TypeAlias = str | int | bool | float | tuple["Label", ...]
Signature: TypeAlias = str | tuple["Signature", ...]
TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int, float),  # 3.0 equals 3, and a dict finds it so
    "float": (float, int),
    "bool": (bool,),
}


def as_label(value: object, *, tuples: bool = False) -> tuple[Signature, Label] | None:
    """The built-in scalar a value is, with the name of its type; None when it can be no label."""
    if isinstance(value, (bool, np.bool_)):
        return "bool", bool(value)
    if isinstance(value, str):
        text = str.__str__(value)  # a subclass may print as something else
        return ("str", text) if text.isascii() or _is_unicode(text) else None
    if isinstance(value, np.timedelta64):  # NumPy counts it among the integers
        return None
    if isinstance(value, (int, np.integer)):
        return "int", int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value) + 0.0  # -0.0 becomes 0.0, its equal
        return ("float", number) if math.isfinite(number) and number == value else None
    if tuples and isinstance(value, (tuple, list)) and value:
        parts = [as_label(part, tuples=True) for part in value]
        if None not in parts:
            signatures, labels = zip(*cast("list[tuple[Signature, Label]]", parts), strict=True)
            return signatures, labels
    return None


def _is_unicode(text: str) -> bool:
    """Whether UTF-8, and so a document, can hold the text: a lone surrogate cannot be written."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_number(value: object) -> int | float | None:
    """A finite built-in int or float equal to the value, which must be a number and no bool."""
    if type(value) is int or (type(value) is float and math.isfinite(value)):  # nearly always
        return value
    plain = as_label(value)
    if plain is None or plain[0] not in ("int", "float"):
        return None
    return cast("int | float", plain[1])


def reader_for(signature: Signature) -> Callable[[object], Label | None]:
    """What turns a value into the built-in to look up among labels of this signature, or None."""
    if isinstance(signature, tuple):
        readers = [reader_for(part) for part in signature]

        def read_tuple(value: object) -> Label | None:
            if not isinstance(value, (tuple, list)) or len(value) != len(readers):
                return None
            parts = [read(part) for read, part in zip(readers, value, strict=True)]
            return cast("Label", tuple(parts))  # with a None in it, it is no label either

        return read_tuple

    types = frozenset(TYPES[signature])
    accepted = {scalar_type.__name__ for scalar_type in types}

    def read(value: object) -> Label | None:
        if type(value) in types:
            return cast("Label", value)
        plain = as_label(value)
        return plain[1] if plain is not None and plain[0] in accepted else None

    return read
