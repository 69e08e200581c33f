"""What was collected, read back: counts, estimates as JSON, as files and as live streams, and certificates.

A live stream keeps nothing for its reader: it checks the collection at intervals, and sends the estimate as it is
then. A reader that does not read holds up its own stream, whose buffers are the connection's, which is dropped after a
while.
"""

from __future__ import annotations

import asyncio
import io
from statistics import NormalDist
from typing import Any

import msgspec
import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from sfumato.collecting import Aggregate
from sfumato.estimation import Estimate
from sfumato.server.api.administration import require_admin
from sfumato.server.api.collections import Collection
from sfumato.server.api.collector import Collector
from sfumato.server.api.schemas import EstimateResponse, EstimateRow
from sfumato.server.http.responses import ApiError, JsonResponse, Send
from sfumato.server.jobs.estimates import cached_estimate, estimate_of

__all__ = [
    "AGGREGATE_TYPE",
    "METHODS",
    "PARQUET_TYPE",
    "as_parquet",
    "estimate_response",
    "give_aggregate",
    "give_certificate",
    "give_estimate",
    "give_live",
]

PARQUET_TYPE = "application/vnd.apache.parquet"
AGGREGATE_TYPE = "application/vnd.sfumato.aggregate"
#: Methods that need nothing but counts.
METHODS = ("unbiased", "efficient", "simplex", "mle")
#: Estimates of more values than this are not sent in a stream, only how many reports there are.
_MOST_VALUES = 10_000
#: Seconds without an event after which a comment is sent, so that proxies keep the connection.
_SILENCE = 15.0
#: Reasons of errors that end a stream: its client lost access, or the collection is gone.
_OVER = ("unauthorized", "not-found")


def as_parquet(estimate: Estimate, confidence: float) -> bytes:
    """Return the estimate as a Parquet file, the same table as ``sfumato estimate -o estimate.parquet`` writes."""
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(estimate.to_arrow(confidence), file)
    return file.getvalue()


async def readable(collector: Collector, request: Request) -> Collection:
    """Return the collection, if the client may read its results."""
    collection = await collector.collections.get(request.path_params["id"])
    if collection.metadata.results == "admin":
        await require_admin(collector, request)
    return collection


def requested_estimate(request: Request) -> tuple[str, float]:
    """Return the method and the confidence of a request (query parameters ``method`` and ``level``)."""
    method = request.query_params.get("method", "unbiased")
    if method not in METHODS:
        raise ApiError("invalid", f"method must be one of {', '.join(METHODS)}")
    try:
        confidence = float(request.query_params.get("level", "0.95"))
    except ValueError:
        confidence = 0.0
    if not 0 < confidence < 1 or (1 + confidence) / 2 == 1:  # the normal quantile of 1 is infinite
        raise ApiError("invalid", "level must lie between 0 and 1, and not next to 1")
    return method, confidence


async def give_estimate(collector: Collector, request: Request) -> JsonResponse | Response:
    """Return frequencies with their errors."""
    collection = await readable(collector, request)
    method, confidence = requested_estimate(request)
    if request.headers.get("accept", "") == PARQUET_TYPE:
        estimate = await _estimate(collector, collection, await collector.collections.counts(collection), method)
        return Response(await collector.workers.run(as_parquet, estimate, confidence), media_type=PARQUET_TYPE)
    return JsonResponse(await estimate_response(collector, collection, method, confidence))


async def estimate_response(collector: Collector, collection: Collection, method: str, confidence: float) -> bytes:
    """Return the estimate as JSON, cached by counts; it is computed once for all confidences."""
    counts = await collector.collections.counts(collection)

    async def encoded() -> bytes:
        estimate = await _estimate(collector, collection, counts, method) if counts.n else None
        return await collector.workers.run(_encode, collection, method, confidence, estimate)

    return await collector.estimate_responses.get((collection.id, counts.n, method, confidence), encoded)


async def _estimate(collector: Collector, collection: Collection, counts: Aggregate, method: str) -> Estimate:
    if not counts.n:
        raise ApiError("invalid", "there are no reports to estimate from yet")

    async def computed() -> bytes:
        return await collector.workers.run(cached_estimate, collection.mechanism, counts, method)

    cached = await collector.cached_estimates.get((collection.id, counts.n, method), computed)
    return await collector.workers.run(estimate_of, collection.mechanism, cached)


def _encode(collection: Collection, method: str, confidence: float, estimate: Estimate | None) -> bytes:
    rows = []
    if estimate is not None:
        numbers = np.column_stack(
            [estimate.frequencies, estimate.standard_errors, *estimate.interval(confidence)]
        ).tolist()
        rows = [EstimateRow(label, *row) for label, row in zip(estimate.values, numbers, strict=True)]
    quantile = NormalDist().inv_cdf((1 + confidence) / 2)
    response = EstimateResponse(
        collection.id, 0 if estimate is None else estimate.n, method, confidence, quantile, rows
    )
    return msgspec.json.encode(response, enc_hook=str)


async def give_aggregate(collector: Collector, request: Request) -> JsonResponse | Response:
    """Return the exact counts as JSON, or binary if the request accepts that."""
    collection = await readable(collector, request)
    counts = await collector.collections.counts(collection)
    if request.headers.get("accept", "") == AGGREGATE_TYPE:
        return Response(counts.to_bytes(), media_type=AGGREGATE_TYPE)
    return JsonResponse((await collector.workers.run(counts.to_json)).encode())


async def give_certificate(collector: Collector, request: Request) -> JsonResponse:
    """Return the certificate that the mechanism obeys the policy."""
    collection = await collector.collections.get(request.path_params["id"])
    return JsonResponse(collection.certificate)


# -- live streams ------------------------------------------------------------------------------------------


async def give_live(collector: Collector, request: Request) -> Response:
    """Return a stream of estimates, a new one whenever the counts have changed."""
    collection = await readable(collector, request)
    method, confidence = requested_estimate(request)
    await _event(collector, collection, method, confidence)  # an error is sent before the stream begins
    if collector.streams >= collector.settings.streams:
        raise ApiError("overloaded", "too many live streams are open")
    return _Stream(collector, request, method, confidence)


class _Stream(Response):
    """A response that sends events until the client disconnects or the collector stops."""

    def __init__(self, collector: Collector, request: Request, method: str, confidence: float) -> None:
        super().__init__(
            media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        del self.headers["content-length"]
        self._collector, self._request, self._method, self._confidence = collector, request, method, confidence

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": b""})
            return
        self._count(1)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            gone = asyncio.create_task(_gone(receive))
            try:
                await self._events(send, gone)
            finally:
                gone.cancel()
        finally:
            self._count(-1)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _count(self, change: int) -> None:
        self._collector.streams += change
        self._collector.metrics.streams(self._collector.streams)

    async def _events(self, send: Send, gone: asyncio.Task[None]) -> None:
        collector = self._collector
        stopping = asyncio.create_task(collector.stopping.wait())
        shown, quiet = -1, 0.0
        try:
            while not gone.done() and not stopping.done():
                try:
                    parts, shown = await self._news(shown)
                except ApiError as error:
                    if error.reason in _OVER:
                        return
                    parts = None  # too much waits, or the store is away: the next check may succeed
                if parts is not None:
                    for part in parts:
                        await _send(send, part)
                    quiet = 0.0
                elif quiet >= _SILENCE:
                    await _send(send, b":\n\n")
                    quiet = 0.0
                await asyncio.wait(
                    (gone, stopping), timeout=collector.settings.live_seconds, return_when="FIRST_COMPLETED"
                )
                quiet += collector.settings.live_seconds
        finally:
            stopping.cancel()

    async def _news(self, shown: int) -> tuple[tuple[bytes, ...] | None, int]:
        """Check access; return an event in parts, or None if there are still ``shown`` reports, and their number."""
        collection = await readable(self._collector, self._request)
        reports = collection.progress.reports
        if reports == shown:
            return None, shown
        return await _event(self._collector, collection, self._method, self._confidence), reports


async def _event(collector: Collector, collection: Collection, method: str, confidence: float) -> tuple[bytes, ...]:
    # In parts, of which the long one is the same for all streams: those that wait to send it hold no copies.
    if len(collection.mechanism.domain) > _MOST_VALUES:
        return b"event: reports\ndata: ", msgspec.json.encode({"reports": collection.progress.reports}), b"\n\n"
    return b"event: estimate\ndata: ", await estimate_response(collector, collection, method, confidence), b"\n\n"


async def _send(send: Send, text: bytes) -> None:
    await send({"type": "http.response.body", "body": text, "more_body": True})


async def _gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
