"""The command line from policy to estimate, as a person would use it; and what it says to wrong input."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cyclic", "high-low-cyclic"])
def test_from_policy_to_estimate_with_a_cyclic_design(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    run("design", "policy.toml", "--mechanism", name, "-o", "mechanism.json")
    mechanism = sf.mechanism_from_spec((folder / "mechanism.json").read_text())
    assert mechanism.name == {"cyclic": "cyclic-design", "high-low-cyclic": "parts"}[name]
    run("audit", "mechanism.json", "--policy", "policy.toml", "-o", "certificate.json")
    run("privatize", "mechanism.json", "values.txt", "-o", "reports.parquet")
    run("aggregate", "mechanism.json", "reports.parquet", "-o", "counts.json")
    found = answer(capsys, "estimate", "mechanism.json", "counts.json", "--json")
    assert [row["value"] for row in found["rows"]] == list(SHARES)
    for row, share in zip(found["rows"], SHARES.values(), strict=True):
        # Reports are drawn from the operating system: seven standard errors, false rejection below 1e-10.
        assert abs(row["frequency"] - share) < 7 * row["standard_error"]


def test_a_csv_file_of_estimates_needs_no_other_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("design", "policy.toml", "-o", "mechanism.json")
    (folder / "values.txt").write_text("none\nhiv\n" * 50)
    run("privatize", "mechanism.json", "values.txt", "-o", "reports.sfb")
    run("aggregate", "mechanism.json", "reports.sfb", "-o", "counts.json")
    run("estimate", "mechanism.json", "counts.json", "-o", "with.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    run("estimate", "mechanism.json", "counts.json", "-o", "without.csv")
    assert (folder / "without.csv").read_text() == (folder / "with.csv").read_text()
    head, *rows = (folder / "without.csv").read_text().splitlines()
    assert head == '"value","frequency","standard_error","low","high"'
    assert [row.partition(",")[0] for row in rows] == ['"none"', '"flu"', '"hiv"', '"cancer"']


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
    assert "high-low-subset: optimal, expected squared error" in capsys.readouterr().out


def test_simulate_is_repeatable_and_near_its_prediction(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001
    command = ("simulate", "policy.toml", "--n", "200_000", "--truth", "zipf", "--seed", "3", "--json")
    first, second = answer(capsys, *command), answer(capsys, *command)
    assert first == second
    assert first["l2"] < 10 * first["predicted_l2"]
    run("simulate", "policy.toml", "--n", "1000")
    assert "95% intervals that contain the truth" in capsys.readouterr().out


@pytest.mark.slow
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


@pytest.mark.slow
def test_every_answer_can_be_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "check", "policy.toml", "--json", "--plot", "levels.svg")["kind"] == "high-low"
    made = answer(capsys, "design", "policy.toml", "-o", "mechanism.json", "--json")
    assert made["mechanism"] == "parts"
    certificate = answer(capsys, "audit", "mechanism.json", "--policy", "policy.toml", "--json")
    assert certificate["holds"]
    assert certificate["mechanism_hash"] == made["hash"]
    written = answer(capsys, "privatize", "mechanism.json", "values.txt", "-o", "r.sfb", "--json")
    assert written["reports"] == 20_000
    assert answer(capsys, "aggregate", "mechanism.json", "r.sfb", "-o", "counts.json", "--json")["reports"] == 20_000
    rows = answer(capsys, "estimate", "mechanism.json", "counts.json", "--dishonest", "0.01", "--json")["rows"]
    assert all(0 < row["influence"] < 0.1 for row in rows)
    run("estimate", "mechanism.json", "counts.json", "--dishonest", "0.01")
    assert "if 1% lie" in capsys.readouterr().out
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
    out, counts = ("-o", "never.parquet"), ("-o", "never.json")

    message = refusal(capsys, "privatize", "mechanism.json", "wrong.txt", *out)
    assert "wrong.txt: line 3 must be one of" in message
    assert "'cold'" in message
    (folder / "far.txt").write_text("none\n" * 70_000 + "cold\n")  # beyond the first piece that is read
    assert "line 70001" in refusal(capsys, "privatize", "mechanism.json", "far.txt", *out)
    assert "empty" in refusal(capsys, "privatize", "mechanism.json", "empty.txt", *out)
    assert "answer" in refusal(capsys, "privatize", "mechanism.json", "values.parquet", *out)
    assert "'nothing'" in refusal(capsys, "privatize", "mechanism.json", "values.csv", "--column", "nothing", *out)
    assert "cut.sfb" in refusal(capsys, "aggregate", "mechanism.json", "cut.sfb", *counts)
    assert "long.sfb" in refusal(capsys, "aggregate", "mechanism.json", "long.sfb", *counts)
    assert "mechanism" in refusal(capsys, "aggregate", "other.json", "reports.sfb", *counts)
    assert "mechanism" in refusal(capsys, "estimate", "other.json", "counts.json")
    assert "did you mean 'sensitive'?" in refusal(capsys, "check", "misspelt.toml")
    assert "broken.toml" in refusal(capsys, "plan", "broken.toml", "--n", "5")
    assert "JSON" in refusal(capsys, "audit", "broken.json", "--policy", "policy.toml")
    assert "--n" in refusal(capsys, "plan", "policy.toml", "--n", "many")
    assert "exactly one of n and target must be passed" in refusal(capsys, "plan", "policy.toml")
    assert "'magic'" in refusal(capsys, "design", "policy.toml", "--mechanism", "magic", *out)
    assert ".svg or .png" in refusal(capsys, "estimate", "mechanism.json", "counts.json", "--plot", "e.jpg")
    assert not list(folder.glob("never.*"))
    assert not list(folder.glob(".*.tmp"))


@pytest.fixture
def collected(folder: Path) -> Path:
    """Files of every kind that a command reads."""
    run("design", "policy.toml", "-o", "mechanism.json")
    (folder / "few.txt").write_text("none\nflu\nhiv\n" * 20)
    run("privatize", "mechanism.json", "few.txt", "-o", "reports.arrow")
    run("aggregate", "mechanism.json", "reports.arrow", "-o", "counts.json")
    (folder / "losses.csv").write_text("0,1\n" * 4)
    return folder


@pytest.mark.parametrize(
    ("line", "written", "read"),
    [
        ("privatize mechanism.json values.parquet --column answer -o values.parquet", "values.parquet", "'VALUES'"),
        ("privatize -o mechanism.json mechanism.json few.txt", "mechanism.json", "'MECHANISM'"),
        ("aggregate mechanism.json counts.json -o counts.json", "counts.json", "'REPORTS...'"),
        ("aggregate mechanism.json reports.arrow -o mechanism.json", "mechanism.json", "'MECHANISM'"),
        ("aggregate mechanism.json reports.arrow -o new.json --resume mechanism.json", "mechanism.json", "'MECHANISM'"),
        ("aggregate mechanism.json reports.arrow -o new.json --resume new.json", "new.json", "'-o' / '--output'"),
        ("design policy.toml -o policy.toml", "policy.toml", "'POLICY'"),
        ("design policy.toml --loss losses.csv -o losses.csv", "losses.csv", "'--loss'"),
        ("audit mechanism.json --policy policy.toml -o mechanism.json", "mechanism.json", "'MECHANISM'"),
        ("audit mechanism.json -o policy.toml --policy policy.toml", "policy.toml", "'--policy'"),
        ("estimate mechanism.json counts.json -o ./counts.json", "counts.json", "'COUNTS'"),
        ("check policy.toml --plot policy.toml", "policy.toml", "'POLICY'"),
        ("plan policy.toml --n 10 --plot policy.toml", "policy.toml", "'POLICY'"),
        ("design policy.toml -o symbolic", "symbolic", "'POLICY'"),
        ("design symbolic -o policy.toml", "policy.toml", "'POLICY'"),
        ("design policy.toml -o hard", "hard", "'POLICY'"),
    ],
)
def test_no_output_takes_the_place_of_an_input(
    line: str, written: str, read: str, collected: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (collected / "symbolic").symlink_to("policy.toml")
    (collected / "hard").hardlink_to(collected / "policy.toml")
    before = {path.name: path.read_bytes() for path in collected.iterdir()}
    message = refusal(capsys, *line.split())
    verb = "written" if read.startswith("'-o'") else "read"
    assert f"{written} is also {verb} for {read}. Choose another output file." in message
    assert "Invalid value for '-" in message  # it is the output that is blamed
    assert {path.name: path.read_bytes() for path in collected.iterdir()} == before


def test_one_file_may_be_read_twice_and_an_old_output_replaced(collected: Path) -> None:
    for _ in range(2):
        run("aggregate", "mechanism.json", "reports.arrow", "reports.arrow", "-o", "twice.json")
    assert json.loads((collected / "twice.json").read_text())["n"] == 120


def test_counts_are_not_written_under_the_name_of_another_format(
    collected: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("counts.csv", "counts", "counts.parquet"):
        message = refusal(capsys, "aggregate", "mechanism.json", "reports.arrow", "-o", name)
        assert f"{name} must end in .json" in message
        assert not (collected / name).exists()


@pytest.mark.parametrize(
    ("level", "shown"), [("0.95", "95%"), ("0.975", "97.5%"), ("0.995", "99.5%"), ("0.9999", "99.99%")]
)
def test_a_level_is_shown_as_it_is(level: str, shown: str, collected: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("estimate", "mechanism.json", "counts.json", "--confidence", level, "--plot", "e.svg")
    out = capsys.readouterr().out
    assert f"low ({shown})" in out
    assert f"high ({shown})" in out
    assert f"{shown} interval<" in (collected / "e.svg").read_text()


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize(("share", "shown"), [("0.0001", "0.01%"), ("0.125", "12.5%"), ("1", "100%")])
def test_the_share_of_liars_is_shown_as_it_is(share: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("estimate", "mechanism.json", "counts.json", "--dishonest", share)
    assert f"± if {shown} lie" in capsys.readouterr().out


def test_simultaneous_intervals_are_shown_written_and_drawn(
    collected: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("estimate", "mechanism.json", "counts.json", "--simultaneous", "--confidence", "0.9")
    found = answer(capsys, *command, "--json", "-o", "estimate.csv", "--plot", "e.svg")
    mechanism = sf.mechanism_from_spec((collected / "mechanism.json").read_bytes())
    counts = sf.Aggregate.from_json((collected / "counts.json").read_bytes())
    low, high = sf.estimate(mechanism, counts).interval(0.9, simultaneous=True)
    assert found["simultaneous"]
    assert [(row["low"], row["high"]) for row in found["rows"]] == list(zip(low, high, strict=True))
    assert any(low > 0)
    assert not np.array_equal(low, sf.estimate(mechanism, counts).interval(0.9)[0])
    with (collected / "estimate.csv").open() as file:
        assert [float(row["low"]) for row in csv.DictReader(file)] == pytest.approx(low.tolist())
    assert "90% interval (simultaneous)<" in (collected / "e.svg").read_text()
    run(*command)
    assert "low (90%, all)" in capsys.readouterr().out


def test_the_efficient_method_is_that_of_the_library(collected: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "estimate", "mechanism.json", "counts.json", "--method", "efficient", "--json")
    mechanism = sf.mechanism_from_spec((collected / "mechanism.json").read_bytes())
    expected = sf.estimate(mechanism, sf.Aggregate.from_json((collected / "counts.json").read_bytes()), "efficient")
    assert [row["frequency"] for row in found["rows"]] == expected.frequencies.tolist()
    assert found["method"] == "efficient"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["plan policy.toml", "design policy.toml -o m.json", "simulate policy.toml"])
def test_a_number_of_people_that_is_none_is_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for n in ("1e400", "inf", "nan", "1e30", "1,5", "1.000", "1,0000", "1_5", "0", "-5", "1.5", "1.5e0", "", "٣"):
        message = refusal(capsys, *command.split(), "--n", n)
        assert f"Invalid value for '--n': {n!r} is not a whole number from 1 to 2^53, such as 1000" in message


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("n", "means"), [("1000", 1000), ("1,000", 1000), ("10_000", 10_000), ("1.5e3", 1500), ("1e+15", 10**15)]
)
def test_large_numbers_are_read_as_they_are_written(n: str, means: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "plan", "policy.toml", "--n", n, "--json")["n"] == means


def test_without_a_number_of_people_a_design_says_which_it_supposes(
    folder: Path,  # noqa: ARG001
    capsys: pytest.CaptureFixture[str],
) -> None:
    supposed = " (for 10,000 people; set --n to the number of people who will answer)"
    without = answer(capsys, "design", "policy.toml", "-o", "mechanism.json", "--json")
    stated = answer(capsys, "design", "policy.toml", "-o", "other.json", "--n", "10_000", "--json")
    assert without == {**stated, "why": stated["why"] + supposed}
    found = re.search(r"total variation error about ([0-9.]+),", without["why"])
    assert found is not None
    assert float(found[1]) < 1
    for asked in (["--mechanism", "rr"], ["--utility", "mutual-information"]):
        assert supposed not in answer(capsys, "design", "policy.toml", "-o", "mechanism.json", *asked, "--json")["why"]


def test_files_without_a_value_are_refused_in_every_format(collected: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (collected / "none.txt").write_text("")
    (collected / "none.csv").write_text("answer\n")
    pq.write_table(pa.table({"answer": pa.array([], pa.string())}), collected / "none.parquet")
    for name in ("none.txt", "none.csv", "none.parquet"):
        message = refusal(capsys, "privatize", "mechanism.json", name, "-o", "never.sfb")
        assert f"{name}: the file must hold at least one value" in message
    assert not (collected / "never.sfb").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("v,v\nflu,flu\n", "values.csv: the column 'v' must occur once in the header; got 2 columns of that name"),
        ("a;v\n1;flu\n", "one of 'a;v'; got 'v'. The header contains a semicolon: set the delimiter to ';' if it"),
        ("a\tv\n1\tflu\n", "got 'v'. The header contains a tab: set the delimiter to '\\t' if it separates cells."),
        ("a,b\n1,flu\n", "the column must be one of 'a', 'b'; got 'v'"),
    ],
)
def test_a_column_that_is_not_found_is_refused_with_the_likely_reason(
    text: str, message: str, collected: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (collected / "values.csv").write_text(text)
    assert message in refusal(capsys, "privatize", "mechanism.json", "values.csv", "--column", "v", "-o", "never.sfb")


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize(
    "line", ["submit ftp://collect.example abc reports.arrow", "submit http://127.0.0.1:9 abc few.txt"]
)
def test_nothing_is_announced_that_cannot_be_sent(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "sending" not in refusal(capsys, *line.split())


def test_one_is_not_many(collected: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (collected / "one.txt").write_text("flu\n")
    run("privatize", "mechanism.json", "one.txt", "-o", "one.sfb")
    run("aggregate", "mechanism.json", "one.sfb", "-o", "one.json")
    run("estimate", "mechanism.json", "one.json")
    out = capsys.readouterr().out
    for said in (
        "1 report of 2 bits written",
        "1 report counted; counts written to one.json",
        "1 report, method unbiased",
    ):
        assert said in out


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
