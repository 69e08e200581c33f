"""`sfumato simulate`: a whole collection on paper."""

from __future__ import annotations

import click

from sfumato.cli._files import INPUT, read_policy
from sfumato.cli._show import (
    JSON_OPTION,
    MECHANISM_OPTION,
    SECONDS_OPTION,
    method_option,
    people,
    progress_bar,
    show_json,
    show_table,
)


@click.command(short_help="Simulate a collection and compare its error with the prediction.")
@click.argument("policy", type=INPUT)
@click.option("--n", type=people, metavar="NUMBER", required=True, help="How many people answer (1e6 is fine).")
@click.option(
    "--truth",
    type=click.Choice(["uniform", "zipf", "geometric"]),
    default="uniform",
    show_default=True,
    help="The distribution that people are drawn from.",
)
@MECHANISM_OPTION
@SECONDS_OPTION
@method_option()
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same answer.")
@click.option(
    "--one-by-one/--by-law",
    default=None,
    help="Draw every report, or the counts from their law.  [default: one by one up to four million people]",
)
@JSON_OPTION
def command(
    policy: str,
    n: int,
    truth: str,
    mechanism: str | None,
    max_seconds: float | None,
    method: str,
    seed: int,
    one_by_one: bool | None,
    as_json: bool,
) -> None:
    """Draw people from a known truth, randomize, count and estimate; show the error beside its prediction.

    Beyond four million people the counts are drawn from their own law, where it is known: a billion take seconds.

    Example: sfumato simulate policy.toml --truth zipf --n 1e6
    """
    from sfumato.compiler import design
    from sfumato.device import simulate

    rules = read_policy(policy)
    with progress_bar("rounds of the search") as progress:
        sampler = design(rules, n, mechanism=mechanism, max_seconds=max_seconds, progress=progress)
    with progress_bar("simulating") as progress:
        result = simulate(sampler, n=n, truth=truth, method=method, seed=seed, one_by_one=one_by_one, progress=progress)
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
    distance = "half the l1 distance (above 1, too few people to learn anything)" if far else "total variation"
    show_table(
        ("error", "measured", "predicted (unbiased)"),
        [
            ("squared l2", f"{result.l2:.4g}", f"{result.predicted_l2:.4g}"),
            (distance, f"{result.tv:.4g}", f"{result.predicted_tv:.4g}"),
            ("95% intervals that hold the truth", f"{result.coverage:.1%}", "95%"),
        ],
        title=f"{sampler.name}, n = {n:,}, {truth} truth, method {method}; {result.how}",
    )
