"""`sfumato aggregate`: report files become exact counts."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._files import EXISTING_FILE, NEW_FILE_OR_PIPE
from sfumato.cli._show import JSON_OPTION, progress_bar, show_json


@click.command(short_help="Count the reports of any number of files, exactly.")
@click.argument("mechanism", type=EXISTING_FILE)
@click.argument("reports", type=EXISTING_FILE, nargs=-1, required=True)
@click.option(
    "-o", "--output", type=NEW_FILE_OR_PIPE, required=True, help="The counts file to write (JSON); - for a pipe."
)
@JSON_OPTION
def command(mechanism: Path, reports: tuple[Path, ...], output: str, as_json: bool) -> None:
    """Count reports exactly. Files that hold counts already (.json) are merged in; every report is checked.

    Example: sfumato aggregate mechanism.json monday.parquet tuesday.parquet -o counts.json
    """
    from sfumato._aggregate import Aggregate
    from sfumato.mechanisms import mechanism_from_spec
    from sfumato.reports import read_reports
    from sfumato.reports.atomic import replacing

    made = mechanism_from_spec(mechanism.read_bytes())
    counts = Aggregate.empty(made)
    with progress_bar("counting") as done:
        for path in reports:
            if path.suffix == ".json":
                more = Aggregate.from_json(path.read_bytes())
                more.check(made)
                counts = counts.merge(more)
                continue
            for piece in read_reports(path, made):
                counts = counts.accumulate(made, piece)
                done(counts.n)
    if output == "-":
        click.echo(counts.to_json(), nl=False)
        return
    with replacing(output) as file:
        file.write(counts.to_json().encode())
    if as_json:
        show_json({"reports": counts.n, "mechanism_hash": counts.mechanism_hash, "file": output})
        return
    click.echo(f"{counts.n:,} reports counted in {output}")
