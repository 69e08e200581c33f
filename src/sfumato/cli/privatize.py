"""`sfumato privatize`: randomize a column of values into reports."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from sfumato._core import PIPE, Progress, TextFormat, quantity
from sfumato.cli._engine import HADOOP_INPUT, HADOOP_OUTPUT, engine_options, spark_session
from sfumato.cli._files import INPUT, format_option, named, piped_suffix, read_mechanism
from sfumato.cli._groups import group_options, unprotected_note
from sfumato.cli._show import JSON_OPTION, THREADS_OPTION, progress_bar, show_json
from sfumato.cli._text import MissingCommand, MissingRule, text_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sfumato.device import EncodedRows
    from sfumato.mechanisms import Mechanism

_FORMATS = ("sfb", "parquet", "arrow", "lines")
#: Warning about mechanisms whose permanent answers must be kept.
_NOT_KEPT = (
    "the permanent answers of this memoized mechanism are not kept. Do not run this command again for another wave of "
    "the same people: every run releases new permanent answers. Devices keep them in a ledger (Ledger.answer_wave)."
)
#: Warning about rows that are left out.
_DROPPING = (
    "This is not private: who has a report reveals who has a value, and estimates describe only these people. "
    "Use --missing value LABEL, or a domain with a value for missing answers."
)


@click.command(cls=MissingCommand, short_help="Randomize a column of values into reports.")
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
@group_options(
    "Column that travels with each report and is NOT protected, such as a region; repeat the option for several. The "
    "output is then Parquet or Arrow.",
    "Column of integer survey weights, which travels with each report and is NOT protected either.",
)
@text_options
@THREADS_OPTION
@engine_options
@JSON_OPTION
def command(
    mechanism: str,
    values: str,
    output: str,
    form: str | None,
    column: tuple[str, ...],
    by: tuple[str, ...],
    weight: str | None,
    missing: MissingRule,
    text: TextFormat,
    threads: int | None,
    engine: str,
    master: str | None,
    as_json: bool,
) -> None:
    """Randomize every value of a column into a report, with cryptographically secure randomness.

    MECHANISM is the JSON file that `sfumato design` wrote. VALUES is a CSV, TSV, Parquet or Arrow file, or a text file
    with one value per line; - reads standard input. Text may be compressed with gzip. Run this command where the values
    are stored, and let only the reports leave that place.

    With --engine spark --master spark://host:7077, VALUES are Parquet or Arrow files, or folders of them, at a Hadoop
    path. The output is a new folder of Parquet files.

    With --by and --weight, public columns of the same rows are copied next to the reports. Estimates by group or with
    survey weights need them. Do not copy a column that people want to keep secret.

    Example: sfumato privatize mechanism.json values.parquet -o reports.parquet
    """
    from sfumato.mechanisms import further_promises

    piped = piped_suffix(output, form, _FORMATS)
    sampler = read_mechanism(mechanism)
    names = None if not column else column[0] if len(column) == 1 else list(column)
    public = _Public(by, weight)
    public.check(column or (("latitude", "longitude") if sampler.domain.is_map else tuple(sampler.domain.factors)))
    with spark_session(engine, master) as spark:
        if spark is None:
            count, dropped = _privatize_here(sampler, values, names, public, text, missing, output, piped, threads)
        else:
            count, dropped = _privatize_on_spark(spark, sampler, values, names, public, text, missing, output), 0
    aside = output == PIPE
    if dropped:
        rows = f"{quantity(dropped, 'row')} without a value {'were' if dropped > 1 else 'was'} dropped"
        click.echo(f"warning: {rows}. {_DROPPING}", err=True)
    if further_promises(sampler):
        click.echo(f"warning: {_NOT_KEPT}", err=True)
    if as_json:
        answer = {"reports": count, "bits": sampler.bits, "mechanism_hash": sampler.hash, "file": output}
        show_json({**answer, **({"unprotected": public.names} if public.names else {})}, aside=aside)
        return
    size = f"{quantity(sampler.bits, 'bit')}{' each' if count != 1 else ''}"
    click.echo(f"{quantity(count, 'report')} of {size} written to {named(output)}", err=aside)
    if public.names:
        click.echo(unprotected_note(public.names), err=aside)


@dataclass(frozen=True)
class _Public:
    """Columns that travel with the reports, and which of them has weights."""

    by: tuple[str, ...]
    weight: str | None

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [*self.by, *([] if self.weight is None else [self.weight])]

    def check(self, value_columns: Sequence[str]) -> None:
        """Reject columns that are named twice, and columns of values."""
        if self.names and not value_columns:
            raise click.UsageError("--by and --weight require --column, so that the values are not copied as well.")
        for name in self.names:
            if name in value_columns:
                message = f"the column {name} has the values, which would be revealed. Leave out --by {name}."
                raise click.UsageError(message)
            if self.names.count(name) > 1:
                raise click.UsageError(f"the column {name} is named twice. Name it once, in --by or in --weight.")

    def columns(self, rows: EncodedRows, path: str) -> dict[str, Any]:
        """Return the columns of some rows; strings are labels, and weights are integers."""
        from sfumato.collecting import read_weights
        from sfumato.domain import At

        chosen: dict[str, Any] = {name: rows.extra[name] for name in self.by}
        if self.weight is not None:
            cell_name = functools.partial(rows.cell_name, self.weight)
            chosen[self.weight] = read_weights(rows.extra[self.weight], At(path, "the weight"), cell_name)
        return chosen


def _privatize_here(
    sampler: Mechanism,
    values: str,
    names: str | list[str] | None,
    public: _Public,
    text: TextFormat,
    missing: MissingRule,
    output: str,
    piped: str,
    threads: int | None,
) -> tuple[int, int]:
    """Randomize the values in this process; return the number of reports, and of rows that were dropped."""
    from sfumato.collecting import write_report_rows, write_reports
    from sfumato.device import privatize_indices, read_indices
    from sfumato.errors import Description, InvalidInput

    dropped = 0
    with progress_bar("privatizing") as progress:

        def pieces() -> Iterator[tuple[Any, dict[str, Any]]]:
            nonlocal dropped
            total = 0
            for rows in read_indices(
                values,
                names,
                domain=sampler.domain,
                text=text,
                missing=missing.label(sampler.domain),
                drop_missing=missing.drop,
                extra=public.names,
            ):
                columns = public.columns(rows, named(values, "input"))
                reports = privatize_indices(sampler, rows.indices, threads=threads)
                total += len(reports)
                dropped += rows.dropped
                progress(Progress(total, None, "values"))
                yield reports, columns
            if total == 0:  # an empty input is almost certainly a mistake
                raise InvalidInput(
                    named(values, "input"), "the file", "hold at least one value", Description("an empty file")
                )

        if public.names:
            return write_report_rows(sampler, pieces(), output, public.names, piped=piped), dropped
        return write_reports(sampler, (reports for reports, _ in pieces()), output, piped=piped), dropped


def _privatize_on_spark(
    spark: SparkSession,
    sampler: Mechanism,
    values: str,
    names: str | list[str] | None,
    public: _Public,
    text: TextFormat,
    missing: MissingRule,
    output: str,
) -> int:
    """Randomize the values on Spark; return the number of reports."""
    from sfumato.spark import privatize_files

    if text != TextFormat():
        raise click.UsageError("--engine spark reads Parquet and Arrow files. Leave out the options of text files.")
    if missing.drop:
        raise click.UsageError("--missing drop is not available with --engine spark. Use --missing value LABEL.")
    if names is None and sampler.domain.factors:  # the columns that one process would read
        names = ["latitude", "longitude"] if sampler.domain.is_map else list(sampler.domain.factors)
    label = missing.label(sampler.domain)
    table = privatize_files(sampler, spark, [values], output, names, missing=label, by=public.by, weight=public.weight)
    return table.count()
