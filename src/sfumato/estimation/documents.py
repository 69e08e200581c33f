"""Documents of estimates: functions that several results share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato._core import Floats, check_keys
from sfumato.errors import InvalidInput, UnknownSpec

__all__ = [
    "ESTIMATES",
    "GROUPED",
    "VERSION",
    "check_document",
    "is_close",
    "numbers",
    "read_distribution_of",
    "read_estimate",
    "read_grouped",
    "read_header",
    "read_numbers_of",
]

#: Version of the documents of this package.
VERSION = 1

#: Classes of estimates by their format; each has a method ``_read(document, mechanism)``.
ESTIMATES: dict[str, Any] = {}

#: Class of the estimates of groups by its format; it has a method ``from_dict``.
GROUPED: dict[str, Any] = {}

#: Maximum relative difference between a number in a document and the number derived from the rest of it.
_TOLERANCE = 1e-6


def read_header(subject: str, document: object, formats: Mapping[str, Any] | str) -> Any:
    """Return the entry for the format of a document; raise UnknownSpec for another format or version."""
    known = {formats: None} if isinstance(formats, str) else formats
    if not isinstance(document, Mapping):
        hint = "Pass a dict that to_dict() of this class wrote; json.loads returns one for a JSON string."
        raise InvalidInput(subject, "the document", "be a mapping", document, hint=hint)
    name, version = document.get("format"), document.get("version")
    if not isinstance(name, str) or name not in known:
        hint = "Pass a dict that to_dict() of this class wrote."
        raise UnknownSpec(
            subject, 'the document\'s "format"', f"be one of {', '.join(map(repr, known))}", name, hint=hint
        )
    if type(version) is not int or version != VERSION:
        hint = "Read the document with the release of Sfumato that wrote it."
        raise UnknownSpec(subject, 'the document\'s "version"', f"be {VERSION}", version, hint=hint)
    return known[name]


def read_estimate(document: Mapping[str, Any], mechanism: Any = None) -> Any:
    """Return the estimate that a document describes; the caller may pass its mechanism."""
    return read_header("Estimate.from_dict", document, ESTIMATES)._read(document, mechanism)


def read_grouped(document: Mapping[str, Any]) -> Any:
    """Return the estimates of groups that a document describes."""
    return read_header("GroupedEstimate.from_dict", document, GROUPED).from_dict(document)


def numbers(array: Floats) -> list[float]:
    """Return an array of finite floats as a list of Python floats."""
    listed: list[float] = array.tolist()
    return listed


def read_numbers_of(subject: str, parameter: str, document: object, size: int) -> Floats:
    """Return the array that ``numbers`` wrote; raise InvalidInput unless it has the right length."""
    if not isinstance(document, list) or len(document) != size:
        raise InvalidInput(subject, parameter, f"be a list of {size} numbers", document)
    try:
        array = np.array(document, np.float64) if set(map(type, document)) <= {int, float} else np.array([np.nan])
    except OverflowError:  # an integer beyond double precision
        array = np.array([np.nan])
    if not np.isfinite(array).all():
        raise InvalidInput(subject, parameter, "be finite numbers", document)
    return array


def read_distribution_of(subject: str, parameter: str, document: object, size: int) -> Floats:
    """Return an array of numbers that are at least 0 and sum to one, up to rounding."""
    array = read_numbers_of(subject, parameter, document, size)
    if array.min(initial=0.0) < -_TOLERANCE or abs(float(array.sum()) - 1) > _TOLERANCE:
        raise InvalidInput(subject, parameter, "be probabilities that sum to one", document)
    return array


def is_close(first: Floats, second: Floats, scale: float = 1.0) -> bool:
    """Return whether two arrays are equal up to rounding, relative to their largest number or to ``scale``."""
    largest = max(scale, float(np.abs(first).max(initial=0.0)))
    return bool(np.abs(first - second).max(initial=0.0) <= _TOLERANCE * largest)


def check_document(
    subject: str, document: object, needed: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Mapping[str, Any]:
    """Return the document if it has exactly the keys of its format, including the version."""
    return check_keys(subject, "the document", document, required=("format", "version", *needed), optional=optional)
