"""Tables of several attributes on the command line: a label for missing values per attribute, and associations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import InvalidInput

PEOPLE = sf.Domain.product(job=sf.Domain(["none", "clerk"]), age=sf.Domain.range(3), sex=sf.Domain(["f", "m", "none"]))
MECHANISM = sf.mechanisms.RandomizedResponse(PEOPLE, 30)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a mechanism that hardly randomizes, and a table with missing values."""
    monkeypatch.chdir(tmp_path)
    Path("m.json").write_text(MECHANISM.to_json())
    Path("people.csv").write_text("job,age,sex\nclerk,2,m\n,1,f\nclerk,,f\nnone,0,\n")
    return tmp_path


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) != 0
    return " ".join(capsys.readouterr().err.split())


LABELS: dict[str, sf.domain.Label] = {"job": "none", "age": 0, "sex": "m"}
VALUES = [("clerk", 2, "m"), ("none", 1, "f"), ("clerk", 0, "f"), ("none", 0, "m")]


def test_each_attribute_has_its_label_for_missing_values(folder: Path) -> None:
    rules = [word for name, label in LABELS.items() for word in ("--missing", "value", f"{name}={label}")]
    assert main(["privatize", "m.json", "people.csv", *rules, "-o", "r.sfb"]) == 0
    (reports,) = sf.collecting.read_reports(MECHANISM, folder / "r.sfb")
    assert [PEOPLE.label(int(x)) for x in reports] == VALUES  # a report differs with probability below 1e-11
    columns = {"job": ["clerk", None, "clerk", "none"], "age": [2, 1, None, 0], "sex": ["m", "f", "f", None]}
    indices = PEOPLE.encode(columns, missing=LABELS)
    assert [PEOPLE.label(int(x)) for x in indices] == VALUES
    seeded = sf.privatize(MECHANISM, columns, sf.InsecureSeeded(1), missing=LABELS)
    assert seeded.tolist() == indices.tolist()


def test_labels_of_attributes_that_do_not_exist_are_rejected(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = ("privatize", "m.json", str(folder / "people.csv"), "-o", "r.sfb")
    only_job = failure(capsys, *start, "--missing", "value", "job=none")
    assert "line 4, column 'age' must be" in only_job
    assert "missing['age'] must be a label of the domain" in failure(capsys, *start, "--missing", "value", "age=9")
    assert "missing must be a label of the domain; got 'town=none'" in failure(
        capsys, *start, "--missing", "value", "town=none"
    )
    twice = ("--missing", "value", "job=none", "--missing")
    assert "names an attribute twice" in failure(capsys, *start, *twice, "value", "job=clerk")
    assert "may be repeated only as --missing value NAME=LABEL" in failure(capsys, *start, *twice, "drop")
    assert "The attributes are: job, age, sex" in failure(capsys, *start, *twice, "value", "none")
    with pytest.raises(InvalidInput, match="missing must name attributes among 'job', 'age', 'sex'; got 'town'"):
        PEOPLE.encode({"job": ["clerk"], "age": [1], "sex": ["f"]}, missing={"town": "none"})
    with pytest.raises(InvalidInput, match="missing must be a label, because the domain has no attributes"):
        sf.Domain.range(3).encode([1, None], missing={"age": 0})


def test_associations_of_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = sf.Domain.product(sex=sf.Domain(["f", "m"]), smokes=sf.Domain(["yes", "no"]), age=sf.Domain.range(3))
    mechanism = sf.mechanisms.RandomizedResponse(people, 4)
    (folder / "m.json").write_text(mechanism.to_json())
    counts = sf.Aggregate(mechanism.hash, 2400, np.array([300, 200, 150, 150, 150, 200, 100, 200, 300, 250, 200, 200]))
    (folder / "counts.json").write_text(counts.to_json())
    start = ("estimate", "m.json", "counts.json", "--question")
    assert main([*start, "marginals:sex*smokes,sex*age,age", "--associations", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    estimate = sf.estimate(mechanism, counts)
    expected = [
        ("sex and smokes", sf.cross_table(estimate, "sex", "smokes").odds_ratio()),
        ("sex and smokes", sf.cross_table(estimate, "sex", "smokes").cramers_v()),
        ("sex and age", sf.cross_table(estimate, "sex", "age").cramers_v()),
    ]
    assert [tuple(row.values()) for row in document["associations"]] == [
        (names, result.measure, result.value, *result.interval(), result.p_value) for names, result in expected
    ]
    assert document["notes"] == []
    assert main([*start, "marginals:sex*smokes", "--associations", "--confidence", "0.9"]) == 0
    printed = capsys.readouterr().out
    assert "associations, 90% intervals" in printed
    assert "odds ratio" in printed
    assert "Cramér's V" in printed
    assert "--associations requires --question marginals" in failure(capsys, *start, "mean", "--associations")


def test_an_association_that_is_not_determined_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = sf.Domain.product(a=range(2), b=range(3))
    mechanism = sf.mechanisms.RandomizedResponse(people, 1)
    (folder / "m.json").write_text(mechanism.to_json())
    (folder / "c.json").write_text(sf.Aggregate(mechanism.hash, 60, np.array([20, 10, 8, 7, 8, 7])).to_json())
    assert main(["estimate", "m.json", "c.json", "--question", "marginals", "--associations"]) == 0
    assert "a and b: the share of a value of 'a' is not clearly above 0" in capsys.readouterr().out
