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
#: Maximum number of rows and bytes in an Arrow batch; Spark's default of 10,000 rows makes the transfer slow.
_BATCH_ROWS = 2**18
_BATCH_BYTES = 2**25

_SPECULATION = "spark.speculation"
_SETTINGS = {
    _SPECULATION: "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(_BATCH_ROWS),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(_BATCH_BYTES),
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def silence_pandas_warning() -> Iterator[None]:
    """Silence Spark's warning about pandas 3, because this package uses Arrow and not pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


@contextmanager
def session(master: str = "local[*]") -> Iterator[SparkSession]:
    """Return a context manager for a Spark session with the settings that Sfumato needs.

    Use it as ``with session("local[4]") as spark:``. If this process has no active Spark session, the context manager
    starts one and stops it on exit. If an active session has the same master, the context manager returns that session
    and does not stop it. The settings of such a session stay as they are.

    A new session uses Spark from the installed package ``pyspark`` and Python from this environment. The environment
    variables ``SPARK_HOME`` and ``PYSPARK_PYTHON`` select others.

    Parameters
    ----------
    master
        Address of the Spark master: ``"local[*]"`` (one thread per core of this machine), ``"spark://host:7077"`` and
        so on.

    Yields
    ------
    SparkSession
        The session.

    Raises
    ------
    InvalidInput
        If the active session has another master, or Java is missing.
    MissingExtra
        If pyspark is not installed.
    """
    with silence_pandas_warning():
        pyspark = import_optional("pyspark", "spark", "the engine Spark")
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession

        active = SparkSession.getActiveSession()
        if active is not None:
            if active.sparkContext.master != master:
                must = f"be that of the active session, {active.sparkContext.master}"
                raise InvalidInput("Spark", "master", must, master, hint="Stop the active session first.")
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
            hint = "Install Java, and set JAVA_HOME to its folder."
            raise InvalidInput("Spark", "Java", "be installed, version 17 or later", str(error), hint=hint) from error
    try:
        yield started
    finally:
        started.stop()


def refuse_speculation(spark: SparkSession) -> None:
    """Raise InvalidInput if speculation is on, because a second copy of a task would draw more reports."""
    setting = spark.sparkContext.getConf().get(_SPECULATION, "false")
    if str(setting).lower() != "false":
        hint = (
            "Start the session with spark.speculation=false; a speculative task would draw a second report per person."
        )
        raise InvalidInput("privatize on Spark", _SPECULATION, "be false", setting, hint=hint)


def hadoop(spark: SparkSession) -> tuple[Any, Any]:
    """Return the Java classes of the driver and its Hadoop configuration, to open files as Spark does."""
    context = spark.sparkContext
    return context._jvm, context._jsc.hadoopConfiguration()
