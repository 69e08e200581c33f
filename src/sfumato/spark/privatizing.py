"""``privatize`` on Spark: written once, at once, and only then a table.

A lazy plan would be run anew for every action on it, and each run would draw, so one person would report several times.
Hence the reports are written eagerly, and what is returned reads them back.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._privatize import privatize_indices
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.reports import write_reports
from sfumato.reports.columns import import_pyarrow, open_columns
from sfumato.reports.sources import ARROW, PARQUET
from sfumato.spark.sessions import ROWS_PER_BATCH, no_word_of_pandas, refuse_speculation
from sfumato.spark.staging import put_file, staged
from sfumato.spark.tables import quoted, read_parquet, read_table
from sfumato.spark.tasks import Refused, mechanism_of
from sfumato.spark.whole_files import by_size, sources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["privatize", "privatize_files"]

_RESULT = "partition int, file string, refusal string"

Columns: TypeAlias = str | Sequence[str] | None
Indices: TypeAlias = Iterator[npt.NDArray[np.int64]]
#: What an executor does first: from Arrow batches to the indices of the values.
Reader: TypeAlias = Callable[[Mechanism, Iterable[Any]], Indices]


def privatize(mechanism: Mechanism, frame: DataFrame, path: str, column: Columns = None) -> DataFrame:
    """Randomize a column of a DataFrame into a new table of reports at ``path``, and return that table.

    ``path`` is one of Hadoop's, on a file system that renames a folder in one step. Several columns are the parts of a
    product or a grid; with none named, all are taken. Every executor draws from the operating system's randomness.
    Unknown values and nulls are refused, and then there is no table.
    """
    return _written(mechanism, frame.sparkSession, path, [_of_frame(mechanism, frame, column)])


def privatize_files(
    mechanism: Mechanism,
    running: SparkSession,
    values: Sequence[str],
    path: str,
    column: Columns = None,
) -> DataFrame:
    """As ``privatize``, for the Parquet or Arrow files, and folders of them, at any of Hadoop's paths.

    Each is read on one executor, by the reader of one machine. Only Parquet files of more than 128 MiB are decoded by
    Spark, which is slower but spreads one file over all executors.
    """
    whole, large = by_size(running, values)
    parts: list[tuple[DataFrame, Reader]] = []
    if whole is not None:
        parts.append((whole, functools.partial(_indices_of_files, column)))
    if large:
        parts.append(_of_frame(mechanism, read_parquet(running, *large), column))
    return _written(mechanism, running, path, parts)


def _of_frame(mechanism: Mechanism, frame: DataFrame, column: Columns) -> tuple[DataFrame, Reader]:
    names = _columns(mechanism, column, frame.columns, "the DataFrame")
    return frame.select([quoted(name) for name in names]), _indices


def _columns(mechanism: Mechanism, column: Columns, there: list[str], where: str) -> list[str]:
    """The names of the columns that hold the values."""
    names = there if column is None else [column] if isinstance(column, str) else list(column)
    parted = mechanism.domain.kind in ("product", "grid")
    if not (names and all(there.count(name) == 1 for name in names) and (parted or len(names) == 1)):
        raise InvalidInput(where, "the column", f"be one of {', '.join(map(repr, there))}", column)
    return names


def _written(
    mechanism: Mechanism, running: SparkSession, path: str, parts: Sequence[tuple[DataFrame, Reader]]
) -> DataFrame:
    refuse_speculation(running)
    spec = mechanism.to_json()
    files: list[str] = []
    with staged(running, path) as staging:
        for frame, reader in parts:
            task = functools.partial(_write_partition, spec, staging.attempts, reader)
            with no_word_of_pandas():
                rows = frame.mapInArrow(task, _RESULT).collect()
            for row in sorted(rows, key=lambda row: int(row["partition"])):
                if row["refusal"] is not None:
                    raise Refused(f"privatize on Spark, partition {row['partition']}", row["refusal"])
                files.append(row["file"])
        if not files:
            raise InvalidInput("privatize on Spark", "the values", "have at least one row", "none")
        staging.commit(files)
    return read_table(mechanism, running, path)


# -- on an executor ----------------------------------------------------------------------------------------


def _write_partition(spec: str, folder: str, reader: Reader, batches: Iterable[Any]) -> Iterator[Any]:
    """Privatize the rows of one partition into a file; one row says which, or what was refused."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    partition = context.partitionId()
    mechanism = mechanism_of(spec)
    # The number of the attempt is never given twice, so no attempt writes to the file of another.
    name = f"part-{partition:05d}-{context.taskAttemptId()}.parquet"
    try:
        # Each call of the sampler takes a new key from the operating system, so no attempt repeats another's draws.
        pieces = reader(mechanism, batches)
        reports = (privatize_indices(mechanism, indices, threads=context.cpus()) for indices in pieces)
        first = next(reports, None)
        if first is None:
            return
        with tempfile.TemporaryDirectory() as own:
            local = Path(own) / name
            write_reports(local, mechanism, itertools.chain([first], reports))
            put_file(local, folder)
        result: tuple[int, str | None, str | None] = (partition, name, None)
    except InvalidInput as error:
        result = (partition, None, str(error))
    pyarrow = import_pyarrow("Spark")
    types = (pyarrow.int32(), pyarrow.string(), pyarrow.string())
    columns = [pyarrow.array([value], kind) for value, kind in zip(result, types, strict=True)]
    yield pyarrow.record_batch(columns, names=["partition", "file", "refusal"])


def _indices_of_files(column: Columns, mechanism: Mechanism, batches: Iterable[Any]) -> Indices:
    for source in sources(batches, PARQUET + ARROW):
        with open_columns(source) as file:
            names = _columns(mechanism, column, file.names, file.path)
            try:
                yield from _indices(mechanism, file.batches(names, ROWS_PER_BATCH))
            except InvalidInput as error:
                raise Refused(file.path, str(error)) from error


def _indices(mechanism: Mechanism, batches: Iterable[Any]) -> Indices:
    """The values' indices, in pieces that are worth a call of the kernel."""
    held: list[npt.NDArray[np.int64]] = []
    waiting = row = 0
    for batch in batches:
        values = (
            batch.column(0) if batch.num_columns == 1 else dict(zip(batch.schema.names, batch.columns, strict=True))
        )
        held.append(mechanism.domain.encode(values, first_row=row))
        row += batch.num_rows
        waiting += batch.num_rows
        if waiting >= ROWS_PER_BATCH:
            yield np.concatenate(held)
            held, waiting = [], 0
    if waiting:
        yield np.concatenate(held)
