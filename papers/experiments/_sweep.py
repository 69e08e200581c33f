"""Run the protocols of the robust LDP paper on several kinds of tables and epsilons: rows, panels and claims."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from papers.experiment import Run
from papers.experiments._robust import PROTOCOLS, Table, averages, our_best
from papers.figure import Curve, Panel
from papers.result import Claim, Result, Row
from sfumato.datasets.folder import Loaded
from sfumato.datasets.seeded import SeededNumbers

__all__ = ["EPSILONS", "OURS_IS", "QUANTITY", "Sweep", "draw_tables", "order_claims", "sweep"]

QUANTITY = "I(X;Y)/H(X) at P̂, mean of the draws; measured: the best of the paper's protocols"
OURS_IS = (
    "the best of our mechanisms on the first draws. It is the optimal design for the confidence set if a table has at "
    "most 9 cells (5 seconds each), and reporting with exact budgets otherwise. The last column is the paper's best "
    "protocol on those draws"
)
#: The range of epsilons in the paper.
EPSILONS = (0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)

Fractions = dict[tuple[str, float], dict[str, float]]


class Sweep:
    """Results: a row per kind of table and epsilon, and the means over draws."""

    def __init__(self, epsilons: Sequence[float]) -> None:
        self.epsilons = list(epsilons)
        self.rows: list[Row] = []
        self.means: Fractions = {}

    def panels(self, cases: Sequence[str]) -> tuple[Panel, ...]:
        """Return a panel per kind of table."""
        panels = []
        for case in cases:
            curves = [
                Curve(name, self.epsilons, [self.means[case, epsilon][name] for epsilon in self.epsilons])
                for name in PROTOCOLS
            ]
            ours = {row.setting: row.ours for row in self.rows}
            at = [(epsilon, ours[f"{case}, ε = {epsilon:g}"]) for epsilon in self.epsilons]
            x, y = [e for e, value in at if value is not None], [value for _, value in at if value is not None]
            panels.append(Panel(case, "ε", "I(X;Y)/H(X)", (*curves, Curve("ours", x, y, ours=True))))
        return tuple(panels)

    def result(
        self, cases: Sequence[str], claims: Sequence[Claim], note: str, sources: Sequence[Loaded[Any]] = ()
    ) -> Result:
        """Return the result of an experiment with these rows and panels."""
        return Result(
            quantity=QUANTITY,
            ours_is=OURS_IS,
            rows=tuple(self.rows),
            claims=tuple(claims),
            notes=(note,),
            panels=self.panels(cases),
            sources=tuple(sources),
        )


def draw_tables(seed: int, shape: tuple[int, int], n: int, count: int) -> list[Table]:
    """Draw tables of n people each, from distributions of the Jeffreys prior."""
    numbers = SeededNumbers(seed)
    return [Table.draw(numbers, shape, n) for _ in range(count)]


def sweep(
    run: Run, cases: Mapping[str, Sequence[Table]], epsilons: Sequence[float], of_ours: int, ours_at: Sequence[float]
) -> Sweep:
    """Run all protocols on all tables at all epsilons; ours on the first ``of_ours`` tables, at ``ours_at``."""
    result = Sweep(epsilons)
    for case, epsilon in run.each([(case, epsilon) for case in cases for epsilon in epsilons]):
        tables = cases[case]
        means = averages(tables, epsilon)
        ours = None
        details: dict[str, float | str | None] = dict(means)
        if epsilon in ours_at:
            first_tables = tables[:of_ours]
            ours = float(np.mean([our_best(table, epsilon) for table in first_tables]))
            details["best on the draws of ours"] = max(averages(first_tables, epsilon).values())
        result.means[case, epsilon] = means
        result.rows.append(Row(f"{case}, ε = {epsilon:g}", None, max(means.values()), ours, details))
    return result


def order_claims(result: Sweep, cases: Sequence[str]) -> tuple[Claim, ...]:
    """Return the claims of the paper about the order of the protocols."""
    points = [(case, epsilon) for case in cases for epsilon in result.epsilons]
    highest = max(result.epsilons)

    def fraction(name: str, case: str, epsilon: float) -> float:
        return result.means[case, epsilon][name]

    best_at_top = [
        case for case in cases if fraction("SRR", case, highest) >= max(result.means[case, highest].values())
    ]
    first = {case: _first_best(result, case) for case in cases}
    below = sum(fraction("GRR", *point) <= fraction("SRR", *point) for point in points)
    apart = [abs(fraction("IR", *p) - fraction("GRR-CR", *p)) for p in points]
    worst = sum(fraction("UE-CR", case, highest) <= min(result.means[case, highest].values()) + 1e-12 for case in cases)
    ours = [(row.ours, row.details["best on the draws of ours"]) for row in result.rows if row.ours is not None]
    better = sum(a >= float(b or 0) - 1e-9 for a, b in ours)
    return (
        Claim(
            "for ε large enough SRR is the best protocol",
            len(best_at_top) == len(cases),
            "from " + ", ".join(f"ε = {epsilon:g} ({case})" for case, epsilon in first.items()),
        ),
        Claim(
            "GRR is slightly worse than SRR across all ε", below == len(points), f"at {below} of {len(points)} points"
        ),
        Claim(
            "IR and GRR-CR perform more or less similarly",
            float(np.mean(apart)) < 0.05,
            f"their shares of H(X) differ by {np.mean(apart):.3f} on average, by {max(apart):.3f} at most",
        ),
        Claim(
            "for high ε UE-CR is the worse choice",
            worst == len(cases),
            f"it is the worst protocol for {worst} of {len(cases)} kinds of tables",
        ),
        Claim(
            "(ours) the mutual information is at least that of the paper's best on the same draws",
            better == len(ours),
            f"at {better} of {len(ours)} points",
        ),
    )


def _first_best(result: Sweep, case: str) -> float:
    """Return the smallest epsilon from which SRR is the best protocol."""
    least = math.inf
    for epsilon in reversed(result.epsilons):
        means = result.means[case, epsilon]
        if means["SRR"] < max(means.values()) - 1e-12:
            break
        least = epsilon
    return least
