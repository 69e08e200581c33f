"""Measure the cost of a report for ten thousand to a billion reports, and memory by the number of values.

    python -m benchmarks.scaling

The benchmark draws and counts every report, up to a billion, and estimates from the counts. It simulates the error by
drawing the counts from their exact law.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

import numpy as np
import numpy.typing as npt

import sfumato as sf
from sfumato.mechanisms import HadamardResponse

VALUES = 1024
NUMBERS = (10**4, 10**5, 10**6, 10**7, 10**8, 10**9)
#: Reports per piece, which bounds memory, and length of the column of values, which is repeated.
PIECE, COLUMN = 2**22, 2**24


def privatize_and_count(n: int, column: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Return the seconds to privatize n values, and to count and estimate, on all cores."""
    mechanism = HadamardResponse(sf.Domain.range(VALUES), 1)
    counts = sf.Aggregate.empty(mechanism)
    privatizing = counting = 0.0
    out = np.empty(min(n, PIECE), mechanism.report_format.dtype)
    for start in range(0, n, PIECE):
        values = column[start % COLUMN :][: min(PIECE, n - start)]
        begin = time.perf_counter()
        reports = sf.privatize(mechanism, values, out=out[: len(values)])
        middle = time.perf_counter()
        counts = counts.accumulate(mechanism, reports)
        privatizing, counting = privatizing + middle - begin, counting + time.perf_counter() - middle
    begin = time.perf_counter()
    sf.estimate(mechanism, counts)
    return privatizing, counting + time.perf_counter() - begin


def by_number() -> None:
    """Print the cost of a report by the number of reports."""
    column = np.random.default_rng(3).integers(0, VALUES, COLUMN)
    privatize_and_count(10**6, column)  # compile kernels that are not in the cache
    print(f"Hadamard response, k = {VALUES:,}, ε = 1, all cores; simulated error on a Zipf truth")
    print(f"  {'reports':>13} {'privatize':>11} {'count':>11} {'simulate':>10} {'TV error':>10} {'predicted':>10}")
    for n in NUMBERS:
        runs = [privatize_and_count(n, column) for _ in range(7 if n < 10**8 else 1)]
        cells = [f"{statistics.median(seconds) / n * 1e9:.2f} ns" for seconds in zip(*runs, strict=True)]
        begin = time.perf_counter()
        result = sf.simulate(HadamardResponse(sf.Domain.range(VALUES), 1), n=n, truth="zipf", one_by_one=False)
        taken = time.perf_counter() - begin
        print(f"  {n:13,} {cells[0]:>11} {cells[1]:>11} {taken:9.3f}s {result.tv:10.5f} {result.predicted_tv:10.5f}")


#: Program that privatizes, counts and estimates with k values, and prints its peak memory.
_PROCESS = """
import json, re, sys, time
from pathlib import Path
import numpy as np
import sfumato as sf
from sfumato import mechanisms
kind, k, n = getattr(mechanisms, sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
mechanism = kind(sf.Domain.range(k), 1)
start = time.perf_counter()
counts = sf.aggregate(mechanism, sf.privatize(mechanism, np.arange(n) % k))
middle = time.perf_counter()
sf.estimate(mechanism, counts, "simplex").interval()
done = time.perf_counter()
peak = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])  # not inherited
print(json.dumps([mechanism.bits, peak, done - middle]))
"""


def by_values() -> None:
    """Print peak memory by the number of values."""
    print("memory of a process that privatizes, counts and estimates; 1,000,000 index reports, or 2 MB of bitmaps")
    print(f"  {'mechanism':20} {'k':>9} {'bits per report':>15} {'peak memory':>12} {'estimate':>10}")
    for kind in ("HadamardResponse", "RandomizedResponse", "UnaryEncoding", "SubsetSelection"):
        for k in (2**10 - 1, 2**15 - 1, 2**20 - 1):  # Hadamard: powers of two, minus the constant row
            n = 10**6 if kind in ("HadamardResponse", "RandomizedResponse") else max(1, 2**24 // k)
            command = [sys.executable, "-c", _PROCESS, kind, str(k), str(n)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            bits, peak, seconds = json.loads(done.stdout)
            print(f"  {kind:20} {k:9,} {bits:15,} {peak / 1e6:9.0f} MB {seconds * 1e3:7.0f} ms", flush=True)


def main() -> None:
    """Print both tables."""
    by_number()
    by_values()


if __name__ == "__main__":
    main()
