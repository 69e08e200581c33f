"""`sfumato privatize`: randomize a column of values into reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sfumato._core import PIPE, Progress, quantity
from sfumato.cli._engine import HADOOP_INPUT, HADOOP_OUTPUT, engine_options, spark_session
from sfumato.cli._files import INPUT, format_option, named, piped_suffix, read_mechanism
from sfumato.cli._show import JSON_OPTION, THREADS_OPTION, progress_bar, show_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sfumato.mechanisms import Mechanism

_FORMATS = ("sfb", "parquet", "arrow", "lines")


@click.command(short_help="Randomize a column of values into reports.")
@click.argument("mechanism", type=INPUT)
@click.argument("values", type=HADOOP_INPUT)
@click.option(
    "-o",
    "--output",
    type=HADOOP_OUTPUT,
    required=True,
    help="File to write the reports to: .parquet, .arrow or .sfb; - writes to standard output.",
)
@format_option(_FORMATS)
@click.option(
    "--column",
    multiple=True,
    metavar="NAME",
    help="Column that holds the values; repeat the option for a product or grid domain.  [default: the only column]",
)
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
    """Randomize every value of a column into a report, with cryptographically secure randomness.

    MECHANISM is the JSON file that `sfumato design` wrote. VALUES is a CSV, Parquet or Arrow file, or a text file with
    one value per line; - reads standard input. Run this command where the values are stored, and let only the reports
    leave that place.

    With --engine spark --master spark://host:7077, VALUES are Parquet or Arrow files, or folders of them, at a Hadoop
    path. The output is a new folder of Parquet files.

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
    size = f"{quantity(sampler.bits, 'bit')}{' each' if count != 1 else ''}"
    click.echo(f"{quantity(count, 'report')} of {size} written to {named(output)}", err=aside)


def _privatize_here(
    sampler: Mechanism, values: str, names: str | list[str] | None, output: str, piped: str, threads: int | None
) -> int:
    """Randomize the values in this process; return the number of reports."""
    from sfumato.collecting import write_reports
    from sfumato.device import privatize_indices, read_values
    from sfumato.errors import Description, InvalidInput

    with progress_bar("privatizing") as progress:

        def pieces() -> Iterator[Any]:
            total = 0
            for piece in read_values(values, names, domain=sampler.domain):
                reports = privatize_indices(sampler, sampler.domain.encode(piece, first_row=total), threads=threads)
                total += len(reports)
                progress(Progress(total, None, "values"))
                yield reports
            if total == 0:  # an empty input is almost certainly a mistake
                raise InvalidInput(
                    named(values, "input"), "the file", "hold at least one value", Description("an empty file")
                )

        return write_reports(sampler, pieces(), output, piped=piped)


def _privatize_on_spark(
    spark: SparkSession, sampler: Mechanism, values: str, names: str | list[str] | None, output: str
) -> int:
    """Randomize the values on Spark; return the number of reports."""
    from sfumato.spark import privatize_files

    return privatize_files(sampler, spark, [values], output, names).count()
