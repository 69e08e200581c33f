"""`sfumato estimate`: estimate frequencies from counts."""

from __future__ import annotations

import click

from sfumato._core import PIPE, quantity
from sfumato.cli._files import (
    INPUT,
    OUTPUT,
    PLOT_FILE,
    POSTERIOR_PRIOR_OPTION,
    counts_of,
    format_option,
    named,
    piped_suffix,
    read_bytes,
    read_mechanism,
    read_prior,
)
from sfumato.cli._show import JSON_OPTION, method_option, show_json, show_table

#: Maximum rows of the printed table.
_MOST_ROWS = 30
_FORMATS = ("csv", "parquet", "arrow")


@click.command(short_help="Estimate frequencies from counts, with confidence intervals.")
@click.argument("mechanism", type=INPUT)
@click.argument("counts", type=INPUT)
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    help="File to write the estimates of all values to: .csv, .parquet or .arrow; - writes to standard output.  "
    "[default: not written]",
)
@format_option(_FORMATS)
@method_option(with_prior=True)
@POSTERIOR_PRIOR_OPTION
@click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals, between 0 and 1.",
)
@click.option(
    "--simultaneous",
    is_flag=True,
    help="Widen the intervals, so that all of them contain their values at the confidence level together.  "
    "[default: each interval separately]",
)
@click.option("--plot", type=PLOT_FILE, help="File to draw the estimate to: .svg or .png.  [default: not drawn]")
@click.option(
    "--dishonest",
    type=float,
    metavar="FRACTION",
    help="Also print how far this fraction of dishonest reports, from 0 to 1, can move each estimate.  "
    "[default: not printed]",
)
@JSON_OPTION
def command(
    mechanism: str,
    counts: str,
    output: str | None,
    form: str | None,
    method: str,
    prior: str | None,
    confidence: float,
    simultaneous: bool,
    plot: str | None,
    dishonest: float | None,
    as_json: bool,
) -> None:
    """Estimate the frequency of each value, with its standard error and a confidence interval.

    MECHANISM is the JSON file that `sfumato design` wrote; COUNTS is the file that `sfumato aggregate` wrote. Either
    may be -, which reads standard input. The command prints the 30 most frequent values; --output writes all of them.

    Example: sfumato estimate mechanism.json counts.json -o estimate.csv --plot estimate.svg
    """
    import numpy as np

    from sfumato._core import percent
    from sfumato.estimation import estimate

    piped = piped_suffix(output, form, _FORMATS)
    sampler = read_mechanism(mechanism)
    known = counts_of(sampler, read_bytes(counts), named(counts, "input"))
    result = estimate(sampler, known, method, prior=None if prior is None else read_prior(prior, sampler.domain))
    low, high = result.interval(confidence, simultaneous=simultaneous)
    influence = None if dishonest is None else result.influence(dishonest)
    if plot is not None:
        from sfumato.plotting import plot_estimate, save

        save(plot_estimate(result, confidence, simultaneous=simultaneous), plot)
    if output is not None:
        from sfumato.collecting import write_table

        write_table(output, result.to_columns(confidence, simultaneous=simultaneous), piped=piped)
    aside = output == PIPE
    at = f"{percent(confidence)}{', all' if simultaneous else ''}"
    columns = ["value", "frequency", "standard error", f"low ({at})", f"high ({at})"]
    numbers = [result.frequencies, result.standard_errors, low, high]
    names = ["frequency", "standard_error", "low", "high"]
    if dishonest is not None and influence is not None:
        columns.append(f"± if {percent(dishonest)} lie")
        numbers.append(influence)
        names.append("influence")
    labels = result.domain.labels
    if as_json:
        rows = [
            {"value": label, **dict(zip(names, row, strict=True))}
            for label, row in zip(labels, np.column_stack(numbers).tolist(), strict=True)
        ]
        document = {"n": result.n, "method": method, "level": confidence, "simultaneous": simultaneous, "rows": rows}
        show_json(document, aside=aside)
        return
    order = np.argsort(-result.frequencies, kind="stable")[:_MOST_ROWS].tolist()
    table = [(str(labels[x]), *(f"{column[x]:.5f}" for column in numbers)) for x in order]
    show_table(columns, table, title=f"{quantity(result.n, 'report')}, method {method}", aside=aside)
    if len(labels) > _MOST_ROWS:
        note = f"the {_MOST_ROWS} most frequent of {len(labels):,} values; use -o FILE to write all of them"
        click.echo(note, err=aside)
