"""`sfumato amplify`: the certified central level of reports that arrive without identity and order."""

from __future__ import annotations

import math

import click

from sfumato._core import rounded_down, rounded_up
from sfumato.cli._files import INPUT, read_mechanism, read_policy
from sfumato.cli._show import JSON_OPTION, people, show_json, show_table


@click.command(short_help="Certify the central privacy level of shuffled reports.")
@click.argument("mechanism", type=INPUT)
@click.option("--policy", type=INPUT, required=True, help="Policy file (TOML or JSON) that names the protected pairs.")
@click.option("--n", type=people, metavar="NUMBER", required=True, help="Number of people in a batch, one report each.")
@click.option("--delta", metavar="PROBABILITY", required=True, help="Probability δ of the central statement, as 1e-6.")
@click.option(
    "--pairs",
    type=(str, str),
    multiple=True,
    metavar="VALUE OTHER",
    help="Pair of values to compute; repeat for more.  [default: all protected pairs]",
)
@click.option(
    "--minimum-counts",
    type=people,
    metavar="NUMBER",
    help="People who are known to have a value of each group of values that protected pairs connect, such as a block.  "
    "[default: none]",
)
@click.option(
    "--once", is_flag=True, help="State that no person sends another report of this mechanism.  [default: not stated]"
)
@JSON_OPTION
def command(
    mechanism: str,
    policy: str,
    n: int,
    delta: str,
    pairs: tuple[tuple[str, str], ...],
    minimum_counts: int | None,
    once: bool,
    as_json: bool,
) -> None:
    """Certify the central level (ε, δ) of a batch of reports that arrive without identity and order.

    MECHANISM is the JSON file that `sfumato design` wrote; - reads standard input. The table has one row per kind of
    protected pair: the level of one report, an upper bound on the central level, and a lower bound that a data set
    attains in which all other people have the value in the last column.

    Example: sfumato amplify mechanism.json --policy policy.toml --n 1e5 --delta 1e-6
    """
    from sfumato.auditing import amplify

    sampler = read_mechanism(mechanism)
    by_text = {str(label): label for label in sampler.domain} if pairs else {}
    labels = [(by_text.get(value, value), by_text.get(other, other)) for value, other in pairs]
    result = amplify(
        sampler, read_policy(policy), n, delta, pairs=labels or None, minimum_counts=minimum_counts, once=once
    )
    if as_json:
        columns = result.to_columns()
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        for row in rows:
            row["lower"] = None if math.isnan(row["lower"]) else row["lower"]
        levels = {"epsilon": result.epsilon.upper_float(), "lower": float(result.lower)}
        show_json({"n": result.n, "delta": result.delta, **levels, "rows": rows})
        return
    shown = result._shown()
    show_table(tuple(shown), [tuple(map(str, row)) for row in zip(*shown.values(), strict=True)], title=result._title())
    if not result.rows:
        click.echo("the policy protects no pair, so no central level is stated")
        return
    upper, lower = rounded_up(result.epsilon.upper_float(), 5), rounded_down(float(result.lower), 5)
    click.echo(f"central ε at most {upper}, at least {lower}")
