"""Live estimates as server-sent events.

A stream keeps nothing for its reader: it looks at the collection once in a while, and sends the estimate as it is then.
A reader that does not read holds up its own stream, whose buffers are the connection's, which is dropped after a while.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sfumato.server.api.collections import Collection
from sfumato.server.api.collector import Collector
from sfumato.server.api.results import asked_estimate, estimate_answer, readable
from sfumato.server.http.answers import Send
from sfumato.server.http.refusals import Refusal

__all__ = ["give_live"]

#: Estimates of more values than this are not sent, only how many reports there are.
_MOST_VALUES = 10_000
#: After so many seconds without news a comment is sent, so that proxies keep the connection.
_SILENCE = 15.0
#: Refusals after which a stream ends: who reads it may do so no more, or there is nothing to read.
_OVER = ("unauthorized", "not-found")


async def give_live(collector: Collector, request: Request) -> Response:
    """A stream of estimates, a new one whenever the counts have changed."""
    collection = await readable(collector, request)
    method, level = asked_estimate(request)
    await _event(collector, collection, method, level)  # what cannot be estimated is refused before it begins
    if collector.streams >= collector.settings.streams:
        raise Refusal("overloaded", "too many live streams are open")
    return _Stream(collector, request, method, level)


class _Stream(Response):
    """Sends events until either side has had enough."""

    def __init__(self, collector: Collector, request: Request, method: str, level: float) -> None:
        super().__init__(
            media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        del self.headers["content-length"]
        self._collector, self._request, self._method, self._level = collector, request, method, level

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
                except Refusal as refusal:
                    if refusal.reason in _OVER:
                        return
                    parts = None  # too much waits, or the store is away: the next look may find it otherwise
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
        """An event, in parts, if there are not ``shown`` reports; and how many. Refused to who may read no longer."""
        collection = await readable(self._collector, self._request)
        reports = collection.progress.reports
        if reports == shown:
            return None, shown
        return await _event(self._collector, collection, self._method, self._level), reports


async def _event(collector: Collector, collection: Collection, method: str, level: float) -> tuple[bytes, ...]:
    # In parts, of which the long one is the same for all streams: those that wait to send it hold no copies.
    if len(collection.mechanism.domain) > _MOST_VALUES:
        return b"event: reports\ndata: ", msgspec.json.encode({"reports": collection.progress.reports}), b"\n\n"
    return b"event: estimate\ndata: ", await estimate_answer(collector, collection, method, level), b"\n\n"


async def _send(send: Send, text: bytes) -> None:
    await send({"type": "http.response.body", "body": text, "more_body": True})


async def _gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
