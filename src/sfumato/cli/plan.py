"""`sfumato plan`: what error to expect, before anybody is asked."""

from __future__ import annotations

import click

from sfumato.cli._files import INPUT, PLOT_FILE, read_policy
from sfumato.cli._show import JSON_OPTION, SECONDS_OPTION, people, progress_bar, show_json, show_table


@click.command(short_help="Compare mechanisms for a policy by the error to expect.")
@click.argument("policy", type=INPUT)
@click.option("--n", type=people, metavar="NUMBER", help="How many people will answer.")
@click.option("--target", type=float, help="The total variation error to reach: answers with the n it takes.")
@click.option("--max-bits", type=click.IntRange(1), help="Recommend only reports of at most so many bits.")
@SECONDS_OPTION
@click.option("--plot", type=PLOT_FILE, help="Draw the error against the number of people to this file: .svg or .png.")
@JSON_OPTION
def command(
    policy: str,
    n: int | None,
    target: float | None,
    max_bits: int | None,
    max_seconds: float | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Compare every suitable mechanism for a policy: the error to expect of n answers, and the size of a report.

    Warns where a reply may be as good as the answer itself.

    Example: sfumato plan policy.toml --n 100000
    """
    from sfumato.compiler import plan

    rules = read_policy(policy)
    with progress_bar("rounds of the search") as searched:
        found = plan(rules, n, target=target, max_bits=max_bits, max_seconds=max_seconds, progress=searched)
    best = found.best
    if plot is not None:
        from sfumato.plotting import plot_plan, save

        save(plot_plan(found), plot)
    if as_json:
        rows = [
            {
                "name": r.name,
                "risk": r.risk,
                "tv": r.tv,
                "half_l1": r.half_l1,
                "bits": r.bits,
                "worst": r.worst,
                "bound": r.bound,
                "decoding": r.decoding,
                "classical": r.classical,
            }
            for r in found.rows
        ]
        if found.skipped is not None:
            click.echo(f"Not compared: {found.skipped}.", err=True)
        answer = {"n": found.n, "rows": rows, "best": best.name, "why": found.why()}
        show_json(answer | {"skipped": found.skipped, "warnings": found.warnings})
        return
    show_table(
        ("mechanism", "l2 risk", "worst case", "total variation", "bits", "of the bound", "decoding"),
        [
            (
                f"{'* ' if row is best else '  '}{row.name}",
                f"{row.risk:.4g}",
                f"{row.worst:.4g}",
                row.shown_tv,
                str(row.bits),
                "" if row.ratio is None else f"{row.ratio:.3f}",
                row.decoding,
            )
            for row in found.rows
        ],
        title=f"{found.policy.kind} policy over {len(found.policy.domain):,} values, n = {found.n:,}",
    )
    click.echo(found.why())
    for warning in found.warnings:
        click.echo(f"WARNING: {warning}")
