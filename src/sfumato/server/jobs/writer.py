"""The writer thread: it counts all pending submissions in one transaction, and resolves their futures after the commit.

While one transaction is written to disk, new submissions accumulate, and the next transaction counts them together.
The number of transactions per submission therefore falls with the load, and a single submission does not wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from sfumato.server.http.responses import ApiError
from sfumato.server.http.telemetry import LOG
from sfumato.server.store.base import Store, Unavailable
from sfumato.server.store.records import Submission, SubmissionResult

__all__ = ["Writer"]

#: Maximum batches per transaction, and approximate maximum bytes; they bound the time of a transaction.
_MOST_BATCHES = 1000
_MOST_BYTES = 2**25
#: Maximum seconds to wait for more submissions, and seconds between two checks.
_LONGEST_WAIT, _SHORT_WAIT = 0.003, 0.0003
#: Maximum bytes of pending submissions.
_MAX_PENDING_BYTES = 2**28

Result = TypeVar("Result")


class _Waiting(NamedTuple):
    """A submission or another write, with the future of its result."""

    work: Submission | Callable[[Store], Any]
    future: asyncio.Future[Any]


class Writer:
    """Write to a store from one thread, in the order of the requests.

    After every committed group the event loop calls ``watch`` with the results and the duration in seconds, after a
    write that the store rejected ``failed``, and after an unexpected end of the thread ``ended``.
    """

    def __init__(
        self,
        store: Store,
        most_waiting: int,
        watch: Callable[[Sequence[SubmissionResult], float], None],
        failed: Callable[[], None] = lambda: None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._store, self._most_waiting, self._watch = store, most_waiting, watch
        self._failed, self._ended = failed, ended
        self._loop = asyncio.get_running_loop()
        self._pending_bytes = 0  # accessed only in the event loop
        self._taken: list[_Waiting | None] = []  # taken from the queue, but not yet resolved
        self._last_size = 1  # members of the last group
        self.alive = True  # until the thread ends
        self.refusal: str | None = None  # why submissions are rejected, such as a full disk
        self.failing = False  # whether the last write failed because the store was unavailable
        self._writes, self._erased = 1, 0  # writes so far, and those whose traces were erased
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="sfumato-writer")
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of writes that wait."""
        return self._queue.qsize()

    def submit(self, submission: Submission) -> asyncio.Future[SubmissionResult]:
        """Queue a batch to be counted; the future resolves when the counts are on disk."""
        if self.refusal is not None:
            raise ApiError("unavailable", f"{self.refusal}; retry with the same batch id")
        size = submission.reports.nbytes
        if self._queue.qsize() >= self._most_waiting or self._pending_bytes + size > _MAX_PENDING_BYTES:
            raise ApiError("overloaded", "too many submissions are waiting; retry with the same batch id")
        self._pending_bytes += size
        return self._put(submission)

    def run(self, work: Callable[[Store], Result]) -> asyncio.Future[Result]:
        """Queue another write, which runs after the pending ones."""
        return self._put(work)

    async def erase(self) -> bool:
        """Erase the traces of finished transactions, if there may be any; return whether none are left."""
        return self._erased == self._writes or await self.run(self._erase)

    def _put(self, work: Submission | Callable[[Store], Any]) -> asyncio.Future[Any]:
        """Queue work and return its future."""
        future = self._loop.create_future()
        self._queue.put(_Waiting(work, future))
        if not self.alive:
            self._fail_pending()
        return future

    async def stop(self) -> None:
        """Complete the pending writes, then end the thread."""
        self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    # -- in the writer thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        """Write until the thread is stopped."""
        expected = False
        try:
            while self._write_some():
                pass
            expected = True
        finally:
            self.alive = False
            if not expected:
                LOG.critical("the writer thread has ended, and the collector stops", exc_info=True)
                self._loop.call_soon_threadsafe(self._ended)
            self._fail_pending()
            self._store.close()

    def _fail_pending(self) -> None:
        """Fail all unresolved futures; after a regular stop none are left."""
        waiting = self._taken
        with contextlib.suppress(queue.Empty):
            while True:
                waiting.append(self._queue.get_nowait())
        futures = [one.future for one in waiting if one is not None]
        error = ApiError("unavailable", "the writer thread of the collector has ended; retry after a restart")
        self._loop.call_soon_threadsafe(_fail, futures, error)

    def _write_some(self) -> bool:
        """Complete pending work in order; return whether the thread continues."""
        group: list[_Waiting] = []
        self._take()
        for waiting in self._taken:
            if waiting is None:
                continue
            if isinstance(waiting.work, Submission):
                group.append(waiting)
            else:
                self._commit(group)
                group = []
                self._do(waiting)
        self._commit(group)
        ends, self._last_size, self._taken = None in self._taken, len(self._taken), []
        return not ends

    def _take(self) -> None:
        """Take pending work from the queue, and block while the queue is empty.

        A transaction costs as much as fifty batches in it. If the last group had several members, wait a few
        milliseconds while more arrive: larger groups reduce the total waiting time. Do not wait for more than the last
        group had, because clients that wait for their receipts send nothing meanwhile.
        """
        self._taken = taken = [self._queue.get()]
        size = _size(taken[0])
        end = time.monotonic() + (_LONGEST_WAIT if self._last_size > 1 else 0.0)
        arrived = True
        while arrived and len(taken) < _MOST_BATCHES and size < _MOST_BYTES:
            arrived = False
            with contextlib.suppress(queue.Empty):
                while len(taken) < _MOST_BATCHES and size < _MOST_BYTES:
                    taken.append(self._queue.get_nowait())
                    size += _size(taken[-1])
                    arrived = True
            if len(taken) >= self._last_size or time.monotonic() > end:
                break
            time.sleep(_SHORT_WAIT)

    def _commit(self, group: list[_Waiting]) -> None:
        """Count a group of submissions in one transaction, and resolve or fail their futures."""
        if not group:
            return
        self._writes += 1
        start = time.perf_counter()
        submissions: list[Submission] = [waiting.work for waiting in group]  # type: ignore[misc]
        futures = [waiting.future for waiting in group]
        try:
            results = self._store.commit(submissions)
        except Exception as error:  # every future must receive the error
            self._loop.call_soon_threadsafe(_fail, futures, self._api_error(error))
        else:
            self.failing = False
            seconds = time.perf_counter() - start
            self._loop.call_soon_threadsafe(_resolve, futures, results)
            self._loop.call_soon_threadsafe(self._watch, results, seconds)
        self._loop.call_soon_threadsafe(self._release, sum(map(_size, group)))

    def _erase(self, store: Store) -> bool:
        """Erase the traces of all writes so far; return False if a reader prevents it."""
        erased = store.erase()
        if erased:
            self._erased = self._writes
        return erased

    def _api_error(self, error: Exception) -> Exception:
        """Return the error for clients; log that the store is unavailable."""
        if not isinstance(error, Unavailable):
            return error
        LOG.warning("a write to the store failed", extra={"fields": {"error": str(error)}})
        self.failing = True
        self._loop.call_soon_threadsafe(self._failed)
        return ApiError("unavailable", "the store is unavailable; retry with the same batch id")

    def _release(self, size: int) -> None:
        """Subtract the bytes of a committed group from the pending ones."""
        self._pending_bytes -= size

    def _do(self, waiting: _Waiting) -> None:
        """Run a write that is not a submission, and resolve or fail its future."""
        assert not isinstance(waiting.work, Submission)
        self._writes += 1
        try:
            result = waiting.work(self._store)
        except Exception as error:
            self._loop.call_soon_threadsafe(_fail, [waiting.future], self._api_error(error))
            return
        self.failing = False
        self._loop.call_soon_threadsafe(_resolve, [waiting.future], [result])


def _size(waiting: _Waiting | None) -> int:
    """Return the bytes of the reports of a submission, 0 for other work."""
    return waiting.work.reports.nbytes if waiting is not None and isinstance(waiting.work, Submission) else 0


def _resolve(futures: list[asyncio.Future[Any]], results: Sequence[Any]) -> None:
    """Set the results of futures."""
    for future, result in zip(futures, results, strict=True):
        if not future.done():  # the client may have disconnected
            future.set_result(result)


def _fail(futures: list[asyncio.Future[Any]], error: Exception) -> None:
    """Set the error of all futures that are not done."""
    for future in futures:
        if not future.done():
            future.set_exception(error)
