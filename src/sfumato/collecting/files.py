"""Read and write reports in files or a pipe: Parquet, Arrow IPC or the binary batch, by the suffix of the file.

A column file has a column of reports of the mechanism's type, without nulls. The metadata of its schema contain the
hash of the mechanism; ``docs/report-format.md`` specifies every byte. Files are read and written in pieces, so memory
stays bounded for every size.

A pipe is named ``-``. It carries the bytes of a file: by default a binary batch, or another format on request, or text
(``sfumato.collecting.lines``). A reader recognizes the format by the first bytes, and also accepts an Arrow IPC stream.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from sfumato._core import PIPE, import_pyarrow, writing
from sfumato.collecting.batch import read_batch, write_batch
from sfumato.collecting.columns import ColumnFile, open_columns
from sfumato.collecting.hashes import check_origin, wrong_mechanism
from sfumato.collecting.lines import read_lines, write_lines
from sfumato.collecting.sources import ARROW, LINES, PARQUET, Source, source_of, suffix_of
from sfumato.domain import arrow_column, frame_columns
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms import REPORT_COLUMN, Mechanism

__all__ = [
    "BATCH",
    "METADATA_KEY",
    "REPORT_COLUMN",
    "REPORT_SUFFIXES",
    "UNPROTECTED_KEY",
    "read_grouped_reports",
    "read_reports",
    "rows_by_group",
    "write_report_rows",
    "write_reports",
]

#: Suffix of binary batches.
BATCH = (".sfb",)
REPORT_SUFFIXES = PARQUET + ARROW + BATCH
#: Key of the mechanism's hash in the metadata of a column file.
METADATA_KEY = b"sfumato.mechanism"
#: Key of the names of columns that the mechanism does not protect, a JSON list, in the metadata of a column file.
UNPROTECTED_KEY = b"sfumato.unprotected"
_NEXT_STEP = "Pass the mechanism that produced the reports, and a file that write_reports or privatize wrote."


def write_reports(
    mechanism: Mechanism,
    reports: Any,
    path: Path | str,
    *,
    column: str = REPORT_COLUMN,
    piped: str = ".sfb",
    by: Any = None,
) -> int:
    """Write reports to a file in the format that its suffix names.

    If a report is invalid or the process ends early, no file is written, and an existing file stays as it is.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports.
    reports
        An array, a column of pandas, polars or Arrow, or an iterator of such pieces. Every report is checked. The same
        reports give the same file, however they are divided into pieces.
    path
        Path of the file. The suffix selects the format: Parquet (``.parquet``, ``.pq``), Arrow (``.arrow``,
        ``.feather``, ``.ipc``) or the binary batch (``.sfb``). ``-`` is standard output.
    column
        Name of the column of reports in Parquet and Arrow files.
    piped
        Format on standard output: one of the suffixes above, or ``".lines"`` for one report per line of text.
    by
        Public columns that travel with the reports in a Parquet or Arrow file, such as regions or survey weights: a
        mapping from names to columns, or a frame of pandas, polars or Arrow. They are not protected. The metadata of
        the file name them.

    Returns
    -------
    int
        The number of reports that were written.

    Raises
    ------
    InvalidInput
        If a report is not a report of the mechanism, the suffix is unknown, or public columns do not have one entry
        per report or cannot be stored in the format. Nothing is written.

    Examples
    --------
    >>> import sfumato as sf, tempfile
    >>> from sfumato.collecting import write_reports
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), epsilon=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_reports(mechanism, [1, 0, 1], f"{folder}/monday.sfb")
    3
    """
    check_origin(mechanism, reports, str(path))
    if by is not None:
        columns = frame_columns(by)
        if not columns:
            raise InvalidInput("write_reports", "by", "be a frame, or a mapping from names to columns", by)
        array = mechanism.report_format.validate(reports, str(path))
        rows = iter([(array, {str(name): entries for name, entries in columns.items()})])
        return write_report_rows(mechanism, rows, path, list(map(str, columns)), column=column, piped=piped)
    suffix = _suffix(path, piped)
    with writing(path) as file:
        pieces = mechanism.report_format.validated_pieces(reports, str(path))
        if suffix in BATCH:
            return write_batch(mechanism, file, pieces)
        if suffix == LINES:
            return write_lines(mechanism, file, pieces)
        return _write_columns(mechanism, file, pieces, column, arrow=suffix in ARROW)


def write_report_rows(
    mechanism: Mechanism,
    rows: Iterator[tuple[npt.NDArray[Any], Mapping[str, Any]]],
    path: Path | str,
    names: Sequence[str],
    *,
    column: str = REPORT_COLUMN,
    piped: str = ".sfb",
) -> int:
    """Write reports with public columns, from pieces that have both; see :func:`write_reports`."""
    suffix = _suffix(path, piped)
    if suffix in (*BATCH, LINES):
        hint = "Choose a file name that ends in .parquet or .arrow; for a pipe, choose one of these formats."
        must = "be Parquet or Arrow if columns travel with the reports"
        raise InvalidInput(str(path), "the format", must, suffix, hint=hint)
    public = _PublicColumns(str(path), names, column)

    def reports() -> Iterator[npt.NDArray[Any]]:
        for array, columns in rows:
            public.add(columns, len(array))
            yield array

    with writing(path) as file:
        pieces = mechanism.report_format.validated_pieces(reports(), str(path))
        return _write_columns(mechanism, file, pieces, column, arrow=suffix in ARROW, public=public)


def _suffix(path: Path | str, piped: str) -> str:
    """Return the format to write, and import pyarrow if it needs it."""
    known = (*REPORT_SUFFIXES, LINES) if str(path) == PIPE else REPORT_SUFFIXES
    suffix = suffix_of(f"-{piped}" if str(path) == PIPE else path, known)
    if suffix not in (*BATCH, LINES):
        import_pyarrow(f"writing {path}")
    return suffix


def rows_by_group(source: Source) -> list[int] | None:
    """Return the number of rows in each row group of a Parquet file; None for sources that are read as a whole."""
    if source.pipe is not None or source.suffix not in PARQUET:
        return None
    with open_columns(source) as file:
        return file.group_rows


def read_reports(
    mechanism: Mechanism, path: Path | str | Source, *, column: str = REPORT_COLUMN, row_groups: range | None = None
) -> Iterator[npt.NDArray[Any]]:
    """Yield the reports of a file as arrays of bounded size, so that large files fit in memory.

    The function checks every report.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports.
    path
        Path of a file that :func:`write_reports` wrote: Parquet, Arrow or a binary batch. ``-`` is standard input.
    column
        Name of the column of reports in Parquet and Arrow files.
    row_groups
        Indices of the row groups of a Parquet file to read, from 0. The default is all.

    Yields
    ------
    numpy.ndarray
        The next reports, in the order of the file: unsigned integers, or one row of bytes per report.

    Raises
    ------
    InvalidInput
        If the file is damaged, has reports of another mechanism, or has an invalid report. The message names the file
        and the row.
    MissingFile
        If the file does not exist.

    Examples
    --------
    >>> import sfumato as sf, tempfile
    >>> from sfumato.collecting import read_reports, write_reports
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), epsilon=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_reports(mechanism, [1, 0, 1], f"{folder}/monday.sfb")
    ...     print([piece.tolist() for piece in read_reports(mechanism, f"{folder}/monday.sfb")])
    [[1, 0, 1]]
    """
    source = path if isinstance(path, Source) else source_of(path, REPORT_SUFFIXES)
    if source.suffix in BATCH:
        with source.open() as opened:
            length = os.fstat(opened.fileno()).st_size if source.pipe is None else None
            yield from read_batch(mechanism, opened, length, source.shown, 1)
        return
    if source.suffix == LINES:
        with source.open() as opened:
            yield from read_lines(mechanism, opened, source.shown)
        return
    with open_columns(source) as file:
        _check_schema(mechanism, file, column)
        row = _first_row(file, row_groups)
        for batch in file.batches([column], mechanism.report_format.piece_rows, row_groups):
            array = _from_arrow(mechanism, batch.column(0), file.path, row)
            row += len(array)
            if len(array):
                yield array


def read_grouped_reports(
    mechanism: Mechanism, source: Source, names: Sequence[str], *, row_groups: range | None = None
) -> Iterator[tuple[npt.NDArray[Any], list[Any], int]]:
    """Yield checked reports with public columns of the same rows, and the number of the first row."""
    if source.suffix in (*BATCH, LINES):
        hint = "Write the reports to a Parquet or Arrow file, with their columns."
        got = Description("a batch, which has reports only")
        raise InvalidInput(source.shown, "the file", f"have the columns {list(names)}", got, hint=hint)
    with open_columns(source) as file:
        _check_schema(mechanism, file, REPORT_COLUMN)
        for name in names:
            file.type_of(name)
        row = _first_row(file, row_groups)
        for batch in file.batches([REPORT_COLUMN, *names], mechanism.report_format.piece_rows, row_groups):
            array = _from_arrow(mechanism, batch.column(REPORT_COLUMN), file.path, row)
            if len(array):
                yield array, [batch.column(name) for name in names], row
            row += len(array)


def _first_row(file: ColumnFile, row_groups: range | None) -> int:
    """Return the number of the first row of some row groups; rows of a file are numbered from 1."""
    return 1 if row_groups is None else 1 + sum((file.group_rows or [])[: row_groups.start])


# -- columns -----------------------------------------------------------------------------------------------


class _PublicColumns:
    """Public columns that travel with reports; rows wait here until their reports are written."""

    def __init__(self, path: str, names: Sequence[str], report_column: str) -> None:
        if len({report_column, *names}) <= len(names):
            must = "have different names, none of them that of the reports"
            raise InvalidInput(path, "the columns", must, [report_column, *names])
        self.names = list(names)
        self._path, self._row = path, 0
        self._types: dict[str, Any] = {}
        self._waiting: dict[str, list[Any]] = {name: [] for name in names}

    def add(self, columns: Mapping[str, Any], rows: int) -> None:
        """Add rows, and check that none of them lacks a label."""
        pyarrow = import_pyarrow("a column of reports")
        for name in self.names:
            entries = columns[name]
            if hasattr(entries, "__arrow_c_stream__") or hasattr(entries, "__arrow_c_array__"):
                entries = arrow_column(entries)
            array = entries if isinstance(entries, pyarrow.ChunkedArray) else pyarrow.array(entries, from_pandas=True)
            if pyarrow.types.is_dictionary(array.type):
                array = array.cast(array.type.value_type)
            if len(array) != rows:
                must = f"have one entry per report, {rows} in total"
                raise InvalidInput(self._path, f"the column {name!r}", must, Description(f"{len(array)} entries"))
            if array.null_count:
                row = self._row + int(np.asarray(array.is_null()).argmax())
                hint = "Give missing groups a label, such as 'unknown', before reports are made."
                raise InvalidInput(self._path, f"{name} in row {row}", "not be missing", None, row=row, hint=hint)
            kind = self._types.setdefault(name, array.type)
            try:
                self._waiting[name].append(array.cast(kind))
            except pyarrow.ArrowInvalid as error:
                must = f"have one type in all rows, {kind}"
                raise InvalidInput(self._path, f"the column {name!r}", must, Description(error)) from None
        self._row += rows

    def fields(self) -> list[Any]:
        """Return the Arrow fields of the columns; those of a file without rows are strings."""
        pyarrow = import_pyarrow("a column of reports")
        return [pyarrow.field(name, self._types.get(name, pyarrow.string()), nullable=False) for name in self.names]

    def take(self, rows: int) -> list[Any]:
        """Remove the next rows, and return one array per column."""
        pyarrow = import_pyarrow("a column of reports")
        arrays = []
        for field in self.fields():
            chunks = [chunk for part in self._waiting[field.name] for chunk in getattr(part, "chunks", [part])]
            whole = pyarrow.chunked_array(chunks, field.type)
            self._waiting[field.name] = [whole.slice(rows)]
            arrays.append(pyarrow.concat_arrays([*whole.slice(0, rows).chunks, pyarrow.array([], field.type)]))
        return arrays


def _column_type(mechanism: Mechanism) -> Any:
    """Return the Arrow type of a column of reports."""
    pyarrow = import_pyarrow("a column of reports")
    if mechanism.report_format.shape:
        return pyarrow.binary(mechanism.report_format.shape[0])
    return pyarrow.from_numpy_dtype(mechanism.report_format.dtype)


def _write_columns(
    mechanism: Mechanism,
    file: BinaryIO,
    pieces: Iterator[npt.NDArray[Any]],
    column: str,
    *,
    arrow: bool,
    public: _PublicColumns | None = None,
) -> int:
    """Write a Parquet or Arrow file, and return the number of reports."""
    pyarrow = import_pyarrow("a column of reports")
    kind = _column_type(mechanism)
    metadata = {METADATA_KEY: mechanism.hash.encode()}
    fields = [pyarrow.field(column, kind, nullable=False)]
    if public is not None:
        first = list(itertools.islice(pieces, 1))  # the types of public columns follow from the first rows
        pieces = itertools.chain(first, pieces)
        fields += public.fields()
        metadata[UNPROTECTED_KEY] = json.dumps(public.names).encode()
    schema = pyarrow.schema(fields, metadata=metadata)
    if arrow:
        writer = import_pyarrow("a column of reports", "pyarrow.ipc").new_file(file, schema)
    else:
        parquet = import_pyarrow("a column of reports", "pyarrow.parquet")
        has_repeats = (
            not mechanism.report_format.shape
        )  # a dictionary compresses indices, which repeat, but not bitmaps
        names = [] if public is None else public.names
        writer = parquet.ParquetWriter(
            file,
            schema,
            compression="zstd",
            use_dictionary=[*([column] if has_repeats else []), *names] if names else has_repeats,
            write_page_checksum=True,
        )
    count = 0
    with writer:
        for piece in pieces:
            array = pyarrow.Array.from_buffers(kind, len(piece), [None, pyarrow.py_buffer(np.ascontiguousarray(piece))])
            arrays = [array] if public is None else [array, *public.take(len(piece))]
            writer.write_batch(pyarrow.record_batch(arrays, schema=schema))
            count += len(piece)
    return count


def _check_schema(mechanism: Mechanism, file: ColumnFile, column: str) -> None:
    """Raise InvalidInput unless the file has reports of the mechanism."""
    column_type = file.type_of(column)
    mechanism_hash = file.metadata.get(METADATA_KEY)
    if mechanism_hash != mechanism.hash.encode():
        where = f"the mechanism hash in its metadata ({METADATA_KEY.decode()})"
        stored_hash = None if mechanism_hash is None else mechanism_hash.decode(errors="replace")
        raise wrong_mechanism(file.path, where, mechanism.hash, stored_hash, next_step=_NEXT_STEP)
    kind = _column_type(mechanism)
    if column_type != kind:
        raise InvalidInput(file.path, f"the column {column!r}", f"have the type {kind}", Description(column_type))


def _from_arrow(mechanism: Mechanism, column: Any, path: str, first_row: int) -> npt.NDArray[Any]:
    """Return a column of reports as a checked array."""
    if column.null_count:
        row = first_row + int(column.is_null().to_numpy(zero_copy_only=False).argmax())
        raise InvalidInput(path, f"the report in row {row}", "not be null", None)
    if not len(column):
        return mechanism.report_format.validate([], path, first_row)
    shape = (len(column), *mechanism.report_format.shape)
    report_bytes = column.type.bit_width // 8
    values = np.frombuffer(
        column.buffers()[1], mechanism.report_format.dtype, math.prod(shape), column.offset * report_bytes
    )
    return mechanism.report_format.validate(values.reshape(shape), path, first_row)
