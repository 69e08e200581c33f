"""Columns of values on disk or from a pipe, read in pieces that ``Domain.encode`` and ``privatize`` take as they are.

Raw values: only what runs beside the people they belong to may import this module.

    .csv                      a column under a header line
    .parquet .pq              a column
    .arrow .feather .ipc      a column
    .txt, or no suffix        one value a line
    -                         standard input: Parquet or Arrow if it begins so; else CSV if a column is named; else
                              one value a line
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from sfumato.collecting import ARROW, PARQUET, STREAM, Source, open_columns, source_of
from sfumato.domain import Domain
from sfumato.errors import InvalidInput

__all__ = ["read_values"]

_CSV = (".csv",)
_TEXT = (".txt", "")
#: Values are read in pieces of this many rows.
_ROWS = 2**16
_LONGEST_LINE = 2**20


def read_values(
    path: Path | str, column: str | Sequence[str] | None = None, *, domain: Domain | None = None
) -> Iterator[Any]:
    """The values of a file, in pieces: lists of texts, or Arrow arrays; with several columns, a mapping of these.

    ``column`` may be left out where there is only one. A ``domain`` says which columns hold its parts (a product's
    factors; a grid's latitude and longitude) where none is named, and what the texts of a text file stand for: ints,
    floats, or ``true`` and ``false``. Nothing is guessed and nothing is dropped; what cannot be read is refused with
    file and row.
    """
    names = _names(column, domain)
    source = source_of(path, _CSV + PARQUET + ARROW + _TEXT)
    shown = source.shown
    if source.suffix in (*PARQUET, *ARROW, STREAM):
        yield from _from_columns(source, names)
        return
    is_csv = source.suffix in _CSV or (source.pipe is not None and bool(names))
    if names and not is_csv:
        raise InvalidInput(shown, "the column", "not be named, for a text file has none", names)
    with _text(source, newline="" if is_csv else "\n") as file:
        pieces = _from_csv(file, names, shown) if is_csv else _from_lines(file, shown)
        readers = _readers(domain, names)
        row = 0
        for piece in pieces:
            read = {name: reader(piece[name], shown, name, row) for name, reader in readers.items()}
            row += len(next(iter(piece.values())))
            yield next(iter(read.values())) if len(names) <= 1 else read


def _names(column: str | Sequence[str] | None, domain: Domain | None) -> list[str]:
    """The columns to read; none means the only one."""
    if isinstance(column, str):
        return [column]
    if column is not None:
        return list(column)
    if domain is not None and domain.kind == "product":
        return list(domain.factors)
    if domain is not None and domain.kind == "grid":
        return ["latitude", "longitude"]
    return []


def _places(names: list[str], header: Sequence[str], path: str, hint: str = "") -> list[int]:
    """Where the named columns stand in a header."""
    shown = ", ".join(map(repr, header))
    if not names and len(header) != 1:
        raise InvalidInput(path, "the column", f"be named, one of {shown}", None)
    for name in names:
        times = list(header).count(name)
        if times > 1:
            raise InvalidInput(path, f"the column {name!r}", "be there once", f"{times} of that name")
        if times == 0:
            raise InvalidInput(path, "the column", f"be one of {shown}{hint}", name)
    return [list(header).index(name) for name in names] or [0]


# -- column files ------------------------------------------------------------------------------------------


def _from_columns(source: Source, names: list[str]) -> Iterator[Any]:
    with open_columns(source) as file:
        places = _places(names, file.names, file.path)
        for batch in file.batches([file.names[place] for place in places], _ROWS):
            columns = {name: batch.column(name) for name in names}
            yield columns if len(names) > 1 else batch.column(0)


# -- texts -------------------------------------------------------------------------------------------------

#: For each column a list of texts; a text file has one, named "".
TextPiece = dict[str, list[str]]


@contextmanager
def _text(source: Source, newline: str) -> Iterator[TextIO]:
    try:
        with source.open() as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline=newline) as text:
            yield text
    except UnicodeDecodeError as error:
        raise InvalidInput(source.shown, "the file", "be UTF-8 text", str(error)) from error


def _from_lines(file: TextIO, path: str) -> Iterator[TextPiece]:
    row = 0
    while texts := list(itertools.islice(_lines(file, path, row), _ROWS)):
        yield {"": texts}
        row += len(texts)
    if row == 0:
        raise InvalidInput(path, "the file", "hold at least one value", "an empty file")


def _lines(file: TextIO, path: str, row: int) -> Iterator[str]:
    while line := file.readline(_LONGEST_LINE + 1):
        if len(line) > _LONGEST_LINE:
            raise InvalidInput(path, f"row {row}", f"be at most {_LONGEST_LINE} characters long", line)
        yield line.removesuffix("\n").removesuffix("\r")
        row += 1


def _from_csv(file: TextIO, names: list[str], path: str) -> Iterator[TextPiece]:
    lines = csv.reader(file, strict=True)
    try:
        header = next(lines, None)
        if header is None:
            raise InvalidInput(path, "the file", "have a header line", "an empty file")
        other = len(header) == 1 and any(mark in header[0] for mark in ";\t|")
        places = _places(names, header, path, " (cells have commas between them)" if other else "")
        row = 0
        while piece := _csv_rows(lines, len(header), path, row):
            yield {name: [cells[place] for cells in piece] for name, place in zip(names or [""], places, strict=True)}
            row += len(piece)
    except csv.Error as error:
        raise InvalidInput(path, f"line {lines.line_num}", f"be well-formed CSV ({error})", "something else") from error


def _csv_rows(lines: Any, width: int, path: str, row: int) -> list[list[str]]:
    rows: list[list[str]] = []
    for cells in itertools.islice(lines, _ROWS):
        if len(cells) != width:  # what they hold may be anybody's name: it is not to be shown
            where = f"row {row + len(rows)} (line {lines.line_num})"
            raise InvalidInput(path, where, f"have {width} cell{'s' if width > 1 else ''}", len(cells))
        rows.append(cells)
    return rows


# -- what texts stand for ----------------------------------------------------------------------------------

Reader = Callable[[list[str], str, str, int], list[Any]]

_INT = re.compile(r"0|-?[1-9][0-9]{0,999}", re.ASCII)
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def _readers(domain: Domain | None, names: list[str]) -> dict[str, Reader]:
    """For each column what its texts stand for."""
    if domain is None:
        return dict.fromkeys(names or [""], _as_they_are)
    if domain.kind == "grid" and len(names) == 2:
        return dict.fromkeys(names, _READERS[float])
    if domain.kind == "product" and len(names) == len(domain.factors):
        kinds = [type(factor.label(0)) for factor in domain.factors.values()]
        return {name: _READERS.get(kind, _as_they_are) for name, kind in zip(names, kinds, strict=True)}
    return dict.fromkeys(names or [""], _READERS.get(type(domain.label(0)), _as_they_are))


def _as_they_are(texts: list[str], path: str, column: str, row: int) -> list[Any]:  # noqa: ARG001
    return texts


def _reader(read: Callable[[str], Any], must: str) -> Reader:
    def read_all(texts: list[str], path: str, column: str, row: int) -> list[Any]:
        labels = list(map(read, texts))
        if None in labels:
            wrong = labels.index(None)
            where = f"row {row + wrong}" + (f" of the column {column!r}" if column else "")
            raise InvalidInput(path, where, must, texts[wrong])
        return labels

    return read_all


def _bool(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


_READERS: dict[type, Reader] = {
    int: _reader(lambda text: int(text) if _INT.fullmatch(text) else None, "be a whole number in plain digits"),
    float: _reader(lambda text: float(text) if _FLOAT.fullmatch(text) else None, "be a number"),
    bool: _reader(_bool, "be true or false"),
}
