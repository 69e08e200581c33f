"""Answers of JSON that are ready to be sent: a receipt should not cost more than the report it is for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

__all__ = ["JSON_HEADER", "JSON_TYPE", "JsonAnswer", "Send"]

JSON_TYPE = "application/json"

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: Stands first in every answer of JSON.
JSON_HEADER = (b"content-type", JSON_TYPE.encode())


class JsonAnswer:
    """Some bytes of JSON, as an ASGI application."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, body: bytes, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        self.body, self.status, self.headers = body, status, headers

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:  # noqa: ARG002
        headers = [JSON_HEADER, (b"content-length", b"%d" % len(self.body)), *self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})
