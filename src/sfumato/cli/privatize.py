"""`sfumato privatize`: values in, randomized reports out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sfumato._core import PIPE, Progress
from sfumato.cli._engine import HADOOP_INPUT, HADOOP_OUTPUT, engine_options, spark_session
from sfumato.cli._files import INPUT, format_option, named, piped_suffix, read_mechanism
from sfumato.cli._show import JSON_OPTION, THREADS_OPTION, progress_bar, quantity, show_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sfumato.mechanisms import Mechanism

_FORMATS = ("sfb", "parquet", "arrow", "lines")


@click.command(short_help="Randomize a column of values with secure randomness.")
@click.argument("mechanism", type=INPUT)
@click.argument("values", type=HADOOP_INPUT)
@click.option(
    "-o", "--output", type=HADOOP_OUTPUT, required=True, help="The report file: .parquet, .arrow or .sfb; - for a pipe."
)
@format_option(_FORMATS)
@click.option("--column", multiple=True, help="The column that holds the values (several for a product or a grid).")
@THREADS_OPTION
@engine_options
@JSON_OPTION
def command(
    mechanism: str,
    values: str,
    output: str,
    form: str | None,
    column: tuple[str, ...],
    threads: int | None,
    engine: str,
    master: str | None,
    as_json: bool,
) -> None:
    """Randomize every value of a column (CSV, Parquet, Arrow, or a text file with a value a line; - for a pipe).

    Run this where the values already are: only the reports may leave.

    With --engine spark --master spark://host:7077, values are Parquet or Arrow files, or folders of them, at a path of
    Hadoop's, and the output is a new folder of Parquet files.

    Example: sfumato privatize mechanism.json values.parquet -o reports.parquet
    """
    piped = piped_suffix(output, form, _FORMATS)
    sampler = read_mechanism(mechanism)
    names = None if not column else column[0] if len(column) == 1 else list(column)
    with spark_session(engine, master) as spark:
        if spark is None:
            count = _privatize_here(sampler, values, names, output, piped, threads)
        else:
            count = _privatize_on_spark(spark, sampler, values, names, output)
    aside = output == PIPE
    if as_json:
        answer = {"reports": count, "bits": sampler.bits, "mechanism_hash": sampler.hash, "file": output}
        show_json(answer, aside=aside)
        return
    click.echo(f"{quantity(count, 'report')} of {sampler.bits} bits written to {named(output)}", err=aside)


def _privatize_here(
    sampler: Mechanism, values: str, names: str | list[str] | None, output: str, piped: str, threads: int | None
) -> int:
    from sfumato.collecting import write_reports
    from sfumato.device import privatize_indices, read_values
    from sfumato.errors import InvalidInput

    with progress_bar("privatizing") as progress:

        def pieces() -> Iterator[Any]:
            total = 0
            for piece in read_values(values, names, domain=sampler.domain):
                reports = privatize_indices(sampler, sampler.domain.encode(piece, first_row=total), threads=threads)
                total += len(reports)
                progress(Progress(total, None, "values"))
                yield reports
            if total == 0:  # as of a text file: hardly what anybody means to publish
                raise InvalidInput(named(values, "input"), "the file", "hold at least one value", "a file with none")

        return write_reports(sampler, pieces(), output, piped=piped)


def _privatize_on_spark(
    spark: SparkSession, sampler: Mechanism, values: str, names: str | list[str] | None, output: str
) -> int:
    from sfumato.spark import privatize_files

    return privatize_files(sampler, spark, [values], output, names).count()
