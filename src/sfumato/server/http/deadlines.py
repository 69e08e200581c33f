"""Waiting that comes to an end: one look a second at all who wait costs less than a timer for each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from sfumato.server.http.refusals import Refusal

__all__ = ["Deadlines"]


class Deadlines:
    """Tasks that may wait for so many seconds, give or take a quarter of that."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self.clock = seconds, clock
        self.since: dict[asyncio.Task[object], float] = {}
        self.late: set[asyncio.Task[object]] = set()
        self.loop = asyncio.get_running_loop()
        self._looking = asyncio.create_task(self._look())

    def patience(self, message: str) -> _Patience:
        """Refuse (``too-slow``) if what stands in the block of this takes too long."""
        return _Patience(self, message)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._seconds / 4))
            now = self.clock()
            for task, since in list(self.since.items()):
                if now - since > self._seconds and task not in self.late:
                    self.late.add(task)
                    task.cancel()

    def stop(self) -> None:
        """Look no more."""
        self._looking.cancel()


class _Patience:
    """A block of ``Deadlines.patience``."""

    __slots__ = ("_deadlines", "_message", "_task")

    def __init__(self, deadlines: Deadlines, message: str) -> None:
        self._deadlines, self._message = deadlines, message

    def __enter__(self) -> None:
        task = asyncio.current_task(self._deadlines.loop)  # without asking which loop it is, which costs more
        assert task is not None
        self._task = task
        self._deadlines.since[task] = self._deadlines.clock()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        deadlines, task = self._deadlines, self._task
        del deadlines.since[task]
        if task in deadlines.late:
            deadlines.late.discard(task)
            if kind is asyncio.CancelledError:
                task.uncancel()
                raise Refusal("too-slow", self._message) from None
