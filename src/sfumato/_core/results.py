"""What results have in common: a table, printed, shown in a notebook, and exported to pandas and Arrow.

A result defines its columns once, in ``_columns``; text, HTML, pandas and Arrow follow from them.
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato._core.optional import import_optional, import_pyarrow

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["Result", "text_table"]

#: Maximum number of rows that are printed; the others are counted in the last line.
_MOST_ROWS = 20


class Result(ABC):
    """A result that is a table: one row per value, mechanism or pair."""

    @abstractmethod
    def _columns(self, **options: Any) -> Mapping[str, Sequence[Any]]:
        """Return the columns of the table by name, all of one length."""

    @abstractmethod
    def _title(self) -> str:
        """Return one line that says what the table shows."""

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns that are printed and shown in a notebook."""
        return self._columns()

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """Return the table as a pandas DataFrame."""
        frame: pandas.DataFrame = import_optional("pandas", "arrow", "a result as a DataFrame").DataFrame(
            dict(self._columns(**options))
        )
        return frame

    def to_arrow(self, **options: Any) -> pyarrow.Table:
        """Return the table as an Arrow table; labels that are tuples become strings."""
        arrow = import_pyarrow("a result as an Arrow table")
        columns = {name: _plain(column) for name, column in self._columns(**options).items()}
        table: pyarrow.Table = arrow.table(columns)
        return table

    def __str__(self) -> str:
        return f"{self._title()}\n{text_table(self._shown())}"

    def _repr_html_(self) -> str:
        columns = self._shown()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        rows, hidden = _rows(columns)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        more = f'<tr><td colspan="{len(columns)}">… {hidden} more</td></tr>' if hidden else ""
        title = html.escape(self._title())
        return f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{body}{more}</tbody></table>"


def text_table(columns: Mapping[str, Sequence[Any]]) -> str:
    """Return columns as aligned text: names in the first line, numbers to the right, at most 20 rows."""
    rows, hidden = _rows(columns)
    table = [list(columns), *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
    right = [all(_is_number(cell) for cell in column) for column in columns.values()]
    lines = []
    for row in table:
        cells = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True))
        lines.append("  ".join(cells).rstrip())
    return "\n".join([*lines, *([f"… {hidden} more"] if hidden else [])])


def _rows(columns: Mapping[str, Sequence[Any]]) -> tuple[list[list[str]], int]:
    """Return the cells of the first rows as strings, and the number of rows left out."""
    length = len(next(iter(columns.values()), ()))
    shown = min(length, _MOST_ROWS)
    rows = [[_cell(column[i]) for column in columns.values()] for i in range(shown)]
    return rows, length - shown


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _is_number(value: Any) -> bool:
    return value is None or (hasattr(value, "__float__") and not isinstance(value, str))


def _plain(column: Sequence[Any]) -> Sequence[Any]:
    """Return the column with tuples as strings; an array has none."""
    if not isinstance(column, (list, tuple)):
        return column
    return [str(cell) if isinstance(cell, tuple) else cell for cell in column]
