"""Coverage of intervals for rare values, and predicted against simulated errors of plans.

    python -m benchmarks.estimates [--quick] [--surveys N] [TABLE ...]

The tables are ``rare``, ``together`` and ``plans``, all by default. The output is Markdown. Counts are drawn from their
law with fixed seeds.

- ``rare``: how often the 95% interval of a value holds its true frequency, for values that 0, 1, 5, 20 and 100 of
  50,000 people expect to have, with the median length of the interval in people.
- ``together``: how often all simultaneous intervals of a survey hold.
- ``plans``: the total variation error that a plan predicts, and its mean over surveys with other seeds, in 50 settings.

``--quick`` draws 200 surveys instead of 20,000, and compares 10 settings.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt

import sfumato as sf
from sfumato.collecting import Aggregate
from sfumato.mechanisms import (
    BlockMechanism,
    HadamardResponse,
    HighLowSubset,
    Mechanism,
    RandomizedResponse,
    ScoreLaw,
    confidence_limits,
    count_law_for,
)
from sfumato.randomness import insecure_generator

Floats = npt.NDArray[np.float64]

#: Expected number of people with a rare value, and all people.
RARE, PEOPLE = (0, 1, 5, 20, 100), 50_000
#: Number of values; the first five are rare.
VALUES = 20
#: Number of surveys whose limits are computed at once.
CHUNK = 500


def main(arguments: Sequence[str] | None = ("--quick",)) -> None:
    """Print the tables that the arguments name, all by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables: dict[str, Callable[[argparse.Namespace], None]] = {"rare": rare, "together": together, "plans": plans}
    parser.add_argument("tables", nargs="*", choices=[*tables, []], metavar="TABLE", help="tables to print")
    parser.add_argument("--quick", action="store_true", help="use fewer surveys and settings")
    parser.add_argument("--surveys", type=int, help="number of surveys in the tables of coverage")
    options = parser.parse_args(arguments)
    for name in options.tables or tables:
        start = time.perf_counter()
        tables[name](options)
        print(f"({name}: {time.perf_counter() - start:.0f} s)\n", flush=True)


def row(*cells: object) -> None:
    """Print one row of a Markdown table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


# -- coverage --------------------------------------------------------------------------------------------------


def rare_truth() -> Floats:
    """Return a distribution whose first values are rare, and whose others follow a Zipf law."""
    others = 1 / np.arange(1, VALUES - len(RARE) + 1)
    shares = np.array(RARE) / PEOPLE
    return np.concatenate([shares, (1 - shares.sum()) * others / others.sum()])


def rare_mechanisms() -> dict[str, Mechanism]:
    """Return the compared mechanisms; the rare values are sensitive, or revealed where the name says so."""
    domain = sf.Domain.range(VALUES)
    return {
        "Hadamard response, ε = 1": HadamardResponse(domain, 1),
        "randomized response, ε = 8": RandomizedResponse(domain, 8),
        "high-low subset, ε = 1, sensitive": HighLowSubset(domain, list(range(10)), 1),
        "high-low subset, ε = 1, revealed": HighLowSubset(domain, list(range(10, 20)), 1),
        "blocks, ε = 2": BlockMechanism.for_policy(sf.Blocks(domain, [x % 2 for x in range(VALUES)], 2), "rr"),
    }


def rare_limits(
    mechanism: Mechanism, n: int, truth: Floats, surveys: int, chosen: npt.NDArray[np.int64], alpha: float
) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield the limits and the projected frequencies of some values, with one row per survey, in chunks."""
    law, estimator, generator = count_law_for(mechanism), mechanism.estimator, insecure_generator(1)
    assert law is not None
    for start in range(0, surveys, CHUNK):
        laws, unbiased, nearest = [], [], []
        for _ in range(min(CHUNK, surveys - start)):
            counts = law(generator, n, truth)
            unbiased.append(estimator.frequencies_of_counts(counts, n))
            nearest.append(estimator.nearest(unbiased[-1], counts / n))
            laws.append(estimator.score_laws(nearest[-1], n)[0].rows(chosen))
        stacked = ScoreLaw(*(np.concatenate([getattr(law, each.name) for law in laws]) for each in fields(ScoreLaw)))
        low, high = confidence_limits([stacked], np.array(unbiased)[:, chosen].ravel(), alpha)
        shape = (len(laws), len(chosen))
        yield low.reshape(shape), high.reshape(shape), np.array(nearest)[:, chosen]


def rare(options: argparse.Namespace) -> None:
    """Print how often intervals of rare values hold, and their median length in people."""
    surveys, truth = options.surveys or (200 if options.quick else 20_000), rare_truth()
    chosen = np.arange(len(RARE))
    print(f"Coverage of 95% intervals in {surveys:,} surveys of {PEOPLE:,} people, and median length in people.\n")
    row("mechanism", "method", *(f"{count} people" for count in RARE), "empty intervals")
    row(*["---"] * (len(RARE) + 3))
    for name, mechanism in rare_mechanisms().items():
        parts = list(rare_limits(mechanism, PEOPLE, truth, surveys, chosen, 0.05))
        low, high, projected = (np.concatenate(part) for part in zip(*parts, strict=True))
        for method in ("unbiased", "simplex"):
            if method == "simplex":  # the interval contains the estimate
                low, high = np.minimum(low, projected), np.maximum(high, projected)
            coverage = ((low <= truth[chosen]) & (truth[chosen] <= high)).mean(axis=0)
            lengths = np.median(high - low, axis=0) * PEOPLE
            cells = [f"{share:.1%} ({length:,.0f})" for share, length in zip(coverage, lengths, strict=True)]
            row(name, method, *cells, int((high <= low).sum()))


def together(options: argparse.Namespace) -> None:
    """Print how often all simultaneous intervals of a survey hold."""
    surveys = options.surveys or (100 if options.quick else 20_000)
    print(f"Share of {surveys:,} surveys in which all simultaneous 95% intervals hold.\n")
    row("mechanism", "values", "people", "truth", "all intervals hold")
    row(*["---"] * 5)
    cases = [
        ("randomized response, ε = 5", lambda k: RandomizedResponse(sf.Domain.range(k), 5), 100, 1_000),
        ("randomized response, ε = 8", lambda k: RandomizedResponse(sf.Domain.range(k), 8), 20, 400),
        ("high-low subset, ε = 1, half sensitive", half_sensitive, 20, 1_000),
        ("Hadamard response, ε = 1", lambda k: HadamardResponse(sf.Domain.range(k), 1), 100, 10_000),
    ]
    for name, build, size, n in cases:
        mechanism = build(size)
        few = surveys // 10 if name.startswith("high-low") else surveys  # its limits take longest to compute
        for shape in ("uniform", "zipf"):
            truth = shares(shape, size)
            chosen = np.arange(size)
            parts = rare_limits(mechanism, n, truth, few, chosen, 0.05 / size)
            coverage = [((low <= truth + 1e-12) & (truth <= high + 1e-12)).all(axis=1) for low, high, _ in parts]
            suffix = "" if few == surveys else f" ({few:,} surveys)"
            row(name, size, f"{n:,}", shape, f"{np.concatenate(coverage).mean():.1%}{suffix}")


def half_sensitive(size: int) -> Mechanism:
    """Return a mechanism with a noisy and a revealed half of the values."""
    return HighLowSubset(sf.Domain.range(size), list(range(size // 2)), 1)


def shares(shape: str, size: int) -> Floats:
    """Return a named distribution."""
    weights = np.ones(size) if shape == "uniform" else 1 / np.arange(1, size + 1)
    return np.asarray(weights / weights.sum())


# -- plans -----------------------------------------------------------------------------------------------------


def settings() -> list[tuple[str, sf.Policy, int, str, str]]:
    """Return 50 settings: name, policy, people, truth and method."""
    policies = {
        "uniform, k = 10, ε = 1": (sf.Uniform(sf.Domain.range(10), 1), 2_000),
        "uniform, k = 100, ε = 1": (sf.Uniform(sf.Domain.range(100), 1), 100_000),
        "uniform, k = 1,000, ε = 3": (sf.Uniform(sf.Domain.range(1_000), 3), 100_000),
        "high-low, k = 100, 20 sensitive, ε = 1": (sf.HighLow(sf.Domain.range(100), range(20), 1), 10_000),
        "10 blocks of 20, ε = 1": (sf.Blocks(sf.Domain.range(200), [x // 20 for x in range(200)], 1), 50_000),
    }
    cases = [("uniform", "simplex"), *(("zipf", method) for method in ("simplex", "unbiased", "bayes", "best"))]
    return [
        (name, policy, people, shape, method)
        for name, (policy, n) in policies.items()
        for shape, method in cases
        for people in (n, 10 * n)
    ]


def plans(options: argparse.Namespace) -> None:
    """Print predicted and simulated total variation errors."""
    listed = settings()[::5] if options.quick else settings()
    print("Total variation error: predicted by a plan, and the mean of surveys with other seeds.\n")
    row("policy", "people", "truth", "method", "mechanism", "predicted", "simulated", "ratio")
    row(*["---"] * 8)
    ratios = []
    for name, policy, n, shape, method in listed:
        best = sf.plan(policy, n, truth=shape, method=method, max_seconds=0).best
        assert best.predicted is not None
        repetitions = 20 if options.quick else 100 if method in ("unbiased", "simplex") else 50
        errors = simulated(best.mechanism, n, shares(shape, len(policy.domain)), method, repetitions)
        mean, deviation = float(np.mean(errors)), float(np.std(errors)) / repetitions**0.5
        ratios.append(best.tv / mean)
        predicted = f"{best.tv:.4f} ± {best.predicted.tv_error:.4f}"
        row(name, f"{n:,}", shape, method, best.name, predicted, f"{mean:.4f} ± {deviation:.4f}", f"{ratios[-1]:.3f}")
    print(f"\nRatios from {min(ratios):.3f} to {max(ratios):.3f} in {len(ratios)} settings.")


def simulated(mechanism: Mechanism, n: int, truth: Floats, method: str, repetitions: int) -> list[float]:
    """Return the total variation errors of surveys, with other seeds than the plan uses."""
    law, errors = count_law_for(mechanism), []
    assert law is not None
    for seed in range(1, repetitions + 1):
        counts = Aggregate(mechanism.hash, n, law(insecure_generator(seed), n, truth))
        frequencies = sf.estimate(mechanism, counts, method).frequencies
        errors.append(min(float(np.abs(frequencies - truth).sum()) / 2, 1.0))
    return errors


if __name__ == "__main__":
    main(None)
