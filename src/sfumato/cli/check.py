"""`sfumato check`: validate a policy file and describe its requirements in words."""

from __future__ import annotations

import click

from sfumato._core import quantity
from sfumato.cli._files import INPUT, PLOT_FILE, read_policy_and_question
from sfumato.cli._show import JSON_OPTION, show_json


@click.command(short_help="Validate a policy file and describe its requirements in words.")
@click.argument("policy", type=INPUT)
@click.option(
    "--plot",
    type=PLOT_FILE,
    help="File to draw the epsilon of every pair of values to: .svg or .png.  [default: not drawn]",
)
@JSON_OPTION
def command(policy: str, plot: str | None, as_json: bool) -> None:
    """Validate a policy file and describe its requirements in words.

    POLICY is a TOML or JSON file; - reads standard input. The command prints the requirements, the smallest epsilon
    between two values, the question if the file states one, and the hash of the policy. It warns if the policy allows
    reports that reveal a value with near certainty.

    Example: sfumato check policy.toml
    """
    from sfumato.policy import describe, disclosure_warnings, strictest

    rules, question = read_policy_and_question(policy)
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
            | ({} if question is None else {"question": question.to_dict()})
        )
        return
    click.echo(f"a {rules.kind} policy over {quantity(len(rules.domain), 'value')}")
    click.echo(f"requires:         {describe(rules)}")
    click.echo(f"smallest epsilon: {strictest(rules)}")
    if question is not None:
        click.echo(f"question:         {question.name} ({quantity(len(question.names), 'answer')})")
    click.echo(f"hash:             {rules.hash}")
    for warning in disclosure_warnings(rules):
        click.echo(f"WARNING:          {warning}")
