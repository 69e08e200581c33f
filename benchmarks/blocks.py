"""Measure time and error for 3.67 million people on a map of 43,750 cells with a block policy.

The policy hides cells within their block at ε = 1. The truth is a public map of check-ins if the folder in SFUMATO_DATA
contains it, else synthetic: cities of Zipf sizes on a thin background.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import numpy.typing as npt

import sfumato as sf
from sfumato.datasets import data_folder
from sfumato.mechanisms import BlockMechanism

ROWS, COLUMNS, PEOPLE = 125, 350, 3_670_000
#: Rows and columns of cells in a block, by the number of blocks.
TILES = {35: (25, 50), 875: (5, 10), 1750: (5, 5)}
#: File of the map, in the folder that SFUMATO_DATA names.
MAP = "gowalla_us_grid_125x350_subset.npz"


def stand_in() -> npt.NDArray[np.float64]:
    """Return a synthetic map: 300 cities of Zipf sizes over a few cells each, and a tenth of the people anywhere."""
    generator = np.random.default_rng(5)
    row, column = np.mgrid[:ROWS, :COLUMNS]
    density = np.zeros((ROWS, COLUMNS))
    for rank in range(1, 301):
        centre, spread = generator.uniform((0, 0), (ROWS, COLUMNS)), generator.uniform(0.5, 2)
        distance = ((row - centre[0]) ** 2 + (column - centre[1]) ** 2) / (2 * spread**2)
        cells = np.exp(-distance)
        density += cells / (rank * cells.sum())
    return np.asarray(0.9 * density / density.sum() + 0.1 / density.size)


def people() -> tuple[str, npt.NDArray[np.int64]]:
    """Return the name of the map and the cell of each person."""
    folder = data_folder()
    if folder is not None and (folder / MAP).exists():
        name, density = "the map of check-ins", np.load(folder / MAP)["hist"].astype(np.float64)
    else:
        name, density = "the synthetic map", stand_in()
    chosen = np.random.default_rng(6).choice(density.size, PEOPLE, p=(density / density.sum()).ravel())
    return name, chosen


def blocks(number: int) -> npt.NDArray[np.int64]:
    """Return the block of each cell."""
    height, width = TILES[number]
    row, column = np.divmod(np.arange(ROWS * COLUMNS), COLUMNS)
    return np.asarray(row // height * (COLUMNS // width) + column // width)


def run(mechanism: BlockMechanism, values: npt.NDArray[np.int64]) -> tuple[float, float, float]:
    """Return seconds to privatize, seconds to count and estimate, and the total variation error."""
    start = time.perf_counter()
    reports = sf.privatize(mechanism, values)
    privatized = time.perf_counter()
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports), "simplex")
    done = time.perf_counter()
    truth = np.bincount(values, minlength=ROWS * COLUMNS) / PEOPLE
    return privatized - start, done - privatized, float(np.abs(estimate.frequencies - truth).sum()) / 2


def main() -> None:
    """Print the table."""
    name, values = people()
    domain = sf.Domain.range(ROWS * COLUMNS)
    print(f"{PEOPLE:,} people on {name}, {ROWS * COLUMNS:,} cells, ε = 1 within blocks (medians of 3 runs)")
    print(f"  {'blocks':>6}  {'parts':18} {'bits':>5} {'privatize':>10} {'estimate':>9} {'TV':>8}")
    for number in TILES:
        policy = sf.Blocks(domain, blocks(number), 1)
        for inner in (None, "hadamard"):
            mechanism = BlockMechanism.for_policy(policy, inner)
            run(mechanism, values[:100_000])  # compile kernels that are not in the cache
            runs = [run(mechanism, values) for _ in range(3)]
            privatize, estimate, tv = (statistics.median(column) for column in zip(*runs, strict=True))
            part = mechanism.parts[0].name
            print(f"  {number:6}  {part:18} {mechanism.bits:5} {privatize:9.2f}s {estimate:8.2f}s {tv:8.4f}")


if __name__ == "__main__":
    main()
