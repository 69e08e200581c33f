"""The outermost layer: rate limits, security headers, CORS, metrics, logs, and the one shape of every refusal."""

from __future__ import annotations

import hashlib
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from starlette.requests import Request
from starlette.types import ASGIApp

from sfumato.randomness import secure
from sfumato.server.http.refusals import JsonAnswer, Refusal, Send
from sfumato.server.http.routing import Answer, Routes
from sfumato.server.http.telemetry import LOG, Metrics
from sfumato.server.settings import Settings

__all__ = ["Guard", "Rates", "Service"]

#: Maximum addresses with a bucket; the one that was quiet for longest is dropped first.
_MOST_ADDRESSES = 100_000
#: Headers of answers in JSON, which most are, and of pages.
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
#: Headers of an answer that other origins may read.
_EXPOSED = (b"access-control-expose-headers", b"Retry-After")


class Rates:
    """For each address a bucket of ``burst`` requests that fills up at ``rate`` per second.

    Addresses are not kept: buckets are named by a hash under a random key.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._key = secure.read(32)
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def allows(self, address: str) -> bool:
        """Take one request out of the bucket of an address, if it has one."""
        if self._rate <= 0:
            return True
        name = hashlib.blake2b(_network(address), key=self._key, digest_size=12).digest()
        now = self._clock()
        left, last = self._buckets.get(name, (float(self._burst), now))
        left = min(float(self._burst), left + (now - last) * self._rate)
        allowed = left >= 1
        self._buckets[name] = (left - 1 if allowed else left, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > _MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return allowed


def _network(address: str) -> bytes:
    """An address; of one of IPv6 its first 64 bits, for one household has all the rest, or the one of IPv4 in it."""
    if ":" not in address:
        return address.encode()
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address.encode()
    return found.packed[:8] if found.ipv4_mapped is None else str(found.ipv4_mapped).encode()


class Service(Protocol):
    """What the guard needs of the service that requests share."""

    metrics: Metrics

    def allowed_origins(self, collection: str) -> Sequence[str]:
        """Return the origins that may read answers about a collection, as far as it is in memory."""


class Guard:
    """Wraps the routes of a collector, as an ASGI application."""

    def __init__(self, routes: Routes, lifespan: ASGIApp, settings: Settings) -> None:
        self._routes, self._lifespan = routes, lifespan
        self._rates = Rates(settings.rate, settings.burst, time.monotonic)
        self.collector: Any = None  # a Service, for handlers more than that

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            await self._lifespan(scope, receive, send)
            return
        collector: Service | None = self.collector
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

    async def _answer(self, collector: Service, scope: Any, receive: Any) -> Answer:
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
        allowed = self.collector.allowed_origins(scope.get("path_params", {}).get("id", ""))
        headers = [(b"vary", b"Origin")]
        if origin in allowed or "*" in allowed:
            headers += [(b"access-control-allow-origin", origin.encode("latin-1")), _EXPOSED]
        return headers


def _route(scope: Any) -> str:
    route = scope.get("route")
    return "unknown" if route is None else str(route.path)
