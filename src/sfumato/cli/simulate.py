"""`sfumato simulate`: a whole collection on paper."""

from __future__ import annotations

import click

from sfumato.cli._files import INPUT, read_policy
from sfumato.cli._show import (
    JSON_OPTION,
    METHOD_OPTION,
    SECONDS_OPTION,
    people,
    progress_bar,
    show_json,
    show_table,
)


@click.command(short_help="Simulate a collection and compare its error with the prediction.")
@click.argument("policy", type=INPUT)
@click.option("--n", type=people, metavar="NUMBER", required=True, help="How many people answer (1e6 is fine).")
@click.option("--truth", type=click.Choice(["uniform", "zipf", "geometric"]), default="zipf", show_default=True)
@click.option("--mechanism", help="Ask for a mechanism by name; the one that a plan recommends otherwise.")
@SECONDS_OPTION
@METHOD_OPTION
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same answer.")
@JSON_OPTION
def command(
    policy: str,
    n: int,
    truth: str,
    mechanism: str | None,
    max_seconds: float | None,
    method: str,
    seed: int,
    as_json: bool,
) -> None:
    """Draw people from a known truth, randomize, count and estimate; show the error beside its prediction.

    Beyond four million people the counts are drawn from their own law, where it is known: a billion take seconds.

    Example: sfumato simulate policy.toml --truth zipf --n 1e6
    """
    from sfumato.compiler import design
    from sfumato.device import simulate

    rules = read_policy(policy)
    with progress_bar("rounds of the search") as searched:
        made = design(rules, n, mechanism=mechanism, max_seconds=max_seconds, progress=searched)
    with progress_bar("simulating") as counted:
        found = simulate(made, n=n, truth=truth, method=method, seed=seed, progress=counted)
    if as_json:
        show_json(
            {
                "mechanism": made.name, "n": n, "truth": truth, "method": method, "seed": seed, "l2": found.l2,
                "predicted_l2": found.predicted_l2, "tv": found.tv, "predicted_tv": found.predicted_tv,
                "coverage": found.coverage, "one_by_one": found.one_by_one,
            }
        )  # fmt: skip
        return
    far = max(found.tv, found.predicted_tv) > 1
    distance = "half the l1 distance (above 1, too few people to learn anything)" if far else "total variation"
    show_table(
        ("error", "measured", "predicted (unbiased)"),
        [
            ("squared l2", f"{found.l2:.4g}", f"{found.predicted_l2:.4g}"),
            (distance, f"{found.tv:.4g}", f"{found.predicted_tv:.4g}"),
            ("95% intervals that hold the truth", f"{found.coverage:.1%}", "95%"),
        ],
        title=f"{made.name}, n = {n:,}, {truth} truth, method {method}; {found.how}",
    )
