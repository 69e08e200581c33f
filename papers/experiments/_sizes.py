"""Figures 3 and 4 of the robust LDP paper: one experiment on tables of several sizes."""

from __future__ import annotations

from papers.experiment import Run
from papers.experiments._sweep import EPSILONS, draw_tables, order_claims, sweep
from papers.result import Result

__all__ = ["run_sizes"]


def run_sizes(run: Run, shapes: tuple[tuple[int, int], ...]) -> Result:
    """Run the protocols on tables of 1,000 people, drawn from the Jeffreys prior."""
    draws, of_ours = run.of((3, 1), (200, 2))
    epsilons, ours_at = run.of(((0.5, 8.0), (0.5,)), (EPSILONS, (0.5, 2.0, 6.0)))
    seeds = run.seeds()
    cases = {f"{a} x {b}": draw_tables(next(seeds), (a, b), 1000, draws) for a, b in shapes}
    result = sweep(run, cases, epsilons, of_ours, ours_at)
    return result.result(
        list(cases),
        order_claims(result, list(cases)),
        f"{draws} draws, n = 1000, α = 0.05; ours on the first {of_ours}. The paper shows curves and prints no "
        "numbers.",
    )
