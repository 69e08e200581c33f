"""`sfumato plan`: compare mechanisms by their expected error before data are collected."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from sfumato.cli._files import (
    INPUT,
    LOSS_OPTION,
    PLOT_FILE,
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
    method_option,
    people,
    progress_bar,
    seconds_option,
    show_json,
    show_table,
)

if TYPE_CHECKING:
    from sfumato.compiler import MaxBits, Plan, Row
    from sfumato.questions import Question


@click.command(short_help="Compare mechanisms for a policy by their expected error.")
@click.argument("policy", type=INPUT)
@click.option(
    "--n",
    type=people,
    metavar="NUMBER",
    help="Number of people who will answer. Give either --n or --target.  [default: computed from --target]",
)
@click.option(
    "--target",
    type=float,
    metavar="ERROR",
    help="Expected total variation error to reach, from 0 to 1; with a question, the standard error of an answer. The "
    "command computes the number of people it takes.  [default: computed from --n]",
)
@MECHANISM_OPTION
@QUESTION_OPTION
@UTILITY_OPTION
@LOSS_OPTION
@PRIOR_OPTION
@click.option(
    "--truth",
    metavar="NAME|FILE",
    help="Expected distribution of values, at which the errors of --method are simulated: uniform, zipf, geometric, or "
    "a file like that of --prior.  [default: the prior, or equally frequent values]",
)
@method_option()
@click.option(
    "--central",
    metavar="EPSILON",
    help="Central level that the shuffled reports of --n people must not exceed at --delta.  [default: none]",
)
@click.option(
    "--delta", metavar="PROBABILITY", help="Show central levels of shuffled reports at this δ.  [default: not shown]"
)
@BITS_OPTION
@seconds_option()
@CACHE_OPTION
@click.option(
    "--plot",
    type=PLOT_FILE,
    help="File to draw the error against the number of people to: .svg or .png.  [default: not drawn]",
)
@JSON_OPTION
def command(
    policy: str,
    n: int | None,
    target: float | None,
    mechanism: str | None,
    question: Question | None,
    utility: str,
    loss: str | None,
    prior: str | None,
    truth: str | None,
    method: str,
    central: str | None,
    delta: str | None,
    max_bits: MaxBits,
    max_seconds: float | None,
    cache: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Compare every suitable mechanism for a policy by its expected error and the size of its reports.

    POLICY is a TOML or JSON file; - reads standard input. An asterisk marks the recommended one. The column
    "× bound" compares the mechanism with a proven bound that holds for every mechanism; 1 means optimal. It is empty
    where no bound is known. The command warns if the policy allows reports that reveal a value with near certainty.

    With a question, mechanisms are compared by the error of its answers. The table then shows the standard error of
    the answer, or the root mean square over several answers.

    With --truth or --method, the errors are those of this method at this distribution, simulated, with their standard
    errors. --target and the number of people that classical LDP needs then refer to this error too.

    Example: sfumato plan policy.toml --n 100000 --question mean
    """
    from sfumato.compiler import TRUTHS, plan

    is_estimation = loss is None and "estimation" in utility
    rules, question = read_policy_and_question(policy, question, is_estimation=is_estimation)
    with progress_bar("rounds of the search") as progress:
        compared = plan(
            rules,
            n,
            target=target,
            mechanism=mechanism,
            utility=utility if loss is None else read_losses(loss),
            question=question,
            prior=None if prior is None else read_prior(prior, rules.domain),
            truth=truth if truth is None or truth in TRUTHS else read_prior(truth, rules.domain),
            method=method,
            central=central,
            delta=delta,
            max_bits=max_bits,
            max_seconds=max_seconds,
            cache=cache,
            progress=progress,
        )
    best = compared.best
    if plot is not None:
        from sfumato.plotting import plot_plan, save

        save(plot_plan(compared), plot)
    if as_json:
        if compared.skipped is not None:
            click.echo(f"Not compared: {compared.skipped}.", err=True)
        answer = {"n": compared.n, "rows": _documents(compared), "best": best.name, "why": compared.reason}
        if compared.truth is not None:
            answer |= {"method": compared.method, "truth": compared.truth_words, "saving": compared.saving}
        if compared.question is not None:
            answer["question"] = compared.question.to_dict()
        show_json(answer | {"skipped": compared.skipped, "warnings": compared.warnings})
        return
    columns = _columns(compared)
    show_table(
        ("mechanism", *columns, "bits", "× bound", "decoding"),
        [
            (
                f"{'* ' if row is best else '  '}{row.name}",
                *(show(row) for show in columns.values()),
                str(row.bits),
                row.shown_ratio or "",
                row.decoding,
            )
            for row in compared.rows
        ],
        title=compared.title,
    )
    click.echo(compared.reason)
    for warning in compared.warnings:
        click.echo(f"WARNING: {warning}")


def _columns(compared: Plan) -> dict[str, Callable[[Row], str]]:
    """Return how the table shows the errors of a row, by the heading of the column."""
    columns: dict[str, Callable[[Row], str]] = {}
    if any(row.central is not None for row in compared.rows):
        columns["central ε"] = lambda row: row.shown_central
    if compared.utility != "estimation":
        columns[compared.utility] = lambda row: "" if row.value is None else f"{row.value:.4g}"
    if compared.question is not None:
        return columns | {"standard error": lambda row: f"{compared.standard_error(row):.4g}"}
    return columns | {
        "l2 risk": lambda row: f"{row.squared:.4g}",
        "± per value": lambda row: f"{math.sqrt(row.squared / len(compared.policy.domain)):.3g}",
        "worst case": lambda row: f"{row.worst:.4g}",
        "total variation": lambda row: row.shown_tv,
    }


def _documents(compared: Plan) -> list[dict[str, object]]:
    """Return the rows of a plan for JSON."""
    fields = ["name", "risk", "tv", "half_l1", "bits", "worst", "bound", "decoding", "classical"]
    if compared.utility != "estimation" or compared.question is not None:
        fields.append("value")
    if any(row.central is not None for row in compared.rows):
        fields.append("central")
    rows = [{field: getattr(row, field) for field in fields} for row in compared.rows]
    if compared.truth is not None:
        documents = [None if row.predicted is None else row.predicted.to_dict() for row in compared.rows]
        rows = [row | {"predicted": document} for row, document in zip(rows, documents, strict=True)]
    if compared.question is not None:
        errors = map(compared.standard_error, compared.rows)
        rows = [row | {"standard_error": error} for row, error in zip(rows, errors, strict=True)]
    return rows
