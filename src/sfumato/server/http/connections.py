"""Connections with a timeout: the collector drops a client that does not finish a request head or read a response.

As in ``Timeouts``, one check per second of all connections costs less than a timer per request.

This is the only module that extends private classes of uvicorn: ``HttpToolsProtocol`` and its request cycle. It works
only with the versions that it was tested with (``TESTED_UVICORN``). ``tests/server/test_server_uvicorn.py`` checks
everything that it relies on.

The public settings of uvicorn are not enough. With uvicorn 0.54, ``http="httptools"``, ``timeout_keep_alive=5`` and
``limit_concurrency=50``:

- Three connections were still open after 65 seconds: one that had sent nothing, one that had sent half a head, and one
  that did not read a response of 64 MiB.
- uvicorn accepted 64 MiB of one header, and the connection stayed open.

A proxy in front can enforce such limits, but a collector also runs without one. Compared with uvicorn's own class, a
report took 1.03 times the processor time (median of nine alternating rounds on a busy machine).
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
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
from sfumato.server.http.limits import network
from sfumato.server.http.responses import ApiError
from sfumato.server.http.telemetry import LOG

__all__ = ["STATE", "TESTED_UVICORN", "Connection", "Connections", "JoinedWrites", "check_uvicorn"]

#: First and last minor version of uvicorn 0 that this module was tested with; ``pyproject.toml`` has the same range.
TESTED_UVICORN = (34, 54)
#: Key of the ASGI lifespan state under which the application passes its ``Connections`` to the server.
STATE = "connections"
#: Maximum consecutive bytes of a head, of trailers or of empty lines, that is, without the end of a head or a body.
_MOST_OVERHEAD = 2**16
#: Parse input in chunks of this size.
_PIECE = 2**14
#: Maximum pipelined requests that wait for an earlier response.
_MOST_AHEAD = 32
#: Maximum files that a process has open in addition to its connections.
_OTHER_FILES = 200
#: Bytes of a response that the system buffers for its reader; with more, a slow reader would look stalled for long.
_UNSENT = 2**17
#: Value of SO_LINGER that makes a closed socket discard unsent bytes.
_NOTHING_LINGERS = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
#: Progress of a connection whose client has nothing to do.
_NOT_WAITING = object()


def check_uvicorn(version: str = uvicorn.__version__) -> None:
    """Raise InvalidInput for a version of uvicorn that ``Connection`` was not tested with; its limits could fail."""
    first, last = TESTED_UVICORN
    major, _, rest = version.partition(".")
    minor = rest.partition(".")[0]
    if major != "0" or not minor.isdecimal() or not first <= int(minor) <= last:
        must = f"have a version from 0.{first} to 0.{last}, which this release was tested with"
        hint = f"Run: pip install 'uvicorn>=0.{first},<0.{last + 1}'"
        raise InvalidInput("serve", "uvicorn", must, version, hint=hint)


class JoinedWrites(asyncio.Transport):
    """A transport that collects the writes of one turn of the event loop and sends them at its end.

    The head and the body of a response are sent together, in one system call and one packet instead of two.
    """

    __slots__ = ("_buffer", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._buffer: list[Any] = []

    def write(self, data: Any) -> None:
        if not self._buffer:
            self._loop.call_soon(self._send)
        self._buffer.append(data)

    def _send(self) -> None:
        """Send the collected writes."""
        buffer, self._buffer = self._buffer, []
        if buffer and not self._transport.is_closing():
            self._transport.writelines(buffer)  # not joined, because many connections may share one long response

    def close(self) -> None:
        self._send()
        self._transport.close()

    def abort(self) -> None:
        self._buffer = []
        self._transport.abort()

    # -- methods passed on to the transport ----------------------------------------------------------------

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
    """The connections of one process: at most ``most``, each dropped after it stalls for ``timeout`` seconds.

    A network (see ``limits.network``) has at most ``most_each`` connections; the ``proxies`` have no such limit. If all
    connections are in use, a new one replaces one of the network that has the most: the oldest idle one, or else the
    oldest one whose client has not sent the whole body or does not read its response.
    """

    #: Maximum bytes of responses that wait for slow readers, over all connections.
    most_unsent = 2**28

    def __init__(
        self,
        most: int,
        timeout: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        most_each: int = 0,
        proxies: str = "*",
    ) -> None:
        self.most, self.timeout, self._clock = _as_files_allow(most), timeout, clock
        self._most_each, self._is_proxy = most_each, _membership(proxies)
        self.open: set[Connection] = set()
        self._by_network: dict[bytes, dict[Connection, None]] = {}
        self.rejected = 0
        self._unsent: dict[Connection, int] = {}
        self._all_unsent = 0
        self._checker = asyncio.create_task(self._check_all())

    async def _check_all(self) -> None:
        """Drop stalled connections and log rejected ones, once per second or more often."""
        while True:
            await asyncio.sleep(min(1.0, self.timeout / 4))
            now = self._clock()
            for connection in list(self.open):
                if connection.stalled_seconds(now) > self.timeout:
                    connection.drop()
            if self.rejected:
                LOG.warning(
                    "connections rejected, because too many are open",
                    extra={"fields": {"most": self.most, "refused": self.rejected}},
                )
                self.rejected = 0

    def admit(self, connection: Connection) -> bool:
        """Add a new connection, in place of another one if needed; return whether there was room."""
        address = connection.client[0] if connection.client else ""
        connection.network = network(address)
        share = len(self._by_network.get(connection.network, ()))
        if 0 < self._most_each <= share and not self._is_proxy(address):
            return False
        if len(self.open) >= self.most:
            most = max(self._by_network.values(), key=len)
            replaced = next((one for one in most if not _is_under_way(one.cycle)), None)
            replaced = replaced or next((one for one in most if one.waits_for_client), None)
            if replaced is None:
                return False
            self.remove(replaced)
            replaced.drop()
        self.open.add(connection)
        self._by_network.setdefault(connection.network, {})[connection] = None
        return True

    def remove(self, connection: Connection) -> None:
        """Remove a connection that is closed; nothing happens if it was not admitted."""
        self.open.discard(connection)
        share = self._by_network.get(connection.network, {})
        share.pop(connection, None)
        if not share:
            self._by_network.pop(connection.network, None)

    def add_unsent(self, connection: Connection, size: int) -> None:
        """Record bytes that wait for a slow reader; above the limit, drop the connection that has waited longest."""
        self.remove_unsent(connection)
        self._unsent[connection] = size
        self._all_unsent += size
        while self._all_unsent > self.most_unsent and len(self._unsent) > 1:
            longest = next(iter(self._unsent))
            self.remove_unsent(longest)
            longest.drop()

    def remove_unsent(self, connection: Connection) -> None:
        """Remove the record of a connection whose reader has caught up or disconnected."""
        self._all_unsent -= self._unsent.pop(connection, 0)

    def stop(self) -> None:
        """Stop the checks."""
        self._checker.cancel()


class Connection(HttpToolsProtocol):
    """One of the ``Connections`` that the application passes in its lifespan state.

    Every request passes through this class. Slots and direct calls of the base class halve its cost.
    """

    __slots__ = ("_all", "_earlier", "_overhead", "_progress", "_since", "network")

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._all: Connections = app_state[STATE]
        self._overhead = 0  # consecutive bytes that neither end a head nor belong to a body
        self._earlier: list[RequestResponseCycle] = []
        self._progress: object = _NOT_WAITING
        self._since = 0.0
        self.network = b""  # of the other end, which may be a proxy

    def drop(self) -> None:
        """Close the connection at once and discard unsent bytes; its handler receives a disconnect."""
        self._set(socket.SOL_SOCKET, socket.SO_LINGER, _NOTHING_LINGERS)
        self.transport.abort()

    def _set(self, level: int, option: int, value: int | bytes) -> None:
        """Set an option of the socket."""
        with contextlib.suppress(OSError):  # the client may have disconnected
            self.transport.get_extra_info("socket").setsockopt(level, option, value)

    # -- limit on open connections -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(JoinedWrites(transport, self.loop))
        if not self._all.admit(self):
            self._all.rejected += 1
            self.drop()
        elif sys.platform == "linux":
            self._set(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.remove(self)
        self._all.remove_unsent(self)
        for cycle in self._earlier:  # uvicorn notifies only the last request
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    @property
    def waits_for_client(self) -> bool:
        """Whether a request is under way whose client has to send the rest of the body or to read the response."""
        return self.flow.write_paused or (_is_under_way(self.cycle) and self.cycle.more_body)

    # -- timeout -----------------------------------------------------------------------------------------------

    def stalled_seconds(self, now: float) -> float:
        """Return the seconds since the client last made progress, measured at the checks."""
        if self.flow.write_paused or self.transport.is_closing():
            # The client has to read. Nothing is added to the buffer meanwhile, so its size shows the progress.
            progress: object = self.transport.get_write_buffer_size()
        elif self.timeout_keep_alive_task is None and not _is_under_way(self.cycle):
            progress = self.cycle  # the client has to send the rest of this request, or the head of the next one
        else:
            progress = _NOT_WAITING  # the collector has to respond, or uvicorn's own timer runs
        if progress is _NOT_WAITING or progress != self._progress:
            self._progress, self._since = progress, now
        return now - self._since

    def pause_writing(self) -> None:
        super().pause_writing()
        self._all.add_unsent(self, self.transport.get_write_buffer_size())  # nothing is added until it is read

    def resume_writing(self) -> None:
        super().resume_writing()
        self._all.remove_unsent(self)
        self._progress = _NOT_WAITING

    # -- limit on received bytes -------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if len(data) > _PIECE:
            for start in range(0, len(data), _PIECE):
                if not self.transport.is_closing():
                    self.data_received(data[start : start + _PIECE])
            return
        self._overhead += len(data)
        HttpToolsProtocol.data_received(self, data)
        if self._overhead > _MOST_OVERHEAD:
            self.drop()

    def on_headers_complete(self) -> None:
        if self.parser.get_method() == b"CONNECT":
            raise ValueError("the collector is not a proxy; send another method")
        self._overhead = 0
        if len(self.pipeline) == _MOST_AHEAD:
            self.drop()
            return
        cycle = self.cycle
        HttpToolsProtocol.on_headers_complete(self)
        if self.parser.should_upgrade():
            # A server may ignore the header Upgrade (RFC 9110, section 7.8). The parser reads the body of this request,
            # but nothing after it.
            self.cycle.keep_alive = False
        if self.pipeline:
            self._earlier = [*filter(_is_under_way, self._earlier), cycle]

    def on_body(self, body: bytes) -> None:
        self._overhead = 0
        HttpToolsProtocol.on_body(self, body)

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the request is answered as if it had no header Upgrade."""

    # -- malformed requests ------------------------------------------------------------------------------------

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


def _membership(proxies: str) -> Callable[[str], bool]:
    """Return a function that tells whether an address is one of the proxies; ``*`` stands for all addresses."""
    if proxies == "*":
        return lambda _: True
    networks = [ipaddress.ip_network(one.strip(), strict=False) for one in proxies.split(",") if one.strip()]

    def contains(address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:  # a local socket
            return True
        return any(parsed in one for one in networks)

    return contains


def _is_under_way(cycle: RequestResponseCycle | None) -> bool:
    """Return whether a request has no complete response yet."""
    return cycle is not None and not cycle.response_complete


def _as_files_allow(connections: int) -> int:
    """Return the number of connections that the system's limit on open files allows, after raising the limit."""
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
    except (OSError, ValueError):  # a system-wide limit may be lower
        allowed = soft
    return max(1, allowed - _OTHER_FILES)
