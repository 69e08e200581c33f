"""Read columns of raw values from files or a pipe, in pieces for ``Domain.encode`` and ``privatize``.

Only code that runs on the device, next to the people whose values these are, may import this module.

    .csv                      a column under a header line
    .parquet .pq              a column
    .arrow .feather .ipc      a column
    .txt, or no suffix        one value per line
    -                         standard input: Parquet or Arrow if it begins like such a file; otherwise CSV if a column
                              is named, and one value per line if not
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from sfumato._core import quantity
from sfumato.collecting import ARROW, PARQUET, STREAM, Source, open_columns, source_of
from sfumato.domain import STRING_READERS, Domain, cell_reader
from sfumato.errors import Description, InvalidInput

__all__ = ["read_values"]

_CSV = (".csv",)
_TEXT = (".txt", "")
#: Number of rows per piece.
_ROWS = 2**16
#: Maximum length of a line, in characters.
_LONGEST_LINE = 2**20


def read_values(
    path: Path | str, column: str | Sequence[str] | None = None, *, domain: Domain | None = None
) -> Iterator[Any]:
    """Yield the values of a file in pieces.

    A piece is a list of values or an Arrow array. With several columns it is a mapping from column names to these.
    Nothing is guessed and nothing is dropped: a value that cannot be read raises InvalidInput with its file and row.

    ``column`` may be None if the file has only one column. A ``domain`` states which columns to read if ``column`` is
    None: the factors of a product, row and column of a grid, or latitude and longitude of a map. It also states the
    type of values in CSV and text files: int, float, or bool (``true`` and ``false``). If the domain has a label for
    missing values, an empty cell is a missing value. Without a domain the values are strings.
    """
    names = _names(column, domain)
    source = source_of(path, _CSV + PARQUET + ARROW + _TEXT)
    shown = source.shown
    if source.suffix in (*PARQUET, *ARROW, STREAM):
        yield from _from_columns(source, names)
        return
    is_csv = source.suffix in _CSV or (source.pipe is not None and bool(names))
    if names and not is_csv:
        raise InvalidInput(
            shown,
            "the column",
            "not be named, because a text file has no columns",
            names,
            hint="Leave the column out, or use a CSV file.",
        )
    with _text(source, newline="" if is_csv else "\n") as file:
        pieces = _from_csv(file, names, shown) if is_csv else _from_lines(file, shown)
        readers = _readers(domain, names)
        row = 0
        for piece in pieces:
            read = {name: reader(piece[name], shown, name, row) for name, reader in readers.items()}
            row += len(next(iter(piece.values())))
            yield next(iter(read.values())) if len(names) <= 1 else read


def _names(column: str | Sequence[str] | None, domain: Domain | None) -> list[str]:
    """Return the columns to read; an empty list means the only column."""
    if isinstance(column, str):
        return [column]
    if column is not None:
        return list(column)
    if domain is None:
        return []
    return ["latitude", "longitude"] if domain.is_map else list(domain.factors)


def _places(names: list[str], header: Sequence[str], path: str, hint: str = "") -> list[int]:
    """Return the positions of the named columns in a header."""
    shown = ", ".join(map(repr, header))
    if not names and len(header) != 1:
        raise InvalidInput(path, "the column", f"be named, one of {shown}", None)
    for name in names:
        times = list(header).count(name)
        if times > 1:
            got = Description(f"{times} columns of that name")
            raise InvalidInput(path, f"the column {name!r}", "occur once in the header", got)
        if times == 0:
            raise InvalidInput(path, "the column", f"be one of {shown}{hint}", name)
    return [list(header).index(name) for name in names] or [0]


# -- column files ------------------------------------------------------------------------------------------


def _from_columns(source: Source, names: list[str]) -> Iterator[Any]:
    """Yield the pieces of a Parquet or Arrow file."""
    with open_columns(source) as file:
        places = _places(names, file.names, file.path)
        for batch in file.batches([file.names[place] for place in places], _ROWS):
            columns = {name: batch.column(name) for name in names}
            yield columns if len(names) > 1 else batch.column(0)


# -- text files --------------------------------------------------------------------------------------------

#: A list of strings per column; the only column of a text file is named "".
TextPiece = dict[str, list[str]]


@contextmanager
def _text(source: Source, newline: str) -> Iterator[TextIO]:
    """Open a source as UTF-8 text."""
    try:
        with source.open() as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline=newline) as text_file:
            yield text_file
    except UnicodeDecodeError as error:
        hint = "Save the file with the encoding UTF-8."
        raise InvalidInput(
            source.shown, "the file", "be UTF-8 text", Description(f"other bytes ({error.reason})"), hint=hint
        ) from error


def _from_lines(file: TextIO, path: str) -> Iterator[TextPiece]:
    """Yield the lines of a file in pieces."""
    row = 0
    while lines := list(itertools.islice(_lines(file, path, row), _ROWS)):
        yield {"": lines}
        row += len(lines)
    if row == 0:
        raise InvalidInput(path, "the file", "hold at least one value", Description("an empty file"))


def _lines(file: TextIO, path: str, row: int) -> Iterator[str]:
    """Yield lines without their line ends, and reject long ones."""
    while line := file.readline(_LONGEST_LINE + 1):
        if len(line) > _LONGEST_LINE:
            raise InvalidInput(path, f"row {row}", f"be at most {_LONGEST_LINE} characters long", line)
        yield line.removesuffix("\n").removesuffix("\r")
        row += 1


def _from_csv(file: TextIO, names: list[str], path: str) -> Iterator[TextPiece]:
    """Yield the named columns of a CSV file in pieces."""
    lines = csv.reader(file, strict=True)
    try:
        header = next(lines, None)
        if header is None:
            raise InvalidInput(path, "the file", "have a header line", Description("an empty file"))
        other = len(header) == 1 and any(mark in header[0] for mark in ";\t|")
        places = _places(names, header, path, " (commas separate the cells)" if other else "")
        row = 0
        while piece := _csv_rows(lines, len(header), path, row):
            yield {name: [cells[place] for cells in piece] for name, place in zip(names or [""], places, strict=True)}
            row += len(piece)
    except csv.Error as error:
        got = Description(f"a line that the parser rejects ({error})")
        raise InvalidInput(path, f"line {lines.line_num}", "be well-formed CSV", got) from error


def _csv_rows(lines: Any, width: int, path: str, row: int) -> list[list[str]]:
    """Return the next rows of a CSV file, and check their number of cells."""
    rows: list[list[str]] = []
    for cells in itertools.islice(lines, _ROWS):
        if len(cells) != width:  # the message does not show the cells, because they may hold personal data
            where = f"row {row + len(rows)} (line {lines.line_num})"
            must = f"have {quantity(width, 'cell')}, one per column of the header"
            raise InvalidInput(path, where, must, Description(quantity(len(cells), "cell")))
        rows.append(cells)
    return rows


# -- conversion of strings to values -----------------------------------------------------------------------

Reader = Callable[[list[str], str, str, int], list[Any]]


def _readers(domain: Domain | None, names: list[str]) -> dict[str, Reader]:
    """Return a function per column that converts its strings to values."""
    if domain is None:
        return dict.fromkeys(names or [""], _as_they_are)
    if domain.is_map and len(names) == 2:
        return dict.fromkeys(names, _reader(*STRING_READERS[float]))
    if domain.factors and len(names) == len(domain.factors):
        return {name: _reader_of(factor) for name, factor in zip(names, domain.factors.values(), strict=True)}
    return dict.fromkeys(names or [""], _reader_of(domain))


def _reader_of(domain: Domain) -> Reader:
    """Return a function that converts the strings of a column to values of a domain."""
    reader = cell_reader(domain)
    return _as_they_are if reader is None else _reader(*reader)


def _as_they_are(strings: list[str], path: str, column: str, row: int) -> list[Any]:  # noqa: ARG001
    """Return strings unchanged."""
    return strings


def _reader(read: Callable[[str], Any], must: str) -> Reader:
    """Return a function that converts strings and names the row of the first invalid one."""

    def read_all(strings: list[str], path: str, column: str, row: int) -> list[Any]:
        labels = list(map(read, strings))
        if None in labels:
            wrong = labels.index(None)
            where = f"row {row + wrong}" + (f" of the column {column!r}" if column else "")
            hint = None if strings[wrong] else "A domain with missing='unknown' has a value for empty cells."
            raise InvalidInput(path, where, must, strings[wrong], hint=hint)
        return labels

    return read_all
