"""Lopuhaä-Zwakenberg, Goseling, Figure 8: the effect of the confidence level, 5 x 5."""

from __future__ import annotations

import itertools

import numpy as np

from papers.experiment import Experiment, Run
from papers.experiments._robust import PAPER, Table, conditional, epsilon_text, independent, radius_of, unary
from papers.experiments._sweep import draw_tables
from papers.figure import Curve, Panel
from papers.result import Claim, Result, Row
from sfumato.compiler import robust_information
from sfumato.mechanisms import ConditionalReporting

__all__ = ["EXPERIMENT"]

_ALPHAS = ("0.0001", "0.001", "0.01", "0.1")
_PROTOCOLS = {"IR": independent, "GRR-CR": conditional, "UE-CR": unary}
#: The average loss at ε = 0.1 from α = 0.1 to 0.0001, according to the paper.
_PUBLISHED = {"IR": 0.0, "GRR-CR": 0.36, "UE-CR": 0.47}


def _run(run: Run) -> Result:
    shape = run.of((2, 2), (5, 5))
    draws, of_ours = run.of((4, 1), (200, 10))
    epsilons = run.of((0.1, 2.0), (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0))
    tables = draw_tables(next(run.seeds()), shape, 1000, draws)
    means: dict[tuple[str, float, str], float] = {}
    losses: dict[str, float] = {}
    for name, epsilon in run.each([(name, epsilon) for name in _PROTOCOLS for epsilon in epsilons]):
        fractions = {
            alpha: np.array(
                [_PROTOCOLS[name](_at(table, alpha), epsilon).information / table.entropy for table in tables]
            )
            for alpha in _ALPHAS
        }
        for alpha, values in fractions.items():
            means[name, epsilon, alpha] = float(values.mean())
        if epsilon == 0.1:
            losses[name] = 1 - means[name, epsilon, "0.0001"] / means[name, epsilon, "0.1"]
    ours = [[_ours(table, alpha) for alpha in ("0.1", "0.0001")] for table in tables[:of_ours]]
    high, low = np.mean(ours, axis=0)
    rows = [
        Row(
            f"utility lost from α = 0.1 to 0.0001, ε = 0.1, {name}",
            _PUBLISHED[name],
            losses[name],
            float(1 - low / high) if name == "GRR-CR" else None,
        )
        for name in _PROTOCOLS
    ]
    for name in _PROTOCOLS:
        for epsilon in epsilons:
            details: dict[str, float | str | None] = {f"α = {a}": means[name, epsilon, a] for a in _ALPHAS}
            rows.append(Row(f"{name}, ε = {epsilon:g}", None, means[name, epsilon, "0.01"], None, details))
    falling = all(
        means[name, epsilon, a] <= means[name, epsilon, b] + 1e-12
        for name in ("GRR-CR", "UE-CR")
        for epsilon in epsilons
        for a, b in itertools.pairwise(_ALPHAS)
    )
    return Result(
        quantity="I(X;Y)/H(X) at P̂, mean of the draws; the first rows are the share of it that a smaller α costs",
        ours_is=f"the loss of our exact conditional reporting, on the first {of_ours} draws",
        rows=tuple(rows),
        claims=(
            Claim("a smaller α reduces the utility of GRR-CR and UE-CR", falling, "at every level"),
            Claim(
                "the utility of IR does not change, because d = 2",
                losses["IR"] < 0.01,
                f"{losses['IR']:.1%} is lost at ε = 0.1",
            ),
        ),
        notes=(
            f"{shape[0]} x {shape[1]}, n = 1000, {draws} draws. The loss is that of the mean utility. Other draws and "
            "another average explain differences of a few percent.",
        ),
        panels=tuple(
            Panel(
                name,
                "ε",
                "I(X;Y)/H(X)",
                tuple(Curve(f"α = {a}", list(epsilons), [means[name, e, a] for e in epsilons]) for a in _ALPHAS),
            )
            for name in _PROTOCOLS
        ),
    )


def _at(table: Table, alpha: str) -> Table:
    """Return the table with the radius for another α."""
    rows, columns = table.counts.shape
    return table._replace(radius=radius_of(int(table.counts.sum()), (rows, columns), alpha))


def _ours(table: Table, alpha: str) -> float:
    """Return I(X;Y)/H(X) of our conditional reporting at ε = 0.1."""
    policy = table.policy(epsilon_text(0.1), alpha)
    return robust_information(ConditionalReporting(policy), policy).fraction


EXPERIMENT = Experiment("rldp-figure8", "The effect of the confidence level", f"{PAPER}, Figure 8", _run)
