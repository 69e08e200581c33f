"""Files that people have: the answer that each unusual or damaged file gets.

The list is also the table of docs/how-to/use-files.md; a test compares them.
"""

from __future__ import annotations

import datetime
import functools
import gzip
import io
import random
import re
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato._core import TextFormat, delimited
from sfumato.device import read_indices
from sfumato.errors import InvalidInput

ANSWERS = sf.Domain(["yes", "no"])
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-files.md"


def table(write: Callable[..., Any], column: Any, **others: Any) -> bytes:
    """A Parquet or Arrow file with the column ``v``, and others."""
    buffer = io.BytesIO()
    write(pa.table({"v": column, **others}), buffer)
    return buffer.getvalue()


def zipped(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, "v\nyes\n")
    return buffer.getvalue()


@dataclass(frozen=True)
class Case:
    """A file, and the answer: the labels that are read, or a part of the message."""

    title: str
    data: bytes
    answer: list[Any] | str
    name: str = "values.csv"
    column: str | None = "v"
    domain: sf.Domain = ANSWERS
    options: dict[str, Any] = field(default_factory=dict)
    text: dict[str, Any] = field(default_factory=dict)


GZ = gzip.compress(b"v\nyes\nno\n")
BLOCK = b"v,w\n" + b"yes,1\n" * 3
PEOPLE = sf.Domain.product(v=["yes", "no"], w=range(3))
UNKNOWN = sf.Domain(["yes", "no"], missing="unknown")

CASES = [
    # text as others write it
    Case("byte order mark of UTF-8", b"\xef\xbb\xbfv\nyes\n", ["yes"]),
    Case("line ends CRLF", b"v,w\r\nyes,1\r\nno,2\r\n", ["yes", "no"]),
    Case("line ends CR", b"v,w\ryes,1\rno,2\r", ["yes", "no"]),
    Case("no line end after the last line", b"v\nyes\nno", ["yes", "no"]),
    Case("quoted line end in another column", b'w,v\n"a\n\nb",yes\n', ["yes"]),
    Case("tabs in a file .tsv", b"v\tw\nyes\t1\n", ["yes"], name="values.tsv"),
    Case("gzip", GZ, ["yes", "no"], name="values.csv.gz"),
    Case("gzip without .gz in the name", GZ, ["yes", "no"]),
    Case("semicolons, with the delimiter ;", b"v;w\nyes;1\n", ["yes"], text={"delimiter": ";"}),
    Case("vertical bars, with the delimiter |", b"v|w\nyes|1\n", ["yes"], text={"delimiter": "|"}),
    Case(
        "Latin-1, with that encoding",
        "v\nnö\n".encode("latin-1"),
        ["nö"],
        domain=sf.Domain(["nö"]),
        text={"encoding": "latin-1"},
    ),
    Case("UTF-16, with that encoding", "v\nyes\n".encode("utf-16"), ["yes"], text={"encoding": "utf-16"}),
    Case(
        "decimal comma, with that decimal mark",
        b"v;w\n0,5;1\n",
        [0.5],
        domain=sf.Domain([0.5]),
        text={"delimiter": ";", "decimal": ","},
    ),
    Case("column name with spaces", b"my answer,w\nyes,1\n", ["yes"], column="my answer"),
    Case("leading zeros as labels", b"v\n01\n1\n", ["01", "1"], domain=sf.Domain(["01", "1"])),
    Case('"NA" and "null" as labels', b"v\nNA\nnull\n", ["NA", "null"], domain=sf.Domain(["NA", "null"])),
    # missing values
    Case(
        "missing cell",
        b"v,w\nyes,1\n,2\n",
        "line 3, column 'v' must be one of the str labels 'yes', 'no'; got an empty cell. Choose a value for missing",
    ),
    Case("missing cell, missing as 'no'", b"v,w\nyes,1\n,2\n", ["yes", "no"], options={"missing": "no"}),
    Case("missing cell, domain with missing='unknown'", b"v,w\nyes,1\n,2\n", ["yes", "unknown"], domain=UNKNOWN),
    Case("missing cell, missing rows dropped", b"v,w\nyes,1\n,2\n", ["yes"], options={"drop_missing": True}),
    Case(
        "missing as a label that the domain does not have",
        b"v\nyes\n",
        "missing must be a label of the domain; got 'none'",
        options={"missing": "none"},
    ),
    Case(
        '"NA" in a column of other labels',
        b"v\nyes\nNA\n",
        "line 3, column 'v' must be one of the str labels 'yes', 'no'; got 'NA'",
    ),
    Case(
        "\"NA\" as a null cell, missing as 'no'",
        b"v\nyes\nNA\n",
        ["yes", "no"],
        text={"nulls": ("NA",)},
        options={"missing": "no"},
    ),
    Case(
        '"nan" in a column of numbers',
        b"v\n0.5\nnan\n",
        "line 3, column 'v' must be a number; got 'nan'",
        domain=sf.Domain([0.5]),
    ),
    Case(
        "missing number",
        b"v,w\n3,1\n,2\n",
        "line 3, column 'v' must be a whole number in plain digits; got an empty cell. Choose a value",
        domain=sf.Domain.range(5),
    ),
    Case(
        "null in a Parquet file",
        table(pq.write_table, ["yes", None]),
        "row 2, column 'v' must be one of the str labels 'yes', 'no'; got None. Choose a value",
        name="values.parquet",
    ),
    # damaged text
    Case("empty file", b"", "the file must have a header line; got an empty file"),
    Case("header only", b"v\n", []),
    Case("empty first line", b"\nv\nyes\n", "line 1 must be the header; got an empty line"),
    Case(
        "empty line at the end",
        b"v,w\nyes,1\n\n",
        "line 3 must have 2 cells, one per column of the header; got an empty line. Delete",
    ),
    Case(
        "empty line in the middle",
        b"v\nyes\n\nno\n",
        "line 3 must have 1 cell, one per column of the header; got an empty line. Delete",
    ),
    Case("too few cells", b"v,w\nyes,1\nno\n", "line 3 must have 2 cells, one per column of the header; got 1 cell"),
    Case("too many cells", b"v,w\nyes,1,2\n", "line 2 must have 2 cells, one per column of the header; got 3 cells"),
    Case(
        "quotation mark that is not closed",
        b'v,w\nyes,1\nno,"2\nno,3\n',
        "line 3 must be well-formed delimited text; got a record that the parser rejects",
    ),
    Case(
        "characters after a closing quotation mark",
        b'v,w\nyes,"1"x\n',
        "line 2 must be well-formed delimited text; got a record that the parser rejects",
    ),
    Case("quotation mark within a cell", b'v,w\nyes,5" pipe\n', ["yes"]),
    Case(
        "NUL byte",
        b"v\nyes\nn\0o\n",
        "line 3 must be text; got a NUL byte. Check that the file is text, and set its encoding.",
    ),
    Case(
        "very long line",
        b"v,w\nyes," + b"1," * 600_000,
        "line 2 must be at most 1048576 characters long; got a longer line",
    ),
    Case(
        "very long cell",
        b"v,w\nyes,1\nno," + b"1" * 200_000,
        "line 3 must be well-formed delimited text; got a record that the parser rejects (field larger than",
    ),
    # other formats
    Case(
        "Latin-1 without that encoding",
        "v\nyes\nnö\n".encode("latin-1"),
        "line 3 must be text in the encoding utf-8; got other bytes (invalid start byte). Set the encoding",
    ),
    Case(
        "UTF-16 without that encoding",
        "v\nyes\n".encode("utf-16"),
        "the file must have the encoding utf-8; got UTF-16 text. Set the encoding to utf-16.",
    ),
    Case(
        "UTF-8 with the encoding utf-16",
        b"v\nyes\n",
        "the file must begin with the byte order mark of UTF-16; got text without one",
        text={"encoding": "utf-16"},
    ),
    Case(
        "truncated gzip",
        GZ[:-9],
        "the file must be a complete gzip file; got Compressed file ended before the end-of-stream marker",
        name="values.csv.gz",
    ),
    Case(
        "damaged gzip",
        GZ[:-6] + b"\0" + GZ[-5:],
        "the file must be a complete gzip file; got CRC check failed",
        name="values.csv.gz",
    ),
    Case(
        "not compressed, but named .gz",
        b"v\nyes\n",
        "the file must be a gzip file; got other bytes. Remove .gz from the name",
        name="values.csv.gz",
    ),
    Case(
        "ZIP archive named .csv",
        zipped("values.csv"),
        "the file must be a text file; got a ZIP archive or an Excel workbook. Extract the file",
    ),
    Case(
        "Excel workbook named .csv",
        zipped("xl/workbook.xml"),
        "the file must be a text file; got a ZIP archive or an Excel workbook. Extract the file",
    ),
    Case(
        "Excel workbook",
        zipped("xl/workbook.xml"),
        "the file name must end in one of .csv, .tsv, .tab, .parquet",
        name="values.xlsx",
    ),
    Case(
        "Parquet named .csv",
        table(pq.write_table, ["yes"]),
        "the file must be a text file; got a Parquet file. Rename the file so that it ends in .parquet.",
    ),
    Case(
        "Parquet with strings that are not UTF-8",
        table(functools.partial(pq.write_table, compression="NONE"), ["yes", "no"]).replace(b"yes", b"y\xffs"),
        "the file must be a complete file of the format that its name states",
        name="values.parquet",
    ),
    Case(
        "CSV named .parquet",
        b"v\nyes\n",
        "the file must be a complete file of the format that its name states",
        name="values.parquet",
    ),
    # columns
    Case(
        "semicolons without the delimiter",
        b"v;w\nyes;1\n",
        "the column must be one of 'v;w'; got 'v'. The header contains a semicolon: set the delimiter to ';'",
    ),
    Case(
        "tabs in a file .csv",
        b"v\tw\nyes\t1\n",
        "got 'v'. The header contains a tab: set the delimiter to '\\t' if it separates cells.",
    ),
    Case(
        "semicolons, column not named",
        b"v;w\nyes;1\n",
        "the column must be named, one of 'v;w'; got None. The header contains a semicolon",
        column=None,
    ),
    Case(
        "several columns, none named",
        b"v,w\nyes,1\n",
        "the column must be named, one of 'v', 'w'; got None",
        column=None,
    ),
    Case("column that does not exist", b"u,w\nyes,1\n", "the column must be one of 'u', 'w'; got 'v'"),
    Case(
        "column name that occurs twice",
        b"v,v\nyes,no\n",
        "the column 'v' must occur once in the header; got 2 columns of that name",
    ),
    # public columns, which travel with the reports
    Case(
        "empty cell in a public column",
        b"v,region\nyes,north\nno,\n",
        "line 3, column 'region' must not be missing; got an empty cell. Give missing cells a label",
        options={"extra": ["region"]},
    ),
    Case(
        "public column after a quoted line end",
        b'u,v,region\n"a\nb",yes,north\nc,no,\n',
        "line 4, column 'region' must not be missing; got an empty cell. Give missing cells a label",
        options={"extra": ["region"]},
    ),
    Case(
        "public column after a row that is dropped",
        b"v,region\n,north\nyes,\n",
        "line 3, column 'region' must not be missing; got an empty cell. Give missing cells a label",
        options={"extra": ["region"], "drop_missing": True},
    ),
    Case(
        "null cell in a public column",
        b"v,region\nyes,north\nno,NA\n",
        "line 3, column 'region' must not be missing; got an empty cell. Give missing cells a label",
        options={"extra": ["region"]},
        text={"nulls": ("NA",)},
    ),
    Case(
        "null in a public column of a Parquet file",
        table(pq.write_table, ["yes", "no"], region=["north", None]),
        "row 2, column 'region' must not be missing; got an empty cell. Give missing cells a label",
        name="values.parquet",
        options={"extra": ["region"]},
    ),
    Case(
        "NaN in a public column of a Parquet file",
        table(pq.write_table, ["yes", "no"], weight=[1.0, float("nan")]),
        "row 2, column 'weight' must not be missing; got an empty cell. Give missing cells a label",
        name="values.parquet",
        options={"extra": ["weight"]},
    ),
    # values of another type
    Case(
        "spaces around a value",
        b"v,w\nyes ,1\n",
        "line 2, column 'v' must be one of the str labels 'yes', 'no'; got 'yes '. Remove the spaces around it.",
    ),
    Case(
        "value that is not in the domain",
        b"v,w\nyes,1\nmaybe,2\n",
        "line 3, column 'v' must be one of the str labels 'yes', 'no'; got 'maybe'",
    ),
    Case(
        "leading zeros in a column of ints",
        b"v\n3\n07\n",
        "line 3, column 'v' must be a whole number in plain digits; got '07'",
        domain=sf.Domain.range(9),
    ),
    Case(
        "thousands separator",
        b'v\n"1,234"\n',
        "line 2, column 'v' must be a number; got '1,234'",
        domain=sf.Domain.range(0, 5000),
    ),
    Case(
        "decimal comma without that decimal mark",
        b'v\n"0,5"\n',
        "line 2, column 'v' must be a number; got '0,5'",
        domain=sf.Domain([0.5]),
    ),
    Case(
        "decimal point with the decimal mark ,",
        b"v\n0.5\n",
        "line 2, column 'v' must be a number; got '0.5'",
        domain=sf.Domain([0.5]),
        text={"decimal": ","},
    ),
    Case(
        "part of a product",
        b"v,w\nyes,1\nno,x\n",
        "line 3, column 'w' must be a whole number in plain digits; got 'x'",
        column=None,
        domain=PEOPLE,
    ),
    Case(
        "part of a product that is not in its domain",
        b"v,w\nyes,1\nno,7\n",
        "line 3, factor 'w' must be an int from 0 to 2; got 7",
        column=None,
        domain=PEOPLE,
    ),
    Case(
        "dictionary column",
        table(pq.write_table, pa.array(["yes", "no"]).dictionary_encode()),
        ["yes", "no"],
        name="values.parquet",
    ),
    Case(
        "ints for string labels",
        table(pq.write_table, [1, 2]),
        "row 1, column 'v' must be one of the str labels '1', '2'; got 1",
        name="values.parquet",
        domain=sf.Domain(["1", "2"]),
    ),
    Case(
        "strings for int labels",
        table(feather.write_feather, ["1", "2"]),
        "row 1, column 'v' must be an int from 0 to 8; got '1'",
        name="values.arrow",
        domain=sf.Domain.range(9),
    ),
    Case(
        "nested column",
        table(pq.write_table, [["yes"], ["no"]]),
        "row 1, column 'v' must be one of the str labels 'yes', 'no'; got ['yes']",
        name="values.parquet",
    ),
    Case(
        "timestamps",
        table(pq.write_table, [datetime.datetime(2026, 1, 2)]),
        "row 1, column 'v' must be one of the str labels 'yes', 'no'; got datetime.datetime(2026, 1, 2",
        name="values.parquet",
    ),
    Case(
        "delimiter for a Parquet file",
        table(pq.write_table, ["yes"]),
        "the text format must be left out for a column file",
        name="values.parquet",
        text={"delimiter": ";"},
    ),
]


def answer(path: Path | str, case: Case) -> list[Any] | str:
    """The labels of a file, or the message without the name of the file."""
    options = {**case.options, "text": TextFormat(**case.text)} if case.text else case.options
    try:
        pieces = list(read_indices(path, case.column, domain=case.domain, **options))
    except InvalidInput as error:
        message = str(error)
    else:
        return [label for piece in pieces for label in case.domain.decode(piece.indices)]
    assert message.startswith((f"{path}: ", "standard input: ", "read_indices: "))
    return message.partition(": ")[2]


def check(case: Case, found: list[Any] | str) -> None:
    if isinstance(case.answer, str):
        assert isinstance(found, str)
        assert case.answer in found
    else:
        assert found == case.answer


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_answer_to_a_file(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / case.name
    path.write_bytes(case.data)
    found = answer(path, case)
    check(case, found)
    monkeypatch.setattr(delimited, "_SMALL_BYTES", -1)  # the same with pyarrow's parser
    assert answer(path, case) == found


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in ("values.csv", "values.csv.gz")], ids=lambda case: case.title
)
def test_the_same_answer_by_a_pipe(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    if case.column is None or "Parquet named" in case.title or "named .gz" in case.title:
        pytest.skip("a pipe has no name, and is lines of text without a column")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(case.data)))
    check(case, answer("-", case))


def test_files_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder.csv").mkdir()
    case = Case("", b"", "")
    assert "the path must be a readable file (Is a directory)" in answer(tmp_path / "folder.csv", case)
    assert "the path must be a readable file (No such file or directory)" in answer(tmp_path / "none.csv", case)

    def deny(*_: Any, **__: Any) -> Any:  # root may read every file
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", deny)
    assert "the path must be a readable file (Permission denied)" in answer(tmp_path / "values.csv", case)


def test_further_columns_come_with_the_values(tmp_path: Path) -> None:
    rows = [("yes", "a,b", 1), ("", "c", 2), ("no", "d", 3)]
    (tmp_path / "v.csv").write_text("v,g,n\n" + "".join(f'{v},"{g}",{n}\n' for v, g, n in rows))
    columns = {"v": [v or None for v, _, _ in rows], "g": [g for _, g, _ in rows], "n": [n for _, _, n in rows]}
    pq.write_table(pa.table(columns), tmp_path / "v.parquet")
    for name, numbers in (("v.csv", ["1", "3"]), ("v.parquet", [1, 3])):
        (piece,) = read_indices(tmp_path / name, "v", domain=ANSWERS, drop_missing=True, extra=["g", "n"])
        assert piece.indices.tolist() == [0, 1]
        assert piece.dropped == 1
        assert [list(map(str, piece.extra["g"])), list(piece.extra["n"])] == [["a,b", "d"], numbers] or name != "v.csv"
        assert pa.array(piece.extra["n"]).to_pylist() == numbers
    with pytest.raises(InvalidInput, match=r"the column must be one of 'v', 'g', 'n'; got 'x'"):
        list(read_indices(tmp_path / "v.csv", "v", domain=ANSWERS, extra=["x"]))


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return a file with a few bytes changed, removed or repeated; many of them are bytes of its strings."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        place = max(0, data.find(chance.choice((b"yes", b"no", b"east")), chance.randrange(len(data))))
        place = min(chance.choice((place, chance.randrange(len(data)))), len(changed) - 1)
        match chance.randrange(3):
            case 0:
                changed[place] = chance.choice((0, 0x80, 0xC3, 0xFF, chance.randrange(256)))
            case 1:
                del changed[place : place + chance.randrange(1, 9)]
            case _:
                changed[place:place] = changed[place : place + chance.randrange(1, 9)]
        changed = changed or bytearray(b"v")
    return bytes(changed)


def test_a_damaged_file_is_read_or_rejected(tmp_path: Path, is_soak: bool) -> None:
    chance = random.Random(39)
    values, groups = ["yes", "no", "no"] * 20, ["east", "west", "east"] * 20
    text = "v,g\n" + "".join(f"{value},{group}\n" for value, group in zip(values, groups, strict=True))
    plain = functools.partial(pq.write_table, compression="NONE", use_dictionary=False)
    files = {
        "plain.parquet": table(plain, values, g=groups),
        "dictionary.parquet": table(functools.partial(pq.write_table, compression="NONE"), values, g=groups),
        "compressed.parquet": table(pq.write_table, values, g=groups),
        "values.arrow": table(functools.partial(feather.write_feather, compression="uncompressed"), values, g=groups),
        "values.csv": text.encode(),
        "values.csv.gz": gzip.compress(text.encode(), mtime=0),
    }
    rejected = 0
    for name, data in files.items():
        for _ in range(3000 if is_soak else 250):
            (tmp_path / name).write_bytes(damaged(data, chance))
            try:
                for piece in read_indices(tmp_path / name, "v", domain=ANSWERS, extra=["g"]):
                    pa.array(piece.extra["g"]).to_pylist()
            except InvalidInput:
                rejected += 1
    assert rejected > 200


def test_the_page_lists_every_file() -> None:
    listed = re.findall(r"^\| (.+?) \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    answers = dict(listed)
    for case in CASES:
        shown = answers[case.title.replace("|", "\\|")]
        if isinstance(case.answer, str):
            assert shown.strip("`").rstrip("…") in case.answer.replace("|", "\\|"), case.title
        else:
            expected = ", ".join(f"`{label!r}`" for label in case.answer) or "no values"
            assert shown == expected, case.title
