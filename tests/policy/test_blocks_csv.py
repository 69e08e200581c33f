"""Blocks from a CSV file: every value has one block, and errors name the file, the line and the value."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import MissingFile
from support.reference import refusal

PLACES = sf.Domain(["harbour", "station", "castle"])
BOARD = sf.Domain.grid(2, 2)
MAP = sf.Domain.grid(latitude=(0, 1), longitude=(0, 1), rows=2, columns=2)
DISTRICTS = "place,district\ncastle,hills\nharbour,city\n\nstation,city\n"
CELLS = "row,column,district\n0,0,south\n0,1,south\n1,1,north\n1,0,north\n"


@pytest.mark.parametrize(
    ("domain", "content", "columns", "blocks"),
    [
        (PLACES, DISTRICTS, {}, "aab"),
        (PLACES, "\ufeff" + DISTRICTS, {"column": "district"}, "aab"),
        (PLACES, 'district,place\n"a,b",harbour\nx,station\n"a,b",castle\n', {"column": "district"}, "aba"),
        (PLACES, "d,place,n\nx,harbour,\ny,station,\ny,castle,\n", {"column": "d", "value": "place"}, "abb"),
        (
            PLACES,
            "place,district,n\nharbour,1,\nstation,2,\ncastle,1,\n",
            {"column": "district", "value": "place"},
            "aba",
        ),
        (sf.Domain.range(3), "n,d\n2,x\n0,y\n1,x\n", {}, "abb"),
        (sf.Domain([0.5, 2.0]), "n,d\n2,x\n.5,y\n", {}, "ab"),
        (sf.Domain([True, False]), "n,d\nfalse,x\nTrue,x\n", {}, "aa"),
        (BOARD, CELLS, {}, "aabb"),
        (MAP, CELLS, {"column": "district"}, "aabb"),
        (BOARD, CELLS.replace("row,column", "r,c"), {"value": ["r", "c"]}, "aabb"),
        (BOARD.subset([(1, 0), (0, 1)]), "r,c,d\n0,1,x\n1,0,y\n", {"value": ["r", "c"]}, "ab"),
        (sf.Domain.product(s=["x", "y"], n=range(2)), "n,d,s\n0,1,x\n1,1,x\n0,1,y\n1,2,y\n", {}, "aaab"),
    ],
)
def test_blocks_are_read(domain: sf.Domain, content: str, columns: Any, blocks: str, tmp_path: Path) -> None:
    path = tmp_path / "districts.csv"
    path.write_text(content, encoding="utf-8")
    expected = sf.Blocks(domain, blocks, 1, across=3)
    assert sf.Blocks.from_csv(domain, path, 1, 3, **columns) == expected
    (tmp_path / "folder").mkdir()
    path.rename(tmp_path / "folder" / "districts.csv")
    parameters = {"kind": "blocks", "blocks": {"file": "folder/districts.csv", **columns}, "epsilon": 1, "across": 3}
    document = {"domain": domain.to_dict(), "policy": parameters}
    assert sf.policy_from_dict(document, base=tmp_path).hash == expected.hash


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("place,d\nharbour,x\nlake,y\n", {}, "line 3 must name a value of the domain; got 'lake'"),
        ("place,d\nharbour,x\n,y\n", {}, "line 3 must have an entry in the column 'place'; got ['', 'y']"),
        ("place,d\nharbour,x\nstation,\n", {}, "line 3 must have an entry in the column 'd'; got ['station', '']"),
        (
            "place,d\nharbour,x\n\nharbour,y\n",
            {},
            "line 4 must name a value that no other line names; got 'harbour', wh",
        ),
        (
            "place,d\nharbour,x\n",
            {},
            "the file must have a line for every value of the domain; got no line for 'station'",
        ),
        ("place,d\nharbour,x,1\n", {}, "line 2 must have 2 cells, one per column of the header; got 3 cells"),
        (
            "place,d,e\n",
            {},
            "the header must leave one choice for the columns; got ['place', 'd', 'e']. Name the column",
        ),
        ("place,d,e\n", {"value": "place"}, "the column of the entries must be named, one of 'd', 'e'; got None"),
        ("place,d\n", {"column": "e"}, "the column must occur once in the header ['place', 'd']; got 'e'"),
        ("place,d,d\n", {"column": "d"}, "the column must occur once in the header ['place', 'd', 'd']; got 'd'"),
        (
            "place,d\n",
            {"column": "d", "value": "d"},
            "the column of the entries must differ from the columns of the va",
        ),
        (
            "place,d\n",
            {"value": ["place", "d"]},
            "the columns of the values must be 1 column, one per part of a value;",
        ),
        ("place,d\n", {"value": 3}, "the column of the values must be the name of a column, or a list of names; got 3"),
        ("", {}, "the file must have a header line; got an empty file"),
        ('place,d\n"harbour,x\n', {}, "line 2 must be well-formed delimited text; got a record that"),
    ],
)
def test_errors_name_the_file_and_the_line(content: str, columns: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "districts.csv"
    path.write_text(content, encoding="utf-8")
    assert refusal(sf.Blocks.from_csv, PLACES, path, 1, **columns).startswith(f"{path}: {message}")


def test_missing_files_and_other_encodings_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"districts\.csv: the file must be a readable file"):
        sf.Blocks.from_csv(PLACES, tmp_path / "districts.csv", 1)
    (tmp_path / "latin.csv").write_bytes("place,d\nhärbour,x\n".encode("latin-1"))
    assert "line 2 must be text in the encoding utf-8" in refusal(sf.Blocks.from_csv, PLACES, tmp_path / "latin.csv", 1)


@pytest.mark.parametrize(
    ("name", "encoding", "columns"),
    [
        ("districts.tsv", "utf-8", {}),
        ("districts.csv.gz", "utf-8", {"delimiter": "\t"}),
        ("districts.csv", "utf-16", {"delimiter": "\t", "encoding": "utf-16"}),
        ("districts.csv", "cp1252", {"delimiter": "\t", "encoding": "cp1252", "column": "district", "value": "Straße"}),
    ],
)
def test_districts_in_other_formats(name: str, encoding: str, columns: Any, tmp_path: Path) -> None:
    data = DISTRICTS.replace(",", "\t").replace("place", "Straße").encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    expected = sf.Blocks(PLACES, "aab", 1)
    assert sf.Blocks.from_csv(PLACES, tmp_path / name, 1, **columns) == expected
    parameters = {"kind": "blocks", "blocks": {"file": name, **columns}, "epsilon": 1}
    assert sf.policy_from_dict({"domain": PLACES.to_dict(), "policy": parameters}, base=tmp_path) == expected
    labels = sf.Domain.from_dict(
        {
            "file": name,
            "column": "Straße",
            **{key: columns[key] for key in columns if key in ("delimiter", "encoding")},
        },
        base=tmp_path,
    )
    assert labels.labels == ("castle", "harbour", "station")


def test_numbers_of_districts_may_have_a_decimal_comma(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("n;d\n0,5;x\n2;y\n")
    blocks = sf.Blocks.from_csv(sf.Domain([0.5, 2.0]), tmp_path / "d.csv", 1, delimiter=";", decimal=",")
    assert blocks == sf.Blocks(sf.Domain([0.5, 2.0]), "ab", 1)
    message = refusal(sf.Blocks.from_csv, sf.Domain([0.5, 2.0]), tmp_path / "d.csv", 1)
    assert "The header contains a semicolon: set the delimiter to ';' if it separates cells." in message


def test_a_policy_file_names_its_districts(tmp_path: Path) -> None:
    (tmp_path / "districts.csv").write_text(DISTRICTS, encoding="utf-8")
    policy_file = tmp_path / "policy.toml"
    lines = ["[domain]", 'values = ["harbour", "station", "castle"]', "[policy]", 'kind = "blocks"', 'epsilon = "1"']
    policy_file.write_text("\n".join([*lines, 'blocks = {file = "districts.csv"}']), encoding="utf-8")
    policy = sf.load_policy(policy_file)
    assert policy == sf.Blocks(PLACES, "aab", 1)
    sf.save_policy(policy, tmp_path / "saved.toml")
    assert sf.load_policy(tmp_path / "saved.toml") == policy


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (
            {"file": "d.csv", "colum": "d"},
            "blocks key must be one of 'file', 'column', 'value', 'delimiter', 'encoding', 'decimal' (did you",
        ),
        (
            {"file": "d.csv", "value": "place", "delimiter": 5},
            "delimiter must be one ASCII character that is not a letter",
        ),
        ({"file": "/d.csv"}, "blocks['file'] must be a path relative to base; got '/d.csv'"),
        ({"file": ""}, "blocks['file'] must be a path relative to base; got ''"),
    ],
)
def test_wrong_keys_of_a_policy_file_are_named(blocks: object, message: str, tmp_path: Path) -> None:
    document = {"domain": PLACES.to_dict(), "policy": {"kind": "blocks", "blocks": blocks, "epsilon": 1}}
    (tmp_path / "d.csv").touch()
    assert f": {message}" in refusal(sf.policy_from_dict, document, tmp_path)


def test_documents_without_a_folder_name_no_files() -> None:
    document = {"domain": PLACES.to_dict(), "policy": {"kind": "blocks", "blocks": {"file": "d.csv"}, "epsilon": 1}}
    message = "[policy] of kind blocks: blocks['file'] must come with base=, the folder that contains the file; got"
    assert refusal(sf.policy_from_dict, document).startswith(message)


def test_a_value_may_be_called_file() -> None:
    domain = sf.Domain(["file", "value"])
    document = {"domain": domain.to_dict(), "policy": {"kind": "blocks", "blocks": {"file": "a", "value": "b"}}}
    document["policy"]["epsilon"] = 1
    assert sf.policy_from_dict(document) == sf.Blocks(domain, "ab", 1)
