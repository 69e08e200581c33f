"""Spark gives the integers of one machine, and one report a person: on a real cluster of two workers."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato import spark
from sfumato.cli import main
from sfumato.collecting.files import UNPROTECTED_KEY, read_reports, write_reports
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Mechanism
from sfumato.spark import counting, parquet_scan, privatizing, remote_files
from sfumato.spark.commit import TableCommit
from sfumato.spark.remote_files import find_files
from sfumato.spark.splits import Piece, split_files
from support import ROOT
from support.components import absent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.component,
    pytest.mark.usefixtures("java"),
    # Said by pyspark whenever Arrow is near; no value or report here ever becomes a pandas object.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
pytest.importorskip("pyspark", reason="the optional dependency spark is not installed")


@pytest.fixture(scope="module")
def java() -> None:
    if shutil.which("java") is None:
        absent("Spark needs Java 17 or later, and there is no java here")


MASTER = "local-cluster[2,1,1024]"
ANSWERS = ["none", "flu", "hiv", "cancer"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkSession]:
    from pyspark import cloudpickle

    by_value: Any = cloudpickle.register_pickle_by_value
    by_value(sys.modules[__name__])  # the executors cannot import the tests
    with spark.session(MASTER) as session:
        session.conf.set("spark.sql.shuffle.partitions", "2")
        yield session


def response() -> Mechanism:
    return sf.mechanisms.RandomizedResponse(sf.Domain(ANSWERS), epsilon=1)


def bitmaps() -> Mechanism:
    """Reports of 1,024 independent bits: two that are equal were not drawn apart."""
    return sf.mechanisms.UnaryEncoding(sf.Domain.range(1024), epsilon=1)


def values_file(path: Path, values: list[Any], row_group_size: int = 2_000) -> str:
    pq.write_table(pa.table({"person": range(len(values)), "answer": values}), path, row_group_size=row_group_size)
    return str(path)


def counted_here(mechanism: Mechanism, files: Iterable[Path]) -> sf.Aggregate:
    counts = sf.Aggregate.empty(mechanism)
    for file in files:
        counts = counts.merge(sf.aggregate(mechanism, read_reports(mechanism, file)))
    return counts


def counted_elsewhere(spec: str, file: str) -> bytes:
    return counted_here(sf.mechanism_from_spec(spec), [Path(file)]).to_bytes()


def rows_of(mechanism: Mechanism, files: Iterable[Path]) -> list[bytes]:
    return [row.tobytes() for file in files for piece in read_reports(mechanism, file) for row in piece]


def first_of_all(mark: Path) -> bool:
    """Whether no other task has come here: whatever dies, dies once."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def kill_executor() -> None:
    """Kills the executor that runs this."""
    daemon = os.getppid()  # the worker was forked by a daemon, which the executor started
    executor = int(re.findall(r"PPid:\t(\d+)", Path(f"/proc/{daemon}/status").read_text())[0])
    os.kill(executor, signal.SIGKILL)
    time.sleep(60)  # the end comes from outside


def dying_after_one(rows: Iterable[Any], mark: Path) -> Iterator[Any]:
    """Passes everything on; the first of all tasks that has passed on one loses its executor."""
    for row in rows:
        yield row
        if first_of_all(mark):
            kill_executor()


def with_a_death(frame: DataFrame, mark: Path) -> DataFrame:
    """The same rows; whoever computes them loses an executor on the way."""
    dying = frame.mapInArrow(lambda batches: dying_after_one(batches, mark), frame.schema)
    for field in frame.schema:
        dying = dying.withMetadata(field.name, field.metadata)
    return dying


# -- the same integers -------------------------------------------------------------------------------------


def four_files(mechanism: Mechanism, folder: Path) -> sf.Aggregate:
    """4,000 reports in four files, and their counts by one process."""
    values = np.random.default_rng(1).integers(0, len(mechanism.domain), 4_000)
    reports = sf.privatize(mechanism, mechanism.domain.decode(values), sf.InsecureSeeded(1))
    folder.mkdir()
    for number, part in enumerate(np.split(reports, 4)):
        write_reports(mechanism, part, folder / f"{number}.parquet")
    return sf.aggregate(mechanism, reports)


def test_counts_are_those_of_four_processes_merged(cluster: SparkSession, tmp_path: Path) -> None:
    mechanism = bitmaps()
    one = four_files(mechanism, tmp_path / "reports")
    files = sorted(map(str, (tmp_path / "reports").iterdir()))
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        four = map(sf.Aggregate.from_bytes, pool.map(counted_elsewhere, [mechanism.to_json()] * 4, files))
        assert functools.reduce(sf.Aggregate.merge, four) == one
    assert spark.aggregate_files(mechanism, cluster, *files) == one


def test_row_groups_of_one_file_are_shared_out(cluster: SparkSession, tmp_path: Path) -> None:
    mechanism = response()
    reports = np.arange(1_000) % 4
    table = pa.table({"report": pa.array(reports, pa.uint32())}).cast(
        pa.schema([pa.field("report", pa.uint32(), nullable=False)], metadata={"sfumato.mechanism": mechanism.hash})
    )
    pq.write_table(table, tmp_path / "many.parquet", row_group_size=100)
    write_reports(mechanism, reports, tmp_path / "one.sfb")
    splits = split_files([str(tmp_path / "many.parquet"), str(tmp_path / "one.sfb")], (".parquet", ".sfb"), 3)
    assert len(splits) == 3
    groups = [group for split in splits for _, groups in split if groups is not None for group in groups]
    assert groups == list(range(10))
    assert [source.suffix for split in splits for source, groups in split if groups is None] == [".sfb"]
    counts = spark.aggregate_files(mechanism, cluster, str(tmp_path))
    assert counts == sf.aggregate(mechanism, np.concatenate([reports, reports]))
    assert split_files([], (), 2) == []


def test_a_table_is_read_around_spark_only_where_it_is_its_files(cluster: SparkSession, tmp_path: Path) -> None:
    mechanism = response()
    one = four_files(mechanism, tmp_path / "reports")
    files = sorted(map(str, (tmp_path / "reports").iterdir()))
    table = spark.read_table(mechanism, cluster, *files)
    assert parquet_scan.report_files(mechanism, table.select("report")) == files
    for other in (
        table.union(table),
        table.limit(3),
        table.withColumn("report", table["report"].bitwiseXOR(1)),
        few := table.where("report < 2"),
    ):
        assert parquet_scan.report_files(mechanism, other.select("report")) is None
    assert spark.aggregate(mechanism, few).counts.tolist() == [*one.counts[:2], 0, 0]
    assert spark.aggregate(mechanism, table.limit(0)) == sf.Aggregate.empty(mechanism)
    # Files that do not name the mechanism are Spark's to read, whatever the table says.
    assert parquet_scan.report_files(sf.mechanisms.RandomizedResponse(sf.Domain(ANSWERS), epsilon=2), table) is None
    values = cluster.read.parquet(values_file(tmp_path / "values.parquet", ANSWERS))
    assert parquet_scan.value_files(values.select("answer")) == [str(tmp_path / "values.parquet")]
    assert parquet_scan.value_files(values.selectExpr("answer", "person as age")) is None
    assert parquet_scan.value_files(values.selectExpr("cast(person as int) as person")) is None
    assert parquet_scan.value_files(values.distinct()) is None


def test_hadoops_paths_need_not_be_files_here(
    cluster: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = response()
    java: Any = cluster.sparkContext._jsc
    java.hadoopConfiguration().set("fs.viewfs.mounttable.tests.link./mounted", tmp_path.as_uri())
    values = values_file(tmp_path / "values.parquet", ANSWERS * 50)
    mounted = "viewfs://tests/mounted"
    assert find_files(cluster, [f"{mounted}/values.parquet"]).local == []  # only Hadoop's libraries can open it
    assert find_files(cluster, [values]).local == find_files(cluster, [f"file://{values}"]).local == [values]
    table = spark.privatize_files(mechanism, cluster, [f"{mounted}/values.parquet"], f"{mounted}/a table", "answer")
    here = counted_here(mechanism, (tmp_path / "a table").glob("*.parquet"))
    assert here.n == 200
    assert spark.aggregate(mechanism, table) == here
    assert spark.aggregate_files(mechanism, cluster, f"{mounted}/a table") == here
    assert spark.aggregate_files(mechanism, cluster, str(tmp_path / "a table")) == here
    # A file too large to be handed over goes the way of tables.
    monkeypatch.setattr(remote_files, "_MAX_REMOTE_BYTES", 1)
    assert spark.aggregate_files(mechanism, cluster, f"{mounted}/a table") == here
    with pytest.raises(InvalidInput, match="the paths must list each file once"):
        spark.aggregate_files(mechanism, cluster, f"{mounted}/a table", f"{mounted}/a table/*.parquet")


def test_reports_of_a_cyclic_design_are_drawn_and_counted(cluster: SparkSession, tmp_path: Path) -> None:
    mechanism = sf.mechanisms.CyclicDesign(sf.Domain(ANSWERS), epsilon=1)
    values = values_file(tmp_path / "values.parquet", ANSWERS * 50)
    table = spark.privatize_files(mechanism, cluster, [values], str(tmp_path / "reports"), "answer")
    here = counted_here(mechanism, (tmp_path / "reports").glob("*.parquet"))
    assert here.n == 200
    assert spark.aggregate(mechanism, table) == spark.aggregate_files(mechanism, cluster, str(tmp_path / "reports"))
    assert spark.aggregate(mechanism, table) == here


# -- one report a person -----------------------------------------------------------------------------------


def test_a_product_is_read_from_the_columns_of_its_factors(cluster: SparkSession, tmp_path: Path) -> None:
    domain = sf.Domain.product(answer=ANSWERS, person=range(5))
    mechanism = sf.mechanisms.RandomizedResponse(domain, epsilon=50)  # a report is the value, but for a chance of 1e-20
    values = values_file(tmp_path / "values.parquet", [*ANSWERS, "none"])
    in_clear = sf.aggregate(mechanism, domain.encode({"answer": [*ANSWERS, "none"], "person": list(range(5))}))
    table = spark.privatize(mechanism, cluster.read.parquet(values), str(tmp_path / "a"))
    assert spark.aggregate(mechanism, table) == in_clear
    table = spark.privatize_files(mechanism, cluster, [values], str(tmp_path / "b"), ["person", "answer"])
    assert spark.aggregate(mechanism, table) == in_clear


def test_numbers_have_the_bins_of_the_published_vectors(cluster: SparkSession, tmp_path: Path) -> None:
    vector = json.loads((ROOT / "vectors/documents/numbers.json").read_text(encoding="utf-8"))[3]
    mechanism = sf.mechanism_from_spec(json.loads(vector["mechanism"]))  # at an infinite epsilon, reports are indices
    cases = [(None if text in (None, "NaN") else float(text), index) for text, index in vector["cases"] if index >= 0]
    counts = np.bincount([index for _, index in cases], minlength=len(mechanism.domain)).tolist()
    frame = cluster.read.parquet(values_file(tmp_path / "values.parquet", [value for value, _ in cases]))
    rows = frame.where("person >= 0")  # Spark itself reads the rows of a filtered table
    table = spark.privatize(mechanism, rows, str(tmp_path / "reports"), "answer")
    assert spark.aggregate(mechanism, table).counts.tolist() == counts


def test_a_file_that_is_not_taken_never_becomes_part_of_the_table(tmp_path: Path) -> None:
    commit = TableCommit(tmp_path.as_uri(), "table", ".waiting")
    attempts = tmp_path / ".waiting" / "attempts"
    attempts.mkdir(parents=True)
    for name in ("part-0-1", "part-0-2", "part-1-3"):
        (attempts / name).write_text(name)
    commit.publish(["part-0-2", "part-1-3"])
    assert sorted(path.name for path in (tmp_path / "table").iterdir()) == ["part-0-2", "part-1-3"]
    with pytest.raises(InvalidInput, match="the path must not exist yet"):
        commit.publish([])


# -- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["measles", None])
def test_a_value_outside_the_domain_is_refused_by_name_and_leaves_no_table(
    cluster: SparkSession, tmp_path: Path, wrong: str | None
) -> None:
    path = values_file(tmp_path / "values.parquet", [*ANSWERS * 10, wrong, *ANSWERS])
    with pytest.raises(InvalidInput, match=f"row 41 must be one of .*; got {wrong!r}"):
        spark.privatize(response(), cluster.read.parquet(path), str(tmp_path / "reports"), "answer")
    with pytest.raises(InvalidInput, match=f"{path}.* row 41 must be one of .*; got {wrong!r}"):
        spark.privatize_files(response(), cluster, [path], str(tmp_path / "reports"), "answer")
    assert [path.name for path in tmp_path.iterdir()] == ["values.parquet"]


def test_reports_of_another_mechanism_are_refused(cluster: SparkSession, tmp_path: Path) -> None:
    mechanism, other = response(), sf.mechanisms.RandomizedResponse(sf.Domain(ANSWERS), epsilon=2)
    file = tmp_path / "reports.parquet"
    write_reports(mechanism, np.array([0, 1, 2]), file)
    table = spark.read_table(mechanism, cluster, str(file))
    must = f"must be {other.hash[:12]}…; got {mechanism.hash[:12]}…. The reports were produced by another mechanism"
    for count in (
        lambda: spark.aggregate_files(other, cluster, str(file)),
        lambda: spark.read_table(other, cluster, str(file)),
        lambda: spark.aggregate(other, table),
    ):
        with pytest.raises(InvalidInput, match=must):
            count()
    with pytest.raises(InvalidInput, match="got none"):
        spark.aggregate(mechanism, cluster.sql("select 1L as report"))
    bare = values_file(tmp_path / "bare.parquet", ANSWERS)
    with pytest.raises(InvalidInput, match="got none"):
        spark.read_table(mechanism, cluster, bare)


def test_reports_that_are_none_are_refused(cluster: SparkSession) -> None:
    def table(mechanism: Mechanism, report: str) -> DataFrame:
        frame = cluster.sql(f"select {report} as report")
        return frame.withMetadata("report", {"sfumato.mechanism": mechanism.hash})

    with pytest.raises(InvalidInput, match="be in 0 … 3; got 4"):
        spark.aggregate(response(), table(response(), "4L"))
    with pytest.raises(InvalidInput, match="not be null"):
        spark.aggregate(response(), table(response(), "cast(null as bigint)"))
    with pytest.raises(InvalidInput, match="be 128 bytes long"):
        spark.aggregate(bitmaps(), table(bitmaps(), "cast(repeat('a', 127) as binary)"))


def test_what_could_report_somebody_twice_is_refused_before_anything_is_drawn(
    cluster: SparkSession, tmp_path: Path
) -> None:
    values = values_file(tmp_path / "values.parquet", ANSWERS)
    frame = cluster.read.parquet(values)
    (tmp_path / "taken").mkdir()
    with pytest.raises(InvalidInput, match="the path must not exist yet"):
        spark.privatize(response(), frame, str(tmp_path / "taken"), "answer")
    with pytest.raises(InvalidInput, match="be in an existing folder"):
        spark.privatize(response(), frame, str(tmp_path / "nowhere" / "reports"), "answer")
    with pytest.raises(InvalidInput, match="the paths must be different"):
        spark.aggregate_files(response(), cluster, "reports", "reports")
    with pytest.raises(InvalidInput, match="the column must be one of"):
        spark.privatize(response(), frame, str(tmp_path / "reports"))
    with pytest.raises(InvalidInput, match="the column must be one of 'person', 'answer'; got 'age'"):
        spark.privatize_files(response(), cluster, [values], str(tmp_path / "reports"), "age")
    settings = cluster.sparkContext._conf
    settings.set("spark.speculation", "true")
    try:
        with pytest.raises(InvalidInput, match=r"spark\.speculation must be false; got 'true'"):
            spark.privatize(response(), frame, str(tmp_path / "reports"), "answer")
    finally:
        settings.set("spark.speculation", "false")
    with pytest.raises(InvalidInput, match="master must be that of the active session"), spark.session("local[1]"):
        pass


# -- the command line --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("cluster")
def test_the_commands_run_on_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mechanism.json").write_text(response().to_json())
    values = values_file(tmp_path / "values.parquet", ANSWERS * 500)
    engine = ["--engine", "spark", "--master", MASTER]
    folder = (tmp_path / "reports").as_uri()
    column = ["--column", "answer"]
    assert main(["privatize", "mechanism.json", values, "-o", folder, *column, *engine]) == 0
    assert "2,000 reports of 2 bits" in capsys.readouterr().out
    assert main(["aggregate", "mechanism.json", folder, "-o", "spark.json", *engine]) == 0
    files = sorted(map(str, Path("reports").glob("*.parquet")))
    assert main(["aggregate", "mechanism.json", *files, "-o", "here.json"]) == 0
    assert json.loads(Path("spark.json").read_text())["n"] == 2_000
    assert Path("spark.json").read_bytes() == Path("here.json").read_bytes()
    capsys.readouterr()
    elsewhere = ["--engine", "spark", "--master", "spark://nowhere:7077"]  # refused before anyone looks for it
    assert main(["aggregate", "mechanism.json", folder, "-o", "spark.json", "--resume", "state", *elsewhere]) == 2
    assert "--resume requires --engine process" in capsys.readouterr().err
    assert main(["aggregate", "mechanism.json", "-", "-o", "spark.json", *engine]) == 2
    assert main(["aggregate", "mechanism.json", *files, "-o", "spark.json", "--master", MASTER]) == 2
    assert main(["aggregate", "mechanism.json", "nowhere", "-o", "spark.json", *engine]) == 2
    assert main(["privatize", "mechanism.json", "nowhere", "-o", folder, *column, *engine]) == 2
    assert capsys.readouterr().err.count("sfumato: ") == 4


# -- groups and weights ------------------------------------------------------------------------------------


def people_file(path: Path, n: int = 3_000, **columns: Any) -> str:
    generator = np.random.default_rng(3)
    people = {
        "answer": generator.choice(ANSWERS, n).tolist(),
        "region": generator.choice(["north", "south", "west"], n).tolist(),
        "weight": generator.choice([1, 3], n).tolist(),
        "person": range(n),
    }
    pq.write_table(pa.table({**people, **columns}), path, row_group_size=500)
    return str(path)


def test_groups_and_weights_travel_with_the_reports_and_give_the_counts_of_one_machine(
    cluster: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(ANSWERS), epsilon=50)  # a report is the value
    values = people_file(tmp_path / "people.parquet")
    people = pq.read_table(values)
    expected = sf.aggregate_groups(
        mechanism, mechanism.domain.encode(people["answer"]), people.select(["region"]), weights=people["weight"]
    )
    frame = cluster.read.parquet(values)
    public: dict[str, Any] = {"by": "region", "weight": "weight"}
    tables = {
        "files": spark.privatize_files(mechanism, cluster, [values], str(tmp_path / "files"), "answer", **public),
        "scan": spark.privatize(mechanism, frame, str(tmp_path / "scan"), "answer", **public),
        "rows": spark.privatize(mechanism, frame.where("person >= 0"), str(tmp_path / "rows"), "answer", **public),
    }
    for name, table in tables.items():
        assert sorted(table.columns) == ["region", "report", "weight"]  # no other column is copied
        files = sorted((tmp_path / name).glob("*.parquet"))
        assert all(json.loads(pq.read_schema(file).metadata[UNPROTECTED_KEY]) == ["region", "weight"] for file in files)
        assert sf.collecting.aggregate_group_files(mechanism, files, "region", weight="weight") == expected
        assert spark.aggregate_groups(mechanism, table, "region", weight="weight") == expected
        assert spark.aggregate_groups(mechanism, table.where("report >= 0"), **public) == expected
        assert spark.aggregate_group_files(mechanism, cluster, str(tmp_path / name), **public) == expected
        assert spark.aggregate(mechanism, table).n == 3_000
    # Files that only Hadoop can open are sent as a whole, or read by Spark if they are large.
    java: Any = cluster.sparkContext._jsc
    java.hadoopConfiguration().set("fs.viewfs.mounttable.groups.link./mounted", tmp_path.as_uri())
    mounted = "viewfs://groups/mounted"
    table = spark.privatize_files(mechanism, cluster, [f"{mounted}/people.parquet"], f"{mounted}/a", "answer", **public)
    assert spark.aggregate_groups(mechanism, table, **public) == expected
    assert spark.aggregate_group_files(mechanism, cluster, f"{mounted}/rows", **public) == expected
    monkeypatch.setattr(remote_files, "_MAX_REMOTE_BYTES", 1)
    assert spark.aggregate_group_files(mechanism, cluster, f"{mounted}/rows", **public) == expected


def test_public_columns_are_checked_on_spark(cluster: SparkSession, tmp_path: Path) -> None:
    mechanism, path = response(), str(tmp_path / "reports")
    values = people_file(tmp_path / "people.parquet")
    for by, column in (("answer", "answer"), (["region", "region"], "answer")):
        with pytest.raises(InvalidInput, match="by and weight must be different from each other"):
            spark.privatize_files(mechanism, cluster, [values], path, column, by=by)
    with pytest.raises(
        InvalidInput, match="the public column must be one of 'answer', 'region', 'weight', 'person'; got 'age'"
    ):
        spark.privatize(mechanism, cluster.read.parquet(values), path, "answer", by="age")
    regions: list[Any] = ["north"] * 700
    cases: dict[str, dict[str, Any]] = {
        "row 602, column 'region' must not be missing": {"region": [*regions[:601], None, *regions[602:]]},
        "row 602, column 'weight' must be an integer": {"weight": [*[1.0] * 601, 1.5, *[1.0] * 98]},
        "row 602, column 'weight' must not be missing": {"weight": [*[1.0] * 601, float("nan"), *[1.0] * 98]},
    }
    for message, columns in cases.items():
        wrong = people_file(tmp_path / "wrong.parquet", 700, **columns)
        with pytest.raises(InvalidInput, match=message):
            spark.privatize_files(mechanism, cluster, [wrong], path, "answer", by="region", weight="weight")
        assert not Path(path).exists()
    table = spark.privatize_files(mechanism, cluster, [values], path, "answer", by=["region", "person"])
    with pytest.raises(InvalidInput, match="the column must be one of"):
        spark.aggregate_groups(mechanism, table, "weight")
    with pytest.raises(InvalidInput, match="weights may have at most 1,000 different values"):
        spark.aggregate_groups(mechanism, table, weight="person")
    with pytest.raises(InvalidInput, match="name at least one column"):
        spark.aggregate_groups(mechanism, table)


@pytest.mark.usefixtures("cluster")
def test_the_commands_count_groups_on_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mechanism.json").write_text(response().to_json())
    values = people_file(tmp_path / "people.parquet")
    engine = ["--engine", "spark", "--master", MASTER]
    public = ["--by", "region", "--weight", "weight"]
    folder = (tmp_path / "reports").as_uri()
    assert main(["privatize", "mechanism.json", values, "-o", folder, "--column", "answer", *public, *engine]) == 0
    assert "region and weight travel with each report and are not protected" in capsys.readouterr().out
    assert main(["aggregate", "mechanism.json", folder, "-o", "spark.json", *public, *engine]) == 0
    assert "3,000 reports in 6 groups counted" in capsys.readouterr().out
    files = sorted(map(str, Path("reports").glob("*.parquet")))
    assert main(["aggregate", "mechanism.json", *files, "-o", "here.json", *public]) == 0
    assert Path("spark.json").read_bytes() == Path("here.json").read_bytes()


# -- a worker that dies ------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [pytest.param("table", marks=pytest.mark.soak), "files"])
def test_counts_survive_the_death_of_a_worker(
    cluster: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    mechanism, mark = bitmaps(), tmp_path / "killed"
    one = four_files(mechanism, tmp_path / "reports")
    if way == "table":
        table = spark.read_table(mechanism, cluster, str(tmp_path / "reports"))
        assert spark.aggregate(mechanism, with_a_death(table, mark)) == one
    else:
        monkeypatch.setattr(counting, "_count_split", functools.partial(count_share_dying, mark))
        assert spark.aggregate_files(mechanism, cluster, str(tmp_path / "reports")) == one
    assert mark.exists()


def count_share_dying(mark: Path, spec: str, pieces: Sequence[Piece]) -> Any:
    """As the task that counts files; the first of all loses its executor when it has counted some."""
    assert isinstance(counting._count_split(spec, pieces[:1]), sf.Aggregate)
    if first_of_all(mark):
        kill_executor()
    return counting._count_split(spec, pieces)


@pytest.mark.parametrize("way", ["DataFrame", pytest.param("files", marks=pytest.mark.soak)])
def test_a_worker_that_dies_while_it_privatizes_reports_nobody_and_what_it_drew_is_not_drawn_again(
    cluster: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    mechanism, mark = bitmaps(), tmp_path / "killed"
    values = values_file(tmp_path / "values.parquet", [7] * 1_200, row_group_size=100)
    # Its file is in place among the attempts, and then the executor is lost before Spark hears of it.
    monkeypatch.setattr(privatizing, "_write_partition", functools.partial(write_partition_dying, mark))
    if way == "files":
        table = spark.privatize_files(mechanism, cluster, [values], str(tmp_path / "reports"), "answer")
    else:
        frame = cluster.read.parquet(values).repartition(4)
        table = spark.privatize(mechanism, frame, str(tmp_path / "reports"), "answer")
    left_behind = mark.read_bytes()
    files = sorted((tmp_path / "reports").iterdir())
    assert len({file.name.rpartition("-")[0] for file in files}) == len(files)  # one file a partition
    reports = rows_of(mechanism, files)
    assert len(set(reports)) == len(reports) == table.count() == 1_200  # no fork drew what another one had drawn
    width = mechanism.report_format.shape[0]
    lost = {left_behind[start : start + width] for start in range(0, len(left_behind), width)}
    assert lost  # reports that were drawn before the death; none is in the table
    assert lost.isdisjoint(reports)
    # Every action reads what was written once.
    assert sorted(bytes(row["report"]) for row in table.collect()) == sorted(reports)
    assert spark.aggregate(mechanism, table) == counted_here(mechanism, files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed", "reports", "values.parquet"]


def write_partition_dying(mark: Path, spec: str, folder: str, *arguments: Any) -> Iterator[Any]:
    """As the task that privatizes; the first of all loses its executor when its file is written, and keeps a copy."""
    for partition, name, error in privatizing._write_partition(spec, folder, *arguments):
        if first_of_all(mark):
            file = Path(url2pathname(urlsplit(folder).path)) / str(name)
            mark.write_bytes(b"".join(rows_of(sf.mechanism_from_spec(spec), [file])))
            kill_executor()
        yield partition, name, error


# -- a standalone cluster ----------------------------------------------------------------------------------


@contextlib.contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """A master and two workers of one core each, as separate processes; the master's URL."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_NO_DAEMONIZE": "1"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        master = f"127.0.0.1:{free.getsockname()[1]}"
    host, port = master.split(":")
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, kind: str, *options: str) -> None:
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", "--host", host, *options]
        with (folder / f"{name}.log").open("wb") as log:
            processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))

    try:
        start("master", "master.Master", "--port", port, "--webui-port", "0")
        for name in ("one", "two"):
            limits = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / name), "--webui-port", "0"]
            start(name, "worker.Worker", *limits, f"spark://{master}")
        for _ in range(600):
            if (folder / "master.log").read_text().count("Registering worker") == 2:
                break
            time.sleep(0.1)
        yield f"spark://{master}"
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


@pytest.mark.soak  # starts a master and two workers
def test_the_commands_run_on_a_standalone_cluster(tmp_path: Path) -> None:
    mechanism = response()
    (tmp_path / "mechanism.json").write_text(mechanism.to_json())
    values_file(tmp_path / "values.parquet", ANSWERS * 500)

    def sfumato(*arguments: str) -> None:
        subprocess.run([sys.executable, "-m", "sfumato.cli", *arguments], cwd=tmp_path, check=True)

    with standalone(tmp_path) as master:
        engine = ["--engine", "spark", "--master", master]
        values, reports = ((tmp_path / name).as_uri() for name in ("values.parquet", "reports"))
        sfumato("privatize", "mechanism.json", values, "-o", reports, "--column", "answer", *engine)
        sfumato("aggregate", "mechanism.json", reports, "-o", "counts.json", *engine)
    executors = [log for name in ("one", "two") for log in (tmp_path / name).rglob("stderr")]
    assert len({log.parts[len(tmp_path.parts)] for log in executors}) == 2  # both workers had executors
    here = counted_here(mechanism, (tmp_path / "reports").glob("*.parquet"))
    assert here.n == 2_000
    assert sf.Aggregate.from_json((tmp_path / "counts.json").read_text()) == here
