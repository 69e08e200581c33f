"""Lopuhaä-Zwakenberg, Goseling, section VIII-A: running time of PolyOpt."""

from __future__ import annotations

import numpy as np

from papers.experiment import Experiment, Run
from papers.experiments._robust import PAPER, polyopt
from papers.experiments._sweep import draw_tables
from papers.figure import Curve, Panel
from papers.result import Claim, Result, Row

__all__ = ["EXPERIMENT"]

#: Mean time in seconds; the authors stopped 4 x 4 after 12 hours without a result.
_PUBLISHED = {(3, 4): 72.0, (4, 4): 12 * 3600.0}
_LIMIT = 60.0


def _run(run: Run) -> Result:
    shapes = run.of(((2, 2),), ((2, 2), (3, 3), (3, 4), (4, 4)))
    draws, epsilons = run.of((1, (1.0,)), (2, (0.5, 2.0)))
    seeds = run.seeds()
    rows: list[Row] = []
    for shape in run.each(shapes):
        tables = draw_tables(next(seeds), shape, 1000, draws)
        optima = [polyopt(table, epsilon, _LIMIT) for table in tables for epsilon in epsilons]
        seconds = [float(each.seconds) for each in optima]
        gaps = [float(each.bound) / float(each.value) - 1 for each in optima]
        details: dict[str, float | str | None] = {
            "slowest": max(seconds),
            "proved optimal": f"{sum(each.status == 'optimal' for each in optima)} of {len(optima)}",
            "widest gap to the bound": max(gaps),
        }
        rows.append(Row(f"{shape[0]} x {shape[1]}", _PUBLISHED.get(shape), float(np.mean(seconds)), None, details))
    both = [row for row in rows if row.published is not None]
    return Result(
        quantity="seconds, mean of the draws",
        ours_is="",
        rows=tuple(rows),
        claims=(
            Claim(
                "(ours) the computation is faster than published, for the sizes with a published time",
                all((row.measured or 0) < (row.published or 0) for row in both),
                ", ".join(
                    f"{(row.published or 0) / (row.measured or 1):,.0f} times as fast ({row.setting})" for row in both
                ),
            ),
        ),
        notes=(
            f"{draws} tables of 1,000 people, ε = {', '.join(f'{e:g}' for e in epsilons)}, at most {_LIMIT:g} s each. "
            "The paper enumerates vertices (Matlab, MPT3, Core i7-7700HQ). We generate rays as they are needed, "
            "and a bound "
            "proves the result. For 4 x 4 the authors stopped after 12 hours, so the published number is a lower "
            "bound. Times depend on the machine and its load.",
        ),
        panels=(
            Panel(
                ", ".join(f"{place}: {row.setting}" for place, row in enumerate(rows)),
                "size",
                "seconds",
                (Curve("PolyOpt here", list(range(len(rows))), [row.measured or 0 for row in rows], ours=True),),
                "y",
            ),
        ),
    )


EXPERIMENT = Experiment("rldp-timing", "Running time of PolyOpt", f"{PAPER}, section VIII-A", _run)
