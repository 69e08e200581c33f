"""`sfumato design`: the mechanism that a plan recommends, as a file that clients run."""

from __future__ import annotations

import click

from sfumato._core import PIPE
from sfumato.cli._files import (
    INPUT,
    LOSS_OPTION,
    OUTPUT,
    PRIOR_OPTION,
    read_losses,
    read_policy,
    read_prior,
)
from sfumato.cli._show import (
    BITS_OPTION,
    JSON_OPTION,
    MECHANISM_OPTION,
    SECONDS_OPTION,
    UTILITY_OPTION,
    people,
    progress_bar,
    show_json,
)

#: Which mechanism is recommended does not depend on the number of people, but the error that is shown does.
_SUPPOSED = 10_000


@click.command(short_help="Make the mechanism that a plan recommends, and prove it.")
@click.argument("policy", type=INPUT)
@click.option("-o", "--output", type=OUTPUT, required=True, help="The mechanism file to write (JSON); - for a pipe.")
@click.option("--n", type=people, metavar="NUMBER", help="How many people will answer.")
@MECHANISM_OPTION
@UTILITY_OPTION
@LOSS_OPTION
@PRIOR_OPTION
@BITS_OPTION
@SECONDS_OPTION
@JSON_OPTION
def command(
    policy: str,
    output: str,
    n: int | None,
    mechanism: str | None,
    utility: str,
    loss: str | None,
    prior: str | None,
    max_bits: int | None,
    max_seconds: float | None,
    as_json: bool,
) -> None:
    """Make the mechanism that a plan recommends for a policy, audit it, and write it to a file for every client.

    Up to 64 values, a mechanism of less error than the known ones is searched for; what was not compared is said.

    Example: sfumato design policy.toml -o mechanism.json
    """
    from sfumato._core import writing
    from sfumato.auditing import audit
    from sfumato.compiler import plan
    from sfumato.policy import disclosure_warnings

    rules = read_policy(policy)
    with progress_bar("rounds of the search") as progress:
        choice = plan(
            rules,
            n or _SUPPOSED,
            mechanism=mechanism,
            utility=utility if loss is None else read_losses(loss),
            prior=None if prior is None else read_prior(prior, rules.domain),
            max_bits=max_bits,
            max_seconds=max_seconds,
            progress=progress,
        )
    sampler, why = choice.best.mechanism, choice.reason
    if n is None and "total variation" in why:
        why += f" (if {_SUPPOSED:,} people answer; --n says how many will)"
    certificate = audit(sampler, rules).raise_if_violated()
    with writing(output) as file:
        file.write(sampler.to_json().encode())
    aside = output == PIPE
    if as_json:
        answer = {"mechanism": sampler.name, "bits": sampler.bits, "hash": sampler.hash, "why": why}
        show_json({**answer, "certificate": certificate.summary(), "warnings": disclosure_warnings(rules)}, aside=aside)
        return
    click.echo(why, err=aside)
    click.echo(f"{sampler.name}, {sampler.bits} bits a report, hash {sampler.hash}", err=aside)
    click.echo(certificate.summary(), err=aside)
    for warning in disclosure_warnings(rules):
        click.echo(f"WARNING: {warning}", err=aside)
