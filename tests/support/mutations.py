"""Documents with one part replaced or removed, to test what reads them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from sfumato.errors import InvalidInput

__all__ = ["assert_read_or_rejected", "mutations"]

#: What a part is replaced by: another type, a number out of range, one that no double is near to, no number.
REPLACEMENTS: tuple[Any, ...] = (None, [], {}, "x", -1, 10**400, float("nan"), True)


def paths(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every part of a document, inner parts and leaves."""
    children = document.items() if isinstance(document, dict) else enumerate(document)
    for key, part in children:
        yield (*path, key)
        if isinstance(part, (dict, list)):
            yield from paths(part, (*path, key))


def mutations(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Copies of a document with one part replaced or removed, and what was done."""
    for replacement in REPLACEMENTS:
        yield f"all = {replacement!r:.20}", replacement
    for *outer, last in paths(document):
        for replacement in (*REPLACEMENTS, ...):
            copied = copy.deepcopy(document)
            parent: Any = copied
            for key in outer:
                parent = parent[key]
            if replacement is ...:
                del parent[last]
            else:
                parent[last] = replacement
            yield f"{[*outer, last]} = {replacement!r:.20}", copied


def assert_read_or_rejected(kind: Any, document: dict[str, Any]) -> None:
    """Every mutation of a document is read as a result, or raises InvalidInput and nothing else."""
    for what, mutated in mutations(document):
        try:
            assert kind.from_dict(mutated) is not None, what
        except InvalidInput:
            pass
        except Exception as error:
            raise AssertionError(f"{kind.__name__}: {what}: {error!r}") from error
