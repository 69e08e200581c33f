"""`sfumato simulate`: simulate a collection and measure the error of its estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sfumato.cli._files import INPUT, QUESTION_OPTION, read_policy_and_question
from sfumato.cli._show import (
    BITS_OPTION,
    JSON_OPTION,
    MECHANISM_OPTION,
    method_option,
    people,
    progress_bar,
    seconds_option,
    show_json,
    show_table,
)

if TYPE_CHECKING:
    from sfumato.compiler import MaxBits
    from sfumato.device import Simulation
    from sfumato.questions import Question


@click.command(short_help="Simulate a collection and compare its error with the prediction.")
@click.argument("policy", type=INPUT)
@click.option(
    "--n",
    type=people,
    metavar="NUMBER",
    required=True,
    help="Number of people who answer, such as 1000, 1,000 or 1e6.",
)
@click.option(
    "--truth",
    type=click.Choice(["uniform", "zipf", "geometric"]),
    default="uniform",
    show_default=True,
    help="True distribution of values, from which people are drawn.",
)
@MECHANISM_OPTION
@QUESTION_OPTION
@BITS_OPTION
@seconds_option(with_utility=False)
@method_option()
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the random numbers; a seed repeats its results."
)
@click.option(
    "--one-by-one/--by-law",
    default=None,
    help="Draw every report, or draw the counts from their exact distribution.  "
    "[default: every report for at most 4,194,304 people, else the counts]",
)
@JSON_OPTION
def command(
    policy: str,
    n: int,
    truth: str,
    mechanism: str | None,
    question: Question | None,
    max_bits: MaxBits,
    max_seconds: float | None,
    method: str,
    seed: int,
    one_by_one: bool | None,
    as_json: bool,
) -> None:
    """Simulate a collection from a known distribution and compare the error of the estimate with its prediction.

    POLICY is a TOML or JSON file; - reads standard input. The command designs a mechanism for the policy, draws
    people, randomizes their values, counts the reports and estimates the frequencies, or the answers to a question.

    For more than 4,194,304 people the counts are drawn from their exact distribution if the mechanism has one, so that
    a billion people take seconds.

    Example: sfumato simulate policy.toml --truth zipf --n 1e6
    """
    from sfumato.compiler import design
    from sfumato.device import simulate

    rules, question = read_policy_and_question(policy, question)
    with progress_bar("rounds of the search") as progress:
        sampler = design(
            rules,
            n,
            mechanism=mechanism,
            question=question,
            max_bits=max_bits,
            max_seconds=max_seconds,
            progress=progress,
        )
    with progress_bar("simulating") as progress:
        result = simulate(
            sampler,
            n=n,
            truth=truth,
            method=method,
            question=question,
            seed=seed,
            one_by_one=one_by_one,
            progress=progress,
        )
    title = f"{sampler.name}, n = {n:,}, {truth} truth, method {method}; {result.how}"
    if result.question is not None:
        _show_answers(result, truth=truth, seed=seed, title=title, as_json=as_json)
        return
    if as_json:
        show_json(
            {
                "mechanism": sampler.name, "n": n, "truth": truth, "method": method, "seed": seed, "l2": result.l2,
                "predicted_l2": result.predicted_l2, "tv": result.tv, "predicted_tv": result.predicted_tv,
                "coverage": result.coverage, "one_by_one": result.one_by_one,
            }
        )  # fmt: skip
        return
    far = max(result.tv, result.predicted_tv) > 1
    distance = "half the l1 distance (above 1: the estimate is not a distribution)" if far else "total variation"
    show_table(
        ("error", "measured", "predicted (unbiased)"),
        [
            ("squared l2", f"{result.l2:.4g}", f"{result.predicted_l2:.4g}"),
            (distance, f"{result.tv:.4g}", f"{result.predicted_tv:.4g}"),
            ("95% intervals that contain the truth", f"{result.coverage:.1%}", "95%"),
        ],
        title=title,
    )


def _show_answers(result: Simulation, *, truth: str, seed: int, title: str, as_json: bool) -> None:
    """Print the measured and the predicted error of the answers to a question."""
    assert result.question is not None
    if as_json:
        columns = result.to_columns()
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        show_json(
            {
                "mechanism": result.mechanism.name, "n": result.estimate.n, "truth": truth,
                "method": result.estimate.method, "seed": seed, "question": result.question.to_dict(),
                "answer_rmse": result.answer_rmse, "predicted_answer_rmse": result.predicted_answer_rmse,
                "answer_coverage": result.answer_coverage, "one_by_one": result.one_by_one, "rows": rows,
            }
        )  # fmt: skip
        return
    show_table(
        ("error", "measured", "predicted (unbiased)"),
        [
            (
                f"root mean square of the answers ({result.question.name})",
                f"{result.answer_rmse:.4g}",
                f"{result.predicted_answer_rmse:.4g}",
            ),
            ("95% intervals that contain the truth", f"{result.answer_coverage:.1%}", "95%"),
        ],
        title=title,
    )
