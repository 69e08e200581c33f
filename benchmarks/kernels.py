"""Measure the array kernels, compared with the rate at which this machine generates random bytes.

    python -m benchmarks.kernels

The time of a kernel includes its keystreams. Its *budget* is the time in which the machine generates its random bytes
and copies its reports. No kernel can be faster than its budget.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.domain import Domain
from sfumato.mechanisms import (
    CyclicDesign,
    HadamardResponse,
    Kernel,
    Mechanism,
    RandomizedResponse,
    SubsetSelection,
    TableMechanism,
    UnaryEncoding,
    kernel_for,
)
from sfumato.randomness import AUXILIARY, MAIN, fresh_key, keystream

_REPEATS = 5
_LEAST_SECONDS = 0.1
_STREAM_BYTES = 2**18
_CHUNKS = 16
_SEED = 1


class Case(NamedTuple):
    """A mechanism, and the millions of values per second that prototypes reached on a similar machine."""

    label: str
    mechanism: Mechanism
    known: str


def cases() -> list[Case]:
    """Return mechanisms of each kind, at the sizes whose rates are known."""
    matrix = np.random.default_rng(_SEED).random((64, 64))
    table = TableMechanism.from_matrix(Domain(range(64)), matrix / matrix.sum(axis=1, keepdims=True))
    return [
        Case("hadamard, 2,048 columns", HadamardResponse(Domain(range(2000)), 1, block_size=2**11), "820-870"),
        Case("hadamard, 2^17 columns", HadamardResponse(Domain(range(10**5)), 1, block_size=2**17), ""),
        Case("hadamard, 143 blocks of 8", HadamardResponse(Domain(range(1000)), 5, block_size=8), "280"),
        Case("randomized response, k = 1,000", RandomizedResponse(Domain(range(1000)), 5), "500"),
        Case("cyclic, k = 1,000", CyclicDesign(Domain(range(1000)), 1), ""),
        Case("cyclic, k = 43,750", CyclicDesign(Domain(range(43_750)), 1), ""),
        Case("table, 64 x 64", table, "170-240"),
        Case("unary, k = 64", UnaryEncoding(Domain(range(64)), 1), "45-50"),
        Case("unary, k = 1,024", UnaryEncoding(Domain(range(1024)), 1), "2.8-3.1"),
        Case("unary, k = 1,024, optimized", UnaryEncoding(Domain(range(1024)), 1, optimized=True), "2.8-3.1"),
        Case("subset, k = 128, d = 34", SubsetSelection(Domain(range(128)), 1, 34), "13.5"),
        Case("subset, k = 1,024, d = 275", SubsetSelection(Domain(range(1024)), 1, 275), "5.1"),
    ]


class Worker:
    """Streams and buffers of one thread."""

    def __init__(self, kernel: Kernel, size: int) -> None:
        self.kernel = kernel
        self.main = np.empty(size * kernel.frame_bytes, dtype=np.uint8)
        self.auxiliary = np.empty(kernel.auxiliary_words(size), dtype=np.uint64)
        self.zeros = memoryview(bytes(max(self.main.nbytes, self.auxiliary.nbytes)))
        key = fresh_key()
        self.streams = keystream(key, 0, MAIN), keystream(key, 0, AUXILIARY)

    def run(self, values: npt.NDArray[np.int64], out: npt.NDArray[Any]) -> None:
        """Privatize one chunk."""
        main, auxiliary = self.streams
        main.update_into(self.zeros[: self.main.nbytes], self.main.data)
        auxiliary.update_into(self.zeros[: self.auxiliary.nbytes], self.auxiliary.view(np.uint8).data)
        if self.kernel.run(values, self.main, self.auxiliary, out) < 0:
            raise RuntimeError("a chunk needed more auxiliary words than provided, which is very unlikely; run again")


def seconds(job: Callable[[], object]) -> float:
    """Return the median time of a job, over repeats of many runs each."""
    job()  # compile kernels and touch every memory page
    start = time.perf_counter()
    job()
    runs = max(1, round(_LEAST_SECONDS / (time.perf_counter() - start)))
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        for _ in range(runs):
            job()
        times.append((time.perf_counter() - start) / runs)
    return statistics.median(times)


def stream_job(count: int) -> Callable[[], None]:
    """Return a job that generates ``count`` bytes of keystream in a buffer that fits in the cache."""
    stream, zeros, buffer = keystream(fresh_key(), 0, MAIN), bytes(_STREAM_BYTES), bytearray(_STREAM_BYTES)

    def job() -> None:
        for _ in range(count // _STREAM_BYTES):
            stream.update_into(zeros, buffer)

    return job


def stream_rate() -> float:
    """Return the bytes of keystream per second, in one thread."""
    return _STREAM_BYTES / seconds(stream_job(_STREAM_BYTES))


def copy_rate() -> float:
    """Return the bytes per second copied between two buffers larger than the caches, in one thread."""
    source, target = np.ones(2**26, dtype=np.uint8), np.ones(2**26, dtype=np.uint8)
    return source.nbytes / seconds(lambda: np.copyto(target, source))


def value_rate(mechanism: Mechanism, kernel: Kernel, threads: int) -> float:
    """Return the values per second of threads that share many chunks, with separate keystreams."""
    size = mechanism.layout.chunk_values
    workers = [Worker(kernel, size) for _ in range(threads)]
    values = np.random.default_rng(_SEED).integers(0, len(mechanism.domain), _CHUNKS * size)
    out = np.zeros((len(values), *kernel.report_shape), dtype=kernel.dtype)
    chunks = [slice(c * size, (c + 1) * size) for c in range(_CHUNKS)]

    def work(number: int) -> None:
        for chunk in chunks[number::threads]:
            workers[number].run(values[chunk], out[chunk])

    with ThreadPoolExecutor(threads) as pool:
        return len(values) / seconds(lambda: list(pool.map(work, range(threads))))


def main() -> None:
    """Measure everything and print it."""
    copy = copy_rate()
    print(f"keystream {stream_rate() / 1e9:.1f} GB/s, copy {copy / 1e9:.1f} GB/s\n")
    print(f"{'million values/s':32}{'known':>10}{'1 thread':>10}{'2 threads':>10}{'of budget':>10}{'of stream/4':>12}")
    for label, mechanism, known in cases():
        kernel = kernel_for(mechanism)
        assert kernel is not None
        stream = stream_rate()  # measured again for each kernel, because the speed of a shared machine varies
        one, two = (value_rate(mechanism, kernel, threads) for threads in (1, 2))
        random_bytes = kernel.frame_bytes + 8 * kernel.auxiliary_mean
        report_bytes = kernel.dtype.itemsize * math.prod(kernel.report_shape)
        budget = one * (random_bytes / stream + report_bytes / copy)
        of_stream = f"{one / (stream / 4):.2f}" if kernel.frame_bytes == 4 else ""
        print(f"{label:32}{known:>10}{one / 1e6:>10.1f}{two / 1e6:>10.1f}{budget:>10.2f}{of_stream:>12}", flush=True)


if __name__ == "__main__":
    main()
