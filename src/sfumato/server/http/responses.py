"""JSON responses, the reasons of rejected requests, and the common form of error responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

__all__ = ["JSON_TYPE", "REASONS", "ApiError", "ErrorDetail", "ErrorResponse", "JsonResponse", "Send"]

JSON_TYPE = "application/json"

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_HEADER = (b"content-type", JSON_TYPE.encode())


class JsonResponse:
    """A JSON response as an ASGI application; attributes have the same names as in Starlette's ``Response``.

    It is cheaper than Starlette's class, because a receipt should not cost more than its report.
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
    "malformed": (400, "the body or a parameter cannot be parsed"),
    "unauthorized": (401, "the token or key is missing or wrong"),
    "token-unknown": (401, "the one-time token was not issued for this collection"),
    "token-spent": (403, "the one-time token was already used"),
    "not-found": (404, "the path or the collection does not exist"),
    "method-not-allowed": (405, "the path does not support this method"),
    "too-slow": (408, "the body did not arrive in time; retry with the same batch id"),
    "conflict": (409, "a different payload was already counted under this batch id, or wording or keep_days is fixed"),
    "not-open": (409, "the collection is not open yet, closed or archived"),
    "too-large": (413, "the body is longer than allowed"),
    "unsupported-type": (415, "the content type is not supported"),
    "invalid": (422, "the body can be parsed, but a report, policy, mechanism or parameter in the request is invalid"),
    "too-hard": (422, "planning or auditing takes more time or memory than the collector allows"),
    "wrong-host": (421, "the collector does not answer to this host name"),
    "rate": (429, "too many requests or reports from one address, or to one collection today; retry later"),
    "internal": (500, "internal error of the collector"),
    "overloaded": (503, "too many requests are waiting; retry later"),
    "unavailable": (503, "the store is unavailable; retry with the same batch id"),
}

#: Seconds after which clients should retry, for temporary errors.
_RETRY_AFTER = {"rate": 1, "overloaded": 1, "unavailable": 1}


class ErrorDetail(msgspec.Struct, frozen=True):
    """The reason of a rejection; ``row`` is the index of the first invalid report, from 0, or null.

    If a submission is rejected, ``batch`` and ``collection`` name it. A client gives up a report only if both are
    there, because a proxy may answer in the place of the collector.
    """

    reason: str
    message: str
    row: int | None = None
    batch: str | None = None
    collection: str | None = None


class ErrorResponse(msgspec.Struct, frozen=True):
    """The common form of all error responses."""

    error: ErrorDetail


class ApiError(Exception):
    """A rejected request, with one of ``REASONS``."""

    def __init__(self, reason: str, message: str, *, row: int | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.reason, self.message, self.row = reason, message, row
        #: Seconds after which the client should retry; None for the default of the reason.
        self.retry_after = retry_after
        #: Batch id and collection of a rejected submission.
        self.batch: str | None = None
        self.collection: str | None = None

    @property
    def status(self) -> int:
        """The HTTP status of the reason."""
        return REASONS[self.reason][0]

    def response(self) -> JsonResponse:
        """Return the error response."""
        headers = []
        retry_after = _RETRY_AFTER.get(self.reason) if self.retry_after is None else self.retry_after
        if retry_after is not None:
            headers.append((b"retry-after", b"%d" % retry_after))
        if self.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        detail = ErrorDetail(self.reason, self.message, self.row, self.batch, self.collection)
        body = msgspec.json.encode(ErrorResponse(detail))
        return JsonResponse(body, self.status, tuple(headers))
