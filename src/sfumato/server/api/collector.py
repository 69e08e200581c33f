"""The objects that all requests to one process share."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial

from sfumato.estimation import plausibility
from sfumato.server.api.collections import Collections
from sfumato.server.http.bodies import MemoryBudget, Timeouts
from sfumato.server.http.connections import Connections
from sfumato.server.http.limits import AddressNames, DailyBudget, Shares
from sfumato.server.http.responses import ApiError
from sfumato.server.http.telemetry import LOG, Metrics
from sfumato.server.jobs.estimates import QUICK_METHODS, EstimatePlaces, ResultCache
from sfumato.server.jobs.planner import Planner
from sfumato.server.jobs.readiness import Readiness
from sfumato.server.jobs.retention import ClockGuard, forget_old_reports, shuffle_old_reports
from sfumato.server.jobs.threads import Readers, Workers
from sfumato.server.jobs.watchdog import notify, report_health
from sfumato.server.jobs.writer import Writer
from sfumato.server.settings import Settings
from sfumato.server.store.base import Store
from sfumato.server.store.records import METADATA

__all__ = ["Collector"]

#: Seconds between two retention runs.
_RETENTION_SECONDS = 3600.0
#: Next step if an estimate takes too long.
_FASTER = "use method unbiased or simplex, or estimate from the counts of GET …/aggregate on your machine"
#: Seconds between two checks of readiness, which also measure the size of the store and free space.
_CHECK_SECONDS = 10.0
#: Seconds until traces are erased again after a reader prevented it.
_ERASE_RETRY = 5.0


class Collector:
    """Shared state of one process. Create and stop it in the event loop; ``now`` is the clock that dates batches."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        metrics: Metrics,
        now: Callable[[], float] = time.time,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self.store, self.settings, self.metrics, self.now = store, settings, metrics, now
        self._loop = asyncio.get_running_loop()
        self.timeouts = Timeouts(settings.timeout)
        self.connections = Connections(
            settings.connections, settings.timeout, most_each=settings.connections_each, proxies=settings.proxies
        )
        self.body_memory = MemoryBudget()
        self.addresses = AddressNames()
        self.streams_each = Shares(
            settings.streams_each,
            "this address has too many live streams; close some of them, or request the estimate instead",
        )
        self.open_per_address = DailyBudget(
            settings.open_per_address, "this address has sent too many reports to open collections today; retry later"
        )
        self.open_per_collection = DailyBudget(
            settings.open_per_collection, "this collection has received too many reports today; retry tomorrow"
        )
        self.readers = Readers()
        self.workers = Workers(most_waiting=48)
        self.unpackers = Workers()  # separate, so that requests for public estimates do not delay batches
        # Separate places: slow methods, whose intervals may take seconds for each level, must not delay quick ones.
        self.quick_places = EstimatePlaces(settings.estimates_each, settings.estimates_per_collection, self.workers)
        self.slow_places = EstimatePlaces(
            settings.slow_estimates_each, settings.slow_estimates_per_collection, Workers()
        )
        self.writer = Writer(store, settings.waiting, metrics.commit, metrics.store_failed, ended)
        self.readiness = Readiness(store, self.readers, self.writer, settings, metrics)
        self.collections = Collections(store, self.readers, time.monotonic)
        self.planner = Planner(settings.plan_seconds, settings.plan_bytes, settings.plan_values)
        self.slow_estimates = Planner(
            settings.estimate_seconds, settings.plan_bytes, settings.plan_values, "an estimate by this method", _FASTER
        )
        self.estimate_responses = ResultCache()
        # Responses with unusual levels or questions have a separate cache: they must not evict those that many request.
        self.unusual_responses = ResultCache(2**24)
        # Separate caches: there is one response per confidence level, and many responses must not evict estimates.
        self.cached_estimates = ResultCache()
        self.streams = 0
        self.stopping = asyncio.Event()
        work = (self._forget(), self._erase(), self._watch_store(), self._count_implausible(), self._release())
        self._tasks = [asyncio.create_task(one) for one in (*work, report_health(lambda: self.writer.alive))]

    async def _forget(self) -> None:
        """Delete and shuffle old reports once per hour."""
        guard = ClockGuard(self.store, self.readers, self.writer, time.monotonic)
        while True:
            try:
                allowed = await guard.allows(self.now())
                for action, work in (("deleted", forget_old_reports), ("shuffled", shuffle_old_reports)):
                    if work is forget_old_reports and not allowed:
                        continue
                    rows = await work(self.store, self.readers, self.writer, self.now())
                    if rows:
                        LOG.info(f"old reports {action}", extra={"fields": {"rows": rows}})
            except Exception:  # the store may be unavailable; the next run retries
                LOG.warning("old reports could not be deleted or shuffled", exc_info=True)
            await asyncio.sleep(_RETENTION_SECONDS)

    async def _erase(self) -> None:
        """Erase traces of transactions at the start and at intervals, and record how long they have existed."""
        erased_at = self._loop.time()
        while True:
            started, erased = self._loop.time(), False
            with contextlib.suppress(ApiError):  # the store may be unavailable; the next run retries
                erased = await self.writer.erase()
            if not erased:
                LOG.warning("traces of transactions could not be erased")
            erased_at = started if erased else erased_at
            self.metrics.trace_age(self._loop.time() - erased_at)
            await asyncio.sleep(self.store.erase_seconds if erased else min(_ERASE_RETRY, self.store.erase_seconds))

    async def _release(self) -> None:
        """Let readers without a token see new reports, in steps and at intervals that do not depend on arrivals."""
        step = self.settings.public_step
        while step:
            try:
                for name, stored in await self.readers.run(self.store.unreleased, step):
                    metadata = METADATA.decode(stored)
                    if metadata.results != "public":
                        continue
                    release = partial(Store.release, collection=name, step=step)
                    if metadata.waves is not None:  # readers see each wave, so each has its steps
                        mechanism = (await self.collections.get(name)).mechanism
                        release = partial(Store.release_waves, collection=name, mechanism=mechanism, step=step)
                    await self.writer.run(release)
            except Exception:  # the store may be unavailable; the next run retries
                LOG.warning("public results could not be brought up to date", exc_info=True)
            await asyncio.sleep(self.settings.public_seconds)

    async def _watch_store(self) -> None:
        """Check readiness at the start and at intervals, so that the metrics state it without a probe."""
        while True:
            with contextlib.suppress(ApiError, OSError):  # the refusal is recorded
                await self.readiness.check()
            with contextlib.suppress(ApiError):
                self.metrics.collections(await self.readers.run(self.store.states))
            self.metrics.waiting(self.writer.waiting)
            await asyncio.sleep(_CHECK_SECONDS)

    async def _count_implausible(self) -> None:
        """Count the open collections with improbable counts, at the start and once per hour."""
        while True:
            try:
                implausible = after = 0
                while rows := await self.readers.run(self.store.collections, after, 100):
                    after = rows[-1][0]
                    for _, name, _, progress in rows:
                        if progress.state == "open" and progress.reports:
                            implausible += await self._is_implausible(name)
                self.metrics.implausible(implausible)
                if implausible:
                    LOG.warning("reports may be forged", extra={"fields": {"collections": implausible}})
            except Exception:  # the store may be unavailable; the next run retries
                LOG.warning("collections could not be tested for forged reports", exc_info=True)
            await asyncio.sleep(_RETENTION_SECONDS)

    async def _is_implausible(self, name: str) -> bool:
        """Return whether the counts of a collection are improbable under every distribution of answers."""
        collection = await self.collections.get(name)
        if collection.metadata.waves is not None:
            return False
        counts = await self.collections.counts(collection)
        result = await self.workers.run(partial(plausibility, most_cells=2**18), collection.mechanism, counts)
        return result.alarm

    def places(self, method: str) -> EstimatePlaces:
        """Return the places of estimates by a method."""
        return self.quick_places if method in QUICK_METHODS else self.slow_places

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
        notify("STOPPING=1")
        for task in self._tasks:
            task.cancel()
        self.timeouts.stop()
        self.connections.stop()
        await self.planner.stop()
        await self.slow_estimates.stop()
        with contextlib.suppress(ApiError):  # the store may be unavailable; the next start erases them
            await self.writer.erase()
        await self.writer.stop()
        for workers in (self.workers, self.unpackers, self.slow_places.workers):
            workers.stop()
        self.readers.stop()
        self.store.close_all()
