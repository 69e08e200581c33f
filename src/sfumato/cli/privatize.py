"""`sfumato privatize`: values in, randomized reports out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from sfumato.cli._files import INPUT, OUTPUT, PIPE, format_option, named, piped_suffix, read_mechanism
from sfumato.cli._show import JSON_OPTION, progress_bar, show_json

_FORMATS = ("sfb", "parquet", "arrow", "lines")


@click.command(short_help="Randomize a column of values with secure randomness.")
@click.argument("mechanism", type=INPUT)
@click.argument("values", type=INPUT)
@click.option(
    "-o", "--output", type=OUTPUT, required=True, help="The report file: .parquet, .arrow or .sfb; - for a pipe."
)
@format_option(_FORMATS)
@click.option("--column", multiple=True, help="The column that holds the values (several for a product or a grid).")
@JSON_OPTION
def command(mechanism: str, values: str, output: str, form: str | None, column: tuple[str, ...], as_json: bool) -> None:
    """Randomize every value of a column (CSV, Parquet, Arrow, or a text file with a value a line; - for a pipe).

    Run this where the values already are: only the reports may leave.

    Example: sfumato privatize mechanism.json values.parquet -o reports.parquet
    """
    from sfumato._privatize import privatize_indices
    from sfumato.reports import write_reports
    from sfumato.reports.values import read_values

    piped = piped_suffix(output, form, _FORMATS)
    made = read_mechanism(mechanism)
    names = None if not column else column[0] if len(column) == 1 else list(column)

    with progress_bar("privatizing") as done:

        def pieces() -> Iterator[Any]:
            total = 0
            for piece in read_values(values, names, domain=made.domain):
                reports = privatize_indices(made, made.domain.encode(piece, first_row=total))
                total += len(reports)
                done(total)
                yield reports

        count = write_reports(output, made, pieces(), piped=piped)
    aside = output == PIPE
    if as_json:
        answer = {"reports": count, "bits": made.bits, "mechanism_hash": made.hash, "file": output}
        show_json(answer, aside=aside)
        return
    click.echo(f"{count:,} reports of {made.bits} bits written to {named(output)}", err=aside)
