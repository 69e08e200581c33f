"""Acharya et al. 2020 (ICML), Table 1: a map of check-ins, cells hidden within their block."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from papers.experiment import Experiment, Run
from papers.experiments._blocks import best, published, total_variation
from papers.figure import Curve, Panel
from papers.result import Claim, Result, Row
from sfumato._core import Floats
from sfumato.collecting import aggregate
from sfumato.datasets.gowalla import us_grid
from sfumato.device import privatize, simulate
from sfumato.domain import Domain
from sfumato.estimation import estimate
from sfumato.mechanisms import Mechanism
from sfumato.randomness import InsecureSeeded

__all__ = ["EXPERIMENT"]

#: Blocks of latitude and of longitude, and the published error.
_PUBLISHED = {(1, 1): 0.591, (5, 7): 0.298, (25, 35): 0.108, (25, 70): 0.082}
_PEOPLE = 3_671_812


def _run(run: Run) -> Result:
    loaded = us_grid(run.folder)
    # A quick run joins five rows into one, so blocks have a fifth of the cells.
    grid = loaded.value.reshape(25, -1, 350).sum(axis=1) if run.quick else loaded.value
    people = _whole(grid.ravel(), run.of(20_000, _PEOPLE))
    repetitions, of_ours, of_large = run.of((2, 2, 2), (100, 10, 1))
    domain, truth = Domain.range(len(people)), people / people.sum()
    values = np.repeat(np.arange(len(people)), people)
    cases = [
        (setting, who)
        for setting in _PUBLISHED
        for who, times in (("measured", repetitions), ("ours", of_large if setting == (1, 1) else of_ours))
        for _ in range(times)
    ]
    seeds = run.seeds()
    errors: dict[tuple[tuple[int, int], str], list[float]] = {}
    mechanisms: dict[tuple[tuple[int, int], str], Mechanism] = {}
    for setting, who in run.each(cases):
        if (setting, who) not in mechanisms:
            labels = None if setting == (1, 1) else _tiles(len(grid), grid.shape[1], *setting)
            mechanisms[setting, who] = (published if who == "measured" else best)(domain, labels, 1)
        mechanism, seed = mechanisms[setting, who], next(seeds)
        if who == "measured" or run.quick:
            reports = privatize(mechanism, values, InsecureSeeded(seed))
            frequencies = estimate(mechanism, aggregate(mechanism, reports), "simplex").frequencies
        else:
            simulation = simulate(mechanism, n=len(values), truth=truth, method="simplex", seed=seed, one_by_one=False)
            frequencies = simulation.estimate.frequencies
        errors.setdefault((setting, who), []).append(total_variation(frequencies, truth))
    rows = tuple(_row(setting, errors[setting, "measured"], errors[setting, "ours"]) for setting in _PUBLISHED)
    return Result(
        quantity=f"total variation error, mean of {repetitions} runs",
        ours_is="subset selection in each block, projected onto the simplex",
        rows=rows,
        claims=_claims(rows),
        notes=_notes(len(people), len(values), run.quick, repetitions, of_ours, of_large),
        panels=(_panel(rows),),
        sources=(loaded,),
    )


def _whole(weights: Floats, n: int) -> npt.NDArray[np.int64]:
    """Return n people in proportion to the weights; the largest remainders are rounded up."""
    exact = weights * (n / weights.sum())
    people = np.floor(exact).astype(np.int64)
    people[np.argsort(people - exact, kind="stable")[: n - int(people.sum())]] += 1
    return np.asarray(people, np.int64)


def _tiles(rows: int, columns: int, down: int, across: int) -> npt.NDArray[np.int64]:
    """Return the number of the block of each cell."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    return np.asarray(row // (rows // down) * across + column // (columns // across))


def _row(setting: tuple[int, int], measured: list[float], ours: list[float]) -> Row:
    mean, published_error = float(np.mean(measured)), _PUBLISHED[setting]
    name = "LDP" if setting == (1, 1) else f"{setting} blocks"
    details: dict[str, float | str | None] = {
        "measured/published": mean / published_error,
        "deviation of a run": float(np.std(measured)),
        "runs": str(len(measured)),
        "runs of ours": str(len(ours)),
    }
    return Row(name, published_error, mean, float(np.mean(ours)), details)


def _claims(rows: tuple[Row, ...]) -> tuple[Claim, ...]:
    measured = [row.measured or math.nan for row in rows]
    ours = [row.ours or math.nan for row in rows]
    shown = ", ".join(f"{error:.3f}" for error in measured)
    return (
        Claim("the errors have the published order", measured == sorted(measured, reverse=True), shown),
        Claim(
            "(ours) the error is smaller than that of block Hadamard in every setting",
            all(a < b for a, b in zip(ours, measured, strict=True)),
            ", ".join(f"{a / b - 1:+.1%}" for a, b in zip(ours, measured, strict=True)),
        ),
    )


def _notes(cells: int, people: int, quick: bool, runs: int, of_ours: int, of_large: int) -> tuple[str, ...]:
    simulated = (
        f"The paper's mechanism randomizes these {people:,} people in each of {runs} runs. For ours, we draw "
        "people from "
        f"the same map, and the counts of their reports from their exact law. There are {of_ours} such runs, and "
        f"{of_large} of classical LDP, whose reports have one bit per cell. The error then includes the error of "
        "drawing people."
    )
    return (
        f"{people:,} people on {cells:,} cells. The paper states neither ε nor the treatment of estimates outside the "
        "simplex. We use ε = 1 and a projection onto the simplex, block by block. We tuned nothing to match the paper.",
        "The remaining difference is the map. The more check-ins share a cell, the smaller the error, most of all for "
        "large blocks. The positions of check-ins within a coarse cell are known only for a subset that favors popular "
        "places.",
        f"Both randomize these {people:,} people in each run." if quick else simulated,
    )


def _panel(rows: tuple[Row, ...]) -> Panel:
    places = list(range(len(rows)))
    names = ", ".join(f"{place}: {row.setting}" for place, row in enumerate(rows))
    return Panel(
        names,
        "setting",
        "total variation error",
        (
            Curve("published", places, [row.published or math.nan for row in rows]),
            Curve("measured", places, [row.measured or math.nan for row in rows]),
            Curve("ours", places, [row.ours or math.nan for row in rows], ours=True),
        ),
        "y",
    )


EXPERIMENT = Experiment(
    "icml-table1",
    "Gowalla check-ins on a map of 43,750 cells, hidden within blocks",
    "Acharya, Bonawitz, Kairouz, Ramage, Sun: Context-Aware Local Differential Privacy, ICML 2020, Table 1",
    _run,
)
