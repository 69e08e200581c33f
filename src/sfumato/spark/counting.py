"""``aggregate`` on Spark: the executors count with the code of one machine, and Spark adds up the integers."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._core import import_pyarrow
from sfumato.collecting import REPORT_COLUMN, REPORT_SUFFIXES, Aggregate, read_reports
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.spark.parquet_scan import report_files
from sfumato.spark.remote_files import find_files, sources
from sfumato.spark.sessions import silence_pandas_warning
from sfumato.spark.splits import Piece, split_files
from sfumato.spark.tables import check_table, quoted, read_table
from sfumato.spark.tasks import Refused, mechanism_of

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["aggregate", "aggregate_files"]

#: Maximum outputs for which Spark groups equal reports first; that is cheaper than to hand over each report.
_GROUPED_OUTPUTS = 2**16
_PART = "counts binary, error string"

Reports: TypeAlias = Iterator[npt.NDArray[Any]]
#: The counts of a part of the reports, an error message, or None for an empty part.
Part: TypeAlias = Aggregate | str | None
#: Counts Arrow batches on an executor.
Counter: TypeAlias = Callable[[Mechanism, Iterable[Any]], Aggregate]


def aggregate(mechanism: Mechanism, table: DataFrame) -> Aggregate:
    """Count the reports in the column ``report`` of a DataFrame.

    Parameters
    ----------
    mechanism
        Mechanism that produced the reports.
    table
        DataFrame from :func:`privatize` or :func:`read_table`. These functions store the hash of the mechanism in the
        metadata of the column.

    Returns
    -------
    Aggregate
        The counts, equal to those that :func:`sfumato.aggregate` computes on one machine.

    Raises
    ------
    InvalidInput
        If the metadata name another mechanism or are missing, or a report is invalid.

    Notes
    -----
    A union of tables keeps only the metadata of the first table. Count tables of different mechanisms separately, and
    merge the counts.
    """
    check_table(mechanism, table)
    counts = Aggregate.empty(mechanism)  # rejects a mechanism of too many outputs before anything starts
    column = table.select(quoted(REPORT_COLUMN))
    files = report_files(mechanism, column)
    if files is not None:
        return _of_local(mechanism, table.sparkSession, files)
    if mechanism.report_format.is_histogram and len(counts.counts) <= _GROUPED_OUTPUTS:
        return _of_frame(mechanism, column.groupBy(REPORT_COLUMN).count(), _count_groups)
    return _of_frame(mechanism, column, _count_table)


def aggregate_files(mechanism: Mechanism, spark: SparkSession, *paths: str) -> Aggregate:
    """Count the reports in files and folders.

    Parameters
    ----------
    mechanism
        Mechanism that produced the reports.
    spark
        Spark session, as :func:`session` returns it.
    *paths
        Hadoop paths of report files (Parquet, Arrow or binary batches), and of folders with such files. List each file
        once.

    Returns
    -------
    Aggregate
        The counts, equal to those that :func:`sfumato.aggregate` computes on one machine.

    Raises
    ------
    InvalidInput
        If a file is damaged, listed twice, has reports of another mechanism, or has an invalid report.

    Notes
    -----
    The way to the executors depends on the file:

    - Executors open local files and files of a mounted share themselves, and divide Parquet files by row groups.
    - Spark sends a remote file of at most 128 MiB to one executor as a whole.
    - Spark decodes larger remote files itself, which must be Parquet files. This is slower, but spreads one file over
      all executors.
    """
    counts = Aggregate.empty(mechanism)
    files = find_files(spark, paths)
    if files.local:
        counts = counts.merge(_of_local(mechanism, spark, files.local))
    if files.remote is not None:
        counts = counts.merge(_of_frame(mechanism, files.remote, _count_files))
    if files.large:
        counts = counts.merge(aggregate(mechanism, read_table(mechanism, spark, *files.large)))
    return counts


def _of_local(mechanism: Mechanism, spark: SparkSession, files: Sequence[str]) -> Aggregate:
    """Count files that every executor can open."""
    context = spark.sparkContext
    splits = split_files(files, REPORT_SUFFIXES, context.defaultParallelism)
    parts = context.parallelize(splits, max(1, len(splits)))
    return _merge_parts(mechanism, parts.map(functools.partial(_count_split, mechanism.to_json())))


def _of_frame(mechanism: Mechanism, frame: DataFrame, count: Counter) -> Aggregate:
    """Count the rows of a DataFrame on the executors."""
    with silence_pandas_warning():
        parts = frame.mapInArrow(functools.partial(_count_partition, mechanism.to_json(), count), _PART)
    return _merge_parts(mechanism, parts.rdd.map(_part_of_row))


def _merge_parts(mechanism: Mechanism, parts: RDD[Part]) -> Aggregate:
    """Return the sum of all parts, or raise the first error."""
    merged = parts.treeAggregate(None, _merge_two, _merge_two)
    if isinstance(merged, str):
        raise Refused("aggregate on Spark", merged)
    counts = Aggregate.empty(mechanism) if merged is None else merged
    counts.check(mechanism)
    return counts


# -- on an executor ----------------------------------------------------------------------------------------


def _merge_two(one: Part, other: Part) -> Part:
    """Return the sum of two parts, or the first of two errors in alphabetical order, independently of timing."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, Aggregate) and isinstance(other, Aggregate):
        return one.merge(other)
    return min(part for part in (one, other) if isinstance(part, str))


def _count_split(spec: str, pieces: Sequence[Piece]) -> Part:
    """Count some files, or some of their row groups."""
    mechanism = mechanism_of(spec)
    reports = (read_reports(mechanism, source, row_groups=groups) for source, groups in pieces)
    try:
        return Aggregate.empty(mechanism).accumulate(mechanism, itertools.chain.from_iterable(reports))
    except InvalidInput as error:
        return str(error)


def _count_partition(spec: str, count: Counter, batches: Iterable[Any]) -> Iterator[Any]:
    """Count one partition; yield one row with the counts or the error message."""
    pyarrow = import_pyarrow("Spark")
    counts, message = None, None
    try:
        counts = count(mechanism_of(spec), batches).to_bytes()
    except InvalidInput as error:
        message = str(error)
    columns = [pyarrow.array([counts], pyarrow.binary()), pyarrow.array([message], pyarrow.string())]
    yield pyarrow.record_batch(columns, names=["counts", "error"])


def _part_of_row(row: Any) -> Part:
    """Return the part that a row of counts or of an error describes."""
    counts, error = row
    return str(error) if counts is None else Aggregate.from_bytes(bytes(counts))


def _count_files(mechanism: Mechanism, batches: Iterable[Any]) -> Aggregate:
    """Count files that Spark sent as a whole."""
    reports = (read_reports(mechanism, source) for source in sources(batches, REPORT_SUFFIXES))
    return Aggregate.empty(mechanism).accumulate(mechanism, itertools.chain.from_iterable(reports))


def _count_table(mechanism: Mechanism, batches: Iterable[Any]) -> Aggregate:
    """Count the reports in Arrow batches."""
    return Aggregate.empty(mechanism).accumulate(mechanism, _reports_of_table(mechanism, batches))


def _count_groups(mechanism: Mechanism, batches: Iterable[Any]) -> Aggregate:
    """Count distinct reports, each with its number of occurrences."""
    counts, n = np.zeros_like(Aggregate.empty(mechanism).counts), 0
    for batch in batches:
        numbers = batch.column(1).to_numpy()
        for reports in _reports_of_table(mechanism, [batch]):
            counts[mechanism.report_format.validate(reports, "the table")] += numbers
        n += int(numbers.sum())
    return Aggregate(mechanism.hash, n, counts)


def _reports_of_table(mechanism: Mechanism, batches: Iterable[Any]) -> Reports:
    """Yield the reports of Arrow batches as arrays."""
    pyarrow = import_pyarrow("Spark")
    for batch in batches:
        column = batch.column(0)
        if column.null_count:
            raise InvalidInput("the table", "every report", "not be null", None)
        if not mechanism.report_format.shape:
            yield column.to_numpy()
            continue
        width = mechanism.report_format.shape[0]
        try:
            rows = column.cast(pyarrow.binary(width))
        except pyarrow.ArrowInvalid as error:
            raise InvalidInput("the table", "every report", f"be {width} bytes long", str(error)) from error
        values = np.frombuffer(rows.buffers()[1], np.uint8, len(rows) * width, rows.offset * width)
        yield values.reshape(len(rows), width)
