"""Read domains from documents, and the label files that they name."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato._core import check_keys
from sfumato.domain.kinds.base import DomainKind
from sfumato.domain.kinds.counted import Counted, checked_size
from sfumato.domain.kinds.grid import grid_of
from sfumato.domain.kinds.listed import list_of
from sfumato.domain.kinds.product import product_of
from sfumato.domain.refusals import At, listing

#: Keys that describe a domain, each with the optional key that may accompany it.
_COMPANIONS = {"values": None, "size": None, "grid": None, "product": "order", "file": "column"}
_MAP_KEYS, _GRID_KEYS = ("latitude", "longitude"), ("rows", "columns")


def read_document(value: object, base: Path | None, at: At) -> DomainKind:
    """Return the domain kind that a document describes; ``base`` is the folder of the files it names."""
    companions = [key for key in _COMPANIONS.values() if key]
    document = check_keys(at.subject, at.parameter, value, optional=[*_COMPANIONS, *companions])
    keys = [key for key in _COMPANIONS if key in document]
    if len(keys) != 1:
        raise at.error(f"have exactly one of the keys {listing(list(_COMPANIONS))}", list(document))
    key = keys[0]
    content = document[key]
    companion = _COMPANIONS[key]
    check_keys(at.subject, at.parameter, document, required=[key], optional=[companion] if companion else [])
    here = at.item(key)
    if key == "values":
        if not isinstance(content, (list, tuple)):
            raise here.error("be a list of labels", content)
        return list_of(list(content), here, tuples=True)
    if key == "size":
        return Counted(checked_size(content, here))
    if key == "grid":
        return _read_grid(content, here)
    if key == "product":
        return _read_product(content, document.get("order"), base, at)
    return list_of(_file_labels(content, document.get("column"), base, here), here)


def _read_grid(value: object, at: At) -> DomainKind:
    """Read the ``grid`` key of a document."""
    is_map = isinstance(value, Mapping) and any(key in value for key in _MAP_KEYS)
    content = check_keys(
        at.subject,
        at.parameter,
        value,
        required=(*_MAP_KEYS, *_GRID_KEYS) if is_map else _GRID_KEYS,
        optional=() if is_map else _MAP_KEYS,
    )
    latitude, longitude, rows, columns = (content.get(key) for key in (*_MAP_KEYS, *_GRID_KEYS))
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


def _file_labels(name: object, column: object, base: Path | None, at: At) -> list[str]:
    """Read labels from a text file with one label per line, or from a column of a CSV file."""
    if base is None:
        raise at.error("come with base=, the folder that contains the file", name)
    if not isinstance(name, str) or not name or Path(name).is_absolute():
        raise at.error("be a path relative to base", name)
    if column is not None and not isinstance(column, str):
        raise at.then(" column").error("be the name of a column", column)
    path = base / name
    try:
        if column is None and path.suffix.lower() != ".csv":
            return [line for line in path.read_text(encoding="utf-8-sig").split("\n") if line]
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _csv_labels(csv.reader(file, strict=True), column, at)
    except OSError as error:
        raise at.file_error(error, f"be a readable file ({error.strerror})", str(path)) from error
    except UnicodeDecodeError as error:
        raise at.error("be UTF-8 text", str(path)) from error
    except csv.Error as error:
        raise at.error(f"be a well-formed CSV file ({error})", str(path)) from error


def _csv_labels(lines: Any, column: str | None, at: At) -> list[str]:
    """Return the labels in one column of a CSV file with a header row."""
    header: list[str] = next(lines, [])
    if column is None and len(header) != 1:
        raise at.then(" column").error(
            "be named, because this CSV file does not have exactly one column",
            header,
            hint='Add "column" to the document.',
        )
    if column is not None and header.count(column) != 1:
        raise at.then(" column").error(f"occur once in the header {header}", column)
    place = 0 if column is None else header.index(column)
    labels: list[str] = []
    for cells in lines:
        if not cells:
            continue
        if len(cells) != len(header) or not cells[place]:
            raise at.then(f", line {lines.line_num},").error("have a label in the column", cells)
        labels.append(cells[place])
    return labels
