"""`sfumato verify`: is what a certificate says so?"""

from __future__ import annotations

import click

from sfumato.cli._files import INPUT, read_certificate
from sfumato.cli._show import JSON_OPTION


@click.command(short_help="Check a certificate by repeating its audit.")
@click.argument("certificate", type=INPUT)
@JSON_OPTION
@click.pass_context
def command(ctx: click.Context, certificate: str, as_json: bool) -> None:
    """Check a certificate by repeating the audit of the mechanism and the policy that it holds (- reads a pipe).

    One that says anything else than the audit finds is refused. The exit code is 0 if the mechanism obeys, 1 if it does
    not, as the certificate says, 2 if the certificate is refused. The hashes that are shown say which mechanism and
    which policy it is about: `sfumato design` and `sfumato check` show those of yours.

    Example: sfumato verify certificate.json
    """
    result = read_certificate(certificate)
    if as_json:
        click.echo(result.to_json(), nl=False)
    else:
        click.echo(result.summary())
        click.echo(f"evidence:  {result.evidence}")
        click.echo(f"mechanism: {result.mechanism_hash}")
        click.echo(f"policy:    {result.policy_hash}")
    ctx.exit(0 if result.holds else 1)
