"""The waves of a repeated survey on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.cli import main

DOMAIN = sf.Domain(["no", "yes"])
MECHANISM = sf.design(sf.Uniform(DOMAIN, 1), lifetime=sf.Uniform(DOMAIN, 2))
COUNTS = {week: sf.aggregate(MECHANISM, [0] * (60 - 5 * week) + [1] * (40 + 5 * week)) for week in (1, 2, 3)}
FILES = [f"week {week}=w{week}.json" for week in COUNTS]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.json").write_text(json.dumps(MECHANISM.spec))
    for week, counts in COUNTS.items():
        (tmp_path / f"w{week}.json").write_text(counts.to_json())
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["estimate-waves", "m.json", *arguments])
    return code, *capsys.readouterr()


def test_waves_are_those_of_the_library(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = sf.estimate_waves(MECHANISM, {f"week {week}": each for week, each in COUNTS.items()})
    code, printed, _ = run(capsys, *FILES, "-o", "all.csv", "--plot", "trend.svg")
    assert code == 0
    assert printed == f"{expected}\n"
    frame = pd.read_csv("all.csv")
    assert frame["wave"].tolist() == ["week 1"] * 2 + ["week 2"] * 2 + ["week 3"] * 2
    assert np.allclose(frame["frequency"], expected.to_pandas()["frequency"])
    assert (folder / "trend.svg").exists()
    document = json.loads(run(capsys, *FILES, "--json", "--confidence", "0.5")[1])
    assert document["waves"] == {"week 1": 100, "week 2": 100, "week 3": 100}
    assert document["rows"][5]["low"] == expected.to_pandas(0.5)["low"][5]


def test_changes_are_those_of_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--change", "week 1", "week 3", "--overlap", "1", "--change-rate", "0.1")
    waves = {f"week {week}": each for week, each in COUNTS.items()}
    expected = sf.estimate_waves(MECHANISM, waves, overlap=1, change_rate=0.1).change("week 1", "week 3")
    assert run(capsys, *FILES, *options)[:2] == (0, f"{expected}\n")
    document: Any = json.loads(run(capsys, *FILES, *options, "--json")[1])
    assert document["change"] == ["week 1", "week 3"]
    assert document["rows"][1]["change"] == expected.numbers[1]
    code, printed, aside = run(capsys, *FILES, *options, "-o", "-")
    assert code == 0
    assert printed.startswith('"value","change",')
    assert aside == f"{expected}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["w1.json"], "must be NAME=COUNTS"),
        (["a=none.json"], "must be NAME=COUNTS"),
        (["a=w1.json", "a=w2.json"], "the wave 'a' is named twice"),
        (["a=m.json"], "m.json"),
        (["a=w1.json", "--change", "a", "b"], "the wave must be one of"),
        (["a=w1.json", "--overlap", "3"], "overlap must be a share between 0 and 1"),
    ],
)
def test_wrong_arguments_are_rejected(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = run(capsys, *arguments)
    assert code == 2
    assert message in error


def test_privatize_warns_that_permanent_answers_are_not_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "values.csv").write_text("answer\nyes\nno\n")
    assert main(["privatize", "m.json", "values.csv", "-o", "reports.sfb"]) == 0
    assert "the permanent answers of this memoized mechanism are not kept" in capsys.readouterr().err
