"""How commands take files; ``-`` is standard input or output everywhere but for plots and checkpoints.

No command writes to a file that it reads, by whatever name, nor twice to one: what was there would be gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato._core import PIPE
from sfumato.collecting import standard_input
from sfumato.errors import InvalidInput, SfumatoError

if TYPE_CHECKING:
    from sfumato.auditing import Certificate
    from sfumato.collecting import Aggregate
    from sfumato.compiler import ExpectedLoss
    from sfumato.domain import Domain
    from sfumato.mechanisms import Mechanism
    from sfumato.policy import Policy

__all__ = [
    "CHECKPOINT",
    "INPUT",
    "JSON_OUTPUT",
    "LOSS_OPTION",
    "OUTPUT",
    "PIPE",
    "PLOT_FILE",
    "PRIOR_OPTION",
    "counts_of",
    "format_option",
    "label_of",
    "named",
    "piped_suffix",
    "read_bytes",
    "read_certificate",
    "read_losses",
    "read_mechanism",
    "read_policy",
    "read_prior",
]

_READER_OF_STDIN = "sfumato.cli.reader_of_stdin"
_FILES = "sfumato.cli.files"


@dataclass(frozen=True)
class _Use:
    """What a parameter does with a file."""

    file: object
    path: str
    param: click.Parameter
    writes: bool


def _use(path: str, param: click.Parameter | None, ctx: click.Context | None, *, writes: bool) -> None:
    """Remember the use of a file; refuse it beside another use of the same, unless both only read."""
    if param is None or ctx is None:
        return
    used: list[_Use] = ctx.meta.setdefault(_FILES, [])
    new = _Use(_identity(path, piped=path == PIPE and not writes), path, param, writes)
    for old in used:
        if old.file == new.file and (old.writes or writes):
            # Whichever came first on the command line: it is the output that has to go elsewhere.
            output, other = (new, old) if writes else (old, new)
            verb = "written" if other.writes else "read"
            hint = other.param.get_error_hint(ctx)
            message = f"{output.path} is the file that is {verb} for {hint}; name another."
            raise click.BadParameter(message, ctx, output.param)
    used.append(new)


def _identity(path: str, *, piped: bool) -> object:
    """What all names of a file have in common, links of either kind and ``< file`` included."""
    try:
        info = os.fstat(0) if piped else Path(path).stat()
    except OSError:  # no file yet
        return Path(path).resolve()
    return info.st_dev, info.st_ino


class _Input(click.Path):
    """A file that is there, or ``-`` for standard input, which can be read for one thing only."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == PIPE and param is not None and ctx is not None:
            if _READER_OF_STDIN in ctx.meta:
                self.fail(f"- (standard input) is read already, for {ctx.meta[_READER_OF_STDIN]}", param, ctx)
            ctx.meta[_READER_OF_STDIN] = param.get_error_hint(ctx)
        path = str(super().convert(value, param, ctx))
        _use(path, param, ctx, writes=False)
        return path


class _Output(click.Path):
    """A file to write that no other parameter names, or ``-`` for standard output."""

    def __init__(self, *, pipe: bool, suffix: str = "") -> None:
        super().__init__(dir_okay=False, writable=True, allow_dash=pipe)
        self._suffix = suffix

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = str(super().convert(value, param, ctx))
        if path == PIPE and self.allow_dash:
            return path
        if not path.lower().endswith(self._suffix):
            self.fail(f"{path} must end in {self._suffix}, for that is what is written.", param, ctx)
        _use(path, param, ctx, writes=True)
        return path


INPUT = _Input(exists=True, dir_okay=False, allow_dash=True)
OUTPUT = _Output(pipe=True)
JSON_OUTPUT = _Output(pipe=True, suffix=".json")
LOSS_OPTION = click.option(
    "--loss", type=INPUT, help="Be best at a loss: a CSV file, a line for each value, a column a decision."
)
PRIOR_OPTION = click.option(
    "--prior", type=INPUT, help="The distribution to assume: a CSV file of values and frequencies."
)
PLOT_FILE = _Output(pipe=False)
CHECKPOINT = _Output(pipe=False)


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
    """Readers of documents may not know where these came from; whoever has to mend one wants to."""
    try:
        yield
    except SfumatoError as error:
        message = str(error)
        raise click.ClickException(message if message.startswith(f"{shown}: ") else f"{shown}: {message}") from error


def read_policy(path: str) -> Policy:
    """The policy of a file, or of standard input: JSON if it begins with a brace, as no TOML does."""
    import json
    import tomllib

    from sfumato.policy import load_policy, policy_from_dict

    shown = named(path, "input")
    if path != PIPE:
        with _naming(shown):
            return load_policy(path)
    data = read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
        document = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(shown, "the text", "be a policy document in TOML or JSON", str(error)) from None
    with _naming(shown):
        return policy_from_dict(document, base=Path())


def read_mechanism(path: str) -> Mechanism:
    """The mechanism of a spec file, or of standard input."""
    from sfumato.mechanisms import mechanism_from_spec

    data = read_bytes(path)
    with _naming(named(path, "input")):
        return mechanism_from_spec(data)


def read_certificate(path: str) -> Certificate:
    """The certificate of a file, or of standard input, as the audit finds it again."""
    from sfumato.auditing import Certificate, verify

    data = read_bytes(path)
    with _naming(named(path, "input")):
        return verify(Certificate.from_json(data.decode("utf-8-sig", errors="replace")))


def read_losses(path: str) -> ExpectedLoss:
    """The loss of every decision (a column) for every value (a line), from comma-separated numbers."""
    import csv
    import io

    from sfumato.compiler import ExpectedLoss

    text = read_bytes(path).decode("utf-8-sig", errors="replace")
    with _naming(named(path, "input")):
        return ExpectedLoss([row for row in csv.reader(io.StringIO(text)) if row])


def read_prior(path: str, domain: Domain) -> list[float] | dict[object, float]:
    """Return a prior from comma-separated lines: a frequency for each value in domain order, or a value and its own."""
    import csv
    import io

    shown = named(path, "input")
    rows = [row for row in csv.reader(io.StringIO(read_bytes(path).decode("utf-8-sig", errors="replace"))) if row]
    widths = {len(row) for row in rows}
    try:
        if widths == {1}:
            return [float(row[0]) for row in rows]
        if widths == {2}:
            return {label_of(domain, row[0]): float(row[1]) for row in rows}
    except ValueError:
        pass
    raise InvalidInput(shown, "every line", "be a frequency, or a value and its frequency", rows[:1])


def label_of(domain: Domain, text: str) -> object:
    """Return the label that a text on the command line stands for: itself, or the JSON value that it is."""
    import json

    from sfumato._core import read_label

    if text in domain:
        return text
    try:
        return read_label(json.loads(text))
    except ValueError:
        return text


def counts_of(mechanism: Mechanism, data: bytes, shown: str) -> Aggregate:
    """The counts that a document holds, if they are this mechanism's."""
    from sfumato.collecting import Aggregate

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
