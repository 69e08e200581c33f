"""Compare designs for a question with published mechanisms: means and distribution functions.

    python -m benchmarks.questions [--quick] [--data FOLDER] [--seconds S] [TABLE ...]

The tables are ``means``, ``coverage``, ``distribution``, ``shapes`` and ``widths``, all by default. The output is
Markdown. All errors are exact, except those of ``coverage`` and ``shapes``, which draw counts of reports from their law
with fixed seeds.

``--quick`` uses smaller domains, fewer repetitions and short searches. ``--data`` names the folder with the census data
set Adult (``adult.parquet``); without it, the ages are invented. ``--seconds`` limits each search; longer searches give
tighter bounds.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression
from scipy.stats import beta, lognorm, norm

import sfumato as sf
from benchmarks.baselines.levels import Haar, Hierarchy, LevelSampling
from benchmarks.baselines.means import Geometric, Hybrid, OneBit, Piecewise, SteepBit
from benchmarks.baselines.square_wave import SquareWave, reconstruct
from sfumato.datasets import data_folder
from sfumato.mechanisms import Mechanism, count_law_for

Floats = npt.NDArray[np.float64]

#: People in the comparison of means and of distribution functions.
PEOPLE, MANY_PEOPLE = 30_000, 100_000
#: Ages in Adult; the oldest age stands for all greater ones.
AGES = range(17, 91)
#: Fan-outs of trees that are compared; a tree with the fan-out k has one level and is subset selection.
FANOUTS = (2, 3, 4, 5, 8, 16, 32)
#: Time limit of each search in a quick run.
_QUICK_SECONDS = 2.0
#: Bins of the coarse design that is compared on finer domains.
COARSE = 64


def main(arguments: Sequence[str] | None = ("--quick",)) -> None:
    """Print the tables that the arguments name, all by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables: dict[str, Callable[[argparse.Namespace], None]] = {
        "means": means,
        "coverage": coverage,
        "distribution": distribution,
        "shapes": shapes,
        "widths": widths,
    }
    parser.add_argument(
        "tables", nargs="*", choices=[*tables, []], metavar="TABLE", help="tables to print, all by default"
    )
    parser.add_argument("--quick", action="store_true", help="use smaller domains and fewer repetitions")
    parser.add_argument("--data", type=Path, help="folder with adult.parquet")
    parser.add_argument("--seconds", type=float, help="time limit of each search for a better mechanism and a bound")
    options = parser.parse_args(arguments)
    if options.quick and options.seconds is None:
        options.seconds = _QUICK_SECONDS
    for name in options.tables or tables:
        start = time.perf_counter()
        tables[name](options)
        print(f"({name}: {time.perf_counter() - start:.0f} s)\n", flush=True)


def row(*cells: object) -> None:
    """Print one row of a Markdown table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def header(*cells: object) -> None:
    """Print the first two rows of a Markdown table."""
    row(*cells)
    row(*("---" for _ in cells))


# -- means -----------------------------------------------------------------------------------------------------------


def ages(folder: Path | None) -> tuple[str, Floats]:
    """Return a description of the people, and the share of each age."""
    path = None if folder is None else folder / "adult.parquet"
    if path is not None and path.exists():
        import pyarrow.parquet as pq

        counts = np.bincount(pq.read_table(path, columns=["age"])["age"].to_numpy(), minlength=AGES.stop)[AGES.start :]
        return f"ages of {counts.sum():,} people in Adult", counts / counts.sum()
    years = np.arange(len(AGES))
    shares = (years + 2.0) ** 1.2 * np.exp(-years / 11)
    return "invented ages, because the folder has no adult.parquet", shares / shares.sum()


def age_policies(quick: bool) -> Iterator[tuple[str, sf.Policy, float, bool]]:
    """Yield a label, the policy, its ε (per year for metrics), and whether it is a metric."""
    domain = sf.Domain(list(AGES))
    levels = (Fraction(1),) if quick else (Fraction(1, 2), Fraction(1), Fraction(2))
    for epsilon in levels:
        yield f"Uniform, ε = {float(epsilon):g}", sf.Uniform(domain, epsilon), float(epsilon), False
    for unit, years in (("10 years", 10), ("year", 1)):
        for epsilon in levels:
            policy = sf.Metric(domain, "absolute", epsilon / years)
            yield f"Metric, ε = {float(epsilon):g} per {unit}", policy, float(epsilon / years), True


def mean_baselines(epsilon: float, metric: bool) -> dict[str, Any]:
    """Return the published mechanisms for the mean age, by name."""
    values = np.array(AGES, dtype=np.float64)
    if metric:
        return {"one bit": SteepBit(values, epsilon), "geometric": Geometric(values, epsilon)}
    return {kind: mechanism(values, epsilon) for kind, mechanism in _UNIFORM_MEANS.items()}


_UNIFORM_MEANS = {"one bit": OneBit, "piecewise": Piecewise, "hybrid": Hybrid}


def means(options: argparse.Namespace) -> None:
    """Print standard errors of a mean age."""
    source, shares = ages(data_folder(options.data))
    numbers = np.array(AGES, dtype=np.float64)
    print(f"## Mean age\n\nStandard errors of the mean in years, from n = {PEOPLE:,} reports; {source}.")
    print("Published mechanisms have their published scores; in brackets are the best unbiased scores for the same")
    print("reports at this distribution. Sfumato's design expects the uniform distribution by default; the next column")
    print("is the design that expects this distribution. The bound holds for all mechanisms at this distribution. The")
    print(
        "gap is the excess of the squared error over the bound, of each design at the distribution that it expects.\n"
    )
    names = ("one bit", "piecewise", "hybrid", "geometric")
    header("policy", *names, "Sfumato", "prior known", "bound", "gap", "gap, prior known")
    for label, policy, epsilon, metric in age_policies(options.quick):
        published = {
            name: f"{_error(getattr(baseline, 'published_variance', baseline.variance)(shares)):.4f}"
            f" ({_error(baseline.least_variance(shares)):.4f})"
            for name, baseline in mean_baselines(epsilon, metric).items()
        }
        plans = [
            sf.plan(policy, PEOPLE, question=sf.Mean(), prior=prior, max_seconds=options.seconds)
            for prior in (None, shares)
        ]
        errors = [_error(plan.best.mechanism.estimator.variance(numbers, shares)) for plan in plans]
        designs = [f"{error:.4f}, {plan.best.name}" for error, plan in zip(errors, plans, strict=True)]
        bound = "-" if plans[1].best.bound is None else f"{math.sqrt(plans[1].best.bound):.4f}"
        row(label, *(published.get(name, "-") for name in names), *designs, bound, *map(gap, plans))
    print()


def gap(plan: sf.Plan) -> str:
    """Return the excess of the squared error of a plan's best row over its bound."""
    best = plan.best
    return "-" if best.bound is None else f"{plan.error(best) / best.bound - 1:.2%}"


def _error(variance: float) -> float:
    """Return the standard error of a mean of reports."""
    return math.sqrt(variance / PEOPLE)


def coverage(options: argparse.Namespace) -> None:
    """Print the share of intervals that contain the true mean."""
    source, shares = ages(data_folder(options.data))
    repetitions = 2_000 if options.quick else 20_000
    print(f"## Coverage\n\n95% intervals of the mean age from n = {PEOPLE:,} reports, {repetitions:,} repetitions")
    print(f"drawn from the law of the counts; {source}.")
    print("The last column has normal intervals whose variance is that of the scores of the reports.\n")
    header("policy", "mechanism", "coverage", "mean length", "intervals computed", "coverage, normal")
    for label, policy, _, _ in age_policies(options.quick):
        mechanism = sf.design(policy, PEOPLE, question=sf.Mean(), max_seconds=options.seconds)
        share, length, computed, normal = mean_coverage(mechanism, shares, repetitions)
        row(label, mechanism.name, f"{share:.2%}", f"{length:.3f}", f"{computed:,}", f"{normal:.2%}")
    print()


def mean_coverage(mechanism: Mechanism, shares: Floats, repetitions: int) -> tuple[float, float, int, float]:
    """Return the coverage of 95% intervals of the mean age, their mean length, their number, and that of normal ones.

    Equal counts have equal intervals. The interval is computed for every estimate between 1.5 and 2.5 standard errors
    from the truth. Of the others, 200 are computed to confirm that all nearer ones cover the truth and no others do.
    """
    numbers = np.array(AGES, dtype=np.float64)
    truth = float(shares @ numbers)
    counts, times = np.unique(counts_of(mechanism, shares, PEOPLE, repetitions), axis=0, return_counts=True)
    estimator: Any = mechanism.estimator
    scores = estimator.output_scores(numbers)
    means = counts @ scores / PEOPLE
    errors = np.abs(means - truth)
    distance = errors / _error(estimator.variance(numbers, shares))
    normal = errors <= norm.ppf(0.975) * np.sqrt((counts @ scores**2 / PEOPLE - means**2) / PEOPLE)
    covers = distance < 2
    near = (distance > 1.5) & (distance < 2.5)
    sample = np.random.default_rng(19).permutation(np.flatnonzero(~near))[:200]
    lengths = []
    for i in [*np.flatnonzero(near), *sample]:
        low, high = _mean_interval(mechanism, counts[i])
        inside = low <= truth <= high
        assert near[i] or inside == covers[i], "an interval is much longer or shorter than four standard errors"
        covers[i] = inside
        lengths.append(high - low)
    share, normal_share = (float(times @ inside / repetitions) for inside in (covers, normal))
    return share, float(np.mean(lengths[-len(sample) :])), len(lengths), normal_share


def _mean_interval(mechanism: Mechanism, counts: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Return the 95% interval of the mean from counts of reports."""
    estimate = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, PEOPLE, counts), "unbiased")
    low, high = estimate.mean().interval(0.95)
    return float(low), float(high)


def counts_of(mechanism: Mechanism, shares: Floats, n: int, repetitions: int) -> npt.NDArray[np.int64]:
    """Return counts of n reports drawn from their law, one row per repetition."""
    law = count_law_for(mechanism)
    assert law is not None
    generator = np.random.default_rng(18)
    return np.array([law(generator, n, shares) for _ in range(repetitions)])


# -- distribution functions ------------------------------------------------------------------------------------------


def level_samplings(k: int, epsilon: float) -> Iterator[tuple[str, LevelSampling]]:
    """Yield the best tree with each oracle, the best one with optimized shares, and wavelets, with their names."""
    workload = np.tri(k - 1, k)
    fanouts = [fanout for fanout in FANOUTS if fanout < k]
    for oracle in ("unary", "subset", "hadamard"):
        trees = [Hierarchy(k, fanout, epsilon, oracle) for fanout in fanouts]
        best = min(trees, key=lambda tree: tree.error(workload))
        yield f"tree, {oracle}, fan-out {best.fanout}", best
        if oracle == "subset":
            optimized = [(tree.fanout, tree.optimized(workload)) for tree in trees]
            fanout, tree = min(optimized, key=lambda pair: pair[1].error(workload))
            yield f"tree, subset, fan-out {fanout}, optimized shares", tree
    wavelet = Haar(k, epsilon)
    yield "Haar wavelet", wavelet
    yield "Haar wavelet, optimized shares", wavelet.optimized(workload)


def distribution(options: argparse.Namespace) -> None:
    """Print the expected total squared error of distribution functions."""
    print(
        f"## Distribution function\n\nUniform policy, ε = 1. n·E|F̂ - F|² of unbiased estimates, n = {MANY_PEOPLE:,} for"
    )
    print("the last column: the root mean squared error of a point of the function, at the uniform distribution.\n")
    for k in (16, 64) if options.quick else (16, 64, 128, 1024):
        policy = sf.Uniform(sf.Domain.range(k), 1)
        workload, skewed = np.tri(k - 1, k), bins(beta(5, 2).cdf, k)
        plan = sf.plan(policy, MANY_PEOPLE, question=sf.Distribution(), max_seconds=options.seconds)
        ours = plan.best.mechanism
        reference = _workload_error(ours, workload, np.full(k, 1 / k))
        header(f"k = {k:,}", "uniform", "relative", "Beta(5, 2)", "error of a point")

        def show(name: str, uniform: float, at_beta: float, k: int = k, reference: float = reference) -> None:
            point = math.sqrt(uniform / MANY_PEOPLE / (k - 1))
            row(name, f"{uniform:,.1f}", f"{uniform / reference:.2f}", f"{at_beta:,.1f}", f"{point:.5f}")

        subset = sf.design(policy, mechanism="subset")
        for name, mechanism in (("subset selection", subset), (f"Sfumato: {plan.best.name}", ours)):
            uniform, at_beta = (_workload_error(mechanism, workload, p) for p in (np.full(k, 1 / k), skewed))
            show(name, uniform, at_beta)
        for name, sampling in level_samplings(k, 1):
            show(name, sampling.error(workload), sampling.error(workload, skewed))
        bound = plan.best.bound
        print(f"\nGap of Sfumato's design to the bound: {gap(plan)}; bound {_shown(bound, MANY_PEOPLE)}.\n")


def _shown(bound: float | None, n: int) -> str:
    """Return n times a bound, or a dash."""
    return "-" if bound is None else f"{n * bound:,.1f}"


def _workload_error(mechanism: Mechanism, workload: Floats, shares: Floats) -> float:
    """Return n times the expected total squared error of the answers."""
    return float(np.sum((workload @ mechanism.estimator.covariance(shares)) * workload))


# -- distances after post-processing ---------------------------------------------------------------------------------


def bins(function: Callable[[Floats], Floats], k: int) -> Floats:
    """Return the probabilities of k equal bins of [0, 1] for a distribution function, conditional on [0, 1]."""
    shares = np.diff(function(np.linspace(0, 1, k + 1)))
    return np.asarray(shares / shares.sum())


def shape_bins(k: int) -> dict[str, Floats]:
    """Return three shapes on k bins: Beta(5, 2), incomes with round numbers, and two bells."""
    incomes = 0.7 * bins(lognorm(s=0.7, scale=0.2).cdf, k)
    rounds, weights = np.arange(1, 10) / 20, 1 / np.arange(2, 11)
    np.add.at(incomes, (rounds * k).astype(int), 0.3 * weights / weights.sum())
    bells = 0.6 * bins(norm(0.3, 0.08).cdf, k) + 0.4 * bins(norm(0.75, 0.05).cdf, k)
    return {"Beta(5, 2)": bins(beta(5, 2).cdf, k), "incomes": incomes, "two bells": bells}


def distances(estimated: Floats, truth: Floats) -> tuple[float, float]:
    """Return the Wasserstein distance on [0, 1] and the Kolmogorov distance of two distribution functions."""
    difference = np.abs(estimated - np.cumsum(truth))
    return float(difference.mean()), float(difference.max())


def isotonic(frequencies: Floats) -> Floats:
    """Return the nearest increasing function to the estimated distribution function, within [0, 1]."""
    return np.asarray(np.clip(isotonic_regression(np.cumsum(frequencies)).x, 0, 1))


def shapes(options: argparse.Namespace) -> None:
    """Print distances between estimated and true distributions."""
    epsilon, repetitions = 1, 5 if options.quick else 20
    print(f"## Distributions after post-processing\n\nUniform policy, ε = {epsilon}, n = {MANY_PEOPLE:,}; means of")
    print(f"{repetitions} repetitions, W1 and Kolmogorov distance in thousandths.")
    print("EM and EMS are biased. The isotonic function is the projection of the unbiased one.\n")
    for k in (64,) if options.quick else (64, 1024):
        ours, coarse = (
            sf.design(
                sf.Uniform(sf.Domain.range(size), epsilon),
                MANY_PEOPLE,
                question=sf.Distribution(),
                max_seconds=options.seconds,
            )
            for size in (k, COARSE)
        )
        wave = SquareWave(k, epsilon)
        informative = max(
            (SquareWave(k, epsilon, reach) for reach in range(wave.reach + 1)),
            key=lambda other: other.mutual_information(np.full(k, 1 / k)),
        )
        shown = shape_bins(k)
        header(f"k = {k:,}", *(f"{shape}, {unit}" for shape in shown for unit in ("W1", "KS")))
        table: dict[str, list[float]] = {}
        for shape in shown.values():
            methods = chain(
                wave_functions("published width", wave, shape, repetitions),
                wave_functions("most informative width", informative, shape, repetitions),
                design_functions(ours, shape, repetitions),
                interpolated_functions(coarse, shape, repetitions) if k > COARSE else [],
            )
            for name, functions in methods:
                pairs = [distances(function, shape) for function in functions]
                table.setdefault(name, []).extend(1000 * np.mean(pairs, axis=0))
        for name, cells in table.items():
            row(name, *(f"{cell:.2f}" for cell in cells))
        print()


def wave_functions(width: str, wave: SquareWave, shape: Floats, repetitions: int) -> Iterator[tuple[str, list[Floats]]]:
    """Yield the distribution functions that EM and EMS reconstruct from reports of the square wave."""
    generator = np.random.default_rng(20)
    law = wave.law(shape)
    draws = [generator.multinomial(MANY_PEOPLE, law / law.sum()) for _ in range(repetitions)]
    for name, smooth in (("EM", False), ("EMS", True)):
        tolerance = 1e-3 if smooth else 1e-3 * math.exp(wave.epsilon)
        fits = [
            reconstruct(counts, wave.law, wave.adjoint, wave.k, tolerance=tolerance, smooth=smooth) for counts in draws
        ]
        yield f"square wave, {width}, {name}", [np.cumsum(fit) for fit in fits]


def design_functions(mechanism: Mechanism, shape: Floats, repetitions: int) -> Iterator[tuple[str, list[Floats]]]:
    """Yield distribution functions from Sfumato's design with as many values as the shape."""
    estimator: Any = mechanism.estimator
    draws = counts_of(mechanism, shape, MANY_PEOPLE, repetitions)
    unbiased = [estimator.frequencies(counts / MANY_PEOPLE) for counts in draws]
    yield "Sfumato, unbiased", [np.cumsum(frequencies) for frequencies in unbiased]
    yield "Sfumato, isotonic", [isotonic(frequencies) for frequencies in unbiased]
    if mechanism.report_format.is_histogram:  # counts of bits have no likelihood
        fits = [estimator.fit(counts / MANY_PEOPLE, MANY_PEOPLE) for counts in draws]
        yield "Sfumato, most likely", [np.cumsum(fit.frequencies) for fit in fits]
        smooth = [reconstruct(c, estimator.expected_counts, estimator.adjoint, len(shape)) for c in draws]
        yield "Sfumato, EMS", [np.cumsum(fit) for fit in smooth]


def interpolated_functions(mechanism: Mechanism, shape: Floats, repetitions: int) -> Iterator[tuple[str, list[Floats]]]:
    """Yield distribution functions from a design with fewer, wider bins, with straight lines between their ends."""
    k, size = len(shape), len(mechanism.domain)
    draws = counts_of(mechanism, shape.reshape(size, -1).sum(axis=1), MANY_PEOPLE, repetitions)
    ends, wide_ends = np.arange(1, k + 1) / k, np.arange(size + 1) / size
    functions = [isotonic(mechanism.estimator.frequencies(counts / MANY_PEOPLE)) for counts in draws]
    yield f"Sfumato on {size} bins, isotonic", [np.interp(ends, wide_ends, [0, *function]) for function in functions]


def widths(options: argparse.Namespace) -> None:  # noqa: ARG001
    """Print the published width of the square wave, and the width with the greatest mutual information."""
    k = 1024
    print(
        "## Width of the square wave\n\nHalf width b as a share of the domain. The published b maximizes a bound on the"
    )
    print(f"mutual information; the exact information is at the uniform distribution of k = {k:,} bins.\n")
    header("ε", "published b", "most informative b", "information at the published b, relative to the greatest")
    uniform = np.full(k, 1 / k)
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        information = [SquareWave(k, epsilon, reach).mutual_information(uniform) for reach in range(k // 2)]
        best, published = int(np.argmax(information)), SquareWave(k, epsilon)
        share = information[published.reach] / information[best]
        row(epsilon, f"{SquareWave.published_width(epsilon):.4f}", f"{best / k:.4f}", f"{share:.4f}")
    print()


if __name__ == "__main__":
    main(None)
