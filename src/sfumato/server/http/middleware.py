"""The outermost layer: rate limits, security headers, CORS, metrics, logs, and the common shape of all errors."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from starlette.requests import Request
from starlette.types import ASGIApp

from sfumato.server.http.limits import MOST_ADDRESSES, AddressNames
from sfumato.server.http.responses import ApiError, JsonResponse, Send
from sfumato.server.http.routing import AnyResponse, Routes
from sfumato.server.http.telemetry import LOG, Metrics
from sfumato.server.settings import Settings

__all__ = ["Middleware", "RateLimiter", "Service"]

#: Headers of JSON responses and of pages.
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
#: Paths that are read under any host name, by the machine itself or by monitoring.
_PROBES = ("/healthz", "/readyz", "/metrics")
#: Ends of the routes that leave no line in the log unless they are rejected, because of its time: browsers ask for
#: admission just before they send.
_UNLOGGED = ("/reports", "/admission")
_NO_STORE = (b"cache-control", b"no-store")
#: Response headers that other origins may read.
_EXPOSED = (b"access-control-expose-headers", b"Retry-After")


class RateLimiter:
    """Limit requests per address with a token bucket of size ``burst``, refilled at ``rate`` per second.

    Addresses are not stored: the key of a bucket is a hash of the address under a random key.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._names = AddressNames()
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def allows(self, address: str) -> bool:
        """Take one token from the bucket of an address; return whether there was one."""
        if self._rate <= 0:
            return True
        name = self._names.name(address)
        now = self._clock()
        left, last = self._buckets.get(name, (float(self._burst), now))
        left = min(float(self._burst), left + (now - last) * self._rate)
        allowed = left >= 1
        self._buckets[name] = (left - 1 if allowed else left, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return allowed


class Service(Protocol):
    """The part of the shared service that the middleware needs."""

    metrics: Metrics

    def allowed_origins(self, collection: str) -> Sequence[str]:
        """Return the origins that may read responses about a collection, if it is cached."""


class Middleware:
    """The ASGI application around the routes of a collector."""

    def __init__(
        self,
        routes: Routes,
        lifespan: ASGIApp,
        settings: Settings,
        error_page: Callable[[ApiError], AnyResponse] | None = None,
    ) -> None:
        self._routes, self._lifespan, self._error_page = routes, lifespan, error_page
        self._rate_limiter = RateLimiter(settings.rate, settings.burst, time.monotonic)
        self._hosts = {host.strip().lower() for host in settings.hosts.split(",") if host.strip()}
        self.collector: Any = None  # a Service for this class, a Collector for the handlers

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            await self._lifespan(scope, receive, send)
            return
        collector: Service | None = self.collector
        assert collector is not None
        start = time.perf_counter()
        reason = None
        try:
            response = await self._respond(collector, scope, receive)
        except ApiError as error:
            reason, response = error.reason, self._error(scope, error)
        except Exception:
            message = "internal error of the collector; its administrator finds details in the log"
            reason, response = "internal", self._error(scope, ApiError("internal", message))
            LOG.exception("internal error", extra={"fields": {"method": scope["method"], "route": _route(scope)}})
        self._add_headers(scope, response)
        await response(scope, receive, send)
        route = _route(scope)
        seconds = time.perf_counter() - start
        collector.metrics.request(route, seconds)
        if reason is None and route.endswith(_UNLOGGED):
            return
        fields = {
            "method": scope["method"], "route": route, "status": response.status_code, "ms": round(1000 * seconds, 2)
        }  # fmt: skip
        if reason is not None:
            collector.metrics.rejected(reason)
            fields["reason"] = reason
        LOG.info("request", extra={"fields": fields})

    async def _respond(self, collector: Service, scope: Any, receive: Any) -> AnyResponse:
        """Find the route, apply the rate limit and return the response of the handler."""
        try:
            route, scope["path_params"] = self._routes.find(scope["path"])
            scope["route"] = route
        finally:  # after the route is known, because errors have its CORS headers; unknown paths are limited too
            if not self._rate_limiter.allows(scope["client"][0] if scope.get("client") else ""):
                raise ApiError("rate", "too many requests from this address; wait before the next one")
        if "*" not in self._hosts and route.path not in _PROBES and _host(scope) not in self._hosts:
            raise ApiError("wrong-host", "the collector does not answer to this host name; use the address of the link")
        return await self._routes.handler(route, scope["method"])(collector, Request(scope, receive))

    def _error(self, scope: Any, error: ApiError) -> AnyResponse:
        """Return an error as a page if a person opened the path in a browser, else as JSON."""
        accepted = b",".join(value for name, value in scope["headers"] if name == b"accept")
        is_for_people = scope["method"] == "GET" and b"text/html" in accepted and not scope["path"].startswith("/v1/")
        return self._error_page(error) if self._error_page and is_for_people else error.response()

    def _add_headers(self, scope: Any, response: AnyResponse) -> None:
        """Add security, cache and CORS headers to a response."""
        headers = response.raw_headers
        if isinstance(response, JsonResponse):
            headers += _JSON_HEADERS
        else:
            present = {name for name, _ in headers}
            headers += [header for header in (*_PAGE_HEADERS, _NO_STORE) if header[0] not in present]
        for name, value in scope["headers"]:
            if name == b"origin":
                headers += self._cors(scope, value.decode("latin-1"))

    def _cors(self, scope: Any, origin: str) -> list[tuple[bytes, bytes]]:
        """Return the CORS headers for an origin, as the collection allows."""
        allowed = self.collector.allowed_origins(scope.get("path_params", {}).get("id", ""))
        headers = [(b"vary", b"Origin")]
        if origin in allowed or "*" in allowed:
            headers += [(b"access-control-allow-origin", origin.encode("latin-1")), _EXPOSED]
        return headers


def _host(scope: Any) -> str:
    """Return the host name of a request in lower case, without the port."""
    host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1").lower()
    return re.sub(r":\d*$", "", host)


def _route(scope: Any) -> str:
    """Return the path template of the route, for logs and metrics."""
    route = scope.get("route")
    return "unknown" if route is None else str(route.path)
