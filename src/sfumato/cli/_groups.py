"""Public groups on the command line: the options ``--by``, ``--weight``, ``--totals`` and ``--compare``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from sfumato._core import quantity
from sfumato.cli._files import INPUT, named, read_bytes
from sfumato.errors import Description, InvalidInput

if TYPE_CHECKING:
    from sfumato.collecting import GroupedAggregate
    from sfumato.estimation import Comparison, GroupedAnswers

__all__ = [
    "COMPARE_OPTION",
    "TOTALS_OPTION",
    "compared",
    "group_options",
    "is_grouped",
    "read_totals",
    "unprotected_note",
    "with_weight",
]

_GROUPED_FORMAT = b'"sfumato-grouped-aggregate"'


def group_options(by: str, weight: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the options ``--by`` and ``--weight`` with these descriptions."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        by_option = click.option("--by", multiple=True, metavar="COLUMN", help=f"{by}  [default: none]")
        return by_option(click.option("--weight", metavar="COLUMN", help=f"{weight}  [default: none]")(command))

    return add


TOTALS_OPTION = click.option(
    "--totals",
    type=INPUT,
    help="CSV file with the size of each stratum in the population (post-stratification): a header line, one column "
    "per column of groups, and the total in the last column; - reads standard input.  [default: none]",
)
COMPARE_OPTION = click.option(
    "--compare",
    metavar="all|rest|GROUP",
    help="Print the differences between all pairs of groups, between each group and the rest, or each group and "
    "one group, with simultaneous intervals and Holm's p-values. --output and --plot then show the differences.  "
    "[default: no differences]",
)


def unprotected_note(columns: Sequence[str]) -> str:
    """Return the sentence that names the columns that travel with reports."""
    names = f"{', '.join(columns[:-1])} and {columns[-1]}" if len(columns) > 1 else columns[0]
    verb, auxiliary = ("travel", "are") if len(columns) > 1 else ("travels", "is")
    return f"{names} {verb} with each report and {auxiliary} not protected"


def is_grouped(data: bytes) -> bool:
    """Return whether a file holds counts by group."""
    return _GROUPED_FORMAT in data[:200]


def with_weight(counts: GroupedAggregate, weight: str | None) -> GroupedAggregate:
    """Return counts whose weights are in the named column, or in the one that they state."""
    import dataclasses

    return counts if weight is None else dataclasses.replace(counts, weight=weight)


def read_totals(path: str, counts: GroupedAggregate) -> tuple[list[str], dict[Any, float]]:
    """Return the columns of strata and the total of each stratum from a CSV file."""
    import csv
    import io

    shown = named(path, "input")
    content = read_bytes(path).decode("utf-8-sig", errors="replace")
    header, *rows = [row for row in csv.reader(io.StringIO(content)) if row] or [[]]
    free = [name for name in counts.columns if name != counts.weight]
    strata = header[:-1]
    if not strata or not set(strata) <= set(free):
        must = f"name some of the columns {free}, then the column of totals"
        raise InvalidInput(shown, "the header line", must, header)
    places = [counts.columns.index(name) for name in strata]
    known = [{str(counts.labels(group)[place]): counts.labels(group)[place] for group in counts} for place in places]
    totals: dict[Any, float] = {}
    for line, row in enumerate(rows, 2):
        try:
            *cells, total = row
            labels = tuple(names.get(cell, cell) for names, cell in zip(known, cells, strict=True))
            number = float(total)
        except ValueError:
            must = f"have {quantity(len(header), 'cell')}, and a number in the last one"
            raise InvalidInput(shown, f"line {line}", must, row) from None
        stratum = labels if len(labels) > 1 else labels[0]
        if stratum in totals:
            raise InvalidInput(shown, f"line {line}", "name a stratum once", Description(f"{stratum!r} twice"))
        totals[stratum] = number
    return strata, totals


def compared(answers: GroupedAnswers, argument: str) -> Comparison:
    """Return the comparison that the option ``--compare`` names."""
    if argument == "all":
        return answers.compare()
    if argument == "rest":
        return answers.compare(rest=True)
    groups = {str(group): group for group in answers}
    if argument not in groups:
        raise click.UsageError(f"--compare {argument} is not all, rest or one of the groups {', '.join(groups)}.")
    return answers.compare(groups[argument])
