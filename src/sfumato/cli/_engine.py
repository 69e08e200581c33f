"""Options that choose where a command computes: in this process, or on Spark, which reads Hadoop paths."""

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
    """A local path; with ``--engine spark``, a Hadoop path, which only Spark can check."""

    def __init__(self, local: click.Path) -> None:
        super().__init__()
        self._local = local

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if ctx is None or ctx.params.get("engine") != _SPARK:
            return self._local.convert(value, param, ctx)
        if value == PIPE:
            self.fail("--engine spark cannot read or write a pipe (-). Give the path of a file or folder.", param, ctx)
        return value


HADOOP_INPUT = _HadoopPath(INPUT)
HADOOP_OUTPUT = _HadoopPath(OUTPUT)


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options ``--engine`` and ``--master``; click parses --engine first, because paths depend on it."""
    engine = click.option(
        "--engine",
        type=click.Choice(("process", _SPARK)),
        default="process",
        is_eager=True,
        help="Where to compute: in this process or on an Apache Spark cluster.  [default: process]",
    )
    master = click.option(
        "--master", metavar="URL", help="Spark master to connect to, with --engine spark only.  [default: local[*]]"
    )
    return engine(master(command))


@contextmanager
def spark_session(engine: str, master: str | None) -> Iterator[SparkSession | None]:
    """Open a Spark session on the master; yield None if the engine is this process."""
    if engine != _SPARK:
        if master is not None:
            raise click.UsageError("--master requires --engine spark. Add --engine spark or leave out --master.")
        yield None
        return
    from sfumato.spark import session

    with session(master or "local[*]") as spark:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        try:
            yield spark
        except (PySparkException, Py4JError) as error:
            reason = str(error).strip().splitlines()[0]  # the other lines are Java's stack trace
            raise click.ClickException(f"Spark failed: {reason}") from error
