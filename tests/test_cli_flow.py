"""The command line from policy to estimate, as a person would use it; and what it says to wrong input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli import main

POLICY = """\
[domain]
values = ["none", "flu", "hiv", "cancer"]
[policy]
kind = "high-low"
sensitive = ["hiv", "cancer"]
epsilon = "1"
"""
SHARES = {"none": 0.6, "flu": 0.25, "hiv": 0.05, "cancer": 0.1}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(POLICY)
    values = [value for value, share in SHARES.items() for _ in range(round(20_000 * share))]
    (tmp_path / "values.txt").write_text("\n".join(values) + "\n")
    pq.write_table(pa.table({"person": range(20_000), "answer": values}), tmp_path / "values.parquet")
    (tmp_path / "values.csv").write_text("person,answer\n" + "".join(f"{i},{v}\n" for i, v in enumerate(values)))
    return tmp_path


def run(*arguments: str, code: int = 0) -> None:
    assert main(arguments) == code


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    run(*arguments)
    return json.loads(capsys.readouterr().out)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on standard error of a command that fails."""
    capsys.readouterr()
    run(*arguments, code=2)
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("sfumato: ")
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize(
    "source", [["values.txt"], ["values.parquet", "--column", "answer"], ["values.csv", "--column", "answer"]]
)
@pytest.mark.parametrize("reports", ["reports.parquet", "reports.arrow", "reports.sfb"])
def test_from_policy_to_estimate(
    folder: Path, capsys: pytest.CaptureFixture[str], source: list[str], reports: str
) -> None:
    run("check", "policy.toml")
    run("design", "policy.toml", "-o", "mechanism.json")
    run("audit", "mechanism.json", "--policy", "policy.toml", "-o", "certificate.json")
    run("privatize", "mechanism.json", *source, "-o", reports)
    run("aggregate", "mechanism.json", reports, "-o", "counts.json")
    run("aggregate", "mechanism.json", reports, "counts.json", "-o", "twice.json")
    assert json.loads((folder / "twice.json").read_text())["n"] == 40_000
    found = answer(
        capsys, "estimate", "mechanism.json", "counts.json", "--json", "-o", "estimate.csv", "--plot", "e.svg"
    )
    assert found["n"] == 20_000
    for row in found["rows"]:
        # Five standard errors and more: a false alarm in four values is below 1e-6.
        assert abs(row["frequency"] - SHARES[row["value"]]) < 5.2 * row["standard_error"]
        assert row["low"] <= row["frequency"] <= row["high"]
    assert len((folder / "estimate.csv").read_text().splitlines()) == 5
    assert (folder / "e.svg").read_text().startswith("<?xml")
    assert not list(folder.glob(".*.tmp"))


def test_values_from_a_pipe(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("design", "policy.toml", "-o", "mechanism.json")
    with (folder / "values.txt").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        run("privatize", "mechanism.json", "-", "-o", "reports.parquet")
    assert pq.read_table(folder / "reports.parquet").num_rows == 20_000


def test_counts_through_a_pipe(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("design", "policy.toml", "-o", "mechanism.json")
    run("privatize", "mechanism.json", "values.txt", "-o", "reports.sfb")
    capsys.readouterr()
    run("aggregate", "mechanism.json", "reports.sfb", "-o", "-")
    (folder / "counts").write_text(capsys.readouterr().out)
    with (folder / "counts").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert answer(capsys, "estimate", "mechanism.json", "-", "--json")["n"] == 20_000


def test_plan_in_json_and_for_a_target(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001
    found = answer(capsys, "plan", "policy.toml", "--n", "1e5", "--json")
    assert found["n"] == 100_000
    assert found["best"] == "high-low-subset"
    assert [row["risk"] for row in found["rows"]] == sorted(row["risk"] for row in found["rows"])
    target = answer(capsys, "plan", "policy.toml", "--target", "0.01", "--json")
    assert target["rows"][0]["tv"] == pytest.approx(0.01, rel=1e-3)
    run("plan", "policy.toml", "--n", "1000")
    assert "high-low-subset: the least expected squared error" in capsys.readouterr().out


def test_simulate_is_repeatable_and_near_its_prediction(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001
    command = ("simulate", "policy.toml", "--n", "200_000", "--truth", "zipf", "--seed", "3", "--json")
    first, second = answer(capsys, *command), answer(capsys, *command)
    assert first == second
    assert first["l2"] < 10 * first["predicted_l2"]
    run("simulate", "policy.toml", "--n", "1000")
    assert "95% intervals that hold the truth" in capsys.readouterr().out


def test_large_domains_show_the_most_frequent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.toml").write_text('[domain]\nsize = 100\n[policy]\nkind = "uniform"\nepsilon = "3"\n')
    policy, mechanism = str(tmp_path / "p.toml"), str(tmp_path / "m.json")
    run("design", policy, "-o", mechanism, "--mechanism", "hadamard")
    pq.write_table(pa.table({"v": np.arange(5000) % 100}), tmp_path / "v.parquet")
    run("privatize", mechanism, str(tmp_path / "v.parquet"), "-o", str(tmp_path / "r.sfb"))
    run("aggregate", mechanism, str(tmp_path / "r.sfb"), "-o", str(tmp_path / "c.json"))
    capsys.readouterr()
    run("estimate", mechanism, str(tmp_path / "c.json"), "--method", "simplex", "--plot", str(tmp_path / "e.png"))
    assert "the 30 most frequent of 100 values" in capsys.readouterr().out
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")


def test_every_answer_can_be_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "check", "policy.toml", "--json", "--plot", "levels.svg")["kind"] == "high-low"
    made = answer(capsys, "design", "policy.toml", "-o", "mechanism.json", "--json")
    assert made["mechanism"] == "high-low-subset"
    certificate = answer(capsys, "audit", "mechanism.json", "--policy", "policy.toml", "--json")
    assert certificate["holds"]
    assert certificate["mechanism_hash"] == made["hash"]
    written = answer(capsys, "privatize", "mechanism.json", "values.txt", "-o", "r.sfb", "--json")
    assert written["reports"] == 20_000
    assert answer(capsys, "aggregate", "mechanism.json", "r.sfb", "-o", "counts.json", "--json")["reports"] == 20_000
    rows = answer(capsys, "estimate", "mechanism.json", "counts.json", "--dishonest", "0.01", "--json")["rows"]
    assert all(0 < row["influence"] < 0.1 for row in rows)
    run("estimate", "mechanism.json", "counts.json", "--dishonest", "0.01")
    assert "if 1.0% lie" in capsys.readouterr().out
    run("plan", "policy.toml", "--n", "1000", "--plot", "plan.svg")
    assert (folder / "levels.svg").stat().st_size > 0
    assert (folder / "plan.svg").stat().st_size > 0


# -- wrong input -------------------------------------------------------------------------------------------------


def test_wrong_input_is_named_in_one_line_and_leaves_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("design", "policy.toml", "-o", "mechanism.json")
    run("design", "policy.toml", "-o", "other.json", "--mechanism", "hadamard")
    run("privatize", "mechanism.json", "values.txt", "-o", "reports.sfb")
    run("aggregate", "mechanism.json", "reports.sfb", "-o", "counts.json")

    (folder / "wrong.txt").write_text("none\nflu\ncold\n")
    (folder / "empty.txt").write_text("")
    data = (folder / "reports.sfb").read_bytes()
    (folder / "cut.sfb").write_bytes(data[:-1])
    (folder / "long.sfb").write_bytes(data + b"\0")
    (folder / "misspelt.toml").write_text(POLICY.replace("sensitive", "sensitiv"))
    (folder / "broken.toml").write_text("[domain")
    (folder / "broken.json").write_text("{")
    out = ("-o", "never.parquet")

    message = refusal(capsys, "privatize", "mechanism.json", "wrong.txt", *out)
    assert "row 2" in message
    assert "'cold'" in message
    (folder / "far.txt").write_text("none\n" * 70_000 + "cold\n")  # beyond the first piece that is read
    assert "row 70000" in refusal(capsys, "privatize", "mechanism.json", "far.txt", *out)
    assert "empty" in refusal(capsys, "privatize", "mechanism.json", "empty.txt", *out)
    assert "answer" in refusal(capsys, "privatize", "mechanism.json", "values.parquet", *out)
    assert "'nothing'" in refusal(capsys, "privatize", "mechanism.json", "values.csv", "--column", "nothing", *out)
    assert "cut.sfb" in refusal(capsys, "aggregate", "mechanism.json", "cut.sfb", *out)
    assert "long.sfb" in refusal(capsys, "aggregate", "mechanism.json", "long.sfb", *out)
    assert "mechanism" in refusal(capsys, "aggregate", "other.json", "reports.sfb", *out)
    assert "mechanism" in refusal(capsys, "estimate", "other.json", "counts.json")
    assert "did you mean 'sensitive'?" in refusal(capsys, "check", "misspelt.toml")
    assert "broken.toml" in refusal(capsys, "plan", "broken.toml", "--n", "5")
    assert "JSON" in refusal(capsys, "audit", "broken.json", "--policy", "policy.toml")
    assert "--n" in refusal(capsys, "plan", "policy.toml", "--n", "many")
    assert "one without the other" in refusal(capsys, "plan", "policy.toml")
    assert "'magic'" in refusal(capsys, "design", "policy.toml", "--mechanism", "magic", *out)
    assert ".svg or .png" in refusal(capsys, "estimate", "mechanism.json", "counts.json", "--plot", "e.jpg")
    assert not (folder / "never.parquet").exists()
    assert not list(folder.glob(".*.tmp"))


def test_every_help_is_a_sentence_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    from sfumato.cli import sfumato as group

    commands = group.list_commands(None)  # type: ignore[arg-type]
    assert {"check", "plan", "design", "audit", "privatize", "aggregate", "estimate", "simulate"} <= set(commands)
    for command in commands:
        capsys.readouterr()
        run(command, "--help")
        text = " ".join(capsys.readouterr().out.split())
        assert f"Example: sfumato {command}" in text, command


def test_a_mechanism_is_designed_for_a_loss_or_for_the_worst_case(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "losses.csv").write_text("0,1,2,2\n1,0,2,2\n2,2,0,1\n3,3,1,0\n")
    made = answer(capsys, "design", "policy.toml", "--loss", "losses.csv", "-o", "lossy.json", "--json")
    assert "expected-loss" in made["why"]
    made = answer(capsys, "design", "policy.toml", "--utility", "worst-estimation", "-o", "worst.json", "--json")
    assert "worst-estimation" in made["why"]
    run("audit", "worst.json", "--policy", "policy.toml")
    (folder / "wrong.csv").write_text("0,1\n1,0\n")
    assert "4 rows" in refusal(capsys, "design", "policy.toml", "--loss", "wrong.csv", "-o", "never.json")
    (folder / "words.csv").write_text("a,b\n" * 4)
    assert "words.csv" in refusal(capsys, "design", "policy.toml", "--loss", "words.csv", "-o", "never.json")
    assert not (folder / "never.json").exists()
