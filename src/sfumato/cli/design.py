"""`sfumato design`: the mechanism that a plan recommends, as a file that clients run."""

from __future__ import annotations

import click

from sfumato._core import PIPE
from sfumato.cli._files import INPUT, OUTPUT, read_losses, read_policy
from sfumato.cli._show import JSON_OPTION, SECONDS_OPTION, people, progress_bar, show_json

#: Which mechanism is recommended does not depend on the number of people, but the error that is shown does.
_SUPPOSED = 10_000


@click.command(short_help="Make the mechanism that a plan recommends, and prove it.")
@click.argument("policy", type=INPUT)
@click.option("-o", "--output", type=OUTPUT, required=True, help="The mechanism file to write (JSON); - for a pipe.")
@click.option("--n", type=people, metavar="NUMBER", help="How many people will answer.")
@click.option("--mechanism", help="Ask for a mechanism by name, as `sfumato plan` lists them.")
@click.option(
    "--utility",
    type=click.Choice(["estimation", "worst-estimation", "mutual-information", "mmse"]),
    default="estimation",
    show_default=True,
    help="What to be best at: all frequencies (at equal shares, or in the worst case), information, or numeric values.",
)
@click.option("--loss", type=INPUT, help="Be best at a loss: a CSV file, a line for each value, a column a decision.")
@SECONDS_OPTION
@click.option("--max-bits", type=click.IntRange(1), help="Use at most so many bits a report.")
@JSON_OPTION
def command(
    policy: str,
    output: str,
    n: int | None,
    mechanism: str | None,
    utility: str,
    loss: str | None,
    max_seconds: float | None,
    max_bits: int | None,
    as_json: bool,
) -> None:
    """Make the mechanism that a plan recommends for a policy, audit it, and write it to a file for every client.

    Up to 64 values, a mechanism of less error than the known ones is searched for; what was not compared is said.

    Example: sfumato design policy.toml -o mechanism.json
    """
    from sfumato._core import writing
    from sfumato.auditing import audit
    from sfumato.compiler import designed
    from sfumato.policy import disclosure_warnings

    rules = read_policy(policy)
    goal = utility if loss is None else read_losses(loss)
    with progress_bar("rounds of the search") as searched:
        made, why = designed(rules, n or _SUPPOSED, mechanism, goal, None, max_bits, max_seconds, searched)
    if n is None and "total variation" in why:
        why += f" (if {_SUPPOSED:,} people answer; --n says how many will)"
    certificate = audit(made, rules).raise_if_violated()
    with writing(output) as file:
        file.write(made.to_json().encode())
    aside = output == PIPE
    if as_json:
        answer = {"mechanism": made.name, "bits": made.bits, "hash": made.hash, "why": why}
        show_json({**answer, "certificate": certificate.summary(), "warnings": disclosure_warnings(rules)}, aside=aside)
        return
    click.echo(why, err=aside)
    click.echo(f"{made.name}, {made.bits} bits a report, hash {made.hash}", err=aside)
    click.echo(certificate.summary(), err=aside)
    for warning in disclosure_warnings(rules):
        click.echo(f"WARNING: {warning}", err=aside)
