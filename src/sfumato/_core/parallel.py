"""How many cores there are, and work on rows shared out among them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["by_threads", "core_count"]

Result = TypeVar("Result")


def core_count() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def by_threads(count: int, least: int, work: Callable[[slice], Result]) -> Iterator[tuple[slice, Result]]:
    """The work on equal pieces of ``count`` rows, one for each core, in their order; none has fewer than ``least``."""
    step = max(least, -(-count // core_count()))
    pieces = [slice(start, min(start + step, count)) for start in range(0, count, step)]
    if len(pieces) <= 1:
        yield from ((piece, work(piece)) for piece in pieces)
        return
    with ThreadPoolExecutor(len(pieces)) as pool:
        yield from zip(pieces, pool.map(work, pieces), strict=True)
