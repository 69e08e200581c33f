"""Run all benchmarks except those of designs, of the collector, of Spark and of two source trees."""

import time

from benchmarks import (
    audits,
    blocks,
    cyclic,
    estimates,
    kernels,
    local_priors,
    longitudinal,
    peers,
    questions,
    scaling,
    shuffling,
    surveys,
    tables,
)

start = time.perf_counter()
for part in (
    peers,
    scaling,
    kernels,
    cyclic,
    audits,
    blocks,
    local_priors,
    questions,
    surveys,
    longitudinal,
    shuffling,
    tables,
    estimates,
):
    begin = time.perf_counter()
    part.main()
    print(f"({part.__name__}: {time.perf_counter() - begin:.0f} s)\n", flush=True)
print(f"total: {time.perf_counter() - start:.0f} s")
