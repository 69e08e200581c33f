"""``aggregate`` on Spark: the executors count with the code of one machine, and Spark adds up the integers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._aggregate import Aggregate
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.reports import read_reports
from sfumato.reports.columns import import_pyarrow
from sfumato.reports.files import REPORT_COLUMN, REPORT_SUFFIXES
from sfumato.spark.sessions import no_word_of_pandas
from sfumato.spark.tables import check_table, quoted, read_table
from sfumato.spark.tasks import Refused, mechanism_of
from sfumato.spark.whole_files import by_size, sources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["aggregate", "aggregate_files"]

#: The row that holds how many reports there were, among those that hold the counts.
_N = -1
_COUNTS = "position bigint, number bigint, refusal string"

Reports = Iterator[npt.NDArray[Any]]


def aggregate(mechanism: Mechanism, table: DataFrame) -> Aggregate:
    """Count a DataFrame of reports, as ``privatize`` and ``read_table`` give it.

    The metadata of its column says whose reports they are. Where tables of several mechanisms were made one, Spark
    keeps the metadata of the first alone: count each by itself, and merge what must be merged.
    """
    check_table(mechanism, table)
    return _counted(mechanism, table.select(quoted(REPORT_COLUMN)), _reports_of_table)


def aggregate_files(mechanism: Mechanism, running: SparkSession, *paths: str) -> Aggregate:
    """Count report files, and folders of them, at any of Hadoop's paths.

    Each is read on one executor, by the reader of one machine. Only Parquet files of more than 128 MiB are decoded by
    Spark, which is slower but spreads one file over all executors.
    """
    counts = Aggregate.empty(mechanism)
    whole, large = by_size(running, paths)
    if whole is not None:
        counts = counts.merge(_counted(mechanism, whole, _reports_of_files))
    if large:
        counts = counts.merge(aggregate(mechanism, read_table(mechanism, running, *large)))
    return counts


def _counted(
    mechanism: Mechanism, frame: DataFrame, reports: Callable[[Mechanism, Iterable[Any]], Reports]
) -> Aggregate:
    counts = Aggregate.empty(mechanism).counts.copy()  # refuses a mechanism of too many outputs before anything starts
    spec = mechanism.to_json()
    with no_word_of_pandas():
        parts = frame.mapInArrow(functools.partial(_count_partition, spec, reports), _COUNTS)
        added = parts.groupBy("position", "refusal").sum("number").toArrow()
    refusals = added.column("refusal").drop_null().to_pylist()
    if refusals:
        raise Refused("aggregate on Spark", min(refusals))
    positions, numbers = (added.column(name).to_numpy() for name in ("position", "sum(number)"))
    n = int(numbers[positions == _N].sum())
    counts[positions[positions != _N]] = numbers[positions != _N]
    merged = Aggregate(mechanism.hash, n, counts)
    merged.check(mechanism)
    return merged


# -- on an executor ----------------------------------------------------------------------------------------


def _count_partition(
    spec: str, reports: Callable[[Mechanism, Iterable[Any]], Reports], batches: Iterable[Any]
) -> Iterator[Any]:
    """The counts of one partition that are not zero and their number of reports, or what was refused."""
    pyarrow = import_pyarrow("Spark")
    mechanism = mechanism_of(spec)
    refusal = None
    try:
        found = Aggregate.empty(mechanism).accumulate(mechanism, reports(mechanism, batches))
        set_ones = np.flatnonzero(found.counts)
        positions, numbers = np.append(set_ones, _N), np.append(found.counts[set_ones], found.n)
    except InvalidInput as error:
        positions, numbers, refusal = np.array([_N]), np.array([0]), str(error)
    columns = [
        pyarrow.array(positions, pyarrow.int64()),
        pyarrow.array(numbers, pyarrow.int64()),
        pyarrow.array([refusal] * len(positions), pyarrow.string()),
    ]
    yield pyarrow.record_batch(columns, names=["position", "number", "refusal"])


def _reports_of_files(mechanism: Mechanism, batches: Iterable[Any]) -> Reports:
    for source in sources(batches, REPORT_SUFFIXES):
        yield from read_reports(source, mechanism)


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
