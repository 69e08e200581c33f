"""Threads for what takes longer than an event loop should stand still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sfumato.server.http.refusals import Refusal
from sfumato.server.store.base import Unavailable

__all__ = ["Readers", "Workers"]

Answer = TypeVar("Answer")


class Readers:
    """A few threads, each with a connection of its own to the store."""

    def __init__(self, threads: int = 4) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="sfumato-reader")

    async def run(self, work: Callable[..., Answer], *arguments: Any) -> Answer:
        """The answer of a function that may block."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        except Unavailable:
            raise Refusal("unavailable", "the store is away") from None

    def stop(self) -> None:
        """End the threads."""
        self._pool.shutdown()


class Workers:
    """Threads that unpack long batches, or compute estimates. Whoever reads from the store never waits for them."""

    def __init__(self, threads: int = 2, most_waiting: int = 16) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="sfumato-worker")
        self._most = threads + most_waiting
        self._asked = 0

    async def run(self, work: Callable[..., Answer], *arguments: Any) -> Answer:
        """The answer of a function that computes, unless too much waits already."""
        if self._asked >= self._most:
            raise Refusal("overloaded", "too many long batches or estimates wait")
        self._asked += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        finally:
            self._asked -= 1

    def stop(self) -> None:
        """End the threads."""
        self._pool.shutdown()
