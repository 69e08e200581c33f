"""Jiang, Li, Tandon, Figure 7: a separate prior for every user, drawn uniformly."""

from __future__ import annotations

import functools

from papers.experiment import Experiment, Run
from papers.experiments._priors import PAPER, Comparison
from papers.result import Result
from sfumato.datasets.seeded import SeededNumbers

__all__ = ["EXPERIMENT"]


def _run(run: Run) -> Result:
    epsilons = [0.5 * step for step in run.of(range(0, 21, 5), range(21))]
    numbers = run.of((5, 500), (5, 500, 50_000))
    seeds = run.seeds()
    cases = {f"N = {users:,}": functools.partial(SeededNumbers(next(seeds)).uniforms, users) for users in numbers}
    return Comparison.of(run, cases, epsilons).result(
        "ε-Opt-LIP is always better than ε-Opt-LDP",
        "for {} of {} numbers of users",
        ["Priors are uniform in (0, 1), with one simulation each, as in the paper. The paper prints no numbers."],
    )


EXPERIMENT = Experiment("lip-figure7", "Users with individual priors", f"{PAPER}, Figure 7", _run)
