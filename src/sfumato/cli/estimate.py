"""`sfumato estimate`: counts become frequencies with their errors."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._files import EXISTING_FILE, NEW_FILE
from sfumato.cli._show import JSON_OPTION, show_json, show_table

_MOST_ROWS = 30


@click.command(short_help="Estimate frequencies from counts, with confidence intervals.")
@click.argument("mechanism", type=EXISTING_FILE)
@click.argument("counts", type=EXISTING_FILE)
@click.option("-o", "--output", type=NEW_FILE, help="Write the whole table to this file: .csv, .parquet or .arrow.")
@click.option("--method", type=click.Choice(["unbiased", "simplex", "mle"]), default="unbiased", show_default=True)
@click.option("--level", type=float, default=0.95, show_default=True, help="The level of the intervals.")
@click.option("--plot", type=NEW_FILE, help="Draw the estimate to this file: .svg or .png.")
@JSON_OPTION
def command(
    mechanism: Path, counts: Path, output: Path | None, method: str, level: float, plot: Path | None, as_json: bool
) -> None:
    """Estimate how frequent each value is, with its standard error and a confidence interval.

    Example: sfumato estimate mechanism.json counts.json -o estimate.csv --plot estimate.svg
    """
    from sfumato._aggregate import Aggregate
    from sfumato._estimate import estimate
    from sfumato.mechanisms import mechanism_from_spec

    made = mechanism_from_spec(mechanism.read_bytes())
    found = estimate(made, Aggregate.from_json(counts.read_bytes()), method)
    low, high = found.interval(level)
    if output is not None:
        from sfumato.reports.tables import write_table

        write_table(output, found.to_arrow(level))
    if plot is not None:
        from sfumato.plot import plot_estimate, save

        save(plot_estimate(found, level), plot)
    columns = ("value", "frequency", "standard error", f"low ({level:.0%})", f"high ({level:.0%})")
    numbers = zip(found.domain, found.frequencies, found.standard_errors, low, high, strict=False)
    if as_json:
        rows = [
            {"value": label, "frequency": f, "standard_error": e, "low": a, "high": b} for label, f, e, a, b in numbers
        ]
        show_json({"n": found.n, "method": method, "level": level, "rows": rows})
        return
    by_frequency = sorted(numbers, key=lambda row: -row[1])
    show_table(
        columns,
        [
            (str(label), f"{f:.5f}", f"{e:.5f}", f"{a:.5f}", f"{b:.5f}")
            for label, f, e, a, b in by_frequency[:_MOST_ROWS]
        ],
        title=f"{found.n:,} reports, method {method}",
    )
    if len(by_frequency) > _MOST_ROWS:
        click.echo(f"the {_MOST_ROWS} most frequent of {len(by_frequency):,} values; -o writes them all")
