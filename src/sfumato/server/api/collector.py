"""All that the requests to one process share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from sfumato.server.api.collections import Collections
from sfumato.server.http.bodies import Deadlines, Room
from sfumato.server.http.connections import Connections
from sfumato.server.http.telemetry import LOG, Metrics
from sfumato.server.jobs.estimates import Kept
from sfumato.server.jobs.planner import Planner
from sfumato.server.jobs.retention import forget_old_reports, mix_old_reports
from sfumato.server.jobs.threads import Readers, Workers
from sfumato.server.jobs.writer import Writer
from sfumato.server.settings import Settings
from sfumato.server.store.base import Store

__all__ = ["Collector"]

#: Old reports are looked for so often.
_RETENTION_SECONDS = 3600.0


class Collector:
    """Made inside the event loop that it serves, and stopped there. ``now`` is the clock that dates batches."""

    def __init__(
        self, store: Store, settings: Settings, metrics: Metrics, now: Callable[[], float] = time.time
    ) -> None:
        self.store, self.settings, self.metrics, self.now = store, settings, metrics, now
        self._loop = asyncio.get_running_loop()
        self.deadlines = Deadlines(settings.patience)
        self.connections = Connections(settings.connections, settings.patience)
        self.room = Room()
        self.readers = Readers()
        self.workers = Workers()
        self.unpackers = Workers()  # of their own: estimates, which anybody may ask for, hold up no batches
        self.writer = Writer(store, settings.waiting, metrics.commit)
        self.collections = Collections(store, self.readers, time.monotonic)
        self.planner = Planner(settings.plan_seconds, settings.plan_bytes, settings.plan_values)
        self.estimates = Kept()
        # Of their own: estimates, of which there are as many as levels, push nothing out of them.
        self.decoded = Kept()
        self.streams = 0
        self.stopping = asyncio.Event()
        self._retention = asyncio.create_task(self._forget())

    async def _forget(self) -> None:
        while True:
            try:
                for done, work in (("deleted", forget_old_reports), ("mixed", mix_old_reports)):
                    rows = await work(self.store, self.readers, self.writer, self.now())
                    if rows:
                        LOG.info(f"old reports {done}", extra={"fields": {"rows": rows}})
            except Exception:  # the store may be away; there is another time
                LOG.warning("old reports could not be deleted or mixed", exc_info=True)
            await asyncio.sleep(_RETENTION_SECONDS)

    def allowed_origins(self, collection: str) -> Sequence[str]:
        """Return the origins that may read answers about a collection, as far as it is in memory."""
        found = self.collections.at_hand(collection)
        return () if found is None else found.about.origins

    def stop_streams(self) -> None:
        """End every live stream; may be called from any thread."""
        self._loop.call_soon_threadsafe(self.stopping.set)

    async def stop(self) -> None:
        """Count what waits, then let go of everything."""
        self.stopping.set()
        self._retention.cancel()
        self.deadlines.stop()
        self.connections.stop()
        await self.planner.stop()
        await self.writer.stop()
        self.workers.stop()
        self.unpackers.stop()
        self.readers.stop()
        self.store.close_all()
