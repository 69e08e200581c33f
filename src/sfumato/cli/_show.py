"""Output of commands: tables for people, JSON for programs, and progress bars on standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from sfumato._core import ProgressCallback, finite

if TYPE_CHECKING:
    from sfumato.compiler import MaxBits

__all__ = [
    "BITS_OPTION",
    "CACHE_OPTION",
    "JSON_OPTION",
    "MECHANISM_OPTION",
    "THREADS_OPTION",
    "UTILITY_OPTION",
    "method_option",
    "people",
    "progress_bar",
    "seconds_option",
    "show_json",
    "show_table",
]

JSON_OPTION = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON instead of text.  [default: text]"
)


def seconds_option(*, with_utility: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option ``--max-seconds``; ``with_utility`` adds the default for other utilities than estimation."""
    about = "Maximum time to search for the optimal mechanism, in seconds; 0 disables the search."
    other = "; 60 if --utility is not estimation or --mechanism is optimal" if with_utility else ""
    default = f"[default: 20 for at most 256 values, 0 for more{other}]"
    return click.option("--max-seconds", type=click.FloatRange(0), help=f"{about}  {default}")


CACHE_OPTION = click.option(
    "--cache",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Folder of earlier searches; a search that was done before is not repeated, and others are stored.  "
    "[default: no folder]",
)

MECHANISM_OPTION = click.option(
    "--mechanism",
    metavar="NAME",
    help="Use only this mechanism, by its name in the output of `sfumato plan`.  [default: compare all, use the best]",
)

UTILITY_OPTION = click.option(
    "--utility",
    type=click.Choice(["estimation", "worst-estimation", "mutual-information", "mmse"]),
    default="estimation",
    show_default=True,
    help="Quantity to optimize: the squared error of all frequencies, under the prior (estimation) or in the worst "
    "case (worst-estimation), the mutual information, or the squared error of the number of one person, estimated from "
    "the report (mmse). For a mean over all people, use --question mean.",
)


def _max_bits(argument: str) -> MaxBits:
    """Parse a maximum length of reports: a number of bits, ``short`` or ``none``."""
    if argument == "short":
        return "short"
    if argument == "none":
        return None
    if not argument.isdecimal() or int(argument) < 1:
        raise click.BadParameter(f"{argument!r} is not short, none or a positive whole number of bits, such as 16.")
    return int(argument)


BITS_OPTION = click.option(
    "--max-bits",
    type=_max_bits,
    metavar="short|none|BITS",
    default="short",
    show_default=True,
    help="Maximum length of a report: a number of bits, none for no limit, or short. Short means 8 bits more than the "
    "number of a value takes; longer reports are used only if no short one has an error within 5% of the smallest.",
)

THREADS_OPTION = click.option("--threads", type=click.IntRange(1), help="Number of threads.  [default: one per core]")


def method_option(*, with_prior: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option ``--method``; ``with_prior`` adds the method that needs a prior."""
    about = (
        "Estimation method: the mechanism's linear unbiased estimator (unbiased), weighted least squares, also "
        "unbiased (efficient), the projection of the unbiased estimate onto the probability simplex (simplex), "
        "maximum likelihood (mle), posterior means under a prior that is fitted to all frequencies (bayes), or the one "
        "of simplex and bayes with the smaller expected error (best)"
    )
    methods = ["unbiased", "efficient", "simplex", "mle", "bayes", "best"]
    return click.option(
        "--method",
        type=click.Choice([*methods, *(["mmse"] if with_prior else [])]),
        default="unbiased",
        show_default=True,
        help=f"{about}{'; mmse is the posterior mean under --prior' if with_prior else ''}.",
    )


#: Accepted notations of a number of people: digits, groups of three digits, or an exponent.
_NUMBER_OF_PEOPLE = re.compile(r"[0-9]+|[0-9]{1,3}([,_][0-9]{3})+|[0-9]+(\.[0-9]+)?[eE]\+?[0-9]{1,2}")


def show_json(document: Any, *, aside: bool = False) -> None:
    """Print a JSON document on standard output, or ``aside`` on standard error if standard output carries data."""
    # Convert to plain lists and numbers first, then replace infinities and NaN, which JSON does not have.
    plain = finite(json.loads(json.dumps(document, default=_plain)))
    click.echo(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False), err=aside)


def _plain(value: Any) -> Any:
    """Return an array as a list and any other object as a string."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def show_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None, *, aside: bool = False
) -> None:
    """Print a table with a left-aligned first column and right-aligned others, ``aside`` on standard error."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    # A pipe has no width; rich would cut the table at 80 columns.
    file = sys.stderr if aside else sys.stdout
    Console(file=file, width=None if file.isatty() else 120, highlight=False).print(table)


@contextmanager
def progress_bar(description: str) -> Iterator[ProgressCallback]:
    """Show a progress bar on standard error if it is a terminal; yield the callback that advances it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn(description), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=None)
        yield lambda progress: bar.update(task, completed=progress.done, total=progress.total)


def people(argument: str) -> int:
    """Parse a number of people; commas and underscores separate groups of three digits."""
    from sfumato._core import MOST_PEOPLE

    is_number = _NUMBER_OF_PEOPLE.fullmatch(argument)
    number = Decimal(argument.replace(",", "").replace("_", "")) if is_number else Decimal(0)
    if not 1 <= number <= MOST_PEOPLE or number != int(number):
        most = f"2^{MOST_PEOPLE.bit_length() - 1}"
        message = f"{argument!r} is not a whole number from 1 to {most}, such as 1000, 1_000, 1,000 or 1e6."
        raise click.BadParameter(message)
    return int(number)
