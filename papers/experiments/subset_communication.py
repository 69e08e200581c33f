"""Barg and Ye (slides): number of bits per report."""

from __future__ import annotations

import math
from collections.abc import Callable

from papers.experiment import Experiment, Run
from papers.experiments._classical import MECHANISMS, REGIMES
from papers.figure import Curve, Panel
from papers.result import Claim, Result, Row
from sfumato.compiler import least_risk
from sfumato.domain import Domain
from sfumato.mechanisms import HadamardResponse
from sfumato.policy import Uniform

__all__ = ["EXPERIMENT"]

Order = Callable[[float, float], float]


def _log(k: float, _: float) -> float:
    return math.log2(k)


#: Orders of the number of bits ("Communication complexity").
_ORDERS: dict[str, dict[str, Order]] = {
    "(0, 1)": {"RR": _log, "RAPPOR": lambda k, _: k, "SS": lambda k, _: k, "HR": _log},
    "(1, log k)": {
        "RR": _log,
        "RAPPOR": lambda k, e: k / math.exp(e / 2),
        "SS": lambda k, e: k / math.exp(e),
        "HR": _log,
    },
    "(log k, 2 log k)": {"RR": _log, "RAPPOR": lambda k, e: k / math.exp(e / 2), "SS": _log, "HR": _log},
    "(2 log k, ∞)": dict.fromkeys(MECHANISMS, _log),
}


def _run(run: Run) -> Result:
    k = run.of(64, 1024)
    domain = Domain.range(k)
    rows: list[Row] = []
    epsilons: list[float] = []
    for regime, epsilon_at in run.each(REGIMES.items()):
        epsilons.append(epsilon_at(math.log(k)))
        epsilon = f"{epsilons[-1]:.4f}"
        bound = least_risk(Uniform(domain, epsilon)) or math.nan
        ours = HadamardResponse(domain, epsilon)
        for name, compared in MECHANISMS.items():
            mechanism = compared.make(domain, epsilon)
            details: dict[str, float | str | None] = {
                "on the wire": mechanism.bits,
                "risk/least": mechanism.risk(1) / bound,
                "ours: risk/least": ours.risk(1) / bound,
            }
            order = _ORDERS[regime][name](k, epsilons[-1])
            rows.append(Row(f"{name}, ε in {regime}", order, compared.needed_bits(mechanism), ours.bits, details))
    return Result(
        quantity=f"bits per report that are needed, k = {k}; published: the printed order, without a constant",
        ours_is="Hadamard response with the matrix of smallest exact risk",
        rows=tuple(rows),
        claims=tuple(
            Claim(claim, furthest < most, f"at most {furthest:.2f} times the order")
            for claim, names, most in (
                ("RR and HR need about log k bits", ("RR", "HR"), 2.0),
                # Each of k/e^ε positions takes log k bits.
                ("RAPPOR and SS need these orders, up to a factor of log k", ("RAPPOR", "SS"), 1.1 * math.log2(k)),
            )
            for furthest in [max(_times(row) for row in rows if row.setting.startswith(names))]
        ),
        notes=(
            "Needed: the entropy of a report, or log2 (k choose d) for subset selection. On the wire all reports of a "
            "mechanism have the same length, so that the length reveals nothing. RAPPOR and SS send a bitmap of "
            "k bits.",
        ),
        panels=(
            Panel(
                f"k = {k}",
                "ε",
                "bits per report that are needed",
                tuple(
                    Curve(name, epsilons, [row.measured or 0 for row in rows if row.setting.startswith(name + ",")])
                    for name in MECHANISMS
                ),
                "y",
            ),
        ),
    )


def _times(row: Row) -> float:
    """Return the measured number as a multiple of the published order."""
    return (row.measured or 0) / (row.published or 1)


EXPERIMENT = Experiment(
    "subset-communication",
    "Bits per report of four mechanisms",
    "Barg, Ye: Optimal Estimation of Discrete Distribution under Local Differential Privacy (slides), communication",
    _run,
)
