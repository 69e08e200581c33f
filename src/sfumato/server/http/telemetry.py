"""Structured logs, one JSON object per line on standard error, and metrics for Prometheus.

Log lines contain no address, token, batch id or report. Neither an accepted report nor the question whether
one would be accepted is logged: its time, compared with the access log of a proxy, would reveal the sender. Metrics do
not name collections.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sfumato.server.http.metrics_folder import running_processes
from sfumato.server.http.responses import REASONS
from sfumato.server.store.records import SubmissionResult

__all__ = ["LOG", "Metrics", "to_standard_error"]

LOG = logging.getLogger("sfumato.server")
#: Environment variable with the folder where workers share their metrics (prometheus_client).
SHARED = "PROMETHEUS_MULTIPROC_DIR"

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_BATCHES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class _Lines(logging.Formatter):
    """Format log records as JSON objects."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            # Log only the class and the places, because the message of an error may quote a request.
            kind, _, trace = record.exc_info
            line["error"] = kind.__name__ if kind else None
            line["at"] = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(trace)]
        return json.dumps(line)


def to_standard_error(level: str = "info") -> None:
    """Log the messages of the collector and of uvicorn as JSON lines on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    for name in ("sfumato.server", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())


class Metrics:
    """The counters of one process."""

    def __init__(self) -> None:
        import prometheus_client as prometheus

        self._prometheus = prometheus
        self._registry = registry = prometheus.CollectorRegistry()
        self._requests = prometheus.Histogram(
            "sfumato_request_seconds",
            "Duration of requests in seconds, by route.",
            ["route"],
            registry=registry,
            buckets=_SECONDS,
        )
        errors = prometheus.Counter("sfumato_refusals", "Rejected requests, by reason.", ["reason"], registry=registry)
        self._errors = {reason: errors.labels(reason) for reason in REASONS}
        batches = prometheus.Counter(
            "sfumato_batches", "Acknowledged batches: counted now, or before.", ["fate"], registry=registry
        )
        self._batches = {outcome: batches.labels(outcome) for outcome in ("accepted", "repeated")}
        self._reports = prometheus.Counter("sfumato_reports", "Counted reports.", registry=registry)
        self._groups = prometheus.Histogram(
            "sfumato_commit_batches", "Batches per transaction.", registry=registry, buckets=_BATCHES
        )
        self._commits = prometheus.Histogram(
            "sfumato_commit_seconds",
            "Duration of transactions that count batches, in seconds.",
            registry=registry,
            buckets=_SECONDS,
        )
        self._streams = self._gauge("sfumato_live_streams", "Open live streams.", "livesum")
        self._trace_age = self._gauge(
            "sfumato_store_trace_age_seconds",
            "Seconds since the traces of transactions were last erased from the store.",
            "livemax",
        )
        self._store_bytes = self._gauge("sfumato_store_bytes", "Bytes that the store uses.", "livemax")
        self._free_bytes = self._gauge(
            "sfumato_store_free_bytes", "Free bytes on the disk of a SQLite store; -1 if unknown.", "livemin"
        )
        self._ready = self._gauge(
            "sfumato_ready", "1 if the last check of readiness succeeded, 0 if it failed.", "livemin"
        )
        self._failures = prometheus.Counter(
            "sfumato_store_failures", "Writes that the store rejected.", registry=registry
        )
        self._waiting = self._gauge("sfumato_waiting_submissions", "Submissions that wait to be counted.", "livesum")
        self._collections = self._gauge("sfumato_collections", "Collections, by state.", "livemax", ["state"])
        self._implausible = self._gauge(
            "sfumato_implausible_collections", "Open collections whose reports may be forged.", "livemax"
        )
        self._by_route: dict[str, Any] = {}

    def collections(self, states: Mapping[str, int]) -> None:
        """Set the number of collections by state."""
        for state in ("open", "closed", "archived"):
            self._collections.labels(state).set(states.get(state, 0))

    def implausible(self, count: int) -> None:
        """Set the number of open collections whose reports may be forged."""
        self._implausible.set(count)

    def request(self, route: str, seconds: float) -> None:
        """Record the duration of a request to a route."""
        timer = self._by_route.get(route)
        if timer is None:
            timer = self._by_route[route] = self._requests.labels(route)
        timer.observe(seconds)

    def rejected(self, reason: str) -> None:
        """Count a rejected request."""
        self._errors[reason].inc()

    def commit(self, results: Sequence[SubmissionResult], seconds: float) -> None:
        """Record a committed transaction."""
        self._groups.observe(len(results))
        self._commits.observe(seconds)
        accepted = [result.reports for result in results if result.outcome == "accepted"]
        self._batches["accepted"].inc(len(accepted))
        self._batches["repeated"].inc(sum(result.outcome == "repeated" for result in results))
        self._reports.inc(sum(accepted))

    def streams(self, count: int) -> None:
        """Set the number of open live streams."""
        self._streams.set(count)

    def _gauge(
        self, name: str, summary: str, mode: Literal["livesum", "livemax", "livemin"], labels: Sequence[str] = ()
    ) -> Any:
        """Return a gauge that workers combine by this mode."""
        return self._prometheus.Gauge(name, summary, labels, registry=self._registry, multiprocess_mode=mode)

    def room(self, size: int, free: int | None) -> None:
        """Set the size of the store and the free bytes of its disk."""
        self._store_bytes.set(size)
        self._free_bytes.set(-1 if free is None else free)

    def ready(self, ready: bool) -> None:
        """Record the result of a check of readiness."""
        self._ready.set(int(ready))

    def store_failed(self) -> None:
        """Count a write that the store rejected."""
        self._failures.inc()

    def waiting(self, count: int) -> None:
        """Set the number of submissions that wait."""
        self._waiting.set(count)

    def trace_age(self, seconds: float) -> None:
        """Set the time since the traces of transactions were last erased."""
        self._trace_age.set(seconds)

    def text(self) -> bytes:
        """Return the metrics of all workers in the Prometheus text format."""
        if SHARED not in os.environ:
            return self._prometheus.generate_latest(self._registry)
        from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

        for process in running_processes(os.environ[SHARED])[1]:
            with contextlib.suppress(FileNotFoundError):  # another worker removed the file
                mark_process_dead(process)  # type: ignore[no-untyped-call]
        registry = self._prometheus.CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return self._prometheus.generate_latest(registry)
