"""`sfumato design`: the best mechanism for a policy, as a file that clients run."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._files import EXISTING_FILE, NEW_FILE
from sfumato.cli._show import JSON_OPTION, count, show_json


@click.command(short_help="Make the best mechanism for a policy, and prove it.")
@click.argument("policy", type=EXISTING_FILE)
@click.option("-o", "--output", type=NEW_FILE, required=True, help="The mechanism file to write (JSON).")
@click.option("--n", type=count, metavar="NUMBER", default=None, help="How many people will answer.")
@click.option("--mechanism", help="Ask for a mechanism by name, as `sfumato plan` lists them.")
@click.option("--max-bits", type=click.IntRange(1), help="Use at most so many bits a report.")
@JSON_OPTION
def command(
    policy: Path, output: Path, n: int | None, mechanism: str | None, max_bits: int | None, as_json: bool
) -> None:
    """Make the best mechanism for a policy, audit it, and write it to a file that every client can run.

    Example: sfumato design policy.toml -o mechanism.json
    """
    from sfumato._audit import audit
    from sfumato._design import design
    from sfumato.policy import load_policy
    from sfumato.reports.atomic import replacing

    rules = load_policy(policy)
    made = design(rules, n, mechanism=mechanism, max_bits=max_bits)
    certificate = audit(made, rules).raise_if_violated()
    with replacing(output) as file:
        file.write(made.to_json().encode())
    if as_json:
        show_json({"mechanism": made.name, "bits": made.bits, "hash": made.hash, "certificate": certificate.summary()})
        return
    click.echo(f"{made.name}, {made.bits} bits a report, hash {made.hash}")
    click.echo(certificate.summary())
