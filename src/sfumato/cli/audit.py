"""`sfumato audit`: does this mechanism obey this policy? Exactly."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._files import EXISTING_FILE, NEW_FILE
from sfumato.cli._show import JSON_OPTION


@click.command(short_help="Prove that a mechanism obeys a policy, or show where it does not.")
@click.argument("mechanism", type=EXISTING_FILE)
@click.option("--policy", type=EXISTING_FILE, required=True, help="The policy file to audit against.")
@click.option(
    "-o", "--output", type=NEW_FILE, help="Write the certificate, which anyone can check again, to this file."
)
@JSON_OPTION
@click.pass_context
def command(ctx: click.Context, mechanism: Path, policy: Path, output: Path | None, as_json: bool) -> None:
    """Prove that a mechanism (a JSON file) obeys a policy, or show where it does not: exactly, without sampling.

    The exit code is 0 if it obeys, 1 if it does not.

    Example: sfumato audit mechanism.json --policy policy.toml -o certificate.json
    """
    from sfumato._audit import audit
    from sfumato.mechanisms import mechanism_from_spec
    from sfumato.policy import load_policy

    certificate = audit(mechanism_from_spec(mechanism.read_bytes()), load_policy(policy))
    if output is not None:
        output.write_text(certificate.to_json(), encoding="utf-8")
    if as_json:
        click.echo(certificate.to_json(), nl=False)
    else:
        click.echo(certificate.summary())
        click.echo(f"evidence: {certificate.evidence}")
    ctx.exit(0 if certificate.holds else 1)
