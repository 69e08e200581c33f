"""Measure cyclic designs: the rate of randomizing, compared with randomized response, and the time of an estimate.

    python -m benchmarks.cyclic

Both mechanisms of a pair are measured in turn, so that other work on the machine slows both alike.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

import sfumato as sf
from benchmarks.kernels import Worker
from sfumato.mechanisms import (
    BlockMechanism,
    CyclicDesign,
    HighLowCyclic,
    HighLowHadamard,
    Mechanism,
    RandomizedResponse,
    UtilityOptimizedRR,
    kernel_for,
)

_TURNS, _CHUNKS = 31, 32


def estimated() -> dict[str, CyclicDesign]:
    """Return designs with about 10^6 to 2^22 outputs."""
    many = sf.Domain.range(1_000_000)
    squares, residues = CyclicDesign.residues(1_000_003, 500_001), CyclicDesign.residues(174_763, 29_127)
    return {
        "singer, q = 101, t = 4": CyclicDesign(many, 4, design=CyclicDesign.singer(101, 1, 4)),
        "residues, squares": CyclicDesign(many, 1, design=squares),
        "residues, 3 base blocks": CyclicDesign(sf.Domain.range(174_000), 2, design=residues),
        "singer, q = 151, t = 4": CyclicDesign(sf.Domain.range(3_307_948), 5, design=CyclicDesign.singer(151, 1, 4)),
        "singer, q = 2, t = 22": CyclicDesign(sf.Domain.range(2**22 - 1), 1, design=CyclicDesign.singer(2, 1, 22)),
    }


class Turn:
    """Chunks of one mechanism in one thread, with their keystreams."""

    def __init__(self, mechanism: Mechanism) -> None:
        kernel = kernel_for(mechanism)
        assert kernel is not None
        size = mechanism.layout.chunk_values
        self.values = np.random.default_rng(1).integers(0, len(mechanism.domain), size)
        self.out = np.zeros((size, *kernel.report_shape), dtype=kernel.dtype)
        self.worker = Worker(kernel, size)
        self.run()  # compile a kernel that is not in the cache

    def run(self) -> float:
        """Return the seconds per value of a few chunks."""
        start = time.perf_counter()
        for _ in range(_CHUNKS):
            self.worker.run(self.values, self.out)
        return (time.perf_counter() - start) / (_CHUNKS * len(self.values))


def privatize() -> None:
    """Print the rates of cyclic designs and of randomized response, in one thread."""
    print("million values per second, one thread; medians of turns")
    print(f"  {'k':>7} {'ε':>2}  {'design':28} {'cyclic':>8} {'rr':>8} {'ratio':>6}")
    for k in (1_000, 43_750):
        domain = sf.Domain.range(k)
        for epsilon in (1, 2, 4):
            mechanism = CyclicDesign(domain, epsilon)
            turns = Turn(mechanism), Turn(RandomizedResponse(domain, epsilon))
            times = [[turn.run() for turn in turns] for _ in range(_TURNS)]
            ratio = statistics.median(other / cyclic for cyclic, other in times)
            cyclic, other = (1e-6 / statistics.median(column) for column in zip(*times, strict=True))
            name = f"{mechanism.design.kind}, {mechanism.outputs:,} outputs"
            print(f"  {k:7,} {epsilon:2}  {name:28} {cyclic:8.0f} {other:8.0f} {ratio:6.2f}", flush=True)


def parts() -> None:
    """Print the time per value of mechanisms made of parts, in one thread."""
    cells, domain = sf.Domain.range(43_750), sf.Domain.range(1_000)
    blocks, sensitive = sf.Blocks(cells, [cell // 1_250 for cell in range(43_750)], 1), range(500)
    mechanisms: dict[str, list[Mechanism]] = {
        "35 blocks of 1,250 values": [
            BlockMechanism.for_policy(blocks, inner) for inner in ("rr", "hadamard", "cyclic")
        ],
        "500 of 1,000 values sensitive": [
            kind(domain, sensitive, 1) for kind in (UtilityOptimizedRR, HighLowHadamard, HighLowCyclic)
        ],
    }
    print("ns per value, one thread; medians of turns")
    print(f"  {'policy':30} {'rr':>6} {'hadamard':>9} {'cyclic':>7}")
    for policy, forms in mechanisms.items():
        turns = [Turn(mechanism) for mechanism in forms]
        times = [[turn.run() for turn in turns] for _ in range(_TURNS)]
        rr, hadamard, cyclic = (1e9 * statistics.median(column) for column in zip(*times, strict=True))
        print(f"  {policy:30} {rr:6.1f} {hadamard:9.1f} {cyclic:7.1f}", flush=True)


def estimate() -> None:
    """Print the time of an estimate of all values from counts."""
    print("seconds for an estimate of all values from counts; medians of 5 runs")
    print(f"  {'design':26} {'values':>9} {'outputs':>9} {'estimate':>9}")
    for name, mechanism in estimated().items():
        k, seconds = len(mechanism.domain), []
        counts = sf.aggregate(mechanism, sf.privatize(mechanism, np.arange(10_000) % k))
        for _ in range(5):
            start = time.perf_counter()
            sf.estimate(mechanism, counts, "unbiased")
            seconds.append(time.perf_counter() - start)
        print(f"  {name:26} {k:9,} {mechanism.outputs:9,} {statistics.median(seconds):9.2f}", flush=True)


def main() -> None:
    """Print all tables."""
    privatize()
    parts()
    estimate()


if __name__ == "__main__":
    main()
