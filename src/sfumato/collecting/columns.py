"""Read columns of Parquet and Arrow IPC files in pieces of bounded size; pyarrow is imported on first use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from sfumato._core import import_pyarrow, quantity
from sfumato.collecting.sources import ARROW, STREAM, Source, unreadable
from sfumato.errors import Description, InvalidInput

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
        """The names of the columns."""
        return [name for name, _ in self.types]

    def type_of(self, column: str) -> Any:
        """Return the type of a column, or raise InvalidInput with the list of columns."""
        if self.names.count(column) != 1:
            raise InvalidInput(self.path, "the column", f"be one of {', '.join(map(repr, self.names))}", column)
        return dict(self.types)[column]

    @property
    def group_rows(self) -> list[int] | None:
        """The number of rows in each row group of a Parquet file; None for other formats."""
        if not hasattr(self._reader, "iter_batches"):
            return None
        metadata = self._reader.metadata
        rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        if sum(rows) != metadata.num_rows:
            must = f"have {quantity(metadata.num_rows, 'row')} in total, as its footer states"
            raise InvalidInput(self.path, "its row groups", must, Description(quantity(sum(rows), "row")))
        return rows

    def batches(self, columns: Sequence[str], rows: int, row_groups: range | None = None) -> Iterator[Any]:
        """Yield record batches of columns in the file's order, with at most ``rows`` rows each.

        ``row_groups`` selects row groups of a Parquet file.
        """
        with _refusing(self.path):
            if hasattr(self._reader, "iter_batches"):
                counts = self.group_rows or []
                groups = list(range(len(counts)) if row_groups is None else row_groups)
                left = sum(counts[group] for group in groups)
                for batch in self._reader.iter_batches(batch_size=rows, row_groups=groups, columns=list(columns)):
                    batch.validate(full=True)  # pyarrow does not check that strings are UTF-8
                    left -= batch.num_rows
                    yield batch
                if left:
                    got = Description(f"{quantity(left, 'row')} fewer")
                    raise InvalidInput(self.path, "the file", "have as many rows as its footer states", got)
                return
            for whole in self._record_batches():
                batch = whole.select(list(columns))
                batch.validate(full=True)  # Arrow IPC is raw memory that nothing has checked yet
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)

    def _record_batches(self) -> Iterator[Any]:
        """Yield the record batches of an Arrow file or stream."""
        if self._stream is None:
            yield from map(self._reader.get_batch, range(self._reader.num_record_batches))
            return
        yield from self._reader
        self._stream.check_end(self.path)


@contextmanager
def open_columns(source: Source) -> Iterator[ColumnFile]:
    """Open a Parquet or Arrow IPC file, or a pipe with one.

    Arrow streams are read as they arrive. The other formats must be read from their end, so such a pipe is read into
    memory. It is not written to disk, because it may contain raw values.
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
                # Read pages only when they are needed, because a row group may be larger than memory.
                reader = parquet.ParquetFile(
                    file, page_checksum_verification=True, buffer_size=_BUFFER_BYTES, pre_buffer=False
                )
                schema, metadata = reader.schema_arrow, reader.metadata.metadata
            types = [(field.name, field.type) for field in schema]
        yield ColumnFile(shown, types, dict(metadata or {}), reader, stream)


class _Stream:
    """The bytes of an Arrow IPC stream, as pyarrow reads them.

    pyarrow accepts the end of the bytes after any message as the end of the stream, and does not notice that whole
    messages are missing. A stream with its end-of-stream mark never asks for more bytes than there are.
    """

    closed = False

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe, self._cut = pipe, False

    def read(self, size: int) -> bytes:
        """Read bytes, and remember whether fewer arrived."""
        data = self._pipe.read(size)
        self._cut |= len(data) < size
        return data

    def close(self) -> None:
        """Do nothing, because the caller closes the pipe."""

    def check_end(self, shown: str) -> None:
        """Raise InvalidInput if the stream was truncated, or continues after its end."""
        if self._cut or self._pipe.read(1):
            got = Description("a truncated stream" if self._cut else "more bytes after it")
            hint = "Check that the program that writes the pipe finished without an error."
            raise InvalidInput(shown, "the Arrow stream", "end with its end-of-stream mark", got, hint=hint)


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    """Convert the errors of pyarrow for truncated, damaged or other files to InvalidInput."""
    arrow_error = import_pyarrow(path).ArrowException
    try:
        yield
    except InvalidInput:
        raise
    except (arrow_error, OSError, UnicodeDecodeError) as error:
        must = "be a complete file of the format that its name states"
        hint = "Write or copy the file again."
        raise InvalidInput(path, "the file", must, Description(error), hint=hint) from error
