"""Estimates for public groups of people (a region, a week), for all groups together, and their differences."""

from __future__ import annotations

import math
import types
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import (
    MOST_ROWS,
    FrozenData,
    Result,
    check_keys,
    is_number,
    number_document,
    percent,
    plot_result,
    quantity,
    read_items,
    read_number,
    read_string,
    reads_document,
    unused_name,
)
from sfumato.collecting import check_columns, group_document, read_group
from sfumato.domain import Domain, read_mapping
from sfumato.errors import Description, InvalidInput, UnknownLabel
from sfumato.estimation.documents import GROUPED, VERSION, check_document, read_header
from sfumato.estimation.estimates import Estimate, value_table
from sfumato.estimation.group_answers import GroupedAnswers
from sfumato.estimation.linear import LinearEstimate, check_confidence, weighted_sum
from sfumato.estimation.mechanism_estimates import MechanismEstimate
from sfumato.estimation.sources import frequency_of
from sfumato.questions import Question, read_question

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure

__all__ = ["FrequencyTable", "GroupedEstimate"]

#: Maximum number of frequencies printed in the row of a group.
_MOST_VALUES = 5


@dataclass(frozen=True, eq=False, repr=False)
class GroupedEstimate(FrozenData, Result):
    """One estimate per public group of people, such as a region or a week, and one of all people together.

    Every person belongs to exactly one group, and the group is not secret. ``grouped["north"]`` returns the
    :class:`Estimate` of one group. :func:`estimate_groups` returns objects of this class.

    Parameters
    ----------
    groups
        The estimate of each group, by the name of the group.
    total
        The estimate of all people together.
    columns
        The names of the columns that form the groups, if they have names. With several columns, a group is a tuple.
    weight
        The column that holds the survey weight of each person: one of ``columns``, or None. Only ``answers`` uses
        weights; other numbers describe the people who reported.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate_groups
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv"]), "ln 8")
    >>> north = aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10)
    >>> south = aggregate(mechanism, [0] * 40 + [1] * 50 + [2] * 10)
    >>> print(estimate_groups(mechanism, {"north": north, "south": south}))
    2 groups, method unbiased, frequency ± standard error of 3 values
    group  reports             none              flu              hiv
    north      100  0.7143 ± 0.0700  0.2857 ± 0.0655  0.0000 ± 0.0429
    south      100  0.4286 ± 0.0700  0.5714 ± 0.0714  0.0000 ± 0.0429
    all        200  0.5714 ± 0.0505  0.4286 ± 0.0495  0.0000 ± 0.0303
    """

    groups: Mapping[Any, Estimate]
    total: Estimate
    columns: tuple[str, ...] = field(default=(), kw_only=True)
    weight: str | None = field(default=None, kw_only=True)

    format: ClassVar[str] = "sfumato-grouped-estimate"

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", types.MappingProxyType(dict(self.groups)))
        object.__setattr__(self, "columns", tuple(self.columns))
        check_columns("GroupedEstimate", self.groups, self.columns, self.weight)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "groups": dict(self.groups)}  # a read-only mapping cannot be pickled

    @property
    def _names(self) -> tuple[str, ...]:
        """The names of the columns that form the groups; "group" if they have none."""
        return self.columns or ("group",)

    def _labels(self, group: Any) -> tuple[Any, ...]:
        """Return the labels of a group, with one label per column."""
        return group if len(self.columns) > 1 else (group,)

    def __getitem__(self, group: Hashable) -> Estimate:
        """Return the estimate of a group; raise UnknownLabel, which is also a KeyError, for an unknown group."""
        if group not in self:
            raise UnknownLabel("GroupedEstimate", "the group", f"be one of {list(self.groups)}", group)
        return self.groups[group]

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.groups)

    def __contains__(self, group: object) -> bool:
        try:
            return group in self.groups
        except TypeError:  # a list, or a tuple with a list inside
            return False

    def answers(
        self,
        question: Question | str | None = None,
        *,
        by: str | Sequence[str] | None = None,
        totals: Mapping[Any, float] | None = None,
        strata: str | Sequence[str] | None = None,
    ) -> GroupedAnswers:
        """Estimate the answers to a question in each group, with survey weights and known totals if there are any.

        Parameters
        ----------
        question
            The question, such as ``Ranges([(18, 64)])``, or the name of a question: ``"mean"``, ``"distribution"`` or
            ``"frequencies"``, which is the default.
        by
            Names of the columns that form the groups of the answers. The default is all columns except the weight. An
            empty list gives the answers for all people only.
        totals
            The number of people of each stratum in the population, which is then known: post-stratification. A mapping
            from strata to numbers of at least 0, or a pandas Series with the strata as its index. With several
            columns, a stratum is a tuple.
        strata
            Names of the columns that form the strata of ``totals``. The default is all columns except the weight. If
            columns of ``by`` are among them, each group is adjusted to its own totals. Otherwise all groups are
            adjusted to the same totals (direct standardization).

        Returns
        -------
        GroupedAnswers
            The answers of each group and of all people, with errors and intervals. ``compare`` compares the groups.

        Raises
        ------
        InvalidInput
            If the question or the columns do not fit, a stratum with a positive total has no reports, a stratum with
            reports has no total, or all weights of a group are 0.
        NotIdentifiable
            If the reports do not determine all answers (see :class:`PartialEstimate`).

        Notes
        -----
        The answers are unbiased sums of frequencies, whatever the method of the estimates is. People with weight 0
        count as reports, but do not contribute. See :class:`WeightedEstimate` for the errors of weighted answers.

        Examples
        --------
        >>> import sfumato as sf
        >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain.range(2), "ln 8")
        >>> weights = [1] * 50 + [3] * 50
        >>> counts = sf.aggregate_groups(mechanism, [0] * 60 + [1] * 40, by=["f", "m"] * 50, weights=weights)
        >>> print(sf.estimate_groups(mechanism, counts).answers("mean"))
        1 answer to the question "mean" in 2 groups, 100 reports, weighted by weight, 95% intervals
        group  reports  answer    value  standard_error      low     high  design_effect  effective_n
        f           50  mean    0.62857        0.096616  0.41234  0.81202         1.0667       46.874
        m           50  mean    0.62857        0.096616  0.41234  0.81202         1.0667       46.874
        all        100  mean    0.62857        0.068318  0.48333  0.75825         1.0667       93.747
        """
        fitted = read_question("answers", question, self.total.domain)
        known = None
        if totals is not None:
            known = read_mapping(totals, "answers", "totals", "be a mapping from strata to their totals")
        return GroupedAnswers.of(self, fitted, by, strata, known)

    def difference(self, first: Hashable, second: Hashable) -> FrequencyTable:
        """Estimate the frequency of every value in one group minus its frequency in another group.

        Parameters
        ----------
        first
            Name of the first group.
        second
            Name of the second group, whose frequencies are subtracted.

        Returns
        -------
        FrequencyTable
            A mapping from values to differences, each with its error and interval (:class:`LinearEstimate`).

        Raises
        ------
        InvalidInput
            If both names are the same, or one of them is not a group.
        """
        if first == second:
            raise InvalidInput("difference", "the groups", "be two different groups", Description(f"{first!r} twice"))
        return FrequencyTable(
            "difference", tuple((group, sign, self[group]) for group, sign in ((first, 1.0), (second, -1.0)))
        )

    def weighted(self, weights: Mapping[Any, float]) -> FrequencyTable:
        """Estimate the frequencies in a population that mixes the groups in other proportions (survey weights).

        Parameters
        ----------
        weights
            A mapping from each group's name to its weight, such as its size in the population. Weights are at least 0
            and not all 0. They are divided by their sum.

        Returns
        -------
        FrequencyTable
            A mapping from values to weighted frequencies, each with its error and interval (:class:`LinearEstimate`).

        Raises
        ------
        InvalidInput
            If the weights do not name exactly the groups, are not finite, or are not at least 0 with a positive sum.
        """
        weights = read_mapping(weights, "weighted", "weights", f"name each of the groups {list(self.groups)}")
        if set(weights) != set(self.groups):
            raise InvalidInput("weighted", "weights", f"name each of the groups {list(self.groups)}", list(weights))
        if not all(is_number(weight) and math.isfinite(weight) for weight in weights.values()):
            raise InvalidInput("weighted", "weights", "be finite numbers", dict(weights))
        total = sum(weights.values())
        if total <= 0 or min(weights.values()) < 0:
            raise InvalidInput("weighted", "weights", "be at least 0 and have a positive sum", dict(weights))
        terms = ((group, float(weights[group] / total), estimate) for group, estimate in self.groups.items())
        return FrequencyTable("frequency", tuple(terms))

    # -- tables and pictures -----------------------------------------------------------------------------------

    def to_pandas(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pandas.DataFrame:
        """Return the frequencies as a pandas DataFrame with one row per group and value.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.
        simultaneous
            If True, all intervals of a group together contain the true frequencies with this confidence (Bonferroni
            correction). If False, each interval does so on its own.

        Returns
        -------
        pandas.DataFrame
            The column ``group`` and the columns of ``Estimate.to_pandas``.
        """
        return super().to_pandas(confidence, simultaneous=simultaneous)

    def to_arrow(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pyarrow.Table:
        """Return the table of ``to_pandas`` as an Arrow table.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.
        simultaneous
            If True, all intervals of a group together contain the true frequencies with this confidence (Bonferroni
            correction). If False, each interval does so on its own.

        Returns
        -------
        pyarrow.Table
            The columns of ``to_pandas``. Labels that are tuples become strings.
        """
        return super().to_arrow(confidence, simultaneous=simultaneous)

    def plot(self, confidence: float = 0.95) -> Figure:
        """Draw the frequency of every value in each group, with its interval.

        Parameters
        ----------
        confidence
            Confidence level of the intervals, above 0 and below 1.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (the extra ``plot``).
        """
        figure: Figure = plot_result(self, confidence)
        return figure

    def _columns(self, confidence: float = 0.95, *, simultaneous: bool = False) -> Mapping[str, Sequence[Any]]:
        tables = [estimate._columns(confidence, simultaneous=simultaneous) for estimate in self.groups.values()]
        lengths = [len(next(iter(table.values()))) for table in tables]
        names = zip(self.groups, lengths, strict=True)
        columns: dict[str, Sequence[Any]] = {"group": [group for group, length in names for _ in range(length)]}
        for name in tables[0]:
            parts = [table[name] for table in tables]
            arrays = isinstance(parts[0], np.ndarray)
            columns[name] = cast("Any", np.concatenate(parts)) if arrays else [cell for part in parts for cell in part]
        return columns

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        if not self.total.is_complete:
            return self._shown_answers()
        most = np.argsort(-self.total.frequencies, kind="stable")[:_MOST_VALUES]
        top = (most if len(self.total) > _MOST_VALUES else np.arange(len(self.total))).tolist()
        rows = [*list(self.groups.items())[: MOST_ROWS - 1], ("all", self.total)]
        columns: dict[str, Sequence[Any]] = {
            "group": [str(group) for group, _ in rows],
            "reports": [estimate.n for _, estimate in rows],
        }
        for x in top:
            cells = [f"{estimate.frequencies[x]:.4f} ± {estimate.standard_errors[x]:.4f}" for _, estimate in rows]
            columns[unused_name(str(self.total.domain.label(x)), columns)] = cells
        return columns

    def _shown_answers(self) -> Mapping[str, Sequence[Any]]:
        """Return the printed columns if the reports determine only some sums: those of ``PartialEstimate``."""
        rows = [*list(self.groups.items())[: MOST_ROWS - 1], ("all", self.total)]
        tables = [estimate._columns() for _, estimate in rows]
        columns: dict[str, Sequence[Any]] = {
            "group": [str(group) for group, _ in rows],
            "reports": [estimate.n for _, estimate in rows],
        }
        for x, name in enumerate(tables[0]["answer"][:_MOST_VALUES]):
            columns[name] = [f"{table['value'][x]:.5g} ± {table['standard_error'][x]:.2g}" for table in tables]
        return columns

    def _left_out(self) -> int:
        return max(0, len(self.groups) - MOST_ROWS + 1)

    def _notes(self) -> Sequence[str]:
        weighted = () if self.weight is None else ("These numbers are not weighted; answers(question) are.",)
        return (*weighted, *(f"WARNING: {warning}" for warning in self.total._implausible()))

    def _title(self) -> str:
        if not self.total.is_complete:
            groups = quantity(len(self.groups), "group")
            return f"{groups}, method {self.total.method}, sums that the reports determine ± standard error"
        size, most = len(self.total), _MOST_VALUES
        values = f"the {most} most frequent of {size:,} values" if size > most else quantity(size, "value")
        groups = quantity(len(self.groups), "group")
        return f"{groups}, method {self.total.method}, frequency ± standard error of {values}"

    def __repr__(self) -> str:
        total = self.total
        return f"GroupedEstimate(groups={len(self.groups)}, n={total.n}, values={len(total)}, method={total.method!r})"

    # -- documents ---------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            The dicts of the total and of every group, from ``Estimate.to_dict``. The mechanism is stored once, with the
            total, if all groups use the same one.

        Raises
        ------
        InvalidInput
            If the name of a group is not a string, a finite number, a boolean, None, a date, a time or a tuple of
            these.
        """
        groups = []
        for group, estimate in self.groups.items():
            document = estimate.to_dict()
            if isinstance(self.total, MechanismEstimate) and document.get("mechanism") == self.total.mechanism.spec:
                del document["mechanism"]
            groups.append({"group": group_document(group, f"{type(self).__name__}.to_dict"), "estimate": document})
        document = {"format": self.format, "version": VERSION, "total": self.total.to_dict(), "groups": groups}
        if self.columns:
            document |= {"columns": list(self.columns), "weight": self.weight}
        return document

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> GroupedEstimate:
        """Return the estimates that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        GroupedEstimate
            Estimates equal to those that were written, with the same errors and intervals.

        Raises
        ------
        InvalidInput
            If the dict is malformed, has no group or one group twice, the groups have different domains, or an estimate
            contradicts its counts (see ``Estimate.from_dict``).
        """
        subject = "GroupedEstimate.from_dict"
        read_header(subject, document, cls.format)
        document = check_document(subject, document, ("total", "groups"), ("columns", "weight"))
        total = Estimate.from_dict(document["total"])
        mechanism = total.mechanism if isinstance(total, MechanismEstimate) else None
        groups: dict[Any, Estimate] = {}
        for row in read_items(subject, "groups", document["groups"]):
            row = check_keys(subject, "a row of groups", row, required=("group", "estimate"))
            shared = "mechanism" not in row["estimate"]
            estimate = Estimate.from_dict(row["estimate"], mechanism=mechanism if shared else None)
            group = read_group(subject, row["group"])
            if group in groups:
                must = "contain each group once"
                raise InvalidInput(subject, "groups", must, Description(f"{row['group']!r} twice"))
            if estimate.domain != total.domain:
                raise InvalidInput(subject, f"the domain of {group!r}", "equal that of the total", estimate.domain)
            groups[group] = estimate
        if not groups:
            raise InvalidInput(subject, "groups", "contain at least one group", document["groups"])
        names = [
            read_string(subject, "a column", name)
            for name in read_items(subject, "columns", document.get("columns", []))
        ]
        weight = document.get("weight")
        return cls(
            groups,
            total,
            columns=tuple(names),
            weight=None if weight is None else read_string(subject, "weight", weight),
        )


GROUPED[GroupedEstimate.format] = GroupedEstimate


@dataclass(frozen=True, eq=False, repr=False)
class FrequencyTable(FrozenData, Result, Mapping[Any, LinearEstimate]):
    """A mapping from values to numbers estimated from several groups: differences or weighted frequencies.

    ``GroupedEstimate.difference`` and ``GroupedEstimate.weighted`` return such tables. ``table[value]`` is a
    :class:`LinearEstimate`. Numbers and errors are those of the unbiased estimates, whatever the method.

    Parameters
    ----------
    quantity
        ``"difference"`` (one group minus another) or ``"frequency"`` (weighted over groups).
    terms
        One tuple (name, weight, estimate) per group. The number of a value is Σ weight·frequency over the groups.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate_groups
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv"]), "ln 8")
    >>> north = aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10)
    >>> south = aggregate(mechanism, [0] * 40 + [1] * 50 + [2] * 10)
    >>> table = estimate_groups(mechanism, {"north": north, "south": south}).difference("north", "south")
    >>> print(table)
    difference: north minus south, 95% intervals
    value  difference  standard_error       low      high
    none      0.28571         0.09897   0.08036   0.48244
    flu      -0.28571         0.09689  -0.47894  -0.08454
    hiv       0.00000         0.06061  -0.14777   0.14777
    >>> round(table["flu"].p_value(), 4)
    0.005
    """

    quantity: str
    terms: tuple[tuple[Any, float, Estimate], ...]

    format: ClassVar[str] = "sfumato-frequency-table"

    @property
    def domain(self) -> Domain:
        """The domain of the values, which all groups share."""
        return self.terms[0][2].domain

    def __getitem__(self, label: object) -> LinearEstimate:
        """Return the number of one value; raise UnknownLabel if the label is not a value of the domain."""
        if label not in self.domain:
            raise UnknownLabel("FrequencyTable", "the label", f"be a value of {self.domain!r}", label)
        return self._row(self.domain.index(label))

    def _row(self, x: int) -> LinearEstimate:
        """Return the number of the value with index x."""
        return weighted_sum([(weight, frequency_of(estimate, x)) for _, weight, estimate in self.terms])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.domain)

    def __len__(self) -> int:
        return len(self.domain)

    def __contains__(self, label: object) -> bool:
        return label in self.domain

    __eq__ = FrozenData.__eq__
    __hash__ = FrozenData.__hash__

    def to_pandas(self, confidence: float = 0.95) -> pandas.DataFrame:
        """Return the table as a pandas DataFrame with one row per value.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.

        Returns
        -------
        pandas.DataFrame
            The columns ``value``, ``difference`` or ``frequency``, ``standard_error``, ``low`` and ``high``, with rows
            in domain order. Grid and product domains add columns, as in ``Estimate.to_pandas``.
        """
        return super().to_pandas(confidence)

    def to_arrow(self, confidence: float = 0.95) -> pyarrow.Table:
        """Return the table of ``to_pandas`` as an Arrow table.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.

        Returns
        -------
        pyarrow.Table
            The columns of ``to_pandas``. Labels that are tuples become strings.
        """
        return super().to_arrow(confidence)

    def _columns(self, confidence: float = 0.95) -> Mapping[str, Sequence[Any]]:
        check_confidence(confidence)
        return value_table(self.domain, self._numbers(range(len(self)), confidence))

    def plot(self, confidence: float = 0.95) -> Figure:
        """Draw one bar per value with its confidence interval; negative differences extend below 0.

        Parameters
        ----------
        confidence
            Confidence level of the intervals, above 0 and below 1.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (the extra ``plot``).
        """
        figure: Figure = plot_result(self, confidence)
        return figure

    def _numbers(self, chosen: Sequence[int], confidence: float) -> dict[str, Any]:
        """Return the columns of numbers, errors and limits for some values."""
        rows = [self._row(x) for x in chosen]
        limits = np.array([row.interval(confidence) for row in rows])
        return {
            self.quantity: np.array([row.value for row in rows]),
            "standard_error": np.array([row.standard_error for row in rows]),
            "low": limits[:, 0],
            "high": limits[:, 1],
        }

    def _top(self) -> npt.NDArray[np.int64]:
        """Return the values to print: all in domain order, or those with the largest numbers if there are too many."""
        if len(self) <= MOST_ROWS:
            return np.arange(len(self))
        sums = np.sum([weight * estimate.unbiased for _, weight, estimate in self.terms], axis=0)
        return np.argsort(-np.abs(sums), kind="stable")[:MOST_ROWS]

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        top = self._top().tolist()
        columns = self._numbers(top, 0.95)
        labels = [str(self.domain.label(x)) for x in top]
        return {"value": labels, **{name: [f"{number:.5f}" for number in column] for name, column in columns.items()}}

    def _left_out(self) -> int:
        return max(0, len(self) - MOST_ROWS)

    def _title(self) -> str:
        if self.quantity == "difference":
            shown = " minus ".join(str(group) for group, *_ in self.terms)
        else:
            shown = ", ".join(f"{group} {weight:.4g}" for group, weight, _ in self.terms)
        return f"{self.quantity}: {shown}, {percent(0.95)} intervals"

    def __repr__(self) -> str:
        groups = [group for group, *_ in self.terms]
        return f"FrequencyTable({self.quantity!r}, groups={groups}, values={len(self)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            The quantity, and the name, weight and estimate of every group.

        Raises
        ------
        InvalidInput
            If the name of a group is not a string, a finite number, a boolean, None, a date, a time or a tuple of
            these.
        """
        terms = [
            {
                "group": group_document(group, f"{type(self).__name__}.to_dict"),
                "weight": number_document(weight),
                "estimate": estimate.to_dict(),
            }
            for group, weight, estimate in self.terms
        ]
        return {"format": self.format, "version": VERSION, "quantity": self.quantity, "terms": terms}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> FrequencyTable:
        """Return the table that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        FrequencyTable
            A table equal to the one that was written, with the same errors and intervals.

        Raises
        ------
        InvalidInput
            If the dict is malformed, its estimates have different domains, or an estimate contradicts its counts (see
            ``Estimate.from_dict``). The weights of a difference must be 1 and -1. Those of frequencies must be at least
            0 and sum to one.
        """
        subject = "FrequencyTable.from_dict"
        read_header(subject, document, cls.format)
        document = check_document(subject, document, ("quantity", "terms"))
        if document["quantity"] not in ("difference", "frequency"):
            raise InvalidInput(subject, "quantity", "be 'difference' or 'frequency'", document["quantity"])
        terms = []
        for term in read_items(subject, "terms", document["terms"]):
            term = check_keys(subject, "a term", term, required=("group", "weight", "estimate"))
            weight = read_number(subject, "a weight", term["weight"], least=-1.0, most=1.0)
            terms.append((read_group(subject, term["group"]), weight, Estimate.from_dict(term["estimate"])))
        weights = [weight for _, weight, _ in terms]
        is_difference = document["quantity"] == "difference"
        if is_difference and weights != [1.0, -1.0]:
            raise InvalidInput(subject, "the weights of a difference", "be 1 and -1", weights)
        if not is_difference and (min(weights, default=0.0) < 0 or abs(sum(weights) - 1) > 1e-9):
            raise InvalidInput(subject, "the weights of frequencies", "be at least 0 and sum to one", weights)
        if any(estimate.domain != terms[0][2].domain for _, _, estimate in terms):
            raise InvalidInput(subject, "the domains of the terms", "be equal", document["terms"])
        return cls(document["quantity"], tuple(terms))
