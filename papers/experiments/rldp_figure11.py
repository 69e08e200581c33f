"""Lopuhaä-Zwakenberg, Goseling, Figure 11: synthetic tables of the sizes of the census data."""

from __future__ import annotations

import numpy as np

from papers.experiment import Experiment, Run
from papers.experiments._census import PAIRS, QUICK_PAIRS
from papers.experiments._robust import PAPER, PROTOCOLS, Table, information_fractions
from papers.experiments._sweep import EPSILONS, draw_tables, order_claims, sweep
from papers.result import Claim, Result
from sfumato.datasets.adult import PEOPLE, SIZES, census_table

__all__ = ["EXPERIMENT"]


def _run(run: Run) -> Result:
    pairs = run.of(QUICK_PAIRS, PAIRS)
    draws = run.of(3, 200)
    epsilons, ours_at = run.of(((0.5, 4.0), (0.5,)), (EPSILONS, (0.5, 2.0, 6.0)))
    seeds = run.seeds()
    cases = {
        f"{SIZES[secret]} x {SIZES[other]}": draw_tables(next(seeds), (SIZES[secret], SIZES[other]), PEOPLE, draws)
        for secret, other in pairs
    }
    result = sweep(run, cases, epsilons, 1, ours_at)
    census = [census_table(run.folder, *pair) for pair in pairs]
    alike = []
    for case, each in zip(cases, census, strict=True):
        for epsilon in epsilons:
            real = information_fractions(Table.counted(each.value), epsilon)
            first, second = (
                np.argsort(np.argsort([values[name] for name in PROTOCOLS])).astype(np.float64)
                for values in (real, result.means[case, epsilon])
            )
            alike.append(float(np.corrcoef(first, second)[0, 1]))
    return result.result(
        list(cases),
        (
            *order_claims(result, list(cases)),
            Claim(
                "the relative behaviour on real and synthetic data of the same size aligns closely",
                float(np.mean(alike)) > 0.7,
                f"the rank correlation of the protocols is {np.mean(alike):.2f} on average",
            ),
        ),
        f"n = {PEOPLE:,}, α = 0.05, {draws} draws; ours on the first. The paper prints no numbers.",
        census[:1],
    )


EXPERIMENT = Experiment("rldp-figure11", "Synthetic tables of the sizes of the census", f"{PAPER}, Figure 11", _run)
