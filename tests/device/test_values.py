"""Files of values: read from every format, in pieces, and every fault is refused with its row."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato._core import TextFormat, delimited
from sfumato.device.values import read_indices, read_values
from sfumato.domain import At, read_column
from sfumato.errors import InvalidInput
from support.reference import refusal
from support.tables import write_table


def joined(pieces: Iterator[Any]) -> list[Any]:
    return [value for piece in pieces for value in read_column(piece, At("test", "piece")).items()]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".pq", ".arrow", ".feather", ".ipc", ".txt", ""])
def test_values_are_read_from_every_format(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"values{suffix}"
    values = ["flu", "none", "é\"'", " x ", "", "hiv"] * 30_000
    if suffix == ".csv":
        path.write_text("v\n" + "".join('"' + v.replace('"', '""') + '"\n' for v in values), encoding="utf-8")
    elif suffix in ("", ".txt"):
        path.write_text("".join(v + "\n" for v in values), encoding="utf-8")
    elif suffix in (".parquet", ".pq"):
        pq.write_table(pa.table({"v": values}), path)
    else:
        feather.write_feather(pa.table({"v": values}), path)
    pieces = list(read_values(path))
    assert len(pieces) > 1 or suffix == ".csv"  # a piece of a large CSV file is a block of 4 MiB
    assert joined(iter(pieces)) == values
    if suffix not in ("", ".txt"):
        assert joined(read_values(path, "v")) == values
    domain = sf.Domain(sorted(set(values)))
    assert np.concatenate([domain.encode(piece) for piece in pieces]).tolist() == domain.encode(values).tolist()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_missing_column_is_refused_with_those_there(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"values{suffix}"
    if suffix == ".csv":
        path.write_text("age,answer\n1,a\n")
    else:
        write_table(path, pa.table({"age": [1], "answer": ["a"]}))
    assert refusal(list, read_values(path, "anser")) == (
        f"{path}: the column must be one of 'age', 'answer'; got 'anser'"
    )
    assert "the column must be named, one of 'age', 'answer'" in refusal(list, read_values(path))
    assert joined(read_values(path, "answer")) == ["a"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".txt", ""])
def test_an_empty_file_is_refused_by_name(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"values{suffix}"
    path.touch()
    assert refusal(list, read_values(path)).startswith(f"{path}: the file must")


def test_a_column_with_no_rows_is_empty(tmp_path: Path) -> None:
    (tmp_path / "values.csv").write_text("v\n")
    pq.write_table(pa.table({"v": pa.array([], pa.string())}), tmp_path / "values.parquet")
    assert joined(read_values(tmp_path / "values.csv")) == []
    assert joined(read_values(tmp_path / "values.parquet")) == []


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_truncated_column_file_is_refused_by_name(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"values{suffix}"
    write_table(path, pa.table({"v": ["some", "values"] * 100}))
    path.write_bytes(path.read_bytes()[:-20])
    assert f"{path}: the file must be a complete file" in refusal(list, read_values(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n", "line 3 must have 2 cells, one per column of the header; got 1 cell"),
        ("a,b\n1,2,3\n", "line 2 must have 2 cells, one per column of the header; got 3 cells"),
        ("a,b\n1,2\n\n3,4\n", "line 3 must have 2 cells, one per column of the header; got an empty line"),
        ('a,b\n1,"2\n', "line 2 must be well-formed delimited text"),
        ('a,b\n1,"2"x\n', "line 2 must be well-formed delimited text"),
    ],
)
def test_rows_of_csv_that_do_not_fit_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "values.csv"
    path.write_text(text)
    assert f"{path}: {message}" in refusal(list, read_values(path, "b"))


def test_csv_as_others_write_it(tmp_path: Path) -> None:
    path = tmp_path / "values.csv"
    path.write_bytes(b'\xef\xbb\xbfa,b\r\n1,"x, ""y""\r\nz"\r\n2,\r\n')
    assert joined(read_values(path, "b")) == ['x, "y"\r\nz', ""]
    assert list(read_values(path, ["b", "a"])) == [{"b": ['x, "y"\r\nz', ""], "a": ["1", "2"]}]


def test_text_as_others_write_it(tmp_path: Path) -> None:
    path = tmp_path / "values.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\r\ntw\ro\nthree")
    assert joined(read_values(path)) == ["one", "", "tw\ro", "three"]
    assert "must not be named" in refusal(list, read_values(path, "v"))
    path.write_bytes(b"one\n\xff\n")
    assert f"{path}: line 2 must be text in the encoding utf-8" in refusal(list, read_values(path))
    path.write_bytes(b"one\n" + b"x" * 2**21)
    assert f"{path}: line 2 must be at most 1048576 characters long" in refusal(list, read_values(path))


def test_standard_input_is_text_or_with_a_column_csv(monkeypatch: pytest.MonkeyPatch) -> None:
    for data, column, expected in ((b"a\nb\n", None, ["a", "b"]), (b"u,v\n1,a\n2,b\n", "v", ["a", "b"])):
        stdin = io.TextIOWrapper(io.BytesIO(data))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert joined(read_values("-", column)) == expected
        assert not stdin.buffer.closed
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert "standard input: the file must hold at least one value" in refusal(list, read_values("-"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "good", "bad"),
    [
        (sf.Domain.range(20), ["0", "7", "19"], ["07", "7.0", "+7", " 7", "", "1_0", "٣", "-0", "1e1", "9" * 5000]),
        (sf.Domain([-5, 3]), ["-5", "3"], ["- 5"]),
        (sf.Domain([0.5, 2.0]), ["0.5", "5e-1", "2", "2.", ".5", "+.5"], ["nan", "inf", "", "0,5", "0x1", "1_0", "."]),
        (sf.Domain([False, True]), ["true", "False"], ["1", "yes", ""]),
    ],
    ids=["range", "ints", "floats", "bools"],
)
def test_texts_become_the_labels_of_the_domain(
    domain: sf.Domain, good: list[str], bad: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "values.csv"
    path.write_text("id,v\n" + "".join(f"1,{text}\n" for text in good))
    assert domain.encode(joined(read_values(path, "v", domain=domain))).shape == (len(good),)
    for text in bad:
        with path.open("w", encoding="utf-8") as file:
            file.write("id,v\n" + f"1,{good[0]}\n" * 70_000 + f'1,"{text}"\n')
        message = refusal(list, read_values(path, "v", domain=domain))
        assert f"{path}: line 70002, column 'v' must be" in message


def test_parts_of_a_product_or_grid_come_from_their_columns(tmp_path: Path) -> None:
    product = sf.Domain.product(S=["yes", "no"], U=sf.Domain.range(3))
    grid = sf.Domain.grid(latitude=(0, 10), longitude=(0, 10), rows=2, columns=2)
    path = tmp_path / "values.csv"
    board = sf.Domain.grid(2, 2)
    path.write_text("U,S,latitude,longitude,column,row\n2,no,7.5,1,0,1\n0,yes,1,9,1,0\n")
    (piece,) = read_values(path, domain=product)
    assert product.encode(piece).tolist() == [5, 0]
    (piece,) = read_values(path, domain=grid)
    assert grid.encode(piece).tolist() == [2, 1]
    (piece,) = read_values(path, domain=board)
    assert board.encode(piece).tolist() == [2, 1]
    columns = {"U": [2, 0], "S": ["no", "yes"], "latitude": [7.5, 1.0], "longitude": [1.0, 9.0]}
    pq.write_table(pa.table(columns), tmp_path / "values.parquet")
    (piece,) = read_values(tmp_path / "values.parquet", domain=product)
    assert product.encode(piece).tolist() == [5, 0]
    path.write_text("U,S\n2,no\nx,yes\n")
    assert "line 3, column 'U' must be a whole number" in refusal(list, read_values(path, domain=product))


def test_values_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    assert "must end in one of .csv, " in refusal(list, read_values(tmp_path / "values.xlsx"))
    for name in ("values.csv", "values.txt", "values.parquet"):
        message = refusal(list, read_values(tmp_path / name))
        assert f"{tmp_path / name}: the path must be a readable file (" in message


@pytest.mark.parametrize("decimal", [".", ","])
def test_numbers_are_the_nearest_doubles_with_and_without_pyarrow(
    decimal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = np.random.default_rng(1)
    numbers = [repr(float(x)) for x in np.exp(draws.uniform(-300, 300, 300))]
    numbers += ["0", "1.", ".5", "-.5", "1e5", "1E-5", "9" * 40, "0." + "1" * 40, "4.9e-324", "2.5e-324", "1e308"]
    domain = sf.Domain.numbers(0, 1e6, bins=10)
    path = tmp_path / "values.csv"
    read = {}
    for more in ([], ["+1"], ["1e400"], ["-0.0"], ["inf"], ["nan"], [""], [" 1"], ["0x1"], ["1_0"], ["1.5.5"]):
        cells = [cell.replace(".", decimal) for cell in [*numbers, *more]]
        path.write_text("id;v\n" + "".join(f"1;{cell}\n" for cell in cells))
        for small in (2**18, -1):
            monkeypatch.setattr(delimited, "_SMALL_BYTES", small)
            try:
                read[small] = joined(read_values(path, "v", domain=domain, text=TextFormat(";", decimal=decimal)))
            except InvalidInput as error:
                read[small] = [str(error)]
        assert list(map(repr, read[-1])) == list(map(repr, read[2**18]))
        assert (len(read[-1]) == 1) == (more[:1] in ([""], ["nan"], [" 1"], ["0x1"], ["1_0"], ["1.5.5"]))


@pytest.mark.slow
def test_csv_is_read_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "values.csv"
    path.write_text("id,v\n" + "1,yes\n2,no\n" * 40_000 + "3,maybe\n")
    domain = sf.Domain(["yes", "no"])
    expected = joined(read_values(path, "v"))
    message = refusal(list, read_indices(path, "v", domain=domain))
    assert message == f"{path}: line 80002, column 'v' must be one of the str labels 'yes', 'no'; got 'maybe'"
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert [value for piece in read_values(path, "v") for value in piece] == expected
    assert refusal(list, read_indices(path, "v", domain=domain)) == message
