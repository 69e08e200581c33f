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

from sfumato._core import import_pyarrow
from sfumato.collecting import ARROW, PARQUET, Source, open_columns, write_reports
from sfumato.device import privatize_indices
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.spark.scans import value_files
from sfumato.spark.sessions import ROWS_PER_BATCH, no_word_of_pandas, refuse_speculation
from sfumato.spark.shares import Piece, shares_of
from sfumato.spark.staging import put_file, staged
from sfumato.spark.tables import quoted, read_parquet, read_table
from sfumato.spark.tasks import Refused, mechanism_of
from sfumato.spark.whole_files import find_files, sources

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["privatize", "privatize_files"]

_RESULT = "partition int, file string, refusal string"

Columns: TypeAlias = str | Sequence[str] | None
Indices: TypeAlias = Iterator[npt.NDArray[np.int64]]
#: What an executor does first: from Arrow batches, or from shares of files, to the indices of the values.
Reader: TypeAlias = Callable[[Mechanism, Iterable[Any]], Indices]
#: The number of a partition, and the file that it was written to, or what was refused.
Result: TypeAlias = tuple[int, str | None, str | None]


def privatize(mechanism: Mechanism, frame: DataFrame, path: str, column: Columns = None) -> DataFrame:
    """Randomize a column of a DataFrame into a new table of reports at ``path``, and return that table.

    ``path`` is one of Hadoop's, on a file system that renames a folder in one step. Several columns are the parts of a
    product or a grid; with none named, all are taken. Every executor draws from the operating system's randomness.
    Unknown values and nulls are refused, and then there is no table.
    """
    names = _columns(mechanism, column, frame.columns, "the DataFrame")
    return _written(mechanism, frame.sparkSession, path, [_of_frame(frame, names)])


def privatize_files(
    mechanism: Mechanism,
    running: SparkSession,
    values: Sequence[str],
    path: str,
    column: Columns = None,
) -> DataFrame:
    """As ``privatize``, for the Parquet or Arrow files, and folders of them, at any of Hadoop's paths.

    They are read by the reader of one machine. Files of the disk, or of a share that all machines have mounted, the
    executors open themselves, by row groups; others are handed over whole. Only Parquet files of more than 128 MiB
    that are not on a disk are decoded by Spark, which is slower but spreads one file over all executors.
    """
    found = find_files(running, values)
    parts: list[tuple[RDD[Any] | DataFrame, Reader]] = []
    if found.local:
        parts.append(_of_local(running, found.local, column))
    if found.whole is not None:
        parts.append((found.whole, functools.partial(_indices_of_files, column)))
    if found.large:
        frame = read_parquet(running, *found.large)
        parts.append(_of_frame(frame, _columns(mechanism, column, frame.columns, "the DataFrame")))
    return _written(mechanism, running, path, parts)


def _of_local(running: SparkSession, files: Sequence[str], column: Columns) -> tuple[RDD[Any], Reader]:
    context = running.sparkContext
    shares = shares_of(files, PARQUET + ARROW, context.defaultParallelism)
    return context.parallelize(shares, max(1, len(shares))), functools.partial(_indices_of_shares, column)


def _of_frame(frame: DataFrame, names: Sequence[str]) -> tuple[RDD[Any] | DataFrame, Reader]:
    chosen = frame.select([quoted(name) for name in names])
    files = value_files(chosen)
    return (chosen, _indices) if files is None else _of_local(frame.sparkSession, files, list(names))


def _columns(mechanism: Mechanism, column: Columns, there: list[str], where: str) -> list[str]:
    """The names of the columns that hold the values."""
    names = there if column is None else [column] if isinstance(column, str) else list(column)
    parted = mechanism.domain.kind in ("product", "grid")
    if not (names and all(there.count(name) == 1 for name in names) and (parted or len(names) == 1)):
        raise InvalidInput(where, "the column", f"be one of {', '.join(map(repr, there))}", column)
    return names


def _written(
    mechanism: Mechanism, running: SparkSession, path: str, parts: Sequence[tuple[RDD[Any] | DataFrame, Reader]]
) -> DataFrame:
    refuse_speculation(running)
    spec = mechanism.to_json()
    files: list[str] = []
    with staged(running, path) as staging:
        for part, reader in parts:
            task = functools.partial(_write_partition, spec, staging.attempts, reader)
            for partition, file, refusal in sorted(_run(part, task)):
                if refusal is not None:
                    raise Refused(f"privatize on Spark, partition {partition}", refusal)
                files.append(file)
        if not files:
            raise InvalidInput("privatize on Spark", "the values", "have at least one row", "none")
        staging.commit(files)
    return read_table(mechanism, running, path)


def _run(part: RDD[Any] | DataFrame, task: Callable[[Iterable[Any]], Iterator[Result]]) -> list[Any]:
    if not hasattr(part, "mapInArrow"):
        return part.mapPartitions(task).collect()
    with no_word_of_pandas():
        return part.mapInArrow(functools.partial(_as_batches, task), _RESULT).collect()


# -- on an executor ----------------------------------------------------------------------------------------


def _write_partition(spec: str, folder: str, reader: Reader, rows: Iterable[Any]) -> Iterator[Result]:
    """Privatize the rows of one partition into a file, if there are any."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    partition = context.partitionId()
    mechanism = mechanism_of(spec)
    # The number of the attempt is never given twice, so no attempt writes to the file of another.
    name = f"part-{partition:05d}-{context.taskAttemptId()}.parquet"
    try:
        # Each call of the sampler takes a new key from the operating system, so no attempt repeats another's draws.
        pieces = reader(mechanism, rows)
        reports = (privatize_indices(mechanism, indices, threads=context.cpus()) for indices in pieces)
        first = next(reports, None)
        if first is None:
            return
        with tempfile.TemporaryDirectory() as own:
            local = Path(own) / name
            write_reports(local, mechanism, itertools.chain([first], reports))
            put_file(local, folder)
        yield partition, name, None
    except InvalidInput as error:
        yield partition, None, str(error)


def _as_batches(task: Callable[[Iterable[Any]], Iterator[Result]], batches: Iterable[Any]) -> Iterator[Any]:
    """The results of a task as Arrow batches."""
    pyarrow = import_pyarrow("Spark")
    types = (pyarrow.int32(), pyarrow.string(), pyarrow.string())
    for result in task(batches):
        columns = [pyarrow.array([value], kind) for value, kind in zip(result, types, strict=True)]
        yield pyarrow.record_batch(columns, names=["partition", "file", "refusal"])


def _indices_of_shares(column: Columns, mechanism: Mechanism, shares: Iterable[Sequence[Piece]]) -> Indices:
    for source, groups in itertools.chain.from_iterable(shares):
        yield from _indices_of_file(column, mechanism, source, groups)


def _indices_of_files(column: Columns, mechanism: Mechanism, batches: Iterable[Any]) -> Indices:
    for source in sources(batches, PARQUET + ARROW):
        yield from _indices_of_file(column, mechanism, source, None)


def _indices_of_file(column: Columns, mechanism: Mechanism, source: Source, groups: range | None) -> Indices:
    with open_columns(source) as file:
        names = _columns(mechanism, column, file.names, file.path)
        first_row = 0 if groups is None else sum((file.group_rows or [])[: groups.start])
        try:
            yield from _indices(mechanism, file.batches(names, ROWS_PER_BATCH, groups), first_row)
        except InvalidInput as error:
            raise Refused(file.path, str(error)) from error


def _indices(mechanism: Mechanism, batches: Iterable[Any], first_row: int = 0) -> Indices:
    """The values' indices, in pieces that are worth a call of the kernel."""
    held: list[npt.NDArray[np.int64]] = []
    waiting, row = 0, first_row
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
