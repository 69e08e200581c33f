"""How commands answer: a table for people, JSON for programs, a progress bar on standard error for the patient."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import click

from sfumato._core import ProgressCallback, finite

__all__ = [
    "BITS_OPTION",
    "JSON_OPTION",
    "MECHANISM_OPTION",
    "SECONDS_OPTION",
    "THREADS_OPTION",
    "UTILITY_OPTION",
    "method_option",
    "people",
    "progress_bar",
    "quantity",
    "show_json",
    "show_table",
]

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Answer in JSON instead of a table.")

SECONDS_OPTION = click.option(
    "--max-seconds",
    type=click.FloatRange(0),
    help="Seconds to search for the optimal mechanism, 0 for no search.  [default: 10 up to 64 values, 0 above]",
)

MECHANISM_OPTION = click.option("--mechanism", help="Take this mechanism, by its name as `sfumato plan` lists them.")

UTILITY_OPTION = click.option(
    "--utility",
    type=click.Choice(["estimation", "worst-estimation", "mutual-information", "mmse"]),
    default="estimation",
    show_default=True,
    help="What to be best at: all frequencies (at the prior, or in the worst case), information, or numeric values.",
)

BITS_OPTION = click.option("--max-bits", type=click.IntRange(1), help="Maximum length of a report in bits.")

THREADS_OPTION = click.option("--threads", type=click.IntRange(1), help="Number of threads.  [default: all cores]")


def method_option(*, with_prior: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option ``--method``; ``with_prior`` adds the method that needs one."""
    about = (
        "Right on average, by the mechanism's own estimator (unbiased) or by weighted least squares (efficient); or "
        "the distribution that is nearest to the former (simplex), or likeliest (mle)"
    )
    return click.option(
        "--method",
        type=click.Choice(["unbiased", "efficient", "simplex", "mle", *(["mmse"] if with_prior else [])]),
        default="unbiased",
        show_default=True,
        help=f"{about}{'; or the mean of the posterior under --prior (mmse)' if with_prior else ''}.",
    )


#: How a number of people is written: in digits, in groups of three of them, or with an exponent.
_WRITTEN = re.compile(r"[0-9]+|[0-9]{1,3}([,_][0-9]{3})+|[0-9]+(\.[0-9]+)?[eE]\+?[0-9]{1,2}")


def show_json(document: Any, *, aside: bool = False) -> None:
    """One JSON document on standard output; aside, that is on standard error, where that is a pipe for data."""
    # First to plain lists and numbers, among which are some that JSON does not know.
    plain = finite(json.loads(json.dumps(document, default=_plain)))
    click.echo(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False), err=aside)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def show_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None, *, aside: bool = False
) -> None:
    """A table whose first column is text and whose others are numbers; aside on standard error."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    # A pipe has no width of its own; a table cut to 80 columns would serve nobody.
    file = sys.stderr if aside else sys.stdout
    Console(file=file, width=None if file.isatty() else 120, highlight=False).print(table)


@contextmanager
def progress_bar(description: str) -> Iterator[ProgressCallback]:
    """Show a bar on standard error if it is a terminal; yield the callback that moves it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn(description), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=None)
        yield lambda progress: bar.update(task, completed=progress.done, total=progress.total)


def quantity(number: int, noun: str) -> str:
    """A number of things, for people to read.

    >>> quantity(1, "report"), quantity(2000, "report"), quantity(2, "batch")
    ('1 report', '2,000 reports', '2 batches')
    """
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def people(text: str) -> int:
    """An option's type: a number of people, as large ones are written. A comma is not a decimal point."""
    from sfumato._core import MOST_PEOPLE

    number = Decimal(text.replace(",", "").replace("_", "")) if _WRITTEN.fullmatch(text) else Decimal(0)
    if not 1 <= number <= MOST_PEOPLE or number != int(number):
        most = f"2^{MOST_PEOPLE.bit_length() - 1}"
        raise click.BadParameter(f"{text!r} is not a whole number from 1 to {most}, such as 1000, 1_000, 1,000 or 1e6.")
    return int(number)
