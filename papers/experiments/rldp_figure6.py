"""Lopuhaä-Zwakenberg, Goseling, Figure 6: where IR is better than GRR-CR, 5 x 5, ε = 4."""

from __future__ import annotations

import numpy as np

from papers.experiment import Experiment, Run
from papers.experiments._robust import PAPER, Table, conditional, epsilon_text, independent
from papers.experiments._sweep import draw_tables
from papers.figure import Curve, Panel
from papers.result import Claim, Result, Row
from sfumato._core import Floats
from sfumato.compiler import robust_information
from sfumato.mechanisms import ConditionalReporting, IndependentReporting

__all__ = ["EXPERIMENT"]

_EPSILON = 4.0
#: Difference of shares of H(X) below which they count as equal.
_SAME = 1e-6


def _run(run: Run) -> Result:
    shape = run.of((2, 2), (5, 5))
    draws, of_ours = run.of((20, 2), (2000, 20))
    tables = draw_tables(next(run.seeds()), shape, 1000, draws)
    entropies = np.array([table.entropy for table in tables])
    paper = np.array([_difference(table) for table in run.each(tables)])
    ours = np.array([_our_difference(table) for table in tables[:of_ours]])
    trend, of_trend = _correlation(entropies, paper), _correlation(entropies[:of_ours], ours)
    equal, of_equal = float(np.mean(np.abs(paper) < _SAME)), float(np.mean(np.abs(ours) < _SAME))
    return Result(
        quantity="(I of IR - I of GRR-CR)/H(X), over distributions",
        ours_is=f"the same quantities of our exact designs, on the first {of_ours} draws",
        rows=(
            Row("share of the draws with equal utility", None, equal, of_equal),
            Row("correlation of the difference with H(X), where they differ", None, trend, of_trend),
            Row("mean difference", None, float(paper.mean()), float(ours.mean())),
            Row(
                "share of the draws where GRR-CR is better",
                None,
                float(np.mean(paper < -_SAME)),
                float(np.mean(ours < -_SAME)),
            ),
        ),
        claims=(
            Claim("there are many distributions where the two have equal utility", equal > 0.1, f"{equal:.0%} of them"),
            Claim("among the others there is a downward trend in H(X)", trend < 0, f"the correlation is {trend:.2f}"),
        ),
        notes=(f"{shape[0]} x {shape[1]}, ε = 4, n = 1000, {draws} draws. The paper prints no numbers.",),
        panels=(
            Panel(
                f"{draws} distributions",
                "H(X)",
                "(I of IR - I of GRR-CR)/H(X)",
                (
                    Curve("as in the paper", entropies.tolist(), paper.tolist(), points=True),
                    Curve("ours", entropies[:of_ours].tolist(), ours.tolist(), points=True),
                ),
            ),
        ),
    )


def _difference(table: Table) -> float:
    return (independent(table, _EPSILON).information - conditional(table, _EPSILON).information) / table.entropy


def _our_difference(table: Table) -> float:
    policy = table.policy(epsilon_text(_EPSILON))
    first, second = IndependentReporting(policy), ConditionalReporting(policy)
    return robust_information(first, policy).fraction - robust_information(second, policy).fraction


def _correlation(entropies: Floats, differences: Floats) -> float:
    differ = np.abs(differences) >= _SAME
    if differ.sum() < 3:
        return float("nan")
    return float(np.corrcoef(entropies[differ], differences[differ])[0, 1])


EXPERIMENT = Experiment("rldp-figure6", "Where independent reporting beats conditional", f"{PAPER}, Figure 6", _run)
