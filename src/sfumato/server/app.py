"""The ASGI application: routes from the list of operations, around one collector."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router

from sfumato.server import pages
from sfumato.server.api import openapi
from sfumato.server.api.collector import Collector
from sfumato.server.api.operations import OPERATIONS
from sfumato.server.http.connections import STATE
from sfumato.server.http.guard import Guard
from sfumato.server.http.refusals import JsonAnswer, Refusal
from sfumato.server.http.routing import Handler, Routes
from sfumato.server.http.telemetry import Metrics, to_standard_error
from sfumato.server.settings import Settings
from sfumato.server.store import open_store

__all__ = ["create_app", "from_environment"]


#: Objects that were made and not given back, until those that refer to each other are looked for.
_GARBAGE = 50_000
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key",
    "Access-Control-Max-Age": "600",
}


def create_app(settings: Settings) -> Guard:
    """The application of a collector. Its store must be up to date; it may be away when this starts, and come back."""
    handlers: list[tuple[str, str, Handler]] = [(own.method, own.path, own.handler) for own in OPERATIONS]
    handlers += [("OPTIONS", own.path, _preflight) for own in OPERATIONS if "{id}" in own.path]
    beside: dict[str, Handler] = {
        "/healthz": _healthy,
        "/readyz": _ready,
        "/metrics": _metrics,
        "/openapi.json": _openapi,
        "/docs": _docs,
        "/": pages.give_first_page,
        **dict.fromkeys(("/static/{name}", *pages.PAGES), pages.give_file),
    }
    handlers += [("GET", path, handler) for path, handler in beside.items()]

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[dict[str, Any]]:  # noqa: ARG001
        collector = Collector(open_store(settings.store, migrate=False), settings, Metrics())
        guard.collector = collector
        gc.freeze()  # what is loaded by now stays: no need to look whether it is still used
        gc.set_threshold(_GARBAGE)  # nor at hundreds of requests under way with every few of them
        try:
            with _when_told_to_stop(collector.stop_streams):
                yield {STATE: collector.connections}
        finally:
            await collector.stop()

    guard = Guard(Routes(handlers), Router(lifespan=lifespan), settings)
    return guard


@contextmanager
def _when_told_to_stop(act: Callable[[], None]) -> Iterator[None]:
    """Act with every SIGTERM or SIGINT, before the server's own handler runs.

    Live streams end then too; otherwise the server would wait for them.
    """
    if threading.current_thread() is not threading.main_thread():  # only there are signals handled
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def handle(number: int, frame: Any) -> None:
        act()
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def from_environment() -> Guard:
    """The application of a process that `sfumato serve` started."""
    to_standard_error()
    return create_app(Settings.from_environment())


# -- operation of the service itself -----------------------------------------------------------------------


async def _healthy(collector: Collector, request: Request) -> JsonAnswer:  # noqa: ARG001
    """The process runs, and need not be started anew."""
    if not collector.writer.alive:
        raise Refusal("unavailable", "nothing is written any more")
    return JsonAnswer(b'{"status":"alive"}')


async def _ready(collector: Collector, request: Request) -> JsonAnswer:
    """The store answers and takes what is written, and the service is not about to end."""
    if collector.stopping.is_set():
        raise Refusal("unavailable", "the collector is about to stop")
    await _healthy(collector, request)
    if collector.writer.failing:  # whether it still is only a write can tell, and others may wait for this to send any
        await collector.writer.run(lambda store: store.touch())
    await collector.readers.run(collector.store.ping)
    return JsonAnswer(b'{"status":"ready"}')


async def _metrics(collector: Collector, request: Request) -> Response:  # noqa: ARG001
    return Response(collector.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _openapi(collector: Collector, request: Request) -> JsonAnswer:  # noqa: ARG001
    return JsonAnswer(msgspec.json.encode(openapi.document()))


async def _docs(collector: Collector, request: Request) -> Response:  # noqa: ARG001
    return pages.page("The API of a Sfumato collector", openapi.page_body())


async def _preflight(collector: Collector, request: Request) -> Response:
    """What a browser asks before it lets a page of another origin send; the guard says to which."""
    await collector.collections.get(request.path_params["id"])
    return Response(status_code=204, headers=_PREFLIGHT)
