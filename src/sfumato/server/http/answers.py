"""Answers of JSON that are ready to be sent: a receipt should not cost more than the report it is for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

__all__ = ["JSON_TYPE", "JsonAnswer", "Send"]

JSON_TYPE = "application/json"

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_HEADER = (b"content-type", JSON_TYPE.encode())


class JsonAnswer:
    """Some bytes of JSON, as an ASGI application; what it has in common with Starlette's answers is called the same."""

    __slots__ = ("body", "raw_headers", "status_code")

    def __init__(self, body: bytes, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        self.body, self.status_code = body, status
        self.raw_headers = [_HEADER, (b"content-length", b"%d" % len(body)), *headers]

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:  # noqa: ARG002
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})
