"""`sfumato estimate-waves`: estimate the waves of a repeated survey, and changes between them."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato._core import PIPE
from sfumato.cli._files import INPUT, OUTPUT, PLOT_FILE, counts_of, format_option, piped_suffix, read_mechanism
from sfumato.cli._show import JSON_OPTION, show_json

_FORMATS = ("csv", "parquet", "arrow")


@click.command(short_help="Estimate the waves of a repeated survey, and changes between them.")
@click.argument("mechanism", type=INPUT)
@click.argument("waves", nargs=-1, required=True, metavar="NAME=COUNTS...")
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    help="File to write the frequencies or changes to: .csv, .parquet or .arrow; - writes to standard output.  "
    "[default: not written]",
)
@format_option(_FORMATS)
@click.option(
    "--change",
    nargs=2,
    metavar="FIRST SECOND",
    help="Estimate the changes from one wave to another, instead of the frequencies.  [default: frequencies]",
)
@click.option(
    "--overlap",
    type=float,
    metavar="FRACTION",
    help="Share of the people of the smaller of two waves who also took part in the other one: 1 for a panel, 0 for "
    "different people.  [default: not known]",
)
@click.option(
    "--change-rate",
    type=float,
    metavar="FRACTION",
    help="Greatest share of people whose value changes from one wave to the next.  [default: not known]",
)
@click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals, between 0 and 1.",
)
@click.option("--plot", type=PLOT_FILE, help="File to draw the result to: .svg or .png.  [default: not drawn]")
@JSON_OPTION
def command(
    mechanism: str,
    waves: tuple[str, ...],
    output: str | None,
    form: str | None,
    change: tuple[str, str] | None,
    overlap: float | None,
    change_rate: float | None,
    confidence: float,
    plot: str | None,
    as_json: bool,
) -> None:
    """Estimate the frequencies in every wave of a repeated survey, or the changes between two waves.

    MECHANISM is the JSON file that `sfumato design` wrote. Every NAME=COUNTS names a wave and the file that `sfumato
    aggregate` wrote for it, in the order of time.

    The counts do not tell which reports came from the same people. So the errors of changes are upper bounds, which
    --overlap and --change-rate narrow. In Python, estimate_waves also takes pairs of linked reports.

    Example: sfumato estimate-waves mechanism.json May=may.json June=june.json --overlap 1 --change May June
    """
    from sfumato.estimation import estimate_waves

    piped = piped_suffix(output, form, _FORMATS)
    sampler = read_mechanism(mechanism)
    counts = {}
    for name, path in map(_named_file, waves):
        if name in counts:
            raise click.UsageError(f"the wave {name!r} is named twice. Give every wave another name.")
        counts[name] = counts_of(sampler, Path(path).read_bytes(), path)
    result = estimate_waves(sampler, counts, overlap=overlap, change_rate=change_rate)
    table = result if change is None else result.change(*change)
    columns = table.to_columns(confidence)
    if plot is not None:
        from sfumato.plotting import save

        save(table.plot(confidence), plot)
    if output is not None:
        from sfumato.collecting import write_table

        write_table(output, columns, piped=piped)
    aside = output == PIPE
    if not as_json:
        # A table of frequencies prints the warnings itself.
        click.echo("\n".join([str(table), *(() if change is None else result.warnings)]), err=aside)
        return
    lists = [column.tolist() if hasattr(column, "tolist") else list(column) for column in columns.values()]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]
    reports = {name: each.n for name, each in counts.items()}
    document = {"waves": reports, "change": None if change is None else list(change), "level": confidence, "rows": rows}
    show_json(document, aside=aside)


def _named_file(argument: str) -> tuple[str, str]:
    """Return the name and the file of an argument NAME=COUNTS; raise UsageError if it has another form."""
    name, equals, path = argument.partition("=")
    if not (name and equals and Path(path).is_file()):
        raise click.UsageError(f"{argument!r} must be NAME=COUNTS, the name of a wave and an existing file of counts.")
    return name, path
