"""Measure how long `sfumato privatize` takes for CSV files, compared with Parquet, and its peak memory.

    python -m benchmarks.files [ROWS]

The rows have a person and one of four answers, or a number that few others share. The files take turns. The table shows
the median of three rounds, and the ratio to Parquet in the same rounds. "read" is the time to read and encode the
column, "privatize" the time of the whole command in a new process, and "processor" its processor time, which other
programs on the same cores change less. The last line reads a tenth of the rows with Python's `csv` module.
"""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

import sfumato as sf

ROWS, ROUNDS = 10**7, 3
ANSWERS = ["none", "flu", "hiv", "cancer"]

#: Program that reads a column, or privatizes it, and prints its seconds and its peak memory.
_PROCESS = """
import json, re, sys, time
from pathlib import Path
path, column, mechanism, reports, arrow = sys.argv[1:]
from sfumato.cli import main
from sfumato.device import read_indices
from sfumato.mechanisms import mechanism_from_spec
from sfumato._core import delimited
if arrow == "no":
    delimited._arrow_parser = lambda: None
start, used = time.perf_counter(), time.process_time()
if reports:
    assert main(["privatize", mechanism, path, "--column", column, "-o", reports]) == 0
else:
    domain = mechanism_from_spec(json.loads(Path(mechanism).read_text())).domain
    for piece in read_indices(path, column, domain=domain):
        pass
seconds, used = time.perf_counter() - start, time.process_time() - used
peak = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])  # not inherited
print(json.dumps([seconds, used, peak]))
"""


def measure(
    path: Path, column: str, mechanism: Path, reports: Path | None, *, arrow: bool = True
) -> tuple[float, float, int]:
    """Return the seconds, the processor seconds and the peak memory of a new process."""
    arguments = [str(path), column, str(mechanism), str(reports or ""), "yes" if arrow else "no"]
    done = subprocess.run([sys.executable, "-c", _PROCESS, *arguments], capture_output=True, text=True, check=True)
    seconds, used, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, used, peak


def write_files(folder: Path, rows: int) -> list[tuple[str, Path, str, str]]:
    """Write the files; return the label, the path and the column of each, and the label to compare it with."""
    draws = np.random.default_rng(1)
    table = pa.table(
        {
            "person": np.arange(rows),
            "answer": pa.array(np.array(ANSWERS)[draws.integers(0, len(ANSWERS), rows)]),
        }
    )
    numbers = pa.table({"person": np.arange(rows), "pay": np.round(draws.uniform(0, 200_000, rows), 2)})
    pq.write_table(table, folder / "values.parquet")
    pq.write_table(numbers, folder / "numbers.parquet")
    arrow_csv.write_csv(table, folder / "values.csv", arrow_csv.WriteOptions(quoting_style="none"))
    arrow_csv.write_csv(table, folder / "quoted.csv", arrow_csv.WriteOptions(quoting_style="all_valid"))
    arrow_csv.write_csv(numbers, folder / "numbers.csv")
    with (folder / "values.csv").open("rb") as source, gzip.open(folder / "values.csv.gz", "wb", 1) as target:
        shutil.copyfileobj(source, target)
    return [
        ("Parquet", folder / "values.parquet", "answer", "Parquet"),
        ("CSV", folder / "values.csv", "answer", "Parquet"),
        ("CSV, quoted", folder / "quoted.csv", "answer", "Parquet"),
        ("CSV, gzip", folder / "values.csv.gz", "answer", "Parquet"),
        ("Parquet, numbers", folder / "numbers.parquet", "pay", "Parquet, numbers"),
        ("CSV, numbers", folder / "numbers.csv", "pay", "Parquet, numbers"),
    ]


def main(rows: int = ROWS) -> None:
    """Print the table."""
    domains = {"answer": sf.Domain(ANSWERS), "pay": sf.Domain.numbers(0, 200_000, bins=40)}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files, reports = write_files(folder, rows), folder / "reports.sfb"
        specs = {column: folder / f"{column}.json" for column in domains}
        for column, spec in specs.items():
            mechanism = sf.mechanisms.RandomizedResponse(domains[column], 1)
            spec.write_text(mechanism.to_json(), encoding="utf-8")
        measure(files[0][1], "answer", specs["answer"], reports)  # compile the kernel
        read: dict[str, list[tuple[float, float, int]]] = {label: [] for label, *_ in files}
        whole: dict[str, list[tuple[float, float, int]]] = {label: [] for label, *_ in files}
        for _ in range(ROUNDS):
            for label, path, column, _ in files:
                read[label].append(measure(path, column, specs[column], None))
                whole[label].append(measure(path, column, specs[column], reports))
        print(f"{rows:,} rows with two columns, one of which is read; {ROUNDS} rounds, each file in turn")
        titles = ("size", "read", "ratio", "processor", "ratio", "privatize", "ratio", "processor", "ratio", "memory")
        print(f"  {'file':16}" + "".join(f"{title:>10}" for title in titles))
        for label, path, _, baseline in files:
            cells = [f"{path.stat().st_size / 1e6:.0f} MB"]
            for runs, kind in itertools.product((read, whole), (0, 1)):
                seconds = statistics.median(run[kind] for run in runs[label])
                pairs = zip(runs[label], runs[baseline], strict=True)
                cells += [f"{seconds:.2f} s", f"{statistics.median(a[kind] / b[kind] for a, b in pairs):.2f}"]
            cells.append(f"{max(peak for _, _, peak in whole[label]) / 1e6:.0f} MB")
            print(f"  {label:16}" + "".join(f"{cell:>10}" for cell in cells))
        (folder / "tenth").mkdir()
        path = write_files(folder / "tenth", rows // 10)[1][1]
        seconds, *_ = measure(path, "answer", specs["answer"], None, arrow=False)
        print(f"  CSV without pyarrow: {seconds:.2f} s to read {rows // 10:,} rows")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
