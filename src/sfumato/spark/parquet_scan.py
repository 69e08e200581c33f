"""Recognize DataFrames that only scan Parquet files, because the executors can read such files without Spark.

The files come from Spark's optimized plan, which must consist of columns of one scan and no other step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sfumato.collecting import METADATA_KEY, PARQUET, REPORT_COLUMN, Source, open_columns
from sfumato.errors import InvalidInput
from sfumato.spark.remote_files import local_paths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sfumato.mechanisms import Mechanism

__all__ = ["report_files", "value_files"]

_PLANS = "org.apache.spark.sql.catalyst.plans.logical"
_NAMES = "org.apache.spark.sql.catalyst.expressions"
_SOURCES = "org.apache.spark.sql.execution.datasources"
#: Types that Spark reads from a Parquet file as Arrow does.
_SAME = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string")


def value_files(frame: DataFrame) -> list[str] | None:
    """Return the local files whose columns, as Arrow reads them, are all rows of the frame, or None."""
    types = [(field.name, field.dataType.simpleString()) for field in frame.schema]
    if not all(kind in _SAME for _, kind in types):
        return None
    files = _scanned_files(frame)
    return files if files is not None and all(_holds(file, types) for file in files) else None


def report_files(mechanism: Mechanism, table: DataFrame) -> list[str] | None:
    """Return the local files that name the mechanism and whose reports are all rows of the table, or None.

    Other columns of the table must have types that Arrow reads from a file as Spark does.
    """
    others = [(field.name, field.dataType.simpleString()) for field in table.schema if field.name != REPORT_COLUMN]
    if not all(kind in _SAME for _, kind in others):
        return None
    files = _scanned_files(table)
    if files is None or not all(_names(file, mechanism) and _holds(file, others) for file in files):
        return None
    return files


def _scanned_files(frame: DataFrame) -> list[str] | None:
    """Return the local Parquet files that this frame scans, if it only selects columns; else None."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    while _class(plan) == f"{_PLANS}.Project":
        if not all(map(_is_column, _listed(plan.projectList()))):
            return None
        plan = plan.child()
    if _class(plan) != f"{_SOURCES}.LogicalRelation":
        return None
    relation = plan.relation()
    if _class(relation) != f"{_SOURCES}.HadoopFsRelation":
        return None
    # Tables of a catalog, and formats that add deletions to Parquet, list and read their files differently.
    plain = (f"{_SOURCES}.InMemoryFileIndex", f"{_SOURCES}.parquet.ParquetFileFormat")
    if (_class(relation.location()), _class(relation.fileFormat())) != plain:
        return None
    if not set(frame.columns) <= set(
        relation.dataSchema().fieldNames()
    ):  # other columns are encoded in the names of folders
        return None
    uris = list(relation.location().inputFiles())
    if not all(uri.startswith("file:") and uri.lower().endswith(PARQUET) for uri in uris):
        return None
    return local_paths(uris)


def _is_column(expression: Any) -> bool:
    """Return whether an expression is a column of the scan, or an alias of the same name that attaches metadata."""
    if _class(expression) == f"{_NAMES}.Alias":
        name, expression = expression.name(), expression.child()
        if _class(expression) != f"{_NAMES}.AttributeReference" or expression.name() != name:
            return False
    return _class(expression) == f"{_NAMES}.AttributeReference"


def _class(thing: Any) -> str:
    """Return the Java class name of an object."""
    return str(thing.getClass().getName())


def _listed(seq: Any) -> list[Any]:
    """Return a Scala sequence as a list."""
    return [seq.apply(place) for place in range(seq.size())]


def _holds(file: str, types: Sequence[tuple[str, str]]) -> bool:
    """Return whether a file has each of these columns once, with types that Spark does not convert."""
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import from_arrow_type

    try:
        with open_columns(Source(file, PARQUET[0])) as reader:
            return all(from_arrow_type(reader.type_of(name)).simpleString() == kind for name, kind in types)
    except (InvalidInput, PySparkTypeError):
        return False


def _names(file: str, mechanism: Mechanism) -> bool:
    """Return whether the metadata of a file names the mechanism, which ``read_reports`` requires."""
    try:
        with open_columns(Source(file, PARQUET[0])) as reader:
            named = reader.metadata.get(METADATA_KEY) == mechanism.hash.encode()
            return named and REPORT_COLUMN in reader.names
    except InvalidInput:
        return False
