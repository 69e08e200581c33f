"""`sfumato audit`: does this mechanism obey this policy? Exactly."""

from __future__ import annotations

import click

from sfumato._core import PIPE
from sfumato.cli._files import INPUT, OUTPUT, read_mechanism, read_policy
from sfumato.cli._show import JSON_OPTION


@click.command(short_help="Prove that a mechanism obeys a policy, or show where it does not.")
@click.argument("mechanism", type=INPUT)
@click.option("--policy", type=INPUT, required=True, help="The policy file to audit against.")
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    help="Write the certificate, which anyone can check again, to this file; - for a pipe.",
)
@JSON_OPTION
@click.pass_context
def command(ctx: click.Context, mechanism: str, policy: str, output: str | None, as_json: bool) -> None:
    """Prove that a mechanism (a JSON file) obeys a policy, or show where it does not: exactly, without sampling.

    The exit code is 0 if it obeys, 1 if it does not.

    Example: sfumato audit mechanism.json --policy policy.toml -o certificate.json
    """
    from sfumato._core import writing
    from sfumato.auditing import audit

    certificate = audit(read_mechanism(mechanism), read_policy(policy))
    if output is not None:
        with writing(output) as file:
            file.write(certificate.to_json().encode())
    aside = output == PIPE
    if as_json:
        click.echo(certificate.to_json(), nl=False, err=aside)
    else:
        click.echo(certificate.summary(), err=aside)
        click.echo(f"evidence: {certificate.evidence}", err=aside)
    ctx.exit(0 if certificate.holds else 1)
