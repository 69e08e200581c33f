"""Parquet and Arrow IPC, read column by column in pieces of bounded size; pyarrow is imported on first use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from sfumato._core import import_pyarrow
from sfumato.collecting.sources import ARROW, STREAM, Source, unreadable
from sfumato.errors import InvalidInput

__all__ = ["ColumnFile", "open_columns"]

_BUFFER_BYTES = 2**20


@dataclass(frozen=True)
class ColumnFile:
    """An open Parquet or Arrow IPC file, or Arrow IPC stream."""

    path: str
    types: list[tuple[str, Any]]
    metadata: dict[bytes, bytes]
    _reader: Any
    _stream: _Stream | None = None

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [name for name, _ in self.types]

    def type_of(self, column: str) -> Any:
        """The type of a column; one that is missing or there twice is refused with a list of those there."""
        if self.names.count(column) != 1:
            raise InvalidInput(self.path, "the column", f"be one of {', '.join(map(repr, self.names))}", column)
        return dict(self.types)[column]

    @property
    def group_rows(self) -> list[int] | None:
        """How many rows each row group of a Parquet file has; None for any other."""
        if not hasattr(self._reader, "iter_batches"):
            return None
        metadata = self._reader.metadata
        rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        if sum(rows) != metadata.num_rows:
            must = f"have together the {metadata.num_rows} rows that its footer counts"
            raise InvalidInput(self.path, "its row groups", must, sum(rows))
        return rows

    def batches(self, columns: Sequence[str], rows: int, row_groups: range | None = None) -> Iterator[Any]:
        """Record batches of these columns, of at most so many rows, in the file's order; of ``row_groups`` only."""
        with _refusing(self.path):
            if hasattr(self._reader, "iter_batches"):
                counts = self.group_rows or []
                groups = list(range(len(counts)) if row_groups is None else row_groups)
                left = sum(counts[group] for group in groups)
                for batch in self._reader.iter_batches(batch_size=rows, row_groups=groups, columns=list(columns)):
                    left -= batch.num_rows
                    yield batch
                if left:
                    raise InvalidInput(self.path, "the file", "have the rows that its footer counts", f"{left} fewer")
                return
            for whole in self._record_batches():
                batch = whole.select(list(columns))
                batch.validate(full=True)  # Arrow IPC is memory as it lies in the file: nothing has looked at it yet
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)

    def _record_batches(self) -> Iterator[Any]:
        if self._stream is None:
            yield from map(self._reader.get_batch, range(self._reader.num_record_batches))
            return
        yield from self._reader
        self._stream.check_end(self.path)


@contextmanager
def open_columns(source: Source) -> Iterator[ColumnFile]:
    """Open a Parquet or Arrow IPC file, or a pipe that brings one.

    Arrow streams are read as they come. The other formats have to be read from their end: a pipe with one of them is
    held in memory, for it may bring raw values, which have no business on disk.
    """
    shown = source.shown
    pyarrow = import_pyarrow(f"reading {shown}")
    stream = None if source.pipe is None or source.suffix != STREAM else _Stream(source.pipe)
    try:
        if stream is not None:
            file = pyarrow.PythonFile(stream, "r")
        elif source.pipe is not None:
            file = pyarrow.BufferReader(source.pipe.read())
        else:
            file = pyarrow.OSFile(shown)
    except OSError as error:
        raise unreadable(shown, error) from error
    with file:
        with _refusing(shown):
            if stream is not None:
                reader = import_pyarrow(shown, "pyarrow.ipc").open_stream(file)
                schema, metadata = reader.schema, reader.schema.metadata
            elif source.suffix in ARROW:
                reader = import_pyarrow(shown, "pyarrow.ipc").open_file(file)
                schema, metadata = reader.schema, reader.schema.metadata
            else:
                parquet = import_pyarrow(shown, "pyarrow.parquet")
                # A row group may be larger than memory: pages are read as they are needed, none beforehand.
                reader = parquet.ParquetFile(
                    file, page_checksum_verification=True, buffer_size=_BUFFER_BYTES, pre_buffer=False
                )
                schema, metadata = reader.schema_arrow, reader.metadata.metadata
            types = [(field.name, field.type) for field in schema]
        yield ColumnFile(shown, types, dict(metadata or {}), reader, stream)


class _Stream:
    """The bytes of an Arrow IPC stream, as pyarrow asks for them.

    pyarrow takes the end of the bytes for the end of the stream wherever a message ends, and so does not see that
    whole messages are missing. A stream that has its end-of-stream mark never asks for more than there is.
    """

    closed = False

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe, self._cut = pipe, False

    def read(self, size: int) -> bytes:
        data = self._pipe.read(size)
        self._cut |= len(data) < size
        return data

    def close(self) -> None:
        """Nothing to do: the pipe is not ours to close."""

    def check_end(self, shown: str) -> None:
        """Refuse a stream that was cut short, or goes on after its end."""
        if self._cut or self._pipe.read(1):
            got = "one that was cut short" if self._cut else "more after it"
            raise InvalidInput(shown, "the Arrow stream", "end with its end-of-stream mark", got)


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    """What pyarrow says of a file that is cut short, damaged or of another kind, as a refusal of that file."""
    arrow_error = import_pyarrow(path).ArrowException
    try:
        yield
    except InvalidInput:
        raise
    except (arrow_error, OSError, UnicodeDecodeError) as error:
        raise InvalidInput(path, "the file", "be whole and of the kind it says it is", str(error)) from error
