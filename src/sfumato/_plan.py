"""The verb ``plan``: every suitable mechanism for a policy, with the error to expect before anybody is asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._estimate.decoders import decoder_for
from sfumato.domain import Domain
from sfumato.errors import CannotDecide, InvalidInput
from sfumato.exact import Epsilon
from sfumato.mechanisms import (
    HadamardResponse,
    Mechanism,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from sfumato.mechanisms.base import checked_distribution
from sfumato.policy import Policy, Prior, Secret, Uniform
from sfumato.policy.pairwise import PairwisePolicy

__all__ = ["MECHANISMS", "Plan", "Row", "plan"]

#: By short name: how to build a mechanism that keeps ε-LDP, and what decoding its reports costs for k values.
MECHANISMS: dict[str, tuple[Callable[[Domain, Epsilon], Mechanism], str]] = {
    "rr": (RandomizedResponse, "k"),
    "unary": (UnaryEncoding, "k per report"),
    "unary-optimized": (lambda domain, epsilon: UnaryEncoding(domain, epsilon, optimized=True), "k per report"),
    "subset": (SubsetSelection, "k per report"),
    "hadamard": (HadamardResponse, "k log k"),
}

#: E|N(0, 1)|.
_MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class Row:
    """One mechanism for the policy, and what to expect of it.

    ``risk``: exact expected squared l2 error of the unbiased estimate. ``tv``: expected total variation error in the
    normal approximation. ``bound``: the least risk that any mechanism can have asymptotically, where it is known.
    ``worst``: the risk at the least favourable distribution.
    """

    name: str
    mechanism: Mechanism
    risk: float
    tv: float
    bits: int
    decoding: str
    bound: float | None
    worst: float | None = None

    @property
    def ratio(self) -> float | None:
        """How far from the bound: 1 is the best there can be."""
        return None if self.bound is None else self.risk / self.bound


@dataclass(frozen=True)
class Plan:
    """All suitable mechanisms, the best first; ``n`` is what was asked, or what a target needs."""

    policy: Policy
    n: int
    rows: tuple[Row, ...]
    max_bits: int | None = None

    @property
    def best(self) -> Row:
        """The least risk within ``max_bits``; among equals the fewest bits."""
        fitting = [row for row in self.rows if self.max_bits is None or row.bits <= self.max_bits]
        if not fitting:
            least = min(row.bits for row in self.rows)
            raise CannotDecide(f"no mechanism here has reports of at most {self.max_bits} bits (the least is {least})")
        return min(fitting, key=lambda row: (row.risk, row.bits))

    def why(self) -> str:
        """The recommendation in a sentence."""
        best = self.best
        limit = "" if self.max_bits is None else f" within {self.max_bits} bits"
        known = "" if best.ratio is None else f", {best.ratio:.3g} times the least any mechanism can have"
        return (
            f"{best.name}: the least expected squared error{limit} ({best.risk:.3g}{known}), "
            f"total variation about {best.tv:.2g}, {best.bits} bits a report"
        )

    def __str__(self) -> str:
        lines = [f"{self.policy.kind} policy over {len(self.policy.domain)} values, n = {self.n}"]
        lines.append(f"{'':2}{'mechanism':18}{'l2 risk':>12}{'TV':>10}{'bits':>8}  decoding      of the bound")
        for row in self.rows:
            mark = "* " if row is self.best else "  "
            ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
            lines.append(f"{mark}{row.name:18}{row.risk:12.4g}{row.tv:10.4g}{row.bits:8}  {row.decoding:13} {ratio}")
        return "\n".join([*lines, self.why()])


def plan(
    policy: Policy,
    n: int | None = None,
    *,
    target: float | None = None,
    p: Sequence[float] | npt.NDArray[np.float64] | None = None,
    max_bits: int | None = None,
) -> Plan:
    """Compare every suitable mechanism at n reports, or find the n at which the best one meets a target.

    ``target`` is an expected total variation error. ``p`` is the distribution at which errors are predicted, uniform
    unless given (for most of these mechanisms the worst case). ``max_bits`` limits the recommendation.
    """
    if (n is None) == (target is None):
        raise InvalidInput("plan", "n and target", "be given one without the other", (n, target))
    if n is not None and n < 1:
        raise InvalidInput("plan", "n", "be at least 1", n)
    if target is not None and not 0 < target < 1:
        raise InvalidInput("plan", "target", "lie between 0 and 1", target)
    rows = tuple(sorted(_rows_of_one_report(policy, p), key=lambda row: (row.risk, row.bits)))
    if n is None:
        assert target is not None
        n = math.ceil((Plan(policy, 1, rows, max_bits).best.tv / target) ** 2)
    return Plan(policy, n, tuple(_scaled(row, n) for row in rows), max_bits)


def safe_epsilon(policy: Policy) -> Epsilon:
    """The greatest ε for which every ε-LDP mechanism obeys the policy."""
    if isinstance(policy, PairwisePolicy):
        return policy.least[0]
    assert isinstance(policy, (Prior, Secret))
    return policy.epsilon  # ε-LDP implies ε-LIP, and ε for every secret whatever the distribution


def _rows_of_one_report(policy: Policy, p: Any) -> list[Row]:
    domain, epsilon = policy.domain, safe_epsilon(policy)
    if len(domain) < 2:
        raise InvalidInput("plan", "the domain", "have at least two values", domain)
    distribution = checked_distribution(p, len(domain))
    # Ye and Barg 2018: subset selection at the right size attains the asymptotic minimum at the uniform distribution.
    bound = SubsetSelection(domain, epsilon).risk(1) if isinstance(policy, Uniform) and p is None else None
    rows = []
    for name, (build, decoding) in MECHANISMS.items():
        mechanism = build(domain, epsilon)
        risk = mechanism.risk(1, distribution)
        tv = expected_tv(mechanism, distribution) if math.isfinite(risk) else math.inf
        rows.append(Row(name, mechanism, risk, tv, mechanism.bits, decoding, bound, mechanism.worst_risk(1)))
    return rows


def expected_tv(mechanism: Mechanism, p: npt.NDArray[np.float64]) -> float:
    """The expected total variation error of the unbiased estimate from one report, in the normal approximation."""
    deviations = np.sqrt(np.maximum(decoder_for(mechanism).variances(p), 0))
    return float(deviations.sum()) * _MEAN_ABSOLUTE_NORMAL / 2


def _scaled(row: Row, n: int) -> Row:
    bound = None if row.bound is None else row.bound / n
    worst = None if row.worst is None else row.worst / n
    return Row(row.name, row.mechanism, row.risk / n, row.tv / math.sqrt(n), row.bits, row.decoding, bound, worst)
