"""Tables of reports as DataFrames: a column ``report`` whose metadata names the mechanism, as the files do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.collecting import METADATA_KEY, REPORT_COLUMN
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.spark.sessions import hadoop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["check_table", "quoted", "read_parquet", "read_table"]

_KEY = METADATA_KEY.decode()


def quoted(name: str) -> str:
    """A column's name as Spark reads it: dots and all."""
    return "`" + name.replace("`", "``") + "`"


def read_table(mechanism: Mechanism, running: SparkSession, *paths: str) -> DataFrame:
    """The reports of Parquet files and folders of them, at any of Hadoop's paths; every footer is checked.

    Spark has no unsigned types: an index of up to 32 bits is a ``bigint`` there, a longer one a ``decimal``. All other
    reports are ``binary``.
    """
    table = read_parquet(running, *paths)
    for file in table.inputFiles():
        _check_footer(mechanism, running, file)
    return table.withMetadata(REPORT_COLUMN, {_KEY: mechanism.hash})


def read_parquet(running: SparkSession, *paths: str) -> DataFrame:
    """Any Parquet files and folders of them, at any of Hadoop's paths; checksums that they have are checked."""
    from pyspark.errors import AnalysisException

    try:
        return running.read.option("parquet.page.verify-checksum.enabled", "true").parquet(*paths)
    except AnalysisException as error:
        raise InvalidInput(", ".join(paths), "the path", "hold Parquet files", str(error)) from error


def check_table(mechanism: Mechanism, table: DataFrame) -> None:
    """Refuse a DataFrame that is not known to hold reports of this mechanism."""
    if table.columns.count(REPORT_COLUMN) != 1:
        raise InvalidInput("aggregate on Spark", "the column", f"be one of {table.columns}", REPORT_COLUMN)
    found = table.schema[REPORT_COLUMN].metadata.get(_KEY)
    if found != mechanism.hash:
        where = f"the mechanism in the metadata of its column ({_KEY})"
        raise InvalidInput("aggregate on Spark", where, f"be {mechanism.hash}", found)


def _check_footer(mechanism: Mechanism, running: SparkSession, file: str) -> None:
    """As ``read_reports`` does on one machine: Spark itself shows neither the metadata nor the type of a file."""
    java, configuration = hadoop(running)
    path = java.org.apache.hadoop.fs.Path(java.java.net.URI(file))
    opened = java.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, configuration)
    reader = java.org.apache.parquet.hadoop.ParquetFileReader.open(opened)
    try:
        footer = reader.getFileMetaData()
        found, schema = footer.getKeyValueMetaData().get(_KEY), footer.getSchema()
    finally:
        reader.close()
    if found != mechanism.hash:
        must = f"be {mechanism.hash}"
        raise InvalidInput(file, f"the mechanism in its metadata ({_KEY})", must, "none" if found is None else found)
    kind = _type_of(schema) if schema.containsField(REPORT_COLUMN) else "missing"
    if kind != _parquet_type(mechanism):
        raise InvalidInput(file, f"the column {REPORT_COLUMN!r}", f"be {_parquet_type(mechanism)}", kind)


def _type_of(schema: Any) -> str:
    column = schema.getType(REPORT_COLUMN)
    if not column.isPrimitive():
        return "a group"
    stored = str(column.getPrimitiveTypeName().toString())
    length = f"({column.getTypeLength()})" if stored == "FIXED_LEN_BYTE_ARRAY" else ""
    meaning = column.getLogicalTypeAnnotation()
    return stored + length + ("" if meaning is None else f" {meaning.toString()}")


def _parquet_type(mechanism: Mechanism) -> str:
    if mechanism.report_shape:
        return f"FIXED_LEN_BYTE_ARRAY({mechanism.report_shape[0]})"
    bits = 8 * mechanism.report_dtype.itemsize
    return f"INT{bits} INTEGER({bits},false)"
