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
from sfumato.mechanisms import Mechanism, check_reports
from sfumato.spark.scans import report_files
from sfumato.spark.sessions import no_word_of_pandas
from sfumato.spark.shares import Piece, shares_of
from sfumato.spark.tables import check_table, quoted, read_table
from sfumato.spark.tasks import Refused, mechanism_of
from sfumato.spark.whole_files import find_files, sources

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["aggregate", "aggregate_files"]

#: Reports of no more outputs than this are brought together by Spark first, which is cheaper than to hand each over.
_FEW_OUTPUTS = 2**16
_PART = "counts binary, refusal string"

Reports: TypeAlias = Iterator[npt.NDArray[Any]]
#: The counts of a part of the reports, or what was refused; None of no part.
Part: TypeAlias = Aggregate | str | None
#: What an executor does with Arrow batches.
Counter: TypeAlias = Callable[[Mechanism, Iterable[Any]], Aggregate]


def aggregate(mechanism: Mechanism, table: DataFrame) -> Aggregate:
    """Count a DataFrame of reports, as ``privatize`` and ``read_table`` give it.

    The metadata of its column says whose reports they are. Where tables of several mechanisms were made one, Spark
    keeps the metadata of the first alone: count each by itself, and merge what must be merged.
    """
    check_table(mechanism, table)
    counts = Aggregate.empty(mechanism)  # refuses a mechanism of too many outputs before anything starts
    column = table.select(quoted(REPORT_COLUMN))
    files = report_files(mechanism, column)
    if files is not None:
        return _of_local(mechanism, table.sparkSession, files)
    if mechanism.encoding == "index" and len(counts.counts) <= _FEW_OUTPUTS:
        return _of_frame(mechanism, column.groupBy(REPORT_COLUMN).count(), _count_groups)
    return _of_frame(mechanism, column, _count_table)


def aggregate_files(mechanism: Mechanism, running: SparkSession, *paths: str) -> Aggregate:
    """Count report files, and folders of them, at any of Hadoop's paths.

    They are read by the reader of one machine. Files of the disk, or of a share that all machines have mounted, the
    executors open themselves, by row groups; others are handed over whole. Only Parquet files of more than 128 MiB
    that are not on a disk are decoded by Spark, which is slower but spreads one file over all executors.
    """
    counts = Aggregate.empty(mechanism)
    found = find_files(running, paths)
    if found.local:
        counts = counts.merge(_of_local(mechanism, running, found.local))
    if found.whole is not None:
        counts = counts.merge(_of_frame(mechanism, found.whole, _count_files))
    if found.large:
        counts = counts.merge(aggregate(mechanism, read_table(mechanism, running, *found.large)))
    return counts


def _of_local(mechanism: Mechanism, running: SparkSession, files: Sequence[str]) -> Aggregate:
    context = running.sparkContext
    shares = shares_of(files, REPORT_SUFFIXES, context.defaultParallelism)
    parts = context.parallelize(shares, max(1, len(shares)))
    return _merged(mechanism, parts.map(functools.partial(_count_share, mechanism.to_json())))


def _of_frame(mechanism: Mechanism, frame: DataFrame, count: Counter) -> Aggregate:
    with no_word_of_pandas():
        parts = frame.mapInArrow(functools.partial(_count_partition, mechanism.to_json(), count), _PART)
    return _merged(mechanism, parts.rdd.map(_part_of_row))


def _merged(mechanism: Mechanism, parts: RDD[Part]) -> Aggregate:
    merged = parts.treeAggregate(None, _both, _both)
    if isinstance(merged, str):
        raise Refused("aggregate on Spark", merged)
    counts = Aggregate.empty(mechanism) if merged is None else merged
    counts.check(mechanism)
    return counts


# -- on an executor ----------------------------------------------------------------------------------------


def _both(one: Part, other: Part) -> Part:
    """The sum of two parts; of two refusals the first by name, so that it does not depend on who was faster."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, Aggregate) and isinstance(other, Aggregate):
        return one.merge(other)
    return min(part for part in (one, other) if isinstance(part, str))


def _count_share(spec: str, pieces: Sequence[Piece]) -> Part:
    """Count some files, or some of their row groups."""
    mechanism = mechanism_of(spec)
    reports = (read_reports(source, mechanism, row_groups=groups) for source, groups in pieces)
    try:
        return Aggregate.empty(mechanism).accumulate(mechanism, itertools.chain.from_iterable(reports))
    except InvalidInput as error:
        return str(error)


def _count_partition(spec: str, count: Counter, batches: Iterable[Any]) -> Iterator[Any]:
    """Count one partition; one row has the counts, or what was refused."""
    pyarrow = import_pyarrow("Spark")
    counts, refusal = None, None
    try:
        counts = count(mechanism_of(spec), batches).to_bytes()
    except InvalidInput as error:
        refusal = str(error)
    columns = [pyarrow.array([counts], pyarrow.binary()), pyarrow.array([refusal], pyarrow.string())]
    yield pyarrow.record_batch(columns, names=["counts", "refusal"])


def _part_of_row(row: Any) -> Part:
    counts, refusal = row
    return str(refusal) if counts is None else Aggregate.from_bytes(bytes(counts))


def _count_files(mechanism: Mechanism, batches: Iterable[Any]) -> Aggregate:
    reports = (read_reports(source, mechanism) for source in sources(batches, REPORT_SUFFIXES))
    return Aggregate.empty(mechanism).accumulate(mechanism, itertools.chain.from_iterable(reports))


def _count_table(mechanism: Mechanism, batches: Iterable[Any]) -> Aggregate:
    return Aggregate.empty(mechanism).accumulate(mechanism, _reports_of_table(mechanism, batches))


def _count_groups(mechanism: Mechanism, batches: Iterable[Any]) -> Aggregate:
    """Count reports that come once each, with how often they are there."""
    counts, n = np.zeros_like(Aggregate.empty(mechanism).counts), 0
    for batch in batches:
        numbers = batch.column(1).to_numpy()
        for reports in _reports_of_table(mechanism, [batch]):
            counts[check_reports(mechanism, reports, "the table")] += numbers
        n += int(numbers.sum())
    return Aggregate(mechanism.hash, n, counts)


def _reports_of_table(mechanism: Mechanism, batches: Iterable[Any]) -> Reports:
    pyarrow = import_pyarrow("Spark")
    for batch in batches:
        column = batch.column(0)
        if column.null_count:
            raise InvalidInput("the table", "every report", "not be null", None)
        if not mechanism.report_shape:
            yield column.to_numpy()
            continue
        width = mechanism.report_shape[0]
        try:
            rows = column.cast(pyarrow.binary(width))
        except pyarrow.ArrowInvalid as error:
            raise InvalidInput("the table", "every report", f"be {width} bytes long", str(error)) from error
        values = np.frombuffer(rows.buffers()[1], np.uint8, len(rows) * width, rows.offset * width)
        yield values.reshape(len(rows), width)
