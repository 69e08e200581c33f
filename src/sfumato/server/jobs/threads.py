"""Thread pools for work that would block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sfumato.server.http.responses import ApiError
from sfumato.server.store.base import Unavailable

__all__ = ["Readers", "Workers"]

Result = TypeVar("Result")


class Readers:
    """A few threads, each with its own connection to the store."""

    def __init__(self, threads: int = 4) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="sfumato-reader")

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Return the result of a function that may block."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        except Unavailable:
            raise ApiError("unavailable", "the store is unavailable; retry later") from None

    def stop(self) -> None:
        """End the threads."""
        self._pool.shutdown()


class Workers:
    """Threads that unpack long batches or compute estimates, separate from those that read the store."""

    def __init__(self, threads: int = 2, most_waiting: int = 16) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="sfumato-worker")
        self._max_running = threads + most_waiting
        self._running = 0

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Return the result of a computation; raise ApiError if too many computations are waiting."""
        if self._running >= self._max_running:
            raise ApiError("overloaded", "too many long batches or estimates are waiting; retry later")
        self._running += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        finally:
            self._running -= 1

    def stop(self) -> None:
        """End the threads."""
        self._pool.shutdown()
