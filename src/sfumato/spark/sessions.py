"""Start a Spark session, and check the settings that Sfumato relies on."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato._core import import_optional
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ROWS_PER_BATCH", "hadoop", "refuse_speculation", "session", "silence_pandas_warning"]

#: Minimum rows per kernel call.
ROWS_PER_BATCH = 2**16
#: Maximum rows and bytes of an Arrow batch; Spark's default of 10,000 rows makes the transfer slow.
_ROWS_HANDED_OVER = 2**18
_BYTES_HANDED_OVER = 2**25

_SPECULATION = "spark.speculation"
_SETTINGS = {
    _SPECULATION: "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ROWS_HANDED_OVER),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(_BYTES_HANDED_OVER),
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def silence_pandas_warning() -> Iterator[None]:
    """Silence Spark's warning about pandas 3: the data here is Arrow, and pandas is not used."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


@contextmanager
def session(master: str = "local[*]") -> Iterator[SparkSession]:
    """Start a session on a master (``local[*]``, ``local-cluster[2,1,1024]``, ``spark://host:7077``); stop it on exit.

    An active session of this process is used, and left open, if it has the same master. Spark is taken from the
    installed package, and Python from this environment, unless SPARK_HOME and PYSPARK_PYTHON say otherwise.
    """
    with silence_pandas_warning():
        pyspark = import_optional("pyspark", "spark", "the engine Spark")
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession

        active = SparkSession.getActiveSession()
        if active is not None:
            if active.sparkContext.master != master:
                raise InvalidInput("Spark", "master", f"be that of the session, {active.sparkContext.master}", master)
            yield active
            return
        os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master(master).appName("sfumato")
        for key, value in _SETTINGS.items():
            builder = builder.config(key, value)
        try:
            started = builder.getOrCreate()
        except PySparkRuntimeError as error:  # the Java gateway did not start
            raise InvalidInput("Spark", "Java", "be installed, version 17 or later", str(error)) from error
    try:
        yield started
    finally:
        started.stop()


def refuse_speculation(spark: SparkSession) -> None:
    """Raise InvalidInput if speculation is on: a second copy of a task would draw a second report per person."""
    setting = spark.sparkContext.getConf().get(_SPECULATION, "false")
    if str(setting).lower() != "false":
        raise InvalidInput("privatize on Spark", _SPECULATION, "be false", setting)


def hadoop(spark: SparkSession) -> tuple[Any, Any]:
    """Return the Java classes of the driver and its Hadoop configuration, to open files as Spark does."""
    context = spark.sparkContext
    return context._jvm, context._jsc.hadoopConfiguration()
