"""Lopuhaä-Zwakenberg, Goseling, Figure 9: mutual information at the true distribution, 5 x 5."""

from __future__ import annotations

import numpy as np

from papers.experiment import Experiment, Run
from papers.experiments._robust import PAPER, Table, epsilon_text, matrices
from papers.experiments._sweep import draw_tables
from papers.figure import Curve, Panel
from papers.result import Claim, Result, Row
from sfumato._core import Floats
from sfumato.mechanisms import ConditionalReporting, information

__all__ = ["EXPERIMENT"]

_PROTOCOLS = ("IR", "GRR-CR", "UE-CR")


def _run(run: Run) -> Result:
    shape = run.of((2, 2), (5, 5))
    draws, of_ours = run.of((3, 1), (200, 3))
    numbers = run.of((100, 10_000), (100, 300, 1000, 3000, 10_000))
    epsilons = run.of((2.0,), (1.0, 4.0))
    seed = next(run.seeds())
    rows: list[Row] = []
    means: dict[tuple[float, int, str], float] = {}
    for epsilon, n in run.each([(epsilon, n) for epsilon in epsilons for n in numbers]):
        tables = draw_tables(seed, shape, n, draws)
        differences = [
            {name: _difference(table, q) for name, q in matrices(table, epsilon).items()} for table in tables
        ]
        for name in _PROTOCOLS:
            means[epsilon, n, name] = float(np.mean([each[name] for each in differences]))
        ours = float(np.mean([_difference(table, _ours(table, epsilon)) for table in tables[:of_ours]]))
        details: dict[str, float | str | None] = {name: means[epsilon, n, name] for name in _PROTOCOLS}
        largest = max((means[epsilon, n, name] for name in _PROTOCOLS), key=abs)
        rows.append(Row(f"ε = {epsilon:g}, n = {n:,}", None, largest, ours, details))
    fewest, most = numbers[0], numbers[-1]
    higher = sum(mean < 0 for mean in means.values())
    last = max(abs(mean) for (_, n, _), mean in means.items() if n == most)
    first = max(abs(mean) for (_, n, _), mean in means.items() if n == fewest)
    return Result(
        quantity="(I at P̂ - I at the true P)/H(X), mean of the draws; measured: the protocol farthest from zero",
        ours_is=f"our exact conditional reporting, on the first {of_ours} draws",
        rows=tuple(rows),
        claims=(
            Claim(
                "the true utility is on average often higher than the optimised one, especially for small n",
                higher > len(means) / 2,
                f"in {higher} of {len(means)} cases",
            ),
            Claim(
                "the difference rapidly becomes negligible for larger n",
                last < 0.01 and last < first,
                f"at most {first:.3f} at n = {fewest:,}, {last:.4f} at n = {most:,}",
            ),
        ),
        notes=(
            f"{shape[0]} x {shape[1]}, α = 0.05, {draws} draws; we chose n and ε, because the paper lists none. I at "
            "the true P is computed from the channel, because the formulas of Theorems 18 and 20 are only lower bounds "
            "there.",
        ),
        panels=tuple(
            Panel(
                f"ε = {epsilon:g}",
                "n",
                "(I at P̂ - I at P)/H(X)",
                tuple(Curve(name, list(numbers), [means[epsilon, n, name] for n in numbers]) for name in _PROTOCOLS),
                "x",
            )
            for epsilon in epsilons
        ),
    )


def _difference(table: Table, matrix: Floats) -> float:
    """Return the difference of I(X;Y) at P̂ and at the true distribution, as a share of H(X)."""
    at_estimate, at_truth = (information(p.ravel(), matrix) for p in (table.frequencies, table.truth))
    return (at_estimate - at_truth) / table.entropy


def _ours(table: Table, epsilon: float) -> Floats:
    """Return the channel of our conditional reporting."""
    policy = table.policy(epsilon_text(epsilon))
    return ConditionalReporting(policy).matrix()[policy.cells.ravel()]


EXPERIMENT = Experiment("rldp-figure9", "Information at the true distribution", f"{PAPER}, Figure 9", _run)
