"""Write result tables as CSV, Parquet or Arrow, by the suffix of the file. Files are written whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfumato._core import PIPE, import_pyarrow, writing
from sfumato.collecting.sources import ARROW, PARQUET, suffix_of

__all__ = ["write_table"]

_CSV = (".csv",)


def write_table(path: Path | str, columns: Mapping[str, Sequence[Any]], *, piped: str = ".csv") -> None:
    """Write columns of equal length; ``piped`` is the format on standard output if ``path`` is ``-``."""
    suffix = suffix_of(f"-{piped}" if str(path) == PIPE else path, _CSV + PARQUET + ARROW)
    with writing(path) as file:
        if suffix in _CSV:
            file.write(_csv(columns).encode())
            return
        table = import_pyarrow(f"writing {path}").table(dict(columns))
        if suffix in PARQUET:
            import_pyarrow(f"writing {path}", "pyarrow.parquet").write_table(table, file)
        else:
            with import_pyarrow(f"writing {path}", "pyarrow.ipc").new_file(file, table.schema) as writer:
                writer.write_table(table)


def _csv(columns: Mapping[str, Sequence[Any]]) -> str:
    """Return the lines of a CSV file: strings in quotes, numbers without, nothing for None.

    >>> print(_csv({"value": ["flu", None], "frequency": [0.5, 1e-05]}), end="")
    "value","frequency"
    "flu",0.5
    ,1e-05
    """
    cells = [np.asarray(column, dtype=object).tolist() for column in columns.values()]
    rows = [list(columns), *zip(*cells, strict=True)]
    return "".join(f"{','.join(map(_csv_cell, row))}\n" for row in rows)


def _csv_cell(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, (int, float)):
        return repr(cell)
    quoted = str(cell).replace('"', '""')
    return f'"{quoted}"'
