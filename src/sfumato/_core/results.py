"""Base class of results: a table that is printed, shown in a notebook, and exported to pandas and Arrow.

A result defines its columns once, in ``_columns``. Printed output, HTML, pandas and Arrow all use them.
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

#: Maximum number of printed rows; the last line states how many more there are.
MOST_ROWS = 20


class FrozenData:
    """Equality, hash and pickling for frozen dataclasses whose fields may be arrays.

    Use it with ``@dataclass(frozen=True, eq=False)``. Two objects are equal if all their fields are equal. Values of
    cached properties are neither compared nor pickled.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return other is self or all(same_content(a, b) for a, b in zip(_fields(self), _fields(other), strict=True))

    def __hash__(self) -> int:
        # Arrays and mappings cannot be hashed; the other fields distinguish objects well enough.
        return hash((type(self), *(value for value in _fields(self) if isinstance(value, (str, int, float)))))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(cast("Any", self))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Unpickled arrays are writeable; __post_init__ makes them read-only again.
        finish = getattr(self, "__post_init__", None)
        if finish is not None:
            finish()


def read_only(array: npt.ArrayLike, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """Return a read-only copy of an array."""
    copied = np.array(array, dtype)
    copied.setflags(write=False)
    return copied


def unused_name(name: str, taken: Container[str]) -> str:
    """Return a column name with "_value" appended until no other column has the same name.

    >>> unused_name("low", {"low", "low_value"})
    'low_value_value'
    """
    while name in taken:
        name += "_value"
    return name


def _fields(data: object) -> list[Any]:
    """Return the values of all fields of a dataclass."""
    return [getattr(data, field.name) for field in dataclasses.fields(cast("Any", data))]


def same_content(a: Any, b: Any) -> bool:
    """Return whether two values are equal; arrays, and dataclasses with arrays, are compared by content."""
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
    """Table with one row per value, mechanism or pair."""

    @abstractmethod
    def _columns(self, *arguments: Any, **options: Any) -> Mapping[str, Sequence[Any]]:
        """Return the columns of the table by name, all with the same length."""

    @abstractmethod
    def _title(self) -> str:
        """Return one line that states what the table shows."""

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns that are printed and shown in a notebook."""
        return self._columns()

    def _notes(self) -> Sequence[str]:
        """Return sentences to show below the table."""
        return ()

    def _left_out(self) -> int:
        """Return the number of rows that ``_shown`` leaves out."""
        return 0

    def to_pandas(self, *arguments: Any, **options: Any) -> pandas.DataFrame:
        """Return the table as a pandas DataFrame.

        Parameters
        ----------
        *arguments
            Positional options of the table of this result, such as a confidence level.
        **options
            The same options by name, such as ``confidence``.

        Returns
        -------
        pandas.DataFrame
            The table, with one row per value, mechanism or pair.

        Raises
        ------
        MissingExtra
            If pandas is not installed.
        """
        frame: pandas.DataFrame = import_optional("pandas", "pandas", "a result as a DataFrame").DataFrame(
            dict(self._columns(*arguments, **options))
        )
        return frame

    def to_arrow(self, *arguments: Any, **options: Any) -> pyarrow.Table:
        """Return the table as an Arrow table.

        Labels that are tuples, and labels of different types in one column, become strings.

        Parameters
        ----------
        *arguments
            Positional options of the table, as in :meth:`to_pandas`.
        **options
            The same options by name, such as ``confidence``.

        Returns
        -------
        pyarrow.Table
            The table, with one row per value, mechanism or pair.

        Raises
        ------
        MissingExtra
            If pyarrow is not installed.
        """
        table: pyarrow.Table = import_pyarrow("a result as an Arrow table").table(
            self.to_columns(*arguments, **options)
        )
        return table

    def to_columns(self, *arguments: Any, **options: Any) -> dict[str, Sequence[Any]]:
        """Return the table as a dict of columns, which needs no other package.

        Labels that are tuples, and labels of different types in one column, become strings.

        Parameters
        ----------
        *arguments
            Positional options of the table, as in :meth:`to_pandas`.
        **options
            The same options by name, such as ``confidence``.

        Returns
        -------
        dict
            The columns of the table by name: lists, tuples or NumPy arrays of the same length.
        """
        return {name: _plain(column) for name, column in self._columns(*arguments, **options).items()}

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
    """Return columns as aligned text: names in the first line, numbers right-aligned, at most 20 rows.

    The last line states how many more rows there are, including ``left_out`` rows that are not in the columns.
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
    """Return the cells of the printed rows as strings, and the number of rows left out."""
    length = len(next(iter(columns.values()), ()))
    shown = min(length, MOST_ROWS)
    rows = [[_cell(column[i]) for column in columns.values()] for i in range(shown)]
    return rows, length - shown + left_out


def _cell(value: Any) -> str:
    """Return a cell as a string: floats with five significant digits, None as a dash."""
    if value is None:
        return "-"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _is_number(value: Any) -> bool:
    """Return whether a cell is right-aligned: a number, None, or a string that starts with a number."""
    if isinstance(value, str):
        try:
            float(value.partition(" ± ")[0])
        except ValueError:
            return False
        return True
    return value is None or hasattr(value, "__float__")


def _plain(column: Sequence[Any]) -> Sequence[Any]:
    """Return a column in a form that Arrow accepts: tuples and cells of mixed types become strings."""
    if not isinstance(column, (list, tuple)):
        return column
    types = {type(cell) for cell in column if cell is not None}
    if tuple in types or (len(types) > 1 and not types <= {int, float}):
        return [cell if cell is None else str(cell) for cell in column]
    return column
