"""The Spark session: how it is started, and what of it is relied on."""

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

__all__ = ["ROWS_PER_BATCH", "hadoop", "no_word_of_pandas", "refuse_speculation", "session"]

#: Rows that are worth a call of the kernel.
ROWS_PER_BATCH = 2**16
#: Spark hands over so many rows at once, or rows of so many bytes: its own 10,000 make handing over dear.
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
def no_word_of_pandas() -> Iterator[None]:
    """Silence Spark's warning that pandas 3 is new to it: what passes here is Arrow, and pandas never touches it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


@contextmanager
def session(master: str = "local[*]") -> Iterator[SparkSession]:
    """A session on this master (``local[*]``, ``local-cluster[2,1,1024]``, ``spark://host:7077``), ended afterwards.

    One that is active in this process is used, and left running, if its master is the same. Spark is taken from the
    installed package, and Python from this environment, unless SPARK_HOME and PYSPARK_PYTHON say otherwise.
    """
    with no_word_of_pandas():
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


def refuse_speculation(running: SparkSession) -> None:
    """A speculative copy of a task would draw a second report for the same people."""
    found = running.sparkContext.getConf().get(_SPECULATION, "false")
    if str(found).lower() != "false":
        raise InvalidInput("privatize on Spark", _SPECULATION, "be false", found)


def hadoop(running: SparkSession) -> tuple[Any, Any]:
    """The Java classes of the driver and its Hadoop configuration, to reach files as Spark does."""
    context = running.sparkContext
    return context._jvm, context._jsc.hadoopConfiguration()
