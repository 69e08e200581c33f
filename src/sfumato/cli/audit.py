"""`sfumato audit`: prove that a mechanism obeys a policy."""

from __future__ import annotations

import click

from sfumato._core import PIPE
from sfumato.cli._files import INPUT, OUTPUT, read_mechanism, read_policy
from sfumato.cli._show import JSON_OPTION


@click.command(short_help="Prove that a mechanism obeys a policy, or show a violation.")
@click.argument("mechanism", type=INPUT)
@click.option(
    "--policy",
    type=INPUT,
    required=True,
    help="Policy file (TOML or JSON) to audit against; - reads standard input.",
)
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    help="File to write the certificate to, which `sfumato verify` checks; - writes to standard output.  "
    "[default: not written]",
)
@JSON_OPTION
@click.pass_context
def command(ctx: click.Context, mechanism: str, policy: str, output: str | None, as_json: bool) -> None:
    """Prove that a mechanism obeys a policy, or show a violation.

    MECHANISM is the JSON file that `sfumato design` wrote; - reads standard input. The audit compares the exact
    probabilities of reports in exact arithmetic; it does not sample. The line "evidence" states where the
    probabilities come from. The exit code is 0 if the mechanism obeys the policy and 1 if it does not.

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
