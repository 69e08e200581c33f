"""Reports on disk or in a pipe: Parquet, Arrow IPC, or the binary batch, by the end of the file's name.

A column file has a column of reports, of the mechanism's own type and without nulls, and names the mechanism by its
hash in the schema's metadata; ``docs/report-format.md`` has it byte for byte. Files are read and written in pieces, so
memory stays bounded whatever their size.

A pipe is named ``-``. What is written to it is what a file would hold, a binary batch unless another format is asked
for, or text (``sfumato.collecting.lines``); what is read from it is known by its first bytes, and may be an Arrow IPC
stream too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from sfumato._core import PIPE, import_pyarrow, writing
from sfumato.collecting.batch import read_batch, write_batch
from sfumato.collecting.columns import ColumnFile, open_columns
from sfumato.collecting.lines import read_lines, write_lines
from sfumato.collecting.sources import ARROW, LINES, PARQUET, Source, source_of, suffix_of
from sfumato.errors import InvalidInput
from sfumato.mechanisms import REPORT_COLUMN, Mechanism

__all__ = [
    "BATCH",
    "METADATA_KEY",
    "REPORT_COLUMN",
    "REPORT_SUFFIXES",
    "read_reports",
    "rows_by_group",
    "write_reports",
]

#: Names of binary batches end so.
BATCH = (".sfb",)
REPORT_SUFFIXES = PARQUET + ARROW + BATCH
#: The key of the mechanism's hash in a column file's metadata.
METADATA_KEY = b"sfumato.mechanism"


def write_reports(
    mechanism: Mechanism, reports: Any, path: Path | str, *, column: str = REPORT_COLUMN, piped: str = ".sfb"
) -> int:
    """Write reports to a file, whole or not at all.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports.
    reports
        An array, a column of pandas, polars or Arrow, or an iterator of such pieces. Every report is checked. The same
        reports give the same file, however they were cut into pieces.
    path
        The file. The end of its name is the format: Parquet, Arrow or the binary batch; ``-`` is standard output.
    column
        The name of the column of reports, in Parquet and Arrow files.
    piped
        The format on standard output.

    Returns
    -------
    int
        The number of reports.

    Raises
    ------
    InvalidInput
        If a report is not one of the mechanism; nothing is written.
    """
    known = (*REPORT_SUFFIXES, LINES) if str(path) == PIPE else REPORT_SUFFIXES
    suffix = suffix_of(f"-{piped}" if str(path) == PIPE else path, known)
    if suffix not in (*BATCH, LINES):
        import_pyarrow(f"writing {path}")
    with writing(path) as file:
        pieces = mechanism.report_format.validated_pieces(reports, str(path))
        if suffix in BATCH:
            return write_batch(mechanism, file, pieces)
        if suffix == LINES:
            return write_lines(mechanism, file, pieces)
        return _write_columns(mechanism, file, pieces, column, arrow=suffix in ARROW)


def rows_by_group(source: Source) -> list[int] | None:
    """How many rows each row group of a Parquet file has; None for what is read whole, as a pipe is."""
    if source.pipe is not None or source.suffix not in PARQUET:
        return None
    with open_columns(source) as file:
        return file.group_rows


def read_reports(
    mechanism: Mechanism, path: Path | str | Source, *, column: str = REPORT_COLUMN, row_groups: range | None = None
) -> Iterator[npt.NDArray[Any]]:
    """Yield the reports of a file in arrays of bounded size, every report checked.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports.
    path
        A Parquet or Arrow file, a binary batch, or ``-`` for standard input.
    column
        The name of the column of reports, in Parquet and Arrow files.
    row_groups
        The row groups of a Parquet file to read; all unless given.

    Raises
    ------
    InvalidInput
        If the file is of another mechanism, damaged, or has an invalid report; the message names file and row.
    MissingFile
        If there is no such file.
    """
    source = path if isinstance(path, Source) else source_of(path, REPORT_SUFFIXES)
    if source.suffix in BATCH:
        with source.open() as opened:
            length = os.fstat(opened.fileno()).st_size if source.pipe is None else None
            yield from read_batch(mechanism, opened, length, source.shown)
        return
    if source.suffix == LINES:
        with source.open() as opened:
            yield from read_lines(mechanism, opened, source.shown)
        return
    with open_columns(source) as file:
        _check_schema(mechanism, file, column)
        row = 0 if row_groups is None else sum((file.group_rows or [])[: row_groups.start])
        for batch in file.batches([column], mechanism.report_format.piece_rows, row_groups):
            array = _from_arrow(mechanism, batch.column(0), file.path, row)
            row += len(array)
            if len(array):
                yield array


# -- columns -----------------------------------------------------------------------------------------------


def _column_type(mechanism: Mechanism) -> Any:
    pyarrow = import_pyarrow("a column of reports")
    if mechanism.report_format.shape:
        return pyarrow.binary(mechanism.report_format.shape[0])
    return pyarrow.from_numpy_dtype(mechanism.report_format.dtype)


def _write_columns(
    mechanism: Mechanism, file: BinaryIO, pieces: Iterator[npt.NDArray[Any]], column: str, *, arrow: bool
) -> int:
    pyarrow = import_pyarrow("a column of reports")
    kind = _column_type(mechanism)
    metadata = {METADATA_KEY: mechanism.hash.encode()}
    schema = pyarrow.schema([pyarrow.field(column, kind, nullable=False)], metadata=metadata)
    if arrow:
        writer = import_pyarrow("a column of reports", "pyarrow.ipc").new_file(file, schema)
    else:
        parquet = import_pyarrow("a column of reports", "pyarrow.parquet")
        has_repeats = not mechanism.report_format.shape  # indices repeat, and a dictionary packs them; bitmaps do not
        writer = parquet.ParquetWriter(
            file, schema, compression="zstd", use_dictionary=has_repeats, write_page_checksum=True
        )
    count = 0
    with writer:
        for piece in pieces:
            array = pyarrow.Array.from_buffers(kind, len(piece), [None, pyarrow.py_buffer(np.ascontiguousarray(piece))])
            writer.write_batch(pyarrow.record_batch([array], schema=schema))
            count += len(piece)
    return count


def _check_schema(mechanism: Mechanism, file: ColumnFile, column: str) -> None:
    column_type = file.type_of(column)
    mechanism_hash = file.metadata.get(METADATA_KEY)
    if mechanism_hash != mechanism.hash.encode():
        name = METADATA_KEY.decode()
        got = "none" if mechanism_hash is None else mechanism_hash.decode(errors="replace")
        raise InvalidInput(file.path, f"the mechanism in its metadata ({name})", f"be {mechanism.hash}", got)
    kind = _column_type(mechanism)
    if column_type != kind:
        raise InvalidInput(file.path, f"the column {column!r}", f"be {kind}", str(column_type))


def _from_arrow(mechanism: Mechanism, column: Any, path: str, first_row: int) -> npt.NDArray[Any]:
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
