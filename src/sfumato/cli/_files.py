"""File parameters of commands; ``-`` is standard input or output, except for plots and checkpoints.

A command rejects an output file that it also reads, or that another option also writes, because the file's content
would be lost. Files are compared by identity, so links to the same file are detected.
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
from sfumato.errors import Description, InvalidInput, SfumatoError

if TYPE_CHECKING:
    from sfumato.auditing import Certificate
    from sfumato.collecting import Aggregate, GroupedAggregate
    from sfumato.compiler import ExpectedLoss
    from sfumato.domain import Domain
    from sfumato.mechanisms import Mechanism
    from sfumato.policy import Policy
    from sfumato.questions import Question

__all__ = [
    "CHECKPOINT",
    "INPUT",
    "JSON_OUTPUT",
    "LOSS_OPTION",
    "OUTPUT",
    "PIPE",
    "PLOT_FILE",
    "POSTERIOR_PRIOR_OPTION",
    "PRIOR_OPTION",
    "QUESTION_OPTION",
    "counts_of",
    "format_option",
    "grouped_counts_of",
    "label_of",
    "named",
    "piped_suffix",
    "question_option",
    "read_bytes",
    "read_certificate",
    "read_losses",
    "read_mechanism",
    "read_policy",
    "read_policy_and_question",
    "read_prior",
]

_READER_OF_STDIN = "sfumato.cli.reader_of_stdin"
_FILES = "sfumato.cli.files"


@dataclass(frozen=True)
class _Use:
    """A file that a parameter of the command reads or writes."""

    file: object
    path: str
    param: click.Parameter
    writes: bool


def _use(path: str, param: click.Parameter | None, ctx: click.Context | None, *, writes: bool) -> None:
    """Record the use of a file; reject it if another parameter uses the same file, unless both only read it."""
    if param is None or ctx is None:
        return
    used: list[_Use] = ctx.meta.setdefault(_FILES, [])
    new = _Use(_identity(path, piped=path == PIPE and not writes), path, param, writes)
    for old in used:
        if old.file == new.file and (old.writes or writes):
            # Blame the output, whatever the order on the command line: the user has to choose another output.
            output, other = (new, old) if writes else (old, new)
            verb = "written" if other.writes else "read"
            hint = other.param.get_error_hint(ctx)
            message = f"{output.path} is also {verb} for {hint}. Choose another output file."
            raise click.BadParameter(message, ctx, output.param)
    used.append(new)


def _identity(path: str, *, piped: bool) -> object:
    """Return a key that is the same for all names of a file, including links and ``< file``."""
    try:
        info = os.fstat(0) if piped else Path(path).stat()
    except OSError:  # the file does not exist yet
        return Path(path).resolve()
    return info.st_dev, info.st_ino


class _Input(click.Path):
    """An existing file, or ``-`` for standard input, which only one parameter can read."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == PIPE and param is not None and ctx is not None:
            if _READER_OF_STDIN in ctx.meta:
                reader = ctx.meta[_READER_OF_STDIN]
                self.fail(f"standard input (-) is already read for {reader}. Give a file instead.", param, ctx)
            ctx.meta[_READER_OF_STDIN] = param.get_error_hint(ctx)
        path = str(super().convert(value, param, ctx))
        _use(path, param, ctx, writes=False)
        return path


class _Output(click.Path):
    """A file to write, which no other parameter may use, or ``-`` for standard output."""

    def __init__(self, *, pipe: bool, suffix: str = "") -> None:
        super().__init__(dir_okay=False, writable=True, allow_dash=pipe)
        self._suffix = suffix

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = str(super().convert(value, param, ctx))
        if path == PIPE and self.allow_dash:
            return path
        if not path.lower().endswith(self._suffix):
            self.fail(f"{path} must end in {self._suffix}, because the command writes that format.", param, ctx)
        _use(path, param, ctx, writes=True)
        return path


INPUT = _Input(exists=True, dir_okay=False, allow_dash=True)


class _Question(_Input):
    """A question: a name, a name with parameters after a colon, or a file."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from sfumato.questions import question_from_string

        if value != PIPE and not value.lower().endswith((".toml", ".json")):
            return question_from_string("--question", value)
        path = super().convert(value, param, ctx)
        question = _file_question(path)
        if question is None:
            hint = 'Add a line such as question = "mean" at its beginning.'
            must, got = "state a question", Description("a policy without a question")
            raise InvalidInput(named(path, "input"), "the file", must, got, hint=hint)
        return question


def question_option(default: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option ``--question``; the help describes its default by these words."""
    about = (
        "What is to be learned: frequencies, mean, distribution, quantiles, quantiles:0.1,0.5,0.9, ranges:18-64,65-, "
        "marginals for the tables of all pairs of attributes, marginals:1, marginals:sex*race,age, or a .toml or .json "
        "file with a question or with a policy that states one."
    )
    kind = _Question(exists=True, dir_okay=False, allow_dash=True)
    return click.option("--question", type=kind, metavar="NAME|FILE", help=f"{about}  [default: {default}]")


#: The option of commands that read a policy, which may state a question.
QUESTION_OPTION = question_option("the question that the policy file states, else frequencies")
OUTPUT = _Output(pipe=True)
JSON_OUTPUT = _Output(pipe=True, suffix=".json")
LOSS_OPTION = click.option(
    "--loss",
    type=INPUT,
    help="CSV file of losses to minimize instead of --utility: one line per value, one column per decision; "
    "- reads standard input.  [default: none]",
)
_PRIOR_FILE = (
    "CSV file with the assumed distribution of values: one frequency per line in domain order, or one value and its "
    "frequency per line; - reads standard input."
)
PRIOR_OPTION = click.option("--prior", type=INPUT, help=f"{_PRIOR_FILE}  [default: uniform]")
POSTERIOR_PRIOR_OPTION = click.option(
    "--prior", type=INPUT, help=f"{_PRIOR_FILE} Required with --method mmse, and rejected otherwise.  [default: none]"
)
PLOT_FILE = _Output(pipe=False)
CHECKPOINT = _Output(pipe=False)


def named(path: str, direction: str = "output") -> str:
    """Return a path as messages show it."""
    return f"standard {direction}" if path == PIPE else path


# -- input -------------------------------------------------------------------------------------------------


def read_bytes(path: str) -> bytes:
    """Return the content of a file or of standard input; raise InvalidInput if standard input is empty."""
    if path != PIPE:
        return Path(path).read_bytes()
    data = standard_input().read()
    if not data.strip():
        hint = "Check that the program before the pipe succeeded."
        raise InvalidInput(named(path, "input"), "the pipe", "not be empty", Description("nothing"), hint=hint)
    return data


@contextmanager
def _naming(shown: str) -> Iterator[None]:
    """Prefix errors with the name of the file, because document readers do not know it."""
    try:
        yield
    except SfumatoError as error:
        message = str(error)
        raise click.ClickException(message if message.startswith(f"{shown}: ") else f"{shown}: {message}") from error


def read_policy(path: str) -> Policy:
    """Return the policy of a file or of standard input."""
    return read_policy_and_question(path)[0]


def read_policy_and_question(
    path: str, question: Question | None = None, *, is_estimation: bool = True
) -> tuple[Policy, Question | None]:
    """Return the policy of a file, and the question: that of the option, else the one that the file states.

    Only estimation has a question; for another utility (``is_estimation`` is False) that of the file is ignored.
    """
    from sfumato.policy import load_policy, policy_from_dict
    from sfumato.questions import load_question, question_from_document

    with _naming(named(path, "input")):
        if path == PIPE:
            document = _piped_document("policy")
            policy, stated = policy_from_dict(document, base=Path()), question_from_document(document)
        else:
            policy, stated = load_policy(path), load_question(path)
        stated = None if stated is None else stated.checked(policy.domain)
    if question is not None:
        return policy, question.checked(policy.domain)
    return policy, stated if is_estimation else None


def _file_question(path: str) -> Question | None:
    """Return the question in a file or on standard input; None if it is a policy without a question."""
    from sfumato.questions import load_question, question_from_document

    with _naming(named(path, "input")):
        return question_from_document(_piped_document("question")) if path == PIPE else load_question(path)


def _piped_document(content: str) -> dict[str, Any]:
    """Return the document on standard input; input that begins with a brace is JSON, all other TOML."""
    import json
    import tomllib

    data = read_bytes(PIPE)
    try:
        decoded = data.decode("utf-8-sig")
        document = json.loads(decoded) if decoded.lstrip().startswith("{") else tomllib.loads(decoded)
    except (ValueError, RecursionError) as error:
        got = Description(f"a document that the parser rejects ({error})")
        raise InvalidInput(named(PIPE, "input"), "the content", f"be a {content} in TOML or JSON", got) from None
    assert isinstance(document, dict)
    return document


def read_mechanism(path: str) -> Mechanism:
    """Return the mechanism of a spec file or of standard input."""
    from sfumato.mechanisms import mechanism_from_spec

    data = read_bytes(path)
    with _naming(named(path, "input")):
        return mechanism_from_spec(data)


def read_certificate(path: str) -> Certificate:
    """Return the certificate of a file or of standard input, verified by a new audit."""
    from sfumato.auditing import Certificate, verify

    data = read_bytes(path)
    with _naming(named(path, "input")):
        return verify(Certificate.from_json(data.decode("utf-8-sig", errors="replace")))


def read_losses(path: str) -> ExpectedLoss:
    """Return the loss of every decision (a column) for every value (a line) from a CSV file."""
    import csv
    import io

    from sfumato.compiler import ExpectedLoss

    content = read_bytes(path).decode("utf-8-sig", errors="replace")
    with _naming(named(path, "input")):
        return ExpectedLoss([row for row in csv.reader(io.StringIO(content)) if row])


def read_prior(path: str, domain: Domain) -> list[float] | dict[object, float]:
    """Return a prior from a CSV file: one frequency per line in domain order, or one value and frequency per line."""
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
    must = "be a frequency, or a value and its frequency separated by a comma"
    hint = "Give one line per value of the domain, such as 0.25 or yes,0.25, without a header."
    raise InvalidInput(shown, "every line", must, rows[:1], hint=hint)


def label_of(domain: Domain, argument: str) -> object:
    """Return the label that an argument denotes: the string itself if the domain has it, else its JSON value."""
    from sfumato._core import parse_json, read_label

    if argument in domain:
        return argument
    try:
        return read_label(parse_json(argument))
    except ValueError:
        return argument


def counts_of(mechanism: Mechanism, data: bytes, shown: str) -> Aggregate:
    """Return the counts in a document; raise if they belong to another mechanism."""
    from sfumato.collecting import Aggregate

    with _naming(shown):
        counts = Aggregate.from_json(data)
        counts.check(mechanism)
    return counts


def grouped_counts_of(mechanism: Mechanism, data: bytes, shown: str) -> GroupedAggregate:
    """Return the counts by group in a document; raise if they belong to another mechanism."""
    from sfumato.collecting import GroupedAggregate

    with _naming(shown):
        counts = GroupedAggregate.from_json(data)
        counts.check(mechanism)
    return counts


# -- output ------------------------------------------------------------------------------------------------


def format_option(formats: Sequence[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option ``--format``, which is for pipes only; the first format is the default."""
    about = f"Format of standard output, with -o - only; a file's suffix sets its format.  [default: {formats[0]}]"
    return click.option("--format", "form", type=click.Choice(formats), help=about)


def piped_suffix(output: str | None, form: str | None, formats: Sequence[str]) -> str:
    """Return the format of a pipe as a file suffix; reject ``--format`` if the output is a file."""
    if form is not None and output != PIPE:
        raise click.UsageError("--format requires -o - (a pipe). Choose the format of a file by its suffix.")
    return f".{form or formats[0]}"
