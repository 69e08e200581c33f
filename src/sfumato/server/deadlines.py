"""Waiting that comes to an end: one look a second at all who wait costs less than a timer for each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sfumato.server.refusals import Refusal

__all__ = ["Deadlines"]


class Deadlines:
    """Tasks that may wait for so many seconds, give or take a quarter of that."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._since: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()
        self._looking = asyncio.create_task(self._look())

    @contextmanager
    def patience(self, message: str) -> Iterator[None]:
        """Refuse (``too-slow``) if what stands in this block takes too long."""
        task = asyncio.current_task()
        assert task is not None
        self._since[task] = self._clock()
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._late:
                raise
            task.uncancel()
            raise Refusal("too-slow", message) from None
        finally:
            del self._since[task]
            self._late.discard(task)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._seconds / 4))
            now = self._clock()
            for task, since in list(self._since.items()):
                if now - since > self._seconds and task not in self._late:
                    self._late.add(task)
                    task.cancel()

    def stop(self) -> None:
        """Look no more."""
        self._looking.cancel()
