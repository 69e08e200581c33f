"""Results as documents of plain JSON types: the parts that several of them share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato._core import Floats, check_keys
from sfumato.errors import InvalidInput, UnknownSpec

__all__ = ["VERSION", "check_document", "number_document", "numbers", "read_header", "read_number", "read_numbers_of"]

#: Version of the documents of this package.
VERSION = 1


def read_header(subject: str, document: object, formats: Mapping[str, Any] | str) -> Any:
    """Return what the format of a document stands for; raise UnknownSpec for another format or version."""
    known = {formats: None} if isinstance(formats, str) else formats
    if not isinstance(document, Mapping):
        raise InvalidInput(subject, "the document", "be a mapping", document)
    name, version = document.get("format"), document.get("version")
    if not isinstance(name, str) or name not in known:
        raise UnknownSpec(subject, "format", f"be one of {', '.join(map(repr, known))}", name)
    if type(version) is not int or version != VERSION:
        raise UnknownSpec(subject, "version", f"be {VERSION}", version)
    return known[name]


def number_document(number: float) -> float | str:
    """Return a float as documents hold it; JSON has no number for infinities and NaN.

    >>> number_document(float("inf"))
    'inf'
    """
    return float(number) if math.isfinite(number) else str(float(number))


def read_number(subject: str, parameter: str, document: object) -> float:
    """Return the float that ``number_document`` wrote."""
    if document in ("inf", "-inf", "nan"):
        return float(str(document))
    if isinstance(document, bool) or not isinstance(document, (int, float)):
        raise InvalidInput(subject, parameter, "be a number", document)
    return float(document)


def numbers(array: Floats) -> list[float]:
    """Return an array of finite floats as a list of Python's."""
    listed: list[float] = array.tolist()
    return listed


def read_numbers_of(subject: str, parameter: str, document: object, size: int) -> Floats:
    """Return the array that ``numbers`` wrote, checked for its length."""
    if not isinstance(document, list) or len(document) != size:
        raise InvalidInput(subject, parameter, f"be a list of {size} numbers", document)
    array = np.array(document, np.float64) if set(map(type, document)) <= {int, float} else np.array([np.nan])
    if not np.isfinite(array).all():
        raise InvalidInput(subject, parameter, "be finite numbers", document)
    return array


def check_document(
    subject: str, document: object, needed: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Mapping[str, Any]:
    """Return the document if it has the keys of a format with its version, and no others."""
    return check_keys(subject, "the document", document, required=("format", "version", *needed), optional=optional)
