"""The papers' experiments: all run, say what they did, and rest on protocols that are what the papers have."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result as Ran

import sfumato as sf
from papers.__main__ import command
from papers.experiment import Run, all_experiments, experiment_named
from papers.experiments._classical import published_hadamard
from papers.experiments._robust import PROTOCOLS, Table, matrices, radius_of
from papers.figure import Curve, Panel, draw
from papers.result import Claim, Result, Row
from sfumato.datasets.folder import VARIABLE
from sfumato.datasets.seeded import SeededNumbers
from sfumato.errors import InvalidInput
from sfumato.mechanisms.secret.base import information
from sfumato.mechanisms.secret.randomized_response import SecretRandomizedResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.mechanism import TableMechanism
from support.published import reference


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def claims(name: str, run: Run | None = None) -> dict[str, Claim]:
    found = experiment_named(name).run(run or Run(quick=True))
    return {each.text: each for each in found.claims}


# -- the command -----------------------------------------------------------------------------------------------


def run(*arguments: str) -> Ran:
    """Run ``python -m papers``."""
    return CliRunner().invoke(command, arguments)


@pytest.mark.slow
def test_every_experiment_runs_and_says_what_it_did(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    documents = json.loads(run("--all", "--quick", "--json", "-o", str(folder)).stdout)["experiments"]
    assert [each["name"] for each in documents] == list(all_experiments())
    for document in documents:
        name = document["name"]
        assert document["rows"], name
        assert document["claims"], name
        assert document["notes"], name
        for row in document["rows"]:
            assert {"setting", "published", "measured", "ours"} <= set(row), name
            assert row["setting"]
        # Something was measured, and something of ours stands beside it, but for times.
        assert any(row["measured"] is not None for row in document["rows"])
        assert name == "rldp-timing" or any(row["ours"] is not None for row in document["rows"])
        # No data were given, so whatever is not synthetic anyway is a stand-in, and is called one.
        for data in document["data"]:
            assert data["stand_in"]
            assert data["source"].startswith("a stand-in: ")
        assert json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) == document
        assert (folder / f"{name}.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
        page = (folder / f"{name}.md").read_text(encoding="utf-8")
        assert all(row["setting"] in page for row in document["rows"])
    # Quick: 20,000 people on 8,750 cells, with the default seed.
    gowalla = next(each for each in documents if each["name"] == "icml-table1")
    assert [row["published"] for row in gowalla["rows"]] == [0.591, 0.298, 0.108, 0.082]
    assert all(claim["holds"] for claim in gowalla["claims"])
    assert {each["name"] for each in documents if each["data"]} == {
        "icml-table1", "lip-figure8", "rldp-figure10", "rldp-figure11",
    }  # fmt: skip


def test_one_experiment_as_a_table_and_as_json() -> None:
    text = run("lip-figure6", "--quick").stdout
    assert "published" in text
    assert "8.3" in text
    assert "Not confirmed: ε/2-Opt-LIP is better than ε-Opt-LDP" in text
    document = json.loads(run("lip-figure6", "--quick", "--json", "--seed", "3").stdout)
    assert (document["name"], document["seed"], document["quick"]) == ("lip-figure6", 3, True)


def test_the_list_names_all() -> None:
    names = [each["name"] for each in json.loads(run("--list", "--json").stdout)]
    assert {"icml-figure2", "icml-table1", "subset-risk", "subset-communication", "rldp-timing"} <= set(names)
    assert {f"lip-figure{number}" for number in (2, 5, 6, 7, 8)} <= set(names)
    assert [name for name in names if name.startswith("rldp-f")] == [f"rldp-figure{n}" for n in range(2, 12)]
    assert "icml-table1" in run("--list").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give the names of experiments, or --all, or --list"),
        (["--all", "icml-table1"], "Give the names of experiments, or --all, or --list"),
        (["icml-table9"], "the name must be one of icml-figure2"),
        (["lip-figure8", "--data", "/nowhere/at/all"], "does not exist"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments: list[str], message: str) -> None:
    ran = run(*arguments)
    assert ran.exit_code == 2
    assert message in ran.stderr


def test_a_folder_with_data_is_used(tmp_path: Path) -> None:
    (tmp_path / "kosarak.dat").write_text("1 1 2\n" * 8000)  # one page of 41,270 has more than 15,000 clicks
    document = json.loads(run("lip-figure8", "--quick", "--json", "--data", str(tmp_path)).stdout)
    assert [each["stand_in"] for each in document["data"]] == [False, True]
    assert "1 of 41,270 pages are popular" in document["notes"][0]
    before = document["rows"][0]
    assert before["measured"] == pytest.approx(math.sqrt(1 / 41_270 * (1 - 1 / 41_270)))


def test_the_same_seed_gives_the_same_numbers() -> None:
    experiment = experiment_named("lip-figure7")
    once, again, other = (experiment.run(Run(quick=True, seed=seed)) for seed in (1, 1, 2))
    assert once.rows == again.rows
    assert once.rows != other.rows


def test_progress_moves_to_its_end() -> None:
    seen: list[tuple[int, int | None]] = []
    experiment_named("lip-figure5").run(Run(quick=True, progress=lambda at: seen.append((at.done, at.total))))
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_an_unknown_experiment_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="the name must be one of icml-figure2"):
        experiment_named("nature-figure1")


# -- results ---------------------------------------------------------------------------------------------------


def test_a_table_leaves_out_what_is_empty_and_json_what_is_infinite() -> None:
    rows = (Row("a", None, 1.5, None, {"more": math.inf}), Row("b", None, math.nan, 2.0, {"text": "x"}))
    result = Result("q", "o", rows, (), (), ())
    assert result.table() == (("setting", "measured", "ours", "text"), [("a", "1.5", "", ""), ("b", "", "2", "x")])
    assert result.document()["rows"][0] == {
        "setting": "a", "published": None, "measured": 1.5, "ours": None, "more": None,
    }  # fmt: skip


@pytest.mark.slow
def test_figures_have_a_panel_for_each_and_a_legend() -> None:
    curves = (Curve("ours", [1, 2], [1, 2], ours=True), Curve("points", [1, 2], [2, 1], points=True))
    panels = [Panel(f"p{number}", "x", "y", curves, "xy") for number in range(5)]
    figure = draw("title", panels)
    drawn = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in drawn] == [f"p{number}" for number in range(5)]
    assert [axes.get_legend() is not None for axes in drawn] == [True, False, False, False, False]
    assert drawn[0].get_xscale() == "log"


# -- what the papers say, and what was found -------------------------------------------------------------------


def test_half_the_level_never_beats_ldp_but_with_the_printed_mechanism() -> None:
    for name in ("lip-figure6", "lip-figure7", "lip-figure8"):
        artefacts = [each for text, each in claims(name).items() if text.startswith("ε/2-Opt-LIP is better")]
        assert artefacts
        assert not any(each.holds for each in artefacts)
    rows = {row.setting: row for row in experiment_named("lip-figure6").run(Run()).rows}
    crossing = rows["the ε below which ε/2-LIP beats ε-LDP, P1 = 0.01"]
    assert crossing.published == 8.3
    assert crossing.measured == pytest.approx(7.784, abs=1e-3)  # the printed formula's
    assert crossing.ours == 0


def test_the_printed_mechanism_breaks_its_definition_in_example_1() -> None:
    result = experiment_named("lip-figure2").run(Run())
    rows = {row.setting: row for row in result.rows}
    for case in reference("lip_example1"):
        setting = f"LIP, ε = {case['eps']:g}"
        assert rows[setting].ours == pytest.approx(case["E_LIP_true"], rel=1e-9)
        assert rows[f"LDP, ε = {case['eps']:g}"].measured == pytest.approx(case["E_LDP"], rel=1e-9)
        assert rows[f"LDP, ε = {case['eps']:g}"].ours == pytest.approx(case["E_OptLDP_mmse"], rel=1e-9)
    one = rows["LIP, ε = 1"]
    assert one.details["level as printed"] == pytest.approx(1.900, abs=1e-3)
    assert one.details["level of ours"] == pytest.approx(1, abs=1e-9)
    assert not result.claims[-1].holds


@pytest.mark.slow
def test_the_slides_formula_is_the_exact_risk() -> None:
    found = claims("subset-risk")
    assert found["its risk is that of the formula"].holds
    assert found["subset selection has the smallest l2 risk in all regimes"].holds
    for case in reference("hadamard_response_best_block"):
        mechanism = published_hadamard(sf.Domain.range(case["k"]), str(case["eps"]))
        assert (mechanism.blocks, mechanism.block_size) == (case["paper_B"], case["paper_b"])
        assert mechanism.risk(1) == pytest.approx(case["paper_l2_uniform_n1"], rel=1e-6)


# -- the protocols of the robust LDP paper ---------------------------------------------------------------------


def tables() -> list[Table]:
    numbers = SeededNumbers(11)
    drawn = [Table.draw(numbers, shape, n) for shape in ((2, 2), (2, 3), (3, 2)) for n in (50, 1000)]
    unseen = Table.counted(np.array([[30, 20], [10, 40], [0, 0]]))
    return [*drawn, unseen]


def test_what_protocols_tell_is_what_their_channels_tell() -> None:
    for table in tables():
        for epsilon in (0.3, 1.0, 4.0):
            for name, matrix in matrices(table, epsilon).items():
                nats = PROTOCOLS[name](table, epsilon).information
                assert nats == pytest.approx(information(table.frequencies.ravel(), matrix), rel=1e-9, abs=1e-12), name


def test_protocols_keep_the_policy() -> None:
    for table in tables():
        policy = table.policy("1")
        for matrix in matrices(table, 1 - 1e-9).values():
            mechanism = TableMechanism.from_matrix(policy.domain, matrix)
            assert sf.audit(mechanism, policy).holds


def test_the_responses_without_a_budget_are_those_of_the_library() -> None:
    for table in tables():
        domain = table.policy("1").domain
        for epsilon in (0.5, 2.0):
            for name, mechanism in (
                ("SRR", SecretRandomizedResponse(domain, "S", epsilon)),
                ("GRR", RandomizedResponse(domain, epsilon)),
            ):
                nats = information(table.frequencies.ravel(), mechanism.matrix())
                assert PROTOCOLS[name](table, epsilon).information == pytest.approx(nats, rel=1e-6)


def test_the_best_budget_is_at_least_as_good_as_any_that_was_computed_elsewhere() -> None:
    names = {"GRR": "GRR", "SRR": "SRR", "IR": "IR", "GRRCR": "GRR-CR", "UECR": "UE-CR"}
    for instance in reference("rldp_instances"):
        counts = np.rint(np.array(instance["Phat"]) * instance["n"]).astype(np.int64)
        table = Table.counted(counts, str(instance["alpha"]))
        assert table.radius == pytest.approx(instance["B"], rel=1e-12)
        assert table.distances() == pytest.approx(np.array(instance["d_s"]), rel=1e-9)
        for case in instance["cases"]:
            for name, ours in names.items():
                nats = PROTOCOLS[ours](table, case["eps"]).information
                assert nats >= case["channels"][name]["MI"] * (1 - 1e-6)
                if name in ("GRR", "SRR"):
                    assert nats == pytest.approx(case["channels"][name]["MI"], rel=1e-9)


def test_more_confidence_is_a_wider_set() -> None:
    radii = [radius_of(1000, (5, 5), alpha) for alpha in ("0.1", "0.05", "0.0001")]
    assert radii == sorted(radii)
    assert radii[-1] == pytest.approx(0.0586129697483, rel=1e-9)
