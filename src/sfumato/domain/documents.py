"""Read domains from documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato._core import check_keys
from sfumato.domain.kinds.base import DomainKind
from sfumato.domain.kinds.counted import Counted, checked_size
from sfumato.domain.kinds.grid import grid_of
from sfumato.domain.kinds.listed import list_of
from sfumato.domain.kinds.missing import with_missing
from sfumato.domain.kinds.product import product_of
from sfumato.domain.label_files import file_labels
from sfumato.domain.numeric import numeric_kind
from sfumato.domain.refusals import At, listing

#: Keys that describe a domain, each with the optional keys that may accompany it.
_COMPANIONS = {
    "values": ("missing",),
    "size": ("missing",),
    "low": ("high", "bins", "step", "closed", "out_of_range", "missing"),
    "edges": ("closed", "out_of_range", "missing"),
    "grid": (),
    "product": ("order",),
    "file": ("column", "delimiter", "encoding", "missing"),
}
_MAP_KEYS, _GRID_KEYS = ("latitude", "longitude"), ("rows", "columns")


def read_document(value: object, base: Path | None, at: At) -> DomainKind:
    """Return the domain kind that a document describes; ``base`` is the folder of the files it names."""
    companions = [key for keys in _COMPANIONS.values() for key in keys]
    document = check_keys(at.subject, at.parameter, value, optional=[*_COMPANIONS, *dict.fromkeys(companions)])
    keys = [key for key in _COMPANIONS if key in document]
    if len(keys) != 1:
        raise at.error(f"have exactly one of the keys {listing(list(_COMPANIONS), len(_COMPANIONS))}", list(document))
    key = keys[0]
    check_keys(at.subject, at.parameter, document, required=[key], optional=_COMPANIONS[key])
    return with_missing(_read_values(key, document, base, at), document.get("missing"), at.item("missing"))


def _read_values(key: str, document: Mapping[str, Any], base: Path | None, at: At) -> DomainKind:
    """Read the key that describes a domain, without its missing value."""
    content, here = document[key], at.item(key)
    if key == "values":
        if not isinstance(content, (list, tuple)):
            raise here.error("be a list of labels", content)
        labels = list(content)
        # A document lists the label of missing values last; a file may leave it out.
        if len(labels) > 1 and "missing" in document and labels[-1] == document["missing"]:
            labels.pop()
        return list_of(labels, here, tuples=True)
    if key == "size":
        return Counted(checked_size(content, here))
    if key in ("low", "edges"):
        return numeric_kind(document, at.item)
    if key == "grid":
        return _read_grid(content, here)
    if key == "product":
        return _read_product(content, document.get("order"), base, at)
    return list_of(file_labels(document, base, here), here)


def _read_grid(value: object, at: At) -> DomainKind:
    """Read the ``grid`` key of a document."""
    keys = (*_MAP_KEYS, *_GRID_KEYS)
    content = check_keys(at.subject, at.parameter, value, optional=keys)
    is_map = any(key in content for key in _MAP_KEYS)
    check_keys(at.subject, at.parameter, content, required=keys if is_map else _GRID_KEYS)
    latitude, longitude, rows, columns = (content.get(key) for key in keys)
    return grid_of(latitude, longitude, rows, columns, at.item)


def _read_product(content: object, order: object, base: Path | None, at: At) -> DomainKind:
    """Read the ``product`` and ``order`` keys of a document."""
    here = at.item("product")
    if not isinstance(content, Mapping) or not all(isinstance(name, str) for name in content):
        raise here.error("be a mapping from factor names to domains", content)
    if order is None:
        order = list(content)
    if not isinstance(order, (list, tuple)) or sorted(map(repr, order)) != sorted(map(repr, content)):
        raise at.item("order").error(f"name each of the factors {listing(list(content))} once", order)
    factors: dict[str, DomainKind] = {}
    for name in order:
        factor, place = content[name], here.item(name)
        listed = isinstance(factor, (list, tuple))
        factors[name] = list_of(list(factor), place, tuples=True) if listed else read_document(factor, base, place)
    return product_of(factors, here)
