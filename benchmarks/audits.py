"""Measure the time of exact audits and of importing the package."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

import sfumato as sf
from sfumato.mechanisms import HadamardResponse, RandomizedResponse, SubsetSelection, TableMechanism, UnaryEncoding


def seconds(work: Callable[[], object], runs: int = 3) -> float:
    """Return the median time of a few runs."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def random_table() -> tuple[TableMechanism, sf.Pairwise]:
    """Return a random table of 200 x 200 and a random pairwise policy."""
    generator = np.random.default_rng(7)
    domain = sf.Domain.range(200)
    levels = generator.uniform(0.5, 3, (200, 200))
    np.fill_diagonal(levels, 0)
    policy = sf.Pairwise(domain, levels)
    matrix = 0.05 * generator.dirichlet(np.ones(200), 200) + 0.95 / 200
    return TableMechanism.from_matrix(domain, matrix, policy=policy), policy


def main() -> None:
    """Print the times."""
    print("audits (median seconds of 3 runs)")
    for kind, k in ((HadamardResponse, 43_750), (HadamardResponse, 100_000), (RandomizedResponse, 100_000),
                    (SubsetSelection, 100_000), (UnaryEncoding, 100_000)):  # fmt: skip
        domain = sf.Domain.range(k)
        mechanism, policy = kind(domain, 1), sf.Uniform(domain, 1)
        taken = seconds(lambda m=mechanism, p=policy: sf.audit(m, p))  # type: ignore[misc]
        print(f"  {mechanism.name:20} k = {k:7,} against Uniform   {taken:7.2f}")
    table, pairwise = random_table()
    print(f"  table 200 x 200 against a random Pairwise        {seconds(lambda: sf.audit(table, pairwise)):7.2f}")
    clock = "import time; start = time.perf_counter(); import sfumato; print(time.perf_counter() - start)"
    runs = [float(subprocess.run([sys.executable, "-c", clock], capture_output=True, text=True, check=True).stdout)
            for _ in range(5)]  # fmt: skip
    print(f"import sfumato: {statistics.median(runs):.3f} s (median of 5)")


if __name__ == "__main__":
    main()
