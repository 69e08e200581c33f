"""Shared parts of the experiments on localized information privacy (LIP). Errors are √(E/N), as in the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.experiment import Run
from papers.figure import Curve, Panel
from papers.result import Claim, Result, Row
from sfumato._core import Floats
from sfumato.auditing import audit
from sfumato.datasets.folder import Loaded
from sfumato.domain import Domain
from sfumato.estimation import information_privacy as lip
from sfumato.mechanisms import Mechanism, TableMechanism, binary_for_policy, one_sided_as_printed
from sfumato.policy import Prior

__all__ = [
    "PAPER",
    "Comparison",
    "audited_epsilon",
    "beats",
    "error_of",
    "models",
    "panel",
    "printed_and_corrected",
    "rows_of",
]


PAPER = "Jiang, Li, Tandon: Context-aware Data Aggregation with Localized Information Privacy"
_COIN = Domain(["0", "1"])


def models(priors: Floats, epsilon: float) -> dict[str, float]:
    """Return √(E/N) of the models in the paper, as printed and corrected, for users with these priors."""
    half = epsilon / 2
    curves = {
        "ε-Opt-LDP": lip.optimal_ldp_mse(priors, epsilon),
        "ε-Opt-LIP as printed": lip.printed_mse(priors, epsilon),
        "ε-Opt-LIP": lip.optimal_mse(priors, epsilon),
        "ε/2-Opt-LIP as printed": lip.printed_mse(priors, half),
        "ε/2-Opt-LIP": lip.optimal_mse(priors, half),
        "ε/2-symmetric LIP": lip.symmetric_mse(priors, half),
    }
    return {name: float(np.sqrt(np.mean(errors))) for name, errors in curves.items()}


def printed_and_corrected(p1: float, epsilon: float) -> tuple[TableMechanism, TableMechanism, Prior]:
    """Return the mechanism of Theorem 2 as printed, the corrected mechanism, and the policy of both."""
    policy = Prior(_COIN, [f"{1 - p1:.6g}", f"{p1:.6g}"], f"{epsilon:g}")
    return one_sided_as_printed(_COIN, policy.prior, policy.epsilon), binary_for_policy(policy), policy


def error_of(mechanism: Mechanism, policy: Prior) -> float:
    """Return the mean squared error of one user, from the exact law of the sampler."""
    return lip.mmse(mechanism, policy.prior)


def audited_epsilon(mechanism: Mechanism, policy: Prior) -> float:
    """Return the level of the policy that a mechanism satisfies, by an audit."""
    return float(policy.epsilon) + float(audit(mechanism, policy).worst.excess)


def rows_of(name: str, priors: Floats, epsilons: list[float]) -> tuple[list[Row], dict[str, list[float]]]:
    """Return a row per ε, and the curves; "measured" is ε-Opt-LIP as printed, "ours" the corrected optimum."""
    errors_at = [models(priors, epsilon) for epsilon in epsilons]
    rows = []
    for epsilon, errors in zip(epsilons, errors_at, strict=True):
        details: dict[str, float | str | None] = {
            "ε-Opt-LDP": errors["ε-Opt-LDP"],
            "ε/2-LIP as printed": errors["ε/2-Opt-LIP as printed"],
            "ε/2-LIP": errors["ε/2-Opt-LIP"],
            "ε/2-symmetric": errors["ε/2-symmetric LIP"],
        }
        measured, ours = errors["ε-Opt-LIP as printed"], errors["ε-Opt-LIP"]
        rows.append(Row(f"{name}, ε = {epsilon:g}", None, measured, ours, details))
    return rows, {curve: [errors[curve] for errors in errors_at] for curve in errors_at[0]}


@dataclass(frozen=True)
class Comparison:
    """The models on several sets of users; ``better`` states whether ε-Opt-LIP is never worse than ε-Opt-LDP."""

    rows: tuple[Row, ...]
    panels: tuple[Panel, ...]
    artefacts: tuple[Claim, ...]
    better: tuple[bool, ...]

    @classmethod
    def of(cls, run: Run, cases: Mapping[str, Callable[[], Floats]], epsilons: list[float]) -> Comparison:
        """Compare the models for the priors of each case."""
        comparisons = [(name, *rows_of(name, priors(), epsilons)) for name, priors in run.each(cases.items())]
        lip_and_ldp = [(np.array(curves["ε-Opt-LIP"]), np.array(curves["ε-Opt-LDP"])) for _, _, curves in comparisons]
        return cls(
            tuple(row for _, rows, _ in comparisons for row in rows),
            tuple(panel(name, epsilons, curves) for name, _, curves in comparisons),
            tuple(beats(name, epsilons, curves) for name, _, curves in comparisons),
            tuple(bool((ours <= ldp * (1 + 1e-12)).all()) for ours, ldp in lip_and_ldp),
        )

    def result(self, claim: str, where: str, notes: Sequence[str], sources: Sequence[Loaded[Any]] = ()) -> Result:
        """Return the result of an experiment; ``where`` is the format of the finding for its first claim."""
        return Result(
            quantity="√(E/N); measured: ε-Opt-LIP as printed (Theorem 2)",
            ours_is="the corrected optimum of ε-LIP for each user",
            rows=self.rows,
            claims=(
                Claim(claim, all(self.better), where.format(sum(self.better), len(self.better))),
                *self.artefacts,
            ),
            notes=tuple(notes),
            panels=self.panels,
            sources=tuple(sources),
        )


def panel(title: str, epsilons: list[float], curves: dict[str, list[float]], log: str = "y") -> Panel:
    """Return a panel with the curves; those of the printed mechanism are dashed."""
    return Panel(
        title,
        "ε",
        "√(E/N)",
        tuple(
            Curve(name, epsilons, errors, ours=name == "ε-Opt-LIP", printed=name.endswith("printed"))
            for name, errors in curves.items()
        ),
        log,
    )


def beats(where: str, epsilons: list[float], curves: dict[str, list[float]]) -> Claim:
    """Return the claim that ε/2-LIP is better than ε-LDP for some ε, which Theorem 1 of the paper rules out."""
    ldp, ours = np.array(curves["ε-Opt-LDP"]), np.array(curves["ε/2-Opt-LIP"])
    printed = np.array(curves["ε/2-Opt-LIP as printed"])
    at = [epsilon for epsilon, better in zip(epsilons, printed < ldp * (1 - 1e-12), strict=True) if better]
    shown = f"ε = {min(at):g} to {max(at):g}" if at else "no ε"
    holds = bool((ours < ldp * (1 - 1e-12)).any())
    corrected = (
        "the corrected one is better for some ε"
        if holds
        else "the corrected one is never better, because an ε/2-LIP mechanism is ε-LDP and Opt-LDP is the best of those"
    )
    return Claim(
        f"ε/2-Opt-LIP is better than ε-Opt-LDP for smaller ε ({where})",
        holds,
        f"the printed mechanism, which violates ε/2-LIP, is better at {shown}; {corrected}",
    )
