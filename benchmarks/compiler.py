"""Measure the designs of ``plan`` with its defaults: their errors and the time to find them.

    python -m benchmarks.compiler [VALUES ...]

VALUES are the numbers of values of the policies to measure: 20, 40 and 80 for random matrices, 64, 256 and 1024 for
grids. Without them, all policies are measured, which takes several minutes. Each error is compared with that of the
best classical mechanism and with the lower bound on the error of every mechanism.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

import sfumato as sf

#: Numbers of values of random matrices, seeds of each, limits of their epsilons, and number of unprotected values.
_SIZES, _SEEDS, _LEAST, _MOST, _UNPROTECTED = (20, 40, 80), range(1, 6), 0.5, 3.0, 2
#: Sides of square grids, and epsilons per step to a neighbouring cell.
_SIDES, _PER_STEP = (8, 16, 32), ("0.25", "1")


@dataclass(frozen=True)
class Result:
    """The recommended mechanism of a plan: its name, its error relative to two others, and the time of the plan.

    Processor time is stated next to elapsed time, because other programs may share the cores.
    """

    name: str
    saving: float
    ratio: float
    seconds: float
    processor: float


def random_matrix(size: int, seed: int) -> sf.Pairwise:
    """Return random asymmetric epsilons, of which the first values have no limit against the others."""
    epsilons = np.random.default_rng(seed).uniform(_LEAST, _MOST, (size, size)).round(6)
    epsilons[:_UNPROTECTED] = math.inf
    np.fill_diagonal(epsilons, 0)
    return sf.Pairwise(sf.Domain.range(size), epsilons)


def grid(side: int, per_step: str) -> sf.Metric:
    """Return the L1 distance on a square grid."""
    return sf.Metric(sf.Domain.grid(side, side), "manhattan", per_step)


def measure(policy: sf.Policy) -> Result:
    """Return the recommendation of a plan with defaults; the ratio is nan if no useful bound is known."""
    start, processor = time.perf_counter(), time.process_time()
    plan = sf.plan(policy, 1)
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    best = plan.best
    return Result(best.name, plan.saving, math.nan if best.ratio is None else best.ratio, seconds, processor)


def _range_of(numbers: list[float], digits: int) -> str:
    """Return the least, the median and the greatest number."""
    return " ".join(f"{choose(numbers):6.{digits}f}" for choose in (min, statistics.median, max))


def matrices(sizes: Collection[int]) -> None:
    """Print the results for random matrices."""
    print("random matrices: least, median and greatest of five seeds; nan: no useful bound")
    titles = ("classical / result", "result / bound", "seconds", "processor seconds")
    print(f"  {'values':>6}  {'  '.join(f'{title:>20}' for title in titles)}  mechanisms")
    for size in sizes:
        results = [measure(random_matrix(size, seed)) for seed in _SEEDS]
        columns = "  ".join(
            _range_of([getattr(result, field) for result in results], digits)
            for field, digits in (("saving", 2), ("ratio", 2), ("seconds", 1), ("processor", 1))
        )
        names = ", ".join(sorted({result.name for result in results}))
        print(f"  {size:6}  {columns}  {names}", flush=True)


def grids(sides: Collection[int]) -> None:
    """Print the results for the L1 distance on grids."""
    print("L1 distance on square grids; nan: no useful bound")
    titles = f"{'classical / result':>18} {'result / bound':>14} {'seconds':>7} {'processor':>9}"
    print(f"  {'cells':>7} {'ε':>4} {titles}  mechanism")
    for side in sides:
        for per_step in _PER_STEP:
            result = measure(grid(side, per_step))
            row = f"{result.saving:18.2f} {result.ratio:14.4f} {result.seconds:7.1f} {result.processor:9.1f}"
            print(f"  {f'{side} x {side}':>7} {per_step:>4} {row}  {result.name}", flush=True)


def main(*values: int) -> None:
    """Print all tables, or those rows whose policies have the given numbers of values."""
    matrices([size for size in _SIZES if not values or size in values])
    grids([side for side in _SIDES if not values or side**2 in values])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
