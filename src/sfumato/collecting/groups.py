"""Count reports by public group: the columns of groups, and their counts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers, checked_type, quantity, unused_name
from sfumato.collecting.aggregates import Aggregate
from sfumato.collecting.grouped import GroupedAggregate, check_size, sort_groups, too_many_weights
from sfumato.collecting.hashes import check_origin
from sfumato.collecting.weights import MOST_CLASSES, read_weights
from sfumato.domain import At, Coded, Numbers, frame_columns, is_missing, library, read_column
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms import Mechanism

__all__ = ["GroupTally", "Grouping", "aggregate_groups", "count_groups", "row_of_file"]

_FUNCTION = "aggregate_groups"
#: Names of the column of groups and of the column of weights if they have none.
_GROUP, _WEIGHT = "group", "weight"


def aggregate_groups(
    mechanism: Mechanism, reports: Any, by: Any = None, *, weights: Any = None, missing: Any = None
) -> GroupedAggregate:
    """Count reports separately for each group of people, such as each region or each survey weight.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports.
    reports
        An array of reports, or a column of pandas, polars or Arrow.
    by
        Group of each report: a list or a column of the same length, with numbers, strings or tuples. A frame of pandas,
        polars or Arrow, or a mapping from names to columns, groups by several columns. Groups are public: the mechanism
        protects the value of a person, but not the group.
    weights
        Survey weight of each report: integers of at least 0 with at most 1,000 different values, which are public as
        well. Round other weights with :func:`sfumato.collecting.weight_classes`. The weight becomes the last column of
        the groups.
    missing
        Label of people whose group is missing. By default, a missing group raises an error.

    Returns
    -------
    GroupedAggregate
        A mapping from each group to its :class:`Aggregate`, sorted by group. Pass it to :func:`estimate_groups`.

    Raises
    ------
    InvalidInput
        If a report or a weight is invalid, or a group is missing. The message names the row.
    LimitExceeded
        If there are too many groups or different weights.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), epsilon=1)
    >>> counts = sf.aggregate_groups(mechanism, [1, 0, 1, 1], by=["f", "m", "f", "m"])
    >>> {group: aggregate.counts.tolist() for group, aggregate in counts.items()}
    {'f': [0, 2], 'm': [1, 1]}
    >>> sf.aggregate_groups(mechanism, [1, 0, 1, 1], by=["f", "m", "f", "m"], weights=[1, 2, 1, 3])
    GroupedAggregate(columns=('group', 'weight'), weight='weight', groups=3, n=4)
    """
    checked_type(_FUNCTION, "the mechanism", mechanism, Mechanism)
    check_origin(mechanism, reports)
    array = mechanism.report_format.validate(reports)
    columns = _named_columns(by, "by", _GROUP)
    weighting = _named_columns(weights, "weights", unused_name(_WEIGHT, columns))
    if not columns and not weighting:
        raise InvalidInput(_FUNCTION, "by", "be a column of groups, or weights be given", by)
    if len(weighting) > 1 or set(weighting) & set(columns):
        raise InvalidInput(_FUNCTION, "weights", "be one column that is not in by", list(weighting))
    named = {**columns, **weighting}
    for name, column in named.items():
        parameter = "by" if name in columns else "weights"
        if library(reports) == library(column) == "pandas" and not _have_one_index(reports, column):
            hint = f"Pass {parameter}.to_numpy() if the rows correspond by position."
            raise InvalidInput(_FUNCTION, parameter, "have the index of the reports", column.index, hint=hint)
    grouping = Grouping(tuple(named), next(iter(weighting), None), missing)
    groups, codes = grouping.codes(list(named.values()), _FUNCTION)
    if len(codes) != len(array):
        must = f"have one group per report, {len(array)} in total"
        raise InvalidInput(_FUNCTION, "by", must, Description(quantity(len(codes), "group")))
    counts = count_groups(mechanism, array, groups, codes)
    return GroupedAggregate(mechanism.hash, counts, grouping.columns, grouping.weight)


@dataclass(frozen=True)
class Grouping:
    """The columns that form groups, and which of them holds weights."""

    columns: tuple[str, ...]
    weight: str | None = None
    #: Label of missing groups; None rejects them.
    missing: Any = None

    @classmethod
    def of(cls, by: str | Sequence[str], weight: str | None, missing: Any, subject: str) -> Grouping:
        """Return the grouping by columns of these names; raise InvalidInput if none or one twice is named."""
        columns = (*([by] if isinstance(by, str) else by), *([] if weight is None else [weight]))
        if not columns or len(set(columns)) < len(columns):
            raise InvalidInput(subject, "by", "name at least one column, and each column once", list(columns))
        return cls(columns, weight, missing)

    def codes(self, columns: Sequence[Any], subject: str, first_row: int | None = None) -> tuple[list[Any], Integers]:
        """Return the groups in order, and the position of each row's group among them.

        ``first_row`` is the number of the first row of these columns in a file.
        """
        coded = [
            self._codes(name, column, subject, first_row) for name, column in zip(self.columns, columns, strict=True)
        ]
        lengths = {len(codes) for _, codes in coded}
        if len(lengths) > 1:
            got = Description(f"{' and '.join(map(str, sorted(lengths)))} rows")
            raise InvalidInput(subject, "the columns", "have the same length", got)
        (labels, codes), *others = coded
        if not others:
            return labels, codes
        groups = [(label,) for label in labels]
        for labels, column_codes in others:
            places, codes = np.unique(codes * len(labels) + column_codes, return_inverse=True)
            groups = [(*groups[place // len(labels)], labels[place % len(labels)]) for place in places.tolist()]
        return groups, codes.astype(np.int64)

    def _codes(self, name: str, column: Any, subject: str, first_row: int | None) -> tuple[list[Any], Integers]:
        row_name = None if first_row is None else functools.partial(row_of_file, first_row, name)
        if name != self.weight:
            return _codes(column, subject, self.missing, row_name)
        weights, codes = np.unique(read_weights(column, At(subject, "the weight"), row_name), return_inverse=True)
        if len(weights) > MOST_CLASSES:
            raise too_many_weights(len(weights))
        return weights.tolist(), codes.astype(np.int64)


class GroupTally:
    """Counts of each group that are added up from pieces of reports."""

    def __init__(self, mechanism: Mechanism, grouping: Grouping) -> None:
        self._mechanism, self._grouping = mechanism, grouping
        self._n: dict[Any, int] = {}
        self._counts: dict[Any, Integers] = {}

    def add(self, array: npt.NDArray[Any], columns: Sequence[Any], subject: str, first_row: int | None) -> None:
        """Count validated reports by the columns of the same rows; see :meth:`Grouping.codes`."""
        report_format = self._mechanism.report_format
        groups, codes = self._grouping.codes(columns, subject, first_row)
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(groups))).tolist()
        for group, start, end in zip(groups, [0, *ends], ends, strict=False):
            if group not in self._counts:
                check_size(len(self._counts) + 1, report_format.count_size)
                self._n[group], self._counts[group] = 0, np.zeros(report_format.count_size, np.int64)
            report_format.count(array[order[start:end]], self._counts[group])
            self._n[group] += end - start

    def result(self) -> GroupedAggregate:
        """Return the counts so far."""
        groups = {
            group: Aggregate(self._mechanism.hash, self._n[group], self._counts[group])
            for group in sort_groups(self._counts)
        }
        return GroupedAggregate(self._mechanism.hash, groups, self._grouping.columns, self._grouping.weight)


def count_groups(
    mechanism: Mechanism, array: npt.NDArray[Any], groups: Sequence[Any], codes: Integers
) -> dict[Any, Aggregate]:
    """Return the counts of each group of validated reports."""
    report_format = mechanism.report_format
    check_size(len(groups), report_format.count_size)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(groups))).tolist()
    aggregates, start = {}, 0
    for group, end in zip(groups, ends, strict=True):
        counts = np.zeros(report_format.count_size, np.int64)
        report_format.count(array[order[start:end]], counts)
        aggregates[group] = Aggregate(mechanism.hash, end - start, counts)
        start = end
    return aggregates


def _named_columns(data: Any, parameter: str, default: str) -> dict[str, Any]:
    """Return the columns of an argument by name; a single column without a name has the default one."""
    if data is None:
        return {}
    columns = frame_columns(data)
    if columns is None:
        name = getattr(data, "name", None)
        return {name if isinstance(name, str) and name else default: data}
    if not columns:
        raise InvalidInput(_FUNCTION, parameter, "have at least one column", Description("no columns"))
    return {str(name): column for name, column in columns.items()}


def _have_one_index(reports: Any, by: Any) -> bool:
    """Return whether two pandas columns have the same index, if both have one."""
    return not hasattr(reports, "index") or not hasattr(by, "index") or bool(reports.index.equals(by.index))


def row_of_file(first_row: int, name: str, row: int) -> str:
    """Return how messages name a cell of a file."""
    return f"row {first_row + row}, column {name!r}"


def _codes(by: Any, subject: str, missing: Any, row_name: Callable[[int], str] | None) -> tuple[list[Any], Integers]:
    """Return the groups of one column in order, and the position of each row's group among them."""
    column = read_column(by, At(subject, "by"))
    if isinstance(column, Numbers) and column.nulls is None and not np.isnan(column.array).any():
        values, codes = np.unique(column.array, return_inverse=True)
        return values.tolist(), codes.astype(np.int64)
    if isinstance(column, Coded) and not (column.codes < 0).any():
        places, codes = np.unique(column.codes, return_inverse=True)
        groups = [column.categories[place] for place in places.tolist()]
        has_order = hasattr(getattr(by, "dtype", None), "categories")
        return (groups, codes.astype(np.int64)) if has_order else _sort(groups, codes)
    items = [missing if is_missing(item) else item for item in column.items()]
    row = next((row for row, item in enumerate(items) if item is None), None)
    if row is not None:
        hint = "Remove the row, or pass a label for missing groups as missing."
        where = f"the group in row {row}" if row_name is None else row_name(row)
        raise InvalidInput(subject, where, "not be missing", None, row=row, hint=hint)
    places_of: dict[Any, int] = {}
    try:
        codes = np.fromiter((places_of.setdefault(item, len(places_of)) for item in items), np.int64, len(items))
    except TypeError as error:
        raise InvalidInput(subject, "every group", "be a number, a string or a tuple", Description(error)) from None
    return _sort(list(places_of), codes)


def _sort(groups: list[Any], codes: Integers) -> tuple[list[Any], Integers]:
    """Return the groups sorted with their codes, or unchanged if they cannot be compared."""
    try:
        order = sorted(range(len(groups)), key=groups.__getitem__)
    except TypeError:
        return groups, codes
    ranks = np.empty(len(groups), np.int64)
    ranks[order] = np.arange(len(groups))
    return [groups[place] for place in order], ranks[codes]
