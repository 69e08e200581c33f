"""Where a command does its work: in this process, or on Spark, whose paths are Hadoop's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from sfumato._core import PIPE
from sfumato.cli._files import INPUT, OUTPUT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["HADOOP_INPUT", "HADOOP_OUTPUT", "engine_options", "spark_session"]

_SPARK = "spark"


class _HadoopPath(click.Path):
    """A path here; with ``--engine spark`` one of Hadoop's, which only Spark can look at."""

    def __init__(self, here: click.Path) -> None:
        super().__init__()
        self._here = here

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if ctx is None or ctx.params.get("engine") != _SPARK:
            return self._here.convert(value, param, ctx)
        if value == PIPE:
            self.fail("- is for one process; --engine spark reads and writes files.", param, ctx)
        return value


HADOOP_INPUT = _HadoopPath(INPUT)
HADOOP_OUTPUT = _HadoopPath(OUTPUT)


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options ``--engine`` and ``--master``; eager, for what a path may be depends on them."""
    engine = click.option(
        "--engine",
        type=click.Choice(("process", _SPARK)),
        default="process",
        is_eager=True,
        help="Where the work is done: in this process, or on Spark.  [default: process]",
    )
    master = click.option("--master", metavar="URL", help="The master of Spark.  [default: local[*]]")
    return engine(master(command))


@contextmanager
def spark_session(engine: str, master: str | None) -> Iterator[SparkSession | None]:
    """The session on the master that was asked for; None where the engine is this process."""
    if engine != _SPARK:
        if master is not None:
            raise click.UsageError("--master is for --engine spark.")
        yield None
        return
    from sfumato.spark import session

    with session(master or "local[*]") as spark:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        try:
            yield spark
        except (PySparkException, Py4JError) as error:  # their first line says what, the rest is Java's trace
            raise click.ClickException(f"Spark: {str(error).strip().splitlines()[0]}") from error
