"""The option ``--associations`` of `sfumato estimate`: odds ratios and Cramér's V of the tables of two attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sfumato.estimation import Association, CrossTable, MarginalTables

__all__ = ["ASSOCIATIONS_OPTION", "associations_of"]

_NAMES = ("attributes", "measure", "value", "low", "high", "p_value")

ASSOCIATIONS_OPTION = click.option(
    "--associations",
    is_flag=True,
    help="Also print how the attributes of each table of two attributes depend on each other, with --question "
    "marginals: the odds ratio of two by two values, and Cramér's V.  [default: not printed]",
)


def associations_of(tables: MarginalTables, confidence: float) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the measures of all tables of two attributes as columns, and why others are left out."""
    rows: list[tuple[Any, ...]] = []
    notes: list[str] = []
    for names in tables.tables:
        if len(names) != 2:
            continue
        table = tables[names]
        title = " and ".join(names)
        for measure in _measures(table):
            result, note = _row(measure, table, confidence)
            rows += [] if result is None else [(title, *result)]
            notes += [] if note is None else [f"{title}: {note}"]
    return {name: [row[place] for row in rows] for place, name in enumerate(_NAMES)}, notes


def _measures(table: CrossTable) -> list[Callable[[CrossTable], Association]]:
    """Return the measures that a table of this size has."""
    sizes = [len(labels) for labels in table.labels]
    if min(sizes) < 2:
        return []
    both: list[Callable[[CrossTable], Association]] = [lambda each: each.cramers_v()]
    return [lambda each: each.odds_ratio(), *both] if sizes == [2, 2] else both


def _row(
    measure: Callable[[CrossTable], Association], table: CrossTable, confidence: float
) -> tuple[tuple[Any, ...] | None, str | None]:
    """Return a measure with its interval and p-value, or why it is not determined."""
    from sfumato.errors import NoAnswer

    try:
        result = measure(table)
        return (result.measure, result.value, *result.interval(confidence), result.p_value), None
    except NoAnswer as error:
        return None, str(error)
