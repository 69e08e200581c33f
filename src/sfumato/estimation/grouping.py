"""The verb ``estimate_groups``: estimates for each public group of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.collecting import REPORT_COLUMN, Aggregate, GroupedAggregate, aggregate_groups
from sfumato.domain import frame_columns
from sfumato.errors import Description, InvalidInput, shown
from sfumato.estimation.frequencies import estimate
from sfumato.estimation.groups import GroupedEstimate
from sfumato.mechanisms import Mechanism

__all__ = ["estimate_groups"]

_FUNCTION = "estimate_groups"


def estimate_groups(
    mechanism: Mechanism,
    aggregates: Any,
    method: str = "unbiased",
    *,
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    column: str = REPORT_COLUMN,
    missing: Any = None,
) -> GroupedEstimate:
    """Estimate the frequencies in each public group of people, such as a region, and in all groups together.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports of all groups.
    aggregates
        The counts of each group, from :func:`aggregate_groups` or as a mapping from names to counts. Or a frame of
        pandas, polars or Arrow with a column of reports and the columns that ``by`` and ``weight`` name.
    method
        A method of :func:`estimate`, except ``"mmse"``.
    by
        Names of the columns of the frame that form the groups. Counts have their groups already.
    weight
        Name of the column of the frame with survey weights (see :func:`aggregate_groups`).
    column
        Name of the column of the frame with the reports.
    missing
        Label of people of the frame whose group is missing. By default, a missing group raises an error.

    Returns
    -------
    GroupedEstimate
        The estimate of each group and of all people. Its methods estimate differences between groups, weighted
        frequencies, and answers to questions.

    Raises
    ------
    InvalidInput
        If there is no group, the counts of a group are empty or do not belong to the mechanism, or the frame does not
        have the columns.

    Examples
    --------
    >>> from sfumato import Domain, aggregate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv"]), "ln 8")
    >>> north = aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10)
    >>> south = aggregate(mechanism, [0] * 40 + [1] * 50 + [2] * 10)
    >>> groups = estimate_groups(mechanism, {"north": north, "south": south})
    >>> print(groups["south"]["flu"])
    0.571429 ± 0.071
    >>> print(groups.difference("north", "south")["flu"])
    -0.285714 ± 0.097
    """
    options = {"by": by, "weight": weight, "missing": missing}
    columns = None if _is_counts(aggregates) else frame_columns(aggregates)
    if columns is None and not isinstance(aggregates, Mapping):
        must = "be a mapping from group names to aggregates, or a frame with a column of reports"
        raise InvalidInput(_FUNCTION, "the aggregates", must, aggregates)
    if columns is not None:
        aggregates = _counted(mechanism, columns, by, weight, column, missing)
    else:
        named = [name for name, option in options.items() if option is not None]
        if named:
            hint = "Counts have their groups already; call over(...) to keep only some columns."
            raise InvalidInput(_FUNCTION, named[0], "be given only with a frame", options[named[0]], hint=hint)
    empty = [name for name, counts in aggregates.items() if getattr(counts, "n", 1) == 0]
    if empty:
        hint = "Leave out groups without reports."
        got = Description(f"no reports in {shown(empty)}")
        raise InvalidInput(_FUNCTION, "every group", "have at least one report", got, hint=hint)
    groups = {name: estimate(mechanism, counts, method) for name, counts in aggregates.items()}
    if not groups:
        raise InvalidInput(_FUNCTION, "the aggregates", "contain at least one group", {})
    total = estimate(mechanism, GroupedAggregate(mechanism.hash, aggregates).total(), method)
    if isinstance(aggregates, GroupedAggregate):
        return GroupedEstimate(groups, total, columns=aggregates.columns, weight=aggregates.weight)
    return GroupedEstimate(groups, total)


def _is_counts(aggregates: Any) -> bool:
    """Return whether an argument maps groups to their counts."""
    if isinstance(aggregates, GroupedAggregate):
        return True
    return isinstance(aggregates, Mapping) and all(isinstance(each, Aggregate) for each in aggregates.values())


def _counted(
    mechanism: Mechanism,
    columns: dict[Any, Any],
    by: str | Sequence[str] | None,
    weight: str | None,
    column: str,
    missing: Any,
) -> GroupedAggregate:
    """Return the counts of the reports of a frame."""
    names = [by] if isinstance(by, str) else list(by or ())
    if not names and weight is None:
        raise InvalidInput(_FUNCTION, "by", f"name columns of the frame, some of {list(columns)}", by)
    for name in (column, *names, *([] if weight is None else [weight])):
        if name not in columns:
            raise InvalidInput(_FUNCTION, "every column", f"be one of {list(columns)}", name)
    groups = {name: columns[name] for name in names} or None
    weights = None if weight is None else {weight: columns[weight]}
    return aggregate_groups(mechanism, columns[column], groups, weights=weights, missing=missing)
