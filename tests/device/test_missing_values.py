"""Missing values: rejected, replaced by a value of the domain, or dropped with a warning."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli import main
from sfumato.collecting import read_reports
from support.reference import refusal

ANSWERS = sf.Domain(["yes", "no", "unsure"])
#: A mechanism that reports the value itself, so that reports show what was read.
OPEN = sf.mechanisms.RandomizedResponse(ANSWERS, epsilon="inf")


@pytest.mark.parametrize(
    "column",
    [
        ["no", None, "yes", math.nan],
        np.array(["no", None, "yes", np.nan], dtype=object),
        pd.Series(["no", None, "yes", pd.NA]),
        pd.Series(["no", None, "yes", None], dtype="category"),
        pa.array(["no", None, "yes", None]),
        pa.array(["no", None, "yes", None]).dictionary_encode(),
        pl.Series(["no", None, "yes", None]),
        pl.Series(["no", None, "yes", None], dtype=pl.Categorical),
    ],
    ids=lambda column: f"{type(column).__module__.partition('.')[0]}-{getattr(column, 'dtype', type(column).__name__)}",
)
def test_missing_labels_are_a_value_in_every_kind_of_column(column: Any) -> None:
    assert ANSWERS.encode(column, missing="unsure").tolist() == [1, 2, 0, 2]
    assert [int(report) for report in sf.privatize(OPEN, column, missing="unsure")] == [1, 2, 0, 2]
    assert "Choose a value for missing values" in refusal(sf.privatize, OPEN, column)


@pytest.mark.parametrize(
    ("domain", "label", "column", "indices"),
    [
        (sf.Domain.range(4), 3, [0, None, 2.0], [0, 3, 2]),
        (sf.Domain.range(4), 3, np.array([0, np.nan, 2]), [0, 3, 2]),
        (sf.Domain.range(4), "3", pd.array([0, None, 2], dtype="Int64"), [0, 3, 2]),
        (sf.Domain.range(17, 20), 17, pl.Series([19, None]), [2, 0]),
        (sf.Domain.numbers(0, 10, bins=2), "[5, 10]", pa.array([1.5, None]), [0, 1]),
        (sf.Domain([0.5, 2.0]), 0.5, np.array([2.0, np.nan]), [1, 0]),
        (sf.Domain([True, False]), False, [True, None], [0, 1]),
        (sf.Domain(["a"]), "a", [None, "a"], [0, 0]),
        (sf.Domain(["a"]), "a", [], []),
        (sf.Domain(["a"], missing="unknown"), "unknown", ["a", None], [0, 1]),
    ],
)
def test_missing_values_of_every_kind_of_domain(domain: sf.Domain, label: Any, column: Any, indices: list[int]) -> None:
    assert domain.encode(column, missing=label).tolist() == indices


def test_missing_values_of_a_product_belong_to_the_attributes_with_the_label() -> None:
    domain = sf.Domain.product(first=["yes", "no"], second=["yes", "no"], age=range(3))
    table = {"first": ["yes", None], "second": [None, "yes"], "age": [0, 2]}
    assert domain.decode(domain.encode(table, missing="no")) == [("yes", "no", 0), ("no", "yes", 2)]
    table["age"] = [0, None]
    assert "row 1, factor 'age' must be an int from 0 to 2; got None" in refusal(domain.encode, table, missing="no")


@pytest.mark.parametrize(
    ("domain", "label", "message"),
    [
        (ANSWERS, "none", "missing must be a label of the domain; got 'none'. A domain with missing='unknown'"),
        (sf.Domain.range(3), 3, "missing must be a label of the domain; got 3"),
        (sf.Domain(["a"], missing="unknown"), "a", "missing must be 'unknown', the label of missing values of the dom"),
        (sf.Domain.grid(2, 2, latitude=(0, 1), longitude=(0, 1)), 0, "missing must be a label of the domain; got 0"),
    ],
)
def test_labels_that_the_domain_does_not_have_are_refused(domain: sf.Domain, label: Any, message: str) -> None:
    assert refusal(domain.encode, [], missing=label).startswith(f"Domain.encode: {message}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.json").write_text(OPEN.to_json())
    (tmp_path / "v.csv").write_text("v;w\nyes;1\n;2\nNA;3\nno;4\n")
    return tmp_path


def reports(*options: str) -> tuple[int, list[int]]:
    """The exit code of the command, and its reports."""
    arguments = ["privatize", "m.json", "v.csv", "--column", "v", "--delimiter", ";", "-o", "r.sfb"]
    code = main([*arguments, *options])
    if code:
        return code, []
    return code, [int(report) for piece in read_reports(OPEN, "r.sfb") for report in np.atleast_1d(piece)]


@pytest.mark.usefixtures("folder")
def test_the_command_has_a_rule_for_missing_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert reports()[0] == 2
    assert "v.csv: line 3, column 'v' must be one of" in capsys.readouterr().err
    for rule in (["--missing", "value", "unsure"], ["--missing=value", "unsure"], ["--missing", "value unsure"]):
        assert reports(*rule, "--null", "NA") == (0, [0, 2, 2, 1])
        assert not capsys.readouterr().err
    assert reports("--missing", "drop", "--null", "NA") == (0, [0, 1])
    assert "warning: 2 rows without a value were dropped. This is not private" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (["--missing", "value", "none"], "missing must be a label of the domain; got 'none'"),
        (["--missing", "ignore"], "'ignore' must be reject, value LABEL, or drop."),
        (["--missing", "value"], "'value' must be reject, value LABEL, or drop."),
        (["--encoding", "ebcdic"], "'ebcdic'"),
        (["--delimiter", "::"], "the text format: delimiter must be one ASCII character"),
    ],
)
def test_wrong_options_are_refused(rule: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert reports(*rule)[0] == 2
    assert message in capsys.readouterr().err
    assert not Path("r.sfb").exists()
