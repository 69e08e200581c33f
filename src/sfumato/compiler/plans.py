"""The result of ``plan``: the compared mechanisms with their expected errors."""

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
    quantity,
    read_flag,
    read_integer,
    read_items,
    read_number,
    read_string,
    reads_document,
)
from sfumato.compiler.report_length import SHORT, MaxBits, ReportLength
from sfumato.compiler.solvers.result import relative_gap
from sfumato.domain import checked_distribution
from sfumato.errors import InvalidInput, NoMechanism, UnknownLabel
from sfumato.mechanisms import Mechanism, mechanism_from_spec
from sfumato.policy import Policy, disclosure_warnings, policy_from_dict
from sfumato.questions import Question

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Plan", "Row"]

_ROW_KEYS = ("name", "mechanism", "value", "risk", "half_l1", "worst", "bits", "bound", "decoding", "classical")
_OPTIONAL_ROW_KEYS = ("stronger",)
_PLAN_KEYS = ("policy", "n", "utility", "prior", "max_bits", "rows", "reason", "skipped")
_OPTIONAL_PLAN_KEYS = ("question",)


@dataclass(frozen=True, repr=False)
class Row:
    """One mechanism of a :class:`Plan`, with its expected errors for the number of people n of the plan.

    Parameters
    ----------
    name
        Short name of the mechanism, such as ``"rr"`` for randomized response. ``design(policy, mechanism=name)`` builds
        it.
    mechanism
        The mechanism itself.
    value
        Utility by which the plan compares mechanisms. For the utility ``"estimation"`` it equals ``risk``; for other
        utilities see :func:`plan`. With a question, it is the expected squared error of the answers. None if it could
        not be computed in time.
    risk
        Risk of the unbiased estimate: the exact expected squared l2 error of all frequencies from n reports, if values
        follow the prior of the plan.
    half_l1
        Half the expected l1 error of the same estimate (its total variation error), in the normal approximation. It
        decreases as 1/√n and may exceed 1.
    worst
        The risk at the distribution of values where it is greatest.
    bits
        Length of a report in bits.
    bound
        Bound on the ``value`` of every mechanism that obeys the policy: a lower bound for errors and losses, an upper
        bound for information. For estimation, it holds in the limit of many reports. None if no useful bound is known.
    decoding
        Order of the number of operations that an estimate over k values takes, such as ``"k log k"``.
    classical
        Whether the mechanism is a classical one: it satisfies ε-LDP between all values, at the greatest ε that implies
        the policy.
    stronger
        The policy in words for which the mechanism is made, if that is a stronger policy, which implies the one of the
        plan. None if the mechanism is made for the policy of the plan or is classical.

    Examples
    --------
    >>> from sfumato import Domain, Uniform, plan
    >>> compared = plan(Uniform(Domain(["yes", "no", "maybe"]), 1), n=1000)
    >>> compared["rr"]
    <Row rr: risk 0.005027, TV 0.04899, 2 bits>
    >>> compared["rr"].bits, compared["rr"].classical
    (2, True)
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
    stronger: str | None = None

    @property
    def tv(self) -> float:
        """The expected total variation error of the unbiased estimate: ``half_l1``, but at most 1.

        With too few reports, an unbiased estimate may be farther from the truth than any distribution is. The property
        then returns 1, which means that nothing is learned.
        """
        return min(self.half_l1, 1.0)

    @property
    def shown_tv(self) -> str:
        """The expected total variation error as a string for tables: four digits, or ``"> 1"``."""
        return f"{self.tv:.4g}" if self.half_l1 <= 1 else "> 1"

    @property
    def ratio(self) -> float | None:
        """The larger of value/bound and bound/value, at least 1; 1 means optimal.

        None if the value or a finite bound is not known, or if one of them is 0.
        """
        if not self.value or not self.bound or not math.isfinite(self.bound):
            return None
        return max(self.value / self.bound, self.bound / self.value)

    @property
    def shown_ratio(self) -> str | None:
        """The value divided by the bound, as a string with two decimals for tables; None if ``ratio`` is None.

        It is at least 1 if smaller values are better, and at most 1 if larger values are better.
        """
        if self.ratio is None or self.value is None or self.bound is None:
            return None
        return f"{self.value / self.bound:.2f}"

    @property
    def gap(self) -> float | None:
        """The relative optimality gap, |value - bound| / max(|value|, |bound|); 0 means optimal.

        None if the value or the bound is not known.
        """
        if self.value is None or self.bound is None:
            return None
        return relative_gap(self.value, self.bound)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            One entry per field, ``"stronger"`` only if it is not None. ``"mechanism"`` is ``mechanism.spec``, the dict
            that ``mechanism_from_spec`` reads. Infinite numbers are the strings ``"inf"`` and ``"-inf"``.
        """
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
            **({} if self.stronger is None else {"stronger": self.stronger}),
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> Row:
        """Return the row that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        Row
            A row equal to the one that was written.

        Raises
        ------
        InvalidInput
            If the dict is malformed, or ``risk``, ``half_l1`` or ``worst`` is negative.
        """
        parts = check_keys("Row", "the document", document, required=_ROW_KEYS, optional=_OPTIONAL_ROW_KEYS)
        stronger = parts.get("stronger")
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
            stronger=None if stronger is None else read_string("Row", "stronger", stronger),
        )

    def __repr__(self) -> str:
        return f"<Row {self.name}: risk {self.risk:.4g}, TV {self.shown_tv}, {quantity(self.bits, 'bit')}>"


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """The mechanisms that :func:`plan` compared for a policy, by their expected error.

    Print a plan to see it as a table. ``compared["subset"]`` returns the :class:`Row` of one mechanism, and iteration
    yields all rows. ``to_dict`` stores a plan, ``to_pandas`` converts it, and ``plot`` draws it.

    Parameters
    ----------
    policy
        The policy that every mechanism obeys.
    n
        Number of people: the ``n`` of the call, or the number that its ``target`` requires.
    rows
        The compared mechanisms, the best value first, with errors for n people. Rows with longer reports than those of
        the recommended one, ``best``, may come before it.
    reason
        One sentence that explains the recommendation.
    utility
        Name of the utility by which the mechanisms are compared, such as ``"estimation"`` (see :func:`plan`).
    prior
        The distribution of values that the caller passed, in domain order; None if the caller passed none. Errors are
        then predicted at the default distribution of :func:`plan`.
    max_bits
        Length of a recommended report in bits: a limit, ``"short"``, or None for no limit (see :func:`plan`).
    skipped
        The mechanisms that were not compared, with the reasons, in words; None if all were compared.
    question
        The :class:`Question` by whose answers the mechanisms are compared; None for all frequencies.

    Examples
    --------
    >>> from sfumato import Domain, Uniform, plan
    >>> compared = plan(Uniform(Domain(["yes", "no", "maybe"]), 1), n=1000)
    >>> print(compared)
    uniform policy over 3 values, n = 1,000
       mechanism          l2 risk       TV  bits  × bound  decoding
    *  rr               0.0050268  0.04899     2     1.00  k
       subset           0.0050268  0.04899     3     1.00  k per report
       unary              0.01242  0.07701     3     2.47  k per report
       unary-optimized   0.012715  0.07792     3     2.53  k per report
       hadamard          0.013715  0.08092     2     2.73  k log k
    rr: optimal, expected squared error 0.00503, total variation error about 0.049, 2 bits per report
    >>> compared.best.name, compared.saving
    ('rr', 1.0)
    """

    policy: Policy
    n: int
    rows: tuple[Row, ...]
    reason: str
    utility: str = "estimation"
    prior: tuple[float, ...] | None = None
    max_bits: MaxBits = None
    skipped: str | None = None
    question: Question | None = None

    @property
    def best(self) -> Row:
        """The recommended row: the one with the best value among those whose reports have at most ``max_bits`` bits.

        If ``max_bits`` is ``"short"``, it is the best row with at most ⌈log2 k⌉ + 8 bits for k values, or the first row
        if that one is not within 5% of it. Of equally good rows, it is the one with the shortest reports. NoMechanism
        is raised if ``max_bits`` is a limit and no report is short enough.
        """
        return self._best_of(self.rows)

    @property
    def classical(self) -> Row:
        """The row that ``best`` would be if only the classical mechanisms were compared (``Row.classical``).

        NoMechanism is raised if the plan has no such row.
        """
        return self._best_of(tuple(row for row in self.rows if row.classical))

    @property
    def bound(self) -> float | None:
        """The bound on the value of every mechanism that obeys the policy (see :class:`Row`); None if unknown."""
        return self.best.bound

    @property
    def gap(self) -> float | None:
        """The relative optimality gap of the best row (see ``Row.gap``); 0 means optimal, None that it is not known."""
        return self.best.gap

    @property
    def saving(self) -> float:
        """The number of people that the best classical mechanism needs, divided by the number that the best row needs.

        Both numbers are for the same exact expected squared l2 error of the unbiased estimate, or of its answers to the
        question, at the prior of the plan. A saving of 3 means that classical LDP needs three times as many people.
        Other errors, such as total variation or the errors of projected estimates, have other ratios.
        """
        best, classical = (self.error(row) for row in (self.best, self.classical))
        if best == 0 or math.isinf(best):
            return 1.0 if classical == best else math.inf
        return classical / best

    def error(self, row: Row) -> float:
        """Return the expected squared error of a row: that of the answers to the question, or of all frequencies.

        Parameters
        ----------
        row
            A row of the plan.

        Returns
        -------
        float
            ``row.risk``, or ``row.value`` if the plan has a question.
        """
        return row.risk if self.question is None or row.value is None else row.value

    def standard_error(self, row: Row) -> float:
        """Return the standard error of an answer: the root mean square if the question has several answers.

        Parameters
        ----------
        row
            A row of the plan.

        Returns
        -------
        float
            The square root of ``error(row)`` divided by the number of answers.
        """
        answers = len(self.policy.domain) if self.question is None else len(self.question.names)
        return math.sqrt(self.error(row) / answers)

    @property
    def warnings(self) -> list[str]:
        """The warnings about values that a single report may reveal, one string each; empty if there are none."""
        return disclosure_warnings(self.policy)

    @property
    def _length(self) -> ReportLength:
        """The meaning of ``max_bits`` for the domain of the policy."""
        return ReportLength(self.max_bits, len(self.policy.domain))

    def _best_of(self, rows: tuple[Row, ...]) -> Row:
        """Return the recommended one of these rows; raise NoMechanism if there is none."""
        index = self._length.recommended([row.value for row in rows], [row.bits for row in rows])
        if index is None:
            if not rows or self._length.limit is None:
                raise NoMechanism(
                    "this plan contains no classical mechanism. Call plan(policy, n) without mechanism= and with the "
                    "utility 'estimation', which compares them."
                )
            raise NoMechanism(
                f"no compared mechanism has reports of at most {quantity(self._length.limit, 'bit')}. "
                f"Set max_bits to at least {min(row.bits for row in rows)}."
            )
        return rows[index]

    def __getitem__(self, name: str) -> Row:
        """Return the row of the mechanism with this short name; raise UnknownLabel if the plan has no such row."""
        for row in self.rows:
            if row.name == name:
                return row
        raise UnknownLabel("a plan", "the mechanism", f"be one of {', '.join(row.name for row in self.rows)}", name)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            One entry per field. ``"policy"`` is ``policy.to_dict()``, and every row is ``row.to_dict()``.
            ``"max_bits"`` is an integer, the string ``"short"`` or None. ``"question"`` is present if it is not None.
            Infinite numbers are the strings ``"inf"`` and ``"-inf"``.
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
            **({} if self.question is None else {"question": self.question.to_dict()}),
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> Plan:
        """Return the plan that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        Plan
            A plan equal to the one that was written.

        Raises
        ------
        InvalidInput
            If the dict is malformed, the domain of a mechanism is not that of the policy, or the prior is not a
            distribution.

        Notes
        -----
        The function does not check the errors, the order of the rows, or that the mechanisms obey the policy. Audit a
        mechanism from a stored plan with :func:`audit` before you use it.
        """
        parts = check_keys("Plan", "the document", document, required=_PLAN_KEYS, optional=_OPTIONAL_PLAN_KEYS)
        policy, prior, max_bits, skipped = (parts[key] for key in ("policy", "prior", "max_bits", "skipped"))
        policy = policy_from_dict(policy)
        rows = tuple(map(Row.from_dict, read_items("Plan", "rows", parts["rows"])))
        for row in rows:
            if row.mechanism.domain != policy.domain:
                must = "equal the domain of the policy"
                raise InvalidInput("Plan", f"the domain of {row.name}", must, row.mechanism.domain)
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
            max_bits=max_bits if max_bits in (None, SHORT) else read_integer("Plan", "max_bits", max_bits, 1),
            skipped=None if skipped is None else read_string("Plan", "skipped", skipped),
            question=Question.from_dict(parts["question"]).checked(policy.domain) if "question" in parts else None,
        )

    def plot(self) -> Figure:
        """Draw one bar per mechanism: its expected total variation error, or its value for another utility.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (``pip install "sfumato[plot]"``).
        """
        figure: Figure = plot_result(self)
        return figure

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        rows = self.rows
        return {
            "mechanism": [row.name for row in rows],
            **({} if self.utility == "estimation" else {self.utility: [row.value for row in rows]}),
            **({} if self.question is None else {"standard_error": [self.standard_error(row) for row in rows]}),
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
            **self._shown_errors(columns),
            "bits": columns["bits"],
            "× bound": [row.shown_ratio for row in self.rows],
            "decoding": columns["decoding"],
        }

    def _shown_errors(self, columns: Mapping[str, Sequence[Any]]) -> Mapping[str, Sequence[Any]]:
        """Return the columns of errors: the standard error of the answers, or the errors of all frequencies."""
        if self.question is not None:
            return {"standard error": columns["standard_error"]}
        return {"l2 risk": columns["risk"], "TV": _right_aligned([row.shown_tv for row in self.rows])}

    @property
    def _fits(self) -> bool:
        """Whether at least one mechanism has reports within ``max_bits``."""
        limit = self._length.limit
        return any(limit is None or row.bits <= limit for row in self.rows)

    def _title(self) -> str:
        suffix = "" if self.question is None else f", question {self.question.name}"
        return f"{self.policy.kind} policy over {quantity(len(self.policy.domain), 'value')}{suffix}, n = {self.n:,}"

    def _notes(self) -> Sequence[str]:
        return [*filter(None, [self.reason]), *(f"WARNING: {warning}" for warning in self.warnings)]

    def __repr__(self) -> str:
        best = f", best {self.best!r}" if self._fits else ""
        return f"<Plan: {self._title()}, {quantity(len(self.rows), 'mechanism')}{best}>"


def _right_aligned(cells: Sequence[str]) -> list[str]:
    """Pad strings on the left, so that a table aligns them like numbers."""
    width = max(map(len, cells), default=0)
    return [cell.rjust(width) for cell in cells]
