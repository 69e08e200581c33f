"""`sfumato audit-sampler`: test a program for violations of a policy."""

from __future__ import annotations

import click

from sfumato.cli._files import INPUT, label_of, read_policy
from sfumato.cli._show import JSON_OPTION, progress_bar


@click.command(short_help="Test a program for violations of a policy by sampling.")
@click.option(
    "--policy",
    type=INPUT,
    required=True,
    help="Policy file (TOML or JSON) that the sampler should obey; - reads standard input.",
)
@click.option(
    "--trials", type=int, default=100_000, show_default=True, help="Number of reports to draw for each value."
)
@click.option(
    "--confidence",
    type=float,
    default=0.999999,
    show_default=True,
    help="Minimum probability that a sampler which obeys the policy passes the test.",
)
@click.option(
    "--values",
    multiple=True,
    metavar="VALUE",
    help="Value to compare; repeat the option for two or more values. A value that is not a string is written as "
    "JSON.  [default: at most four values of the domain]",
)
@JSON_OPTION
@click.argument("command_line", metavar="-- COMMAND [ARGUMENT]...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def command(
    ctx: click.Context,
    policy: str,
    trials: int,
    confidence: float,
    values: tuple[str, ...],
    as_json: bool,
    command_line: tuple[str, ...],
) -> None:
    """Test whether a program violates a policy, by running it many times on a few values.

    COMMAND is any program that reads one JSON value per line from standard input and writes one report per line to
    standard output. The exit code is 1 if the test finds a violation and 0 if it finds none. A test without a
    violation does not prove that the program obeys the policy.

    Example: sfumato audit-sampler --policy policy.toml --trials 100000 -- python sampler.py
    """
    from sfumato.auditing import audit_sampler
    from sfumato.cli._lines import LineSampler

    rules = read_policy(policy)
    compared = [label_of(rules.domain, value) for value in values] or None
    with LineSampler(command_line, trials) as sampler, progress_bar("sampling") as progress:
        result = audit_sampler(
            sampler, rules, trials, confidence=confidence, values=compared, batch=True, progress=progress
        )
    click.echo(result.to_json() if as_json else result.summary(), nl=not as_json)
    ctx.exit(1 if result.violated else 0)
