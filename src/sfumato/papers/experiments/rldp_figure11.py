"""Lopuhaä-Zwakenberg, Goseling, Figure 11: synthetic tables of the sizes of the census data."""

from __future__ import annotations

import numpy as np

from sfumato.papers.data.adult import PEOPLE, SIZES, census_table
from sfumato.papers.experiment import Experiment, Run
from sfumato.papers.experiments._census import PAIRS, QUICK_PAIRS
from sfumato.papers.experiments._robust import PAPER, PROTOCOLS, Table, told
from sfumato.papers.experiments._sweep import LEVELS, drawn, order_claims, sweep
from sfumato.papers.result import Claim, Result

__all__ = ["EXPERIMENT"]


def _run(run: Run) -> Result:
    pairs = run.of(QUICK_PAIRS, PAIRS)
    draws = run.of(3, 200)
    levels, ours_at = run.of(((0.5, 4.0), (0.5,)), (LEVELS, (0.5, 2.0, 6.0)))
    seeds = run.seeds()
    kinds = {
        f"{SIZES[secret]} x {SIZES[other]}": drawn(next(seeds), (SIZES[secret], SIZES[other]), PEOPLE, draws)
        for secret, other in pairs
    }
    found = sweep(run, kinds, levels, 1, ours_at)
    census = [census_table(run.folder, *pair) for pair in pairs]
    alike = []
    for kind, each in zip(kinds, census, strict=True):
        for epsilon in levels:
            real = told(Table.counted(each.value), epsilon)
            first, second = (
                np.argsort(np.argsort([values[name] for name in PROTOCOLS])).astype(np.float64)
                for values in (real, found.means[kind, epsilon])
            )
            alike.append(float(np.corrcoef(first, second)[0, 1]))
    return found.result(
        list(kinds),
        (
            *order_claims(found, list(kinds)),
            Claim(
                "the relative behaviour on real and synthetic data of the same size aligns closely",
                float(np.mean(alike)) > 0.7,
                f"the rank correlation of the protocols is {np.mean(alike):.2f} on average",
            ),
        ),
        f"n = {PEOPLE:,}, α = 0.05, {draws} draws; ours on the first. The text prints no numbers.",
        census[:1],
    )


EXPERIMENT = Experiment("rldp-figure11", "Synthetic tables of the sizes of the census", f"{PAPER}, Figure 11", _run)
