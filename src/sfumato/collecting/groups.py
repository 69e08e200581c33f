"""Counts of reports by public group."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato._core import Integers, checked_type, quantity
from sfumato.collecting.aggregates import Aggregate
from sfumato.domain import At, Coded, Numbers, is_missing, library, read_column
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms import Mechanism

__all__ = ["aggregate_groups"]

_FUNCTION = "aggregate_groups"


def aggregate_groups(mechanism: Mechanism, reports: Any, by: Any) -> dict[Any, Aggregate]:
    """Count reports separately for each group of people, such as each region.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports.
    reports
        An array of reports, or a column of pandas, polars or Arrow.
    by
        Group of each report: a list or a column of the same length, with numbers, strings or tuples. Groups are public:
        the mechanism protects the value of a person, but not the group.

    Returns
    -------
    dict
        The :class:`Aggregate` of each group, sorted by group. Pass it to :func:`estimate_groups`.

    Raises
    ------
    InvalidInput
        If a report is invalid or a group is missing. The message names the row.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), epsilon=1)
    >>> counts = sf.aggregate_groups(mechanism, [1, 0, 1, 1], by=["f", "m", "f", "m"])
    >>> {group: aggregate.counts.tolist() for group, aggregate in counts.items()}
    {'f': [0, 2], 'm': [1, 1]}
    """
    checked_type(_FUNCTION, "the mechanism", mechanism, Mechanism)
    array = mechanism.report_format.validate(reports)
    if library(reports) == library(by) == "pandas" and not _have_one_index(reports, by):
        hint = "Pass by.to_numpy() if the rows correspond by position."
        raise InvalidInput(_FUNCTION, "by", "have the index of the reports", by.index, hint=hint)
    groups, codes = _codes(by)
    if len(codes) != len(array):
        raise InvalidInput(
            _FUNCTION,
            "by",
            f"have one group per report, {len(array)} in total",
            Description(quantity(len(codes), "group")),
        )
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(groups))).tolist()
    aggregates, start = {}, 0
    for group, end in zip(groups, ends, strict=True):
        counts = np.zeros(mechanism.report_format.count_size, np.int64)
        mechanism.report_format.count(array[order[start:end]], counts)
        aggregates[group] = Aggregate(mechanism.hash, end - start, counts)
        start = end
    return aggregates


def _have_one_index(reports: Any, by: Any) -> bool:
    """Return whether two pandas columns have the same index, if both have one."""
    return not hasattr(reports, "index") or not hasattr(by, "index") or bool(reports.index.equals(by.index))


def _codes(by: Any) -> tuple[list[Any], Integers]:
    """Return the groups in order, and the position of each row's group among them."""
    column = read_column(by, At(_FUNCTION, "by"))
    if isinstance(column, Numbers) and column.nulls is None and not np.isnan(column.array).any():
        values, codes = np.unique(column.array, return_inverse=True)
        return values.tolist(), codes.astype(np.int64)
    if isinstance(column, Coded) and not (column.codes < 0).any():
        places, codes = np.unique(column.codes, return_inverse=True)
        groups = [column.categories[place] for place in places.tolist()]
        has_order = hasattr(getattr(by, "dtype", None), "categories")
        return (groups, codes.astype(np.int64)) if has_order else _sort(groups, codes)
    items = column.items()
    row = next((row for row, item in enumerate(items) if is_missing(item)), None)
    if row is not None:
        raise InvalidInput(_FUNCTION, f"the group in row {row}", "not be missing", None, row=row)
    places_of: dict[Any, int] = {}
    try:
        codes = np.fromiter((places_of.setdefault(item, len(places_of)) for item in items), np.int64, len(items))
    except TypeError as error:
        raise InvalidInput(_FUNCTION, "every group", "be a number, a string or a tuple", Description(error)) from None
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
