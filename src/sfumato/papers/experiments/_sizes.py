"""Figures 3 and 4 of the robust LDP paper: one experiment on tables of several sizes."""

from __future__ import annotations

from sfumato.papers.experiment import Run
from sfumato.papers.experiments._sweep import LEVELS, drawn, order_claims, sweep
from sfumato.papers.result import Result

__all__ = ["run_sizes"]


def run_sizes(run: Run, shapes: tuple[tuple[int, int], ...]) -> Result:
    """Tables of 1,000 people from Jeffreys-prior distributions."""
    draws, of_ours = run.of((3, 1), (200, 2))
    levels, ours_at = run.of(((0.5, 8.0), (0.5,)), (LEVELS, (0.5, 2.0, 6.0)))
    seeds = run.seeds()
    kinds = {f"{a} x {b}": drawn(next(seeds), (a, b), 1000, draws) for a, b in shapes}
    found = sweep(run, kinds, levels, of_ours, ours_at)
    return found.result(
        list(kinds),
        order_claims(found, list(kinds)),
        f"{draws} draws, n = 1000, α = 0.05; ours on the first {of_ours}. The paper shows curves, and prints no "
        "numbers.",
    )
