"""Compare this project with other packages and with the limits of the machine, in one run on the same values.

    python -m benchmarks.peers

Every other package has a separate environment, created on first use in the user's cache folder. All calls run on one
thread, at ε = 1. Each result is the median of at least five runs, and its spread is (largest - smallest)/median. Rates
of different calls in one run are comparable. Absolute rates change with the machine and its load.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import sfumato as sf
from benchmarks.kernels import copy_rate, stream_job, stream_rate
from benchmarks.peer_calls import MECHANISMS
from sfumato.collecting import aggregate_files, write_reports
from sfumato.device import privatize_indices
from sfumato.mechanisms import (
    HadamardResponse,
    Mechanism,
    RandomizedResponse,
    SubsetSelection,
    TableMechanism,
    UnaryEncoding,
    kernel_for,
)
from sfumato.mechanisms.kernels.counting import add_bit_sums, add_histogram

#: Arguments of pip for each package: the package, and dependencies that it does not declare.
PACKAGES = {
    "pure-ldp": ["pure-ldp==1.2.0", "scikit-learn", "statsmodels", "xxhash<4"],
    "multi-freq-ldpy": ["multi-freq-ldpy==0.2.5", "scipy", "xxhash<4"],
    "opendp": ["opendp==0.16.0", "numpy"],
}
SIZES = (128, 1024, 32_768)
RUNS = 7
EPSILON = 1
_VALUES = 200_000
_OUTPUT = Path(__file__).parents[1] / "build" / "benchmarks"


class Timing(NamedTuple):
    """A number of values, the median time that they took, and the spread of the runs."""

    values: int
    seconds: float
    spread: float

    @property
    def rate(self) -> float:
        """Values per second."""
        return self.values / self.seconds

    @classmethod
    def of(cls, count: int, times: list[float]) -> Timing:
        """Return the timing of runs with these durations."""
        middle = statistics.median(times)
        return cls(count, middle, (max(times) - min(times)) / middle)


def timing(count: int, job: Callable[[], object], runs: int = RUNS) -> Timing:
    """Return the timing of a job."""
    job()  # compile kernels and touch every memory page
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return Timing.of(count, times)


def in_turn(count: int, *jobs: Callable[[], object], runs: int = 15) -> list[Timing]:
    """Return the timings of jobs that run alternately, so that other load on the machine affects them equally."""
    times: list[list[float]] = [[] for _ in jobs]
    for run in range(runs + 1):
        for job, job_times in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            if run:  # the first run compiles kernels and touches every memory page
                job_times.append(time.perf_counter() - start)
    return [Timing.of(count, job_times) for job_times in times]


# -- calls of this project ---------------------------------------------------------------------------------


def mechanism_of(name: str, k: int) -> Mechanism:
    """Return the mechanism with this name over k values."""
    domain = sf.Domain.range(k)
    if name.startswith("unary"):
        return UnaryEncoding(domain, EPSILON, optimized="optimized" in name)
    kinds: dict[str, Callable[..., Mechanism]] = {
        "randomized response": RandomizedResponse,
        "subset": SubsetSelection,
        "hadamard": HadamardResponse,
    }
    return kinds[name](domain, EPSILON)


def reports_wanted(name: str, k: int) -> int:
    """Return the number of reports that a peer estimates from; at k = 32,768 its reports take megabytes each."""
    return _VALUES if name in ("randomized response", "hadamard") else min(32_768, max(1024, 2**23 // k))


def values_per_run(name: str, k: int) -> int:
    """Return the number of values per run of this project, enough for a tenth of a second or more."""
    if name in ("randomized response", "hadamard"):
        return 2**23
    return max(2**12, (2**26 if name == "subset" else 2**28) // k)


def privatize_timing(mechanism: Mechanism, values: npt.NDArray[np.int64]) -> Timing:
    """Return the timing of privatize on one thread."""
    out = np.empty((len(values), *mechanism.report_format.shape), mechanism.report_format.dtype)
    return timing(len(values), lambda: sf.privatize(mechanism, values, out=out, threads=1))


def estimate_timing(mechanism: Mechanism, reports: npt.NDArray[Any]) -> Timing:
    """Return the timing of aggregate and estimate."""
    return timing(len(reports), lambda: sf.estimate(mechanism, sf.aggregate(mechanism, reports)))


# -- the peers ---------------------------------------------------------------------------------------------


def environment(peer: str) -> Path:
    """Return the Python of an environment with this package, which is created if it does not exist."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sfumato-benchmarks"
    folder = cache / f"{peer}-{sys.version_info.major}.{sys.version_info.minor}"
    python, stamp = folder / "bin" / "python", folder / "installed"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != " ".join(PACKAGES[peer]):
        print(f"creating an environment for {peer}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES[peer]]
        subprocess.run(install, check=True)
        stamp.write_text(" ".join(PACKAGES[peer]), encoding="utf-8")
    return python


#: Timings of the calls of each peer, by mechanism and k.
Peers = dict[str, dict[tuple[str, int], dict[str, Timing]]]


def peer_timings(peer: str, case: Path) -> dict[tuple[str, int], dict[str, Timing]]:
    """Return the timings of a peer's calls, by mechanism and k."""
    calls = Path(__file__).with_name("peer_calls.py")
    # One thread, as for this project.
    alone = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")}
    done = subprocess.run(
        [str(environment(peer)), str(calls), peer, str(case)], check=True, capture_output=True, text=True, env=alone
    )
    timings_by_case = {}
    for key, result in json.loads(done.stdout).items():
        name, k = key.split("/")
        timings = {"privatize": Timing.of(result["values"], result["privatize"])}
        if "estimate" in result:
            timings["estimate"] = Timing.of(result["reports"], result["estimate"])
        timings_by_case[name, int(k)] = timings
    return timings_by_case


def write_case(path: Path) -> dict[int, npt.NDArray[np.int64]]:
    """Write the values for the peers to a file and return them."""
    generator = np.random.default_rng(8)
    values = {k: generator.integers(0, k, _VALUES) for k in SIZES}
    document = {
        "epsilon": EPSILON,
        "values": {str(k): column.tolist() for k, column in values.items()},
        "reports": {name: {str(k): reports_wanted(name, k) for k in SIZES} for name in MECHANISMS},
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return values


# -- the machine -------------------------------------------------------------------------------------------


class Limits(NamedTuple):
    """Bytes per second on one thread: keystream, copying and reading memory."""

    stream: float
    copy: float
    read: float


def limits() -> Limits:
    """Measure the limits of the machine."""
    words = np.ones(2**25, np.uint64)
    read = max(words.nbytes / timing(1, job).seconds for job in (words.sum, words.max))
    return Limits(stream_rate(), copy_rate(), read)


def of_budget(mechanism: Mechanism, rate: float, machine: Limits) -> float:
    """Return the share of the time that generating the random bytes and copying the reports takes at least."""
    kernel = kernel_for(mechanism)
    assert kernel is not None
    report_bytes = kernel.dtype.itemsize * math.prod(kernel.report_shape)
    random_bytes = kernel.frame_bytes + 8 * kernel.auxiliary_mean
    return rate * (random_bytes / machine.stream + report_bytes / machine.copy)


# -- goals without peers -----------------------------------------------------------------------------------


class Goal(NamedTuple):
    """A required ratio and the measured one."""

    what: str
    wanted: float
    ratio: float
    at_most: bool = False

    @property
    def verdict(self) -> str:
        """The required ratio, and whether it is met."""
        met = self.ratio <= self.wanted if self.at_most else self.ratio >= self.wanted
        return f"{'≤' if self.at_most else '≥'} {self.wanted:g} {'met' if met else 'NOT MET'}"

    def __str__(self) -> str:
        return f"  {self.what:68} {self.ratio:10,.2f}  {self.verdict}"


def machine_goals(machine: Limits) -> list[Goal]:
    """Measure the goals that relate to the machine."""
    generator = np.random.default_rng(9)
    narrow = HadamardResponse(sf.Domain.range(2000), EPSILON, block_size=2048)
    values = generator.integers(0, 2000, 2**24)
    out = np.empty(len(values), narrow.report_format.dtype)
    some = 2**20  # stay in the third-level cache; beyond it memory limits the rate, not the keystream
    near, stream = in_turn(
        some,
        lambda: privatize_indices(narrow, values[:some], out=out[:some], threads=1),
        stream_job(4 * some),
        runs=51,
    )
    one, two = in_turn(
        len(values),
        lambda: privatize_indices(narrow, values, out=out, threads=1),
        lambda: privatize_indices(narrow, values, out=out, threads=2),
    )
    goals = [
        Goal("privatize, Hadamard, encoded values: of keystream / 4 bytes", 0.4, near.rate / stream.rate),
        Goal("privatize, Hadamard, encoded values: two threads over one", 1.4, two.rate / one.rate),
        Goal("privatize, table 64 x 64: over numpy sampling its rows", 10, table_over_numpy()),
    ]
    indices = generator.integers(0, 2**16, 2**24).astype(np.uint32)
    counts = np.zeros(2**16, np.int64)
    pieces = np.split(indices, 16)  # small enough that one thread counts a piece
    histogram = timing(len(indices), lambda: _each(pieces, lambda piece: add_histogram(piece, counts)))
    goals.append(
        Goal("aggregate, histogram of 65,536: of memory read, one thread", 0.22, 4 * histogram.rate / machine.read)
    )
    rows = np.split(generator.integers(0, 256, (2**19, 128), dtype=np.uint8), 16)
    sums = np.zeros(1024, np.int64)
    columns = timing(2**26, lambda: _each(rows, lambda piece: add_bit_sums(piece, sums)))
    goals.append(
        Goal("aggregate, column sums of 1,024 bits: of memory read, one thread", 0.25, columns.rate / machine.read)
    )
    goals.append(Goal("aggregate, Parquet, all cores: of bare decoding on one", 0.7, of_bare_decoding(indices)))
    long = HadamardResponse(sf.Domain.range(2**20 - 1), EPSILON, block_size=2**20)
    shares = generator.random(2**20)
    estimator = long.estimator
    room = np.empty_like(shares)
    copied, decoded = in_turn(1, lambda: np.copyto(room, shares), lambda: estimator.frequencies(shares), runs=51)
    goals.append(
        Goal("estimate, Hadamard of 2^20: copies of the vector", 15, decoded.seconds / copied.seconds, at_most=True)
    )
    return goals


def _each(pieces: list[npt.NDArray[Any]], job: Callable[[npt.NDArray[Any]], None]) -> None:
    """Apply a job to every piece."""
    for piece in pieces:
        job(piece)


def table_over_numpy() -> float:
    """Return the rate of a table mechanism divided by that of numpy sampling its rows."""
    generator = np.random.default_rng(7)
    matrix = generator.dirichlet(np.ones(64), 64)
    table = TableMechanism.from_matrix(sf.Domain.range(64), matrix)
    values = generator.integers(0, 64, 2**21)
    out = np.empty(len(values), np.int64)

    def by_numpy() -> None:
        for x in range(64):
            members = np.flatnonzero(values == x)
            out[members] = generator.choice(64, size=len(members), p=matrix[x])

    reports = np.empty(len(values), table.report_format.dtype)
    ours, other = in_turn(len(values), lambda: sf.privatize(table, values, out=reports, threads=1), by_numpy, runs=7)
    return ours.rate / other.rate


def of_bare_decoding(indices: npt.NDArray[np.uint32]) -> float:
    """Return the rate of counting a Parquet file divided by that of decoding it only."""
    import pyarrow.parquet

    mechanism = HadamardResponse(sf.Domain.range(2**16 - 1), EPSILON, block_size=2**16)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.parquet"
        write_reports(mechanism, indices, path)

        def decode() -> None:
            for _ in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=2**19, use_threads=False):
                pass

        bare, counted = in_turn(len(indices), decode, lambda: aggregate_files(mechanism, [path]))
        return counted.rate / bare.rate


def over_block_peers(peers: Peers, values: dict[int, npt.NDArray[np.int64]]) -> list[Goal]:
    """Compare Hadamard response in blocks of eight columns with the peers' Hadamard response, which has no blocks."""
    goals = []
    for k in SIZES:
        theirs = [timings["hadamard", k]["privatize"].rate for timings in peers.values() if ("hadamard", k) in timings]
        if theirs:
            mechanism = HadamardResponse(sf.Domain.range(k), EPSILON, block_size=8)
            ours = privatize_timing(mechanism, np.resize(values[k], values_per_run("hadamard", k)))
            what = f"privatize hadamard in blocks of 8, k = {k:,}: over every peer"
            goals.append(Goal(what, PRIVATIZE_GOALS["hadamard", k], ours.rate / max(theirs)))
    return goals


#: Required speedups over every peer: privatize by mechanism and k, estimate by k.
PRIVATIZE_GOALS = {
    ("hadamard", 128): 1000, ("hadamard", 1024): 1000, ("hadamard", 32_768): 1000,
    ("unary", 128): 25, ("unary", 1024): 25, ("unary", 32_768): 25,
    ("unary, optimized", 128): 25, ("unary, optimized", 1024): 25, ("unary, optimized", 32_768): 25,
    ("subset", 128): 30, ("subset", 1024): 60,
    ("randomized response", 128): 100, ("randomized response", 1024): 100, ("randomized response", 32_768): 100,
}  # fmt: skip
ESTIMATE_GOALS = {32_768: 20}


# -- the table ---------------------------------------------------------------------------------------------


def main() -> None:
    """Measure everything, print the tables, and write them as JSON and as a plot."""
    with tempfile.TemporaryDirectory() as folder:
        case = Path(folder) / "values.json"
        values = write_case(case)
        peers = {peer: peer_timings(peer, case) for peer in PACKAGES}
    machine = limits()
    read, copy, stream = (rate / 1e9 for rate in (machine.read, machine.copy, machine.stream))
    print(f"the machine, one thread: keystream {stream:.1f} GB/s, copy {copy:.1f} GB/s, read {read:.1f} GB/s\n")
    head = f"{'ε = 1, one thread':42}{'values/s':>14}{'spread':>8}{'of limit':>9}{'goal':>16}"
    print(head + "".join(f"{peer:>22}" for peer in PACKAGES))
    rows, goals = [], []
    for name in MECHANISMS:
        for k in SIZES:
            mechanism = mechanism_of(name, k)
            column = np.resize(values[k], values_per_run(name, k))
            ours = privatize_timing(mechanism, column)
            others = {peer: timings[name, k]["privatize"] for peer, timings in peers.items() if (name, k) in timings}
            ratios = {peer: ours.rate / other.rate for peer, other in others.items()}
            share = of_budget(mechanism, ours.rate, machine)
            what = f"privatize {name}, k = {k:,}"
            goal = None
            if (name, k) in PRIVATIZE_GOALS and ratios:
                goal = Goal(f"{what}: over every peer", PRIVATIZE_GOALS[name, k], min(ratios.values()))
                goals.append(goal)
            _print_row(what, ours, share, goal, others, ratios)
            rows.append(_row("privatize", name, k, ours, others, ratios))
    goals += over_block_peers(peers, values)
    for name in MECHANISMS:
        for k in SIZES:
            mechanism = mechanism_of(name, k)
            reports = sf.privatize(mechanism, values[k][: reports_wanted(name, k)])
            ours = estimate_timing(mechanism, reports)
            others = {
                peer: timings[name, k]["estimate"]
                for peer, timings in peers.items()
                if "estimate" in timings.get((name, k), {})
            }
            # Use as many reports as the peer, because more reports would hide the cost per value.
            ratios = {
                peer: other.seconds / estimate_timing(mechanism, reports[: other.values]).seconds
                for peer, other in others.items()
            }
            share = ours.rate * reports[:1].nbytes / machine.read
            what = f"estimate {name}, k = {k:,}"
            goal = None
            if k in ESTIMATE_GOALS and ratios:
                goal = Goal(f"{what}: over every peer", ESTIMATE_GOALS[k], min(ratios.values()))
                goals.append(goal)
            _print_row(what, ours, share, goal, others, ratios)
            rows.append(_row("estimate", name, k, ours, others, ratios))
    print(f"\n  {'goals (ratios in this run)':68} {'ratio':>10}  goal")
    goals += machine_goals(machine)
    for each in goals:
        print(each, flush=True)
    _OUTPUT.mkdir(parents=True, exist_ok=True)
    keys = {"ratio": "found"}  # the name in files of earlier runs
    goal_rows = [
        {keys.get(key, key): value for key, value in goal._asdict().items()} | {"verdict": goal.verdict}
        for goal in goals
    ]
    document = {"rows": rows, "goals": goal_rows}
    (_OUTPUT / "peers.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    _plot(rows)
    print(f"\nthe table as JSON and a plot are in {_OUTPUT.relative_to(_OUTPUT.parents[1])}\n")


def _print_row(
    label: str, ours: Timing, share: float, goal: Goal | None, others: dict[str, Timing], ratios: dict[str, float]
) -> None:
    """Print one row of the table."""
    verdict = "" if goal is None else goal.verdict
    cells = [f"{others[peer].rate:12,.0f} {ratios[peer]:8,.0f}x" if peer in others else "-" for peer in PACKAGES]
    first_cells = f"{label:42}{ours.rate:14,.0f}{ours.spread:8.0%}{share:9.2f}{verdict:>16}"
    print(first_cells + "".join(f"{cell:>22}" for cell in cells), flush=True)


def _row(
    call: str, name: str, k: int, ours: Timing, others: dict[str, Timing], ratios: dict[str, float]
) -> dict[str, Any]:
    """Return one row of the table as a document."""
    return {
        "call": call, "mechanism": name, "k": k, "rate": ours.rate, "spread": ours.spread,
        "peers": {peer: {"rate": other.rate, "spread": other.spread, "count": other.values, "ratio": ratios[peer]}
                  for peer, other in others.items()},
    }  # fmt: skip


def _plot(rows: list[dict[str, Any]]) -> None:
    """Plot the rates of all packages."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    for axes, call in zip(figure.subplots(1, 2), ("privatize", "estimate"), strict=True):
        selected = [row for row in rows if row["call"] == call]
        labels = [f"{row['mechanism']}, {row['k']:,}" for row in selected]
        axes.plot([row["rate"] for row in selected], range(len(selected)), "o", color="black", label="Sfumato")
        for peer, marker in zip(PACKAGES, "s^D", strict=True):
            there = [(row["peers"][peer]["rate"], i) for i, row in enumerate(selected) if peer in row["peers"]]
            axes.plot([rate for rate, _ in there], [i for _, i in there], marker, markersize=4, label=peer)
        axes.set(xscale="log", xlabel=f"{call}: values per second, one thread", yticks=range(len(selected)))
        axes.set_yticklabels(labels, fontsize=7)
        axes.invert_yaxis()
        axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize=7)
    figure.savefig(_OUTPUT / "peers.svg")


if __name__ == "__main__":
    main()
