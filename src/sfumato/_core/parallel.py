"""Count the available cores, split work on rows between threads, and limit the threads of linear algebra."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from sfumato._core.optional import import_late

__all__ = ["by_threads", "core_count", "one_thread"]

Result = TypeVar("Result")


def core_count() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def by_threads(count: int, least: int, work: Callable[[slice], Result]) -> Iterator[tuple[slice, Result]]:
    """Split ``count`` rows into one slice per core, run ``work`` on each, and yield the results in order.

    Every slice but the last has at least ``least`` rows.
    """
    step = max(least, -(-count // core_count()))
    pieces = [slice(start, min(start + step, count)) for start in range(0, count, step)]
    if len(pieces) <= 1:
        yield from ((piece, work(piece)) for piece in pieces)
        return
    with ThreadPoolExecutor(len(pieces)) as pool:
        yield from zip(pieces, pool.map(work, pieces), strict=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Run linear algebra on one thread within the block.

    The matrices of a search or a fit have a few hundred rows, where more threads gain little. If other programs keep
    the cores busy, threads wait for one another: a factorization for 40 values took 20 times longer on two threads than
    on one.
    """
    import_late("scipy.linalg")  # loads a second linear algebra library, which can be limited only once it is loaded
    with import_late("threadpoolctl").threadpool_limits(limits=1, user_api="blas"):
        yield
