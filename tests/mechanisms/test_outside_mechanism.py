"""A mechanism from outside the library: registered, it goes through every verb; what cannot be one is rejected."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.collecting import aggregate_files, decode_batch, encode_batch, read_reports, write_reports
from sfumato.errors import InvalidInput, PolicyViolated, UnknownSpec
from sfumato.mechanisms import (
    BitmapFormat,
    BlockMechanism,
    Draws,
    Finished,
    IndexFormat,
    Mechanism,
    RandomizedResponse,
    ReportFormat,
    SubsetSelection,
    UnaryEncoding,
    registry as _registry,
)
from sfumato.mechanisms.registry import count_law_for, estimator_for, kernel_for, mechanism_classes
from sfumato.testing import MechanismContract
from support import ROOT

DAYS = sf.Domain(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
POLICY = sf.Uniform(DAYS, "1/2")
SHARES = np.array([0.2, 0.15, 0.1, 0.1, 0.15, 0.25, 0.05])


def load_example() -> ModuleType:
    """The example as a new module, whose import registers its mechanism."""
    path = ROOT / "examples" / "outside_mechanism.py"
    spec = importlib.util.spec_from_file_location("outside_mechanism", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def example() -> ModuleType:
    return load_example()


@pytest.fixture
def mechanism(example: ModuleType) -> Mechanism:
    made: Mechanism = example.CyclicResponse(DAYS, "1/2")
    return made


class TestContract(MechanismContract):
    cases = 30
    sizes = (7, 13)
    tight = False  # it stops a little below its level

    def make(self, domain: sf.Domain, epsilon: sf.Epsilon) -> Mechanism:
        made: Mechanism = load_example().CyclicResponse(domain, epsilon)
        return made


def test_the_example_runs(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    estimate = example.main(people=2_000)
    assert estimate.n == 2_000
    assert "*  cyclic-response" in capsys.readouterr().out


def test_its_sets_are_difference_sets(example: ModuleType) -> None:
    for size, members in example.DIFFERENCE_SETS.items():
        differences = [(a - b) % size for a in members for b in members if a != b]
        assert {differences.count(each) for each in range(1, size)} == {len(differences) // (size - 1)}


def test_the_audit_reads_its_sampler(mechanism: Mechanism) -> None:
    certificate = sf.audit(mechanism, POLICY)
    assert certificate.holds
    assert certificate.coverage == "all"
    assert not sf.audit(mechanism, sf.Uniform(DAYS, "0.49")).holds


def test_its_spec_is_read_back(mechanism: Mechanism) -> None:
    again = sf.mechanism_from_spec(mechanism.to_json())
    assert type(again) is type(mechanism)
    assert again == mechanism
    assert mechanism.spec["report"] == {"encoding": "index", "bits": 3}


@pytest.mark.parametrize(("n", "widest"), [(40, 3.0), (20_000, 0.25)])
def test_privatize_aggregate_and_estimate(mechanism: Mechanism, n: int, widest: float) -> None:
    values = np.repeat(np.array(list(DAYS)), (SHARES * n).round().astype(int))
    reports = sf.privatize(mechanism, values, stream=sf.InsecureSeeded(5))
    assert kernel_for(mechanism) is None
    assert reports.dtype == np.uint32
    counts = sf.aggregate(mechanism, reports)
    assert counts.n == n
    for method in ("unbiased", "efficient", "simplex", "mle"):
        estimate = sf.estimate(mechanism, counts, method)
        low, high = estimate.interval(0.999999)
        assert (low <= SHARES).all()
        assert (high >= SHARES).all()
        assert (high - low).max() < widest
        assert estimate.frequencies.sum() == pytest.approx(1)


def test_the_estimate_is_unbiased_and_its_covariance_exact(mechanism: Mechanism) -> None:
    estimator = estimator_for(mechanism)
    matrix = mechanism.matrix()
    np.testing.assert_allclose(estimator.frequencies(SHARES @ matrix), SHARES, atol=1e-12)
    scores = np.array([estimator.frequencies(row) for row in np.eye(len(DAYS))])
    covariance = (scores.T * (SHARES @ matrix)) @ scores - np.outer(SHARES, SHARES)
    np.testing.assert_allclose(estimator.covariance(SHARES), covariance, atol=1e-10)
    assert mechanism.risk(100, SHARES) == pytest.approx(np.trace(covariance) / 100)


def test_plan_and_design_compare_it(example: ModuleType) -> None:
    rows = {row.name: row for row in sf.plan(POLICY, 1000).rows}
    assert rows["cyclic-response"].risk == pytest.approx(rows["subset"].risk, rel=1e-6)
    assert (rows["cyclic-response"].bits, rows["subset"].bits) == (3, 7)
    assert sf.plan(POLICY, 1000).best.name == "cyclic-response"  # of equal errors, the shortest report
    assert isinstance(sf.design(POLICY, 1000), example.CyclicResponse)
    short = sf.plan(POLICY, 1000, max_bits=3)
    assert short.best.bits == 3
    assert short["cyclic-response"].risk == pytest.approx(short.best.risk, rel=1e-6)
    assert sf.audit(sf.design(POLICY, mechanism="cyclic-response"), POLICY).holds
    for policy in (sf.Uniform(DAYS, 0), sf.Uniform(DAYS, "inf"), sf.HighLow(DAYS, ["Sat"], 1)):
        assert "cyclic-response" in {row.name for row in sf.plan(policy, 1000, max_seconds=0).rows}
        assert sf.audit(sf.design(policy, mechanism="cyclic-response"), policy).holds
    assert "cyclic-response" not in {row.name for row in sf.plan(sf.Uniform(sf.Domain.range(8), 1), 100).rows}


def test_simulate_draws_every_report(mechanism: Mechanism) -> None:
    simulation = sf.simulate(mechanism, n=5_000, truth=SHARES, seed=1)
    assert simulation.one_by_one
    assert simulation.l2 < 10 * simulation.predicted_l2
    with pytest.raises(InvalidInput, match=r"the distribution of the counts of .* is not known"):
        sf.simulate(mechanism, n=5_000, one_by_one=False)


def test_a_ledger_charges_it_and_answers_with_it(mechanism: Mechanism) -> None:
    ledger = sf.Ledger(budget=sf.Uniform(DAYS, 1))
    ledger.charge("days", mechanism, POLICY)
    assert ledger.total == sf.Epsilon("1/2")
    first = ledger.answer("more days", mechanism, POLICY, "Sat", stream=sf.InsecureSeeded(1))
    again = ledger.answer("more days", mechanism, POLICY, "Sat", stream=sf.InsecureSeeded(2))
    assert np.array_equal(first, again)
    with pytest.raises(PolicyViolated):
        sf.Ledger().charge("days", mechanism, sf.Uniform(DAYS, "0.4"))


@pytest.mark.parametrize("n", [3, 5_000])
@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".sfb"])
def test_report_files(mechanism: Mechanism, tmp_path: Path, suffix: str, n: int) -> None:
    reports = sf.privatize(mechanism, ["Sat"] * n)
    path = tmp_path / f"reports{suffix}"
    assert write_reports(mechanism, reports, path) == n
    again = sf.mechanism_from_spec(mechanism.spec)
    assert np.array_equal(np.concatenate(list(read_reports(again, path))), reports)
    assert aggregate_files(again, [path]) == sf.aggregate(mechanism, reports)
    assert np.array_equal(decode_batch(again, encode_batch(mechanism, reports)), reports)
    with pytest.raises(InvalidInput, match="row 1 must be in 0 … 6; got 7"):
        write_reports(mechanism, [0, 7], path)


@pytest.mark.parametrize("n", [3, 5_000])
def test_a_column_of_reports_survives_a_csv_file(mechanism: Mechanism, tmp_path: Path, n: int) -> None:
    reports = sf.privatize(mechanism, ["Sat"] * n)
    pd.DataFrame({"report": reports}).to_csv(tmp_path / "reports.csv", index=False)
    column = pd.read_csv(tmp_path / "reports.csv")["report"]
    assert sf.aggregate(mechanism, column.to_numpy()) == sf.aggregate(mechanism, reports)


def test_all_that_a_mechanism_from_outside_needs_is_public(example: ModuleType) -> None:
    needed = {
        *("BitmapFormat", "Candidate", "CandidateRequest", "Draws", "Estimator", "Field", "Finished", "IndexFormat"),
        *("Layout", "Mechanism", "NotIdentifiable", "ReportFormat", "mechanism_from_spec", "register"),
    }
    exported = set(vars(sf.mechanisms)["__all__"])
    assert needed <= exported
    imported = {
        name for name, value in vars(example).items() if getattr(value, "__module__", "").startswith("sfumato.")
    }
    assert imported <= {*sf.__all__, *exported, *sf.collecting.__all__}


# -- what is rejected --------------------------------------------------------------------------------------


def test_a_class_that_is_not_registered_is_unknown(mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.mechanisms.registry._BY_NAME", {})
    with pytest.raises(UnknownSpec):
        sf.mechanism_from_spec(mechanism.spec)


def test_a_name_that_is_taken_is_rejected() -> None:
    class Taken(RandomizedResponse):
        name = "subset-selection"

    with pytest.raises(InvalidInput, match=r"the name of the mechanism must differ from the name of .*SubsetSelection"):
        sf.register(Taken)


def test_a_class_that_is_defined_again_replaces_the_earlier_one() -> None:
    first, second = load_example().CyclicResponse, load_example().CyclicResponse
    assert first is not second
    assert mechanism_classes()["cyclic-response"] is second
    assert [row.name for row in sf.plan(POLICY, 100).rows].count("cyclic-response") == 1


def test_a_class_without_a_name_of_its_own_is_rejected() -> None:
    class Nameless(RandomizedResponse):
        pass

    with pytest.raises(InvalidInput, match="the class Nameless must define the class attribute name"):
        sf.register(Nameless)


@pytest.mark.parametrize("wrong", [3, "cyclic", object, RandomizedResponse(DAYS, 1)])
def test_what_is_no_mechanism_class_is_rejected(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="the mechanism must be a subclass of Mechanism"):
        sf.register(wrong)


def test_a_class_without_a_law_is_rejected() -> None:
    class Lawless(Mechanism):
        name = "lawless"

        def step(self, state: int, draws: Draws) -> Finished:  # noqa: ARG002
            return Finished(draws.below(2))

    with pytest.raises(InvalidInput, match="got no outputs, parameters, probability"):
        sf.register(Lawless)
    assert "lawless" not in mechanism_classes()


def test_other_reports_need_their_format_and_an_estimator() -> None:
    @sf.register(report_format=lambda mechanism: BitmapFormat(len(mechanism.domain)))
    class OneBit(RandomizedResponse):
        name = "outside-bit"

        def step(self, state: int, draws: Draws) -> Finished:
            return Finished(1 << super().step(state, draws).report)

        def probability(self, report: int, x: int) -> Fraction:
            return super().probability(report.bit_length() - 1, x)

        def reports(self) -> list[int]:
            return [1 << x for x in range(self.outputs)]

    mechanism = OneBit(DAYS, 1)
    assert sf.audit(mechanism, sf.Uniform(DAYS, 1)).holds
    counts = sf.aggregate(mechanism, sf.privatize(mechanism, ["Sat"] * 100))
    assert counts.counts.sum() == 100
    assert json.loads(mechanism.to_json())["report"] == {"encoding": "bitmap", "bits": 7}
    with pytest.raises(InvalidInput, match="report an index, or have an estimator"):
        sf.estimate(mechanism, counts)


# -- what a class from outside may decide ------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget after the test what it registered."""
    for name in ("_FAMILIES", "_BY_CLASS", "_BY_NAME"):
        monkeypatch.setattr(_registry, name, getattr(_registry, name).copy())


@pytest.mark.usefixtures("registry")
def test_only_classes_of_the_library_have_compiled_samplers() -> None:
    class Kernel(RandomizedResponse):
        name = "own-kernel"

    register: Any = sf.register
    for option in ("kernel", "count_law", "in_browser"):
        with pytest.raises(TypeError, match=option):
            register(Kernel, **{option: "module:function"})
    Kernel.__module__ = RandomizedResponse.__module__
    Kernel.is_of_library = True  # type: ignore[assignment, method-assign]
    mechanism = sf.register(Kernel)(DAYS, "1/2")
    assert kernel_for(mechanism) is None
    assert count_law_for(mechanism) is None
    blocks = BlockMechanism(DAYS, [0] * 7, [mechanism])
    assert not blocks.is_of_library
    assert kernel_for(blocks) is None
    assert kernel_for(BlockMechanism(DAYS, [0] * 7, [RandomizedResponse(DAYS, "1/2")])) is not None


class Unreadable(IndexFormat):
    """As an index, and the same bytes for every report."""

    def encode(self, report: int) -> bytes:  # type: ignore[misc]  # noqa: ARG002
        return b"\0"


@pytest.mark.usefixtures("registry")
def test_a_report_format_from_outside_is_rejected() -> None:
    class Formatted(RandomizedResponse):
        name = "own-format"

    with pytest.raises(InvalidInput, match=r"the report format of Formatted must be of a class of sfumato"):
        sf.register(Formatted, report_format=Unreadable)
    sf.register(Formatted, report_format=lambda mechanism: Unreadable(mechanism.outputs))
    mechanism = Formatted(DAYS, 1)
    for call in (
        lambda: sf.audit(mechanism, sf.Uniform(DAYS, 1)),
        lambda: sf.privatize(mechanism, ["Sat"]),
        lambda: mechanism.spec,
    ):
        with pytest.raises(InvalidInput, match="be of a class of sfumato"):
            call()


def test_no_report_format_has_a_serialised_form_of_its_own() -> None:
    def derived(kind: type) -> Iterator[type]:
        child: type
        for child in kind.__subclasses__():
            yield child
            yield from derived(child)

    formats = [kind for kind in derived(ReportFormat) if kind.__module__.startswith("sfumato.")]
    assert len(formats) > 5
    for method in (ReportFormat.encode, ReportFormat.decode):
        assert vars(method)["__final__"]
        assert [kind for kind in formats if method.__name__ in vars(kind)] == []


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("kind", [SubsetSelection, UnaryEncoding, RandomizedResponse])
def test_a_subclass_inherits_report_format_and_estimator(kind: Any) -> None:
    parent = kind(DAYS, 1)
    child = sf.register(type("Child", (kind,), {"name": "child"}))(DAYS, 1)
    grandchild = sf.register(type("Grandchild", (type(child),), {"name": "grandchild"}))(DAYS, 1)
    for mechanism in (child, grandchild):
        assert type(mechanism.report_format) is type(parent.report_format)
        assert type(mechanism.estimator) is type(parent.estimator)
        assert mechanism.spec["report"] == parent.spec["report"]
        assert mechanism.risk(100) == parent.risk(100)
        reports = sf.privatize(mechanism, ["Sat"] * 200, stream=sf.InsecureSeeded(1))
        assert sf.aggregate(mechanism, reports).n == 200
        assert "child" not in {row.name for row in sf.plan(POLICY, 100).rows}


@pytest.mark.slow
def test_an_installed_package_is_found_by_its_entry_point(tmp_path: Path, mechanism: Mechanism) -> None:
    package = tmp_path / "installed"
    metadata = package / "cyclic-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: cyclic\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[sfumato.mechanisms]\ncyclic-response = outside_mechanism\n")
    shutil.copy(ROOT / "examples" / "outside_mechanism.py", package)
    (tmp_path / "mechanism.json").write_text(json.dumps(mechanism.spec))
    (tmp_path / "values.csv").write_text("day\n" + "Sat\n" * 50)
    write = ["privatize", "mechanism.json", "values.csv", "--column", "day", "-o", "reports.parquet"]
    count = ["aggregate", "mechanism.json", "reports.parquet", "-o", "counts.json"]
    path = os.pathsep.join([str(package), str(ROOT / "src")])
    for command in (write, count, ["estimate", "mechanism.json", "counts.json"]):
        run = subprocess.run(
            [sys.executable, "-m", "sfumato.cli", *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
    assert "Sat" in run.stdout
