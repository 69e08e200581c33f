"""Jiang, Li, Tandon, Figure 5: the gain from a known prior, in the estimate and in the policy."""

from __future__ import annotations

import numpy as np

from papers.experiment import Experiment, Run
from papers.experiments._priors import PAPER, audited_epsilon, error_of, printed_and_corrected
from papers.figure import Curve, Panel
from papers.result import Claim, Result, Row
from sfumato.estimation import information_privacy as lip

__all__ = ["EXPERIMENT"]

_PRIORS = (0.5, 0.99)


def _run(run: Run) -> Result:
    epsilons = run.of([1.0, 3.0], [1 + 0.5 * step for step in range(9)])
    rows, panels = [], []
    gaps: dict[str, dict[float, float]] = {"context-free": {}, "as printed": {}, "corrected": {}}
    for p1 in run.each(_PRIORS):
        errors_at = []
        for epsilon in epsilons:
            printed, corrected, policy = printed_and_corrected(p1, epsilon)
            free, aware = float(lip.context_free_mse(epsilon)) ** 0.5, float(lip.optimal_ldp_mse(p1, epsilon)) ** 0.5
            errors = error_of(printed, policy) ** 0.5, error_of(corrected, policy) ** 0.5
            details: dict[str, float | str | None] = {
                "ε-Opt-LDP": aware,
                "context-free LDP": free,
                "level as printed": audited_epsilon(printed, policy),
            }
            rows.append(Row(f"P1 = {p1}, ε = {epsilon:g}", None, *errors, details))
            errors_at.append((free, aware, *errors))
        free_, aware_, printed_, ours_ = np.array(errors_at).T
        # The axis of the paper is logarithmic, so distances are ratios.
        gaps["context-free"][p1] = float(np.exp(np.mean(np.log(free_ / aware_))))
        gaps["as printed"][p1] = float(np.exp(np.mean(np.log(aware_ / printed_))))
        gaps["corrected"][p1] = float(np.exp(np.mean(np.log(aware_ / ours_))))
        curves = (
            Curve("context-free LDP", epsilons, free_.tolist()),
            Curve("ε-Opt-LDP", epsilons, aware_.tolist()),
            Curve("ε-Opt-LIP as printed", epsilons, printed_.tolist(), printed=True),
            Curve("ε-Opt-LIP", epsilons, ours_.tolist(), ours=True),
        )
        panels.append(Panel(f"P1 = {p1}", "ε", "√(E/N)", curves, "y"))
    return Result(
        quantity="√(E/N); measured: ε-Opt-LIP as printed (Corollary 1)",
        ours_is="the corrected optimum of ε-LIP",
        rows=tuple(rows),
        claims=_claims(rows, gaps),
        notes=("The paper shows curves and prints no numbers. Errors come from the exact laws of the samplers.",),
        panels=tuple(panels),
    )


def _claims(rows: list[Row], gaps: dict[str, dict[float, float]]) -> tuple[Claim, ...]:
    below = [float(row.details["ε-Opt-LDP"] or 0) < float(row.details["context-free LDP"] or 0) for row in rows]
    smaller = [(row.ours or 0) < float(row.details["ε-Opt-LDP"] or 0) for row in rows]
    even, skewed = _PRIORS
    return (
        Claim("ε-Opt-LDP is always better than context-free LDP", all(below), f"at {sum(below)} of {len(rows)} points"),
        Claim(
            "the improvement is larger if the prior is more skewed",
            gaps["context-free"][skewed] > gaps["context-free"][even],
            f"a factor of {gaps['context-free'][skewed]:.2f} on average, compared with "
            f"{gaps['context-free'][even]:.2f}",
        ),
        Claim("ε-Opt-LIP is always better than ε-Opt-LDP", all(smaller), f"at {sum(smaller)} of {len(rows)} points"),
        Claim(
            "the improvement is larger at P1 = 0.99",
            gaps["corrected"][skewed] > gaps["corrected"][even],
            f"as printed, a factor of {gaps['as printed'][skewed]:.2f} compared with {gaps['as printed'][even]:.2f}; "
            f"corrected, a factor of {gaps['corrected'][skewed]:.3f} compared with {gaps['corrected'][even]:.3f}",
        ),
    )


EXPERIMENT = Experiment("lip-figure5", "Prior-aware and prior-free models", f"{PAPER}, Figure 5", _run)
