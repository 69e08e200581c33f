"""Delimited text: the same rows and errors with pyarrow and without it, whatever the blocks."""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Iterator
from typing import Any

import pytest

from sfumato._core import DelimitedText, TextFormat, delimited
from sfumato.domain import At, read_column
from sfumato.errors import InvalidInput
from support.reference import refusal

#: Parts of random files: cells with quotation marks, line ends and delimiters, regular or not.
_CELLS = ["", "a", "ä", "1", '"x"', '"x,y"', '"x ""y"""', '""', '"1\n2"', '"1\r\n2"', 'a"b', '"a"b', '"', "\r", " "]
_ENDS = ["\n", "\r\n", "\r"]


def read(data: bytes, places: list[int], form: TextFormat | None = None) -> tuple[list[Any], list[int]] | str:
    """The rows and their lines, or the message of the error."""
    try:
        file = DelimitedText(io.BufferedReader(io.BytesIO(data)), "file", form or TextFormat(delimiter=","))
        rows: list[Any] = []
        lines: list[int] = []
        for piece in file.pieces(places):
            columns = [read_column(cells, At("test", "cells")).items() for cells in piece.columns]
            rows.extend(zip(*columns, strict=True))
            lines.extend(map(piece.line_of, range(min(piece.rows, 100))))
    except InvalidInput as error:
        return str(error)
    return rows, lines


def random_file(seed: int) -> bytes:
    """A random file; half of them contain regular cells only."""
    draws = random.Random(seed)
    cells = _CELLS if seed % 2 else [cell for cell in _CELLS[:10] if cell]
    end, width = draws.choice(_ENDS), draws.choice([1, 2, 3])
    rows = [[draws.choice(cells) for _ in range(width)] for _ in range(draws.randrange(40))]
    if draws.random() < 0.2 and rows:
        rows[-1].append("more")
    header = ",".join("abc"[:width])
    return (header + end + end.join(",".join(row) for row in rows) + draws.choice(["", end])).encode()


@pytest.mark.parametrize("block", [7, 64, 2**22])
def test_pyarrow_and_python_read_the_same_rows_or_give_the_same_error(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = 0
    for seed in range(300 if block > 7 else 60):
        data = random_file(seed)
        expected = read(data, [0])
        monkeypatch.setattr(delimited, "_BLOCK_BYTES", block)
        monkeypatch.setattr(delimited, "_SMALL_BYTES", -1)
        parsed: list[Any] = []
        parser = delimited._arrow_parser()
        assert parser is not None

        def counting(*arguments: Any, parser: Any = parser, parsed: list[Any] = parsed) -> Any:
            parsed.append(parser(*arguments))
            return parsed[-1]

        monkeypatch.setattr(delimited, "_arrow_parser", lambda counting=counting: counting)
        assert read(data, [0]) == expected, (seed, data)
        fast += any(columns is not None for columns in parsed)
        monkeypatch.undo()
    assert fast > 20


@pytest.mark.slow
def test_long_cells_and_lines_are_refused_with_and_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "x" * 140_000
    for cells in (f"1,{long}", f'1,"{long}"', f'"{long[:70_000]}""{long[:70_000]}",1', '1,"' + "y\n" * 70_000 + '"'):
        data = ("a,b\n" + "1,2\n" * 20_000 + cells + "\n" + "1,2\n" * 20_000).encode()
        message = read(data, [0])
        assert "line 20002 must be well-formed delimited text; got a record that the parser rejects (field" in message
        monkeypatch.setattr(delimited, "_arrow_parser", lambda: None)
        assert read(data, [0]) == message
        monkeypatch.undo()
    assert "line 2 must be at most 1048576 characters long" in read(b"a,b\n" + b"1," * 2**21, [0])


def test_files_of_lines_are_numbered_after_quoted_line_ends() -> None:
    data = b'a,b\r\n1,"x\r\ny"\r\n2,z\r\n'
    assert read(data, [1, 0]) == ([("x\r\ny", "1"), ("z", "2")], [2, 4])
    assert read(data + b"3\r\n", [0]) == "file: line 5 must have 2 cells, one per column of the header; got 1 cell"


@pytest.mark.parametrize("wrong", [";;", "a", "1", '"', "\n", "", ".", "ä"])
def test_other_delimiters_are_refused(wrong: str) -> None:
    assert "the text format: delimiter must be one ASCII character" in refusal(TextFormat, delimiter=wrong)


def test_other_formats_are_refused() -> None:
    assert "encoding must be one of utf-8, utf-8-sig, latin-1" in refusal(TextFormat, encoding="ebcdic")
    assert "decimal must be '.' or ','" in refusal(TextFormat, decimal=";")


@pytest.mark.parametrize("kind", ["plain", "quoted", "two members"])
def test_compressed_files_may_be_left_at_any_piece(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and gzip streams of pieces that are still in use, of readers that were closed, and of others are apart."""
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", 2**10)
    monkeypatch.setattr(delimited, "_SMALL_BYTES", -1)
    cell = '"{}"' if kind == "quoted" else "{}"
    rows = [[cell.format(number % 7), cell.format(number)] for number in range(1500)]
    data = "".join(f"{','.join(row)}\n" for row in [["v", "w"], *rows]).encode()
    halves = gzip.compress(data[:4000]) + gzip.compress(data[4000:])
    compressed = halves if kind == "two members" else gzip.compress(data)

    def pieces(cut: int = 0) -> Iterator[delimited.TextPiece]:
        file = io.BufferedReader(io.BytesIO(compressed[: len(compressed) - cut]))
        return DelimitedText(file, "values.csv.gz", TextFormat()).pieces([0, 1])

    kept = []
    for stop in range(12):
        reader = pieces()
        kept += [piece for piece, _ in zip(reader, range(stop), strict=False)]
        del reader
    readers = [pieces() for _ in range(8)]
    kept += [next(reader) for reader in readers]
    del readers
    for piece in kept:
        numbers = [int(str(number)) for number in piece.columns[1]]
        assert numbers == list(range(numbers[0], numbers[0] + piece.rows))
        assert [int(str(value)) for value in piece.columns[0]] == [number % 7 for number in numbers]
        assert [piece.line_of(row) for row in range(0, piece.rows, 50)] == [number + 2 for number in numbers[::50]]
    assert sum(piece.rows for piece in pieces()) == len(rows)
    with pytest.raises(InvalidInput, match="be a complete gzip file"):
        list(pieces(cut=20))
