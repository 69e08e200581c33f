"""Compare Spark with one process on the cores of one machine, to measure the overhead of a cluster.

    python -m benchmarks.spark

The data are values of randomized response over 128 values, in eight Parquet files. Spark has two executors of one core
each; the single process has the same two cores. The measured time of a call includes Spark's planning, its jobs and its
commit. It excludes the start of the session and its executors, and the first call of each kind, which imports and
compiles.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import sfumato as sf
from sfumato import spark
from sfumato._core import import_pyarrow
from sfumato.collecting import aggregate_files, write_reports
from sfumato.device import privatize_indices, read_values
from sfumato.mechanisms import RandomizedResponse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

N = 5 * 10**7
VALUES = 128
FILES = 8
MASTER = "local-cluster[2,1,1024]"


def median_seconds(call: Callable[[], object], times: int) -> tuple[float, float, float]:
    """Return the median, the shortest and the longest of some runs, after one that is not counted."""
    taken = []
    for _ in range(times + 1):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:]), min(taken[1:]), max(taken[1:])


def print_row(name: str, alone: float, call: Callable[[], object], times: int) -> float:
    """Print the seconds of one process and of a call on Spark, and the ratio of throughputs; return Spark's seconds."""
    median, shortest, longest = median_seconds(call, times)
    spread = f"({shortest:.2f}-{longest:.2f})"
    print(f"  {name:38} {alone:10.2f} s {median:6.2f} s {spread:>15} {alone / median:11.2f}", flush=True)
    return median


class Compared:
    """The same work in one process and on Spark, in a separate folder."""

    def __init__(self, folder: Path, n: int) -> None:
        self.mechanism = RandomizedResponse(sf.Domain.range(VALUES), epsilon=1)
        self.values, self.here, self.there = folder / "values", folder / "here", folder / "there"
        pyarrow, parquet = import_pyarrow("values"), import_pyarrow("values", "pyarrow.parquet")
        self.values.mkdir()
        generator = np.random.default_rng(5)
        for number in range(FILES):
            table = pyarrow.table({"answer": generator.integers(0, VALUES, n // FILES)})
            parquet.write_table(table, self.values / f"{number}.parquet")

    def privatize_here(self) -> None:
        """Privatize all files in this process."""
        shutil.rmtree(self.here, ignore_errors=True)
        self.here.mkdir()
        for file in sorted(self.values.iterdir()):
            pieces = (self.mechanism.domain.encode(piece) for piece in read_values(file, "answer"))
            reports = (privatize_indices(self.mechanism, piece) for piece in pieces)
            write_reports(self.mechanism, reports, self.here / file.name)

    def count_here(self) -> sf.Aggregate:
        """Count all reports in this process."""
        return aggregate_files(self.mechanism, sorted(self.here.iterdir()))

    def print_table(self, session: SparkSession) -> None:
        """Print the times of all calls."""
        mechanism, there = self.mechanism, str(self.there)
        frame = session.read.parquet(str(self.values))
        table = spark.read_table(mechanism, session, str(self.here))

        def after_cleanup(call: Callable[[], object]) -> Callable[[], object]:
            def run() -> object:
                shutil.rmtree(there, ignore_errors=True)
                return call()

            return run

        def privatized(frame: DataFrame) -> Callable[[], object]:
            return after_cleanup(lambda: spark.privatize(mechanism, frame, there, "answer"))

        print(f"  {'':38} {'one process':>12} {'Spark':>8} {'(runs)':>15} {'throughput':>11}")
        alone = median_seconds(self.privatize_here, 5)[0]
        files = after_cleanup(lambda: spark.privatize_files(mechanism, session, [str(self.values)], there, "answer"))
        privatizing = print_row("privatize_files", alone, files, 5)
        print_row("privatize, files as a DataFrame", alone, privatized(frame), 5)
        print_row("privatize, a DataFrame with a filter", alone, privatized(frame.where("answer >= 0")), 4)
        also = median_seconds(self.count_here, 9)[0]
        counting = print_row(
            "aggregate_files", also, lambda: spark.aggregate_files(mechanism, session, str(self.here)), 15
        )
        print_row("aggregate, files as a DataFrame", also, lambda: spark.aggregate(mechanism, table), 15)
        filtered = table.where("report >= 0")
        print_row("aggregate, a DataFrame with a filter", also, lambda: spark.aggregate(mechanism, filtered), 7)
        ratio = (alone + also) / (privatizing + counting)
        print(f"  {'both of files':38} {alone + also:10.2f} s {privatizing + counting:6.2f} s {'':15} {ratio:11.2f}")
        assert spark.aggregate(mechanism, table) == spark.aggregate(mechanism, filtered) == self.count_here()

    def print_more(self, session: SparkSession) -> None:
        """Print the times for four copies of the files, for which the fixed cost of a job matters less."""
        copies = [self.here.with_name(f"here-{number}") for number in range(4)]
        for copy in copies:
            shutil.copytree(self.here, copy)
        files = sorted(file for copy in copies for file in copy.iterdir())
        alone = median_seconds(lambda: aggregate_files(self.mechanism, files), 5)[0]
        folders = list(map(str, copies))
        print_row(
            "aggregate_files, four copies",
            alone,
            lambda: spark.aggregate_files(self.mechanism, session, *folders),
            7,
        )


def main(n: int = N) -> None:
    """Print the comparison for n values."""
    print(f"Spark, {MASTER}, against one process; randomized response, k = {VALUES}, n = {n:,}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        compared = Compared(Path(folder), n)
        compared.privatize_here()
        with spark.session(MASTER) as session:
            compared.print_table(session)
            compared.print_more(session)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
