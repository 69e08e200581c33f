"""The verb ``plan``: every suitable mechanism for a policy, with the error to expect before anybody is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._estimate.decoders import decoder_for
from sfumato.bounds import least_risk
from sfumato.candidates import candidates
from sfumato.errors import CannotDecide, InvalidInput, MissingExtra
from sfumato.exact import ZERO
from sfumato.mechanisms import Mechanism
from sfumato.mechanisms.base import MOST_PEOPLE, Frequencies, checked_count, checked_distribution, checked_kind
from sfumato.optimize import Optimum, optimal
from sfumato.optimize.orbits import best_orbits
from sfumato.optimize.weighted import Progress
from sfumato.policy import Blocks, HighLow, Policy, Prior, Uniform, structure_of
from sfumato.policy.pairwise import PairwisePolicy
from sfumato.policy.words import disclosure_warnings

__all__ = ["Plan", "Row", "checked_bits", "expected_tv", "most_outputs", "plan"]

#: Up to so many values the optimal design takes about a second, and is compared without being asked for.
_MOST_VALUES_UNASKED = 10

#: Reports of more bits, a kilobyte, are called long.
_LONG_REPORT = 8192

#: E|N(0, 1)|.
_MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class Row:
    """One mechanism for the policy, and what to expect of it.

    ``name`` is what the plan calls it, ``bits`` the length of a report, ``decoding`` the work of an estimate.
    ``risk``: exact expected squared l2 error of the unbiased estimate. ``tv``: expected total variation error in the
    normal approximation. ``bound``: the least risk that any mechanism can have asymptotically, where it is known.
    ``worst``: the risk at the least favourable distribution. ``classical``: it keeps ε-LDP between all values, at the
    greatest ε that implies the policy.
    """

    name: str
    mechanism: Mechanism
    risk: float
    tv: float
    bits: int
    decoding: str
    bound: float | None
    worst: float
    classical: bool

    @property
    def ratio(self) -> float | None:
        """How far from the bound: 1 is the best there can be. None where no finite one is known."""
        return None if not self.bound or math.isinf(self.bound) else self.risk / self.bound


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
        return self._best_of(self.rows)

    @property
    def classical(self) -> Row:
        """The best of the mechanisms that keep classical LDP."""
        return self._best_of(tuple(row for row in self.rows if row.classical))

    @property
    def saving(self) -> float:
        """How many times as many people classical LDP needs for the expected squared error of the best."""
        if self.best.risk == 0 or math.isinf(self.best.risk):
            return 1.0 if self.classical.risk == self.best.risk else math.inf
        return self.classical.risk / self.best.risk

    @property
    def warnings(self) -> list[str]:
        """What a single reply may give away under the policy; empty where it protects every value."""
        return disclosure_warnings(self.policy)

    def _best_of(self, rows: tuple[Row, ...]) -> Row:
        fitting = [row for row in rows if self.max_bits is None or row.bits <= self.max_bits]
        if not fitting:
            least = min(row.bits for row in rows)
            raise CannotDecide(f"no mechanism here has reports of at most {self.max_bits} bits (the least is {least})")
        return min(fitting, key=lambda row: (row.risk, row.bits))

    def why(self) -> str:
        """The recommendation in a sentence."""
        best = self.best
        if math.isinf(best.risk):
            return f"{best.name}: {self._told_nothing()}, so no number of people suffices"
        limit = "" if self.max_bits is None else f" within {self.max_bits} bits"
        known = "" if best.ratio is None else f", {best.ratio:.3g} times the least any mechanism can have"
        return (
            f"{best.name}: the least expected squared error{limit} ({best.risk:.3g}{known}), "
            f"total variation about {best.tv:.2g}, {self._length()}{self._saved()}"
        )

    def _told_nothing(self) -> str:
        """Why the error is infinite."""
        if _tells_nothing(self.policy):
            return "reports that obey this policy tell nothing, for its level is 0"
        return "its reports cannot tell all values apart, for a level of this policy is 0 or too near it"

    def _length(self) -> str:
        bits = self.best.bits
        if bits <= _LONG_REPORT:
            return f"{bits} bits a report"
        shorter = "; max_bits asks for shorter ones" if self.max_bits is None else ""
        return f"{bits:,} bits a report (some {bits / 8000:,.0f} kB{shorter})"

    def _saved(self) -> str:
        try:
            saving = self.saving
        except CannotDecide:
            return "; no classical mechanism has so short reports"
        if saving <= 1 or math.isinf(saving):
            return ""
        return f"; classical LDP would need {math.ceil(self.n * saving):,} people where this needs {self.n:,}"

    def __str__(self) -> str:
        lines = [f"{self.policy.kind} policy over {len(self.policy.domain)} values, n = {self.n}"]
        lines.append(f"{'':2}{'mechanism':18}{'l2 risk':>12}{'TV':>10}{'bits':>8}  decoding      of the bound")
        for row in self.rows:
            mark = "* " if row is self.best else "  "
            ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
            lines.append(f"{mark}{row.name:18}{row.risk:12.4g}{row.tv:10.4g}{row.bits:8}  {row.decoding:13} {ratio}")
        return "\n".join([*lines, self.why(), *(f"WARNING: {warning}" for warning in self.warnings)])


def plan(
    policy: Policy,
    n: int | None = None,
    *,
    target: float | None = None,
    p: Frequencies | None = None,
    max_bits: int | None = None,
    max_seconds: float | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Compare every suitable mechanism at n reports, or find the n at which the best one meets a target.

    ``target`` is an expected total variation error. ``p`` is the distribution at which errors are predicted, uniform
    unless given (for most of these mechanisms the worst case): in domain order, or with labels (a mapping, a pandas
    Series), by which it is aligned. ``max_bits`` limits the recommendation. Where no
    structure of the policy says what is best, the optimal design is compared too: for small domains always, for larger
    ones if ``max_seconds`` are given to its search. It also bounds what any mechanism can do.
    """
    if (n is None) == (target is None):
        raise InvalidInput("plan", "n and target", "be given one without the other", (n, target))
    checked_kind("plan", "the policy", policy, Policy)
    n = None if n is None else checked_count("plan", n)
    target = None if target is None else _checked_target(target)
    max_bits = checked_bits("plan", max_bits)
    found = _rows_of_one_report(policy, p, max_bits, max_seconds, progress)
    rows = tuple(sorted(found, key=lambda row: (row.risk, row.bits)))
    if n is None:
        assert target is not None
        n = _people_for(target, Plan(policy, 1, rows, max_bits))
    return Plan(policy, n, tuple(_scaled(row, n) for row in rows), max_bits)


def checked_bits(what: str, max_bits: int | None) -> int | None:
    """The most bits that a report may have, or no limit."""
    return None if max_bits is None else checked_count(what, max_bits, "max_bits", 2**32)


def most_outputs(max_bits: int | None) -> int | None:
    """The outputs that so many bits can number; no table comes near 2^64."""
    return None if max_bits is None or max_bits >= 64 else 1 << max_bits


def _checked_target(target: Any) -> float:
    if not isinstance(target, Real) or not 0 < float(target) < 1:
        raise InvalidInput("plan", "target", "lie between 0 and 1", target)
    return float(target)


def _people_for(target: float, one: Plan) -> int:
    """How many meet a total variation error, from the plan of one report."""
    tv = one.best.tv
    if math.isinf(tv):
        raise CannotDecide(f"no number of people meets a target under this policy; {one.why()}")
    root = tv / target
    if root > math.sqrt(MOST_PEOPLE):
        digits = 2 * (math.log10(tv) - math.log10(target))
        raise InvalidInput("plan", "target", f"be met by at most 2^53 people, not some 10^{digits:.0f}", target)
    return max(1, math.ceil(root**2))


def _tells_nothing(policy: Policy) -> bool:
    """Whether no two values may be told apart at all."""
    if isinstance(policy, Prior):
        return policy.epsilon == ZERO
    return isinstance(policy, PairwisePolicy) and policy.greatest_effective[0] == ZERO


def _rows_of_one_report(
    policy: Policy, p: Any, max_bits: int | None, max_seconds: float | None, progress: Progress | None
) -> Iterator[Row]:
    if len(policy.domain) < 2:
        raise InvalidInput("plan", "the domain", "have at least two values", policy.domain)
    distribution = checked_distribution(p, policy.domain, "plan")
    bound = _least_risk(policy) if p is None else None

    def row(name: str, mechanism: Mechanism, decoding: str, classical: bool = False) -> Row:
        risk = mechanism.risk(1, distribution)
        tv = expected_tv(mechanism, distribution) if math.isfinite(risk) else math.inf
        return Row(name, mechanism, risk, tv, mechanism.bits, decoding, bound, mechanism.worst_risk(1), classical)

    optimum = _optimum(policy, distribution, max_bits, max_seconds, progress)
    if optimum is not None:
        bound = optimum.bound if bound is None and math.isfinite(optimum.bound) else bound
        yield row("optimal", optimum.mechanism, "k²")
    for name, candidate in candidates(policy, max_bits).items():
        if not candidate.compared:
            continue
        try:
            yield row(name, candidate.build(), candidate.decoding, candidate.classical)
        except CannotDecide:  # no such mechanism has reports of so few bits
            continue


def _least_risk(policy: Policy) -> float | None:
    """The least risk of one report that any mechanism can have at the uniform distribution, where it is known."""
    known = least_risk(policy)
    if known is not None:
        return known
    try:
        symmetric = best_orbits(policy)
    except (MissingExtra, CannotDecide):
        return None
    return None if symmetric is None else symmetric.bound


def _optimum(
    policy: Policy,
    p: npt.NDArray[np.float64],
    max_bits: int | None,
    max_seconds: float | None,
    progress: Progress | None,
) -> Optimum | None:
    """The optimal design, where it is asked for or quick, and no structure says what is best."""
    simplest = structure_of(policy)
    if isinstance(simplest, (Uniform, HighLow)) or (isinstance(simplest, Blocks) and simplest.across.is_infinite):
        return None
    if isinstance(simplest, PairwisePolicy) and len(policy.domain) == 2:
        return None
    if max_seconds is None and len(policy.domain) > _MOST_VALUES_UNASKED:
        return None
    outputs = most_outputs(max_bits)
    if outputs is not None and outputs < len(policy.domain):
        return None
    try:
        return optimal(policy, p=p, max_seconds=max_seconds, max_outputs=outputs, progress=progress)
    except (MissingExtra, CannotDecide):
        if max_seconds is not None:  # it was asked for
            raise
        return None


def expected_tv(mechanism: Mechanism, p: npt.NDArray[np.float64]) -> float:
    """The expected total variation error of the unbiased estimate from one report, in the normal approximation."""
    deviations = np.sqrt(np.maximum(decoder_for(mechanism).variances(p), 0))
    return float(deviations.sum()) * _MEAN_ABSOLUTE_NORMAL / 2


def _scaled(row: Row, n: int) -> Row:
    bound = None if row.bound is None else row.bound / n
    return replace(row, risk=row.risk / n, tv=row.tv / math.sqrt(n), bound=bound, worst=row.worst / n)
