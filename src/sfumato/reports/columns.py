"""Parquet and Arrow IPC files, read column by column in pieces of bounded size; pyarrow is imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput, MissingExtra

__all__ = ["ARROW", "PARQUET", "ColumnFile", "import_pyarrow", "open_columns", "suffix_of"]

#: Names of Parquet files, and of Arrow IPC files (Feather version 2 is the same format), end so.
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")


def import_pyarrow(purpose: str, module: str = "pyarrow") -> Any:
    """A module of pyarrow, or MissingExtra."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra("arrow", purpose) from None


def suffix_of(path: Path | str, known: Sequence[str]) -> str:
    """The end of a file's name, which says its format."""
    suffix = Path(path).suffix.lower()
    if suffix not in known:
        raise InvalidInput(str(path), "the file name", f"end in one of {', '.join(known)}", suffix)
    return suffix


@dataclass(frozen=True)
class ColumnFile:
    """An open Parquet or Arrow IPC file."""

    path: str
    schema: Any
    metadata: dict[bytes, bytes]
    _reader: Any

    def check_column(self, name: str) -> None:
        """Refuse a column that is missing or there twice, and list those there."""
        if self.schema.names.count(name) != 1:
            raise InvalidInput(self.path, "the column", f"be one of {', '.join(map(repr, self.schema.names))}", name)

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of these columns, of at most so many rows, in the file's order."""
        with _refusing(self.path):
            if hasattr(self._reader, "iter_batches"):
                yield from self._reader.iter_batches(batch_size=rows, columns=list(columns))
                return
            for number in range(self._reader.num_record_batches):
                batch = self._reader.get_batch(number).select(list(columns))
                batch.validate(full=True)  # Arrow IPC is memory as it lies in the file: nothing has looked at it yet
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)


@contextmanager
def open_columns(path: Path | str) -> Iterator[ColumnFile]:
    """Open a Parquet or Arrow IPC file."""
    shown = str(path)
    arrow = suffix_of(path, PARQUET + ARROW) in ARROW
    pyarrow = import_pyarrow(f"reading {shown}")
    try:
        file = pyarrow.OSFile(shown)
    except OSError as error:
        raise InvalidInput(shown, "the path", f"be a readable file ({error.strerror or error})", shown) from error
    with file:
        with _refusing(shown):
            if arrow:
                reader = import_pyarrow(shown, "pyarrow.ipc").open_file(file)
                opened = ColumnFile(shown, reader.schema, dict(reader.schema.metadata or {}), reader)
            else:
                parquet = import_pyarrow(shown, "pyarrow.parquet")
                reader = parquet.ParquetFile(file, page_checksum_verification=True)
                opened = ColumnFile(shown, reader.schema_arrow, dict(reader.metadata.metadata or {}), reader)
        yield opened


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    """What pyarrow says of a file that is cut short, damaged or of another kind, as a refusal of that file."""
    arrow_error = import_pyarrow(path).ArrowException
    try:
        yield
    except InvalidInput:
        raise
    except (arrow_error, OSError, UnicodeDecodeError) as error:
        raise InvalidInput(path, "the file", "be whole and of the kind its name says", str(error)) from error
