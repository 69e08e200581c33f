"""What results have in common: a table, printed, shown in a notebook, and exported to pandas and Arrow.

A result defines its columns once, in ``_columns``; text, HTML, pandas and Arrow follow from them.
"""

from __future__ import annotations

import dataclasses
import html
import types
from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from sfumato._core.optional import import_optional, import_pyarrow

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["MOST_ROWS", "FrozenData", "Result", "read_only", "same_content", "text_table", "unused_name"]

#: Maximum number of rows that are printed; the others are counted in the last line.
MOST_ROWS = 20


class FrozenData:
    """Equality, hash and pickling of a frozen dataclass whose fields may be arrays.

    Use it with ``@dataclass(frozen=True, eq=False)``. Two objects are equal if all their fields are; what a cached
    property has computed is neither compared nor pickled.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return other is self or all(same_content(a, b) for a, b in zip(_fields(self), _fields(other), strict=True))

    def __hash__(self) -> int:
        # Fields that are arrays or mappings have no hash; the others tell objects apart well enough.
        return hash((type(self), *(value for value in _fields(self) if isinstance(value, (str, int, float)))))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(cast("Any", self))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Arrays are writeable after unpickling, until the class makes them read-only again.
        finish = getattr(self, "__post_init__", None)
        if finish is not None:
            finish()


def read_only(array: npt.ArrayLike, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """Return a copy of an array that cannot be written to."""
    copied = np.array(array, dtype)
    copied.setflags(write=False)
    return copied


def unused_name(name: str, taken: Container[str]) -> str:
    """Return the name of a column with "_value" appended until no other column has it.

    >>> unused_name("low", {"low", "low_value"})
    'low_value_value'
    """
    while name in taken:
        name += "_value"
    return name


def _fields(data: object) -> list[Any]:
    return [getattr(data, field.name) for field in dataclasses.fields(cast("Any", data))]


def same_content(a: Any, b: Any) -> bool:
    """Return whether two values are equal, where arrays and dataclasses that hold arrays are compared by content."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.array_equal(a, b)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same_content, a, b))
    if isinstance(a, (dict, types.MappingProxyType)):
        return type(a) is type(b) and list(a) == list(b) and all(same_content(a[key], b[key]) for key in a)
    if dataclasses.is_dataclass(a) and not isinstance(a, (type, FrozenData)) and type(a) is type(b):
        return all(map(same_content, _fields(a), _fields(b)))
    return bool(a == b)


class Result(ABC):
    """A result that is a table: one row per value, mechanism or pair."""

    @abstractmethod
    def _columns(self, *arguments: Any, **options: Any) -> Mapping[str, Sequence[Any]]:
        """Return the columns of the table by name, all of one length."""

    @abstractmethod
    def _title(self) -> str:
        """Return one line that says what the table shows."""

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns that are printed and shown in a notebook."""
        return self._columns()

    def _notes(self) -> Sequence[str]:
        """Return sentences that are shown below the table."""
        return ()

    def _left_out(self) -> int:
        """Return the number of rows that ``_shown`` left out."""
        return 0

    def to_pandas(self, *arguments: Any, **options: Any) -> pandas.DataFrame:
        """Return the table as a pandas DataFrame.

        ``arguments`` and ``options`` are those that the result has for its table, such as ``confidence``.
        """
        frame: pandas.DataFrame = import_optional("pandas", "pandas", "a result as a DataFrame").DataFrame(
            dict(self._columns(*arguments, **options))
        )
        return frame

    def to_arrow(self, *arguments: Any, **options: Any) -> pyarrow.Table:
        """Return the table of ``to_pandas``, with the same ``arguments`` and ``options``, as an Arrow table.

        Labels that are tuples, or of different types, become strings.
        """
        arrow = import_pyarrow("a result as an Arrow table")
        columns = {name: _plain(column) for name, column in self._columns(*arguments, **options).items()}
        table: pyarrow.Table = arrow.table(columns)
        return table

    def __str__(self) -> str:
        return "\n".join([self._title(), text_table(self._shown(), self._left_out()), *self._notes()])

    def _repr_html_(self) -> str:
        columns = self._shown()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        rows, hidden = _rows(columns, self._left_out())
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        more = f'<tr><td colspan="{len(columns)}">… {hidden} more</td></tr>' if hidden else ""
        title = html.escape(self._title())
        table = f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{body}{more}</tbody></table>"
        return table + "".join(f"<p>{html.escape(note)}</p>" for note in self._notes())


def text_table(columns: Mapping[str, Sequence[Any]], left_out: int = 0) -> str:
    """Return columns as aligned text: names in the first line, numbers to the right, at most 20 rows.

    ``left_out`` rows are counted in the last line together with those above 20.
    """
    rows, hidden = _rows(columns, left_out)
    table = [list(columns), *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
    right = [all(_is_number(cell) for cell in column) for column in columns.values()]
    lines = []
    for row in table:
        cells = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True))
        lines.append("  ".join(cells).rstrip())
    return "\n".join([*lines, *([f"… {hidden} more"] if hidden else [])])


def _rows(columns: Mapping[str, Sequence[Any]], left_out: int) -> tuple[list[list[str]], int]:
    """Return the cells of the first rows as strings, and the number of rows left out."""
    length = len(next(iter(columns.values()), ()))
    shown = min(length, MOST_ROWS)
    rows = [[_cell(column[i]) for column in columns.values()] for i in range(shown)]
    return rows, length - shown + left_out


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _is_number(value: Any) -> bool:
    """Return whether a cell is aligned to the right: a number, none, or a number that is formatted already."""
    if isinstance(value, str):
        try:
            float(value.partition(" ± ")[0])
        except ValueError:
            return False
        return True
    return value is None or hasattr(value, "__float__")


def _plain(column: Sequence[Any]) -> Sequence[Any]:
    """Return the column as Arrow takes it: tuples become strings, and so do cells of different types."""
    if not isinstance(column, (list, tuple)):
        return column
    types = {type(cell) for cell in column if cell is not None}
    if tuple in types or (len(types) > 1 and not types <= {int, float}):
        return [cell if cell is None else str(cell) for cell in column]
    return column
