"""`sfumato aggregate`: report files become exact counts."""

from __future__ import annotations

import click

from sfumato.cli._files import INPUT, OUTPUT, PIPE, counts_of, named, read_mechanism
from sfumato.cli._show import JSON_OPTION, progress_bar, show_json


@click.command(short_help="Count the reports of any number of files, exactly.")
@click.argument("mechanism", type=INPUT)
@click.argument("reports", type=INPUT, nargs=-1, required=True)
@click.option("-o", "--output", type=OUTPUT, required=True, help="The counts file to write (JSON); - for a pipe.")
@JSON_OPTION
def command(mechanism: str, reports: tuple[str, ...], output: str, as_json: bool) -> None:
    """Count reports exactly. Files that hold counts already (.json) are merged in; every report is checked.

    - reads a pipe, whatever it brings: a binary batch, Parquet, Arrow, lines, or counts.

    Example: sfumato aggregate mechanism.json monday.parquet tuesday.parquet -o counts.json
    """
    from sfumato._aggregate import Aggregate
    from sfumato.reports import read_reports
    from sfumato.reports.atomic import writing
    from sfumato.reports.files import REPORT_SUFFIXES
    from sfumato.reports.sources import source_of

    made = read_mechanism(mechanism)
    counts = Aggregate.empty(made)
    with progress_bar("counting") as done:
        for path in reports:
            source = source_of(path, (*REPORT_SUFFIXES, ".json"))
            if source.suffix == ".json":
                with source.open() as file:
                    counts = counts.merge(counts_of(made, file.read(), source.shown))
                continue
            for piece in read_reports(source, made):
                counts = counts.accumulate(made, piece)
                done(counts.n)
    with writing(output) as file:
        file.write(counts.to_json().encode())
    aside = output == PIPE
    if as_json:
        show_json({"reports": counts.n, "mechanism_hash": counts.mechanism_hash, "file": output}, aside=aside)
        return
    click.echo(f"{counts.n:,} reports counted in {named(output)}", err=aside)
