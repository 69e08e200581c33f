"""Read columns of raw values from files or a pipe, in pieces for ``Domain.encode`` and ``privatize``.

Only code that runs on the device, next to the people whose values these are, may import this module.

    .csv .tsv .tab            a column under a header line; also .csv.gz and so on
    .parquet .pq              a column
    .arrow .feather .ipc      a column
    .txt, or no suffix        one value per line; also .txt.gz
    -                         standard input: Parquet or Arrow if it begins like such a file; otherwise CSV if a column
                              is named, and one value per line if not; text may be compressed with gzip
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sfumato._core import DelimitedText, Integers, TextFormat, import_pyarrow, is_compressed, text_lines
from sfumato.collecting import ARROW, PARQUET, STREAM, Source, open_columns, source_of, suffix_of
from sfumato.domain import (
    MISSING_HINT,
    At,
    Coded,
    Domain,
    Label,
    cell_reader,
    decimal_array,
    drop_marked,
    encode_rows,
    filled_domain,
    marked_domain,
    read_column,
    reads_decimals,
)
from sfumato.errors import Description, InvalidInput

__all__ = ["EncodedRows", "check_present", "read_indices", "read_values"]

_CSV = (".csv", ".tsv", ".tab")
_TEXT = (".txt", "")
_GZIP = ".gz"
_SHEETS = (".xlsx", ".xls", ".ods")
#: Number of rows per piece of a column file or of a file of lines.
_ROWS = 2**16


@dataclass(frozen=True)
class EncodedRows:
    """Consecutive rows of a file."""

    #: Index of each value.
    indices: Integers
    #: Further columns by name: lists of strings, or Arrow arrays.
    extra: dict[str, Any]
    #: Function that names a cell in messages, given its column and its row.
    cell_name: Callable[[str, int], str]
    #: Number of rows that were dropped because they have no value.
    dropped: int = 0


def read_values(
    path: Path | str,
    column: str | Sequence[str] | None = None,
    *,
    domain: Domain | None = None,
    text: TextFormat | None = None,
    missing: Label | Mapping[str, Label] | None = None,
) -> Iterator[Any]:
    """Yield the values of a file in pieces.

    A piece is a list of values, an Arrow array or a column for ``Domain.encode``. With several columns it is a mapping
    from column names to these. Nothing is guessed and nothing is dropped: a value that cannot be read raises
    InvalidInput with its file, line and column.

    ``column`` may be None if the file has only one column. A ``domain`` states which columns to read if ``column`` is
    None: the factors of a product, row and column of a grid, or latitude and longitude of a map. It also states the
    type of values in CSV and text files: int, float, or bool (``true`` and ``false``). If the domain has a label for
    missing values, an empty cell is a missing value. Without a domain the values are strings.

    ``text`` states how a text file spells its cells. ``missing`` is the label of the domain that missing values, such
    as empty cells, are read as.
    """
    if missing is not None:
        if domain is None:
            raise InvalidInput("read_values", "missing", "come with a domain, which contains this label", missing)
        domain = filled_domain(domain, missing, At("read_values", "missing"))
    for piece in _pieces(path, _names(column, domain), domain, text or TextFormat(), ()):
        yield piece.values


def read_indices(
    path: Path | str,
    column: str | Sequence[str] | None = None,
    *,
    domain: Domain,
    text: TextFormat | None = None,
    missing: Label | Mapping[str, Label] | None = None,
    drop_missing: bool = False,
    extra: Sequence[str] = (),
) -> Iterator[EncodedRows]:
    """Yield the values of a file as indices of a domain, with further columns of the same rows.

    The arguments of :func:`read_values` have the same meaning here. ``extra`` names further columns, which are not
    converted: lists of strings or Arrow arrays. None of their cells may be missing. If ``drop_missing`` is set, rows
    without a value are left out. This is not private, because it reveals who has no value.
    """
    text = text or TextFormat()
    reading = domain
    if drop_missing:
        reading = marked_domain(domain, At("read_indices", "missing"))
    elif missing is not None:
        reading = filled_domain(domain, missing, At("read_indices", "missing"))
    for piece in _pieces(path, _names(column, domain), reading, text, extra):
        indices = encode_rows(reading, piece.values, piece.shown, piece.row_name)
        rows = EncodedRows(indices, piece.extra, piece.cell_name)
        if drop_missing:
            indices, selection = drop_marked(domain, reading, indices)
            columns = {name: _chosen(cells, selection) for name, cells in piece.extra.items()}
            cell_name = functools.partial(_chosen_name, piece.cell_name, np.flatnonzero(selection))
            rows = EncodedRows(indices, columns, cell_name, len(selection) - len(indices))
        for name, cells in rows.extra.items():
            check_present(cells, piece.shown, functools.partial(rows.cell_name, name), piece.empty)
        yield rows


def check_present(cells: Any, shown: str, row_name: Callable[[int], str], empty: Sequence[str] = ()) -> None:
    """Raise InvalidInput for the first missing cell of a further column: a null, NaN, or one of the empty strings."""
    is_missing = [cell in empty for cell in cells] if isinstance(cells, list) else cells.is_null(nan_is_null=True)
    if not isinstance(cells, list) and empty:
        compute = import_pyarrow(shown, "pyarrow.compute")
        is_missing = compute.is_in(cells, value_set=import_pyarrow(shown).array(empty))
    rows = np.flatnonzero(np.asarray(is_missing))
    if len(rows):
        hint = "Give missing cells a label, such as unknown, in the file."
        raise InvalidInput(shown, row_name(int(rows[0])), "not be missing", Description("an empty cell"), hint=hint)


def _chosen_name(cell_name: Callable[[str, int], str], rows: Integers, column: str, row: int) -> str:
    """Return the name of a cell among the selected rows."""
    return cell_name(column, int(rows[row]))


def _chosen(cells: Any, selection: Any) -> Any:
    """Return the selected rows of a column."""
    return list(itertools.compress(cells, selection)) if isinstance(cells, list) else cells.filter(selection)


@dataclass(frozen=True)
class _Piece:
    """Consecutive rows of a file, with values of the domain's type."""

    shown: str
    values: Any
    extra: dict[str, Any]
    #: Function that names a row in messages.
    row_name: Callable[[int], str]
    #: Function that names a cell of a further column in messages.
    cell_name: Callable[[str, int], str]
    #: Strings that are missing cells of further columns. A column file has none, because it marks missing cells.
    empty: tuple[str, ...] = ()


def _pieces(
    path: Path | str, names: list[str], domain: Domain | None, text: TextFormat, extra: Sequence[str]
) -> Iterator[_Piece]:
    """Yield the values and further columns of a file in pieces."""
    source = _source(path)
    if source.suffix in (*PARQUET, *ARROW, STREAM):
        if text != TextFormat():
            hint = "Delimiter, encoding, decimal mark and null cells describe text files."
            raise InvalidInput(source.shown, "the text format", "be left out for a column file", text, hint=hint)
        yield from _from_columns(source, names, extra)
        return
    is_csv = source.suffix in _CSV or (source.pipe is not None and bool(names or extra))
    if (names or extra) and not is_csv:
        raise InvalidInput(
            source.shown,
            "the column",
            "not be named, because a text file has no columns",
            [*names, *extra],
            hint="Leave the column out, or use a CSV file.",
        )
    with source.open() as file:
        if source.pipe is None and source.shown.lower().endswith(_GZIP) and not is_compressed(file):
            hint = "Remove .gz from the name if the file is not compressed."
            raise InvalidInput(source.shown, "the file", "be a gzip file", Description("other bytes"), hint=hint)
        if is_csv:
            yield from _from_cells(DelimitedText(file, source.shown, text), names, domain, text, extra)
        else:
            yield from _from_lines(file, source.shown, domain, text)


def _source(path: Path | str) -> Source:
    """Return the source that a path names; a compressed file has the suffix of its content."""
    name = str(path)
    known = _CSV + PARQUET + ARROW + _TEXT
    if name.lower().endswith(_GZIP):
        return Source(name, suffix_of(name[: -len(_GZIP)], _CSV + _TEXT))
    if Path(name).suffix.lower() in _SHEETS:
        hint = "Save the sheet as CSV."
        raise InvalidInput(name, "the file name", f"end in one of {', '.join(known)}", Path(name).suffix, hint=hint)
    return source_of(path, known)


def _names(column: str | Sequence[str] | None, domain: Domain | None) -> list[str]:
    """Return the columns to read; an empty list means the only column."""
    if isinstance(column, str):
        return [column]
    if column is not None:
        return list(column)
    if domain is None:
        return []
    return ["latitude", "longitude"] if domain.is_map else list(domain.factors)


def _places(names: Sequence[str], header: Sequence[str], path: str, hint: str | None = None) -> list[int]:
    """Return the positions of the named columns in a header; without names, that of the only column."""
    shown = ", ".join(map(repr, header))
    if not names and (len(header) != 1 or hint is not None):
        raise InvalidInput(path, "the column", f"be named, one of {shown}", None, hint=hint)
    for name in names:
        times = list(header).count(name)
        if times > 1:
            got = Description(f"{times} columns of that name")
            raise InvalidInput(path, f"the column {name!r}", "occur once in the header", got)
        if times == 0:
            raise InvalidInput(path, "the column", f"be one of {shown}", name, hint=hint)
    return [list(header).index(name) for name in names] or [0]


def _row_name(kind: str, number: Callable[[int], int], columns: Sequence[str]) -> Callable[[int], str]:
    """Return a function that names a row, and the column if there is one, in messages."""
    column = f", column {columns[0]!r}" if len(columns) == 1 else ""
    return lambda row: f"{kind} {number(row)}{column}"


def _cell_name(kind: str, number: Callable[[int], int], column: str, row: int) -> str:
    """Return how messages name a cell."""
    return f"{kind} {number(row)}, column {column!r}"


# -- column files ------------------------------------------------------------------------------------------


def _from_columns(source: Source, names: list[str], extra: Sequence[str]) -> Iterator[_Piece]:
    """Yield the pieces of a Parquet or Arrow file."""
    with open_columns(source) as file:
        places = _places(names, file.names, file.path)
        further = _places(extra, file.names, file.path) if extra else []
        chosen = [file.names[place] for place in places]
        columns = list(dict.fromkeys([*chosen, *(file.names[place] for place in further)]))
        first = 1
        for batch in file.batches(columns, _ROWS):
            values = {name: batch.column(name) for name in chosen}
            row_name = _row_name("row", first.__add__, chosen)
            others = {name: batch.column(name) for name in extra}
            cell_name = functools.partial(_cell_name, "row", first.__add__)
            yield _Piece(file.path, values if len(chosen) > 1 else values[chosen[0]], others, row_name, cell_name)
            first += batch.num_rows


# -- text files --------------------------------------------------------------------------------------------


def _from_lines(file: BinaryIO, shown: str, domain: Domain | None, text: TextFormat) -> Iterator[_Piece]:
    """Yield the lines of a file in pieces."""
    reader = _readers(domain, [""], text)[""]
    lines = text_lines(file, shown, text)
    first = 1
    while piece := list(itertools.islice(lines, _ROWS)):
        row_name = _row_name("line", first.__add__, ())
        cell_name = functools.partial(_cell_name, "line", first.__add__)
        yield _Piece(shown, _read_cells(piece, reader, shown, row_name), {}, row_name, cell_name)
        first += len(piece)
    if first == 1:
        raise InvalidInput(shown, "the file", "hold at least one value", Description("an empty file"))


def _from_cells(
    file: DelimitedText, names: list[str], domain: Domain | None, text: TextFormat, extra: Sequence[str]
) -> Iterator[_Piece]:
    """Yield the rows of a delimited text file in pieces."""
    hint = file.delimiter_hint()
    places = _places(names, file.header, file.shown, hint)
    further = _places(extra, file.header, file.shown, hint) if extra else []
    columns = [file.header[place] for place in places]
    readers = _readers(domain, columns, text)
    plain = {place for place, name in zip(places, columns, strict=True) if readers[name].decimal is not None}
    for piece in file.pieces([*places, *further], plain.difference(further)):
        cells = dict(zip(columns, piece.columns, strict=False))
        values = {
            name: _read_cells(cells[name], reader, file.shown, _row_name("line", piece.line_of, [name]))
            for name, reader in readers.items()
        }
        others = dict(zip(extra, piece.columns[len(places) :], strict=True))
        row_name = _row_name("line", piece.line_of, columns)
        cell_name = functools.partial(_cell_name, "line", piece.line_of)
        only = values if len(columns) > 1 else values[columns[0]]
        yield _Piece(file.shown, only, others, row_name, cell_name, ("", *text.nulls))


# -- conversion of strings to values -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Reader:
    """How the cells of a column become values."""

    #: Function that converts a string or returns None; None if strings are values.
    read: Callable[[str], Any] | None = None
    #: The requirement in words.
    must: str = "be a label"
    #: The decimal mark, if every decimal number is read as the nearest double.
    decimal: str | None = None


def _readers(domain: Domain | None, names: list[str], text: TextFormat) -> dict[str, _Reader]:
    """Return the reader of each column."""
    domains: Mapping[str, Domain | None] = dict.fromkeys(names, domain)
    if domain is not None and domain.is_map and len(names) == 2:
        domains = dict.fromkeys(names, _COORDINATES)
    elif domain is not None and domain.factors and len(names) == len(domain.factors):
        domains = dict(zip(names, domain.factors.values(), strict=True))
    return {name: _reader_of(domain, text) for name, domain in domains.items()}


#: A domain whose cells are read as coordinates.
_COORDINATES = Domain([0.0])


def _reader_of(domain: Domain | None, text: TextFormat) -> _Reader:
    """Return the reader of a column with values of a domain; null cells are read as empty cells."""
    reader = None if domain is None else cell_reader(domain, text.decimal)
    if reader is None and not text.nulls:
        return _Reader()
    read, must = reader or (str, "be a label")
    if not text.nulls:
        decimal = text.decimal if domain is not None and reads_decimals(domain) else None
        return _Reader(read, must, decimal)
    nulls = frozenset(text.nulls)
    return _Reader(lambda cell: read("" if cell in nulls else cell), must)


def _read_cells(cells: Any, reader: _Reader, shown: str, row_name: Callable[[int], str]) -> Any:
    """Convert a column of strings to values; errors name the first invalid one."""
    if reader.read is None:
        return cells
    if isinstance(cells, list):
        values = list(map(reader.read, cells))
        if None in values:
            wrong = values.index(None)
            raise _invalid(cells[wrong], reader.must, shown, row_name(wrong))
        return values
    numbers = None if reader.decimal is None else decimal_array(cells, reader.decimal)
    if numbers is not None:
        return numbers
    column = read_column(cells, At(shown, "the column"))
    assert isinstance(column, Coded)
    values = list(map(reader.read, column.categories))  # each distinct string is read once
    if None in values:
        invalid = np.array([value is None for value in values])
        wrong = int(invalid[column.codes].argmax())
        raise _invalid(str(column.at(wrong)), reader.must, shown, row_name(wrong))
    return Coded(column.codes, values)


def _invalid(cell: str, must: str, shown: str, where: str) -> InvalidInput:
    """Return the error for a cell that is not a value."""
    if not cell:
        return InvalidInput(shown, where, must, Description("an empty cell"), hint=MISSING_HINT)
    return InvalidInput(shown, where, must, cell)
