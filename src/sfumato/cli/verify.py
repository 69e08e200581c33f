"""`sfumato verify`: check a certificate by repeating its audit."""

from __future__ import annotations

import click

from sfumato.cli._files import INPUT, read_certificate
from sfumato.cli._show import JSON_OPTION


@click.command(short_help="Check a certificate by repeating its audit.")
@click.argument("certificate", type=INPUT)
@JSON_OPTION
@click.pass_context
def command(ctx: click.Context, certificate: str, as_json: bool) -> None:
    """Check a certificate by repeating the audit of the mechanism and the policy that it contains.

    CERTIFICATE is the file that `sfumato audit` wrote; - reads standard input. The exit code is 0 if the audit confirms
    that the mechanism obeys the policy, and 1 if it confirms that the mechanism does not. A certificate that differs
    from the audit is rejected with exit code 2.

    The printed hashes identify the mechanism and the policy. Compare them with the hashes that `sfumato design` and
    `sfumato check` print for your files.

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
