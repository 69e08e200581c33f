"""Files that documents name: label files with one value per line, and columns of CSV files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from sfumato._core import DelimitedText, TextFormat, text_lines
from sfumato.domain.refusals import At
from sfumato.errors import Description, InvalidInput


def relative_path(name: object, base: Path | None, at: At) -> Path:
    """Return the path of a file that a document names, relative to the folder of the document."""
    if base is None:
        raise at.error("come with base=, the folder that contains the file", name)
    if not isinstance(name, str) or not name or Path(name).is_absolute():
        raise at.error("be a path relative to base", name)
    return base / name


@contextmanager
def opened(path: Path, at: At) -> Iterator[BinaryIO]:
    """Open a file; a system error names the place of the file in a document."""
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise at.file_error(error, f"be a readable file ({error.strerror})", str(path)) from error


def file_labels(document: Mapping[str, Any], base: Path | None, at: At) -> list[str]:
    """Read labels from a text file with one label per line, or from a column of a CSV file."""
    path, column = relative_path(document["file"], base, at), document.get("column")
    if column is not None and not isinstance(column, str):
        raise at.then(" column").error("be the name of a column", column)
    form = text_format(document)
    with opened(path, at) as file:
        if column is None and not path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".tab")):
            return [line for line in text_lines(file, str(path), form) if line]
        return _column_labels(DelimitedText(file, str(path), form), column, at)


def text_format(document: Mapping[str, Any]) -> TextFormat:
    """Return the format of the text file that a document names."""
    return TextFormat(**{key: document[key] for key in TEXT_KEYS if key in document})


#: Keys of a document that describe the text file that it names.
TEXT_KEYS = ("delimiter", "encoding", "decimal")


def _column_labels(file: DelimitedText, column: str | None, at: At) -> list[str]:
    """Return the labels in one column of a delimited text file."""
    header = file.header
    if column is None and len(header) != 1:
        raise at.then(" column").error(
            "be named, because this CSV file does not have exactly one column",
            header,
            hint='Add "column" to the document.',
        )
    if column is not None and header.count(column) != 1:
        must = f"occur once in the header {header}"
        raise at.then(" column").error(must, column, hint=file.delimiter_hint())
    place = 0 if column is None else header.index(column)
    labels: list[str] = []
    for line, cells in file.records():
        if not cells[place]:
            must = f"have a label in the column {header[place]!r}"
            raise InvalidInput(file.shown, f"line {line}", must, Description("an empty cell"))
        labels.append(cells[place])
    return labels
