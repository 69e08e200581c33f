"""The one thread that writes: it takes all that waits, counts it in one transaction, and only then answers.

While a transaction goes to disk, submissions gather; the next one takes them together. So the more come, the fewer
transactions there are for each; who comes alone waits for nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from sfumato.server.http.refusals import Refusal
from sfumato.server.http.telemetry import LOG
from sfumato.server.store.base import Store, Unavailable
from sfumato.server.store.records import Outcome, Submission

__all__ = ["Writer"]

#: A transaction counts at most so many batches, and about so many bytes of them.
_MOST_BATCHES = 1000
_MOST_BYTES = 2**25
#: Seconds in which more are awaited, and between two looks whether any came.
_LONGEST_WAIT, _SHORT_WAIT = 0.005, 0.001
#: What waits takes at most so many bytes of memory.
_MOST_HELD = 2**28

Answer = TypeVar("Answer")


class _Waiting(NamedTuple):
    """A submission, or another write, and who waits for it."""

    work: Submission | Callable[[Store], Any]
    answer: asyncio.Future[Any]


class Writer:
    """Writes to a store from a thread of its own, in the order in which the writes were asked for.

    ``watch`` is told of every group that was counted, in the loop: what became of its batches, and in how many seconds.
    """

    def __init__(self, store: Store, most_waiting: int, watch: Callable[[Sequence[Outcome], float], None]) -> None:
        self._store, self._most_waiting, self._watch = store, most_waiting, watch
        self._loop = asyncio.get_running_loop()
        self._held = 0  # bytes; read and written in the loop alone
        self._in_hand: list[_Waiting | None] = []  # what was taken and not yet answered
        self._company = False  # whether more than one was taken the last time
        self.alive = True  # until nothing will be written any more
        self.failing = False  # whether the store refused the last write
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="sfumato-writer")
        self._thread.start()

    def submit(self, submission: Submission) -> asyncio.Future[Outcome]:
        """Count a batch; the answer is there when it is on disk."""
        size = submission.reports.nbytes
        if self._queue.qsize() >= self._most_waiting or self._held + size > _MOST_HELD:
            raise Refusal("overloaded", "too many submissions wait to be counted")
        self._held += size
        return self._put(submission)

    def run(self, work: Callable[[Store], Answer]) -> asyncio.Future[Answer]:
        """Do another write, after those that wait already."""
        return self._put(work)

    def _put(self, work: Submission | Callable[[Store], Any]) -> asyncio.Future[Any]:
        answer = self._loop.create_future()
        self._queue.put(_Waiting(work, answer))
        if not self.alive:
            self._fail_what_waits()
        return answer

    async def stop(self) -> None:
        """Write what waits, then end the thread."""
        self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    # -- in the thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._write_some():
                pass
        finally:
            self.alive = False
            self._fail_what_waits()
            self._store.close()

    def _fail_what_waits(self) -> None:
        """Tell all who were not answered that they will not be: none where the thread ended as it should."""
        waiting = self._in_hand
        with contextlib.suppress(queue.Empty):
            while True:
                waiting.append(self._queue.get_nowait())
        answers = [one.answer for one in waiting if one is not None]
        self._loop.call_soon_threadsafe(_fail, answers, Refusal("unavailable", "nothing is written any more"))

    def _write_some(self) -> bool:
        """Write what waits, in its order; whether there will be more."""
        group: list[_Waiting] = []
        self._take()
        for waiting in self._in_hand:
            if waiting is None:
                continue
            if isinstance(waiting.work, Submission):
                group.append(waiting)
            else:
                self._commit(group)
                group = []
                self._do(waiting)
        self._commit(group)
        ends, self._company, self._in_hand = None in self._in_hand, len(self._in_hand) > 1, []
        return not ends

    def _take(self) -> None:
        """Take what waits in hand, at least one; wait for it if need be.

        A transaction costs as much as fifty batches in it. Where the last one had company, more are awaited while they
        come, for a moment: all of them together wait less.
        """
        self._in_hand = taken = [self._queue.get()]
        size = _size(taken[0])
        end = time.monotonic() + (_LONGEST_WAIT if self._company else 0.0)
        came = True
        while came and len(taken) < _MOST_BATCHES and size < _MOST_BYTES:
            came = False
            with contextlib.suppress(queue.Empty):
                while len(taken) < _MOST_BATCHES and size < _MOST_BYTES:
                    taken.append(self._queue.get_nowait())
                    size += _size(taken[-1])
                    came = True
            if time.monotonic() > end:
                break
            time.sleep(_SHORT_WAIT)

    def _commit(self, group: list[_Waiting]) -> None:
        if not group:
            return
        start = time.perf_counter()
        submissions: list[Submission] = [waiting.work for waiting in group]  # type: ignore[misc]
        answers = [waiting.answer for waiting in group]
        try:
            outcomes = self._store.commit(submissions)
        except Exception as error:  # whatever it was, each of them must hear of it
            self._loop.call_soon_threadsafe(_fail, answers, self._refusal(error))
        else:
            self.failing = False
            seconds = time.perf_counter() - start
            self._loop.call_soon_threadsafe(_answer, answers, outcomes)
            self._loop.call_soon_threadsafe(self._watch, outcomes, seconds)
        self._loop.call_soon_threadsafe(self._let_go, sum(map(_size, group)))

    def _refusal(self, error: Exception) -> Exception:
        if not isinstance(error, Unavailable):
            return error
        LOG.warning("the store refused a write", extra={"fields": {"error": str(error)}})
        self.failing = True
        return Refusal("unavailable", "the store is away")

    def _let_go(self, size: int) -> None:
        self._held -= size

    def _do(self, waiting: _Waiting) -> None:
        assert not isinstance(waiting.work, Submission)
        try:
            answer = waiting.work(self._store)
        except Exception as error:
            self._loop.call_soon_threadsafe(_fail, [waiting.answer], self._refusal(error))
            return
        self.failing = False
        self._loop.call_soon_threadsafe(_answer, [waiting.answer], [answer])


def _size(waiting: _Waiting | None) -> int:
    return waiting.work.reports.nbytes if waiting is not None and isinstance(waiting.work, Submission) else 0


def _answer(futures: list[asyncio.Future[Any]], answers: Sequence[Any]) -> None:
    for future, answer in zip(futures, answers, strict=True):
        if not future.done():  # who asked may have gone
            future.set_result(answer)


def _fail(futures: list[asyncio.Future[Any]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
