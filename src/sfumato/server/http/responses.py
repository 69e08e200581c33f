"""JSON responses, the reasons for which a request is rejected, and the common shape of error responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

__all__ = ["JSON_TYPE", "REASONS", "ApiError", "ErrorDetail", "ErrorResponse", "JsonResponse", "Send"]

JSON_TYPE = "application/json"

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_HEADER = (b"content-type", JSON_TYPE.encode())


class JsonResponse:
    """A JSON body as an ASGI application; attributes that Starlette's ``Response`` has too have the same names.

    Its headers are prepared once, because a receipt should not cost more than its report.
    """

    __slots__ = ("body", "raw_headers", "status_code")

    def __init__(self, body: bytes, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        self.body, self.status_code = body, status
        self.raw_headers = [_HEADER, (b"content-length", b"%d" % len(body)), *headers]

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:  # noqa: ARG002
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})


#: HTTP status and meaning of each reason. Metrics count by reason, and the documentation lists them.
REASONS: dict[str, tuple[int, str]] = {
    "malformed": (400, "the body or a parameter cannot be read"),
    "unauthorized": (401, "a token or key is needed, and none or a wrong one came"),
    "token-unknown": (401, "this one-time token was not handed out for this collection"),
    "token-spent": (403, "this one-time token was used already"),
    "not-found": (404, "there is nothing here"),
    "method-not-allowed": (405, "the path is right and the method is not"),
    "too-slow": (408, "the body did not arrive in time"),
    "conflict": (409, "another payload came under this batch id before"),
    "not-open": (409, "the collection is closed or archived"),
    "too-large": (413, "the body is longer than allowed"),
    "unsupported-type": (415, "the content type is not one of those taken here"),
    "invalid": (422, "it can be read, and is not valid: a report, a policy, a mechanism"),
    "too-hard": (422, "planning or auditing this takes more time or memory than allowed here"),
    "rate": (429, "too many requests from one address"),
    "internal": (500, "a fault of the collector's own"),
    "overloaded": (503, "too much waits already; try again"),
    "unavailable": (503, "the store is away; try again with the same batch id"),
}

#: Seconds after which to retry, for errors that may pass.
_RETRY_AFTER = {"rate": 1, "overloaded": 1, "unavailable": 1}


class ErrorDetail(msgspec.Struct, frozen=True):
    """Why a request was rejected; ``row`` is the first invalid report, counted from 0, if there is one."""

    reason: str
    message: str
    row: int | None = None


class ErrorResponse(msgspec.Struct, frozen=True):
    """The common shape of all error responses."""

    error: ErrorDetail


class ApiError(Exception):
    """A rejected request, with one of ``REASONS``."""

    def __init__(self, reason: str, message: str, *, row: int | None = None) -> None:
        super().__init__(message)
        self.reason, self.message, self.row = reason, message, row

    @property
    def status(self) -> int:
        """Return the HTTP status of the reason."""
        return REASONS[self.reason][0]

    def response(self) -> JsonResponse:
        """Return the error response."""
        headers = []
        if self.reason in _RETRY_AFTER:
            headers.append((b"retry-after", b"%d" % _RETRY_AFTER[self.reason]))
        if self.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        body = msgspec.json.encode(ErrorResponse(ErrorDetail(self.reason, self.message, self.row)))
        return JsonResponse(body, self.status, tuple(headers))
