"""Jiang, Li, Tandon, Figure 7: every user a prior of their own, drawn uniformly."""

from __future__ import annotations

import numpy as np

from sfumato.papers.data.seeded import SeededNumbers
from sfumato.papers.experiment import Experiment, Run
from sfumato.papers.experiments._priors import PAPER, beats, panel, rows_of
from sfumato.papers.result import Claim, Result, Row

__all__ = ["EXPERIMENT"]


def _run(run: Run) -> Result:
    levels = [0.5 * step for step in run.of(range(0, 21, 5), range(21))]
    numbers = run.of((5, 500), (5, 500, 50_000))
    seeds = run.seeds()
    rows: list[Row] = []
    panels, artefacts, better = [], [], []
    for users in run.each(numbers):
        priors = SeededNumbers(next(seeds)).uniforms(users)
        found, curves = rows_of(f"N = {users:,}", priors, levels)
        rows += found
        panels.append(panel(f"N = {users:,}", levels, curves))
        artefacts.append(beats(f"N = {users:,}", levels, curves))
        better.append(bool((np.array(curves["ε-Opt-LIP"]) <= np.array(curves["ε-Opt-LDP"]) * (1 + 1e-12)).all()))
    return Result(
        quantity="√(E/N); measured: ε-Opt-LIP as printed (Theorem 2)",
        ours_is="the corrected optimum of ε-LIP for each user",
        rows=tuple(rows),
        claims=(
            Claim(
                "ε-Opt-LIP is always better than ε-Opt-LDP",
                all(better),
                f"for {sum(better)} of {len(better)} numbers of users",
            ),
            *artefacts,
        ),
        notes=("Priors are uniform in (0, 1), one simulation each, as in the paper; it prints no numbers.",),
        panels=tuple(panels),
    )


EXPERIMENT = Experiment("lip-figure7", "Users with priors of their own", f"{PAPER}, Figure 7", _run)
