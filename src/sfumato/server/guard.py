"""The outermost layer: limits, security headers, CORS, metrics, logs, and the one shape of every refusal."""

from __future__ import annotations

import time
from collections.abc import MutableMapping
from typing import Any

from starlette.exceptions import HTTPException

from sfumato.server.answers import JSON_HEADER, Send
from sfumato.server.collector import Collector
from sfumato.server.logs import LOG
from sfumato.server.rates import Rates
from sfumato.server.refusals import Refusal
from sfumato.server.settings import Settings

__all__ = ["Guard"]

Message = MutableMapping[str, Any]

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
    """Wraps the routes of a collector."""

    def __init__(self, routes: Any, settings: Settings) -> None:
        self._routes = routes
        self._rates = Rates(settings.rate, settings.burst, time.monotonic)
        self.collector: Collector | None = None

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            await self._routes(scope, receive, send)
            return
        collector = self.collector
        assert collector is not None
        start = time.perf_counter()
        scope["app"] = self  # routes then raise what they refuse
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if not status:
                status = message["status"]
                self._add_headers(scope, message["headers"])
            await send(message)

        reason = None
        try:
            await self._answer(scope, receive, sending)
        except Refusal as refusal:
            reason = refusal.reason
            if not status:
                await refusal.answer()(scope, receive, sending)
        except Exception:
            reason = "internal"
            LOG.exception("a fault", extra={"fields": {"method": scope["method"], "route": _route(scope)}})
            if not status:
                await Refusal("internal", "a fault of the collector's own").answer()(scope, receive, sending)
        route = _route(scope)
        seconds = time.perf_counter() - start
        collector.metrics.request(route, seconds)
        if reason is not None:
            collector.metrics.refused(reason)
        if reason is not None or not route.endswith("/reports"):
            fields = {"method": scope["method"], "route": route, "status": status, "ms": round(1000 * seconds, 2)}
            LOG.info("request", extra={"fields": fields | ({"reason": reason} if reason else {})})

    async def _answer(self, scope: Any, receive: Any, send: Send) -> None:
        if not self._rates.allows(scope["client"][0] if scope.get("client") else ""):
            raise Refusal("rate", "too many requests from this address")
        try:
            await self._routes(scope, receive, send)
        except HTTPException as error:
            if error.status_code == 405:
                raise Refusal("method-not-allowed", f"the methods here are {error.headers['Allow']}") from None  # type: ignore[index]
            raise Refusal("not-found", "there is nothing here") from None

    def _add_headers(self, scope: Any, headers: list[tuple[bytes, bytes]]) -> None:
        if headers and headers[0] == JSON_HEADER:
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
