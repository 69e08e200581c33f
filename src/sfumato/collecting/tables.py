"""Write result tables as CSV, Parquet or Arrow, by the suffix of the file. Files are written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato._core import PIPE, import_pyarrow, writing
from sfumato.collecting.sources import ARROW, PARQUET, suffix_of

__all__ = ["write_table"]

_CSV = (".csv",)


def write_table(path: Path | str, table: Any, *, piped: str = ".csv") -> None:
    """Write an Arrow table; ``piped`` is the format on standard output if ``path`` is ``-``."""
    suffix = suffix_of(f"-{piped}" if str(path) == PIPE else path, _CSV + PARQUET + ARROW)
    with writing(path) as file:
        if suffix in _CSV:
            import_pyarrow(f"writing {path}", "pyarrow.csv").write_csv(table, file)
        elif suffix in PARQUET:
            import_pyarrow(f"writing {path}", "pyarrow.parquet").write_table(table, file)
        else:
            with import_pyarrow(f"writing {path}", "pyarrow.ipc").new_file(file, table.schema) as writer:
                writer.write_table(table)
