"""``privatize`` on Spark: write reports eagerly, once, and read them back as a table.

Spark runs a lazy plan again for every action on it. Each run would draw new reports, so one person would report several
times. The reports are therefore written eagerly, and the returned DataFrame reads them.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._core import import_pyarrow
from sfumato.collecting import (
    ARROW,
    PARQUET,
    Source,
    open_columns,
    read_weights,
    row_of_file,
    write_report_rows,
    write_reports,
)
from sfumato.device import check_present, privatize_indices
from sfumato.domain import At, Label
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
#: Indices of some values, and the public columns of the same rows by name.
Rows: TypeAlias = Iterator[tuple[npt.NDArray[np.int64], dict[str, Any]]]
#: Turns Arrow batches, or splits of files, into rows; runs on an executor.
Reader: TypeAlias = Callable[[Mechanism, Iterable[Any]], Rows]
#: The number of a partition, and the file that it was written to, or an error message.
Result: TypeAlias = tuple[int, str | None, str | None]


@dataclass(frozen=True)
class _Request:
    """What is read from the input: columns of values, labels of missing values, and public columns."""

    column: Columns
    missing: Label | Mapping[str, Label] | None
    by: tuple[str, ...]
    weight: str | None

    @classmethod
    def of(
        cls,
        column: Columns,
        missing: Label | Mapping[str, Label] | None,
        by: str | Sequence[str],
        weight: str | None,
    ) -> _Request:
        """Return the request; raise InvalidInput if a column has two purposes."""
        request = cls(column, missing, (by,) if isinstance(by, str) else tuple(by), weight)
        values = [column] if isinstance(column, str) else list(column or ())
        names = [*values, *request.public]
        if len(set(names)) < len(names):
            must = "be different from each other and from the columns of values, which would be revealed"
            raise InvalidInput("privatize on Spark", "by and weight", must, list(request.public))
        return request

    @property
    def public(self) -> list[str]:
        """The names of the columns that travel with the reports."""
        return [*self.by, *([] if self.weight is None else [self.weight])]

    def names(self, mechanism: Mechanism, available: Sequence[str], where: str) -> list[str]:
        """Return the names of the columns that have the values."""
        for name in self.public:
            if list(available).count(name) != 1:
                shown = ", ".join(map(repr, available))
                raise InvalidInput(where, "the public column", f"be one of {shown}", name)
        rest = [name for name in available if name not in self.public]
        names = rest if self.column is None else [self.column] if isinstance(self.column, str) else list(self.column)
        composite = mechanism.domain.kind in ("product", "grid")
        if not (names and all(rest.count(name) == 1 for name in names) and (composite or len(names) == 1)):
            raise InvalidInput(where, "the column", f"be one of {', '.join(map(repr, rest))}", self.column)
        return names

    def public_columns(self, batch: Any, shown: str, first_row: int) -> dict[str, Any]:
        """Return the public columns of a batch; raise InvalidInput if a cell is missing or a weight is invalid."""
        columns = {}
        for name in self.public:
            row_name = functools.partial(row_of_file, first_row, name)
            columns[name] = batch.column(name)
            check_present(columns[name], shown, row_name)
            if name == self.weight:
                columns[name] = read_weights(columns[name], At(shown, "the weight"), row_name)
        return columns


def privatize(
    mechanism: Mechanism,
    frame: DataFrame,
    path: str,
    column: Columns = None,
    *,
    missing: Label | Mapping[str, Label] | None = None,
    by: str | Sequence[str] = (),
    weight: str | None = None,
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
        of the columns that hold its parts. The default is all columns that are not public; a domain without parts
        then needs exactly one of them.
    missing
        Label of the domain that stands for null values. The default rejects them, unless the domain has a value for
        missing answers.
    by
        Name of a public column that travels with the reports, or several names, such as regions. They are not
        protected.
    weight
        Name of the column with survey weights, which are integers and not protected either.

    Returns
    -------
    DataFrame
        The reports at ``path``, in the column ``report``, with the public columns; :func:`read_table` describes its
        type.

    Raises
    ------
    InvalidInput
        If a value is null or not in the domain, a public cell is missing, a weight is not an integer of at least 0, the
        path exists, or Spark's speculation is on. No table is written.

    Notes
    -----
    Every executor draws from the randomness of the operating system.
    """
    request = _Request.of(column, missing, by, weight)
    return _write_table(mechanism, frame.sparkSession, path, request, [_of_frame(mechanism, frame, request)])


def privatize_files(
    mechanism: Mechanism,
    spark: SparkSession,
    values: Sequence[str],
    path: str,
    column: Columns = None,
    *,
    missing: Label | Mapping[str, Label] | None = None,
    by: str | Sequence[str] = (),
    weight: str | None = None,
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
        of the columns that hold its parts. The default is all columns that are not public; a domain without parts
        then needs exactly one of them.
    missing
        Label of the domain that stands for null values. The default rejects them, unless the domain has a value for
        missing answers.
    by
        Name of a public column that travels with the reports, or several names, such as regions. They are not
        protected.
    weight
        Name of the column with survey weights, which are integers and not protected either.

    Returns
    -------
    DataFrame
        The reports at ``path``, in the column ``report``, with the public columns; :func:`read_table` describes its
        type.

    Raises
    ------
    InvalidInput
        If a value is null or not in the domain, a public cell is missing, a weight is not an integer of at least 0, the
        path exists, or Spark's speculation is on. No table is written.

    Notes
    -----
    The way to the executors depends on the file:

    - Executors open local files and files of a mounted share themselves, and divide Parquet files by row groups.
    - Spark sends a remote file of at most 128 MiB to one executor as a whole.
    - Spark decodes larger remote files itself, which must be Parquet files. This is slower, but spreads one file over
      all executors.
    """
    request = _Request.of(column, missing, by, weight)
    files = find_files(spark, values)
    parts: list[tuple[RDD[Any] | DataFrame, Reader]] = []
    if files.local:
        parts.append(_of_local(spark, files.local, request))
    if files.remote is not None:
        parts.append((files.remote, functools.partial(_rows_of_files, request)))
    if files.large:
        parts.append(_of_frame(mechanism, read_parquet(spark, *files.large), request))
    return _write_table(mechanism, spark, path, request, parts)


def _of_local(spark: SparkSession, files: Sequence[str], request: _Request) -> tuple[RDD[Any], Reader]:
    """Return the splits of files that every executor can open, and their reader."""
    context = spark.sparkContext
    splits = split_files(files, PARQUET + ARROW, context.defaultParallelism)
    return context.parallelize(splits, max(1, len(splits))), functools.partial(_rows_of_splits, request)


def _of_frame(mechanism: Mechanism, frame: DataFrame, request: _Request) -> tuple[RDD[Any] | DataFrame, Reader]:
    """Return a DataFrame or the files that it scans, and their reader."""
    names = request.names(mechanism, frame.columns, "the DataFrame")
    request = replace(request, column=names)
    selected = frame.select([quoted(name) for name in (*names, *request.public)])
    files = value_files(selected)
    if files is None:
        return selected, functools.partial(_rows_of_batches, request)
    return _of_local(frame.sparkSession, files, request)


def _write_table(
    mechanism: Mechanism,
    spark: SparkSession,
    path: str,
    request: _Request,
    parts: Sequence[tuple[RDD[Any] | DataFrame, Reader]],
) -> DataFrame:
    """Run the tasks, publish their files as a table, and read the table."""
    refuse_speculation(spark)
    spec = mechanism.to_json()
    files: list[str] = []
    with commit_table(spark, path) as commit:
        for part, reader in parts:
            task = functools.partial(_write_partition, spec, commit.attempts, reader, request.public)
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


def _write_partition(
    spec: str, folder: str, reader: Reader, public: Sequence[str], rows: Iterable[Any]
) -> Iterator[Result]:
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
        pieces = (
            (privatize_indices(mechanism, indices, threads=context.cpus()), columns)
            for indices, columns in reader(mechanism, rows)
        )
        first = next(pieces, None)
        if first is None:
            return
        pieces_again = itertools.chain([first], pieces)
        with tempfile.TemporaryDirectory() as temporary:
            local = Path(temporary) / name
            if public:
                write_report_rows(mechanism, pieces_again, local, public)
            else:
                write_reports(mechanism, (reports for reports, _ in pieces_again), local)
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


def _rows_of_splits(request: _Request, mechanism: Mechanism, splits: Iterable[Sequence[Piece]]) -> Rows:
    """Yield the rows of splits of local files."""
    for source, groups in itertools.chain.from_iterable(splits):
        yield from _rows_of_file(request, mechanism, source, groups)


def _rows_of_files(request: _Request, mechanism: Mechanism, batches: Iterable[Any]) -> Rows:
    """Yield the rows of files that Spark sent as a whole."""
    for source in sources(batches, PARQUET + ARROW):
        yield from _rows_of_file(request, mechanism, source, None)


def _rows_of_file(request: _Request, mechanism: Mechanism, source: Source, groups: range | None) -> Rows:
    """Yield the rows of one file."""
    with open_columns(source) as file:
        names = request.names(mechanism, file.names, file.path)
        # Messages count the rows of a file from 1.
        first_row = 1 if groups is None else 1 + sum((file.group_rows or [])[: groups.start])
        batches = file.batches([*names, *request.public], ROWS_PER_BATCH, groups)
        try:
            yield from _rows_of_batches(replace(request, column=names), mechanism, batches, first_row)
        except InvalidInput as error:
            raise Refused(file.path, str(error)) from error


def _rows_of_batches(request: _Request, mechanism: Mechanism, batches: Iterable[Any], first_row: int = 0) -> Rows:
    """Yield the indices of values and public columns, in pieces large enough for a kernel call."""
    names = list(request.column or ())
    indices: list[npt.NDArray[np.int64]] = []
    columns: list[dict[str, Any]] = []
    waiting, row = 0, first_row
    for batch in batches:
        values = batch.column(names[0]) if len(names) == 1 else {name: batch.column(name) for name in names}
        indices.append(mechanism.domain.encode(values, first_row=row, missing=request.missing))
        columns.append(request.public_columns(batch, "the public columns", row))
        row += batch.num_rows
        waiting += batch.num_rows
        if waiting >= ROWS_PER_BATCH:
            yield np.concatenate(indices), _joined(request, columns)
            indices, columns, waiting = [], [], 0
    if waiting:
        yield np.concatenate(indices), _joined(request, columns)


def _joined(request: _Request, pieces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the public columns of several batches, one after the other."""
    pyarrow = import_pyarrow("Spark")
    joined: dict[str, Any] = {name: pyarrow.chunked_array([piece[name] for piece in pieces]) for name in request.by}
    if request.weight is not None:
        joined[request.weight] = np.concatenate([piece[request.weight] for piece in pieces])
    return joined
