"""Compare memoized mechanisms with published ones, and check estimates over 30 waves of a survey.

    python -m benchmarks.longitudinal [--quick] [TABLE ...]

The tables are ``levels``, ``policies`` and ``coverage``, all by default. The output is Markdown. All
variances are exact. ``coverage`` simulates people, devices and reports with fixed seeds; ``--quick`` uses fewer
repetitions.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from scipy.stats import norm

import sfumato as sf
from benchmarks.baselines.longitudinal import LGRR, LOLOHA, LOSUE, LSUE, Memoized
from sfumato.mechanisms import MemoizedMechanism

Floats = npt.NDArray[np.float64]

#: Levels of one report, and of all reports about an unchanged value.
LEVELS = ((0.5, 1.0), (1.0, 2.0), (1.0, 4.0))
#: Waves of the mean that is compared.
MEAN_WAVES = 10
#: Limit of the reports of the second mechanism that is compared.
SHORT_BITS = 16
#: People, waves, and the share of people who change from one wave to the next, in the simulation.
PEOPLE, WAVES, CHANGE_RATE = 2_000, 30, 0.1
#: Frequencies in the first wave, and of the values that people change to.
START, TARGET = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])


def main(arguments: Sequence[str] | None = ("--quick",)) -> None:
    """Print the tables that the arguments name, all by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables: dict[str, Callable[[bool], None]] = {
        "levels": levels,
        "policies": policies,
        "coverage": coverage,
    }
    parser.add_argument(
        "tables", nargs="*", choices=[*tables, []], metavar="TABLE", help="tables to print, all by default"
    )
    parser.add_argument("--quick", action="store_true", help="use fewer repetitions")
    options = parser.parse_args(arguments)
    for name in options.tables or tables:
        start = time.perf_counter()
        tables[name](options.quick)
        print(f"({name}: {time.perf_counter() - start:.0f} s)\n", flush=True)


def row(*cells: object) -> None:
    """Print one row of a Markdown table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def header(*cells: object) -> None:
    """Print the first two rows of a Markdown table."""
    row(*cells)
    row(*("---" for _ in cells))


# -- variances -------------------------------------------------------------------------------------------------------


def summed_variances(mechanism: Any, p: Floats) -> tuple[float, float]:
    """Return the variances of all frequencies from one report, and from ten waves of one unchanged person, summed."""
    one = float(mechanism.estimator.variances(p).sum())
    shared = float((mechanism.shared_moments(p) - p**2).sum())
    return one, one / MEAN_WAVES + (1 - 1 / MEAN_WAVES) * shared


def best_variances(first: sf.Policy, lifetime: sf.Policy) -> tuple[float, float]:
    """Return the variances of the best mechanisms for one report, and of a mean whose two stages both were best."""
    one, permanent = (sf.plan(policy, n=1, max_bits=None).best.risk for policy in (first, lifetime))
    return one, one / MEAN_WAVES + (1 - 1 / MEAN_WAVES) * permanent


def published(k: int, first: float, lifetime: float) -> dict[str, Memoized]:
    """Return the published mechanisms, with both levels reached exactly."""
    return {kind.__name__: kind.at(k, first, lifetime) for kind in (LSUE, LOSUE, LGRR, LOLOHA)}


def levels(quick: bool) -> None:
    """Print the variances of all mechanisms at the same two levels, relative to the best mechanisms."""
    del quick
    print("## Two levels\n")
    print("Sum of the variances of all frequencies at the uniform distribution, relative to the best mechanisms.\n")
    ours = ("Sfumato", f"Sfumato, at most {SHORT_BITS} bits")
    header("k", "ε first, lifetime", "waves", *ours, "L-SUE", "L-OSUE", "L-GRR", "LOLOHA", "mechanisms, bits")
    for k, (first, lifetime) in itertools.product((2, 10, 100), LEVELS):
        domain, p = sf.Domain.range(k), np.full(k, 1 / k)
        single, permanent = sf.Uniform(domain, first), sf.Uniform(domain, lifetime)
        mechanisms: list[Any] = [sf.design(single, lifetime=permanent, max_bits=bits) for bits in ("short", SHORT_BITS)]
        others = published(k, first, lifetime)
        bounds = best_variances(single, permanent)
        for number, (waves, bound) in enumerate(zip((1, MEAN_WAVES), bounds, strict=True)):
            variances = [summed_variances(mechanism, p)[number] for mechanism in mechanisms]
            theirs = ((other.variance(1 / k), other.mean_variance(1 / k, MEAN_WAVES)) for other in others.values())
            variances += [k * pair[number] for pair in theirs]
            names = ", ".join(f"{each.single.name} {each.bits}" for each in dict.fromkeys(mechanisms))
            row(k, f"{first:g}, {lifetime:g}", waves, *(f"{variance / bound:.4f}" for variance in variances), names)
            assert variances[0] <= 1.001 * bound
            assert variances[0] <= min(variances) * (1 + 1e-9)
    print()


def policies(quick: bool) -> None:
    """Print the gain of policies that protect less than all pairs of values."""
    del quick
    print("## Policies\n")
    print("Sum of the variances, relative to Sfumato under the same policy. Published mechanisms protect all values.\n")
    header("policy, 100 values", "ε first, lifetime", "wave", "Sfumato", "L-SUE", "L-OSUE", "L-GRR", "LOLOHA")
    k = 100
    domain, p = sf.Domain.range(k), np.full(k, 1 / k)
    kinds: dict[str, Callable[[float], sf.Policy]] = {
        "10 sensitive values": lambda epsilon: sf.HighLow(domain, range(10), epsilon),
        "blocks of 10 values": lambda epsilon: sf.Blocks(domain, [x // 10 for x in range(k)], epsilon),
    }
    for (name, kind), (first, lifetime) in itertools.product(kinds.items(), LEVELS):
        mechanism = sf.design(kind(first), lifetime=kind(lifetime))
        assert isinstance(mechanism, MemoizedMechanism)
        ours, others = summed_variances(mechanism, p), published(k, first, lifetime).values()
        for number, label in enumerate(("one", f"mean of {MEAN_WAVES}")):
            theirs = [(other.variance(1 / k), other.mean_variance(1 / k, MEAN_WAVES))[number] for other in others]
            ratios = [1.0, *(k * variance / ours[number] for variance in theirs)]
            row(name, f"{first:g}, {lifetime:g}", label, *(f"{ratio:.3f}" for ratio in ratios))
    print()


# -- coverage --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Survey:
    """Counts of simulated surveys, one per repetition.

    ``counts`` has shape (repetitions, waves, outputs). ``steps`` and ``spans`` are joint counts of each wave with the
    wave before it and with the first wave, of shape (repetitions, waves, outputs, outputs).
    """

    counts: npt.NDArray[np.int32]
    steps: npt.NDArray[np.int32]
    spans: npt.NDArray[np.int32]


@numba.njit(cache=False)
def _index(cumulative: Any, draw: float) -> int:
    """Return the first index whose cumulative probability exceeds a number in [0, 1)."""
    index = 0
    while index < len(cumulative) - 1 and draw >= cumulative[index]:
        index += 1
    return index


@numba.njit(cache=False)
def _simulate(
    seed: int,
    people: int,
    start: Any,
    target: Any,
    rate: float,
    permanent: Any,
    instantaneous: Any,
    answers: int,
    counts: Any,
    steps: Any,
    spans: Any,
) -> None:
    """Run devices that keep at most a number of permanent answers, and count reports and pairs of reports."""
    np.random.seed(seed)
    size, waves = len(start), counts.shape[1]
    memory = np.empty(size, np.int64)
    for repetition in range(counts.shape[0]):
        for _ in range(people):
            memory[:] = -1
            known = 0
            value = subject = _index(start, np.random.random())
            first = last = 0
            for wave in range(waves):
                if wave > 0 and np.random.random() < rate:
                    value = _index(target[value], np.random.random())
                if memory[value] < 0 and known < answers:
                    memory[value] = _index(permanent[value], np.random.random())
                    known += 1
                if memory[value] >= 0:
                    subject = value  # otherwise the device keeps reporting about the last value that it knows
                report = _index(instantaneous[memory[subject]], np.random.random())
                counts[repetition, wave, report] += 1
                if wave == 0:
                    first = report
                else:
                    steps[repetition, wave, last, report] += 1
                    spans[repetition, wave, first, report] += 1
                last = report


def transitions() -> Floats:
    """Return the law of the next value of a person who changes: the target, without the present value."""
    matrix = np.tile(TARGET, (len(TARGET), 1))
    np.fill_diagonal(matrix, 0)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def true_frequencies(answers: int, waves: int = WAVES) -> tuple[Floats, Floats]:
    """Return the frequencies of the values, and of the values that devices report about, exactly for each wave.

    A state is the set of values that a device knows, the present value, and the value that it reports about.
    """
    size, change = len(START), transitions()
    states: dict[tuple[frozenset[int], int, int], float] = {
        (frozenset([x]), x, x): float(START[x]) for x in range(size)
    }
    truth, subjects = np.zeros((2, waves, size))
    for wave in range(waves):
        if wave:
            following: dict[tuple[frozenset[int], int, int], float] = {}
            for (known, value, subject), mass in states.items():
                for x in range(size):
                    share = (1 - CHANGE_RATE) * (x == value) + CHANGE_RATE * change[value, x]
                    memory = known | {x} if len(known) < answers else known
                    key = (memory, x, x if x in memory else subject)
                    following[key] = following.get(key, 0.0) + mass * float(share)
            states = following
        for (_, value, subject), mass in states.items():
            truth[wave, value] += mass
            subjects[wave, subject] += mass
    return truth, subjects


def simulate(mechanism: MemoizedMechanism, repetitions: int, seed: int, waves: int = WAVES) -> Survey:
    """Simulate surveys in which 10% of people change from one wave to the next."""
    size = len(mechanism.domain)
    permanent = mechanism.permanent.matrix()
    outputs = permanent.shape[1]
    channel = mechanism.instantaneous
    pairs = [[float(channel.probability(y, answer)) for y in range(outputs)] for answer in range(outputs)]
    counts = np.zeros((repetitions, waves, outputs), np.int32)
    steps, spans = np.zeros((2, repetitions, waves, outputs, outputs), np.int32)
    answers = size if mechanism.most_answers is None else mechanism.most_answers
    cumulative = [np.cumsum(each, axis=-1) for each in (START, transitions(), permanent, np.array(pairs))]
    _simulate(
        seed,
        PEOPLE,
        cumulative[0],
        cumulative[1],
        CHANGE_RATE,
        cumulative[2],
        cumulative[3],
        answers,
        counts,
        steps,
        spans,
    )
    return Survey(counts, steps, spans)


def nearest(unbiased: Floats) -> Floats:
    """Return the nearest distribution to each row of frequencies."""
    size = unbiased.shape[-1]
    ordered = -np.sort(-unbiased, axis=-1)
    excess = (np.cumsum(ordered, axis=-1) - 1) / np.arange(1, size + 1)
    last = (ordered > excess).sum(axis=-1, keepdims=True) - 1
    return np.maximum(unbiased - np.take_along_axis(excess, last, axis=-1), 0.0)


def wave_limits(mechanism: MemoizedMechanism, survey: Survey) -> tuple[Floats, Floats]:
    """Return the limits of a frequency by the count of its value, which determines them in randomized response.

    Counts that do not occur in the survey have no limits.
    """
    size = len(mechanism.domain)
    limits = np.full((2, PEOPLE + 1), np.nan)
    for count in np.unique(survey.counts).tolist():
        others = [(PEOPLE - count + i) // (size - 1) for i in range(size - 1)]
        estimate = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, PEOPLE, np.array([count, *others], np.int64)))
        limits[:, count] = [limit[0] for limit in estimate._limits(np.array([0]), 0.95)]
    return limits[0], limits[1]


def linked_errors(mechanism: MemoizedMechanism, survey: Survey, first: int, second: int) -> tuple[Floats, Floats]:
    """Return the changes between two waves and their standard errors from linked reports, for all repetitions."""
    estimator: Any = mechanism.estimator
    joint = survey.steps[:, second] if first == second - 1 else survey.spans[:, second]
    shares = [survey.counts[:, wave] / PEOPLE for wave in (first, second)]
    estimates = [(share - estimator.other) / estimator.gap for share in shares]
    variances = []
    for each in estimates:
        rates = estimator.other + estimator.gap * nearest(each)
        variances.append(rates * (1 - rates) / estimator.gap**2)
    together = np.diagonal(joint, axis1=1, axis2=2) / PEOPLE - shares[0] * shares[1]
    covariance = together / estimator.gap**2 * (PEOPLE / (PEOPLE - 1))
    most = np.sqrt(variances[0] * variances[1])
    variance = variances[0] + variances[1] - 2 * np.clip(covariance, -most, most)
    return estimates[1] - estimates[0], np.sqrt(np.maximum(variance, 0) / PEOPLE)


def library_change(
    mechanism: MemoizedMechanism, survey: Survey, repetition: int, first: int, second: int, **options: Any
) -> Any:
    """Return the change that the library estimates in one repetition: from linked reports unless there are options."""
    counts = {
        wave: sf.Aggregate(mechanism.hash, PEOPLE, survey.counts[repetition, wave].astype(np.int64))
        for wave in sorted({first, second})
    }
    if not options:
        joint = survey.steps[repetition, second] if first == second - 1 else survey.spans[repetition, second]
        options = {"pairs": {(first, second): sf.PairCounts(counts[first], counts[second], joint.astype(np.int64))}}
    return sf.estimate_waves(mechanism, counts, **options).change(first, second)


def coverage_of(
    mechanism: MemoizedMechanism, survey: Survey, limits: tuple[Floats, Floats], truth: Floats
) -> dict[str, Floats]:
    """Return the shares of intervals that contain the truth: waves, changes to the next wave, changes since the first.

    Shapes are (waves, values), (waves - 1, values) and (waves - 1, values).
    """
    low, high = limits
    waves = survey.counts.shape[1]
    inside = (low[survey.counts] <= truth) & (truth <= high[survey.counts])
    result = {"waves": inside.mean(axis=0)}
    quantile = norm.ppf(0.975)
    for name, starts in (("steps", range(waves - 1)), ("spans", [0] * (waves - 1))):
        rows = []
        for second, first in zip(range(1, waves), starts, strict=True):
            change, error = linked_errors(mechanism, survey, first, second)
            rows.append((np.abs(change - (truth[second] - truth[first])) <= quantile * error).mean(axis=0))
        result[name] = np.array(rows)
    return result


def check_against_library(
    mechanism: MemoizedMechanism, survey: Survey, limits: tuple[Floats, Floats], number: int
) -> None:
    """Raise AssertionError unless the library has the intervals of the simulation in some repetitions."""
    low, high = limits
    generator = np.random.default_rng(5)
    waves = survey.counts.shape[1]
    for repetition in generator.integers(len(survey.counts), size=number).tolist():
        second = int(generator.integers(1, waves))
        counts = survey.counts[repetition, second]
        estimate = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, PEOPLE, counts.astype(np.int64)))
        assert np.allclose(estimate.interval(), [low[counts], high[counts]], atol=1e-6)
        for first in (0, second - 1):
            table = library_change(mechanism, survey, repetition, first, second)
            change, error = (each[repetition] for each in linked_errors(mechanism, survey, first, second))
            assert np.allclose(table.numbers, change)
            assert np.allclose(table.standard_errors, error)
            assert (norm.ppf(0.975) * error > -math.log(0.05) * table.unseen).all()


def coverage(quick: bool) -> None:
    """Print the coverage of intervals over 30 waves, with and without a limit of the number of permanent answers."""
    repetitions = 2_000 if quick else 20_000
    print(f"## Coverage\n\n95% intervals over {WAVES} waves with {PEOPLE:,} people, of whom 10% change per wave;")
    print(
        f"{repetitions:,} repetitions, 4 values, ε = 1 per report and 2 for a lifetime. Least and greatest share over"
    )
    print("all waves and values, and the mean.\n")
    header("permanent answers", "estimand", "quantity", "least", "mean", "greatest", "greatest bias")
    domain = sf.Domain.range(4)
    for changes in (None, 1):
        mechanism = sf.design(
            sf.Uniform(domain, 1), lifetime=sf.Uniform(domain, 2), mechanism="rr", max_changes=changes
        )
        assert isinstance(mechanism, MemoizedMechanism)
        survey = simulate(mechanism, repetitions, seed=11)
        limits = wave_limits(mechanism, survey)
        check_against_library(mechanism, survey, limits, 50 if quick else 200)
        answers = mechanism.most_answers or 4
        truth, subjects = true_frequencies(answers)
        estimands = {"values": truth} if changes is None else {"reported values": subjects, "values": truth}
        label = "no limit" if changes is None else f"at most {answers}"
        for name, estimand in estimands.items():
            bias = {
                "waves": subjects - estimand,
                "steps": np.diff(subjects - estimand, axis=0),
                "spans": (subjects - estimand) - (subjects - estimand)[0],
            }
            for quantity, shares in coverage_of(mechanism, survey, limits, estimand).items():
                cells = (f"{number:.2%}" for number in (shares.min(), shares.mean(), shares.max()))
                row(label, name, _NAMES[quantity], *cells, f"{np.abs(bias[quantity]).max():.4f}")
        if changes is None:
            _unlinked(mechanism, survey, truth, 400 if quick else 4_000)
    print()


_NAMES = {
    "waves": "frequency",
    "steps": "change to the next wave",
    "spans": "change since the first wave",
}


def _unlinked(mechanism: MemoizedMechanism, survey: Survey, truth: Floats, repetitions: int) -> None:
    """Print the coverage of changes without linked reports, whose intervals are conservative."""
    for first, second in ((14, 15), (0, WAVES - 1)):
        for rate in (CHANGE_RATE * (second - first), None):
            options = {"overlap": 1, "change_rate": None if rate is None else min(rate, 1.0)}
            inside, lengths = np.zeros((2, 4))
            for repetition in range(repetitions):
                table = library_change(mechanism, survey, repetition, first, second, **options)
                low, high = table.interval()
                change = truth[second] - truth[first]
                inside += (low <= change) & (change <= high)
                lengths += (high - low) / repetitions
            linked = 2 * norm.ppf(0.975) * linked_errors(mechanism, survey, first, second)[1].mean(axis=0)
            name = (
                f"change from wave {first + 1} to {second + 1}, unlinked, rate {'unknown' if rate is None else 'known'}"
            )
            shares = inside / repetitions
            cells = (f"{number:.2%}" for number in (shares.min(), shares.mean(), shares.max()))
            row("no limit", "values", f"{name}, {np.mean(lengths / linked):.2f} times as long", *cells, "0")


if __name__ == "__main__":
    main(None)
