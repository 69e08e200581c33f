"""`sfumato design`: write the best mechanism for a policy to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sfumato._core import PIPE, quantity
from sfumato.cli._files import (
    INPUT,
    LOSS_OPTION,
    OUTPUT,
    PRIOR_OPTION,
    QUESTION_OPTION,
    read_losses,
    read_policy_and_question,
    read_prior,
)
from sfumato.cli._show import (
    BITS_OPTION,
    CACHE_OPTION,
    JSON_OPTION,
    MECHANISM_OPTION,
    UTILITY_OPTION,
    people,
    progress_bar,
    seconds_option,
    show_json,
)

if TYPE_CHECKING:
    from sfumato.compiler import MaxBits, Plan
    from sfumato.mechanisms import MemoizedMechanism
    from sfumato.questions import Question

#: Number of people assumed without ``--n``; it changes the printed error, not the choice of the mechanism.
_DEFAULT_PEOPLE = 10_000


@click.command(short_help="Design the best mechanism for a policy and audit it.")
@click.argument("policy", type=INPUT)
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    required=True,
    help="File to write the mechanism to, in JSON; - writes to standard output.",
)
@click.option(
    "--n",
    type=people,
    metavar="NUMBER",
    help="Number of people who will answer; without --central, it changes the printed error, not the mechanism.  "
    f"[default: {_DEFAULT_PEOPLE:,}]",
)
@click.option(
    "--lifetime",
    type=INPUT,
    metavar="FILE",
    help="Policy of all reports about one unchanged value, for a question that is asked again.  [default: none]",
)
@click.option(
    "--max-changes",
    type=int,
    metavar="NUMBER",
    help="Greatest number of further permanent answers of a person, with --lifetime.  [default: no limit]",
)
@click.option(
    "--refresh-every",
    type=int,
    metavar="WAVES",
    help="Waves after which every device draws a new permanent answer, with --lifetime.  [default: one per value]",
)
@click.option(
    "--waves",
    type=int,
    metavar="NUMBER",
    help="Waves of the mean whose error is minimized, with --lifetime; 1 minimizes that of one wave.  [default: 10]",
)
@MECHANISM_OPTION
@QUESTION_OPTION
@UTILITY_OPTION
@LOSS_OPTION
@PRIOR_OPTION
@click.option(
    "--central",
    metavar="EPSILON",
    help="Central level that the shuffled reports of --n people must not exceed at --delta.  [default: none]",
)
@click.option("--delta", metavar="PROBABILITY", help="Probability δ of the central level.  [default: none]")
@BITS_OPTION
@seconds_option()
@CACHE_OPTION
@JSON_OPTION
def command(
    policy: str,
    output: str,
    n: int | None,
    lifetime: str | None,
    max_changes: int | None,
    refresh_every: int | None,
    waves: int | None,
    mechanism: str | None,
    question: Question | None,
    utility: str,
    loss: str | None,
    prior: str | None,
    central: str | None,
    delta: str | None,
    max_bits: MaxBits,
    max_seconds: float | None,
    cache: str | None,
    as_json: bool,
) -> None:
    """Design the best mechanism for a policy, audit it, and write it to a file that clients load.

    POLICY is a TOML or JSON file; - reads standard input. The command compares the same mechanisms as `sfumato plan`.
    For at most 256 values it also searches for the optimal mechanism. It prints the reason for the choice and names
    mechanisms that were not compared. A mechanism for a question may answer only this question, and not all others.

    With --central, every mechanism is compared at the greatest level that meets this central level and the policy.

    With --lifetime, the mechanism has a permanent answer per value, and the command audits both levels.

    Example: sfumato design policy.toml -o mechanism.json
    """
    from sfumato._core import writing
    from sfumato.auditing import audit
    from sfumato.compiler import DEFAULT_WAVES, memoized_bits, memoized_choice, plan
    from sfumato.errors import InvalidInput
    from sfumato.policy import disclosure_warnings

    is_estimation = loss is None and "estimation" in utility
    rules, question = read_policy_and_question(policy, question, is_estimation=is_estimation)
    all_reports = None if lifetime is None else read_policy_and_question(lifetime)[0]
    lifetime_options = {"--max-changes": max_changes, "--refresh-every": refresh_every, "--waves": waves}
    for option, setting in lifetime_options.items():
        if setting is not None and all_reports is None:
            raise InvalidInput("design", option, "be used together with --lifetime", setting)
    if central is None and delta is not None:
        raise InvalidInput("design", "--delta", "be used together with --central", delta)
    if central is not None and (all_reports is not None or n is None):
        must = "be used with --n" if n is None else "not be used with --lifetime"
        raise InvalidInput("design", "--central", must, central)
    with progress_bar("rounds of the search") as progress:
        choice = plan(
            rules,
            n or _DEFAULT_PEOPLE,
            mechanism=mechanism,
            utility=utility if loss is None else read_losses(loss),
            question=question,
            prior=None if prior is None else read_prior(prior, rules.domain),
            central=central,
            delta=delta,
            max_bits=max_bits if all_reports is None else memoized_bits(max_bits, len(rules.domain)),
            max_seconds=max_seconds,
            cache=cache,
            progress=progress,
        )
    sampler, reason = choice.best.mechanism, choice.reason
    if n is None and ("total variation" in reason or "standard error" in reason):
        reason += f" (for {_DEFAULT_PEOPLE:,} people; set --n to the number of people who will answer)"
    lifetime_words = None
    if all_reports is not None:
        sampler = memoized_choice(
            choice,
            all_reports,
            max_bits=max_bits,
            max_seconds=max_seconds,
            searches=mechanism is None,
            waves=DEFAULT_WAVES if waves is None else waves,
            max_changes=max_changes,
            refresh_every=refresh_every,
        )
        reason = _lifetime_reason(sampler, DEFAULT_WAVES if waves is None else waves, choice)
        lifetime_words = audit(sampler.permanent, all_reports).raise_if_violated().summary()
    certificate = audit(sampler, rules).raise_if_violated()
    with writing(output) as file:
        file.write(sampler.to_json().encode())
    aside = output == PIPE
    if as_json:
        answer = {"mechanism": sampler.name, "bits": sampler.bits, "hash": sampler.hash, "why": reason}
        if choice.question is not None:
            answer["question"] = choice.question.to_dict()
        if lifetime_words is not None:
            answer["lifetime"] = lifetime_words
        show_json({**answer, "certificate": certificate.summary(), "warnings": disclosure_warnings(rules)}, aside=aside)
        return
    click.echo(reason, err=aside)
    click.echo(f"{sampler.name}, {quantity(sampler.bits, 'bit')} per report, hash {sampler.hash}", err=aside)
    click.echo(certificate.summary(), err=aside)
    if lifetime_words is not None:
        click.echo(f"all reports about one value: {lifetime_words}", err=aside)
    for warning in disclosure_warnings(rules):
        click.echo(f"WARNING: {warning}", err=aside)


def _lifetime_reason(sampler: MemoizedMechanism, waves: int, choice: Plan) -> str:
    """Return why a memoized mechanism was chosen, in words."""
    if choice.question is not None or choice.utility != "estimation":
        return f"{sampler.single.name} is the best of the compared mechanisms that have permanent answers"
    mean = "one wave" if waves == 1 else f"the mean over {waves} waves"
    return f"{sampler.single.name} has the least error of {mean} among the compared mechanisms with permanent answers"
