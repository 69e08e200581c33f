"""Compare ways to ask for the tables of several attributes, next to random sampling plus fake data.

    python -m benchmarks.tables [--quick] [--data FOLDER] [TABLE ...]

The tables are ``errors``, ``associations`` and ``speed``, all by default. The output is Markdown. Errors are exact, at
the frequencies of the data. ``--data`` names the folder with the census data set Adult (``adult.parquet``); without it,
the people are invented. ``--quick`` uses four attributes and fewer people.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import sfumato as sf
from benchmarks.baselines.attributes import FakeData
from sfumato.datasets import census_column, data_folder
from sfumato.mechanisms import Mechanism, NotIdentifiable, ProductMechanism, RandomizedResponse
from sfumato.questions import marginal_sums

Floats = npt.NDArray[np.float64]

#: Attributes of Adult.
ATTRIBUTES = ("sex", "race", "relationship", "occupation", "education")
#: People in the comparison of errors, and in the timing.
PEOPLE, MANY_PEOPLE = 30_000, 1_000_000
EPSILONS = (1, 3)


def main(arguments: Sequence[str] | None = ("--quick",)) -> None:
    """Print the tables that the arguments name, all by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables: dict[str, Callable[[argparse.Namespace], None]] = {
        "errors": errors,
        "associations": associations,
        "speed": speed,
    }
    parser.add_argument(
        "tables", nargs="*", choices=[*tables, []], metavar="TABLE", help="tables to print, all by default"
    )
    parser.add_argument("--quick", action="store_true", help="use four attributes and fewer people")
    parser.add_argument("--data", type=Path, help="folder with adult.parquet")
    options = parser.parse_args(arguments)
    for name in options.tables or tables:
        start = time.perf_counter()
        tables[name](options)
        print(f"({name}: {time.perf_counter() - start:.0f} s)\n", flush=True)


def row(*cells: object) -> None:
    """Print one row of a Markdown table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def read_people(options: argparse.Namespace) -> tuple[sf.Domain, dict[str, npt.NDArray[np.str_]], str]:
    """Return the attributes, the column of each, and the source of the data."""
    chosen = ATTRIBUTES[:4] if options.quick else ATTRIBUTES
    folder = data_folder() if options.data is None else options.data
    columns = {name: census_column(folder, name) for name in chosen}
    domain = sf.Domain.product(**{name: sf.Domain(np.unique(c.value).tolist()) for name, c in columns.items()})
    return domain, {name: column.value for name, column in columns.items()}, columns["sex"].source


def error(mechanism: Mechanism, question: sf.Marginals, p: Floats) -> float:
    """Return the expected squared error of all cells from one report; infinite if a table is not determined."""
    try:
        marginals = [mechanism.estimator.marginal(question.domain.shape, axes) for axes in question.axes]
    except NotIdentifiable:
        return math.inf
    return sum(marginal.squared_error(p) for marginal in marginals)


def shown(squared: float, cells: int) -> str:
    """Return an error summed over cells, with the root mean square of one cell."""
    return "not determined" if math.isinf(squared) else f"{squared:.4g} (± {math.sqrt(squared / cells):.2g})"


# -- errors ------------------------------------------------------------------------------------------------------------


def errors(options: argparse.Namespace) -> None:
    """Print the exact expected errors of all strategies and of fake data."""
    domain, columns, source = read_people(options)
    people = np.asarray(domain.encode(columns))
    p = np.bincount(people, minlength=len(domain)) / len(people)
    one, two = (sf.Marginals(order).checked(domain) for order in (1, 2))
    cells = [len(question.names) for question in (one, two)]
    print(f"### Tables of {', '.join(domain.factors)} ({len(domain):,} combinations; {source}), {PEOPLE:,} people\n")
    print("Expected squared error summed over all cells, exact at the frequencies of the data; ± is the root mean")
    print(f"square of one of {cells[0]} cells of one attribute, or of {cells[1]} cells of two.\n")
    row("ε", "way", "bits", "1-way tables", "2-way tables", "recommended for")
    row(*["---"] * 6)
    for epsilon in EPSILONS:
        questionnaire = sf.Questionnaire(domain.factors, epsilon)
        plans = {question: questionnaire.plan(PEOPLE, question=question) for question in (one, two)}
        ways: dict[str, Mechanism] = {}
        for question, compared in plans.items():
            for strategy in compared.rows:
                name = f"{strategy.name}, for {'1' if question is one else '2'}-way"
                ways[name if strategy.name in ("joint", "split by weights") else strategy.name] = strategy.mechanism
        for name, mechanism in ways.items():
            best = [
                f"{order}-way"
                for order, compared in (("1", plans[one]), ("2", plans[two]))
                if compared.best.mechanism == mechanism
            ]
            numbers = [error(mechanism, question, p) / PEOPLE for question in (one, two)]
            row(epsilon, name, mechanism.bits, *map(shown, numbers, cells), ", ".join(best))
        for protocol, amplified in (("grr", True), ("oue-z", True), ("grr", False)):
            fake = FakeData(domain.shape, epsilon, protocol, amplified=amplified)
            singles = [marginal_sums(p, domain.shape, (axis,)) for axis in range(len(domain.shape))]
            total = sum(float(fake.variances(axis, single).sum()) for axis, single in enumerate(singles))
            how = f"level of the tuple {fake.level:.3g}"
            row(epsilon, f"RS+FD [{protocol}], {how}", "", shown(total / PEOPLE, cells[0]), "not determined", "")
    print()


# -- associations ------------------------------------------------------------------------------------------------------


def associations(options: argparse.Namespace) -> None:
    """Print the coverage of intervals of cells, odds ratios and Cramér's V, from counts drawn from their law."""
    repetitions = 100 if options.quick else 2000
    print(f"### Coverage of 95% intervals from {repetitions:,} repetitions, each attribute at ε = 1\n")
    row("table", "n", "true V", "Cramér's V", "true odds ratio", "odds ratio", "cells")
    row(*["---"] * 7)
    tables = {
        "2 × 2, independent": np.outer([0.6, 0.4], [0.3, 0.7]),
        "2 × 2, weak": np.array([[0.2, 0.4], [0.1, 0.3]]),
        "2 × 2, strong": np.array([[0.25, 0.35], [0.05, 0.35]]),
        "3 × 4, weak": np.array([[0.15, 0.1, 0.1, 0.05], [0.05, 0.1, 0.1, 0.05], [0.1, 0.05, 0.05, 0.1]]),
    }
    for name, cells in tables.items():
        for n in (3000, 30_000):
            _coverage(name, cells, n, repetitions)
    print()


def _coverage(name: str, cells: Floats, n: int, repetitions: int) -> None:
    """Print the coverage for one table."""
    domain = sf.Domain.product(a=sf.Domain.range(cells.shape[0]), b=sf.Domain.range(cells.shape[1]))
    mechanism = ProductMechanism(domain, [RandomizedResponse(sf.Domain.range(size), 1) for size in cells.shape])
    law, generator = mechanism.estimator.expected_counts(cells.ravel()), np.random.default_rng(1)
    expected = np.outer(cells.sum(axis=1), cells.sum(axis=0))
    true_v = math.sqrt(float(((cells - expected) ** 2 / expected).sum()) / (min(cells.shape) - 1))
    true_ratio = float(cells[0, 0] * cells[1, 1] / (cells[0, 1] * cells[1, 0])) if cells.shape == (2, 2) else None
    hits: dict[str, list[float]] = {"V": [], "ratio": [], "cells": []}
    for _ in range(repetitions):
        counts = sf.Aggregate(mechanism.hash, n, generator.multinomial(n, law))
        table = sf.cross_table(sf.estimate(mechanism, counts))
        low, high = table.interval()
        hits["cells"].append(float(np.mean((low <= cells) & (cells <= high))))
        try:
            limits: Any = table.cramers_v().interval()
            hits["V"].append(limits[0] <= true_v + 1e-6 and true_v - 1e-6 <= limits[1])
        except sf.errors.NoAnswer:
            pass  # a row or a column is not clearly above zero
        if true_ratio is not None:
            limits = table.odds_ratio().interval()
            hits["ratio"].append(limits[0] <= true_ratio <= limits[1])
    shares = {key: f"{np.mean(values):.1%}" if values else "" for key, values in hits.items()}
    note = "" if len(hits["V"]) == repetitions else f" ({len(hits['V'])} determined)"
    ratio = "" if true_ratio is None else f"{true_ratio:.2f}"
    row(name, f"{n:,}", f"{true_v:.3f}", shares["V"] + note, ratio, shares["ratio"], shares["cells"])


# -- speed -------------------------------------------------------------------------------------------------------------


def speed(options: argparse.Namespace) -> None:
    """Print the time from a table of people to all 2-way tables."""
    domain, columns, source = read_people(options)
    people = 20_000 if options.quick else MANY_PEOPLE
    chosen = np.random.default_rng(3).integers(0, len(columns["sex"]), people)
    table = {name: column[chosen] for name, column in columns.items()}
    print(f"### {people:,} people drawn from Adult ({source}), all 2-way tables, ε = 3, seconds\n")
    row("strategy", "design", "privatize", "count", "tables with errors", "with intervals", "total without design")
    row(*["---"] * 7)
    questionnaire = sf.Questionnaire(domain.factors, 3)
    start = time.perf_counter()
    compared = questionnaire.plan(people, question=sf.Marginals(2))
    design = time.perf_counter() - start
    frame = pd.DataFrame(table)
    sf.privatize(compared.best.mechanism, frame.head(100))  # compile the kernel
    for name in (compared.best.name, "split by weights", "joint"):
        mechanism = compared[name].mechanism
        sf.privatize(mechanism, frame.head(100))
        times = [time.perf_counter()]
        reports = sf.privatize(mechanism, frame)
        times.append(time.perf_counter())
        counts = sf.aggregate(mechanism, reports)
        times.append(time.perf_counter())
        tables = sf.estimate(mechanism, counts).marginals(2)
        _ = tables.values, tables.standard_errors
        times.append(time.perf_counter())
        tables.interval()
        times.append(time.perf_counter())
        steps = [f"{end - begin:.2f}" for begin, end in itertools.pairwise(times)]
        row(name, f"{design:.1f}", *steps, f"{times[-1] - times[0]:.1f}")
    print()


if __name__ == "__main__":
    main(None)
