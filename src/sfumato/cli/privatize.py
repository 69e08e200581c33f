"""`sfumato privatize`: values in, randomized reports out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sfumato.cli._files import EXISTING_FILE, FILE_OR_PIPE, NEW_FILE
from sfumato.cli._show import JSON_OPTION, progress_bar, show_json


@click.command(short_help="Randomize a column of values with secure randomness.")
@click.argument("mechanism", type=EXISTING_FILE)
@click.argument("values", type=FILE_OR_PIPE)
@click.option("-o", "--output", type=NEW_FILE, required=True, help="The report file: .parquet, .arrow or .sfb.")
@click.option("--column", multiple=True, help="The column that holds the values (several for a product or a grid).")
@JSON_OPTION
def command(mechanism: Path, values: str, output: Path, column: tuple[str, ...], as_json: bool) -> None:
    """Randomize every value of a column (CSV, Parquet, Arrow, or a text file with a value a line; - for a pipe).

    Run this where the values already are: only the reports may leave.

    Example: sfumato privatize mechanism.json values.parquet -o reports.parquet
    """
    from sfumato._privatize import privatize_indices
    from sfumato.mechanisms import mechanism_from_spec
    from sfumato.reports import write_reports
    from sfumato.reports.values import read_values

    made = mechanism_from_spec(mechanism.read_bytes())
    named = None if not column else column[0] if len(column) == 1 else list(column)

    with progress_bar("privatizing") as done:

        def pieces() -> Iterator[Any]:
            total = 0
            for piece in read_values(values, named, domain=made.domain):
                reports = privatize_indices(made, made.domain.encode(piece, first_row=total))
                total += len(reports)
                done(total)
                yield reports

        count = write_reports(output, made, pieces())
    if as_json:
        show_json({"reports": count, "bits": made.bits, "mechanism_hash": made.hash, "file": str(output)})
        return
    click.echo(f"{count:,} reports of {made.bits} bits written to {output}")
