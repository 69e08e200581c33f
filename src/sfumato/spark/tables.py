"""Tables of reports as DataFrames: a column ``report`` whose metadata name the mechanism, as in the files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.collecting import METADATA_KEY, REPORT_COLUMN, wrong_mechanism
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.spark.sessions import hadoop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["check_table", "quoted", "read_parquet", "read_table"]

_KEY = METADATA_KEY.decode()


def quoted(name: str) -> str:
    """Return a column name quoted for Spark, which would interpret dots."""
    return "`" + name.replace("`", "``") + "`"


def read_table(mechanism: Mechanism, spark: SparkSession, *paths: str) -> DataFrame:
    """Read reports from Parquet files into a DataFrame.

    The function checks the footer of every file: the hash of the mechanism and the type of the reports.
    :func:`aggregate` checks the reports themselves.

    Parameters
    ----------
    mechanism
        Mechanism that produced the reports.
    spark
        Spark session, as :func:`session` returns it.
    *paths
        Hadoop paths of Parquet files, and of folders with such files.

    Returns
    -------
    DataFrame
        The reports in the column ``report``, with the hash of the mechanism in the metadata of the column.

    Raises
    ------
    InvalidInput
        If a file is not a report file of the mechanism.

    Notes
    -----
    The Spark type of the column depends on the mechanism, because Spark has no unsigned integers:

    - ``bigint`` for reports that are indices of at most 32 bits;
    - ``decimal`` for longer indices;
    - ``binary`` for all other reports.
    """
    table = read_parquet(spark, *paths)
    for file in table.inputFiles():
        _check_footer(mechanism, spark, file)
    return table.withMetadata(REPORT_COLUMN, {_KEY: mechanism.hash})


def read_parquet(spark: SparkSession, *paths: str) -> DataFrame:
    """Read Parquet files, and folders of them, at Hadoop paths; verify their checksums if present."""
    from pyspark.errors import AnalysisException

    try:
        return spark.read.option("parquet.page.verify-checksum.enabled", "true").parquet(*paths)
    except AnalysisException as error:
        must, got = "name Parquet files or folders with them", Description(error)
        raise InvalidInput(", ".join(paths), "the path", must, got) from error


def check_table(mechanism: Mechanism, table: DataFrame) -> None:
    """Raise InvalidInput unless the metadata of a DataFrame name this mechanism."""
    if table.columns.count(REPORT_COLUMN) != 1:
        raise InvalidInput("aggregate on Spark", "the column", f"be one of {table.columns}", REPORT_COLUMN)
    stored_hash = table.schema[REPORT_COLUMN].metadata.get(_KEY)
    if stored_hash != mechanism.hash:
        where = f"the mechanism hash in the metadata of its column ({_KEY})"
        raise wrong_mechanism(
            "aggregate on Spark",
            where,
            mechanism.hash,
            stored_hash,
            cause="The reports were produced by another mechanism, or another program made the DataFrame.",
            next_step="Pass the mechanism that produced the reports, and read them with sfumato.spark.read_table.",
        )


def _check_footer(mechanism: Mechanism, spark: SparkSession, file: str) -> None:
    """Check a footer as ``read_reports`` does, because Spark shows neither the metadata nor the type of a file."""
    java, configuration = hadoop(spark)
    path = java.org.apache.hadoop.fs.Path(java.java.net.URI(file))
    input_file = java.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, configuration)
    reader = java.org.apache.parquet.hadoop.ParquetFileReader.open(input_file)
    try:
        footer = reader.getFileMetaData()
        stored_hash, schema = footer.getKeyValueMetaData().get(_KEY), footer.getSchema()
    finally:
        reader.close()
    if stored_hash != mechanism.hash:
        where = f"the mechanism hash in its metadata ({_KEY})"
        next_step = "Pass the mechanism that produced the reports, and a file that write_reports or privatize wrote."
        raise wrong_mechanism(file, where, mechanism.hash, stored_hash, next_step=next_step)
    kind = _type_of(schema) if schema.containsField(REPORT_COLUMN) else "missing"
    if kind != _parquet_type(mechanism):
        raise InvalidInput(
            file, f"the column {REPORT_COLUMN!r}", f"have the type {_parquet_type(mechanism)}", Description(kind)
        )


def _type_of(schema: Any) -> str:
    """Return the Parquet type of the column of reports."""
    column = schema.getType(REPORT_COLUMN)
    if not column.isPrimitive():
        return "a group"
    stored = str(column.getPrimitiveTypeName().toString())
    length = f"({column.getTypeLength()})" if stored == "FIXED_LEN_BYTE_ARRAY" else ""
    meaning = column.getLogicalTypeAnnotation()
    return stored + length + ("" if meaning is None else f" {meaning.toString()}")


def _parquet_type(mechanism: Mechanism) -> str:
    """Return the Parquet type that the reports of the mechanism have."""
    if mechanism.report_format.shape:
        return f"FIXED_LEN_BYTE_ARRAY({mechanism.report_format.shape[0]})"
    bits = 8 * mechanism.report_format.dtype.itemsize
    return f"INT{bits} INTEGER({bits},false)"
