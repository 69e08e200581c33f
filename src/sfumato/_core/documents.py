"""Read and write JSON documents: canonical form, hash, typed fields and checked keys."""

from __future__ import annotations

import difflib
import functools
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ParamSpec, TypeVar

from sfumato._core.text import quantity
from sfumato.errors import Description, InvalidInput, NoAnswer

__all__ = [
    "canonical_hash",
    "canonical_json",
    "check_keys",
    "check_kind",
    "did_you_mean",
    "different_keys",
    "finite",
    "label_document",
    "number_document",
    "parse_json",
    "read_flag",
    "read_fractions",
    "read_integer",
    "read_items",
    "read_label",
    "read_number",
    "read_string",
    "reads_document",
]

P = ParamSpec("P")
R = TypeVar("R")

#: Exceptions that reading a malformed document can raise.
_MALFORMED = (ArithmeticError, AttributeError, LookupError, NoAnswer, RecursionError, TypeError, ValueError)
#: A fraction as ``str(Fraction)`` writes it.
_FRACTION = re.compile(r"-?[0-9]+(/0*[1-9][0-9]*)?")


def canonical_json(document: Mapping[str, Any]) -> str:
    """Return the one canonical JSON string of a document: sorted keys, no spaces, no NaN."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_hash(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 hash of the canonical JSON of a document, in hexadecimal."""
    return hashlib.sha256(canonical_json(document).encode()).hexdigest()


def different_keys(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return the keys that only one document has, or whose parts have different canonical JSON; 1, 1.0 and true differ.

    >>> different_keys({"a": 1, "b": [2]}, {"a": 1.0, "b": [2], "c": None})
    ['a', 'c']
    """

    def part(document: Mapping[str, Any], key: str) -> str:
        return canonical_json({key: document[key]} if key in document else {})

    return [key for key in {**first, **second} if part(first, key) != part(second, key)]


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; raise ValueError also if it is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def finite(value: Any) -> Any:
    """Replace infinities and NaN, which JSON cannot represent, by None in nested lists and dicts."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    return [finite(part) for part in value] if isinstance(value, (list, tuple)) else value


def label_document(label: Any) -> Any:
    """Return a label in the form used in documents: nested tuples become nested lists.

    >>> label_document(((1, 2), "me"))
    [[1, 2], 'me']
    """
    return [label_document(part) for part in label] if isinstance(label, tuple) else label


def read_label(document: Any) -> Any:
    """Return the label that ``label_document`` encoded.

    >>> read_label([[1, 2], "me"])
    ((1, 2), 'me')
    """
    return tuple(read_label(part) for part in document) if isinstance(document, list) else document


def number_document(number: float | None) -> float | str | None:
    """Return a float in the form used in documents: infinities and NaN become strings.

    >>> number_document(0.1), number_document(-math.inf), number_document(None)
    (0.1, '-inf', None)
    """
    return None if number is None else float(number) if math.isfinite(number) else str(float(number))


def read_number(
    subject: str, parameter: str, document: object, *, least: float | None = None, most: float = math.inf
) -> float:
    """Return the float that ``number_document`` encoded; reject numbers outside [least, most].

    NaN is accepted only if ``least`` is None.

    >>> read_number("Mug", "height", "-inf")
    -inf
    >>> read_number("Mug", "height", -1, least=0)
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidInput: Mug: height must be a number of at least 0; got -1
    """
    number = None
    if isinstance(document, str) and document in ("inf", "-inf", "nan"):
        number = float(document)
    elif isinstance(document, (int, float)) and not isinstance(document, bool):
        try:
            number = float(document)
        except OverflowError:
            number = None
    if number is None or (least is not None and not least <= number <= most):
        must = "be a number" if least in (None, -math.inf) else f"be a number of at least {least:g}"
        raise InvalidInput(subject, parameter, must if most == math.inf else f"{must} and at most {most:g}", document)
    return number


def read_integer(subject: str, parameter: str, document: object, least: int = 0) -> int:
    """Return an integer field of a document, which must be at least ``least`` and fit 64 bits."""
    if not isinstance(document, int) or isinstance(document, bool) or not least <= document < 2**63:
        raise InvalidInput(subject, parameter, f"be an integer from {least} to 2^63 - 1", document)
    return document


def read_flag(subject: str, parameter: str, document: object) -> bool:
    """Return a Boolean field of a document."""
    if not isinstance(document, bool):
        raise InvalidInput(subject, parameter, "be true or false", document)
    return document


def read_string(subject: str, parameter: str, document: object) -> str:
    """Return a string field of a document."""
    if not isinstance(document, str):
        raise InvalidInput(subject, parameter, "be a string", document)
    return document


def read_items(subject: str, parameter: str, document: object, size: int | None = None) -> list[Any]:
    """Return a list field of a document, which must have ``size`` items unless ``size`` is None."""
    if not isinstance(document, list) or (size is not None and len(document) != size):
        must = "be a list" if size is None else f"be a list of {quantity(size, 'item')}"
        raise InvalidInput(subject, parameter, must, document)
    return document


def read_fractions(subject: str, parameter: str, document: object, size: int | None = None) -> tuple[Fraction, ...]:
    """Return a list field of exact fractions, each encoded as a string such as ``"1/3"``."""
    items = read_items(subject, parameter, document, size)
    for place, item in enumerate(items):
        if not (isinstance(item, str) and _FRACTION.fullmatch(item)):
            raise InvalidInput(subject, f"{parameter}[{place}]", "be a fraction such as '1/3'", item)
    return tuple(map(Fraction, items))


def reads_document(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a ``from_dict`` function so that any error from a malformed document becomes InvalidInput."""
    subject = function.__qualname__

    @functools.wraps(function)
    def read(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            return function(*arguments, **options)
        except InvalidInput:
            raise
        except _MALFORMED as error:
            must = "be complete and unchanged, as to_dict writes it"
            got = Description(f"the error {type(error).__name__}: {error}")
            raise InvalidInput(subject, "the document", must, got) from None

    return read


def check_keys(
    subject: str,
    parameter: str,
    document: object,
    *,
    required: Sequence[str] = (),
    optional: Sequence[str] = (),
    form: str = "a mapping",
) -> Mapping[str, Any]:
    """Return a document if it is a mapping with all required keys and no unknown ones; reject it otherwise.

    ``form`` is the word for a mapping in the error message, such as "a JSON object".

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
        noun = "key" if len(missing) == 1 else "keys"
        raise InvalidInput(subject, parameter, f"have the {noun} {_quoted(missing)}", list(document))
    return document


#: Words for kinds of documents, by the keys that show them.
_KINDS = {
    "the spec of a mechanism": ("mechanism", "parameters"),
    "a policy": ("domain", "policy"),
    "a plan": ("policy", "rows"),
}


def check_kind(subject: str, kind: str, document: object) -> None:
    """Reject a JSON document of another kind, which was given in the wrong place; accept unknown kinds.

    >>> check_kind("a certificate", "a certificate", {"mechanism": "randomized-response", "parameters": {}})
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidInput: a certificate: the document must be a certificate; got the spec of a mechanism
    """
    if not isinstance(document, Mapping):
        raise InvalidInput(subject, "the document", f"be {kind}, a JSON object", document)
    stated = document.get("format")
    if isinstance(stated, str) and stated.startswith("sfumato-"):
        noun = stated.removeprefix("sfumato-").replace("-", " ")
        got: str | None = f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
    else:
        got = next((known for known, keys in _KINDS.items() if all(key in document for key in keys)), None)
    if got not in (None, kind):
        raise InvalidInput(subject, "the document", f"be {kind}", Description(got))


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return a suggestion of the known word closest to this one, or an empty string if none is close."""
    close = difflib.get_close_matches(str(word), known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _quoted(keys: Sequence[str]) -> str:
    """Return keys in quotation marks, separated by commas."""
    return ", ".join(map(repr, keys))
