"""Files that documents name: label files with one value per line, and columns of CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.domain.refusals import At


def relative_path(name: object, base: Path | None, at: At) -> Path:
    """Return the path of a file that a document names, relative to the folder of the document."""
    if base is None:
        raise at.error("come with base=, the folder that contains the file", name)
    if not isinstance(name, str) or not name or Path(name).is_absolute():
        raise at.error("be a path relative to base", name)
    return base / name


@contextmanager
def csv_lines(path: Path, at: At) -> Iterator[Any]:
    """Open a CSV file as a reader of its lines; errors name the place of the file."""
    with _reading(path, at), path.open(encoding="utf-8-sig", newline="") as file:
        yield csv.reader(file, strict=True)


@contextmanager
def _reading(path: Path, at: At) -> Iterator[None]:
    """Convert the errors of reading a text file."""
    try:
        yield
    except OSError as error:
        raise at.file_error(error, f"be a readable file ({error.strerror})", str(path)) from error
    except UnicodeDecodeError as error:
        raise at.error("be UTF-8 text", str(path)) from error
    except csv.Error as error:
        raise at.error(f"be a well-formed CSV file ({error})", str(path)) from error


def file_labels(name: object, column: object, base: Path | None, at: At) -> list[str]:
    """Read labels from a text file with one label per line, or from a column of a CSV file."""
    path = relative_path(name, base, at)
    if column is not None and not isinstance(column, str):
        raise at.then(" column").error("be the name of a column", column)
    if column is None and path.suffix.lower() != ".csv":
        with _reading(path, at):
            return [line for line in path.read_text(encoding="utf-8-sig").split("\n") if line]
    with csv_lines(path, at) as lines:
        return _csv_labels(lines, column, at)


def _csv_labels(lines: Any, column: str | None, at: At) -> list[str]:
    """Return the labels in one column of a CSV file with a header row."""
    header: list[str] = next(lines, [])
    if column is None and len(header) != 1:
        raise at.then(" column").error(
            "be named, because this CSV file does not have exactly one column",
            header,
            hint='Add "column" to the document.',
        )
    if column is not None and header.count(column) != 1:
        raise at.then(" column").error(f"occur once in the header {header}", column)
    place = 0 if column is None else header.index(column)
    labels: list[str] = []
    for cells in lines:
        if not cells:
            continue
        if len(cells) != len(header) or not cells[place]:
            raise at.then(f", line {lines.line_num},").error("have a label in the column", cells)
        labels.append(cells[place])
    return labels
