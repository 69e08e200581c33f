"""The ASGI application: routes generated from the list of operations, with one shared collector."""

from __future__ import annotations

import gc
import os
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
from sfumato.server.http.middleware import Middleware
from sfumato.server.http.responses import ApiError, JsonResponse
from sfumato.server.http.routing import Handler, Routes
from sfumato.server.http.telemetry import Metrics, to_standard_error
from sfumato.server.settings import ENDED, Settings
from sfumato.server.store import open_store

__all__ = ["create_app", "from_environment"]


#: Allocation count that triggers a garbage collection.
_GC_THRESHOLD = 50_000
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key",
    "Access-Control-Max-Age": "600",
}


def create_app(settings: Settings, ended: Callable[[], None] = lambda: None) -> Middleware:
    """Return the application of a collector. Its store must be migrated, but may be unavailable at startup.

    ``ended`` is called if the writer thread ends unexpectedly: the process cannot count further reports.
    """
    handlers: list[tuple[str, str, Handler]] = [
        (operation.method, operation.path, operation.handler) for operation in OPERATIONS
    ]
    handlers += [("OPTIONS", operation.path, _preflight) for operation in OPERATIONS if "{id}" in operation.path]
    others: dict[str, Handler] = {
        "/healthz": _healthy,
        "/readyz": _ready,
        "/metrics": _metrics,
        "/openapi.json": _openapi,
        "/docs": _docs,
        "/": pages.give_first_page,
        **dict.fromkeys(("/static/{name}", *pages.PAGES), pages.give_file),
        "/c/{id}/embed": pages.give_embedded_results,
    }
    handlers += [("GET", path, handler) for path, handler in others.items()]

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[dict[str, Any]]:  # noqa: ARG001
        collector = Collector(open_store(settings.store, migrate=False), settings, Metrics(), ended=ended)
        middleware.collector = collector
        gc.freeze()  # exclude objects loaded at startup from garbage collection
        gc.set_threshold(_GC_THRESHOLD)  # with the default, collections would traverse hundreds of open requests often
        try:
            with _on_stop_signal(collector.stop_streams):
                yield {STATE: collector.connections}
        finally:
            await collector.stop()

    middleware = Middleware(Routes(handlers), Router(lifespan=lifespan), settings, pages.error_page)
    return middleware


@contextmanager
def _on_stop_signal(act: Callable[[], None]) -> Iterator[None]:
    """Call ``act`` on every SIGTERM or SIGINT, before uvicorn's handler runs.

    ``act`` ends the live streams; otherwise uvicorn would wait for them.
    """
    if threading.current_thread() is not threading.main_thread():  # Python handles signals in the main thread only
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


def from_environment() -> Middleware:
    """Return the application of a process that `sfumato serve` started."""
    to_standard_error()
    return create_app(Settings.from_environment(), _end_process)


def _end_process() -> None:
    """End this process, so that a supervisor starts another one; `sfumato serve` then exits with an error."""
    os.environ[ENDED] = "1"
    signal.raise_signal(signal.SIGTERM)


# -- health, metrics and documentation ---------------------------------------------------------------------


async def _healthy(collector: Collector, request: Request) -> JsonResponse:  # noqa: ARG001
    """Return success while the writer thread is alive; otherwise the process needs a restart."""
    if not collector.writer.alive:
        raise ApiError("unavailable", "the writer thread of the collector has ended; restart the collector")
    return JsonResponse(b'{"status":"alive"}')


async def _ready(collector: Collector, request: Request) -> JsonResponse:
    """Return success while the store can be read and written and the collector is not stopping."""
    if collector.stopping.is_set():
        raise ApiError("unavailable", "the collector is shutting down; retry later")
    await _healthy(collector, request)
    await collector.readiness.check()
    return JsonResponse(b'{"status":"ready"}')


async def _metrics(collector: Collector, request: Request) -> Response:  # noqa: ARG001
    """Return the metrics in the Prometheus text format."""
    return Response(collector.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _openapi(collector: Collector, request: Request) -> JsonResponse:  # noqa: ARG001
    """Return the OpenAPI document."""
    return JsonResponse(msgspec.json.encode(openapi.document()))


async def _docs(collector: Collector, request: Request) -> Response:  # noqa: ARG001
    """Return the operations as an HTML page."""
    return pages.page("API of a Sfumato collector", openapi.page_body())


async def _preflight(collector: Collector, request: Request) -> Response:
    """Respond to a CORS preflight request; the middleware adds the allowed origins."""
    await collector.collections.get(request.path_params["id"])
    return Response(status_code=204, headers=_PREFLIGHT)
