"""`sfumato plan`: compare mechanisms by their expected error before data are collected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sfumato._core import quantity
from sfumato.cli._files import (
    INPUT,
    LOSS_OPTION,
    PLOT_FILE,
    PRIOR_OPTION,
    read_losses,
    read_policy,
    read_prior,
)
from sfumato.cli._show import (
    BITS_OPTION,
    CACHE_OPTION,
    JSON_OPTION,
    MECHANISM_OPTION,
    UTILITY_OPTION,
    people,
    progress_bar,
    seconds_option,
    show_json,
    show_table,
)

if TYPE_CHECKING:
    from sfumato.compiler import MaxBits


@click.command(short_help="Compare mechanisms for a policy by their expected error.")
@click.argument("policy", type=INPUT)
@click.option(
    "--n",
    type=people,
    metavar="NUMBER",
    help="Number of people who will answer. Give either --n or --target.  [default: computed from --target]",
)
@click.option(
    "--target",
    type=float,
    metavar="ERROR",
    help="Expected total variation error to reach, from 0 to 1; the command computes the number of people it takes.  "
    "[default: computed from --n]",
)
@MECHANISM_OPTION
@UTILITY_OPTION
@LOSS_OPTION
@PRIOR_OPTION
@BITS_OPTION
@seconds_option()
@CACHE_OPTION
@click.option(
    "--plot",
    type=PLOT_FILE,
    help="File to draw the error against the number of people to: .svg or .png.  [default: not drawn]",
)
@JSON_OPTION
def command(
    policy: str,
    n: int | None,
    target: float | None,
    mechanism: str | None,
    utility: str,
    loss: str | None,
    prior: str | None,
    max_bits: MaxBits,
    max_seconds: float | None,
    cache: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Compare every suitable mechanism for a policy by its expected error and the size of its reports.

    POLICY is a TOML or JSON file; - reads standard input. An asterisk marks the recommended one. The column
    "× bound" compares the mechanism with a proven bound that holds for every mechanism; 1 means optimal. It is empty
    where no bound is known. The command warns if the policy allows reports that reveal a value with near certainty.

    Example: sfumato plan policy.toml --n 100000
    """
    from sfumato.compiler import plan

    rules = read_policy(policy)
    with progress_bar("rounds of the search") as progress:
        compared = plan(
            rules,
            n,
            target=target,
            mechanism=mechanism,
            utility=utility if loss is None else read_losses(loss),
            prior=None if prior is None else read_prior(prior, rules.domain),
            max_bits=max_bits,
            max_seconds=max_seconds,
            cache=cache,
            progress=progress,
        )
    best = compared.best
    if plot is not None:
        from sfumato.plotting import plot_plan, save

        save(plot_plan(compared), plot)
    if as_json:
        fields = ["name", "risk", "tv", "half_l1", "bits", "worst", "bound", "decoding", "classical"]
        if compared.utility != "estimation":
            fields.append("value")
        rows = [{field: getattr(row, field) for field in fields} for row in compared.rows]
        if compared.skipped is not None:
            click.echo(f"Not compared: {compared.skipped}.", err=True)
        answer = {"n": compared.n, "rows": rows, "best": best.name, "why": compared.reason}
        show_json(answer | {"skipped": compared.skipped, "warnings": compared.warnings})
        return
    other = compared.utility != "estimation"
    show_table(
        (
            "mechanism",
            *([compared.utility] if other else []),
            "l2 risk",
            "worst case",
            "total variation",
            "bits",
            "× bound",
            "decoding",
        ),
        [
            (
                f"{'* ' if row is best else '  '}{row.name}",
                *(["" if row.value is None else f"{row.value:.4g}"] if other else []),
                f"{row.risk:.4g}",
                f"{row.worst:.4g}",
                row.shown_tv,
                str(row.bits),
                row.shown_ratio or "",
                row.decoding,
            )
            for row in compared.rows
        ],
        title=f"{compared.policy.kind} policy over {quantity(len(compared.policy.domain), 'value')}, "
        f"n = {compared.n:,}",
    )
    click.echo(compared.reason)
    for warning in compared.warnings:
        click.echo(f"WARNING: {warning}")
