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
    types: list[tuple[str, Any]]
    metadata: dict[bytes, bytes]
    _reader: Any

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [name for name, _ in self.types]

    def type_of(self, column: str) -> Any:
        """The type of a column; one that is missing or there twice is refused with a list of those there."""
        if self.names.count(column) != 1:
            raise InvalidInput(self.path, "the column", f"be one of {', '.join(map(repr, self.names))}", column)
        return dict(self.types)[column]

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of these columns, of at most so many rows, in the file's order."""
        with _refusing(self.path):
            if hasattr(self._reader, "iter_batches"):
                left = self._reader.metadata.num_rows
                for batch in self._reader.iter_batches(batch_size=rows, columns=list(columns)):
                    left -= batch.num_rows
                    yield batch
                if left:
                    raise InvalidInput(self.path, "the file", "have the rows that its footer counts", f"{left} fewer")
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
                schema, metadata = reader.schema, reader.schema.metadata
            else:
                parquet = import_pyarrow(shown, "pyarrow.parquet")
                reader = parquet.ParquetFile(file, page_checksum_verification=True)
                schema, metadata = reader.schema_arrow, reader.metadata.metadata
            types = [(field.name, field.type) for field in schema]
        yield ColumnFile(shown, types, dict(metadata or {}), reader)


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
