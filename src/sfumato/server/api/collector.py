"""The objects that all requests to one process share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from sfumato.server.api.collections import Collections
from sfumato.server.http.bodies import MemoryBudget, Timeouts
from sfumato.server.http.connections import Connections
from sfumato.server.http.telemetry import LOG, Metrics
from sfumato.server.jobs.estimates import ResultCache
from sfumato.server.jobs.planner import Planner
from sfumato.server.jobs.retention import forget_old_reports, shuffle_old_reports
from sfumato.server.jobs.threads import Readers, Workers
from sfumato.server.jobs.writer import Writer
from sfumato.server.settings import Settings
from sfumato.server.store.base import Store

__all__ = ["Collector"]

#: Seconds between two retention runs.
_RETENTION_SECONDS = 3600.0


class Collector:
    """Shared state of one process. Create and stop it in the event loop; ``now`` is the clock that dates batches."""

    def __init__(
        self, store: Store, settings: Settings, metrics: Metrics, now: Callable[[], float] = time.time
    ) -> None:
        self.store, self.settings, self.metrics, self.now = store, settings, metrics, now
        self._loop = asyncio.get_running_loop()
        self.timeouts = Timeouts(settings.timeout)
        self.connections = Connections(settings.connections, settings.timeout)
        self.body_memory = MemoryBudget()
        self.readers = Readers()
        self.workers = Workers()
        self.unpackers = Workers()  # separate, so that requests for public estimates do not delay batches
        self.writer = Writer(store, settings.waiting, metrics.commit)
        self.collections = Collections(store, self.readers, time.monotonic)
        self.planner = Planner(settings.plan_seconds, settings.plan_bytes, settings.plan_values)
        self.estimate_responses = ResultCache()
        # Separate caches: there is one response per confidence level, and many responses must not evict estimates.
        self.cached_estimates = ResultCache()
        self.streams = 0
        self.stopping = asyncio.Event()
        self._retention = asyncio.create_task(self._forget())

    async def _forget(self) -> None:
        """Delete and shuffle old reports once per hour."""
        while True:
            try:
                for action, work in (("deleted", forget_old_reports), ("shuffled", shuffle_old_reports)):
                    rows = await work(self.store, self.readers, self.writer, self.now())
                    if rows:
                        LOG.info(f"old reports {action}", extra={"fields": {"rows": rows}})
            except Exception:  # the store may be unavailable; the next run retries
                LOG.warning("old reports could not be deleted or shuffled", exc_info=True)
            await asyncio.sleep(_RETENTION_SECONDS)

    def allowed_origins(self, collection: str) -> Sequence[str]:
        """Return the origins that may read responses about a collection, if it is cached."""
        cached = self.collections.cached(collection)
        return () if cached is None else cached.metadata.origins

    def stop_streams(self) -> None:
        """End every live stream. Any thread may call this method."""
        self._loop.call_soon_threadsafe(self.stopping.set)

    async def stop(self) -> None:
        """Count pending submissions, then stop all threads, tasks and connections."""
        self.stopping.set()
        self._retention.cancel()
        self.timeouts.stop()
        self.connections.stop()
        await self.planner.stop()
        await self.writer.stop()
        self.workers.stop()
        self.unpackers.stop()
        self.readers.stop()
        self.store.close_all()
