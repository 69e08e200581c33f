"""The result of ``plan``: the compared mechanisms with their expected errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._core import (
    Floats,
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
    rounded_up,
)
from sfumato.compiler.predictions import Assumption, PredictedError, Visible, value_errors
from sfumato.compiler.report_length import SHORT, MaxBits, ReportLength
from sfumato.compiler.solvers.result import relative_gap
from sfumato.domain import Domain, checked_distribution
from sfumato.errors import InvalidInput, NoMechanism, UnknownLabel
from sfumato.mechanisms import Mechanism, mechanism_from_spec
from sfumato.policy import Policy, disclosure_warnings, policy_from_dict
from sfumato.questions import Question

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Plan", "Row", "ordered_by_method"]

_ROW_KEYS = ("name", "mechanism", "value", "risk", "half_l1", "worst", "bits", "bound", "decoding", "classical")
_OPTIONAL_ROW_KEYS = ("stronger", "predicted", "central")
_PLAN_KEYS = ("policy", "n", "utility", "prior", "max_bits", "rows", "reason", "skipped")
_PREDICTION_KEYS = ("method", "truth", "truth_words", "classical_people")
_OPTIONAL_PLAN_KEYS = ("question", *_PREDICTION_KEYS)
#: Utilities of plans whose recommended mechanism is meant to estimate frequencies.
_FREQUENCY_UTILITIES = ("estimation", "worst-estimation")
#: Fraction of values without an expected difference from zero above which a plan warns.
_MANY_LOST = 0.5
#: Standard errors by which simulated errors must differ to change the order of rows, because many are compared.
_CERTAIN = 3.0


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
        decreases as 1/√n. With few people it exceeds 1, the greatest distance between distributions, because the
        estimate is not a distribution.
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
    predicted
        The simulated error of the method and the truth of the plan. None if the plan was made without ``truth`` and
        ``method``, or if the method does not support the mechanism.
    central
        Certified central level ε of n shuffled reports (see :func:`amplify`). None if the plan was made without
        ``delta``, or if the law of the mechanism is too large.

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
    predicted: PredictedError | None = None
    central: float | None = None

    @property
    def tv(self) -> float:
        """The expected total variation error: ``predicted.tv``, or ``half_l1`` without a prediction."""
        return self.half_l1 if self.predicted is None else self.predicted.tv

    @property
    def shown_tv(self) -> str:
        """The expected total variation error as a string for tables: four digits, with ± if it was simulated."""
        if self.predicted is not None:
            return f"{self.tv:.4f} ± {self.predicted.tv_error:.4f}"
        return f"{self.tv:.4g}"

    @property
    def shown_central(self) -> str:
        """The central level as a string for tables; a hyphen if it is not known."""
        return "-" if self.central is None else rounded_up(self.central, 4)

    @property
    def squared(self) -> float:
        """The expected squared l2 error: ``predicted.squared``, or ``risk`` without a prediction."""
        return self.risk if self.predicted is None else self.predicted.squared

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
            One entry per field; ``"stronger"``, ``"predicted"`` and ``"central"`` only if they are not None.
            ``"mechanism"`` is ``mechanism.spec``, the dict that ``mechanism_from_spec`` reads. Infinite numbers are the
            strings ``"inf"`` and ``"-inf"``.
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
            **({} if self.predicted is None else {"predicted": self.predicted.to_dict()}),
            **({} if self.central is None else {"central": self.central}),
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
            predicted=PredictedError.from_dict(parts["predicted"]) if "predicted" in parts else None,
            central=read_number("Row", "central", parts["central"], least=0.0) if "central" in parts else None,
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
        The compared mechanisms, the best value first, with errors for n people. With ``truth`` or ``method``, the
        smallest simulated total variation error is first; errors that differ by less than three standard errors keep
        the order of values. Rows with longer reports than those of the recommended one, ``best``, may come before it.
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
    method
        Method of :func:`estimate` whose errors are predicted.
    truth
        The true distribution at which the errors of the method were simulated, in domain order. None if the plan was
        made without ``truth`` and ``method``; errors are then those of the unbiased estimate at ``prior``.
    truth_words
        The truth in words, as the title of the table shows it; None if ``truth`` is None.
    classical_people
        Number of people with which the best classical mechanism has the same expected total variation error by
        ``method`` as the best row has with n people. None if ``truth`` is None, or if the number is not known.

    Examples
    --------
    >>> from sfumato import Domain, Uniform, plan
    >>> compared = plan(Uniform(Domain(["yes", "no", "maybe"]), 1), n=1000)
    >>> print(compared)
    uniform policy over 3 values, n = 1,000, equally frequent values, method unbiased
       mechanism          l2 risk  ± per value       TV  bits  × bound  decoding
    *  rr               0.0050268       0.0409  0.04899     2     1.00  k
       subset           0.0050268       0.0409  0.04899     3     1.00  k per report
       unary              0.01242       0.0643  0.07701     3     2.47  k per report
       unary-optimized   0.012715       0.0651  0.07792     3     2.53  k per report
       hadamard          0.013715       0.0676  0.08092     2     2.73  k log k
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
    method: str = "unbiased"
    truth: tuple[float, ...] | None = None
    truth_words: str | None = None
    classical_people: int | None = None

    @property
    def best(self) -> Row:
        """The recommended row: the first one whose reports have at most ``max_bits`` bits.

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

        A saving of 3 means that classical LDP needs three times as many people. If the plan was made with ``truth`` or
        ``method``, both numbers are for the same simulated total variation error of this method. Otherwise they are for
        the same exact expected squared l2 error of the unbiased estimate, or of its answers to the question, at the
        prior of the plan. The ratios differ, because other methods remove more of a larger noise.
        """
        if self.classical_people is not None:
            return self.classical_people / self.n
        best, classical = (self.error(row) for row in (self.best, self.classical))
        if best == 0 or math.isinf(best):
            return 1.0 if classical == best else math.inf
        return classical / best

    def error(self, row: Row) -> float:
        """Return the expected squared error of a row: that of the answers to the question, or of all frequencies.

        It is the error of the unbiased estimate, at the prior of the plan.

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

    def value_errors(self, row: Row | None = None) -> Floats:
        """Return the expected error of each frequency: the root mean square over surveys of n people.

        Parameters
        ----------
        row
            A row of the plan; the recommended one by default.

        Returns
        -------
        numpy.ndarray
            The ± of each value at its expected frequency, shape (k,), in domain order. It is exact for the method
            ``"unbiased"``, and simulated for other methods.

        Raises
        ------
        NotIdentifiable
            If the reports of the mechanism do not determine all frequencies.
        """
        return value_errors((self.best if row is None else row).mechanism, self.n, self._assumed)

    @property
    def _assumed(self) -> Assumption:
        """The truth and the method at which errors are predicted."""
        if self.truth is None:
            return Assumption.read("Plan", None, self.method, self.prior, self.policy.domain)
        return Assumption(np.array(self.truth), self.truth_words or "", self.method)

    @property
    def warnings(self) -> list[str]:
        """The warnings about this plan, one string each; empty if there are none.

        They name values that a single report may reveal. If most values cannot be expected to differ from zero, they
        state how many can, and from which frequency on every value can.
        """
        return [*disclosure_warnings(self.policy), *self._warnings_of_few_people()]

    def _warnings_of_few_people(self) -> list[str]:
        """Return a warning if most expected frequencies are within the noise of the best mechanism."""
        if self.question is not None or self.utility not in _FREQUENCY_UTILITIES or not self._fits:
            return []
        if math.isinf(self.best.risk):  # nothing can be estimated, which the reason states
            return []
        assumed = self._assumed
        visible = Visible.of(self.best.mechanism, self.n, assumed.truth)
        people, present = quantity(self.n, "person", "people"), int(np.sum(assumed.truth > 0))
        seen = int(visible.values.sum())
        if present - seen <= _MANY_LOST * present:
            return []
        if visible.least > 1:
            return [f"{people} are too few: no value can be expected to differ from zero, however frequent"]
        limit = f"every value above {100 * visible.least:.2g}% (standard error {100 * visible.error:.2g}%)"
        if seen == 0:
            hint = "; pass the frequencies that you expect as truth" if self.truth is None else ""
            return [f"with {assumed.words}, no value can be expected to differ from zero; {people} show {limit}{hint}"]
        share = f"{float(assumed.truth[visible.values].sum()):.0%} of people"
        return [
            f"with {assumed.words} and {people}, {seen:,} of {quantity(present, 'value')} can be expected to differ "
            f"from zero, among them {limit}; {share} have these values"
        ]

    @property
    def _length(self) -> ReportLength:
        """The meaning of ``max_bits`` for the domain of the policy."""
        return ReportLength(self.max_bits, len(self.policy.domain))

    def _best_of(self, rows: tuple[Row, ...]) -> Row:
        """Return the recommended one of these rows; raise NoMechanism if there is none."""
        index = self._length.recommended([self._criterion(row) for row in rows], [row.bits for row in rows])
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

    @property
    def is_by_method(self) -> bool:
        """Whether rows are in the order of the simulated errors of ``method``, not of their values."""
        return self.truth is not None and self.utility == "estimation" and self.question is None

    def _criterion(self, row: Row) -> float | None:
        """Return the number by which rows are in order; the square of a total variation error is like a risk.

        Simulated errors that cannot be distinguished from that of the first row count as equal to it.
        """
        first = self.rows[0]
        if not self.is_by_method:
            return row.value
        if row.predicted is None or first.predicted is None:
            return None
        return (row if _is_smaller(first, row) else first).tv ** 2

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
            ``"method"``, ``"truth"``, ``"truth_words"`` and ``"classical_people"`` are present if there is a ``truth``.
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
            **self._prediction_document(),
        }

    def _prediction_document(self) -> dict[str, Any]:
        """Return the entries of the document that state what predictions assume; empty without predictions."""
        if self.truth is None:
            return {}
        return {**{key: getattr(self, key) for key in _PREDICTION_KEYS}, "truth": list(self.truth)}

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
            **_read_prediction(parts, policy.domain),
        )

    def plot(self) -> Figure:
        """Draw one bar per mechanism: its expected total variation error, or its value for another utility.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (the extra ``plot``).
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
            **self._predicted_columns(),
            "half_l1": [row.half_l1 for row in rows],
            **({"central": [row.central for row in rows]} if self._has_central else {}),
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
            **({"central ε": _right_aligned([row.shown_central for row in self.rows])} if self._has_central else {}),
            "bits": columns["bits"],
            "× bound": [row.shown_ratio for row in self.rows],
            "decoding": columns["decoding"],
        }

    @property
    def _has_central(self) -> bool:
        """Whether the central level of some mechanism is known."""
        return any(row.central is not None for row in self.rows)

    def _shown_errors(self, columns: Mapping[str, Sequence[Any]]) -> Mapping[str, Sequence[Any]]:
        """Return the columns of errors: the standard error of the answers, or the errors of all frequencies."""
        if self.question is not None:
            return {"standard error": columns["standard_error"]}
        size = len(self.policy.domain)
        known = [self.truth is None or row.predicted is not None for row in self.rows]
        rows = [row if is_known else None for row, is_known in zip(self.rows, known, strict=True)]
        return {
            "l2 risk": [None if row is None else row.squared for row in rows],
            "± per value": [None if row is None else f"{math.sqrt(row.squared / size):.3g}" for row in rows],
            "TV": _right_aligned(["-" if row is None else row.shown_tv for row in rows]),
        }

    def _predicted_columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns of simulated errors; empty without predictions."""
        if self.truth is None:
            return {}
        predicted = [row.predicted for row in self.rows]
        names = ("tv_error", "squared", "squared_error")
        return {name: [None if each is None else getattr(each, name) for each in predicted] for name in names}

    @property
    def _fits(self) -> bool:
        """Whether at least one mechanism has reports within ``max_bits``."""
        limit = self._length.limit
        return any(limit is None or row.bits <= limit for row in self.rows)

    def _subject(self) -> str:
        """Return the policy, the question and the number of people in words."""
        suffix = "" if self.question is None else f", question {self.question.name}"
        return f"{self.policy.kind} policy over {quantity(len(self.policy.domain), 'value')}{suffix}, n = {self.n:,}"

    @property
    def title(self) -> str:
        """One line that states the policy, the number of people, and the truth and method that errors assume."""
        assumed = self._assumed
        method = f", method {assumed.method}" if self.question is None else ""
        return f"{self._subject()}, {assumed.words}{method}{', ordered by TV' if self.is_by_method else ''}"

    def _title(self) -> str:
        return self.title

    def _notes(self) -> Sequence[str]:
        return [*filter(None, [self.reason]), *(f"WARNING: {warning}" for warning in self.warnings)]

    def __repr__(self) -> str:
        best = f", best {self.best!r}" if self._fits else ""
        return f"<Plan: {self._subject()}, {quantity(len(self.rows), 'mechanism')}{best}>"


def ordered_by_method(plan: Plan) -> Plan:
    """Return a plan with its rows in the order of their simulated errors, if it has any.

    The rows are in the order of their values before. A row moves only before rows from which its error differs by more
    than three standard errors.
    """
    rows: list[Row] = []
    for row in plan.rows if plan.is_by_method else ():
        place = len(rows)
        while place and _is_smaller(row, rows[place - 1]):
            place -= 1
        rows.insert(place, row)
    return replace(plan, rows=tuple(rows)) if rows else plan


def _is_smaller(row: Row, other: Row) -> bool:
    """Return whether a simulated error is smaller than another one, by more than three standard errors."""
    if row.predicted is None or other.predicted is None:
        return row.predicted is not None
    error = math.hypot(row.predicted.tv_error, other.predicted.tv_error)
    return row.predicted.tv < other.predicted.tv - _CERTAIN * error


def _read_prediction(parts: Mapping[str, Any], domain: Domain) -> dict[str, Any]:
    """Return the fields of a document that state what predictions assume."""
    if "truth" not in parts:
        return {}
    stated = {key: parts[key] for key in _PREDICTION_KEYS if key in parts}
    check_keys("Plan", "the document", stated, required=_PREDICTION_KEYS)
    truth = [
        read_number("Plan", "a probability of truth", p, least=0.0, most=1.0)
        for p in read_items("Plan", "truth", parts["truth"], len(domain))
    ]
    people = parts["classical_people"]
    return {
        "method": read_string("Plan", "method", parts["method"]),
        "truth": tuple(checked_distribution(truth, domain, "Plan", "truth").tolist()),
        "truth_words": read_string("Plan", "truth_words", parts["truth_words"]),
        "classical_people": None if people is None else read_integer("Plan", "classical_people", people, 1),
    }


def _right_aligned(cells: Sequence[str]) -> list[str]:
    """Pad strings on the left, so that a table aligns them like numbers."""
    width = max(map(len, cells), default=0)
    return [cell.rjust(width) for cell in cells]
