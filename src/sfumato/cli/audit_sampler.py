"""`sfumato audit-sampler`: look for evidence that a program breaks a policy."""

from __future__ import annotations

import click

from sfumato.cli._files import INPUT, label_of, read_policy
from sfumato.cli._show import progress_bar


@click.command(short_help="Look for evidence that a sampler, any program, breaks a policy.")
@click.option("--policy", type=INPUT, required=True, help="The policy file that the sampler claims to obey.")
@click.option("--trials", type=int, default=100_000, show_default=True, help="How often each value is sampled.")
@click.option(
    "--confidence",
    type=float,
    default=0.999999,
    show_default=True,
    help="The probability that an honest sampler is not accused, at least.",
)
@click.option("--values", multiple=True, metavar="VALUE", help="A value to compare; give two or more. [default: four]")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
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
    """Look for evidence that a sampler breaks a policy, by running it many times on a few values.

    The sampler is any program that reads one JSON value a line and writes one report a line. The exit code is 0 if
    nothing was found, which proves nothing, and 1 if a violation was found.

    Example: sfumato audit-sampler --policy policy.toml --trials 100000 -- python sampler.py
    """
    from sfumato.auditing import audit_sampler
    from sfumato.cli._lines import LineSampler

    rules = read_policy(policy)
    compared = [label_of(rules.domain, text) for text in values] or None
    with LineSampler(command_line, trials) as sampler, progress_bar("sampling") as progress:
        result = audit_sampler(
            sampler, rules, trials, confidence=confidence, values=compared, batch=True, progress=progress
        )
    click.echo(result.to_json() if as_json else result.summary(), nl=not as_json)
    ctx.exit(1 if result.violated else 0)
