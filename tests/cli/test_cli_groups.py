"""Groups, weights and totals on the command line and in files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import sfumato as sf
from sfumato.cli import main
from sfumato.collecting import GroupedAggregate, aggregate_group_files, read_reports, write_reports
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.mechanisms import RandomizedResponse, UnaryEncoding

MECHANISM = RandomizedResponse(sf.Domain.range(4), 2)
REGIONS = ["north", "south", "south", "west"] * 100
SEXES = ["f", "m", "m", "f", "m"] * 80
WEIGHTS = [1, 2, 2, 5] * 100


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.json").write_text(json.dumps(MECHANISM.spec))
    values = np.random.default_rng(1).integers(0, 4, 400).tolist()
    with (tmp_path / "values.csv").open("w") as file:
        csv.writer(file).writerows([["age", "region", "sex", "w"], *zip(values, REGIONS, SEXES, WEIGHTS, strict=True)])
    (tmp_path / "totals.csv").write_text("region,people\nnorth,500\nsouth,300\nwest,200\n")
    return tmp_path


def result(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Run a command with ``--json`` and return its answer."""
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that fails, and return its one line on standard error."""
    assert main(arguments) == 2
    return capsys.readouterr().err


@pytest.mark.slow
def test_columns_travel_from_values_to_estimates(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = ("--by", "region", "--by", "sex", "--weight", "w")
    assert main(["privatize", "m.json", "values.csv", "--column", "age", *columns, "-o", "r.parquet"]) == 0
    assert "region, sex and w travel with each report and are not protected" in capsys.readouterr().out
    stored = parquet.read_table(folder / "r.parquet")
    assert json.loads(stored.schema.metadata[b"sfumato.unprotected"]) == ["region", "sex", "w"]
    assert stored.column("region").to_pylist() == REGIONS
    assert stored.column("w").to_pylist() == WEIGHTS
    counted = result(capsys, "aggregate", "m.json", "r.parquet", *columns, "-o", "c.json")
    assert counted["groups"] == len(set(zip(REGIONS, SEXES, WEIGHTS, strict=True)))
    assert counted["unprotected"] == ["region", "sex", "w"]
    reports = np.concatenate(list(read_reports(MECHANISM, folder / "r.parquet")))
    by = {"region": REGIONS, "sex": SEXES}
    expected = sf.aggregate_groups(MECHANISM, reports, by, weights={"w": WEIGHTS})
    counts = GroupedAggregate.from_json((folder / "c.json").read_bytes())
    assert counts == expected
    answer = result(capsys, "estimate", "m.json", "c.json", "--by", "region", "--question", "mean", "--compare", "rest")
    answers = sf.estimate_groups(MECHANISM, expected).answers("mean", by="region")
    assert [row["value"] for row in answer["rows"]] == pytest.approx([answers[region][0].value for region in answers])
    assert answer["total"][0]["effective_n"] < 400
    assert {row["minus"] for row in answer["differences"]} == {"rest"}
    known = result(
        capsys, "estimate", "m.json", "c.json", "--by", "region", "--question", "mean", "--totals", "totals.csv"
    )
    totals = {"north": 500, "south": 300, "west": 200}
    adjusted = sf.estimate_groups(MECHANISM, expected).answers("mean", by=[], strata="region", totals=totals)
    assert known["total"][0]["value"] == pytest.approx(adjusted.total[0].value)
    assert (
        main(["estimate", "m.json", "c.json", "--by", "sex", "--compare", "f", "-o", "d.csv", "--plot", "d.svg"]) == 0
    )
    assert "weighted by w" in capsys.readouterr().out
    assert (folder / "d.csv").read_text().startswith('"group","minus","answer","difference"')
    # Without --by, other columns of a report file are not read.
    assert main(["aggregate", "m.json", "r.parquet", "-o", "all.json"]) == 0
    assert sf.Aggregate.from_json((folder / "all.json").read_bytes()) == sf.aggregate(MECHANISM, reports)


@pytest.mark.usefixtures("folder")
def test_columns_that_cannot_travel_are_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    start = ("privatize", "m.json", "values.csv", "--column", "age")
    assert "must be Parquet or Arrow if columns travel" in failure(capsys, *start, "--by", "region", "-o", "r.sfb")
    assert "which would be revealed" in failure(capsys, *start, "--by", "age", "-o", "r.parquet")
    assert "named twice" in failure(capsys, *start, "--by", "w", "--weight", "w", "-o", "r.parquet")
    assert "require --column" in failure(capsys, *start[:3], "--by", "region", "-o", "r.parquet")
    assert "county" in failure(capsys, *start, "--by", "county", "-o", "r.parquet")
    assert "must be a finite number" in failure(capsys, *start, "--weight", "region", "-o", "r.parquet")
    Path("holes.csv").write_text("age,region\n1,north\n2,\n")
    holes = ("privatize", "m.json", "holes.csv", "--column", "age", "--by", "region", "-o", "r.parquet")
    assert "holes.csv: line 3, column 'region' must not be missing" in failure(capsys, *holes)
    Path("weights.csv").write_text("age,w\n1,2\n2,0.5\n")
    weights = ("privatize", "m.json", "weights.csv", "--column", "age", "--weight", "w", "-o", "r.parquet")
    assert "weights.csv: line 3, column 'w' must be an integer" in failure(capsys, *weights)
    Path("weights.csv").write_text("age,w\n1,heavy\n")
    assert "weights.csv: line 2, column 'w' must be a finite number" in failure(capsys, *weights)
    assert not Path("r.parquet").exists()
    assert main([*start, "-o", "plain.parquet"]) == 0
    assert main(["aggregate", "m.json", "plain.parquet", "-o", "plain.json"]) == 0
    capsys.readouterr()
    assert "the column must be one of" in failure(
        capsys, "aggregate", "m.json", "plain.parquet", "--by", "region", "-o", "c.json"
    )
    assert "require counts by group" in failure(capsys, "estimate", "m.json", "plain.json", "--by", "region")
    assert main([*start, "--by", "region", "-o", "r.parquet"]) == 0
    assert main(["aggregate", "m.json", "r.parquet", "--by", "region", "-o", "c.json"]) == 0
    capsys.readouterr()
    Path("wrong.csv").write_text("region,people\nnorth,1\nsouth,1\nwest,1\neast,1\n")
    assert "no reports of ['east']" in failure(
        capsys, "estimate", "m.json", "c.json", "--question", "mean", "--totals", "wrong.csv"
    )
    Path("wrong.csv").write_text("county,people\nnorth,1\n")
    assert "the header line must name some of" in failure(
        capsys, "estimate", "m.json", "c.json", "--totals", "wrong.csv"
    )
    Path("wrong.csv").write_text("region,people\nnorth,many\n")
    assert "line 2 must have 2 cells" in failure(capsys, "estimate", "m.json", "c.json", "--totals", "wrong.csv")
    assert "is not all, rest or one of the groups" in failure(
        capsys, "estimate", "m.json", "c.json", "--question", "mean", "--compare", "east"
    )
    assert "sfumato-aggregate" in failure(capsys, "aggregate", "m.json", "c.json", "-o", "x.json")


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("mechanism", [MECHANISM, UnaryEncoding(sf.Domain.range(4), 2)], ids=["index", "bitmap"])
def test_files_are_counted_as_their_frames_are(suffix: str, mechanism: Any, tmp_path: Path) -> None:
    reports = sf.privatize(mechanism, np.arange(400) % 4, sf.InsecureSeeded(3))
    by: dict[str, Any] = {"region": REGIONS, "day": np.arange(400) % 7}
    whole = sf.aggregate_groups(mechanism, reports, by, weights={"w": WEIGHTS})
    paths = []
    for number, part in enumerate((slice(0, 1), slice(1, 250), slice(250, 400))):
        paths.append(tmp_path / f"{number}.{suffix}")
        columns = {name: list(column[part]) for name, column in {**by, "w": WEIGHTS}.items()}
        assert write_reports(mechanism, reports[part], paths[-1], by=columns) == part.stop - part.start
    resume = tmp_path / "checkpoint.json"
    first = aggregate_group_files(mechanism, paths[:2], ["region", "day"], weight="w", resume=resume)
    (tmp_path / "first.json").write_text(first.to_json())
    counts = aggregate_group_files(mechanism, paths, ["region", "day"], weight="w", resume=resume)
    assert counts == whole
    assert list(counts) == list(whole)
    merged = aggregate_group_files(mechanism, [tmp_path / "first.json", paths[2]], ["region", "day"], weight="w")
    assert merged == whole
    with pytest.raises(InvalidInput, match="have the columns"):
        aggregate_group_files(mechanism, paths, "region", resume=resume)
    with pytest.raises(InvalidInput, match="counts of the type Aggregate"):
        sf.aggregate_files(mechanism, paths, resume=resume)
    with pytest.raises(InvalidInput, match="have the columns"):
        aggregate_group_files(mechanism, tmp_path / "first.json", "region")
    with pytest.raises(InvalidInput, match="name at least one column"):
        aggregate_group_files(mechanism, paths)


def test_public_columns_that_do_not_fit_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    for by, message in (
        ({"region": ["a"]}, "have one entry per report, 2 in total"),
        ({"report": ["a", "b"]}, "have different names"),
        ({"region": ["a", None]}, "region in row 1 must not be missing"),
        ({}, "be a frame, or a mapping"),
        (["a", "b"], "be a frame, or a mapping"),
    ):
        with pytest.raises(InvalidInput, match=message):
            write_reports(MECHANISM, [0, 1], path, by=by)
    assert not path.exists()
    n = 1001
    write_reports(MECHANISM, np.zeros(n, np.int64), path, by={"w": np.arange(n)})
    with pytest.raises(LimitExceeded, match="at most 1,000 different values"):
        aggregate_group_files(MECHANISM, path, weight="w")
    write_reports(MECHANISM, [0, 1, 1], path, by={"w": [1, 2, -1]})
    with pytest.raises(
        InvalidInput, match=r"r.parquet: row 3, column 'w' must be a finite number of at least 0; got -1"
    ):
        aggregate_group_files(MECHANISM, path, weight="w")
    table = parquet.read_table(path)
    holes = pa.chunked_array([["north", None, "south"]])
    parquet.write_table(table.append_column("region", holes), path)
    with pytest.raises(InvalidInput, match=r"r.parquet: row 2, column 'region' must not be missing"):
        aggregate_group_files(MECHANISM, path, "region")
    batch = tmp_path / "r.sfb"
    write_reports(MECHANISM, [0, 1], batch)
    with pytest.raises(InvalidInput, match="which has reports only"):
        aggregate_group_files(MECHANISM, batch, "region")
