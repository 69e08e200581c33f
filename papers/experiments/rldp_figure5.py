"""Lopuhaä-Zwakenberg, Goseling, Figure 5: how the protocols divide ε, 5 x 5."""

from __future__ import annotations

import numpy as np

from papers.experiment import Experiment, Run
from papers.experiments._robust import PAPER, Table, conditional, epsilon_text, independent, unary
from papers.experiments._sweep import draw_tables
from papers.figure import Curve, Panel
from papers.result import Claim, Result, Row
from sfumato._core import Floats
from sfumato.mechanisms import ConditionalReporting

__all__ = ["EXPERIMENT"]

_NAMES = ("ε2/ε (IR)", "ε2/ε (GRR-CR)", "κ (UE-CR)", "λ (UE-CR)")
#: Distance from 0 or 1 within which a fraction of the budget counts as nothing or all.
_END = 0.01


def _run(run: Run) -> Result:
    shape = run.of((2, 2), (5, 5))
    draws, of_ours = run.of((3, 1), (200, 3))
    epsilons = run.of((0.5, 2.0, 4.0), (0.2, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0))
    tables = draw_tables(next(run.seeds()), shape, 1000, draws)
    budgets = {epsilon: np.array([_budget(table, epsilon) for table in tables]) for epsilon in run.each(epsilons)}
    rows = []
    for epsilon, budget in budgets.items():
        mean = budget.mean(axis=0)
        details: dict[str, float | str | None] = {name: float(value) for name, value in zip(_NAMES, mean, strict=True)}
        ours = float(np.mean([_ours(table, epsilon) for table in tables[:of_ours]]))
        rows.append(Row(f"ε2/ε of GRR-CR, ε = {epsilon:g}", None, float(mean[1]), ours, details))
    return Result(
        quantity="the share of ε that GRR-CR spends on U, mean of the draws; further columns are the other parameters",
        ours_is=f"the same share in our exact design of conditional reporting, on the first {of_ours} draws",
        rows=tuple(rows),
        claims=_claims(budgets),
        notes=(
            f"{shape[0]} x {shape[1]}, n = 1000, α = 0.05, {draws} draws. At small ε optimal budgets are often "
            "not unique, and tiny differences decide a draw. The paper prints no numbers.",
        ),
        panels=tuple(
            Panel(
                title,
                "ε",
                "parameter",
                tuple(
                    Curve(name, list(epsilons), [float(chosen[epsilon][place]) for epsilon in epsilons])
                    for place, name in enumerate(_NAMES)
                ),
            )
            for title, chosen in (
                ("first draw", {epsilon: budget[0] for epsilon, budget in budgets.items()}),
                ("second draw", {epsilon: budget[1] for epsilon, budget in budgets.items()}),
                (f"mean of {draws}", {epsilon: budget.mean(axis=0) for epsilon, budget in budgets.items()}),
            )
        ),
    )


def _budget(table: Table, epsilon: float) -> tuple[float, float, float, float]:
    """Return the parameters of the protocols in the order of the names."""
    both = unary(table, epsilon).budget
    first, second = independent(table, epsilon).budget["second"], conditional(table, epsilon).budget["second"]
    return first / epsilon, second / epsilon, both["own"], both["others"]


def _ours(table: Table, epsilon: float) -> float:
    """Return the share of ε that our conditional reporting spends on U."""
    mechanism = ConditionalReporting(table.policy(epsilon_text(epsilon)))
    return max(0.0, 1 - float(mechanism.provenance["budget"]["secret"]) / epsilon)


def _claims(budgets: dict[float, Floats]) -> tuple[Claim, ...]:
    low = np.concatenate([budget[:, :2] for epsilon, budget in budgets.items() if epsilon < 1]).ravel()
    ends = float(np.mean((low < _END) | (low > 1 - _END)))
    on_other = float(np.mean(np.concatenate([budget[:, 1] for epsilon, budget in budgets.items() if epsilon < 1])))
    middle = [budget[:, 1] for epsilon, budget in budgets.items() if 1 < epsilon < 3]
    on_secret = float(np.mean(np.concatenate(middle))) if middle else float("nan")
    of_ir = [float(budget[:, 0].mean()) for budget in budgets.values()]
    sets = np.concatenate([budget[:, 2:] for epsilon, budget in budgets.items() if epsilon < 1])
    whole = float(np.mean(sets.min(axis=1) > 1 - _END))
    return (
        Claim("for low ε it is optimal to take ε2 = 0 or ε2 = ε", ends > 0.9, f"in {ends:.0%} of the draws with ε < 1"),
        Claim(
            "GRR-CR spends all of ε on U for ε < 1",
            on_other > 0.9,
            f"it spends a share of {on_other:.2f} on U on average",
        ),
        Claim(
            "GRR-CR spends all of ε on S for 1 < ε < 3",
            on_secret < 0.1,
            f"it spends a share of {on_secret:.2f} on U on average",
        ),
        Claim(
            "IR spends about half of ε on U on average, for every ε",
            0.25 < min(of_ir) <= max(of_ir) < 0.75,
            f"between {min(of_ir):.2f} and {max(of_ir):.2f}",
        ),
        Claim("UE-CR takes κ = λ = 1 for low ε", whole > 0.9, f"in {whole:.0%} of the draws with ε < 1"),
    )


EXPERIMENT = Experiment("rldp-figure5", "How the protocols divide ε", f"{PAPER}, Figure 5", _run)
