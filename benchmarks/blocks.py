"""A map of 43,750 cells in blocks: how long 3.67 million people take, and how close the estimate comes.

The cells are hidden within their block at ε = 1. The truth is a public map of check-ins where SFUMATO_DATA names a
folder with it, else a stand-in: cities of Zipf sizes on a thin background.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import numpy.typing as npt

import sfumato as sf
from sfumato.mechanisms import BlockMechanism
from sfumato.papers.data import data_folder

ROWS, COLUMNS, PEOPLE = 125, 350, 3_670_000
#: Rows and columns of cells in a block, by the number of blocks.
TILES = {35: (25, 50), 875: (5, 10), 1750: (5, 5)}
#: The map, in the folder that SFUMATO_DATA names.
MAP = "gowalla_us_grid_125x350_subset.npz"


def stand_in() -> npt.NDArray[np.float64]:
    """300 cities of Zipf sizes, each spread over a few cells, and a tenth of the people anywhere."""
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
    folder = data_folder()
    if folder is not None and (folder / MAP).exists():
        name, density = "the map of check-ins", np.load(folder / MAP)["hist"].astype(np.float64)
    else:
        name, density = "the stand-in map", stand_in()
    chosen = np.random.default_rng(6).choice(density.size, PEOPLE, p=(density / density.sum()).ravel())
    return name, chosen


def blocks(number: int) -> npt.NDArray[np.int64]:
    height, width = TILES[number]
    row, column = np.divmod(np.arange(ROWS * COLUMNS), COLUMNS)
    return np.asarray(row // height * (COLUMNS // width) + column // width)


def run(mechanism: BlockMechanism, values: npt.NDArray[np.int64]) -> tuple[float, float, float]:
    """Seconds to privatize, seconds to count and estimate, and the total variation to what is true of these people."""
    start = time.perf_counter()
    reports = sf.privatize(mechanism, values)
    privatized = time.perf_counter()
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports), "simplex")
    done = time.perf_counter()
    truth = np.bincount(values, minlength=ROWS * COLUMNS) / PEOPLE
    return privatized - start, done - privatized, float(np.abs(estimate.frequencies - truth).sum()) / 2


def main() -> None:
    name, values = people()
    domain = sf.Domain.range(ROWS * COLUMNS)
    print(f"{PEOPLE:,} people on {name}, {ROWS * COLUMNS:,} cells, ε = 1 within blocks (medians of 3 runs)")
    print(f"  {'blocks':>6}  {'parts':18} {'bits':>5} {'privatize':>10} {'estimate':>9} {'TV':>8}")
    for number in TILES:
        policy = sf.Blocks(domain, blocks(number), 1)
        for inner in (None, "hadamard"):
            mechanism = BlockMechanism.for_policy(policy, inner)
            run(mechanism, values[:100_000])  # compiles what is not in the cache
            runs = [run(mechanism, values) for _ in range(3)]
            privatize, estimate, tv = (statistics.median(column) for column in zip(*runs, strict=True))
            part = mechanism.parts[0].name
            print(f"  {number:6}  {part:18} {mechanism.bits:5} {privatize:9.2f}s {estimate:8.2f}s {tv:8.4f}")


if __name__ == "__main__":
    main()
