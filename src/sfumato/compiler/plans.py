"""The result of ``plan``: every mechanism that was compared, and what to expect of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato._core import (
    Result,
    check_keys,
    number_document,
    plot_result,
    read_flag,
    read_integer,
    read_items,
    read_number,
    read_string,
    reads_document,
)
from sfumato.compiler.solvers.result import relative_gap
from sfumato.domain import checked_distribution
from sfumato.errors import InvalidInput, NoMechanism, UnknownLabel
from sfumato.mechanisms import Mechanism, mechanism_from_spec
from sfumato.policy import Policy, disclosure_warnings, policy_from_dict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Plan", "Row"]

_ROW_KEYS = ("name", "mechanism", "value", "risk", "half_l1", "worst", "bits", "bound", "decoding", "classical")
_PLAN_KEYS = ("policy", "n", "utility", "prior", "max_bits", "rows", "reason", "skipped")


@dataclass(frozen=True, repr=False)
class Row:
    """One mechanism of a plan, and what to expect of it.

    Parameters
    ----------
    name
        Short name, as ``design(mechanism=)`` accepts it.
    mechanism
        The mechanism.
    value
        Its utility: the risk where frequencies are estimated, else what the utility of the plan measures. None where it
        could not be computed in time.
    risk
        Exact expected squared l2 error of the unbiased estimate, at the prior of the plan.
    half_l1
        Half the expected l1 error of that estimate, in the normal approximation; it falls with √n.
    worst
        The risk at the least favourable distribution.
    bits
        Length of a report.
    bound
        Value that no mechanism is better than (asymptotically, for estimation); None where no such bound is known that
        is near what a mechanism has.
    decoding
        The work of an estimate from k values.
    classical
        Whether it keeps ε-LDP between all values, at the greatest ε that implies the policy.
    """

    name: str
    mechanism: Mechanism
    value: float | None
    risk: float
    half_l1: float
    worst: float
    bits: int
    bound: float | None
    decoding: str
    classical: bool

    @property
    def tv(self) -> float:
        """The expected total variation error, at most 1.

        It is ``half_l1`` while that is below 1. An unbiased estimate may be farther from the truth than any
        distribution is; then there are too few people to learn anything, and 1 says so.
        """
        return min(self.half_l1, 1.0)

    @property
    def shown_tv(self) -> str:
        """The total variation error in print."""
        return f"{self.tv:.4g}" if self.half_l1 <= 1 else "> 1"

    @property
    def ratio(self) -> float | None:
        """Quotient of value and bound: 1 is the best there can be. None where no finite bound is known."""
        if not self.value or not self.bound or not math.isfinite(self.bound):
            return None
        return max(self.value / self.bound, self.bound / self.value)

    @property
    def gap(self) -> float | None:
        """How much better than this a mechanism may be, relative to the larger of value and bound; None if unknown."""
        if self.value is None or self.bound is None:
            return None
        return relative_gap(self.value, self.bound)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as a document of plain JSON types; the mechanism as its spec."""
        return {
            "name": self.name,
            "mechanism": self.mechanism.spec,
            "value": number_document(self.value),
            "risk": number_document(self.risk),
            "half_l1": number_document(self.half_l1),
            "worst": number_document(self.worst),
            "bits": self.bits,
            "bound": number_document(self.bound),
            "decoding": self.decoding,
            "classical": self.classical,
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> Row:
        """Return the row that a document holds: the inverse of ``to_dict``. Reject negative errors."""
        parts = check_keys("Row", "the document", document, required=_ROW_KEYS)
        value, bound = (
            None if parts[key] is None else read_number("Row", key, parts[key], least=-math.inf)
            for key in ("value", "bound")  # an expected loss may be negative
        )
        risk, half_l1, worst = (read_number("Row", key, parts[key], least=0.0) for key in ("risk", "half_l1", "worst"))
        return cls(
            name=read_string("Row", "name", parts["name"]),
            mechanism=mechanism_from_spec(parts["mechanism"]),
            value=value,
            risk=risk,
            half_l1=half_l1,
            worst=worst,
            bits=read_integer("Row", "bits", parts["bits"]),
            bound=bound,
            decoding=read_string("Row", "decoding", parts["decoding"]),
            classical=read_flag("Row", "classical", parts["classical"]),
        )

    def __repr__(self) -> str:
        return f"<Row {self.name}: risk {self.risk:.4g}, TV {self.shown_tv}, {self.bits} bits>"


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """All suitable mechanisms for a policy, the best first.

    A plan is data: it can be compared, stored (``to_dict``), shown as a table and drawn. ``plan["subset"]`` is the row
    of a mechanism.

    Parameters
    ----------
    policy
        The policy that every mechanism obeys.
    n
        Number of people: the number that was given, or the one that a target needs.
    rows
        The mechanisms that were compared, the best first.
    reason
        Why the best row is recommended, in a sentence.
    utility
        What the mechanisms are compared by.
    prior
        The distribution at which errors are predicted, in domain order; None for the uniform one.
    max_bits
        Longest report that may be recommended, in bits.
    skipped
        What was not compared, and why; None where nothing was left out.
    """

    policy: Policy
    n: int
    rows: tuple[Row, ...]
    reason: str
    utility: str = "estimation"
    prior: tuple[float, ...] | None = None
    max_bits: int | None = None
    skipped: str | None = None

    @property
    def best(self) -> Row:
        """The best row within ``max_bits``; among equals the one with the fewest bits."""
        return self._best_of(self.rows)

    @property
    def classical(self) -> Row:
        """The best of the mechanisms that keep classical LDP."""
        return self._best_of(tuple(row for row in self.rows if row.classical))

    @property
    def bound(self) -> float | None:
        """Value that no mechanism is better than; None where no useful bound is known."""
        return self.best.bound

    @property
    def gap(self) -> float | None:
        """How much better than the best row a mechanism may be, from 0 to 1; None where no useful bound is known."""
        return self.best.gap

    @property
    def saving(self) -> float:
        """How many times as many people classical LDP needs for the expected squared error of the best.

        Both sides by the same method: the exact expected squared l2 error of the unbiased estimate, at the distribution
        of the plan. The errors of projected estimates, and total variation, are in other proportions.
        """
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
            least = f" (the least is {min(row.bits for row in rows)})" if rows else ""
            raise NoMechanism(f"no mechanism here has reports of at most {self.max_bits} bits{least}")
        return fitting[0]

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        raise UnknownLabel("a plan", "the mechanism", f"be one of {', '.join(row.name for row in self.rows)}", name)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a document of plain JSON types; ``from_dict`` returns an equal plan.

        The policy is its document, and every mechanism its spec. Infinite numbers are strings.
        """
        return {
            "policy": self.policy.to_dict(),
            "n": self.n,
            "utility": self.utility,
            "prior": None if self.prior is None else list(self.prior),
            "max_bits": self.max_bits,
            "rows": [row.to_dict() for row in self.rows],
            "reason": self.reason,
            "skipped": self.skipped,
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> Plan:
        """Return the plan that a document holds: the inverse of ``to_dict``.

        Every mechanism must have the domain of the policy, and the prior must be a distribution. Errors and the order
        of the rows are trusted, and so is that the mechanisms obey the policy: audit one before it is used.
        """
        parts = check_keys("Plan", "the document", document, required=_PLAN_KEYS)
        policy, prior, max_bits, skipped = (parts[key] for key in ("policy", "prior", "max_bits", "skipped"))
        policy = policy_from_dict(policy)
        rows = tuple(map(Row.from_dict, read_items("Plan", "rows", parts["rows"])))
        for row in rows:
            if row.mechanism.domain != policy.domain:
                raise InvalidInput("Plan", f"the domain of {row.name}", "be that of the policy", row.mechanism.domain)
        if prior is not None:
            read_items("Plan", "prior", prior, len(policy.domain))
            prior = tuple(read_number("Plan", "a probability of prior", p, least=0.0, most=1.0) for p in prior)
            checked_distribution(prior, policy.domain, "Plan", "prior")
        return cls(
            policy=policy,
            n=read_integer("Plan", "n", parts["n"], 1),
            rows=rows,
            reason=read_string("Plan", "reason", parts["reason"]),
            utility=read_string("Plan", "utility", parts["utility"]),
            prior=prior,
            max_bits=None if max_bits is None else read_integer("Plan", "max_bits", max_bits),
            skipped=None if skipped is None else read_string("Plan", "skipped", skipped),
        )

    def plot(self) -> Figure:
        """Draw the expected error of every mechanism as a bar; needs matplotlib."""
        figure: Figure = plot_result(self)
        return figure

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        rows = self.rows
        return {
            "mechanism": [row.name for row in rows],
            **({} if self.utility == "estimation" else {self.utility: [row.value for row in rows]}),
            "risk": [row.risk for row in rows],
            "worst": [row.worst for row in rows],
            "tv": [row.tv for row in rows],
            "half_l1": [row.half_l1 for row in rows],
            "bits": [row.bits for row in rows],
            "bound": [row.bound for row in rows],
            "ratio": [row.ratio for row in rows],
            "decoding": [row.decoding for row in rows],
            "classical": [row.classical for row in rows],
        }

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        columns = self._columns()
        best = self.best if self._fits else None
        return {
            "": ["*" if row is best else "" for row in self.rows],
            "mechanism": columns["mechanism"],
            **({} if self.utility == "estimation" else {self.utility: columns[self.utility]}),
            "l2 risk": columns["risk"],
            "TV": _right_aligned([row.shown_tv for row in self.rows]),
            "bits": columns["bits"],
            "of the bound": columns["ratio"],
            "decoding": columns["decoding"],
        }

    @property
    def _fits(self) -> bool:
        """Whether some mechanism has reports that are short enough."""
        return any(self.max_bits is None or row.bits <= self.max_bits for row in self.rows)

    def _title(self) -> str:
        return f"{self.policy.kind} policy over {len(self.policy.domain):,} values, n = {self.n:,}"

    def _notes(self) -> Sequence[str]:
        return [*filter(None, [self.reason]), *(f"WARNING: {warning}" for warning in self.warnings)]

    def __repr__(self) -> str:
        best = f", best {self.best!r}" if self._fits else ""
        return f"<Plan: {self._title()}, {len(self.rows)} mechanisms{best}>"


def _right_aligned(cells: Sequence[str]) -> list[str]:
    """Return cells that are strings as a table shows numbers."""
    width = max(map(len, cells), default=0)
    return [cell.rjust(width) for cell in cells]
