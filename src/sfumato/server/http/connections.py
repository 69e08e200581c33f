"""Connections with a timeout: a client that does not finish a request head, or does not read a response, is dropped.

As in ``Timeouts``, one check per second of all connections costs less than a timer per request.

This is the only module that extends private classes of uvicorn, ``HttpToolsProtocol`` and its request cycle. It is
bound to the versions that it was tested with (``TESTED_UVICORN``), and ``tests/server/test_server_uvicorn.py`` states
all that it relies on.

Public settings do not replace it. With uvicorn 0.54, ``http="httptools"``, ``timeout_keep_alive=5`` and
``limit_concurrency=50``:

- a connection that had sent nothing, one that had sent half a head, and one that did not read a response of 64 MiB were
  all still open after 65 seconds;
- 64 MiB of one header were taken, and the connection stayed open.

A proxy in front can limit these, but a collector also runs without one. In turns with uvicorn's own class, a report
took 1.03 times the processor time (the median of nine rounds on a busy machine).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from sfumato.errors import InvalidInput
from sfumato.server.http.responses import ApiError
from sfumato.server.http.telemetry import LOG

__all__ = ["STATE", "TESTED_UVICORN", "Connection", "Connections", "JoinedWrites", "check_uvicorn"]

#: First and last minor version of uvicorn 0 that this module was tested with; ``pyproject.toml`` has the same range.
TESTED_UVICORN = (34, 54)
#: The application leaves its connections to the server under this name, when it starts.
STATE = "connections"
#: Maximum bytes in a row that neither end a head nor belong to a body: those of a head, of trailers, empty lines.
_MOST_IN_VAIN = 2**16
#: Parse input in chunks of this size.
_PIECE = 2**14
#: Maximum pipelined requests behind one that has no response yet.
_MOST_AHEAD = 32
#: Maximum files that a process has open in addition to its connections.
_OTHER_FILES = 200
#: Bytes of a response that the system buffers ahead of its reader; with more, a slow reader would seem deaf for long.
_UNSENT = 2**17
#: Value of SO_LINGER with which a closed socket drops what was not sent.
_NOTHING_LINGERS = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
#: The place of a connection whose other side has nothing to do.
_NOWHERE = object()


def check_uvicorn(version: str = uvicorn.__version__) -> None:
    """Raise InvalidInput for a version of uvicorn that ``Connection`` was not tested with: limits could be lost."""
    first, last = TESTED_UVICORN
    major, _, rest = version.partition(".")
    minor = rest.partition(".")[0]
    if major != "0" or not minor.isdecimal() or not first <= int(minor) <= last:
        must = f"be of a version from 0.{first} to 0.{last}, whose connections this release limits"
        raise InvalidInput("serve", "uvicorn", must, version)


class JoinedWrites(asyncio.Transport):
    """A transport on which whatever is written in one turn of the event loop is sent at its end.

    The head of a response and its body go out together: one system call and one packet instead of two.
    """

    __slots__ = ("_held", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[Any] = []

    def write(self, data: Any) -> None:
        if not self._held:
            self._loop.call_soon(self._send)
        self._held.append(data)

    def _send(self) -> None:
        held, self._held = self._held, []
        if held and not self._transport.is_closing():
            self._transport.writelines(held)  # not joined: many connections may share one long response

    def close(self) -> None:
        self._send()
        self._transport.close()

    def abort(self) -> None:
        self._held = []
        self._transport.abort()

    # -- all else is the transport's own -------------------------------------------------------------------

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()


class Connections:
    """The connections of one process: at most ``most``, each dropped when it is stalled for ``timeout`` seconds."""

    #: Maximum bytes of responses that wait for slow readers, over all connections.
    most_unsent = 2**28

    def __init__(self, most: int, timeout: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.most, self.timeout, self._clock = _as_files_allow(most), timeout, clock
        self.open: set[Connection] = set()
        self.rejected = 0
        self._unsent: dict[Connection, int] = {}
        self._all_unsent = 0
        self._checker = asyncio.create_task(self._check_all())

    async def _check_all(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self.timeout / 4))
            now = self._clock()
            for connection in list(self.open):
                if connection.stood_still(now) > self.timeout:
                    connection.drop()
            if self.rejected:
                LOG.warning("too many connections", extra={"fields": {"most": self.most, "refused": self.rejected}})
                self.rejected = 0

    def hold(self, connection: Connection, size: int) -> None:
        """Record bytes that wait for a slow reader; above the limit, drop the connection that has waited longest."""
        self.let_go(connection)
        self._unsent[connection] = size
        self._all_unsent += size
        while self._all_unsent > self.most_unsent and len(self._unsent) > 1:
            longest = next(iter(self._unsent))
            self.let_go(longest)
            longest.drop()

    def let_go(self, connection: Connection) -> None:
        """Forget the bytes of a connection whose reader has caught up or gone."""
        self._all_unsent -= self._unsent.pop(connection, 0)

    def stop(self) -> None:
        """Stop the checks."""
        self._checker.cancel()


class Connection(HttpToolsProtocol):
    """One of the ``Connections`` that the application has left in its state.

    Every request comes through here: with slots and parents called by name it costs half of what it would without.
    """

    __slots__ = ("_all", "_earlier", "_in_vain", "_place", "_since")

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._all: Connections = app_state[STATE]
        self._in_vain = 0
        self._earlier: list[RequestResponseCycle] = []
        self._place = _NOWHERE
        self._since = 0.0

    def drop(self) -> None:
        """Close the connection at once and discard unsent bytes; its handler gets a disconnect."""
        self._set(socket.SOL_SOCKET, socket.SO_LINGER, _NOTHING_LINGERS)
        self.transport.abort()

    def _set(self, level: int, option: int, value: int | bytes) -> None:
        with contextlib.suppress(OSError):  # the other side may have gone
            self.transport.get_extra_info("socket").setsockopt(level, option, value)

    # -- how many there are ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(JoinedWrites(transport, self.loop))
        if len(self._all.open) >= self._all.most:
            self._all.rejected += 1
            self.drop()
        else:
            self._all.open.add(self)
            if sys.platform == "linux":
                self._set(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.open.discard(self)
        self._all.let_go(self)
        for cycle in self._earlier:  # the server tells the last alone
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    # -- how long it stands still ------------------------------------------------------------------------------

    def stood_still(self, now: float) -> float:
        """Return for how many seconds, by the checks so far, the client has not done what it has to do next."""
        if self.flow.write_paused or self.transport.is_closing():
            place: object = self.transport.get_write_buffer_size()  # it has to read; nothing is added meanwhile
        elif self.timeout_keep_alive_task is None and not _is_under_way(self.cycle):
            place = self.cycle  # it has to send the head of the next request, and before that, the rest of this one
        else:
            place = _NOWHERE  # the collector has to respond, or uvicorn's timer runs
        if place is _NOWHERE or place != self._place:
            self._place, self._since = place, now
        return now - self._since

    def pause_writing(self) -> None:
        super().pause_writing()
        self._all.hold(self, self.transport.get_write_buffer_size())  # nothing is added until it is read

    def resume_writing(self) -> None:
        super().resume_writing()
        self._all.let_go(self)
        self._place = _NOWHERE

    # -- how much it sends -------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if len(data) > _PIECE:
            for start in range(0, len(data), _PIECE):
                if not self.transport.is_closing():
                    self.data_received(data[start : start + _PIECE])
            return
        self._in_vain += len(data)
        HttpToolsProtocol.data_received(self, data)
        if self._in_vain > _MOST_IN_VAIN:
            self.drop()

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            # The parser takes what follows for another protocol, and would take a body for the next request.
            raise ValueError("no other protocol is spoken here")
        self._in_vain = 0
        if len(self.pipeline) == _MOST_AHEAD:
            self.drop()
            return
        cycle = self.cycle
        HttpToolsProtocol.on_headers_complete(self)
        if self.pipeline:
            self._earlier = [*filter(_is_under_way, self._earlier), cycle]

    def on_body(self, body: bytes) -> None:
        self._in_vain = 0
        HttpToolsProtocol.on_body(self, body)

    # -- what is no request ------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        if _is_under_way(self.cycle):  # earlier requests still get their responses
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        response = ApiError("malformed", msg).response()
        headers = [*self.server_state.default_headers, *response.raw_headers, (b"connection", b"close")]
        head = b"".join(b"%b: %b\r\n" % header for header in headers)
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head + b"\r\n" + response.body)
        self.transport.close()


def _is_under_way(cycle: RequestResponseCycle | None) -> bool:
    return cycle is not None and not cycle.response_complete


def _as_files_allow(connections: int) -> int:
    """Return the number of connections, or fewer if the system limits the open files of a process."""
    if sys.platform == "win32":
        return connections
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    except (OSError, ValueError):  # there may be a limit above the limits
        allowed = soft
    return max(1, allowed - _OTHER_FILES)
