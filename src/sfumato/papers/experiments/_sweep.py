"""Protocols of the robust LDP paper over several kinds of tables and levels: rows, panels, and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.papers.data.folder import Loaded
from sfumato.papers.data.seeded import SeededNumbers
from sfumato.papers.experiment import Run
from sfumato.papers.experiments._robust import PROTOCOLS, Table, averages, our_best
from sfumato.papers.figure import Curve, Panel
from sfumato.papers.result import Claim, Result, Row

__all__ = ["LEVELS", "OURS_IS", "QUANTITY", "Sweep", "drawn", "order_claims", "sweep"]

QUANTITY = "I(X;Y)/H(X) at P̂, mean of the draws; measured: the best of the paper's protocols"
OURS_IS = (
    "the best of our mechanisms on the first draws: the optimal design for the confidence set itself where a table has "
    "at most 9 cells (5 seconds each), else reporting with exact budgets; beside it the paper's best on those draws"
)
#: The paper's range.
LEVELS = (0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)

Shares = dict[tuple[str, float], dict[str, float]]


class Sweep:
    """What was found: a row for each kind of table and level, and the means behind it."""

    def __init__(self, levels: Sequence[float]) -> None:
        self.levels = list(levels)
        self.rows: list[Row] = []
        self.means: Shares = {}

    def panels(self, kinds: Sequence[str]) -> tuple[Panel, ...]:
        """A panel for each kind of table."""
        found = []
        for kind in kinds:
            curves = [
                Curve(name, self.levels, [self.means[kind, epsilon][name] for epsilon in self.levels])
                for name in PROTOCOLS
            ]
            ours = {row.setting: row.ours for row in self.rows}
            at = [(epsilon, ours[f"{kind}, ε = {epsilon:g}"]) for epsilon in self.levels]
            x, y = [e for e, value in at if value is not None], [value for _, value in at if value is not None]
            found.append(Panel(kind, "ε", "I(X;Y)/H(X)", (*curves, Curve("ours", x, y, ours=True))))
        return tuple(found)

    def result(
        self, kinds: Sequence[str], claims: Sequence[Claim], note: str, sources: Sequence[Loaded[Any]] = ()
    ) -> Result:
        """The result of an experiment whose rows and panels these are."""
        return Result(
            quantity=QUANTITY,
            ours_is=OURS_IS,
            rows=tuple(self.rows),
            claims=tuple(claims),
            notes=(note,),
            panels=self.panels(kinds),
            sources=tuple(sources),
        )


def drawn(seed: int, shape: tuple[int, int], n: int, count: int) -> list[Table]:
    """Tables of n people each, from distributions of the Jeffreys prior."""
    numbers = SeededNumbers(seed)
    return [Table.drawn(numbers, shape, n) for _ in range(count)]


def sweep(
    run: Run, kinds: Mapping[str, Sequence[Table]], levels: Sequence[float], of_ours: int, ours_at: Sequence[float]
) -> Sweep:
    """Every protocol on every table at every level; ours on the first ``of_ours`` tables at the levels ``ours_at``."""
    found = Sweep(levels)
    for kind, epsilon in run.each([(kind, epsilon) for kind in kinds for epsilon in levels]):
        tables = kinds[kind]
        means = averages(tables, epsilon)
        ours = None
        details: dict[str, float | str | None] = dict(means)
        if epsilon in ours_at:
            few = tables[:of_ours]
            ours = float(np.mean([our_best(table, epsilon) for table in few]))
            details["best on the draws of ours"] = max(averages(few, epsilon).values())
        found.means[kind, epsilon] = means
        found.rows.append(Row(f"{kind}, ε = {epsilon:g}", None, max(means.values()), ours, details))
    return found


def order_claims(found: Sweep, kinds: Sequence[str]) -> tuple[Claim, ...]:
    """What the text says of the order of the protocols."""
    points = [(kind, epsilon) for kind in kinds for epsilon in found.levels]
    highest = max(found.levels)

    def share(name: str, kind: str, epsilon: float) -> float:
        return found.means[kind, epsilon][name]

    best_at_top = [kind for kind in kinds if share("SRR", kind, highest) >= max(found.means[kind, highest].values())]
    first = {kind: _first_best(found, kind) for kind in kinds}
    below = sum(share("GRR", *point) <= share("SRR", *point) for point in points)
    apart = [abs(share("IR", *p) - share("GRR-CR", *p)) for p in points]
    worst = sum(share("UE-CR", kind, highest) <= min(found.means[kind, highest].values()) + 1e-12 for kind in kinds)
    ours = [(row.ours, row.details["best on the draws of ours"]) for row in found.rows if row.ours is not None]
    better = sum(a >= float(b or 0) - 1e-9 for a, b in ours)
    return (
        Claim(
            "for ε large enough SRR is the best protocol",
            len(best_at_top) == len(kinds),
            "from " + ", ".join(f"ε = {level:g} ({kind})" for kind, level in first.items()),
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
            "for high ε UE-CR is the worse choice", worst == len(kinds), f"the worst of all for {worst} of {len(kinds)}"
        ),
        Claim(
            "(ours) tells more than the paper's best on the same draws",
            better == len(ours),
            f"at {better} of {len(ours)} points",
        ),
    )


def _first_best(found: Sweep, kind: str) -> float:
    """The least level from which on SRR is the best."""
    level = math.inf
    for epsilon in reversed(found.levels):
        means = found.means[kind, epsilon]
        if means["SRR"] < max(means.values()) - 1e-12:
            break
        level = epsilon
    return level
