"""How commands take files; ``-`` is standard input or output everywhere but for plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.errors import InvalidInput, SfumatoError
from sfumato.reports.sources import PIPE, standard_input

if TYPE_CHECKING:
    from sfumato._aggregate import Aggregate
    from sfumato.mechanisms import Mechanism
    from sfumato.optimize import ExpectedLoss
    from sfumato.policy import Policy

__all__ = [
    "INPUT",
    "OUTPUT",
    "PIPE",
    "PLOT_FILE",
    "counts_of",
    "format_option",
    "named",
    "piped_suffix",
    "read_bytes",
    "read_losses",
    "read_mechanism",
    "read_policy",
]

_READER_OF_STDIN = "sfumato.cli.reader_of_stdin"


class _Input(click.Path):
    """A file that is there, or ``-`` for standard input, which can be read for one thing only."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == PIPE and param is not None and ctx is not None:
            if _READER_OF_STDIN in ctx.meta:
                self.fail(f"- (standard input) is read already, for {ctx.meta[_READER_OF_STDIN]}", param, ctx)
            ctx.meta[_READER_OF_STDIN] = param.get_error_hint(ctx)
        return super().convert(value, param, ctx)


INPUT = _Input(exists=True, dir_okay=False, allow_dash=True)
OUTPUT = click.Path(dir_okay=False, writable=True, allow_dash=True)
PLOT_FILE = click.Path(dir_okay=False, writable=True)


def named(path: str, direction: str = "output") -> str:
    """A path as messages show it."""
    return f"standard {direction}" if path == PIPE else path


# -- what is read ------------------------------------------------------------------------------------------


def read_bytes(path: str) -> bytes:
    """All of a file, or of standard input, which must bring something."""
    if path != PIPE:
        return Path(path).read_bytes()
    data = standard_input().read()
    if not data.strip():
        raise InvalidInput(named(path, "input"), "the pipe", "not be empty", "nothing")
    return data


@contextmanager
def _naming(shown: str) -> Iterator[None]:
    """Readers of documents do not know where these came from; whoever has to mend one wants to."""
    try:
        yield
    except SfumatoError as error:
        raise click.ClickException(f"{shown}: {error}") from error


def read_policy(path: str) -> Policy:
    """The policy of a file, or of standard input: JSON if it begins with a brace, as no TOML does."""
    import json
    import tomllib

    from sfumato.policy import load_policy, policy_from_dict

    if path != PIPE:
        return load_policy(path)
    shown = named(path, "input")
    data = read_bytes(path)
    try:
        text = data.decode()
        document = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except ValueError as error:
        raise InvalidInput(shown, "the text", "be a policy document in TOML or JSON", str(error)) from None
    with _naming(shown):
        return policy_from_dict(document, base=Path())


def read_mechanism(path: str) -> Mechanism:
    """The mechanism of a spec file, or of standard input."""
    from sfumato.mechanisms import mechanism_from_spec

    data = read_bytes(path)
    with _naming(named(path, "input")):
        return mechanism_from_spec(data)


def read_losses(path: str) -> ExpectedLoss:
    """The loss of every decision (a column) for every value (a line), from comma-separated numbers."""
    import csv
    import io

    from sfumato.optimize import ExpectedLoss

    with _naming(named(path, "input")):
        return ExpectedLoss([row for row in csv.reader(io.StringIO(read_bytes(path).decode(errors="replace"))) if row])


def counts_of(mechanism: Mechanism, data: bytes, shown: str) -> Aggregate:
    """The counts that a document holds, if they are this mechanism's."""
    from sfumato._aggregate import Aggregate

    with _naming(shown):
        counts = Aggregate.from_json(data)
        counts.check(mechanism)
    return counts


# -- what is written ---------------------------------------------------------------------------------------


def format_option(formats: Sequence[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The option ``--format``: a pipe has no name that could say its format. The first is the default."""
    help_text = f"The format on a pipe (-o -).  [default: {formats[0]}]"
    return click.option("--format", "form", type=click.Choice(formats), help=help_text)


def piped_suffix(output: str | None, form: str | None, formats: Sequence[str]) -> str:
    """The format that was asked for, as the end of a file's name; refused where a file has a name of its own."""
    if form is not None and output != PIPE:
        raise click.UsageError("--format is for a pipe (-o -); the name of a file says its format.")
    return f".{form or formats[0]}"
