"""Reading what a request brings: strictly, up to a limit, and not forever."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from sfumato.server.answers import JSON_TYPE
from sfumato.server.deadlines import Deadlines
from sfumato.server.refusals import Refusal

__all__ = ["BATCH_TYPE", "JSON_TYPE", "RawHeaders", "content_type", "decode_json", "read_body", "read_json"]

BATCH_TYPE = "application/vnd.sfumato.reports"

T = TypeVar("T")
#: The headers of a request as they came, names in lower case.
RawHeaders = Mapping[bytes, bytes]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


def content_type(headers: RawHeaders) -> str:
    """The type of the body, without parameters; a charset may only be UTF-8."""
    stated = headers.get(b"content-type", b"").decode("latin-1").lower()
    kind, separator, parameters = stated.partition(";")
    if separator and parameters.strip().replace('"', "") not in ("", "charset=utf-8"):
        raise Refusal("unsupported-type", "a body may have no parameter but charset=utf-8")
    return kind.strip()


async def read_body(receive: Receive, headers: RawHeaders, most: int, deadlines: Deadlines) -> bytes:
    """The whole body, if it is not too long and arrives in time."""
    if b"content-encoding" in headers:
        raise Refusal("unsupported-type", "bodies are taken as they are, without a content encoding")
    stated = headers.get(b"content-length", b"0")
    if not stated.isdigit() or int(stated) > most:
        raise Refusal("too-large", f"a body may have at most {most} bytes")
    pieces = []
    size = 0
    with deadlines.patience("the body did not arrive in time"):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise Refusal("malformed", "the body was cut off")
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > most:
                raise Refusal("too-large", f"a body may have at most {most} bytes")
            if not message.get("more_body", False):
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def read_json(request: Request, decoder: msgspec.json.Decoder[T], most: int, deadlines: Deadlines) -> T:
    """The document in a body of JSON."""
    headers = dict(request.scope["headers"])
    if content_type(headers) != JSON_TYPE:
        raise Refusal("unsupported-type", f"the content type must be {JSON_TYPE}")
    return decode_json(await read_body(request.receive, headers, most, deadlines), decoder)


def decode_json(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """The document of some bytes; what does not fit its type is refused with the place."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Refusal("invalid", str(error)) from None
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise Refusal("malformed", f"the body is not JSON: {error}") from None
