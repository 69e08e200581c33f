"""Answers to a question in public groups of people, weighted if a survey requires it, and their differences."""

from __future__ import annotations

import functools
import types
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sfumato._core import (
    MOST_ROWS,
    Floats,
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
from sfumato.collecting import group_document, read_group
from sfumato.errors import Description, InvalidInput, LimitExceeded, UnknownLabel, shown
from sfumato.estimation.bands import LARGEST_BAND, simultaneous_alphas
from sfumato.estimation.binning import is_mean_of_labels, largest_rounding, stated
from sfumato.estimation.documents import VERSION, check_document, read_grouped, read_header
from sfumato.estimation.estimates import Estimate
from sfumato.estimation.frequencies import estimate as estimate_frequencies
from sfumato.estimation.linear import LinearEstimate, check_confidence, weighted_sum
from sfumato.estimation.mechanism_estimates import MechanismEstimate, PartialEstimate
from sfumato.estimation.sources import frequency_of
from sfumato.estimation.weighting import Stratum, WeightedEstimate, weighted_covariance, weighted_estimate
from sfumato.questions import Frequencies, Quantiles, Question

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure

    from sfumato.estimation.groups import GroupedEstimate

__all__ = ["Comparison", "GroupedAnswers"]

_SUBJECT = "answers"
#: Label of all people together in printed tables.
_ALL = "all"
#: Maximum number of differences in a comparison; the interval and p-value of each take up to a second.
_MOST_DIFFERENCES = 5_000


@dataclass(frozen=True, eq=False, repr=False)
class GroupedAnswers(FrozenData, Result, Mapping[Any, tuple[LinearEstimate, ...]]):
    """The answers to a question in each public group of people, as ``GroupedEstimate.answers`` returns them.

    ``answers[group]`` is a tuple with one :class:`LinearEstimate` per answer, and ``answers.total`` the same for all
    people. If people have weights or the totals of strata are known, the numbers are :class:`WeightedEstimate` objects.

    Parameters
    ----------
    estimate
        The estimates of all groups.
    question
        The question, fitted to the domain of the estimates.
    by
        The columns that form the groups of the answers.
    strata
        The columns that form the strata of ``totals``.
    totals
        The size of each stratum in the population, or None.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain.range(3), "ln 8")
    >>> north = sf.aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10)
    >>> south = sf.aggregate(mechanism, [0] * 40 + [1] * 50 + [2] * 10)
    >>> grouped = sf.estimate_groups(mechanism, {"north": north, "south": south})
    >>> print(grouped.answers("mean"))
    1 answer to the question "mean" in 2 groups, 200 reports, 95% intervals
    group  reports  answer    value  standard_error       low     high
    north      100  mean    0.28571        0.095831  0.086654  0.47882
    south      100  mean    0.57143        0.091473   0.37223  0.74717
    all        200  mean    0.42857        0.067006    0.2891   0.5601
    >>> print(grouped.answers("mean", totals={"north": 3, "south": 1}).total[0])
    0.357143 ± 0.075
    """

    estimate: GroupedEstimate
    question: Question
    by: tuple[str, ...]
    strata: tuple[str, ...] = field(default=(), kw_only=True)
    totals: Mapping[Any, float] | None = field(default=None, kw_only=True)

    #: Name of the class in documents.
    format: ClassVar[str] = "sfumato-grouped-answers"

    def __post_init__(self) -> None:
        if self.totals is not None:
            object.__setattr__(self, "totals", types.MappingProxyType(dict(self.totals)))

    def __getstate__(self) -> dict[str, Any]:
        totals = None if self.totals is None else dict(self.totals)  # a read-only mapping cannot be pickled
        return {**super().__getstate__(), "totals": totals}

    @classmethod
    def of(
        cls,
        estimate: GroupedEstimate,
        question: Question,
        by: Sequence[str] | None,
        strata: Sequence[str] | None,
        totals: Mapping[Any, float] | None,
    ) -> GroupedAnswers:
        """Return the answers to a fitted question after checking columns and totals.

        Parameters
        ----------
        estimate
            The estimates of all groups.
        question
            The question, fitted to the domain of the estimates.
        by
            The columns that form the groups of the answers; by default all columns except the weight.
        strata
            The columns that form the strata of ``totals``; by default all columns except the weight.
        totals
            The size of each stratum in the population, or None.

        Returns
        -------
        GroupedAnswers
            The answers.

        Raises
        ------
        InvalidInput
            If the question, the columns or the totals do not fit (see ``GroupedEstimate.answers``).
        """
        if isinstance(question, Quantiles):
            hint = "Call quantile(level) on the estimate of each group instead."
            must = "be one whose answers are sums of frequencies"
            raise InvalidInput(_SUBJECT, "the question", must, question, hint=hint)
        estimate.total._require(question)
        free = [name for name in estimate._names if name != estimate.weight]
        groups = _read_names("by", by, free)
        if totals is None and strata is not None:
            raise InvalidInput(_SUBJECT, "strata", "be given only with totals", list(strata))
        levels = _read_names("strata", strata, free) if totals is not None else ()
        answers = cls(
            estimate, question, groups, strata=levels, totals=None if totals is None else _read_totals(totals)
        )
        if None in answers.groups:
            hint = "Name missing groups with the option missing of aggregate_groups."
            raise InvalidInput(_SUBJECT, "every group", "have a name", None, hint=hint)
        for group in [*answers.groups, None]:
            answers._check_group(group)
        return answers

    # -- groups and their numbers ------------------------------------------------------------------------------

    @functools.cached_property
    def _keys(self) -> dict[Any, list[Any]]:
        """The groups of the answers, and the groups of the estimate that each consists of."""
        keys: dict[Any, list[Any]] = {}
        for key in self.estimate.groups:
            keys.setdefault(self._label(key, self.by), []).append(key)
        return keys

    def _label(self, key: Any, columns: Sequence[str]) -> Any:
        """Return the labels of a group of the estimate in some columns: a single label, or a tuple."""
        labels = dict(zip(self.estimate._names, self.estimate._labels(key), strict=True))
        return labels[columns[0]] if len(columns) == 1 else tuple(labels[name] for name in columns)

    @property
    def groups(self) -> list[Any]:
        """The groups, in the order of the estimate; empty if the answers are not divided by any column."""
        return list(self._keys) if self.by else []

    @property
    def is_weighted(self) -> bool:
        """Whether people have weights or the totals of strata are known."""
        return self.estimate.weight is not None or self.totals is not None

    @property
    def names(self) -> tuple[Any, ...]:
        """The names of the answers, in the order of the numbers of a group."""
        return self.question.domain.labels if self._is_frequencies else self.question.names

    @property
    def _is_frequencies(self) -> bool:
        return isinstance(self.question, Frequencies)

    @functools.cached_property
    def _strata(self) -> dict[Any, list[tuple[float, list[tuple[int, Estimate]]]]]:
        """The strata of each group: the total of each, and its estimates by weight. None stands for all people."""
        return {group: self._strata_of(group) for group in [*self.groups, None]}

    def _members(self, group: Any) -> list[Any]:
        """Return the groups of the estimate that belong to a group of the answers; None stands for all people."""
        return list(self.estimate.groups) if group is None else self._keys[group]

    def _sizes(self, group: Any) -> dict[Any, float]:
        """Return the total of each stratum of a group."""
        if self.totals is None:
            return {(): 1.0}
        if group is None:
            return dict(self.totals)
        shared = [name for name in self.by if name in self.strata]
        known = dict(zip(self.by, group if len(self.by) > 1 else (group,), strict=True))
        places = [self.strata.index(name) for name in shared]

        def labels(stratum: Any) -> tuple[Any, ...]:
            return stratum if len(self.strata) > 1 else (stratum,)

        wanted = [known[name] for name in shared]
        return {
            stratum: total
            for stratum, total in self.totals.items()
            if [labels(stratum)[place] for place in places] == wanted
        }

    def _strata_of(self, group: Any) -> list[tuple[float, list[tuple[int, Estimate]]]]:
        cells: dict[Any, dict[int, list[Estimate]]] = {}
        for key in self._members(group):
            stratum = () if self.totals is None else self._label(key, self.strata)
            weight = 1 if self.estimate.weight is None else self._label(key, [self.estimate.weight])
            cells.setdefault(stratum, {}).setdefault(weight, []).append(self.estimate.groups[key])
        whole = group is None and self.totals is None and self.estimate.weight is None
        return [
            (total, [(w, self.estimate.total if whole else _merged(parts)) for w, parts in cells[stratum].items()])
            for stratum, total in self._sizes(group).items()
            if total > 0 and stratum in cells
        ]

    def _check_group(self, group: Any) -> None:
        """Raise InvalidInput if a group has no weight, a stratum without reports, or reports without a total."""
        where = "all people" if group is None else f"the group {group!r}"
        weights: dict[Any, int] = {}
        for key in self._members(group):
            stratum = () if self.totals is None else self._label(key, self.strata)
            weight = 1 if self.estimate.weight is None else self._label(key, [self.estimate.weight])
            weights[stratum] = max(weights.get(stratum, 0), weight)
        sizes = self._sizes(group)
        if self.totals is None and not any(weights.values()):
            raise InvalidInput(_SUBJECT, f"the weights of {where}", "not all be 0", 0)
        unknown = [stratum for stratum in weights if stratum not in sizes]
        if unknown:
            got = Description(f"no total of {shown(unknown)} in {where}")
            raise InvalidInput(_SUBJECT, "totals", "name every stratum that has reports", got)
        empty = [stratum for stratum, total in sizes.items() if total > 0 and not weights.get(stratum)]
        if empty:
            hint = "Merge small strata, in the groups of the reports and in the totals."
            got = Description(f"no reports of {shown(empty)} in {where}")
            raise InvalidInput(_SUBJECT, "every stratum with a positive total", "have reports", got, hint=hint)
        if not any(total > 0 for total in sizes.values()):
            raise InvalidInput(_SUBJECT, f"the totals of {where}", "not all be 0", 0)

    @functools.cached_property
    def _numbers(self) -> dict[Any, tuple[LinearEstimate, ...]]:
        """The answers of each group; None stands for all people."""
        return {group: self._numbers_of(strata) for group, strata in self._strata.items()}

    def _numbers_of(self, strata: list[tuple[float, list[tuple[int, Estimate]]]]) -> tuple[LinearEstimate, ...]:
        rows = range(len(self.names)) if self._is_frequencies else self.question.matrix()
        numbers: list[LinearEstimate] = []
        for row in rows:
            if not self.is_weighted:
                ((_, ((_, estimate),)),) = strata
                numbers.append(self._number(estimate, row))
                continue
            ends = (0.0, 1.0) if self._is_frequencies else (float(np.min(row)), float(np.max(row)))
            parts = [
                Stratum(total, [(w, estimate.n, self._number(estimate, row)) for w, estimate in classes])
                for total, classes in strata
            ]
            numbers.append(weighted_estimate(parts, ends))
        return tuple(numbers)

    def _number(self, estimate: Estimate, row: Any) -> LinearEstimate:
        """Return one answer from one estimate; ``row`` is the index of a value or the weights of all values."""
        if self._is_frequencies:
            return frequency_of(estimate, row)
        return stated(estimate.linear(row), estimate, self.question)

    @property
    def total(self) -> tuple[LinearEstimate, ...]:
        """The answers for all people together."""
        return self._numbers[None]

    @property
    def rounding(self) -> float:
        """The largest error that dividing numbers into bins adds to an answer; 0 if the domain has no bins."""
        return largest_rounding(self.question.domain) if is_mean_of_labels(self.question) else 0.0

    def n(self, group: Hashable = None) -> int:
        """Return the number of reports of a group.

        Parameters
        ----------
        group
            A group, or None for all people.

        Returns
        -------
        int
            The number of reports, including those of people with weight 0.
        """
        return sum(self.estimate.groups[key].n for key in self._members(group))

    def __getitem__(self, group: Any) -> tuple[LinearEstimate, ...]:
        """Return the answers of a group; raise UnknownLabel, which is also a KeyError, for an unknown group."""
        if group not in self:
            raise UnknownLabel("GroupedAnswers", "the group", f"be one of {self.groups}", group)
        return self._numbers[group]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __contains__(self, group: object) -> bool:
        try:
            return bool(self.by) and group in self._keys
        except TypeError:  # a list, or a tuple with a list inside
            return False

    __eq__ = FrozenData.__eq__
    __hash__ = FrozenData.__hash__

    def covariance(self, group: Hashable = None) -> Floats:
        """Return the covariance matrix of the answers of a group.

        Parameters
        ----------
        group
            A group, or None for all people.

        Returns
        -------
        numpy.ndarray
            One row and one column per answer, in the order of ``names``.

        Raises
        ------
        LimitExceeded
            If the domain has more than 20,000 values.
        """
        if group is not None:
            self[group]
        classes, values, covariances = [], [], []
        strata = self._strata[group]
        whole = sum(total for total, _ in strata)
        for number, (total, parts) in enumerate(strata):
            size = sum(weight * estimate.n for weight, estimate in parts)
            for weight, estimate in parts:
                if weight > 0:
                    answers = estimate.answers(self.question)
                    classes.append((number, total / whole * weight * estimate.n / size, estimate.n))
                    values.append(answers.values)
                    covariances.append(answers.covariance)
        return weighted_covariance(classes, np.array(values), covariances)

    # -- comparisons -------------------------------------------------------------------------------------------

    def compare(self, baseline: Hashable = None, *, rest: bool = False) -> Comparison:
        """Estimate the differences between groups, with simultaneous intervals and adjusted p-values.

        Parameters
        ----------
        baseline
            The group from which all others are subtracted. By default, every pair of groups is compared.
        rest
            If True, each group is compared with all other groups together. Do not give a baseline then.

        Returns
        -------
        Comparison
            The differences, with errors, intervals and p-values.

        Raises
        ------
        InvalidInput
            If there are fewer than two groups, the baseline is not a group, or ``rest`` and a baseline are both given.
        LimitExceeded
            If there are more than 5,000 differences.
        """
        if len(self) < 2:
            raise InvalidInput("compare", "the answers", "have at least two groups", Description(str(len(self))))
        if rest and baseline is not None:
            raise InvalidInput("compare", "rest", "be False with a baseline", baseline)
        if baseline is not None:
            self[baseline]
        comparison = Comparison(self, "rest" if rest else "pairs" if baseline is None else "baseline", baseline)
        if len(comparison) > _MOST_DIFFERENCES:
            raise LimitExceeded(
                f"a comparison supports at most {_MOST_DIFFERENCES:,} differences, not {len(comparison):,}. Choose a "
                "baseline, or a question with fewer answers."
            )
        return comparison

    # -- tables and pictures -----------------------------------------------------------------------------------

    def interval(self, confidence: float = 0.95, *, simultaneous: bool = False) -> dict[Any, tuple[Floats, Floats]]:
        """Return the confidence limits of the answers of each group.

        Parameters
        ----------
        confidence
            Confidence level, above 0 and below 1.
        simultaneous
            If True, all intervals of all groups together contain the true answers with this confidence. If False, each
            interval does so on its own.

        Returns
        -------
        dict
            The lower and the upper limits by group, in the order of ``names``. If the answers are not divided by any
            column, the only key is None.

        Raises
        ------
        InvalidInput
            If the confidence level does not lie between 0 and 1, or is too close to 1.

        Notes
        -----
        Simultaneous intervals use the largest standardized error of dependent normal variables, as those of
        :class:`Comparison` do.
        """
        groups = self.groups or [None]
        tests = len(groups) * len(self.names)
        check_confidence(confidence, max(tests, 1) if simultaneous else 1)
        alphas = np.full((len(groups), len(self.names)), 1 - confidence)
        if simultaneous:
            alphas = self._alphas(np.eye(len(groups)), groups, 1 - confidence).reshape(alphas.shape)
        limits = {}
        for group, levels in zip(groups, alphas.tolist(), strict=True):
            pairs = [each.interval(1 - alpha) for each, alpha in zip(self._numbers[group], levels, strict=True)]
            low, high = np.reshape(pairs, (-1, 2)).T
            limits[group] = (low, high)
        return limits

    def _alphas(self, contrasts: Floats, groups: Sequence[Any], alpha: float) -> Floats:
        """Return the α of simultaneous intervals of contrasts between groups, with an entry per contrast and answer."""
        tests = len(contrasts) * len(self.names)
        if not 1 < tests <= LARGEST_BAND:
            return np.full(tests, alpha / max(tests, 1))
        covariances = np.array([self.covariance(group) for group in groups])
        covariance = np.einsum("ig,jg,gab->iajb", contrasts, contrasts, covariances, optimize=True)
        units = np.array([[number.unseen for number in self._numbers[group]] for group in groups])
        reach = np.max(np.abs(contrasts)[:, :, None] * units[None], axis=1)
        return simultaneous_alphas(covariance.reshape(tests, tests), reach.ravel(), alpha)

    def to_pandas(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pandas.DataFrame:
        """Return the answers as a pandas DataFrame with one row per group and answer.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.
        simultaneous
            If True, all intervals together contain the true answers with this confidence (see ``interval``).

        Returns
        -------
        pandas.DataFrame
            One column per column of groups, and the columns ``reports``, ``answer``, ``value``, ``standard_error``,
            ``low`` and ``high``. Weighted answers add ``design_effect`` and ``effective_n``.
        """
        return super().to_pandas(confidence, simultaneous=simultaneous)

    def to_arrow(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pyarrow.Table:
        """Return the table of ``to_pandas`` as an Arrow table.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.
        simultaneous
            If True, all intervals together contain the true answers with this confidence (see ``interval``).

        Returns
        -------
        pyarrow.Table
            The columns of ``to_pandas``.
        """
        return super().to_arrow(confidence, simultaneous=simultaneous)

    def plot(self, confidence: float = 0.95, *, simultaneous: bool = False) -> Figure:
        """Draw the answers of each group as points with their intervals.

        Parameters
        ----------
        confidence
            Confidence level of the intervals, above 0 and below 1.
        simultaneous
            If True, all intervals together contain the true answers with this confidence (see ``interval``).

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (the extra ``plot``).
        """
        figure: Figure = plot_result(self, confidence, simultaneous=simultaneous)
        return figure

    def _columns(self, confidence: float = 0.95, *, simultaneous: bool = False) -> Mapping[str, Sequence[Any]]:
        limits = self.interval(confidence, simultaneous=simultaneous)
        return self._table(self.groups or [None], limits)

    def _table(self, groups: Sequence[Any], limits: Mapping[Any, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Return the columns of a table for some groups."""
        size = len(self.names)
        numbers = [number for group in groups for number in self._numbers[group]]
        columns: dict[str, Sequence[Any]] = self._group_columns([group for group in groups for _ in range(size)])
        columns["reports"] = [n for group in groups for n in [self.n(group)] * size]
        columns["answer"] = list(self.names) * len(groups)
        columns["value"] = [number._unbiased for number in numbers]
        columns["standard_error"] = [number.standard_error for number in numbers]
        for side, name in enumerate(("low", "high")):
            columns[name] = [float(limit) for group in groups for limit in limits[group][side]]
        weighted = [number for number in numbers if isinstance(number, WeightedEstimate)]
        if weighted:
            columns["design_effect"] = [number.design_effect for number in weighted]
            columns["effective_n"] = [number.effective_n for number in weighted]
        return columns

    def _group_columns(self, groups: Sequence[Any], suffix: str = "") -> dict[str, Sequence[Any]]:
        """Return one column per column of groups; None stands for all people."""
        columns: dict[str, Sequence[Any]] = {}
        for place, name in enumerate(self.by):
            labels = [group if len(self.by) == 1 or group is None else group[place] for group in groups]
            columns[unused_name(name + suffix, {*_RESERVED, *columns})] = labels
        return columns

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        most = max(1, (MOST_ROWS - len(self.names)) // max(len(self.names), 1))
        groups = [*self.groups[:most], None]
        limits = {
            group: tuple(zip(*(number.interval() for number in self._numbers[group]), strict=True)) for group in groups
        }
        columns = self._table(groups, limits)
        for name in list(columns)[: len(self.by)]:
            columns[name] = [_ALL if label is None else str(label) for label in columns[name]]
        cells = {name: [f"{cell:.5g}" for cell in columns[name]] for name in list(columns)[len(self.by) + 2 :]}
        return {**columns, "answer": [str(name) for name in columns["answer"]], **cells}

    def _left_out(self) -> int:
        most = max(1, (MOST_ROWS - len(self.names)) // max(len(self.names), 1))
        return max(0, len(self) - most) * len(self.names)

    def _notes(self) -> Sequence[str]:
        return self.total[0]._notes()

    def _title(self) -> str:
        count = quantity(len(self.names), "answer")
        groups = f" in {quantity(len(self), 'group')}" if self.by else ""
        weighting = f", weighted by {self.estimate.weight}" if self.estimate.weight is not None else ""
        weighting += f", {quantity(len(self.totals), 'known total')}" if self.totals is not None else ""
        reports = quantity(self.n(), "report")
        return (
            f'{count} to the question "{self.question.name}"{groups}, {reports}{weighting}, {percent(0.95)} intervals'
        )

    def __repr__(self) -> str:
        weighted = ", weighted" if self.is_weighted else ""
        return f"GroupedAnswers(question={self.question!r}, groups={len(self)}, n={self.n()}{weighted})"

    # -- documents ---------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            The documents of the question and of the estimates, and the columns and totals. The answers follow from
            them.

        Raises
        ------
        InvalidInput
            If the name of a group is not a string, a finite number, a boolean, None, a date, a time or a tuple of
            these.
        """
        totals = None
        if self.totals is not None:
            totals = [
                {"stratum": group_document(stratum, "to_dict"), "total": number_document(total)}
                for stratum, total in self.totals.items()
            ]
        return {
            "format": self.format,
            "version": VERSION,
            "question": self.question.to_dict(),
            "by": list(self.by),
            "strata": list(self.strata),
            "totals": totals,
            "estimate": self.estimate.to_dict(),
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> GroupedAnswers:
        """Return the answers that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        GroupedAnswers
            Answers equal to those that were written.

        Raises
        ------
        InvalidInput
            If the dict is malformed, the question does not fit the domain, columns or totals do not fit the groups, or
            an estimate contradicts its counts (see ``Estimate.from_dict``).
        """
        subject = "GroupedAnswers.from_dict"
        read_header(subject, document, cls.format)
        document = check_document(subject, document, ("question", "by", "strata", "totals", "estimate"))
        estimate = read_grouped(document["estimate"])
        question = Question.from_dict(document["question"]).checked(estimate.total.domain)
        names = {
            key: [read_string(subject, key, name) for name in read_items(subject, key, document[key])]
            for key in ("by", "strata")
        }
        totals: dict[Any, float] | None = None
        if document["totals"] is not None:
            totals = {}
            for row in read_items(subject, "totals", document["totals"]):
                row = check_keys(subject, "a row of totals", row, required=("stratum", "total"))
                stratum = read_group(subject, row["stratum"])
                if stratum in totals:
                    must = "contain each stratum once"
                    raise InvalidInput(subject, "totals", must, Description(f"{stratum!r} twice"))
                totals[stratum] = read_number(subject, "a total", row["total"], least=0.0)
        return cls.of(estimate, question, names["by"], names["strata"] if totals is not None else None, totals)


#: Column names of tables of answers; a column of groups with one of these names is renamed.
_RESERVED = ("reports", "answer", "value", "standard_error", "low", "high", "design_effect", "effective_n")


def _read_names(parameter: str, names: Sequence[str] | None, free: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns; all free ones by default."""
    if names is None:
        return tuple(free)
    chosen = [names] if isinstance(names, str) else list(names)
    if len(set(chosen)) < len(chosen) or not set(chosen) <= set(free):
        raise InvalidInput(_SUBJECT, parameter, f"be different columns among {list(free)}", chosen)
    return tuple(chosen)


def _read_totals(totals: Mapping[Any, float]) -> dict[Any, float]:
    """Return the totals of strata, which are finite numbers of at least 0."""
    for stratum, total in totals.items():
        if not (is_number(total) and np.isfinite(total) and total >= 0):
            raise InvalidInput(_SUBJECT, f"the total of {stratum!r}", "be a finite number of at least 0", total)
    return {stratum: float(total) for stratum, total in totals.items()}


def _merged(estimates: Sequence[Estimate]) -> Estimate:
    """Return the estimate from the reports of several groups together."""
    first, *others = estimates
    if not others:
        return first
    if not isinstance(first, (MechanismEstimate, PartialEstimate)):
        hint = "Divide the answers by all columns, or estimate from the counts of the merged groups."
        raise InvalidInput(_SUBJECT, "merged groups", "have estimates from one mechanism", first, hint=hint)
    counts = first.counts
    for other in others:
        if not isinstance(other, (MechanismEstimate, PartialEstimate)):
            raise InvalidInput(_SUBJECT, "merged groups", "have estimates from one mechanism", other)
        counts = counts.merge(other.counts)
    return estimate_frequencies(first.mechanism, counts, first.method)


# -- differences between groups ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(FrozenData, Result):
    """Differences between groups in the answers to a question, as ``GroupedAnswers.compare`` returns them.

    ``comparison[first, second]`` is a tuple with one :class:`LinearEstimate` per answer: the answer of the first group
    minus that of the second.

    Parameters
    ----------
    answers
        The answers of each group.
    against
        ``"pairs"`` (every pair of groups), ``"baseline"`` (each group minus one group) or ``"rest"`` (each group minus
        all other people).
    baseline
        The group that is subtracted if ``against`` is ``"baseline"``; None otherwise.

    Notes
    -----
    Groups consist of different people, so their estimates are independent. All other people together are a mean of the
    other groups in the proportions of the sample, or of its weights; these proportions are treated as known.

    Simultaneous intervals contain all true differences together. Their common level comes from the largest standardized
    error of dependent normal variables (see ``Answers.interval``), or from the Bonferroni correction for few reports
    or more than 2,048 differences. Adjusted p-values are Holm's: the probability that any true hypothesis has one of at
    most α is at most α. Both methods have the same guarantee, but may disagree about single differences.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain.range(3), "ln 8")
    >>> north = sf.aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10)
    >>> south = sf.aggregate(mechanism, [0] * 40 + [1] * 50 + [2] * 10)
    >>> grouped = sf.estimate_groups(mechanism, {"north": north, "south": south})
    >>> comparison = grouped.answers("mean").compare()
    >>> print(comparison["north", "south"][0])
    -0.285714 ± 0.13
    """

    answers: GroupedAnswers
    against: str
    baseline: Any = None

    #: Name of the class in documents.
    format: ClassVar[str] = "sfumato-comparison"
    _kinds: ClassVar[tuple[str, ...]] = ("pairs", "baseline", "rest")

    def __post_init__(self) -> None:
        if self.against not in self._kinds:
            raise InvalidInput("Comparison", "against", f"be one of {', '.join(self._kinds)}", self.against)

    @property
    def pairs(self) -> list[tuple[Any, Any]]:
        """The two groups of each difference. None as the second group stands for all other people."""
        groups = self.answers.groups
        if self.against == "rest":
            return [(group, None) for group in groups]
        if self.against == "baseline":
            return [(group, self.baseline) for group in groups if group != self.baseline]
        return [(first, second) for place, first in enumerate(groups) for second in groups[place + 1 :]]

    @functools.cached_property
    def _sizes(self) -> Floats:
        """The share of each group in the sample, or in the population if people have weights."""
        answers = self.answers
        if answers.totals is not None and set(answers.by) <= set(answers.strata):
            sizes = [sum(answers._sizes(group).values()) for group in answers.groups]
        else:
            sizes = [sum(w * e.n for _, parts in answers._strata[group] for w, e in parts) for group in answers.groups]
        return np.array(sizes, np.float64) / sum(sizes)

    @functools.cached_property
    def _contrasts(self) -> Floats:
        """The coefficient of each group in each difference, with a row per pair."""
        groups = {group: place for place, group in enumerate(self.answers.groups)}
        rows = np.zeros((len(self.pairs), len(groups)))
        for row, (first, second) in zip(rows, self.pairs, strict=True):
            place = groups[first]
            if self.against == "rest":
                row[:] = -self._sizes / max(1 - self._sizes[place], np.finfo(float).tiny)
            else:
                row[groups[second]] = -1.0
            row[place] = 1.0
        return rows

    @functools.cached_property
    def _differences(self) -> dict[tuple[Any, Any], tuple[LinearEstimate, ...]]:
        groups = self.answers.groups
        differences = {}
        for pair, row in zip(self.pairs, self._contrasts.tolist(), strict=True):
            chosen = [(c, self.answers[group]) for c, group in zip(row, groups, strict=True) if c]
            columns = range(len(self.answers.names))
            differences[pair] = tuple(weighted_sum([(c, numbers[x]) for c, numbers in chosen]) for x in columns)
        return differences

    def __getitem__(self, pair: Any) -> tuple[LinearEstimate, ...]:
        """Return the differences of a pair of groups; raise UnknownLabel, which is also a KeyError, for another pair.

        A pair in reversed order has the opposite differences.
        """
        try:
            if pair in self._differences:
                return self._differences[pair]
            first, second = pair
            return tuple(weighted_sum([(-1.0, number)]) for number in self._differences[second, first])
        except (KeyError, TypeError, ValueError):
            pairs = [pair for pair, _ in zip(self.pairs, range(5), strict=False)]
            raise UnknownLabel("Comparison", "the pair", f"be two compared groups, such as {pairs}", pair) from None

    def __len__(self) -> int:
        return len(self.pairs) * len(self.answers.names)

    @functools.cached_property
    def p_values(self) -> Floats:
        """The p-value of each difference, with a row per pair and a column per answer; not adjusted."""
        return np.array([[number.p_value() for number in self._differences[pair]] for pair in self.pairs])

    @functools.cached_property
    def adjusted_p_values(self) -> Floats:
        """The p-values adjusted for the number of differences by Holm's method, in the shape of ``p_values``."""
        p = self.p_values.ravel()
        order = np.argsort(p, kind="stable")
        scaled = np.minimum(p[order] * np.arange(len(p), 0, -1), 1.0)
        adjusted = np.empty(len(p))
        adjusted[order] = np.maximum.accumulate(scaled)
        return adjusted.reshape(self.p_values.shape)

    def interval(self, confidence: float = 0.95, *, simultaneous: bool = True) -> tuple[Floats, Floats]:
        """Return the confidence limits of all differences.

        Parameters
        ----------
        confidence
            Confidence level, above 0 and below 1.
        simultaneous
            If True, all intervals together contain the true differences with this confidence. If False, each interval
            does so on its own.

        Returns
        -------
        tuple of arrays
            The lower and the upper limits, each with a row per pair and a column per answer.

        Raises
        ------
        InvalidInput
            If the confidence level does not lie between 0 and 1, or is too close to 1.
        """
        check_confidence(confidence, max(len(self), 1) if simultaneous else 1)
        alphas = np.full(len(self), 1 - confidence)
        if simultaneous:
            alphas = self.answers._alphas(self._contrasts, self.answers.groups, 1 - confidence)
        numbers = [number for pair in self.pairs for number in self._differences[pair]]
        limits = [number.interval(1 - alpha) for number, alpha in zip(numbers, alphas.tolist(), strict=True)]
        low, high = np.reshape(limits, (*self.p_values.shape, 2)).transpose(2, 0, 1)
        return low, high

    # -- tables and pictures -----------------------------------------------------------------------------------

    def to_pandas(self, confidence: float = 0.95, *, simultaneous: bool = True) -> pandas.DataFrame:
        """Return the differences as a pandas DataFrame with one row per pair and answer.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.
        simultaneous
            If True, all intervals together contain the true differences with this confidence.

        Returns
        -------
        pandas.DataFrame
            The columns ``group``, ``minus``, ``answer``, ``difference``, ``standard_error``, ``low``, ``high``,
            ``p_value`` and ``adjusted_p_value`` (Holm). The entry of ``minus`` is "rest" for all other people.
        """
        return super().to_pandas(confidence, simultaneous=simultaneous)

    def to_arrow(self, confidence: float = 0.95, *, simultaneous: bool = True) -> pyarrow.Table:
        """Return the table of ``to_pandas`` as an Arrow table.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.
        simultaneous
            If True, all intervals together contain the true differences with this confidence.

        Returns
        -------
        pyarrow.Table
            The columns of ``to_pandas``. Labels that are tuples become strings.
        """
        return super().to_arrow(confidence, simultaneous=simultaneous)

    def plot(self, confidence: float = 0.95, *, simultaneous: bool = True) -> Figure:
        """Draw each difference as a point with its interval, next to a line at 0.

        Parameters
        ----------
        confidence
            Confidence level of the intervals, above 0 and below 1.
        simultaneous
            If True, all intervals together contain the true differences with this confidence.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (the extra ``plot``).
        """
        figure: Figure = plot_result(self, confidence, simultaneous=simultaneous)
        return figure

    def _columns(self, confidence: float = 0.95, *, simultaneous: bool = True) -> Mapping[str, Sequence[Any]]:
        names = self.answers.names
        low, high = self.interval(confidence, simultaneous=simultaneous)
        rows = [(pair, x) for pair in self.pairs for x in range(len(names))]
        numbers = [self._differences[pair][x] for pair, x in rows]
        columns: dict[str, Any] = {
            "group": [pair[0] for pair, _ in rows],
            "minus": ["rest" if self.against == "rest" else pair[1] for pair, _ in rows],
            "answer": [names[x] for _, x in rows],
            "difference": np.array([number.value for number in numbers]),
            "standard_error": np.array([number.standard_error for number in numbers]),
            "low": low.ravel(),
            "high": high.ravel(),
            "p_value": self.p_values.ravel(),
            "adjusted_p_value": self.adjusted_p_values.ravel(),
        }
        return columns

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        columns: Mapping[str, Any] = self._columns()
        order = np.argsort(self.p_values.ravel(), kind="stable")[:MOST_ROWS]
        chosen = np.sort(order) if len(self) <= MOST_ROWS else order
        return {
            name: [f"{column[x]:.5g}" if isinstance(column, np.ndarray) else str(column[x]) for x in chosen.tolist()]
            for name, column in columns.items()
        }

    def _left_out(self) -> int:
        return max(0, len(self) - MOST_ROWS)

    def _title(self) -> str:
        count = f"{quantity(len(self), 'difference')} between {quantity(len(self.answers), 'group')}"
        return f'{count}, question "{self.answers.question.name}", {percent(0.95)} simultaneous intervals'

    def _notes(self) -> Sequence[str]:
        return ("p-values are adjusted by Holm's method.",)

    def __repr__(self) -> str:
        baseline = f", baseline={self.baseline!r}" if self.against == "baseline" else ""
        return f"Comparison(against={self.against!r}{baseline}, differences={len(self)})"

    # -- documents ---------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            The document of the answers, and which groups are compared.
        """
        baseline = group_document(self.baseline, "to_dict")
        header = {"format": self.format, "version": VERSION}
        return {**header, "against": self.against, "baseline": baseline, "answers": self.answers.to_dict()}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> Comparison:
        """Return the comparison that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        Comparison
            A comparison equal to the one that was written.

        Raises
        ------
        InvalidInput
            If the dict is malformed, or its answers are (see ``GroupedAnswers.from_dict``).
        """
        subject = "Comparison.from_dict"
        read_header(subject, document, cls.format)
        document = check_document(subject, document, ("against", "baseline", "answers"))
        answers = GroupedAnswers.from_dict(document["answers"])
        against = read_string(subject, "against", document["against"])
        baseline = read_group(subject, document["baseline"])
        if (against == "baseline") != (baseline is not None):
            raise InvalidInput(subject, "baseline", "be given with against 'baseline', and only with it", baseline)
        comparison = answers.compare(baseline, rest=against == "rest")
        return replace(comparison, against=against)
