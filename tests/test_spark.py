"""Spark gives the integers of one machine, and one report a person: on a real cluster of two workers."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato import spark
from sfumato.cli import main
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.reports import read_reports, write_reports
from sfumato.spark import whole_files
from sfumato.spark.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17 or later, and there is no java here"),
    # Said by pyspark whenever Arrow is near; no value or report here ever becomes a pandas object.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
pytest.importorskip("pyspark", reason="the optional dependency spark is not installed")

MASTER = "local-cluster[2,1,1024]"
ANSWERS = ["none", "flu", "hiv", "cancer"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkSession]:
    from pyspark import cloudpickle

    by_value: Any = cloudpickle.register_pickle_by_value
    by_value(sys.modules[__name__])  # the executors cannot import the tests
    with spark.session(MASTER) as running:
        running.conf.set("spark.sql.shuffle.partitions", "2")
        yield running


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
        counts = counts.merge(sf.aggregate(mechanism, read_reports(file, mechanism)))
    return counts


def counted_elsewhere(spec: str, file: str) -> bytes:
    return counted_here(sf.mechanism_from_spec(spec), [Path(file)]).to_bytes()


def rows_of(mechanism: Mechanism, files: Iterable[Path]) -> list[bytes]:
    return [row.tobytes() for file in files for piece in read_reports(file, mechanism) for row in piece]


def kill_executor_once(batches: Iterable[Any], mark: Path) -> Iterator[Any]:
    """Passes on a batch, then kills the executor that runs this: the first of all tasks that comes here."""
    for batch in batches:
        yield batch
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            continue
        daemon = os.getppid()  # the worker was forked by a daemon, which the executor started
        executor = int(re.findall(r"PPid:\t(\d+)", Path(f"/proc/{daemon}/status").read_text())[0])
        os.kill(executor, signal.SIGKILL)
        time.sleep(60)  # the end comes from outside


def fail_once(batches: Iterable[Any], mark: Path) -> Iterator[Any]:
    """Passes on every batch, then fails: the first of all tasks that comes here."""
    yield from batches
    with contextlib.suppress(FileExistsError):
        mark.touch(exist_ok=False)
        raise RuntimeError("this attempt fails, and Spark tries again")


def with_a_death(frame: DataFrame, mark: Path) -> DataFrame:
    """The same rows; whoever computes them loses an executor on the way."""
    dying = frame.mapInArrow(lambda batches: kill_executor_once(batches, mark), frame.schema)
    for field in frame.schema:
        dying = dying.withMetadata(field.name, field.metadata)
    return dying


# -- the same integers -------------------------------------------------------------------------------------


def test_counts_are_those_of_one_process_and_of_four_and_survive_the_death_of_a_worker(
    cluster: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = bitmaps()
    values = np.random.default_rng(1).integers(0, len(mechanism.domain), 12_000)
    reports = sf.privatize(mechanism, mechanism.domain.decode(values), sf.InsecureSeeded(1))
    files = [tmp_path / f"{i}.parquet" for i in range(4)]
    for i, file in enumerate(files):
        write_reports(file, mechanism, reports[3_000 * i : 3_000 * (i + 1)])
    one = sf.aggregate(mechanism, reports)
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        four = map(sf.Aggregate.from_bytes, pool.map(counted_elsewhere, [mechanism.to_json()] * 4, map(str, files)))
        assert functools.reduce(sf.Aggregate.merge, four) == one

    assert spark.aggregate_files(mechanism, cluster, str(tmp_path)) == one
    mark = tmp_path.with_name(f"{tmp_path.name}-killed")
    table = spark.read_table(mechanism, cluster, *map(str, files))
    assert spark.aggregate(mechanism, with_a_death(table, mark)) == one
    assert mark.exists()
    # A file too large for one executor goes the way of tables.
    monkeypatch.setattr(whole_files, "_LARGEST_WHOLE", max(file.stat().st_size for file in files) - 1)
    assert spark.aggregate_files(mechanism, cluster, str(tmp_path)) == one


def test_hadoops_paths_need_not_be_files_here(cluster: SparkSession, tmp_path: Path) -> None:
    mechanism = response()
    java: Any = cluster.sparkContext._jsc
    java.hadoopConfiguration().set("fs.viewfs.mounttable.tests.link./mounted", tmp_path.as_uri())
    values = values_file(tmp_path / "values.parquet", ANSWERS * 50)
    table = spark.privatize(mechanism, cluster.read.parquet(values), "viewfs://tests/mounted/a table", "answer")
    here = counted_here(mechanism, (tmp_path / "a table").glob("*.parquet"))
    assert here.n == 200
    assert spark.aggregate(mechanism, table) == here
    assert spark.aggregate_files(mechanism, cluster, "viewfs://tests/mounted/a table") == here


# -- one report a person -----------------------------------------------------------------------------------


def test_a_task_that_is_tried_again_reports_nobody_twice_and_draws_anew(cluster: SparkSession, tmp_path: Path) -> None:
    mechanism = bitmaps()
    mark = tmp_path / "failed"
    frame = cluster.read.parquet(values_file(tmp_path / "values.parquet", [7] * 3_000)).repartition(6)
    failing = frame.mapInArrow(lambda batches: fail_once(batches, mark), frame.schema)
    table = spark.privatize(mechanism, failing, str(tmp_path / "reports"), "answer")
    assert mark.exists()
    assert table.count() == 3_000
    files = sorted((tmp_path / "reports").iterdir())
    assert len({file.name.rpartition("-")[0] for file in files}) == len(files)  # one file a partition
    reports = rows_of(mechanism, files)
    assert len(set(reports)) == len(reports) == 3_000  # no fork and no attempt drew what another one had drawn
    # Every action reads what was written once.
    assert sorted(bytes(row["report"]) for row in table.collect()) == sorted(reports)
    assert spark.aggregate(mechanism, table) == spark.aggregate(mechanism, table) == counted_here(mechanism, files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["failed", "reports", "values.parquet"]


def test_files_of_values_go_whole_to_executors_unless_they_are_large(
    cluster: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = bitmaps()
    small = values_file(tmp_path / "small.parquet", [7] * 100)
    large = values_file(tmp_path / "large.parquet", [7] * 900)
    monkeypatch.setattr(whole_files, "_LARGEST_WHOLE", Path(small).stat().st_size)
    table = spark.privatize_files(mechanism, cluster, [small, large], str(tmp_path / "reports"), "answer")
    reports = rows_of(mechanism, (tmp_path / "reports").iterdir())
    assert len(set(reports)) == len(reports) == table.count() == 1_000


def test_a_product_is_read_from_the_columns_of_its_factors(cluster: SparkSession, tmp_path: Path) -> None:
    domain = sf.Domain.product(answer=ANSWERS, person=range(5))
    mechanism = sf.mechanisms.RandomizedResponse(domain, epsilon=50)  # a report is the value, but for a chance of 1e-20
    values = values_file(tmp_path / "values.parquet", [*ANSWERS, "none"])
    in_clear = sf.aggregate(mechanism, domain.encode({"answer": [*ANSWERS, "none"], "person": list(range(5))}))
    table = spark.privatize(mechanism, cluster.read.parquet(values), str(tmp_path / "a"))
    assert spark.aggregate(mechanism, table) == in_clear
    table = spark.privatize_files(mechanism, cluster, [values], str(tmp_path / "b"), ["person", "answer"])
    assert spark.aggregate(mechanism, table) == in_clear


def test_a_file_that_is_not_taken_never_becomes_part_of_the_table(tmp_path: Path) -> None:
    staging = Staging(tmp_path.as_uri(), "table", ".waiting")
    attempts = tmp_path / ".waiting" / "attempts"
    attempts.mkdir(parents=True)
    for name in ("part-0-1", "part-0-2", "part-1-3"):
        (attempts / name).write_text(name)
    staging.commit(["part-0-2", "part-1-3"])
    assert sorted(path.name for path in (tmp_path / "table").iterdir()) == ["part-0-2", "part-1-3"]
    with pytest.raises(InvalidInput, match="must be new"):
        staging.commit([])


# -- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["measles", None])
def test_a_value_outside_the_domain_is_refused_by_name_and_leaves_no_table(
    cluster: SparkSession, tmp_path: Path, wrong: str | None
) -> None:
    path = values_file(tmp_path / "values.parquet", [*ANSWERS * 10, wrong, *ANSWERS])
    with pytest.raises(InvalidInput, match=f"row 40 must be one of .*; got {wrong!r}"):
        spark.privatize(response(), cluster.read.parquet(path), str(tmp_path / "reports"), "answer")
    with pytest.raises(InvalidInput, match=f"{path}.* row 40 must be one of .*; got {wrong!r}"):
        spark.privatize_files(response(), cluster, [path], str(tmp_path / "reports"), "answer")
    assert [path.name for path in tmp_path.iterdir()] == ["values.parquet"]


def test_reports_of_another_mechanism_are_refused(cluster: SparkSession, tmp_path: Path) -> None:
    mechanism, other = response(), sf.mechanisms.RandomizedResponse(sf.Domain(ANSWERS), epsilon=2)
    file = tmp_path / "reports.parquet"
    write_reports(file, mechanism, np.array([0, 1, 2]))
    table = spark.read_table(mechanism, cluster, str(file))
    must = f"must be {other.hash}; got '{mechanism.hash}'"
    for count in (
        lambda: spark.aggregate_files(other, cluster, str(file)),
        lambda: spark.read_table(other, cluster, str(file)),
        lambda: spark.aggregate(other, table),
    ):
        with pytest.raises(InvalidInput, match=must):
            count()
    with pytest.raises(InvalidInput, match="got None"):
        spark.aggregate(mechanism, cluster.sql("select 1L as report"))
    bare = values_file(tmp_path / "bare.parquet", ANSWERS)
    with pytest.raises(InvalidInput, match="got 'none'"):
        spark.read_table(mechanism, cluster, bare)


def test_reports_that_are_none_are_refused(cluster: SparkSession) -> None:
    def table(mechanism: Mechanism, report: str) -> DataFrame:
        made = cluster.sql(f"select {report} as report")
        return made.withMetadata("report", {"sfumato.mechanism": mechanism.hash})

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
    with pytest.raises(InvalidInput, match="must be new"):
        spark.privatize(response(), frame, str(tmp_path / "taken"), "answer")
    with pytest.raises(InvalidInput, match="in a folder that is there"):
        spark.privatize(response(), frame, str(tmp_path / "nowhere" / "reports"), "answer")
    with pytest.raises(InvalidInput, match="each be named once"):
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
    with pytest.raises(InvalidInput, match="master must be that of the session"), spark.session("local[1]"):
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
    assert main(["aggregate", "mechanism.json", "-", "-o", "spark.json", *engine]) == 2
    assert main(["aggregate", "mechanism.json", *files, "-o", "spark.json", "--master", MASTER]) == 2
    assert main(["aggregate", "mechanism.json", "nowhere", "-o", "spark.json", *engine]) == 2
    assert main(["privatize", "mechanism.json", "nowhere", "-o", folder, *column, *engine]) == 2
    assert capsys.readouterr().err.count("sfumato: ") == 4
