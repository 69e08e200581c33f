"""Split rows with several parts, from tuples or tables, into columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sfumato._core import import_pyarrow
from sfumato.domain.columns import arrow_column, is_arrow, library, read_column
from sfumato.domain.refusals import At
from sfumato.errors import InvalidInput


def split_rows(values: object, spellings: Sequence[Sequence[str]], at: At) -> list[Any]:
    """Return one column per part of a row: by name from a table, by position from tuples."""
    if library(values) != "pandas" and is_arrow(values):
        values = arrow_column(values)  # only once, because a stream cannot be read twice
    table = _table(values)
    if table is not None:
        names, column = table
        return [column(_only(names, spelling, at)) for spelling in spellings]
    width = len(spellings)
    must = f"be a tuple ({', '.join(spelling[0] for spelling in spellings)})"
    if isinstance(values, np.ndarray) and values.ndim == 2:
        if values.shape[1] != width:
            raise at.then(", each row").error(must, values.shape)
        return list(values.T)
    rows = read_column(values, at).items()
    if not (set(map(type, rows)) <= {tuple, list} and set(map(len, rows)) <= {width}):
        for i, row in enumerate(rows):
            if split_row(row, spellings) is None:
                raise InvalidInput(at.subject, f"row {i}", must, row)
        rows = [split_row(row, spellings) for row in rows]
    return [[row[part] for row in rows] for part in range(width)]


def _table(values: Any) -> tuple[list[Any], Callable[[int], Any]] | None:
    """Return the column names of a table, and a function that reads the column at a position."""
    if isinstance(values, Mapping):
        names = list(values)
        return names, lambda i: values[names[i]]
    if isinstance(values, np.ndarray):
        names = list(values.dtype.names or ())
        return (names, lambda i: values[names[i]]) if names else None
    if library(values) == "pandas":
        if not hasattr(type(values), "columns"):  # look at the class: a Series may have a row labelled "columns"
            return None
        return list(values.columns), lambda i: values.iloc[:, i]
    if is_arrow(values) and import_pyarrow().types.is_struct(values.type):
        return [field.name for field in values.type], values.flatten().__getitem__
    return None


def _only(names: Sequence[object], spelling: Sequence[str], at: At) -> int:
    """Return the position of the one column whose name is any of the spellings."""
    positions = [i for i, name in enumerate(names) if isinstance(name, str) and name in spelling]
    if len(positions) != 1:
        names_listed = " or ".join(map(repr, spelling))
        raise at.error(f"have exactly one column {names_listed}, not {len(positions)}", list(names))
    return positions[0]


def split_row(value: object, spellings: Sequence[Sequence[str]]) -> Sequence[object] | None:
    """Return the parts of one row, given by position or by name; None if it is not such a row."""
    if isinstance(value, Mapping):
        parts = [[value[name] for name in spelling if name in value] for spelling in spellings]
        return [one[0] for one in parts] if all(len(one) == 1 for one in parts) else None
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.ndim == 1 else None
    if isinstance(value, (tuple, list)) and len(value) == len(spellings):
        return value
    return None
