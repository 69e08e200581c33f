"""`sfumato check`: what a policy file asks, in words."""

from __future__ import annotations

import click

from sfumato.cli._files import INPUT, PLOT_FILE, read_policy
from sfumato.cli._show import JSON_OPTION, show_json


@click.command(short_help="Read a policy file and say in words what it asks.")
@click.argument("policy", type=INPUT)
@click.option("--plot", type=PLOT_FILE, help="Draw the epsilon between every two values to this file: .svg or .png.")
@JSON_OPTION
def command(policy: str, plot: str | None, as_json: bool) -> None:
    """Read a policy file and say in words what it asks, how strict its strictest rule is, and its hash.

    Warns where a reply may be as good as the answer itself.

    Example: sfumato check policy.toml
    """
    from sfumato.policy import describe, disclosure_warnings, strictest

    rules = read_policy(policy)
    if plot is not None:
        from sfumato.plotting import plot_epsilons, save

        save(plot_epsilons(rules), plot)
    if as_json:
        show_json(
            {
                "kind": rules.kind,
                "values": len(rules.domain),
                "asks": describe(rules),
                "least": strictest(rules),
                "hash": rules.hash,
                "warnings": disclosure_warnings(rules),
            }
        )
        return
    click.echo(f"a {rules.kind} policy over {len(rules.domain):,} values")
    click.echo(f"asks:        {describe(rules)}")
    click.echo(f"least level: {strictest(rules)}")
    click.echo(f"hash:        {rules.hash}")
    for warning in disclosure_warnings(rules):
        click.echo(f"WARNING:     {warning}")
