"""`sfumato check`: what a policy file asks, in words."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._files import EXISTING_FILE


@click.command(short_help="Read a policy file and say in words what it asks.")
@click.argument("policy", type=EXISTING_FILE)
def command(policy: Path) -> None:
    """Read a policy file and say in words what it asks, how strict its strictest rule is, and its hash.

    Example: sfumato check policy.toml
    """
    from sfumato.cli._words import asks, least
    from sfumato.policy import load_policy

    rules = load_policy(policy)
    click.echo(f"a {rules.kind} policy over {len(rules.domain):,} values")
    click.echo(f"asks:        {asks(rules)}")
    click.echo(f"least level: {least(rules)}")
    click.echo(f"hash:        {rules.hash}")
