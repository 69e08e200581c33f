"""Reports on disk: Parquet, Arrow IPC, or the binary batch, by the end of the file's name.

A column file has a column of reports, of the mechanism's own type and without nulls, and names the mechanism by its
hash in the schema's metadata; ``docs/report-format.md`` has it byte for byte. Files are read and written in pieces, so
memory stays bounded whatever their size.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.reports.atomic import replacing
from sfumato.reports.batch import read_batch, write_batch
from sfumato.reports.columns import ARROW, PARQUET, ColumnFile, import_pyarrow, open_columns, suffix_of
from sfumato.reports.validity import check_reports, checked_pieces, piece_rows

__all__ = ["BATCH", "METADATA_KEY", "REPORT_COLUMN", "read_reports", "write_reports"]

#: Names of binary batches end so.
BATCH = (".sfb",)
REPORT_COLUMN = "report"
#: The key of the mechanism's hash in a column file's metadata.
METADATA_KEY = b"sfumato.mechanism"


def write_reports(path: Path | str, mechanism: Mechanism, reports: Any, column: str = REPORT_COLUMN) -> int:
    """Write reports (one array, or an iterator of arrays) to a file, whole or not at all; how many there were.

    The same reports give the same file, however they were cut into arrays. Every one is checked.
    """
    suffix = suffix_of(path, PARQUET + ARROW + BATCH)
    if suffix not in BATCH:
        import_pyarrow(f"writing {path}")
    with replacing(path) as file:
        pieces = checked_pieces(mechanism, reports, str(path))
        if suffix in BATCH:
            return write_batch(mechanism, file, pieces)
        return _write_columns(mechanism, file, pieces, column, arrow=suffix in ARROW)


def read_reports(path: Path | str, mechanism: Mechanism, column: str = REPORT_COLUMN) -> Iterator[npt.NDArray[Any]]:
    """The reports of a file, in pieces, every one checked; whatever is wrong is refused with file and row."""
    if suffix_of(path, PARQUET + ARROW + BATCH) in BATCH:
        yield from _read_batch_file(path, mechanism)
        return
    with open_columns(path) as file:
        _check_schema(mechanism, file, column)
        row = 0
        for batch in file.batches([column], piece_rows(mechanism)):
            array = _from_arrow(mechanism, batch.column(0), file.path, row)
            row += len(array)
            if len(array):
                yield array


def _read_batch_file(path: Path | str, mechanism: Mechanism) -> Iterator[npt.NDArray[Any]]:
    try:
        with Path(path).open("rb") as file:
            yield from read_batch(mechanism, file, os.fstat(file.fileno()).st_size, str(path))
    except OSError as error:
        raise InvalidInput(str(path), "the path", f"be a readable file ({error.strerror})", str(path)) from error


# -- columns -----------------------------------------------------------------------------------------------


def _column_type(mechanism: Mechanism) -> Any:
    pyarrow = import_pyarrow("a column of reports")
    if mechanism.report_shape:
        return pyarrow.binary(mechanism.report_shape[0])
    return pyarrow.from_numpy_dtype(mechanism.report_dtype)


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
        few = not mechanism.report_shape  # indices repeat, and a dictionary packs them; bitmaps do not
        writer = parquet.ParquetWriter(file, schema, compression="zstd", use_dictionary=few, write_page_checksum=True)
    count = 0
    with writer:
        for piece in pieces:
            array = pyarrow.Array.from_buffers(kind, len(piece), [None, pyarrow.py_buffer(np.ascontiguousarray(piece))])
            writer.write_batch(pyarrow.record_batch([array], schema=schema))
            count += len(piece)
    return count


def _check_schema(mechanism: Mechanism, file: ColumnFile, column: str) -> None:
    found_type = file.type_of(column)
    found = file.metadata.get(METADATA_KEY)
    if found != mechanism.hash.encode():
        name = METADATA_KEY.decode()
        got = "none" if found is None else found.decode(errors="replace")
        raise InvalidInput(file.path, f"the mechanism in its metadata ({name})", f"be {mechanism.hash}", got)
    kind = _column_type(mechanism)
    if found_type != kind:
        raise InvalidInput(file.path, f"the column {column!r}", f"be {kind}", str(found_type))


def _from_arrow(mechanism: Mechanism, column: Any, path: str, first_row: int) -> npt.NDArray[Any]:
    if column.null_count:
        row = first_row + int(column.is_null().to_numpy(zero_copy_only=False).argmax())
        raise InvalidInput(path, f"the report in row {row}", "not be null", None)
    if not len(column):
        return check_reports(mechanism, [], path, first_row)
    shape = (len(column), *mechanism.report_shape)
    report_bytes = column.type.bit_width // 8
    values = np.frombuffer(column.buffers()[1], mechanism.report_dtype, math.prod(shape), column.offset * report_bytes)
    return check_reports(mechanism, values.reshape(shape), path, first_row)
