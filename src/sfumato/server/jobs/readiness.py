"""Decide whether a collector can count: the store has its tables, takes a write, is undamaged, and has room.

A collector that cannot count must not look as if it could. A load balancer reads ``/readyz``, so that response depends
on a real write. Its message says what to do, and contains nothing about participants.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sfumato.server.http.responses import ApiError
from sfumato.server.http.telemetry import LOG, Metrics
from sfumato.server.jobs.threads import Readers
from sfumato.server.jobs.writer import Writer
from sfumato.server.settings import Settings
from sfumato.server.store.base import Store, Unavailable

__all__ = ["Readiness"]

#: Seconds for which a success is remembered; bounds the writes that probes cause.
_FRESH_SECONDS = 1.0


class Readiness:
    """The state of a store, as probes see it."""

    def __init__(
        self,
        store: Store,
        readers: Readers,
        writer: Writer,
        settings: Settings,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._readers, self._writer = store, readers, writer
        self._settings, self._metrics, self._clock = settings, metrics, clock
        self._ready_at = -_FRESH_SECONDS

    async def check(self) -> None:
        """Raise ApiError with advice unless the collector can count."""
        if not self._writer.failing and self._clock() - self._ready_at < _FRESH_SECONDS:
            return
        try:
            await self.check_room()
            failure = await self._readers.run(_check, self._store, self._writer.failing)
            failure = failure or await self._writer.run(_touch)
            if failure is not None:
                self._writer.failing = True
                raise ApiError("unavailable", failure)
        except ApiError:
            self._metrics.ready(False)
            raise
        self._ready_at = self._clock()
        self._metrics.ready(True)

    async def check_room(self) -> None:
        """Reject submissions while the disk is nearly full or the store exceeds its quota; raise ApiError then."""
        size, free = await self._readers.run(_room, self._store)
        self._metrics.room(size, free)
        refusal = self._refusal(size, free)
        if refusal is not None and self._writer.refusal is None:
            LOG.warning("submissions are rejected, because the store has no room", extra={"fields": {"why": refusal}})
        self._writer.refusal = refusal
        if refusal is not None:
            raise ApiError("unavailable", refusal)

    def _refusal(self, size: int, free: int | None) -> str | None:
        """Return why the store has no room, or None."""
        least, most = self._settings.min_free_bytes, self._settings.max_store_bytes
        if free is not None and free < least:
            return (
                f"the disk of the store is nearly full: fewer than {least} bytes are free; "
                "free space, or move the store to a larger disk"
            )
        if most and size > most:
            return (
                f"the store is larger than its quota of {most} bytes; delete collections, shorten keep_days, "
                "or raise --max-store-bytes"
            )
        return None


def _room(store: Store) -> tuple[int, int | None]:
    """Return the bytes of a store and the free bytes of its disk; an unavailable store counts as empty."""
    try:
        return store.room()
    except Unavailable:  # the write that follows reports it
        return 0, None


def _check(store: Store, thorough: bool) -> str | None:
    """Check tables and files of a store; return what to do about a fault, or None."""
    try:
        store.check_schema()
        store.check_damage(thorough=thorough)
    except Unavailable as error:
        LOG.warning("the store cannot be used", extra={"fields": {"error": str(error)}})
        return error.action
    return None


def _touch(store: Store) -> str | None:
    """Write to a store; return what to do about a failure, or None."""
    try:
        store.touch()
    except Unavailable as error:
        LOG.warning("a write to the store failed", extra={"fields": {"error": str(error)}})
        return error.action
    return None
