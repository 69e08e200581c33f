"""How functions, commands and files state a question: as an object, a short string or a document."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sfumato._core import did_you_mean, reads_document
from sfumato.domain import Domain
from sfumato.errors import Description, InvalidInput, file_error
from sfumato.questions.base import Question
from sfumato.questions.kinds import Distribution, Frequencies, Mean, Quantiles, Ranges
from sfumato.questions.marginals import Marginals

__all__ = ["load_question", "question_from_document", "question_from_string", "read_question"]

_NAMED: dict[str, Question] = {
    question.name: question for question in (Frequencies(), Mean(), Distribution(), Quantiles(), Marginals())
}
#: Other words for questions, and the string that states each of them, for messages.
_SYNONYMS = {
    "median": "quantiles:0.5",
    "quartiles": "quantiles",
    "percentiles": "quantiles",
    "cdf": "distribution",
    "average": "mean",
    "histogram": "frequencies",
    "tables": "marginals",
    "crosstab": "marginals",
}
#: Strings that state a question, for messages.
_FORMS = (
    "one of 'frequencies', 'mean', 'distribution', 'quantiles', 'marginals', or levels such as 'quantiles:0.1,0.5', or "
    "ranges such as 'ranges:18-64,65-', or tables such as 'marginals:1' or 'marginals:sex*race,age'"
)
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
#: A range of numbers, each with an optional minus sign: ``18-64``, ``65-``, ``-17`` (up to 17) or ``-5--1``.
_NUMERIC_RANGE = re.compile(rf"(?P<low>{_NUMBER})?-(?P<high>{_NUMBER})?")
#: A range of other labels, which have no hyphen.
_LABEL_RANGE = re.compile(r"(?P<low>[^-]*)-(?P<high>[^-]*)")


def read_question(subject: str, question: Question | str | None, domain: Domain) -> Question:
    """Return the question fitted to a domain; a name means its default, None all frequencies."""
    if question is None:
        question = _NAMED["frequencies"]
    if isinstance(question, str):
        question = question_from_string(subject, question)
    if not isinstance(question, Question):
        raise InvalidInput(subject, "question", f"be {_FORMS}; or a Question such as Mean()", question)
    return question.checked(domain)


def question_from_string(subject: str, notation: str) -> Question:
    """Return the question that a string states: a name, or a name with parameters after a colon.

    >>> question_from_string("plan", "quantiles:0.1,0.9")
    Quantiles([0.1, 0.9])
    """
    name, colon, parameters = notation.partition(":")
    if not colon and name in _NAMED:
        return _NAMED[name]
    if not colon or name not in _PARSERS:
        synonym = _SYNONYMS.get(name.lower())
        near = f" (did you mean {synonym!r}?)" if synonym else did_you_mean(name, [*_NAMED, *_PARSERS])
        raise InvalidInput(subject, "question", f"be {_FORMS}{near}", notation)
    return _PARSERS[name](subject, parameters)


def _levels(subject: str, parameters: str) -> Quantiles:
    """Return quantiles at levels that commas separate."""
    try:
        levels = [float(level) for level in parameters.split(",")]
    except ValueError:
        must = "be 'quantiles:' and numbers between 0 and 1, separated by commas"
        raise InvalidInput(subject, "question", must, f"quantiles:{parameters}") from None
    return Quantiles(levels)


def _ranges(subject: str, parameters: str) -> Ranges:
    """Return ranges of the form LOW-HIGH that commas separate; either limit may be missing."""
    pairs = []
    for part in parameters.split(","):
        match = _NUMERIC_RANGE.fullmatch(part) or _LABEL_RANGE.fullmatch(part)
        if match is None or not any(match.groups()):
            must = "be 'ranges:' and ranges such as 18-64, 65- or -17, separated by commas"
            hint = "Write limits that contain a hyphen or a comma in a question file."
            raise InvalidInput(subject, "question", must, f"ranges:{parameters}", hint=hint)
        low, high = (_limit(match[side]) for side in ("low", "high"))
        pairs.append((low, high))
    return Ranges(pairs)


def _tables(subject: str, parameters: str) -> Marginals:
    """Return all marginal tables of an order, or tables that commas separate: attributes joined by asterisks."""
    if re.fullmatch("[0-9]+", parameters):
        return Marginals(int(parameters))
    tables = [[name.strip() for name in table.split("*")] for table in parameters.split(",")]
    if not all(map(all, tables)):
        must = "be 'marginals:' and a number of attributes, or tables such as sex*race, separated by commas"
        hint = "Write names that contain an asterisk or a comma in a question file."
        raise InvalidInput(subject, "question", must, f"marginals:{parameters}", hint=hint)
    return Marginals(tables=tables)


def _limit(limit: str | None) -> Any:
    """Return a limit of a range: a number, a label, or None for no limit."""
    if not limit:
        return None
    if re.fullmatch(_NUMBER, limit):
        return float(limit) if "." in limit else int(limit)
    return limit


_PARSERS: dict[str, Callable[[str, str], Question]] = {
    "quantiles": _levels,
    "ranges": _ranges,
    "marginals": _tables,
}


@reads_document
def question_from_document(document: Mapping[str, Any]) -> Question | None:
    """Return the question of a question document, or the one that a policy document states; None if it has none."""
    if "policy" in document:
        entry = document.get("question")
        if entry is None:
            return None
        return question_from_string("a policy document", entry) if isinstance(entry, str) else Question.from_dict(entry)
    return Question.from_dict(document)


def load_question(path: str | Path) -> Question | None:
    """Read the question in a TOML or JSON file, which may be a policy file that states its question.

    Parameters
    ----------
    path
        A JSON file if the name ends in ``.json``, otherwise a TOML file. It contains the document of
        :meth:`Question.to_dict`, or a policy with the entry ``question``: a string such as ``"mean"`` or
        ``"ranges:18-64,65-"``, or such a document.

    Returns
    -------
    Question or None
        The question, not fitted to a domain; None for a policy file without a question.

    Raises
    ------
    InvalidInput
        If the file cannot be read or does not contain a valid question. A missing file raises :class:`MissingFile`,
        which is also a :class:`FileNotFoundError`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "median.toml")
    ...     _ = file.write_text('question = "quantiles"\\nlevels = [0.5]')
    ...     load_question(file)
    Quantiles([0.5])
    """
    path, must = Path(path), "be a readable question document"
    try:
        content = path.read_text(encoding="utf-8-sig")
        document = json.loads(content) if path.suffix == ".json" else tomllib.loads(content)
    except OSError as error:
        hint = "Check the path of the question file."
        raise file_error(error, str(path), "the file", must, hint=hint) from error
    except (ValueError, RecursionError) as error:
        hint = f"Write the question as {'JSON' if path.suffix == '.json' else 'TOML'} in UTF-8."
        got = Description(f"the syntax error: {error}")
        raise InvalidInput(str(path), "the file", must, got, hint=hint) from None
    return question_from_document(document)
