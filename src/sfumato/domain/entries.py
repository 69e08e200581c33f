"""Read CSV files that have one line per value of a domain, such as the district of each place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from sfumato._core import DelimitedText, TextFormat, import_pyarrow, quantity, read_list
from sfumato.domain.domain import Domain
from sfumato.domain.kinds.base import CellReader, DomainKind, Scalar
from sfumato.domain.kinds.product import Product
from sfumato.domain.label_files import opened
from sfumato.domain.labelled import label_parts
from sfumato.domain.refusals import At, listing
from sfumato.domain.scalars import STRING_READERS, Label
from sfumato.errors import Description, InvalidInput

__all__ = ["cell_reader", "decimal_array", "read_entries", "reads_decimals"]


def read_entries(
    domain: Domain,
    path: Path,
    column: str | None = None,
    value: str | Sequence[str] | None = None,
    text: TextFormat | None = None,
) -> list[str]:
    """Return the cell of one column for each value of a domain, in domain order.

    ``column`` is the column of the entries, and ``value`` the column of the values, or one column per part of values
    that are tuples. Either may be None if the other columns leave one choice. Errors name the file and the line.
    """
    shown, text = str(path), text or TextFormat()
    with opened(path, At(shown, "the file")) as opened_file:
        file = DelimitedText(opened_file, shown, text)
        header = file.header
        values, entry = _columns(domain, file, column, value)
        entries: dict[int, tuple[str, int]] = {}
        for number, cells in file.records():
            line = f"line {number}"
            for place in (*values, entry):
                if not cells[place]:
                    raise InvalidInput(shown, line, f"have an entry in the column {header[place]!r}", cells)
            label = _label(domain, [cells[place] for place in values], text.decimal)
            if label is None or label not in domain:
                got = [cells[place] for place in values]
                must = "name a value of the domain"
                raise InvalidInput(shown, line, must, got[0] if len(got) == 1 else tuple(got))
            index = domain.index(label)
            if index in entries:
                got_twice = Description(f"{label!r}, which line {entries[index][1]} names too")
                raise InvalidInput(shown, line, "name a value that no other line names", got_twice)
            entries[index] = cells[entry], number
    missing = [domain.label(x) for x in range(len(domain)) if x not in entries]
    if missing:
        got_missing = Description(f"no line for {listing(missing, most=3)}")
        raise InvalidInput(shown, "the file", "have a line for every value of the domain", got_missing)
    return [entries[x][0] for x in range(len(domain))]


def _columns(domain: Domain, file: DelimitedText, column: Any, value: Any) -> tuple[list[int], int]:
    """Return the positions of the columns of values, and of the column of entries."""
    header, shown, other = file.header, file.shown, file.delimiter_hint()
    if value is None:
        names: list[Any] = label_parts(domain)
    else:
        must = "be the name of a column, or a list of names"
        names = [value] if isinstance(value, str) else read_list(shown, "the column of the values", must, value)
    for name in [*names, *([] if column is None else [column])]:
        if not isinstance(name, str) or header.count(name) != 1:
            raise InvalidInput(shown, "the column", f"occur once in the header {header}", name, hint=other)
    if not names:
        others = [name for name in header if name != column]
        if len(others) != (2 if column is None else 1):
            hint = other or "Name the column of the values and the column of the entries."
            raise InvalidInput(shown, "the header", "leave one choice for the columns", header, hint=hint)
        names = others[:1]
    label = domain.label(0)
    parts = len(label) if isinstance(label, tuple) else 1
    if len(names) != parts:
        must = f"be {quantity(parts, 'column')}, one per part of a value"
        raise InvalidInput(shown, "the columns of the values", must, names)
    if column is None:
        others = [name for name in header if name not in names]
        if len(others) != 1:
            raise InvalidInput(shown, "the column of the entries", f"be named, one of {listing(others)}", None)
        column = others[0]
    elif column in names:
        raise InvalidInput(shown, "the column of the entries", "differ from the columns of the values", column)
    return [header.index(name) for name in names], header.index(column)


def _label(domain: Domain, cells: list[str], decimal: str) -> Label | None:
    """Return the label that cells spell, or None if a cell does not have the type of the labels."""
    kind, label = domain._kind.by_label, domain.label(0)
    if isinstance(kind, Product):
        parts = [_cell(factor, cell, decimal) for factor, cell in zip(kind.factor_kinds, cells, strict=True)]
    elif isinstance(label, tuple):
        parts = [_read(type(part), cell) for part, cell in zip(label, cells, strict=True)]
    else:
        return cast("Label | None", _cell(kind, cells[0], decimal))
    return None if None in parts else cast("Label", tuple(parts))


def _cell(kind: DomainKind, cell: str, decimal: str) -> object | None:
    """Return the value of a kind that a cell spells, or None."""
    reader = _kind_reader(kind, decimal)
    return cell if reader is None else reader[0](cell)


def _read(scalar: type, cell: str) -> Label | None:
    """Return the label of a type that a cell spells, or None."""
    return STRING_READERS[scalar][0](cell) if scalar in STRING_READERS else cell


def cell_reader(domain: Domain, decimal: str = ".") -> CellReader | None:
    """Return a function that converts a cell of a text file to a value or returns None, and the requirement in words.

    The result is None if cells are values already, or if values have several parts.
    """
    return _kind_reader(domain._kind, decimal)


def _kind_reader(kind: DomainKind, decimal: str) -> CellReader | None:
    """Return the reader of cells of a kind for a decimal mark."""
    reader = kind.cell_reader if isinstance(kind, Scalar) else None
    return reader if reader is None or decimal == "." else _with_decimal_comma(reader)


def reads_decimals(domain: Domain) -> bool:
    """Return whether the reader of cells reads every decimal number as the nearest double."""
    return isinstance(domain._kind, Scalar) and domain._kind.reads_decimals


#: Exchange of the decimal point and the decimal comma.
_EXCHANGE = str.maketrans(".,", ",.")


def _with_decimal_comma(reader: CellReader) -> CellReader:
    """Return a reader of numbers with a decimal comma; it rejects a decimal point, which may separate thousands."""
    read, must = reader

    def read_cell(cell: str) -> object | None:
        value = read(cell)
        if isinstance(value, str):  # a label, not a number
            return value
        number = read(cell.translate(_EXCHANGE))
        return None if isinstance(number, str) else number

    return read_cell, must


def decimal_array(cells: Any, decimal: str) -> Any:
    """Return an Arrow column of strings as doubles; None if a string may not be a decimal number.

    pyarrow accepts other spellings, such as "nan", only with other characters than those of decimal numbers. Both
    pyarrow and Python round to the nearest double.
    """
    pyarrow = import_pyarrow()
    allowed = b"0123456789+-eE" + decimal.encode()
    for chunk in cells.chunks:
        _, offsets, data = chunk.buffers()
        ends = np.frombuffer(offsets, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        if data is not None and data.to_pybytes()[ends[0] : ends[-1]].translate(None, allowed):
            return None
    try:
        if decimal != ".":
            cells = import_pyarrow(module="pyarrow.compute").replace_substring(cells, decimal, ".")
        return cells.cast(pyarrow.float64())
    except pyarrow.ArrowException:  # Python reads some more spellings, such as "+1"
        return None
