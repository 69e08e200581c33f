"""Jiang, Li, Tandon, Figure 2 (Example 1): a survey of 100 people, one in ten of whom has the disease."""

from __future__ import annotations

import math

from papers.experiment import Experiment, Run
from papers.experiments._priors import PAPER, audited_epsilon, error_of, printed_and_corrected
from papers.figure import Curve, Panel
from papers.result import Claim, Result, Row
from sfumato.estimation import information_privacy as lip

__all__ = ["EXPERIMENT"]

_PEOPLE, _PRIOR = 100, 0.1


def _run(run: Run) -> Result:
    epsilons = run.of([0.5, 1.0], [0.25 * step for step in range(1, 21)])
    rows: list[Row] = []
    for epsilon in run.each(epsilons):
        t = math.exp(epsilon)
        printed, corrected, policy = printed_and_corrected(_PRIOR, epsilon)
        free = _PEOPLE * float(lip.context_free_mse(epsilon))
        asymmetric = _PEOPLE * float(lip.context_free_asymmetric_mse(_PRIOR, epsilon))
        aware = _PEOPLE * float(lip.optimal_ldp_mse(_PRIOR, epsilon))
        at = f"ε = {epsilon:g}"
        rows += [
            Row(f"LDP, {at}", 100 * t / (t + 1) ** 2, free, aware),
            Row(f"Opt-LDP, {at}", 25 / (0.5 - t / 2) ** 2, asymmetric, aware),
            Row(
                f"LIP, {at}",
                (10 * t - 1) / 0.64,
                _PEOPLE * error_of(printed, policy),
                _PEOPLE * error_of(corrected, policy),
                {
                    "level as printed": audited_epsilon(printed, policy),
                    "level of ours": audited_epsilon(corrected, policy),
                },
            ),
        ]
    ldp, opt, lip_rows = rows[::3], rows[1::3], rows[2::3]
    worst = max(float(row.details["level as printed"] or 0) - e for row, e in zip(lip_rows, epsilons, strict=True))
    return Result(
        quantity="expected squared error of the number of infected among 100",
        ours_is="LDP: randomized response with the estimate that uses the prior; LIP: the corrected optimum",
        rows=tuple(rows),
        claims=(
            Claim(
                "the asymmetric parameters (Opt-LDP) have a smaller error than the symmetric ones (LDP)",
                all((a.measured or 0) < (b.measured or 0) for a, b in zip(opt, ldp, strict=True)),
                "for one bit their error is larger",
            ),
            Claim(
                "LIP has a significantly smaller error than LDP",
                all((a.ours or 0) < (b.measured or 0) / 2 for a, b in zip(lip_rows, ldp, strict=True) if b.measured),
                "the corrected mechanism does too; most of the gain comes from the estimate, which uses the prior",
            ),
            Claim(
                "the mechanism q* = P1/e^ε, p* = P0/e^ε satisfies ε-LIP",
                worst <= 1e-9,
                f"its real level is up to {worst:.2f} above ε",
            ),
        ),
        notes=(
            "Published: the formulas of Example 1, evaluated. All three are misprinted. The formula of LDP divides by "
            "(e^ε+1)² instead of (e^ε-1)². The formula of Opt-LDP has e^ε instead of e^-ε. The formula of LIP "
            "grows with ε. Measured: the exact errors of the mechanisms that the example describes.",
        ),
        panels=(
            Panel(
                "N = 100, P1 = 0.1",
                "ε",
                "expected squared error",
                (
                    Curve("LDP, formula as printed", epsilons, [row.published or 0 for row in ldp], printed=True),
                    Curve("LDP", epsilons, [row.measured or 0 for row in ldp]),
                    Curve("Opt-LDP, formula as printed", epsilons, [row.published or 0 for row in opt], printed=True),
                    Curve("Opt-LDP", epsilons, [row.measured or 0 for row in opt]),
                    Curve("LIP, mechanism as printed", epsilons, [row.measured or 0 for row in lip_rows], printed=True),
                    Curve("LIP, corrected", epsilons, [row.ours or 0 for row in lip_rows], ours=True),
                ),
                "y",
            ),
        ),
    )


EXPERIMENT = Experiment("lip-figure2", "A survey of 100 people under LDP and LIP", f"{PAPER}, Figure 2", _run)
