"""Barg and Ye (slides): the risk of subset selection, and the orders of the l1 risk of four mechanisms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from papers.experiment import Experiment, Run
from papers.experiments._classical import MECHANISMS, REGIMES
from papers.figure import Curve, Panel
from papers.result import Claim, Result, Row
from sfumato.compiler import expected_tv
from sfumato.device import simulate
from sfumato.domain import Domain
from sfumato.mechanisms import Mechanism

__all__ = ["EXPERIMENT"]

#: Orders of the l1 risk at n = 1, by regime and mechanism, in t = e^ε ("Summary of known results").
_ORDERS: dict[str, dict[str, tuple[str, Callable[[float, float], float]]]] = {
    "(0, 1)": {
        "RR": ("k^1.5/ε", lambda k, e: k**1.5 / e),
        "RAPPOR": ("k/ε", lambda k, e: k / e),
        "SS": ("k/ε", lambda k, e: k / e),
        "HR": ("k/ε", lambda k, e: k / e),
    },
    "(1, log k)": {
        "RR": ("k^1.5/e^ε", lambda k, e: k**1.5 / math.exp(e)),
        "RAPPOR": ("k/e^(ε/4)", lambda k, e: k / math.exp(e / 4)),
        "SS": ("k/e^(ε/2)", lambda k, e: k / math.exp(e / 2)),
        "HR": ("k/e^(ε/2)", lambda k, e: k / math.exp(e / 2)),
    },
    "(log k, 2 log k)": {
        "RR": ("√k", lambda k, _: math.sqrt(k)),
        "RAPPOR": ("k/e^(ε/4)", lambda k, e: k / math.exp(e / 4)),
        "SS": ("√k", lambda k, _: math.sqrt(k)),
        "HR": ("√k", lambda k, _: math.sqrt(k)),
    },
    "(2 log k, ∞)": {name: ("√k", lambda k, _: math.sqrt(k)) for name in MECHANISMS},
}
#: Maximum factor by which a constant may change if k grows sixteenfold.
_CONSTANT = 2.0


def _run(run: Run) -> Result:
    sizes, epsilons = run.of(((8,), ("0.5", "2")), ((16, 256), ("0.5", "1", "2", "4", "6")))
    n, repetitions = run.of((2000, 2), (10_000, 100))
    seeds = run.seeds()
    rows = []
    for k, epsilon, name in run.each(itertools.product(sizes, epsilons, MECHANISMS)):
        domain = Domain.range(k)
        mechanism = MECHANISMS[name].make(domain, epsilon)
        errors = [n * simulate(mechanism, n=n, seed=next(seeds)).l2 for _ in range(repetitions)]
        rows.append(_row(name, mechanism, epsilon, float(np.mean(errors))))
    small, large = run.of((16, 64), (64, 1024))
    orders = [_order_row(regime, name, small, large) for regime in REGIMES for name in MECHANISMS]
    return Result(
        quantity=(
            "n times the mean squared l2 error at the uniform distribution; the last rows are the l1 risk "
            "divided by its order"
        ),
        ours_is=(
            "RR and SS: the smallest possible risk; RAPPOR and HR: the same kind of mechanism with better parameters"
        ),
        rows=(*rows, *orders),
        claims=_claims(rows, orders, sizes, epsilons),
        notes=(
            f"Simulated with n = {n:,} and {repetitions} repetitions. Their mean has an error of about "
            f"{math.sqrt(2 / (min(sizes) * repetitions)):.1%} at k = {min(sizes)}. Published: the formula of the "
            "slides, and for RR their upper bound, which the uniform distribution attains. Orders are printed without "
            "constants.",
            "The expected l1 error uses the normal approximation.",
        ),
        panels=(_panel(rows, max(sizes), epsilons),),
    )


def _row(name: str, mechanism: Mechanism, epsilon: str, measured: float) -> Row:
    compared, domain = MECHANISMS[name], mechanism.domain
    published = None if compared.published_risk is None else compared.published_risk(domain, epsilon)
    details: dict[str, float | str | None] = {"exact": mechanism.risk(1)}
    setting = f"{name}, k = {len(domain)}, ε = {epsilon}"
    return Row(setting, published, measured, compared.our_risk(domain, epsilon), details)


def _order_row(regime: str, name: str, *sizes: int) -> Row:
    formula, order = _ORDERS[regime][name]
    constants = []
    for k in sizes:
        epsilon = REGIMES[regime](math.log(k))
        mechanism = MECHANISMS[name].make(Domain.range(k), f"{epsilon:.4f}")
        constants.append(2 * expected_tv(mechanism, np.full(k, 1 / k)) / order(k, epsilon))
    details: dict[str, float | str | None] = {"order": formula, f"constant at k = {sizes[0]}": constants[0]}
    return Row(f"l1, {name}, ε in {regime}, constant at k = {sizes[1]}", None, constants[1], None, details)


def _claims(rows: list[Row], orders: list[Row], sizes: tuple[int, ...], epsilons: tuple[str, ...]) -> tuple[Claim, ...]:
    exact = {row.setting: float(row.details["exact"] or 0) for row in rows}
    cases = list(itertools.product(sizes, epsilons))
    ratios = [min(exact[f"{other}, k = {k}, ε = {e}"] for other in MECHANISMS) for k, e in cases]
    least = sum(
        exact[f"SS, k = {k}, ε = {e}"] <= ratio * (1 + 1e-9) for (k, e), ratio in zip(cases, ratios, strict=True)
    )
    subsets = [row for row in rows if row.setting.startswith("SS")]
    off = max(abs(float(row.details["exact"] or 0) / (row.published or 1) - 1) for row in subsets)
    changes = [max(a / b, b / a) for row in orders for a, b in [_both(row)]]
    return (
        Claim(
            "subset selection has the smallest l2 risk in all regimes",
            least == len(cases),
            f"in {least} of {len(cases)} cases",
        ),
        Claim(
            "its risk is that of the formula", off < 1e-6, f"the exact risk of the sampler differs by at most {off:.0e}"
        ),
        Claim(
            "the l1 risks have these orders",
            max(changes) < _CONSTANT,
            f"if k grows by a factor of 4 to 16, the constants change by a factor of at most {max(changes):.2f}",
        ),
    )


def _both(row: Row) -> tuple[float, float]:
    before = next(value for name, value in row.details.items() if name.startswith("constant"))
    assert isinstance(before, float)
    assert row.measured is not None
    return row.measured, before


def _panel(rows: list[Row], k: int, epsilons: tuple[str, ...]) -> Panel:
    places = [float(epsilon) for epsilon in epsilons]
    by_setting = {row.setting: row for row in rows}
    curves = [
        Curve(name, places, [by_setting[f"{name}, k = {k}, ε = {e}"].measured or math.nan for e in epsilons])
        for name in MECHANISMS
    ]
    bound = [by_setting[f"SS, k = {k}, ε = {e}"].ours or math.nan for e in epsilons]
    curves.append(Curve("smallest possible", places, bound, ours=True))
    return Panel(f"k = {k}", "ε", "n · squared l2 error", tuple(curves), "y")


EXPERIMENT = Experiment(
    "subset-risk",
    "The risk of subset selection compared with three other mechanisms",
    "Barg, Ye: Optimal Estimation of Discrete Distribution under Local Differential Privacy (slides), risk tables",
    _run,
)
