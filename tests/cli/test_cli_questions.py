"""Questions on the command line: options, policy files, and answers."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.cli import main
from sfumato.mechanisms import RandomizedResponse, TableMechanism

AGES = """
[domain]
size = 6
[policy]
kind = "uniform"
epsilon = "ln 3"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(AGES)
    (tmp_path / "mean.toml").write_text(f'question = "mean"\n{AGES}')
    (tmp_path / "median.json").write_text(json.dumps(sf.Quantiles([0.5]).to_dict()))
    return tmp_path


def result(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Run a command with ``--json`` and return its answer."""
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that fails, and return its one line on standard error."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "question"),
    [
        (["policy.toml"], None),
        (["policy.toml", "--question", "mean"], sf.Mean()),
        (["mean.toml"], sf.Mean()),
        (["mean.toml", "--question", "frequencies"], None),
        (["mean.toml", "--question", "quantiles:0.5"], sf.Quantiles([0.5])),
        (["policy.toml", "--question", "median.json"], sf.Quantiles([0.5])),
        (["policy.toml", "--question", "mean.toml"], sf.Mean()),
        (["policy.toml", "--question", "ranges:0-1,4-"], sf.Ranges([(0, 1), (4, None)])),
        (["mean.toml", "--utility", "mutual-information"], None),
    ],
)
def test_plan_answers_the_question(
    arguments: list[str], question: sf.Question | None, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = result(capsys, "plan", *arguments, "--n", "1000", "--max-seconds", "0")
    assert answer.get("question") == (None if question is None else question.to_dict())
    if question is not None:
        compared = sf.plan(sf.Uniform(sf.Domain.range(6), "ln 3"), 1000, question=question, max_seconds=0)
        errors = {row.name: compared.standard_error(row) for row in compared.rows}
        assert {row["name"]: row["standard_error"] for row in answer["rows"]} == pytest.approx(errors)


@pytest.mark.usefixtures("folder")
def test_plan_prints_the_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "mean.toml", "--target", "0.1", "--max-seconds", "0"]) == 0
    printed = capsys.readouterr().out
    assert "question mean" in printed
    assert "standard error" in printed
    assert "l2 risk" not in printed


@pytest.mark.usefixtures("folder")
def test_design_writes_a_mechanism_for_the_question(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = result(capsys, "design", "mean.toml", "-o", "mean.json")
    assert answer["question"] == {"question": "mean"}
    assert "standard error of the mean" in answer["why"]
    mechanism = sf.mechanism_from_spec((folder / "mean.json").read_text())
    policy = sf.Uniform(sf.Domain.range(6), "ln 3")
    assert mechanism == sf.design(policy, question="mean")


@pytest.mark.usefixtures("folder")
def test_check_names_the_question(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "mean.toml"]) == 0
    assert "question:         mean (1 answer)" in capsys.readouterr().out
    assert result(capsys, "check", "mean.toml")["question"] == {"question": "mean"}
    assert "question" not in result(capsys, "check", "policy.toml")


@pytest.mark.usefixtures("folder")
def test_pipes_state_questions(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for stdin, arguments in (
        (f'question = "mean"\n{AGES}', ["plan", "-", "--n", "10", "--max-seconds", "0"]),
        ('{"question": "mean"}', ["plan", "policy.toml", "--question", "-", "--n", "10", "--max-seconds", "0"]),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        assert result(capsys, *arguments)["question"] == {"question": "mean"}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("meen", "did you mean 'mean'?"),
        ("nothing.toml", "File 'nothing.toml' does not exist"),
        ("policy.toml", "policy.toml: the file must state a question; got a policy without a question. Add a line"),
        ("ranges:18-", "contain at least one value"),
        ("quantiles:5", "between 0 and 1"),
    ],
)
def test_wrong_questions_are_one_line(question: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in failure(capsys, "plan", "policy.toml", "--n", "10", "--question", question)


def test_a_wrong_question_of_a_policy_names_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wrong.toml").write_text(f'question = "ranges:9-"\n{AGES}')
    assert failure(capsys, "check", "wrong.toml").startswith("sfumato: wrong.toml: Ranges: a range must contain")


# -- answers -----------------------------------------------------------------------------------------------


def collected(folder: Path, mechanism: sf.mechanisms.Mechanism) -> sf.Estimate:
    """Write a mechanism and counts of 600 reports to files, and return their estimate."""
    counts = sf.aggregate(mechanism, sf.privatize(mechanism, list(range(6)) * 100, sf.InsecureSeeded(1)))
    (folder / "mechanism.json").write_text(mechanism.to_json())
    (folder / "counts.json").write_text(counts.to_json())
    return sf.estimate(mechanism, counts)


@pytest.mark.parametrize(
    "question", ["mean", "distribution", "quantiles:0.5", "ranges:0-1,4-", "mean.toml", "median.json"]
)
def test_estimate_answers_a_question(question: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estimate = collected(folder, RandomizedResponse(sf.Domain.range(6), 1))
    files = ["estimate", "mechanism.json", "counts.json"]
    answer = result(capsys, *files, "--question", question, "--confidence", "0.9", "-o", "answers.csv")
    asked = sf.load_question(question) if question.endswith((".toml", ".json")) else question
    expected = estimate.answers(asked)
    columns = expected.to_columns(0.9)
    assert answer["question"] == expected.question.to_dict()
    for key, column in zip(("answer", "value", "standard_error", "low", "high"), columns.values(), strict=True):
        assert [row[key] for row in answer["rows"]] == pytest.approx(list(column))
    lines = (folder / "answers.csv").read_text().splitlines()
    assert lines[0] == ",".join(f'"{name}"' for name in columns)
    assert len(lines) == len(expected) + 1
    assert main([*files, "--question", question, "--plot", "answers.svg"]) == 0
    printed = capsys.readouterr().out
    assert f"600 reports, question {expected.question.name}" in printed
    assert f"{float(expected.values[-1]):.5g}" in printed
    assert (folder / "answers.svg").stat().st_size > 1000


def test_estimate_from_reports_that_do_not_distinguish_all_values(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [[1 - (1 + x) / 8, (1 + x) / 8] for x in range(6)]
    estimate = collected(folder, TableMechanism.from_matrix(sf.Domain.range(6), rows))
    files = ["estimate", "mechanism.json", "counts.json"]
    for options in ([], ["--question", "mean"]):
        (row,) = result(capsys, *files, *options)["rows"]
        assert (row["answer"], row["value"]) == ("mean", pytest.approx(estimate.mean().value))
    assert main([*files, "--plot", "mean.svg"]) == 0
    assert "they determine only these numbers" in capsys.readouterr().out
    for options in (["--question", "frequencies"], ["--question", "distribution"], ["--method", "mle"]):
        assert "sfumato: estimate: the mechanism must" in failure(capsys, *files, *options)
    assert "--dishonest applies to frequencies only" in failure(capsys, *files, "--dishonest", "0.1")


@pytest.mark.usefixtures("folder")
def test_simulate_measures_the_answers(capsys: pytest.CaptureFixture[str]) -> None:
    answer = result(capsys, "simulate", "mean.toml", "--n", "2000", "--truth", "zipf", "--seed", "3")
    run = sf.simulate(sf.Uniform(sf.Domain.range(6), "ln 3"), n=2000, truth="zipf", question="mean", seed=3)
    assert answer["question"] == {"question": "mean"}
    assert answer["answer_rmse"] == run.answer_rmse
    assert answer["predicted_answer_rmse"] == run.predicted_answer_rmse
    assert answer["rows"][0]["truth"] == pytest.approx(run.true_answers[0])
    assert main(["simulate", "mean.toml", "--n", "2000", "--question", "distribution", "--max-seconds", "0"]) == 0
    assert "root mean square of the answers (distribution)" in capsys.readouterr().out
    assert "l2" in result(capsys, "simulate", "mean.toml", "--n", "2000", "--question", "frequencies")


TABLES = """
[domain]
product = {sex = ["f", "m"], smokes = ["yes", "no"], age = ["young", "middle", "old"]}
[policy]
kind = "product"
[policy.attributes.sex]
kind = "uniform"
epsilon = 1
[policy.attributes.smokes]
kind = "uniform"
epsilon = 2
[policy.attributes.age]
kind = "high-low"
sensitive = ["old"]
epsilon = 1
"""


@pytest.mark.parametrize("mechanism", ["split", "sample-pairs-evenly"])
def test_a_policy_per_attribute_leads_to_tables(
    mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(TABLES)
    people = [("f", "yes", "old"), ("m", "no", "young"), ("f", "no", "middle")] * 60
    lines = ["id,age,sex,smokes", *(f"{i},{age},{sex},{smokes}" for i, (sex, smokes, age) in enumerate(people))]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    answer = result(capsys, "plan", "policy.toml", "--question", "marginals", "--n", "1000", "--max-seconds", "0")
    assert mechanism in {row["name"] for row in answer["rows"]}
    design = ["design", "policy.toml", "--question", "marginals", "--mechanism", mechanism, "-o", "mechanism.json"]
    assert main([*design, "--max-seconds", "5"]) == 0
    columns = [part for name in ("sex", "smokes", "age") for part in ("--column", name)]
    assert main(["privatize", "mechanism.json", "people.csv", "-o", "reports.parquet", *columns]) == 0
    assert main(["aggregate", "mechanism.json", "reports.parquet", "-o", "counts.json"]) == 0
    capsys.readouterr()
    answer = result(capsys, "estimate", "mechanism.json", "counts.json", "--question", "marginals", "-o", "tables.csv")
    sampler = sf.mechanism_from_spec(json.loads((tmp_path / "mechanism.json").read_text()))
    counts = sf.Aggregate.from_json((tmp_path / "counts.json").read_bytes())
    tables = sf.estimate(sampler, counts).marginals()
    assert [row["answer"] for row in answer["rows"]] == list(tables.names)
    assert [row["value"] for row in answer["rows"]] == tables.values.tolist()
    header, *cells = (tmp_path / "tables.csv").read_text().splitlines()
    assert header.replace(chr(34), "") == "table,sex,smokes,age,frequency,standard_error,low,high"
    assert len(cells) == len(tables) == 16
    assert main(["estimate", "mechanism.json", "counts.json", "--question", "marginals:1"]) == 0
    assert "smokes=yes" in capsys.readouterr().out
