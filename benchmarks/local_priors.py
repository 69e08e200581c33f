"""Measure a million users with different priors: exact integer parameters, reports, and the estimated total."""

from __future__ import annotations

import statistics
import time

import numpy as np
import numpy.typing as npt

import sfumato as sf

USERS = 1_000_000


def run(priors: npt.NDArray[np.float64], values: npt.NDArray[np.int64]) -> tuple[float, float, float, float]:
    """Return seconds for the parameters, the reports and the total, and the error of the total in standard errors."""
    start = time.perf_counter()
    users = sf.LocalPriors(priors, 1, prior_source="public")
    assert users.thresholds.shape == (len(priors), 2)
    prepared = time.perf_counter()
    reports = users.privatize(values)
    reported = time.perf_counter()
    total = users.estimate(reports)
    done = time.perf_counter()
    return prepared - start, reported - prepared, done - reported, (total.value - values.sum()) / total.standard_error


def main() -> None:
    """Print the times and the largest error."""
    generator = np.random.default_rng(9)
    priors = generator.random(USERS)
    values = (generator.random(USERS) < priors).astype(np.int64)
    run(priors[:1000], values[:1000])  # compile kernels that are not in the cache
    runs = [run(priors, values) for _ in range(5)]
    prepared, reported, estimated, _ = (statistics.median(column) for column in zip(*runs, strict=True))
    off = max(abs(row[3]) for row in runs)
    print(f"{USERS:,} users with different priors, ε = 1 (medians of 5 runs)")
    together = prepared + reported + estimated
    print(f"  parameters {prepared:.2f}s, reports {reported:.2f}s, total {estimated:.2f}s, together {together:.2f}s")
    print(f"  the totals are off by at most {off:.1f} standard errors")


if __name__ == "__main__":
    main()
