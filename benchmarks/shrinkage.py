"""Measure the methods "bayes" and "best" against "simplex": total variation, squared error, coverage and time.

Usage: ``python -m benchmarks.shrinkage [table] [held-out] [new] [ordered] [small] [maps] [coverage] [posterior] [many]
[large]``; without names, all parts run. The part "coverage" takes half an hour on two processors.
The public data come from the folder in SFUMATO_DATA; without it, invented data stand in.
"""

from __future__ import annotations

import gzip
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

import sfumato as sf
from sfumato.collecting import Aggregate
from sfumato.datasets import census_column, data_folder, us_grid
from sfumato.estimation.empirical_bayes import Shrinkage, fit_posterior
from sfumato.mechanisms import (
    BlockMechanism,
    CyclicDesign,
    HadamardResponse,
    Mechanism,
    RandomizedResponse,
    SubsetSelection,
    confidence_limits,
    count_law_for,
)

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
    name = next(name for name in rows.dtype.names or () if "view" in name.lower())
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


def new_truths() -> dict[str, Floats]:
    """Return truths that were estimated for the first time after the rule of "best" was fixed."""
    folder = data_folder()
    levels, countries = (census_column(folder, name).value for name in ("education", "native-country"))
    world = normal(np.exp(2 * np.random.default_rng(3).standard_normal(1024)))
    if folder is not None and (folder / "gowalla_world_256x256.npz").exists():
        world = normal(
            np.load(folder / "gowalla_world_256x256.npz")["hist"].reshape(32, 8, 32, 8).sum(axis=(1, 3)).ravel()
        )
    rank = np.arange(1, 1501)
    return {
        "education": normal(np.unique(levels, return_counts=True)[1]),
        "countries": normal(np.unique(countries, return_counts=True)[1]),
        "visits": normal(msnbc_lengths()),
        "world map": world,
        "surnames": normal((rank + 20.0) ** -1.2),
    }


def ordered_truths() -> dict[str, Floats]:
    """Return truths that were estimated for the first time after blocks could have their own priors.

    Their values are in an order that means something, so blocks of consecutive values look different.
    """
    folder = data_folder()
    generator = np.random.default_rng(8)
    jobs, families = ("education", "occupation"), ("relationship", "race", "sex")
    pages = generator.permutation((np.arange(1, 901) + 2.0) ** -1.3)
    europe = np.exp(2 * generator.standard_normal(1200))
    moves = np.outer(msnbc(), msnbc()).ravel()
    if folder is not None and (folder / "kosarak_page_counts.npz").exists():
        pages = np.load(folder / "kosarak_page_counts.npz")["stratified_full_estimate"][1:901]
    if folder is not None and (folder / "gowalla_world_256x256.npz").exists():
        europe = np.load(folder / "gowalla_world_256x256.npz")["hist"][176:216, 120:150].ravel()
    if folder is not None and (folder / "msnbc_sequences.txt.gz").exists():
        moves = np.zeros(17**2)
        with gzip.open(folder / "msnbc_sequences.txt.gz", "rt") as lines:
            for line in lines:
                pages_of_visit = np.fromstring(line, np.int64, sep=" ") - 1
                np.add.at(moves, pages_of_visit[:-1] * 17 + pages_of_visit[1:], 1.0)
    return {
        "families": normal(census_table(families)),
        "jobs": normal(census_table(jobs)),
        "moves": normal(moves),
        "pages": normal(pages),
        "Europe": normal(europe),
    }


def census_table(names: Sequence[str]) -> Floats:
    """Return the number of people in each cell of the table of some columns of the Adult data."""
    columns = [np.unique(census_column(data_folder(), name).value, return_inverse=True)[1] for name in names]
    shape = [int(column.max()) + 1 for column in columns]
    cells = np.ravel_multi_index(tuple(columns), tuple(shape))
    return np.asarray(np.bincount(cells, minlength=int(np.prod(shape))), np.float64)


def msnbc_lengths() -> Floats:
    """Return how many visits of MSNBC have 1 to 60 pages, or a stand-in."""
    folder = data_folder()
    if folder is None or not (folder / "msnbc_sequences.txt.gz").exists():
        return normal(0.8 ** np.arange(60) + 0.002)
    with gzip.open(folder / "msnbc_sequences.txt.gz", "rt") as lines:
        lengths = np.array([len(line.split()) for line in lines])
    return np.asarray(np.bincount(np.clip(lengths, 1, 60), minlength=61)[1:], np.float64)


def held_out(repetitions: int = 10) -> None:
    """Print the errors for five truths that were estimated before the rule of "best" was fixed, with other seeds."""
    truths = {
        "MSNBC": msnbc(),
        "DPBench-like": histograms(),
        "mixture": mixture(),
        "Kosarak": kosarak(),
        "Gowalla": gowalla(),
    }
    compare(truths, repetitions)


def new(repetitions: int = 10) -> None:
    """Print the errors for five truths that were not estimated before the rule of "best" was fixed."""
    compare(new_truths(), repetitions)


def ordered(repetitions: int = 10) -> None:
    """Print the errors for five truths in a meaningful order."""
    compare(ordered_truths(), repetitions)


def compare(truths: dict[str, Floats], repetitions: int) -> None:
    """Print the ratios to simplex for truths and five mechanisms, and how many are worse by more than 2%."""
    print(f"ratio to simplex: total variation and squared error of bayes and best ({repetitions} repetitions)")
    print(f"  {'truth':13} {'mechanism':10} {'ε':>2} {'n':>9} {'simplex':>8}  bayes TV  sq   best TV  sq   chose bayes")
    worse = {("bayes", "TV"): 0, ("bayes", "sq"): 0, ("best", "TV"): 0, ("best", "sq"): 0}
    wrong = missed = cells = collections = 0
    for name, truth in truths.items():
        for epsilon in (1, 3):
            for which, mechanism in mechanisms(len(truth), epsilon).items():
                for n in (30_000, 1_000_000):
                    errors, chosen = [], 0
                    for seed in range(repetitions):
                        best = sf.estimate(mechanism, drawn(mechanism, n, truth, 100 + seed), "best")
                        bayes = sf.estimate(mechanism, best.counts, "bayes").frequencies
                        assert best.choice is not None
                        is_bayes = best.choice.method == "bayes"
                        chosen += is_bayes
                        estimates = (best.nearest, bayes, best.frequencies)
                        row = [distance(p, truth) for p in estimates]
                        wrong += is_bayes and row[1] > row[0]
                        missed += not is_bayes and row[1] < row[0]
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
    print(f"  best took bayes where simplex was closer in {wrong} of {collections} collections,", end=" ")
    print(f"and simplex where bayes was closer in {missed}")


# -- few values, few people ------------------------------------------------------------------------------------


def small(collections: int = 20) -> None:
    """Print how often "best" takes the worse method in surveys of 50 to 1,000 people about 3 to 10 values."""
    generator = np.random.default_rng(40)
    losses, gains, taken = [], [], 0
    ratios: dict[str, list[float]] = {"bayes": [], "best": []}
    for survey in range(40):
        size, n = int(generator.integers(3, 11)), round(50 * 20 ** generator.random())
        truth = generator.dirichlet(np.full(size, (0.5, 1.0, 5.0, 1e6)[survey % 4]))
        domain, epsilon = sf.Domain.range(size), (1, 2, 4)[survey % 3]
        mechanism = RandomizedResponse(domain, epsilon) if survey % 2 else SubsetSelection(domain, epsilon)
        errors = []
        for seed in range(collections):
            best = sf.estimate(mechanism, drawn(mechanism, n, truth, 1000 * survey + seed), "best")
            bayes = sf.estimate(mechanism, best.counts, "bayes").frequencies
            assert best.choice is not None
            errors.append([distance(p, truth) for p in (best.nearest, bayes, best.frequencies)])
            taken += best.choice.method == "bayes"
        means = np.mean(errors, axis=0)
        for name, mean in zip(ratios, means[1:], strict=True):
            ratios[name].append(float(mean / means[0]))
        losses += [taken_tv - min(others) for *others, taken_tv in errors if taken_tv > min(others)]
        gains += [simplex - best_tv for simplex, _, best_tv in errors]
    total = 40 * collections
    print(f"40 small surveys, {collections} collections each: bayes was taken in {taken} of {total} collections,")
    print(
        f"  the worse method in {len(losses)}; there, total variation was larger by {np.mean(losses):.4f} on average,"
    )
    print(
        f"  {np.median(losses):.4f} in the median and {max(losses):.4f} at most; below simplex by {np.mean(gains):.4f}"
    )
    for name, ratio in ratios.items():
        worse = sum(number > 1.02 for number in ratio)
        print(f"  {name}: mean error worse than that of simplex by more than 2% in {worse} of 40, ", end="")
        print(f"ratios {min(ratio):.3f} to {max(ratio):.3f}, geometric mean {np.exp(np.mean(np.log(ratio))):.3f}")


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


#: Expected numbers of people with a rare value, and all people.
RARE, RESPONDENTS = (0, 1, 5, 20, 100), 50_000
#: Number of values with each expected number of people, and of frequent values.
PER_CLASS, FREQUENT = 10, 5
#: Number of surveys that one process handles at a time, and of those whose intervals are compared with the library.
CHUNK, CHECKED = 250, 2


def rare_truth() -> Floats:
    """Return a distribution with several values in each class of rare values, and equally frequent others."""
    rare = np.repeat(RARE, PER_CLASS)
    return normal(np.append(rare, np.full(FREQUENT, (RESPONDENTS - rare.sum()) / FREQUENT)))


def rare_mechanisms() -> dict[str, Mechanism]:
    """Return the mechanisms whose intervals are compared."""
    domain = sf.Domain.range(len(RARE) * PER_CLASS + FREQUENT)
    return {
        "Hadamard, ε = 1": HadamardResponse(domain, 1),
        "subset, ε = 2": SubsetSelection(domain, 2),
        "randomized response, ε = 6": RandomizedResponse(domain, 6),
    }


def methods_for(mechanism: Mechanism) -> list[str]:
    """Return the methods of estimation that the mechanism supports; "efficient" only where it differs.

    In randomized response, "efficient" is the same as "unbiased".
    """
    methods = ["unbiased", "simplex", "mle", "bayes", "best"]
    if not isinstance(mechanism, SubsetSelection):
        methods.insert(3, "mmse")
    if isinstance(mechanism, HadamardResponse):
        methods.insert(1, "efficient")
    return methods


def survey_intervals(mechanism: Mechanism, counts: Aggregate) -> tuple[dict[str, tuple[Floats, Floats]], str]:
    """Return the 95% intervals of rare values by method, and the choice of "best".

    All methods but "efficient" widen the same limits to contain their frequencies, so the limits are computed once.
    Likewise, the prior is fitted once for "bayes" and "best".
    """
    methods, rare = methods_for(mechanism), slice(0, len(RARE) * PER_CLASS)
    estimator, uniform = mechanism.estimator, np.full(len(mechanism.domain), 1 / len(mechanism.domain))
    best = sf.estimate(mechanism, counts, "best")
    assert best.choice is not None
    frequencies = {"unbiased": np.clip(best.unbiased, 0, 1), "simplex": best.nearest, "best": best.frequencies}
    if best.choice.method == "bayes":
        frequencies["bayes"] = best.frequencies
    for method in set(methods) - {*frequencies, "efficient"}:
        prior = uniform if method == "mmse" else None
        frequencies[method] = sf.estimate(mechanism, counts, method, prior=prior).frequencies
    laws = [law.rows(np.arange(rare.stop)) for law in estimator.score_laws(best.nearest, counts.n)]
    low, high = confidence_limits(laws, best.unbiased[rare], 0.05)
    result = {
        method: (np.minimum(low, inside[rare]), np.maximum(high, inside[rare]))
        for method, inside in frequencies.items()
    }
    if "efficient" in methods:
        low, high = sf.estimate(mechanism, counts, "efficient").interval()
        result["efficient"] = low[rare], high[rare]
    return {method: result[method] for method in methods}, best.choice.method


def cover(job: tuple[str, int, int]) -> tuple[dict[str, tuple[Floats, Floats, int]], int]:
    """Return hits, lengths and the number of empty intervals by method for some surveys, and choices of "bayes"."""
    name, start, stop = job
    mechanism, truth = rare_mechanisms()[name], rare_truth()
    rare = truth[: len(RARE) * PER_CLASS]
    limits: dict[str, list[tuple[Floats, Floats]]] = {method: [] for method in methods_for(mechanism)}
    chosen = 0
    for seed in range(start, stop):
        counts = drawn(mechanism, RESPONDENTS, truth, seed)
        intervals, choice = survey_intervals(mechanism, counts)
        chosen += choice == "bayes"
        for method, pair in intervals.items():
            limits[method].append(pair)
            if seed < start + CHECKED:
                prior = np.full(len(truth), 1 / len(truth)) if method == "mmse" else None
                library = sf.estimate(mechanism, counts, method, prior=prior).interval()
                assert np.allclose(np.array(pair), np.array(library)[:, : len(rare)], rtol=0, atol=1e-9)
    result = {}
    for method, pairs in limits.items():
        low, high = np.moveaxis(np.array(pairs), 1, 0)
        hits = ((low <= rare) & (rare <= high)).sum(axis=0).astype(np.float64)
        result[method] = hits, high - low, int(np.sum(low >= high))
    return result, chosen


def coverage(surveys: int = 20_000) -> None:
    """Print the coverage of 95% intervals by the expected count, for rare values among 50,000 people.

    Counts are drawn from their law. All processors work on the surveys, each with one thread.
    """
    print(f"coverage of 95% intervals in {surveys:,} surveys by the expected count among {RESPONDENTS:,} people,")
    print("  least coverage of a single value, median length in people")
    with multiprocessing.get_context("spawn").Pool() as pool:
        for name, mechanism in rare_mechanisms().items():
            jobs = [(name, start, min(start + CHUNK, surveys)) for start in range(0, surveys, CHUNK)]
            parts = pool.map(cover, jobs, chunksize=1)
            for method in methods_for(mechanism):
                hits = sum(part[method][0] for part, _ in parts) / surveys
                lengths = np.concatenate([part[method][1] for part, _ in parts]) * RESPONDENTS
                cells = [
                    f"{count}: {row.mean():.4f}, {row.min():.4f} ({np.median(lengths[:, columns]):,.1f})"
                    for count, row, columns in zip(
                        RARE,
                        hits.reshape(len(RARE), PER_CLASS),
                        np.arange(len(hits)).reshape(len(RARE), PER_CLASS),
                        strict=True,
                    )
                ]
                empty = sum(part[method][2] for part, _ in parts)
                print(f"  {name:27} {method:9} {'; '.join(cells)}; empty: {empty}", flush=True)
            print(f"  {name:27} best chose bayes in {sum(chosen for _, chosen in parts):,} surveys", flush=True)


def posterior_intervals(surveys: int = 400) -> None:
    """Print the coverage of posterior intervals by the true count, and by how much they must be widened for 94.4%.

    One value in each class stands for a class of few values: a prior that is fitted to all values hardly notices it.
    """
    counts = np.repeat([0, 1, 5, 20, 100, 300, 600, 1000], [30, 25, 20, 15, 5, 1, 1, 1])
    truth = normal(np.append(counts, np.full(2, (50_000 - counts.sum()) / 2)))
    mechanism = HadamardResponse(sf.Domain.range(len(truth)), 1)
    distances = []
    ratios = []
    for seed in range(surveys):
        estimate = sf.estimate(mechanism, drawn(mechanism, 50_000, truth, seed))
        model = Shrinkage.of(mechanism.estimator, estimate.unbiased, estimate.nearest, 50_000)
        mean, deviation = np.zeros((2, len(truth)))
        fitted = fit_posterior(model, mechanism.domain, smooth=False)
        for part, mixture in zip(fitted.classes, fitted.mixtures, strict=True):
            mean[part], deviation[part] = mixture.mean, np.sqrt(mixture.variance)
        distances.append(np.abs(mean - truth) / np.maximum(deviation, 1e-9))
        ratios.append(deviation / estimate.standard_errors)
    print(f"posterior intervals, Hadamard, ε = 1, {surveys} surveys: coverage at ± 1.96, factor for 94.4%, length")
    for count in np.unique(counts):
        rows = np.flatnonzero(counts == count)
        needed = np.array(distances)[:, rows]
        factor = float(np.quantile(needed, 0.944)) / 1.96
        length = factor * float(np.median(np.array(ratios)[:, rows]))
        print(f"  {count:5} people: {np.mean(needed <= 1.96):.3f}, {factor:.2f}, {length:.2f} of the unbiased interval")


# -- many values ---------------------------------------------------------------------------------------------------


def many(collections: int = 3) -> None:
    """Print the choices of "best" for 2^12 to 2^17 values, more than in the truths on which its rule was chosen."""
    number = 0
    wrong: list[float] = []
    missed: list[float] = []
    print(f"many values, Hadamard response, ε = 1: total variation of simplex, bayes, best ({collections} collections)")
    for size in (2**12, 2**15, 2**17):
        rank = np.arange(1, size + 1)
        mechanism = HadamardResponse(sf.Domain.range(size), 1)
        truths = {
            "Zipf 0.7": normal(rank**-0.7),
            "Zipf 1": normal(1 / rank),
            "Zipf 1.5": normal(rank**-1.5),
            "uniform": normal(np.ones(size)),
            "1 of 16 equal": normal(rank <= size // 16),
            "1 of 256 equal": normal(rank <= size // 256),
            "log-normal": normal(np.exp(2 * np.random.default_rng(5).standard_normal(size))),
            "geometric": normal(np.exp(-20 * rank / size)),
        }
        for name, truth in truths.items():
            for people in (30, 1000, 30_000):
                errors = []
                for seed in range(collections):
                    best = sf.estimate(mechanism, drawn(mechanism, people * size, truth, 200 + seed), "best")
                    bayes = sf.estimate(mechanism, best.counts, "bayes").frequencies
                    errors.append([distance(p, truth) for p in (best.nearest, bayes, best.frequencies)])
                    simplex_tv, bayes_tv, best_tv = errors[-1]
                    number += 1
                    if best_tv > min(simplex_tv, bayes_tv):
                        (wrong if bayes_tv > simplex_tv else missed).append(best_tv / min(simplex_tv, bayes_tv))
                shown = " → ".join(f"{error:.4f}" for error in np.mean(errors, axis=0))
                print(f"  {size:7,} {name:15} {people:6,} people per value: {shown}", flush=True)
    print(f"  of {number} collections, best took bayes where simplex was closer in {len(wrong)}, ", end="")
    print(f"by at most {max(wrong, default=1.0) - 1:.1%}, and simplex where bayes was closer in {len(missed)}")


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
    "new": new,
    "ordered": ordered,
    "small": small,
    "maps": maps,
    "coverage": coverage,
    "posterior": posterior_intervals,
    "many": many,
    "large": large,
}


def main(names: Sequence[str] = ()) -> None:
    """Run the parts with these names, or all."""
    for name in names or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
