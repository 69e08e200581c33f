"""The outermost layer: limits, security headers, CORS, metrics, logs, and the one shape of every refusal."""

from __future__ import annotations

import time
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp

from sfumato.server.api.collector import Collector
from sfumato.server.http.answers import JsonAnswer, Send
from sfumato.server.http.logs import LOG
from sfumato.server.http.rates import Rates
from sfumato.server.http.refusals import Refusal
from sfumato.server.http.routing import Answer, Routes
from sfumato.server.settings import Settings

__all__ = ["Guard"]

#: What an answer of JSON needs, which is most of them; and what a page does.
_JSON_HEADERS = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]
_PAGE_HEADERS = [
    (b"content-security-policy", b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]
_NO_STORE = (b"cache-control", b"no-store")
#: Other origins may read this of an answer.
_EXPOSED = (b"access-control-expose-headers", b"Retry-After")


class Guard:
    """Wraps the routes of a collector, as an ASGI application."""

    def __init__(self, routes: Routes, lifespan: ASGIApp, settings: Settings) -> None:
        self._routes, self._lifespan = routes, lifespan
        self._rates = Rates(settings.rate, settings.burst, time.monotonic)
        self.collector: Collector | None = None

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            await self._lifespan(scope, receive, send)
            return
        collector = self.collector
        assert collector is not None
        start = time.perf_counter()
        reason = None
        try:
            answer = await self._answer(collector, scope, receive)
        except Refusal as refusal:
            reason, answer = refusal.reason, refusal.answer()
        except Exception:
            reason, answer = "internal", Refusal("internal", "a fault of the collector's own").answer()
            LOG.exception("a fault", extra={"fields": {"method": scope["method"], "route": _route(scope)}})
        self._add_headers(scope, answer)
        await answer(scope, receive, send)
        route = _route(scope)
        seconds = time.perf_counter() - start
        collector.metrics.request(route, seconds)
        if reason is None and route.endswith("/reports"):
            return
        fields = {
            "method": scope["method"], "route": route, "status": answer.status_code, "ms": round(1000 * seconds, 2)
        }  # fmt: skip
        if reason is not None:
            collector.metrics.refused(reason)
            fields["reason"] = reason
        LOG.info("request", extra={"fields": fields})

    async def _answer(self, collector: Collector, scope: Any, receive: Any) -> Answer:
        try:
            route, scope["path_params"] = self._routes.find(scope["path"])
            scope["route"] = route
        finally:  # the limit holds where nothing is, too; and a refusal has the CORS headers of what was found
            if not self._rates.allows(scope["client"][0] if scope.get("client") else ""):
                raise Refusal("rate", "too many requests from this address")
        return await self._routes.handler(route, scope["method"])(collector, Request(scope, receive))

    def _add_headers(self, scope: Any, answer: Answer) -> None:
        headers = answer.raw_headers
        if isinstance(answer, JsonAnswer):
            headers += _JSON_HEADERS
        else:
            stored = any(name == b"cache-control" for name, _ in headers)
            headers += _PAGE_HEADERS if stored else [*_PAGE_HEADERS, _NO_STORE]
        for name, value in scope["headers"]:
            if name == b"origin":
                headers += self._cors(scope, value.decode("latin-1"))

    def _cors(self, scope: Any, origin: str) -> list[tuple[bytes, bytes]]:
        assert self.collector is not None
        collection = self.collector.collections.at_hand(scope.get("path_params", {}).get("id", ""))
        headers = [(b"vary", b"Origin")]
        if collection is not None and (origin in collection.about.origins or "*" in collection.about.origins):
            headers += [(b"access-control-allow-origin", origin.encode("latin-1")), _EXPOSED]
        return headers


def _route(scope: Any) -> str:
    route = scope.get("route")
    return "unknown" if route is None else str(route.path)
