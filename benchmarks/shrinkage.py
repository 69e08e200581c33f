"""Measure the methods "bayes" and "best" against "simplex": total variation, squared error, coverage and time.

Usage: ``python -m benchmarks.shrinkage [table] [held-out] [maps] [coverage] [large]``; without names, all parts run.
The public data come from the folder in SFUMATO_DATA; without it, invented data stand in.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

import sfumato as sf
from sfumato.collecting import Aggregate
from sfumato.mechanisms import (
    BlockMechanism,
    CyclicDesign,
    HadamardResponse,
    Mechanism,
    RandomizedResponse,
    SubsetSelection,
    count_law_for,
)
from sfumato.papers.data import data_folder, us_grid

Floats = npt.NDArray[np.float64]


def normal(weights: npt.ArrayLike) -> Floats:
    """Return weights as a distribution."""
    array = np.asarray(weights, np.float64)
    return np.asarray(array / array.sum())


def distance(first: Floats, second: Floats) -> float:
    """Return the total variation distance."""
    return float(np.abs(first - second).sum()) / 2


def drawn(mechanism: Mechanism, n: int, truth: Floats, seed: int) -> Aggregate:
    """Draw the counts of n people's reports from their law."""
    law = count_law_for(mechanism)
    assert law is not None
    return Aggregate(mechanism.hash, n, law(np.random.default_rng(seed), n, truth))


# -- the table of truths on which the method was developed ---------------------------------------------------------

VALUES = 1000


def table(repetitions: int = 20) -> None:
    """Print the total variation of Hadamard response over 1,000 values with a single block of columns."""
    rank = np.arange(1, VALUES + 1)
    truths = {
        "Zipf 1": normal(1 / rank),
        "Zipf 1.5": normal(rank**-1.5),
        "geometric .95": normal(0.95**rank),
        "64 of 1,000 equal": normal(rank <= 64),
        "uniform": normal(np.ones(VALUES)),
    }
    wrong = cells = 0
    print(f"Hadamard response, k = {VALUES:,}: total variation of simplex, bayes, best ({repetitions} repetitions)")
    for name, truth in truths.items():
        parts = []
        for epsilon in (1, 3):
            mechanism = HadamardResponse(sf.Domain.range(VALUES), epsilon, block_size=1024)
            for n in (10**5, 10**6, 10**7):
                errors = []
                for seed in range(repetitions):
                    best = sf.estimate(mechanism, drawn(mechanism, n, truth, seed), "best")
                    bayes = sf.estimate(mechanism, best.counts, "bayes").frequencies
                    row = [distance(p, truth) for p in (best.nearest, bayes, best.frequencies)]
                    wrong += row[2] > min(row[:2])
                    cells += 1
                    errors.append(row)
                parts.append(" → ".join(f"{error:.3f}" for error in np.mean(errors, axis=0)))
        print(f"  {name:18} | " + " | ".join(parts), flush=True)
    print(f"  best chose the worse method in {wrong} of {cells} collections")


# -- truths on which it was not tuned ------------------------------------------------------------------------------


def histograms() -> Floats:
    """Return a histogram like those of DPBench: log-normal heights in runs of different lengths, many empty bins."""
    generator = np.random.default_rng(2016)
    heights: list[float] = []
    while len(heights) < 1024:
        length = int(generator.geometric(1 / 12))
        level = 0.0 if generator.random() < 0.4 else float(np.exp(2 * generator.standard_normal()))
        heights += [level] * length
    return normal(np.array(heights[:1024]) * generator.gamma(4, 0.25, 1024))


def kosarak() -> Floats:
    """Return the clicks on the 1,000 most visited pages of Kosarak, or a stand-in."""
    folder = data_folder()
    if folder is None or not (folder / "kosarak_page_counts.npz").exists():
        return normal((np.arange(1, 1001) + 2.0) ** -1.3)
    counts = np.load(folder / "kosarak_page_counts.npz")["stratified_full_estimate"]
    return normal(counts[np.argsort(-counts, kind="stable")[:1000]])


def msnbc() -> Floats:
    """Return the page views of the 17 categories of MSNBC, or a stand-in."""
    folder = data_folder()
    if folder is None or not (folder / "msnbc_category_counts.csv").exists():
        return normal(np.arange(1, 18) ** -1.0)
    rows = np.genfromtxt(folder / "msnbc_category_counts.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    name = next(name for name in rows.dtype.names if "view" in name.lower())
    return normal(rows[name])


def gowalla() -> Floats:
    """Return the map of check-ins, with five by five cells joined, in which 1,750 cells remain."""
    grid = us_grid(data_folder()).value
    return normal(grid.reshape(25, 5, 70, 5).sum(axis=(1, 3)).ravel())


def mixture() -> Floats:
    """Return a mixture: a third of the people on 5 values, a third on 100 values, a third on all 800 values."""
    rank = np.arange(800)
    generator = np.random.default_rng(7)
    parts = normal(rank < 5) + normal((rank >= 5) & (rank < 105)) + normal(np.ones(800))
    return normal(generator.permutation(parts))


def mechanisms(size: int, epsilon: float) -> dict[str, Mechanism]:
    """Return one mechanism of each family: blocks of tens of values, and a quarter of the values protected."""
    domain = sf.Domain.range(size)
    block = np.arange(size) // max(2, size // 20)
    high = list(range(0, size, 4))
    return {
        "Hadamard": HadamardResponse(domain, epsilon),
        "cyclic": CyclicDesign(domain, epsilon),
        "subset": SubsetSelection(domain, epsilon),
        "blocks": BlockMechanism.for_policy(sf.Blocks(domain, block, epsilon)),
        "high-low": sf.design(sf.HighLow(domain, high, epsilon)),
    }


def held_out(repetitions: int = 5) -> None:
    """Print the ratios to simplex for five truths and five mechanisms, and how many are worse by more than 2%."""
    truths = {
        "DPBench-like": histograms(),
        "Kosarak": kosarak(),
        "MSNBC": msnbc(),
        "Gowalla": gowalla(),
        "mixture": mixture(),
    }
    print(f"ratio to simplex: total variation and squared error of bayes and best ({repetitions} repetitions)")
    print(f"  {'truth':13} {'mechanism':10} {'ε':>2} {'n':>9} {'simplex':>8}  bayes TV  sq   best TV  sq   chose bayes")
    worse = {("bayes", "TV"): 0, ("bayes", "sq"): 0, ("best", "TV"): 0, ("best", "sq"): 0}
    wrong = cells = collections = 0
    for name, truth in truths.items():
        for epsilon in (1, 3):
            for which, mechanism in mechanisms(len(truth), epsilon).items():
                for n in (30_000, 1_000_000):
                    errors, chosen = [], 0
                    for seed in range(repetitions):
                        best = sf.estimate(mechanism, drawn(mechanism, n, truth, seed), "best")
                        bayes = sf.estimate(mechanism, best.counts, "bayes").frequencies
                        assert best.choice is not None
                        chosen += best.choice.method == "bayes"
                        estimates = (best.nearest, bayes, best.frequencies)
                        row = [distance(p, truth) for p in estimates]
                        wrong += row[2] > min(row[:2]) + 1e-12
                        collections += 1
                        errors.append([row, [float(np.sum((p - truth) ** 2)) for p in estimates]])
                    simplex, *others = np.mean(errors, axis=0).T
                    ratios = [other / simplex for other in others]
                    for method, ratio in zip(("bayes", "best"), ratios, strict=True):
                        for kind, number in zip(("TV", "sq"), ratio, strict=True):
                            worse[method, kind] += number > 1.02
                    cells += 1
                    shown = "  ".join(f"{tv:6.3f} {squared:6.3f}" for tv, squared in ratios)
                    head = f"  {name:13} {which:10} {epsilon:>2} {n:>9,} {simplex[0]:8.4f}"
                    print(f"{head}  {shown}  {chosen}/{repetitions}", flush=True)
    for (method, kind), number in worse.items():
        print(f"  {method}: {number} of {cells} cells worse by more than 2% in {kind}")
    print(f"  best chose the worse method in {wrong} of {collections} collections")


# -- maps ----------------------------------------------------------------------------------------------------------

PEOPLE = 3_671_812


def maps() -> None:
    """Print the error on the map of check-ins at ε = 1, with a prior of all cells and one that neighbours share."""
    grid = us_grid(data_folder()).value
    truth = normal(grid.ravel())
    rows, columns = grid.shape
    domain = sf.Domain.grid(rows, columns)
    row, column = np.divmod(np.arange(rows * columns), columns)
    print("map of check-ins, ε = 1: total variation of simplex, bayes, bayes with smooth=True, best with smooth=True")
    for down, across in ((1, 1), (5, 7), (25, 35), (25, 70)):
        if down == 1:
            mechanism: Mechanism = SubsetSelection(domain, 1)
        else:
            labels = row // (rows // down) * across + column // (columns // across)
            mechanism = BlockMechanism.for_policy(sf.Blocks(domain, labels, 1))
        counts = drawn(mechanism, PEOPLE, truth, 1)
        start = time.perf_counter()
        errors = [sf.estimate(mechanism, counts, "simplex"), sf.estimate(mechanism, counts, "bayes")]
        middle = time.perf_counter()
        errors += [sf.estimate(mechanism, counts, method, smooth=True) for method in ("bayes", "best")]
        seconds = time.perf_counter() - middle
        shown = " → ".join(f"{distance(estimate.frequencies, truth):.4f}" for estimate in errors)
        name = "LDP" if down == 1 else f"{down * across:,} blocks"
        print(f"  {name:13} {shown}  ({middle - start:.1f} s, {seconds:.1f} s smooth)", flush=True)


# -- intervals -----------------------------------------------------------------------------------------------------


def coverage() -> None:
    """Print the coverage of 95% intervals by the true count, for rare values among 50,000 people."""
    surveys = {"bayes": 1500, "best": 150}
    classes = {0: 20, 1: 20, 5: 20, 20: 20, 100: 15}
    rare = np.repeat(list(classes), list(classes.values()))
    truth = normal(np.append(rare, np.full(5, (50_000 - rare.sum()) / 5)))
    domain = sf.Domain.range(len(truth))
    chosen: dict[str, Mechanism] = {
        "Hadamard, ε = 1": HadamardResponse(domain, 1),
        "subset, ε = 2": SubsetSelection(domain, 2),
        "randomized response, ε = 6": RandomizedResponse(domain, 6),
    }
    print("coverage of 95% intervals (and their median length) by true count among 50,000 people")
    for name, mechanism in chosen.items():
        for method, number in surveys.items():
            hits, lengths, empty = np.zeros(len(truth)), [], 0
            for seed in range(number):
                low, high = sf.estimate(mechanism, drawn(mechanism, 50_000, truth, seed), method).interval()
                hits += (low <= truth) & (truth <= high)
                lengths.append(high - low)
                empty += int(np.sum(low >= high))
            median = np.median(lengths, axis=0)[:-5]
            shown = ", ".join(
                f"{count}: {hits[:-5][rare == count].mean() / number:.4f} ({np.median(median[rare == count]):.2g})"
                for count in classes
            )
            print(f"  {name:27} {method:5} {number} surveys, {shown}; empty: {empty}", flush=True)


# -- many values ---------------------------------------------------------------------------------------------------


def large() -> None:
    """Print the time and the memory of estimates over 2^20 values."""
    size = 2**20
    truth = normal(np.arange(1, size + 1) ** -1.0)
    mechanism = HadamardResponse(sf.Domain.range(size), 1)
    counts = drawn(mechanism, 10**8, truth, 1)
    for method in ("simplex", "bayes", "best"):
        start, processor = time.perf_counter(), time.process_time()
        estimate = sf.estimate(mechanism, counts, method)
        seconds, processor = time.perf_counter() - start, time.process_time() - processor
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        error = distance(estimate.frequencies, truth)
        head = f"2^20 values, {method:8} {seconds:6.2f} s, {processor:.2f} s of a processor"
        print(f"{head}, peak {memory:.2f} GB, total variation {error:.4f}", flush=True)


PARTS: dict[str, Callable[[], None]] = {
    "table": table,
    "held-out": held_out,
    "maps": maps,
    "coverage": coverage,
    "large": large,
}


def main(names: Sequence[str] = ()) -> None:
    """Run the parts with these names, or all."""
    for name in names or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
