"""Counting files: on any number of threads, in any order, and after any interruption the same integers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.collecting.file_counting import aggregate_files
from sfumato.collecting.files import write_reports
from sfumato.errors import InvalidInput, UnknownSpec
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.randomness import InsecureSeeded

DOMAIN = sf.Domain.range(100)


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit of a few hundred reports, so that files of thousands have many."""
    monkeypatch.setattr("sfumato.collecting.file_counting._unit_rows", lambda _: 200)


MECHANISMS: list[Mechanism] = [
    RandomizedResponse(DOMAIN, 1),
    HadamardResponse(DOMAIN, 1),
    CyclicDesign(DOMAIN, 1),
    UnaryEncoding(DOMAIN, 1),
    SubsetSelection(DOMAIN, 1),
]


def drawn(mechanism: Mechanism, count: int, seed: int = 1) -> Any:
    values = np.random.default_rng(seed).integers(0, len(mechanism.domain), count)
    return sf.privatize(mechanism, values, InsecureSeeded(seed))


def in_groups(path: Path, mechanism: Mechanism, reports: Any, rows: int) -> None:
    """A report file whose row groups have so many rows."""
    write_reports(mechanism, reports, path)
    table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table, path, row_group_size=rows)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_files_of_all_kinds_are_counted_as_their_reports_are(
    tmp_path: Path, mechanism: Mechanism, threads: int
) -> None:
    reports = drawn(mechanism, 7000)
    in_groups(tmp_path / "a.parquet", mechanism, reports[:5000], 700)
    write_reports(mechanism, reports[5000:6000], tmp_path / "b.arrow")
    write_reports(mechanism, reports[6000:6500], tmp_path / "c.sfb")
    (tmp_path / "d.json").write_text(sf.aggregate(mechanism, reports[6500:]).to_json())
    write_reports(mechanism, reports[:0], tmp_path / "e.parquet")
    paths = sorted(tmp_path.iterdir())
    seen: list[sf.Progress] = []
    assert aggregate_files(mechanism, paths, threads=threads, progress=seen.append) == sf.aggregate(mechanism, reports)
    assert [at.done for at in seen] == sorted(at.done for at in seen)
    assert seen[-1] == sf.Progress(6500, None, "reports")  # counts that are merged in were counted elsewhere
    resumed = aggregate_files(mechanism, paths, resume=tmp_path / "state", threads=threads)
    assert resumed == sf.aggregate(mechanism, reports)
    again = aggregate_files(mechanism, paths, resume=tmp_path / "state", threads=threads, progress=seen.append)
    assert again == resumed


def test_one_file_and_several_are_counted_by_the_public_function(tmp_path: Path) -> None:
    mechanism = MECHANISMS[0]
    reports = drawn(mechanism, 300)
    write_reports(mechanism, reports[:100], tmp_path / "a.sfb")
    write_reports(mechanism, reports[100:], tmp_path / "b.sfb")
    first = sf.aggregate_files(mechanism, tmp_path / "a.sfb", resume=tmp_path / "state")
    assert first == sf.aggregate(mechanism, reports[:100])
    both: list[Path | str] = [tmp_path / "a.sfb", str(tmp_path / "b.sfb")]
    assert sf.aggregate_files(mechanism, both, resume=tmp_path / "state") == sf.aggregate(mechanism, reports)
    with pytest.raises(sf.errors.MissingFile, match=r"none\.sfb"):
        sf.aggregate_files(mechanism, tmp_path / "none.sfb")
    with pytest.raises(sf.errors.InvalidInput, match="the mechanism must be a Mechanism"):
        sf.aggregate_files(both, mechanism)  # type: ignore[arg-type]


def test_counts_that_do_not_fit_are_refused_with_the_name_of_their_file(tmp_path: Path) -> None:
    mechanism, other = MECHANISMS[0], MECHANISMS[1]
    (tmp_path / "other.json").write_text(sf.aggregate(other, drawn(other, 3)).to_json())
    (tmp_path / "broken.json").write_text("{")
    for name in ("other.json", "broken.json"):
        with pytest.raises(sf.errors.InvalidInput, match=f"{name}: an aggregate: "):
            sf.aggregate_files(mechanism, [tmp_path / name])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_compiled_counts_are_those_of_numpy(mechanism: Mechanism) -> None:
    """Enough reports for the kernels, and for threads; numpy counts them by definition."""
    reports = drawn(mechanism, 90_001 if mechanism.report_format.shape else 2**21 + 17)
    if mechanism.report_format.shape:
        expected = np.unpackbits(reports, axis=1, count=mechanism.bits, bitorder="little").sum(axis=0, dtype=np.int64)
    else:
        expected = np.bincount(reports, minlength=mechanism.outputs)
    assert sf.aggregate(mechanism, reports).counts.tolist() == expected.tolist()


@pytest.mark.parametrize("bits", [1, 7, 8, 63, 64, 65, 100, 128, 1000])
@pytest.mark.parametrize("rows", [1, 15, 16, 17, 1000, 2**16 + 5])
def test_column_sums_of_any_width(bits: int, rows: int) -> None:
    from sfumato.mechanisms.kernels.counting import add_bit_sums

    table = np.random.default_rng(bits).integers(0, 256, (rows, -(-bits // 8)), dtype=np.uint8)
    table[: rows // 2] = 255  # carries run through every plane
    sums = np.full(bits, 3, np.int64)
    add_bit_sums(table, sums)
    assert (sums - 3).tolist() == [int(np.count_nonzero(table[:, bit // 8] >> bit % 8 & 1)) for bit in range(bits)]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("size", [1, 256, 2**12, 2**12 + 1, 2**16])
def test_histograms_of_any_length(dtype: Any, size: int) -> None:
    from sfumato.mechanisms.kernels.counting import add_histogram

    generator = np.random.default_rng(size)
    bins = min(size, np.iinfo(dtype).max + 1)
    for length in (1, size - 1, size, 3 * size + 5):
        indices = generator.integers(0, bins, length).astype(dtype)
        indices[: length // 2] = bins - 1  # what is counted in bytes is carried over many times
        counts = np.full(size, 3, np.int64)
        add_histogram(indices, counts)
        assert (counts - 3).tolist() == np.bincount(indices.astype(np.intp), minlength=size).tolist()


@pytest.mark.parametrize(
    "shape",
    [(1, 1), (1, 2), (3, 4), (5, 8), (3, 16), (3, 32), (7, 64), (2, 2**12), (1, 2**13), (3, 2**14), (1, 2**15)],
)
def test_the_compiled_transform_is_exact_on_integers(shape: tuple[int, int]) -> None:
    from sfumato.mechanisms.kernels.walsh_hadamard import transform_rows
    from sfumato.mechanisms.systems.hadamard_rows import walsh_hadamard

    rows = np.random.default_rng(4).integers(-1000, 1000, shape)
    assert np.array_equal(transform_rows(rows.astype(np.float64)), walsh_hadamard(rows))
    assert np.array_equal(transform_rows(rows.astype(np.float64), 0.25), walsh_hadamard(rows) / 4)


def test_a_refusal_names_the_first_fault_whatever_the_threads_do(tmp_path: Path) -> None:
    mechanism = MECHANISMS[0]
    reports = drawn(mechanism, 3000)
    reports[1234] = reports[2900] = 100
    path = tmp_path / "r.parquet"
    kind = pyarrow.field("report", pyarrow.uint32(), nullable=False)
    schema = pyarrow.schema([kind], metadata={"sfumato.mechanism": mechanism.hash})
    table = pyarrow.table([pyarrow.array(reports)], schema=schema)
    pyarrow.parquet.write_table(table, path, row_group_size=100)
    for threads in (1, 2, 8):
        with pytest.raises(InvalidInput, match="the report in row 1235 must be in 0 … 99; got 100"):
            aggregate_files(mechanism, [path], threads=threads)


def test_a_checkpoint_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    mechanism, other = MECHANISMS[:2]
    path, state = tmp_path / "r.parquet", tmp_path / "state.json"
    in_groups(path, mechanism, drawn(mechanism, 1000), 100)
    with pytest.raises(InvalidInput, match="name each file once"):
        aggregate_files(mechanism, [path, str(path)], resume=state)
    aggregate_files(mechanism, [path], resume=state)
    with pytest.raises(InvalidInput, match=r"the mechanism hash must be .*The counts belong to another mechanism"):
        aggregate_files(other, [path], resume=state)
    in_groups(path, mechanism, drawn(mechanism, 1001), 100)
    with pytest.raises(InvalidInput, match="be unchanged since a part of it was counted"):
        aggregate_files(mechanism, [path], resume=state)
    document = json.loads(state.read_text())
    for wrong, match in (({"version": 2}, "version"), ({"files": [1]}, "files"), ({"counts": {}}, "key")):
        state.write_text(json.dumps(document | wrong))
        with pytest.raises((InvalidInput, UnknownSpec), match=match):
            aggregate_files(mechanism, [path], resume=state)
    state.write_text("{")
    with pytest.raises(InvalidInput, match="be JSON"):
        aggregate_files(mechanism, [path], resume=state)


def test_files_can_be_added_to_a_checkpoint_but_none_be_left_out(tmp_path: Path) -> None:
    mechanism = MECHANISMS[0]
    first, second, state = tmp_path / "a.sfb", tmp_path / "b.sfb", tmp_path / "state.json"
    reports = drawn(mechanism, 150)
    write_reports(mechanism, reports[:100], first)
    write_reports(mechanism, reports[100:], second)
    assert aggregate_files(mechanism, [first], resume=state).n == 100
    both = aggregate_files(mechanism, [second, first], resume=state)
    assert both == sf.aggregate(mechanism, reports)
    for paths in ([first], [second], []):
        with pytest.raises(
            InvalidInput,
            match=r"[ab]\.sfb: the file must be in the list of files, because the checkpoint .*json includes",
        ):
            aggregate_files(mechanism, paths, resume=state)
    assert aggregate_files(mechanism, [first, second], resume=state) == both


@pytest.mark.parametrize("name", ["r.parquet", "r.sfb"])
def test_a_file_that_changes_while_it_is_counted_is_refused(tmp_path: Path, name: str) -> None:
    """What was counted is nobody's count: it is neither given nor kept, and the next run counts the file as it is."""
    mechanism = MECHANISMS[0]
    path, state = tmp_path / name, tmp_path / "state.json"
    for resume in (None, state):
        write_reports(mechanism, drawn(mechanism, 100), path)

        def rewrite(_: sf.Progress) -> None:
            write_reports(mechanism, drawn(mechanism, 250), path)

        with pytest.raises(InvalidInput, match=f"{name}: the file must not change while it is counted"):
            aggregate_files(mechanism, [path], resume=resume, progress=rewrite)
        assert not state.exists()
        assert aggregate_files(mechanism, [path], resume=resume) == sf.aggregate(mechanism, drawn(mechanism, 250))


def test_a_file_that_changes_between_two_rounds_is_refused(tmp_path: Path) -> None:
    """The checkpoint keeps the state from before the first round, so that no later run goes on with the new file."""
    mechanism = MECHANISMS[0]
    path, state = tmp_path / "r.parquet", tmp_path / "state.json"
    in_groups(path, mechanism, drawn(mechanism, 1000), 100)

    def rewrite(progress: sf.Progress) -> None:
        if progress.done > 500:
            in_groups(path, mechanism, drawn(mechanism, 1001, seed=2), 100)

    with pytest.raises(InvalidInput, match="not change while it is counted"):
        aggregate_files(mechanism, [path], resume=state, progress=rewrite, threads=1)
    assert 0 < json.loads(state.read_text())["counts"]["n"] <= 500
    with pytest.raises(InvalidInput, match="be unchanged since a part of it was counted"):
        aggregate_files(mechanism, [path], resume=state)


def test_counts_from_a_named_pipe_are_taken_although_it_ages(tmp_path: Path) -> None:
    mechanism = MECHANISMS[0]
    counts = sf.aggregate(mechanism, drawn(mechanism, 100))
    pipe = tmp_path / "counts.json"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(pipe.write_text, counts.to_json())
        assert aggregate_files(mechanism, [pipe]) == counts
        written.result()


def test_threads_are_as_many_as_the_cores_that_the_process_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, threads: int) -> None:
            asked.append(threads)
            super().__init__(threads)

    mechanism = MECHANISMS[0]
    in_groups(tmp_path / "r.parquet", mechanism, drawn(mechanism, 5000), 100)
    monkeypatch.setattr("sfumato.collecting.file_counting.ThreadPoolExecutor", Pool)
    for cores in (1, 3):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: set(range(cores)), raising=False)
        aggregate_files(mechanism, [tmp_path / "r.parquet"])
    assert asked == [1, 3]


def test_what_a_checkpoint_has_is_not_counted_twice(tmp_path: Path) -> None:
    """From every checkpoint that a first run can leave, the second ends at the same counts."""
    mechanism = MECHANISMS[1]
    reports = drawn(mechanism, 1000)
    path, state = tmp_path / "r.parquet", tmp_path / "state.json"
    in_groups(path, mechanism, reports, 100)
    whole = aggregate_files(mechanism, [path], resume=state)
    document = json.loads(state.read_text())
    for groups in range(10):
        part = sf.aggregate(mechanism, reports[: 100 * groups])
        files = {name: file | {"row_groups": groups} for name, file in document["files"].items()}
        state.write_text(json.dumps(document | {"counts": json.loads(part.to_json()), "files": files}))
        assert aggregate_files(mechanism, [path], resume=state) == whole


@pytest.mark.slow
def test_a_killed_command_goes_on(tmp_path: Path) -> None:
    """The last file is a pipe that nobody fills, so the command is still at work when its checkpoint is there."""
    mechanism = UnaryEncoding(sf.Domain.range(1000), 1)
    reports = drawn(mechanism, 85_000)
    (tmp_path / "mechanism.json").write_text(mechanism.to_json())
    for number in range(2):
        in_groups(tmp_path / f"{number}.parquet", mechanism, reports[number * 40_000 :][:40_000], 500)
    os.mkfifo(tmp_path / "2.sfb")
    state = tmp_path / "state.json"
    command = [sys.executable, "-m", "sfumato.cli", "aggregate", "mechanism.json", "0.parquet", "1.parquet", "2.sfb"]
    command += ["-o", "counts.json", "--resume", "state.json"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not state.exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        process.communicate()
    assert not (tmp_path / "counts.json").exists()
    left = json.loads(state.read_text())["counts"]["n"]
    assert 0 < left < len(reports)
    (tmp_path / "2.sfb").unlink()
    write_reports(mechanism, reports[80_000:], tmp_path / "2.sfb")
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert sf.Aggregate.from_json((tmp_path / "counts.json").read_bytes()) == sf.aggregate(mechanism, reports)
