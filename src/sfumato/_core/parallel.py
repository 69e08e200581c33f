"""Count the available cores and split work on rows between threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["by_threads", "core_count"]

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
