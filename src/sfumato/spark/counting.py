"""``aggregate`` on Spark: the executors count with the code of one machine, and Spark adds up the integers."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._core import import_pyarrow
from sfumato.collecting import (
    REPORT_COLUMN,
    REPORT_SUFFIXES,
    Aggregate,
    GroupedAggregate,
    Grouping,
    GroupTally,
    read_grouped_reports,
    read_reports,
)
from sfumato.errors import InvalidInput, LimitExceeded
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

__all__ = ["aggregate", "aggregate_files", "aggregate_group_files", "aggregate_groups"]

#: Maximum outputs for which Spark groups equal reports first; that is cheaper than to hand over each report.
_GROUPED_OUTPUTS = 2**16
_PART = "counts binary, error string"

Reports: TypeAlias = Iterator[npt.NDArray[Any]]
Counts: TypeAlias = Aggregate | GroupedAggregate
#: The counts of a part of the reports, an error message, or None for an empty part.
Part: TypeAlias = Counts | str | None
#: Counts Arrow batches on an executor, as bytes.
Counter: TypeAlias = Callable[[Mechanism, Iterable[Any]], bytes]
#: Reads the bytes of a counter.
Parser: TypeAlias = Callable[[bytes], Counts]


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
        return _of_frame(mechanism, column.groupBy(REPORT_COLUMN).count(), _count_equal_reports)
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


def aggregate_groups(
    mechanism: Mechanism,
    table: DataFrame,
    by: str | Sequence[str] = (),
    *,
    weight: str | None = None,
    missing: Any = None,
) -> GroupedAggregate:
    """Count the reports in the column ``report`` of a DataFrame by public group.

    Parameters
    ----------
    mechanism
        Mechanism that produced the reports.
    table
        DataFrame from :func:`privatize` or :func:`read_table`, with the columns of groups.
    by
        Name of a column that forms the groups, or several names.
    weight
        Name of the column with survey weights.
    missing
        Label of people whose group is missing. By default, a missing group raises an error.

    Returns
    -------
    GroupedAggregate
        The counts of each group, equal to those that :func:`sfumato.aggregate_groups` computes on one machine.

    Raises
    ------
    InvalidInput
        If the metadata name another mechanism or are missing, a report or a weight is invalid, a group is missing, the
        table has no such column, or there are too many groups or different weights.
    """
    grouping = Grouping.of(by, weight, missing, "aggregate_groups on Spark")
    check_table(mechanism, table)
    for name in grouping.columns:
        if table.columns.count(name) != 1:
            shown = ", ".join(map(repr, table.columns))
            raise InvalidInput("aggregate_groups on Spark", "the column", f"be one of {shown}", name)
    selected = table.select([quoted(name) for name in (REPORT_COLUMN, *grouping.columns)])
    files = report_files(mechanism, selected)
    if files is not None:
        return _groups_of_local(mechanism, table.sparkSession, files, grouping)
    return _groups_of_frame(mechanism, selected, grouping, functools.partial(_count_groups_of_table, grouping))


def aggregate_group_files(
    mechanism: Mechanism,
    spark: SparkSession,
    *paths: str,
    by: str | Sequence[str] = (),
    weight: str | None = None,
    missing: Any = None,
) -> GroupedAggregate:
    """Count the reports in files and folders by public group.

    Parameters
    ----------
    mechanism
        Mechanism that produced the reports.
    spark
        Spark session, as :func:`session` returns it.
    *paths
        Hadoop paths of Parquet or Arrow files whose reports have these columns, and of folders with such files. List
        each file once.
    by
        Name of a column that forms the groups, or several names.
    weight
        Name of the column with survey weights.
    missing
        Label of people whose group is missing. By default, a missing group raises an error.

    Returns
    -------
    GroupedAggregate
        The counts of each group, equal to those that :func:`sfumato.collecting.aggregate_group_files` computes on one
        machine.

    Raises
    ------
    InvalidInput
        If a report or a weight is invalid, a group is missing, a file has no such column, there are too many groups or
        different weights, or :func:`aggregate_files` rejects a file.
    """
    grouping = Grouping.of(by, weight, missing, "aggregate_group_files on Spark")
    counts = _empty_groups(mechanism, grouping)
    files = find_files(spark, paths)
    if files.local:
        counts = counts.merge(_groups_of_local(mechanism, spark, files.local, grouping))
    if files.remote is not None:
        counter = functools.partial(_count_groups_of_files, grouping)
        counts = counts.merge(_groups_of_frame(mechanism, files.remote, grouping, counter))
    if files.large:
        table = read_table(mechanism, spark, *files.large)
        counts = counts.merge(aggregate_groups(mechanism, table, by, weight=weight, missing=missing))
    return counts


def _empty_groups(mechanism: Mechanism, grouping: Grouping) -> GroupedAggregate:
    """Return the counts of zero reports."""
    return GroupedAggregate.empty(mechanism, grouping.columns, grouping.weight)


def _groups_of_local(
    mechanism: Mechanism, spark: SparkSession, files: Sequence[str], grouping: Grouping
) -> GroupedAggregate:
    """Count files that every executor can open by group."""
    parts = _splits(spark, files).map(functools.partial(_count_groups_of_split, mechanism.to_json(), grouping))
    return _merge_groups(mechanism, grouping, parts)


def _groups_of_frame(mechanism: Mechanism, frame: DataFrame, grouping: Grouping, count: Counter) -> GroupedAggregate:
    """Count the rows of a DataFrame by group on the executors."""
    return _merge_groups(mechanism, grouping, _parts_of_frame(mechanism, frame, count, GroupedAggregate.from_json))


def _merge_groups(mechanism: Mechanism, grouping: Grouping, parts: RDD[Part]) -> GroupedAggregate:
    """Return the sum of all parts by group, or raise the first error."""
    merged = _merge_all(parts)
    assert merged is None or isinstance(merged, GroupedAggregate)
    counts = _empty_groups(mechanism, grouping) if merged is None else merged
    counts.check(mechanism)
    return counts


def _of_local(mechanism: Mechanism, spark: SparkSession, files: Sequence[str]) -> Aggregate:
    """Count files that every executor can open."""
    parts = _splits(spark, files).map(functools.partial(_count_split, mechanism.to_json()))
    return _merge_parts(mechanism, parts)


def _splits(spark: SparkSession, files: Sequence[str]) -> RDD[list[Piece]]:
    """Return files that every executor can open as splits."""
    context = spark.sparkContext
    splits = split_files(files, REPORT_SUFFIXES, context.defaultParallelism)
    return context.parallelize(splits, max(1, len(splits)))


def _of_frame(mechanism: Mechanism, frame: DataFrame, count: Counter) -> Aggregate:
    """Count the rows of a DataFrame on the executors."""
    return _merge_parts(mechanism, _parts_of_frame(mechanism, frame, count, Aggregate.from_bytes))


def _parts_of_frame(mechanism: Mechanism, frame: DataFrame, count: Counter, parse: Parser) -> RDD[Part]:
    """Return the counts of the partitions of a DataFrame."""
    with silence_pandas_warning():
        parts = frame.mapInArrow(functools.partial(_count_partition, mechanism.to_json(), count), _PART)
    return parts.rdd.map(functools.partial(_part_of_row, parse))


def _merge_parts(mechanism: Mechanism, parts: RDD[Part]) -> Aggregate:
    """Return the sum of all parts, or raise the first error."""
    merged = _merge_all(parts)
    assert merged is None or isinstance(merged, Aggregate)
    counts = Aggregate.empty(mechanism) if merged is None else merged
    counts.check(mechanism)
    return counts


def _merge_all(parts: RDD[Part]) -> Counts | None:
    """Return the sum of all parts or None if there are none; raise the first error."""
    merged = parts.treeAggregate(None, _merge_two, _merge_two)
    if isinstance(merged, str):
        raise Refused("aggregate on Spark", merged)
    return merged


# -- on an executor ----------------------------------------------------------------------------------------


def _merge_two(one: Part, other: Part) -> Part:
    """Return the sum of two parts, or the first of two errors in alphabetical order, independently of timing."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, Aggregate) and isinstance(other, Aggregate):
        return one.merge(other)
    if isinstance(one, GroupedAggregate) and isinstance(other, GroupedAggregate):
        try:
            return one.merge(other)
        except LimitExceeded as error:
            return str(error)
    return min(part for part in (one, other) if isinstance(part, str))


def _count_split(spec: str, pieces: Sequence[Piece]) -> Part:
    """Count some files, or some of their row groups."""
    mechanism = mechanism_of(spec)
    reports = (read_reports(mechanism, source, row_groups=groups) for source, groups in pieces)
    try:
        return Aggregate.empty(mechanism).accumulate(mechanism, itertools.chain.from_iterable(reports))
    except InvalidInput as error:
        return str(error)


def _count_groups_of_split(spec: str, grouping: Grouping, pieces: Sequence[Piece]) -> Part:
    """Count some files, or some of their row groups, by group."""
    mechanism = mechanism_of(spec)
    try:
        return _count_groups_of_pieces(mechanism, grouping, pieces)
    except (InvalidInput, LimitExceeded) as error:
        return str(error)


def _count_groups_of_pieces(mechanism: Mechanism, grouping: Grouping, pieces: Iterable[Piece]) -> GroupedAggregate:
    """Count files, or some of their row groups, by group."""
    tally = GroupTally(mechanism, grouping)
    for source, groups in pieces:
        rows = read_grouped_reports(mechanism, source, grouping.columns, row_groups=groups)
        for reports, columns, first_row in rows:
            tally.add(reports, columns, source.shown, first_row)
    return tally.result()


def _count_partition(spec: str, count: Counter, batches: Iterable[Any]) -> Iterator[Any]:
    """Count one partition; yield one row with the counts or the error message."""
    pyarrow = import_pyarrow("Spark")
    counts, message = None, None
    try:
        counts = count(mechanism_of(spec), batches)
    except (InvalidInput, LimitExceeded) as error:
        message = str(error)
    columns = [pyarrow.array([counts], pyarrow.binary()), pyarrow.array([message], pyarrow.string())]
    yield pyarrow.record_batch(columns, names=["counts", "error"])


def _part_of_row(parse: Parser, row: Any) -> Part:
    """Return the part that a row of counts or of an error describes."""
    counts, error = row
    return str(error) if counts is None else parse(bytes(counts))


def _count_files(mechanism: Mechanism, batches: Iterable[Any]) -> bytes:
    """Count files that Spark sent as a whole."""
    reports = (read_reports(mechanism, source) for source in sources(batches, REPORT_SUFFIXES))
    return Aggregate.empty(mechanism).accumulate(mechanism, itertools.chain.from_iterable(reports)).to_bytes()


def _count_groups_of_files(grouping: Grouping, mechanism: Mechanism, batches: Iterable[Any]) -> bytes:
    """Count files that Spark sent as a whole by group."""
    pieces: Iterator[Piece] = ((source, None) for source in sources(batches, REPORT_SUFFIXES))
    return _count_groups_of_pieces(mechanism, grouping, pieces).to_json().encode()


def _count_table(mechanism: Mechanism, batches: Iterable[Any]) -> bytes:
    """Count the reports in Arrow batches."""
    return Aggregate.empty(mechanism).accumulate(mechanism, _reports_of_table(mechanism, batches)).to_bytes()


def _count_groups_of_table(grouping: Grouping, mechanism: Mechanism, batches: Iterable[Any]) -> bytes:
    """Count the reports in Arrow batches by the other columns."""
    tally = GroupTally(mechanism, grouping)
    for batch in batches:
        for reports in _reports_of_table(mechanism, [batch]):
            checked = mechanism.report_format.validate(reports, "the table")
            tally.add(checked, batch.columns[1:], "the table", None)
    return tally.result().to_json().encode()


def _count_equal_reports(mechanism: Mechanism, batches: Iterable[Any]) -> bytes:
    """Count distinct reports, each with its number of occurrences."""
    counts, n = np.zeros_like(Aggregate.empty(mechanism).counts), 0
    for batch in batches:
        numbers = batch.column(1).to_numpy()
        for reports in _reports_of_table(mechanism, [batch]):
            counts[mechanism.report_format.validate(reports, "the table")] += numbers
        n += int(numbers.sum())
    return Aggregate(mechanism.hash, n, counts).to_bytes()


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
