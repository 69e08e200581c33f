"""``privatize`` on Spark: write reports eagerly, once, and read them back as a table.

Spark runs a lazy plan again for every action on it. Each run would draw new reports, so one person would report several
times. The reports are therefore written eagerly, and the returned DataFrame reads them.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._core import import_pyarrow
from sfumato.collecting import ARROW, PARQUET, Source, open_columns, write_reports
from sfumato.device import privatize_indices
from sfumato.domain import Label
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.spark.commit import commit_table, put_file
from sfumato.spark.parquet_scan import value_files
from sfumato.spark.remote_files import find_files, sources
from sfumato.spark.sessions import ROWS_PER_BATCH, refuse_speculation, silence_pandas_warning
from sfumato.spark.splits import Piece, split_files
from sfumato.spark.tables import quoted, read_parquet, read_table
from sfumato.spark.tasks import Refused, mechanism_of

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["privatize", "privatize_files"]

_RESULT = "partition int, file string, error string"

Columns: TypeAlias = str | Sequence[str] | None
Indices: TypeAlias = Iterator[npt.NDArray[np.int64]]
#: Turns Arrow batches, or splits of files, into the indices of the values; runs on an executor.
Reader: TypeAlias = Callable[[Mechanism, Iterable[Any]], Indices]
#: The number of a partition, and the file that it was written to, or an error message.
Result: TypeAlias = tuple[int, str | None, str | None]


def privatize(
    mechanism: Mechanism,
    frame: DataFrame,
    path: str,
    column: Columns = None,
    *,
    missing: Label | Mapping[str, Label] | None = None,
) -> DataFrame:
    """Randomize the values in a DataFrame, and write the reports to a new table.

    The function draws one report per row, once, and writes all reports before it returns. Actions on the returned
    DataFrame read the written reports.

    Parameters
    ----------
    mechanism
        Mechanism that draws the reports.
    frame
        DataFrame with one value per row.
    path
        Hadoop path of the new table, a folder of Parquet files. It must not exist, and its file system must rename a
        folder in one step.
    column
        Name of the column that holds the values. If the domain is a product or a grid, pass a sequence with the names
        of the columns that hold its parts. The default is all columns; a domain without parts then needs a DataFrame
        with exactly one column.
    missing
        Label of the domain that stands for null values. The default rejects them, unless the domain has a value for
        missing answers.

    Returns
    -------
    DataFrame
        The reports at ``path``, in the column ``report``; :func:`read_table` describes its type.

    Raises
    ------
    InvalidInput
        If a value is null or not in the domain, the path exists, or Spark's speculation is on. No table is written.

    Notes
    -----
    Every executor draws from the randomness of the operating system.
    """
    names = _columns(mechanism, column, frame.columns, "the DataFrame")
    return _write_table(mechanism, frame.sparkSession, path, [_of_frame(frame, names, missing)])


def privatize_files(
    mechanism: Mechanism,
    spark: SparkSession,
    values: Sequence[str],
    path: str,
    column: Columns = None,
    *,
    missing: Label | Mapping[str, Label] | None = None,
) -> DataFrame:
    """Randomize the values in Parquet or Arrow files, and write the reports to a new table.

    The function draws one report per row of the files, as :func:`privatize` does for a DataFrame.

    Parameters
    ----------
    mechanism
        Mechanism that draws the reports.
    spark
        Spark session, as :func:`session` returns it.
    values
        Hadoop paths of the files that hold the values: Parquet files, Arrow files, or folders with such files.
    path
        Hadoop path of the new table, a folder of Parquet files. It must not exist, and its file system must rename a
        folder in one step.
    column
        Name of the column that holds the values. If the domain is a product or a grid, pass a sequence with the names
        of the columns that hold its parts. The default is all columns; a domain without parts then needs files with
        exactly one column.
    missing
        Label of the domain that stands for null values. The default rejects them, unless the domain has a value for
        missing answers.

    Returns
    -------
    DataFrame
        The reports at ``path``, in the column ``report``; :func:`read_table` describes its type.

    Raises
    ------
    InvalidInput
        If a value is null or not in the domain, the path exists, or Spark's speculation is on. No table is written.

    Notes
    -----
    The way to the executors depends on the file:

    - Executors open local files and files of a mounted share themselves, and divide Parquet files by row groups.
    - Spark sends a remote file of at most 128 MiB to one executor as a whole.
    - Spark decodes larger remote files itself, which must be Parquet files. This is slower, but spreads one file over
      all executors.
    """
    files = find_files(spark, values)
    parts: list[tuple[RDD[Any] | DataFrame, Reader]] = []
    if files.local:
        parts.append(_of_local(spark, files.local, column, missing))
    if files.remote is not None:
        parts.append((files.remote, functools.partial(_indices_of_files, column, missing)))
    if files.large:
        frame = read_parquet(spark, *files.large)
        parts.append(_of_frame(frame, _columns(mechanism, column, frame.columns, "the DataFrame"), missing))
    return _write_table(mechanism, spark, path, parts)


def _of_local(
    spark: SparkSession, files: Sequence[str], column: Columns, missing: Label | Mapping[str, Label] | None
) -> tuple[RDD[Any], Reader]:
    """Return the splits of files that every executor can open, and their reader."""
    context = spark.sparkContext
    splits = split_files(files, PARQUET + ARROW, context.defaultParallelism)
    return context.parallelize(splits, max(1, len(splits))), functools.partial(_indices_of_splits, column, missing)


def _of_frame(
    frame: DataFrame, names: Sequence[str], missing: Label | Mapping[str, Label] | None
) -> tuple[RDD[Any] | DataFrame, Reader]:
    """Return a DataFrame or the files that it scans, and their reader."""
    selected = frame.select([quoted(name) for name in names])
    files = value_files(selected)
    if files is None:
        return selected, functools.partial(_indices, missing)
    return _of_local(frame.sparkSession, files, list(names), missing)


def _columns(mechanism: Mechanism, column: Columns, available: list[str], where: str) -> list[str]:
    """Return the names of the columns that hold the values."""
    names = available if column is None else [column] if isinstance(column, str) else list(column)
    composite = mechanism.domain.kind in ("product", "grid")
    if not (names and all(available.count(name) == 1 for name in names) and (composite or len(names) == 1)):
        raise InvalidInput(where, "the column", f"be one of {', '.join(map(repr, available))}", column)
    return names


def _write_table(
    mechanism: Mechanism, spark: SparkSession, path: str, parts: Sequence[tuple[RDD[Any] | DataFrame, Reader]]
) -> DataFrame:
    """Run the tasks, publish their files as a table, and read the table."""
    refuse_speculation(spark)
    spec = mechanism.to_json()
    files: list[str] = []
    with commit_table(spark, path) as commit:
        for part, reader in parts:
            task = functools.partial(_write_partition, spec, commit.attempts, reader)
            for partition, file, error in sorted(_run(part, task)):
                if error is not None:
                    raise Refused(f"privatize on Spark, partition {partition}", error)
                files.append(file)
        if not files:
            hint = "Check the path and the filters of the input."
            raise InvalidInput("privatize on Spark", "the values", "have at least one row", 0, hint=hint)
        commit.publish(files)
    return read_table(mechanism, spark, path)


def _run(part: RDD[Any] | DataFrame, task: Callable[[Iterable[Any]], Iterator[Result]]) -> list[Any]:
    """Run a task on every partition, and collect the results."""
    if not hasattr(part, "mapInArrow"):
        return part.mapPartitions(task).collect()
    with silence_pandas_warning():
        return part.mapInArrow(functools.partial(_as_batches, task), _RESULT).collect()


# -- on an executor ----------------------------------------------------------------------------------------


def _write_partition(spec: str, folder: str, reader: Reader, rows: Iterable[Any]) -> Iterator[Result]:
    """Privatize the rows of one partition into a file, if there are any."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    partition = context.partitionId()
    mechanism = mechanism_of(spec)
    # Attempt numbers are unique, so no attempt writes to the file of another.
    name = f"part-{partition:05d}-{context.taskAttemptId()}.parquet"
    try:
        # Each call of the sampler takes a new key from the operating system, so no attempt repeats another's draws.
        pieces = reader(mechanism, rows)
        reports = (privatize_indices(mechanism, indices, threads=context.cpus()) for indices in pieces)
        first = next(reports, None)
        if first is None:
            return
        with tempfile.TemporaryDirectory() as temporary:
            local = Path(temporary) / name
            write_reports(mechanism, itertools.chain([first], reports), local)
            put_file(local, folder)
        yield partition, name, None
    except InvalidInput as error:
        yield partition, None, str(error)


def _as_batches(task: Callable[[Iterable[Any]], Iterator[Result]], batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the results of a task as Arrow batches."""
    pyarrow = import_pyarrow("Spark")
    types = (pyarrow.int32(), pyarrow.string(), pyarrow.string())
    for result in task(batches):
        columns = [pyarrow.array([value], kind) for value, kind in zip(result, types, strict=True)]
        yield pyarrow.record_batch(columns, names=["partition", "file", "error"])


def _indices_of_splits(
    column: Columns,
    missing: Label | Mapping[str, Label] | None,
    mechanism: Mechanism,
    splits: Iterable[Sequence[Piece]],
) -> Indices:
    """Yield the indices of the values in splits of local files."""
    for source, groups in itertools.chain.from_iterable(splits):
        yield from _indices_of_file(column, missing, mechanism, source, groups)


def _indices_of_files(
    column: Columns, missing: Label | Mapping[str, Label] | None, mechanism: Mechanism, batches: Iterable[Any]
) -> Indices:
    """Yield the indices of the values in files that Spark sent as a whole."""
    for source in sources(batches, PARQUET + ARROW):
        yield from _indices_of_file(column, missing, mechanism, source, None)


def _indices_of_file(
    column: Columns,
    missing: Label | Mapping[str, Label] | None,
    mechanism: Mechanism,
    source: Source,
    groups: range | None,
) -> Indices:
    """Yield the indices of the values in one file."""
    with open_columns(source) as file:
        names = _columns(mechanism, column, file.names, file.path)
        # Messages count the rows of a file from 1.
        first_row = 1 if groups is None else 1 + sum((file.group_rows or [])[: groups.start])
        try:
            yield from _indices(missing, mechanism, file.batches(names, ROWS_PER_BATCH, groups), first_row)
        except InvalidInput as error:
            raise Refused(file.path, str(error)) from error


def _indices(
    missing: Label | Mapping[str, Label] | None, mechanism: Mechanism, batches: Iterable[Any], first_row: int = 0
) -> Indices:
    """Yield the values' indices, in pieces large enough for a kernel call."""
    buffered: list[npt.NDArray[np.int64]] = []
    waiting, row = 0, first_row
    for batch in batches:
        values = (
            batch.column(0) if batch.num_columns == 1 else dict(zip(batch.schema.names, batch.columns, strict=True))
        )
        buffered.append(mechanism.domain.encode(values, first_row=row, missing=missing))
        row += batch.num_rows
        waiting += batch.num_rows
        if waiting >= ROWS_PER_BATCH:
            yield np.concatenate(buffered)
            buffered, waiting = [], 0
    if waiting:
        yield np.concatenate(buffered)
