"""Read headers and bodies of requests strictly, with a size limit and a timeout."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from sfumato.server.http.responses import JSON_TYPE, ApiError

__all__ = [
    "BATCH_TYPE",
    "JSON_TYPE",
    "MemoryBudget",
    "RawHeaders",
    "Timeouts",
    "content_type",
    "decode_json",
    "read_body",
    "read_headers",
    "read_json",
]

BATCH_TYPE = "application/vnd.sfumato.reports"
#: Headers that must not be repeated, because a proxy might use one value and the collector the other.
_ONCE = ("authorization", "content-type", "idempotency-key")
#: Bytes of a body that are exempt from the memory budget, so that long bodies cannot block short ones.
_FREE_BYTES = 2**16

T = TypeVar("T")
#: The raw headers of a request, names in lower case.
RawHeaders = Mapping[bytes, bytes]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Timeouts:
    """Cancel tasks that wait longer than ``seconds``, by at most a quarter more.

    One check per second of all waiting tasks costs less than a timer per task.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self.clock = seconds, clock
        self.since: dict[asyncio.Task[object], float] = {}
        self.late: set[asyncio.Task[object]] = set()
        self.loop = asyncio.get_running_loop()
        self._checker = asyncio.create_task(self._check_all())

    def timeout(self, message: str) -> _Timeout:
        """Return a context manager that raises ApiError (``too-slow``) if its block takes too long."""
        return _Timeout(self, message)

    async def _check_all(self) -> None:
        """Cancel the tasks that have waited too long, once per second or more often."""
        while True:
            await asyncio.sleep(min(1.0, self._seconds / 4))
            now = self.clock()
            for task, since in list(self.since.items()):
                if now - since > self._seconds and task not in self.late:
                    self.late.add(task)
                    task.cancel()

    def stop(self) -> None:
        """Stop the checks."""
        self._checker.cancel()


class _Timeout:
    """The context manager of ``Timeouts.timeout``."""

    __slots__ = ("_message", "_task", "_timeouts")

    def __init__(self, timeouts: Timeouts, message: str) -> None:
        self._timeouts, self._message = timeouts, message

    def __enter__(self) -> None:
        task = asyncio.current_task(self._timeouts.loop)  # passing the loop is faster than looking it up
        assert task is not None
        self._task = task
        self._timeouts.since[task] = self._timeouts.clock()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        timeouts, task = self._timeouts, self._task
        del timeouts.since[task]
        if task in timeouts.late:
            timeouts.late.discard(task)
            if kind is asyncio.CancelledError:
                task.uncancel()
                raise ApiError("too-slow", self._message) from None


class MemoryBudget:
    """The memory that all long bodies in transfer may use together, and those from one address."""

    #: Fraction of the memory that one address may use, so that its stalled uploads cannot block all others.
    share = 1 / 8

    def __init__(self, most_bytes: int = 2**27) -> None:
        self.left = most_bytes
        self._most_each = int(self.share * most_bytes)
        self._used: dict[bytes, int] = {}

    def take(self, size: int, address: bytes = b"") -> None:
        """Reserve bytes; raise ApiError if too few are left. An empty address has no share."""
        if size > self.left:
            raise ApiError("overloaded", "the collector is receiving too many long bodies at once; retry later")
        if address and self._used.get(address, 0) + size > self._most_each:
            raise ApiError("overloaded", "this address is sending too many long bodies at once; retry later")
        self.left -= size
        self._used[address] = self._used.get(address, 0) + size

    def give_back(self, size: int, address: bytes = b"") -> None:
        """Release reserved bytes."""
        self.left += size
        self._used[address] = self._used.get(address, 0) - size
        if not self._used[address]:
            del self._used[address]


def read_headers(request: Request) -> RawHeaders:
    """Return the headers of a request; raise ApiError if one of ``_ONCE`` is repeated."""
    raw = request.scope["headers"]
    headers = dict(raw)
    if len(headers) < len(raw):
        names = [name for name, _ in raw]
        for name in _ONCE:
            if names.count(name.encode()) > 1:
                raise ApiError("malformed", f"the header {name} must not be repeated")
    return headers


def content_type(headers: RawHeaders) -> str:
    """Return the content type without parameters; the charset may only be UTF-8."""
    stated = headers.get(b"content-type", b"").decode("latin-1").lower()
    kind, separator, parameters = stated.partition(";")
    if separator and parameters.strip().replace('"', "") not in ("", "charset=utf-8"):
        raise ApiError("unsupported-type", "the content type must have no parameter except charset=utf-8")
    return kind.strip()


async def read_body(
    receive: Receive,
    headers: RawHeaders,
    most: int,
    timeouts: Timeouts,
    memory: MemoryBudget | None = None,
    address: bytes = b"",
) -> bytes:
    """Return the whole body; raise ApiError beyond the size limit, the memory budget or the timeout."""
    if b"content-encoding" in headers:
        raise ApiError("unsupported-type", "the collector does not accept a content encoding; send the body as it is")
    content_length = headers.get(b"content-length", b"0")
    if not content_length.isdigit() or int(content_length) > most:
        raise ApiError("too-large", f"the body must have at most {most} bytes; send smaller batches")
    memory = MemoryBudget(most) if memory is None else memory
    pieces = []
    size = reserved = 0
    try:
        with timeouts.timeout("the body did not arrive in time; retry with the same batch id"):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise ApiError("malformed", "the connection closed before the whole body arrived; retry")
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                if size > most:
                    raise ApiError("too-large", f"the body must have at most {most} bytes; send smaller batches")
                if size - _FREE_BYTES > reserved:
                    memory.take(size - _FREE_BYTES - reserved, address)
                    reserved = size - _FREE_BYTES
                if not message.get("more_body", False):
                    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    finally:
        memory.give_back(reserved, address)


async def read_json(request: Request, decoder: msgspec.json.Decoder[T], most: int, timeouts: Timeouts) -> T:
    """Decode the JSON body of an administrator's request, which is exempt from the memory budget."""
    headers = read_headers(request)
    if content_type(headers) != JSON_TYPE:
        raise ApiError("unsupported-type", f"the content type must be {JSON_TYPE}")
    return decode_json(await read_body(request.receive, headers, most, timeouts), decoder)


def decode_json(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode a JSON document; raise ApiError with the path of the first value that does not match its type."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise ApiError("invalid", str(error)) from None
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise ApiError("malformed", f"the body is not JSON: {error}") from None
