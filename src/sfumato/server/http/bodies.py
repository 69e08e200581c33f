"""Reading what a request brings: strictly, up to a limit, and within a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from sfumato.server.http.refusals import JSON_TYPE, Refusal

__all__ = [
    "BATCH_TYPE",
    "JSON_TYPE",
    "Deadlines",
    "RawHeaders",
    "Room",
    "content_type",
    "decode_json",
    "read_body",
    "read_headers",
    "read_json",
]

BATCH_TYPE = "application/vnd.sfumato.reports"
#: Headers that may come once only: of two, a proxy may heed the one and the collector the other.
_ONCE = ("authorization", "content-type", "idempotency-key")
#: Bytes of a body that a connection holds anyway: short bodies need no room, and long ones cannot keep them out.
_SHORT = 2**16

T = TypeVar("T")
#: The headers of a request as they came, names in lower case.
RawHeaders = Mapping[bytes, bytes]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Deadlines:
    """Tasks that may wait for so many seconds, give or take a quarter of that.

    One look per second at all waiting tasks costs less than a timer for each.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self.clock = seconds, clock
        self.since: dict[asyncio.Task[object], float] = {}
        self.late: set[asyncio.Task[object]] = set()
        self.loop = asyncio.get_running_loop()
        self._looking = asyncio.create_task(self._look())

    def patience(self, message: str) -> _Patience:
        """Refuse (``too-slow``) if what stands in the block of this takes too long."""
        return _Patience(self, message)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._seconds / 4))
            now = self.clock()
            for task, since in list(self.since.items()):
                if now - since > self._seconds and task not in self.late:
                    self.late.add(task)
                    task.cancel()

    def stop(self) -> None:
        """Look no more."""
        self._looking.cancel()


class _Patience:
    """A block of ``Deadlines.patience``."""

    __slots__ = ("_deadlines", "_message", "_task")

    def __init__(self, deadlines: Deadlines, message: str) -> None:
        self._deadlines, self._message = deadlines, message

    def __enter__(self) -> None:
        task = asyncio.current_task(self._deadlines.loop)  # without asking which loop it is, which costs more
        assert task is not None
        self._task = task
        self._deadlines.since[task] = self._deadlines.clock()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        deadlines, task = self._deadlines, self._task
        del deadlines.since[task]
        if task in deadlines.late:
            deadlines.late.discard(task)
            if kind is asyncio.CancelledError:
                task.uncancel()
                raise Refusal("too-slow", self._message) from None


class Room:
    """The memory that all long bodies on their way may take together."""

    def __init__(self, most_bytes: int = 2**27) -> None:
        self.left = most_bytes

    def take(self, size: int) -> None:
        """Refuse what there is no room for."""
        if size > self.left:
            raise Refusal("overloaded", "too many long bodies are on their way")
        self.left -= size


def read_headers(request: Request) -> RawHeaders:
    """The headers of a request; refused where one that decides something comes twice."""
    raw = request.scope["headers"]
    found = dict(raw)
    if len(found) < len(raw):
        names = [name for name, _ in raw]
        for name in _ONCE:
            if names.count(name.encode()) > 1:
                raise Refusal("malformed", f"the header {name} must come once")
    return found


def content_type(headers: RawHeaders) -> str:
    """The type of the body, without parameters; a charset may only be UTF-8."""
    stated = headers.get(b"content-type", b"").decode("latin-1").lower()
    kind, separator, parameters = stated.partition(";")
    if separator and parameters.strip().replace('"', "") not in ("", "charset=utf-8"):
        raise Refusal("unsupported-type", "a body may have no parameter but charset=utf-8")
    return kind.strip()


async def read_body(
    receive: Receive, headers: RawHeaders, most: int, deadlines: Deadlines, room: Room | None = None
) -> bytes:
    """The whole body, if it is not too long, there is room for it, and it arrives in time."""
    if b"content-encoding" in headers:
        raise Refusal("unsupported-type", "bodies are taken as they are, without a content encoding")
    stated = headers.get(b"content-length", b"0")
    if not stated.isdigit() or int(stated) > most:
        raise Refusal("too-large", f"a body may have at most {most} bytes")
    room = Room(most) if room is None else room
    pieces = []
    size = taken = 0
    try:
        with deadlines.patience("the body did not arrive in time"):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise Refusal("malformed", "the body was cut off")
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                if size > most:
                    raise Refusal("too-large", f"a body may have at most {most} bytes")
                if size - _SHORT > taken:
                    room.take(size - _SHORT - taken)
                    taken = size - _SHORT
                if not message.get("more_body", False):
                    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    finally:
        room.left += taken


async def read_json(request: Request, decoder: msgspec.json.Decoder[T], most: int, deadlines: Deadlines) -> T:
    """The document in a body of JSON, of an administrator, who need not find room."""
    headers = read_headers(request)
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
