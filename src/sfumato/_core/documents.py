"""Documents: the one text and the one hash of each, and the refusal of keys it should not or does not have."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfumato.errors import InvalidInput

__all__ = [
    "canonical_hash",
    "canonical_json",
    "check_keys",
    "did_you_mean",
    "finite",
    "label_document",
    "number_document",
    "read_label",
    "read_number",
]


def canonical_json(document: Mapping[str, Any]) -> str:
    """One text per document: sorted keys, no spaces, no NaN."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_hash(document: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of a document."""
    return hashlib.sha256(canonical_json(document).encode()).hexdigest()


def finite(value: Any) -> Any:
    """The same with null for what JSON has no number for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    return [finite(part) for part in value] if isinstance(value, (list, tuple)) else value


def label_document(label: Any) -> Any:
    """Return a label as documents hold it: JSON has lists for tuples, and they may be nested.

    >>> label_document(((1, 2), "me"))
    [[1, 2], 'me']
    """
    return [label_document(part) for part in label] if isinstance(label, tuple) else label


def read_label(document: Any) -> Any:
    """Return the label that a document holds: the inverse of ``label_document``.

    >>> read_label([[1, 2], "me"])
    ((1, 2), 'me')
    """
    return tuple(read_label(part) for part in document) if isinstance(document, list) else document


def number_document(number: float | None) -> float | str | None:
    """Return a double as documents hold it: JSON has no infinity, so that is a string.

    >>> number_document(0.1), number_document(-math.inf), number_document(None)
    (0.1, '-inf', None)
    """
    return number if number is None or math.isfinite(number) else str(float(number))


def read_number(document: float | str | None) -> float | None:
    """Return the double that a document holds: the inverse of ``number_document``.

    >>> read_number(0.1), read_number("-inf"), read_number(None)
    (0.1, -inf, None)
    """
    return None if document is None else float(document)


def check_keys(
    subject: str,
    parameter: str,
    document: object,
    *,
    required: Sequence[str] = (),
    optional: Sequence[str] = (),
    form: str = "a mapping",
) -> Mapping[str, Any]:
    """The document, if it is a mapping with every needed key and no unknown one; else a refusal of ``parameter``.

    ``form`` is what its readers call a mapping.

    >>> check_keys("Mug", "document", {"colour": "red", "sise": 3}, required=["colour"], optional=["size"])
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidInput: Mug: document key must be one of 'colour', 'size' (did you mean 'size'?); got 'sise'
    """
    if not isinstance(document, Mapping):
        raise InvalidInput(subject, parameter, f"be {form}", document)
    known = [*required, *optional]
    for key in document:
        if key not in known:
            raise InvalidInput(
                subject, f"{parameter} key", f"be one of {_quoted(known)}{did_you_mean(key, known)}", key
            )
    missing = [key for key in required if key not in document]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise InvalidInput(subject, parameter, f"have the key{plural} {_quoted(missing)}", list(document))
    return document


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A hint at the known word that this one is near to, if it is near to any."""
    close = difflib.get_close_matches(str(word), known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _quoted(keys: Sequence[str]) -> str:
    return ", ".join(map(repr, keys))
