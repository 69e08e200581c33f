"""Connections that send no whole head, or too much, or do not read: real sockets, and a clock that is set by hand."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

import sfumato as sf
from sfumato.server.api.collector import Collector
from sfumato.server.http.bodies import Timeouts
from sfumato.server.http.connections import Connection, Connections, JoinedWrites
from support.collectors import Served, served, until

pytestmark = pytest.mark.component

#: Estimates of it have some 300 kB: more than the system takes ahead of a reader.
LONG = sf.Uniform(sf.Domain.range(4000), 5)
TIMEOUT = 0.2
HEAD = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
ALIVE = b'{"status":"alive"}'


class Clock:
    """Stands still until it is told to go on, and knows how often it was looked at."""

    now, looks = 0.0, 0

    def __call__(self) -> float:
        self.looks += 1
        return self.now

    def advance(self, timeouts: float) -> None:
        """Advance by this many timeouts of the collector; then all connections are checked."""
        self.now += timeouts * TIMEOUT
        looks = self.looks
        until(lambda: self.looks >= looks + 2)  # the first of these two has ended when the second begins


CLOCK = Clock()


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("collector")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.server.api.collector.Connections", functools.partial(Connections, clock=CLOCK))
        patch.setattr("sfumato.server.api.collector.Timeouts", functools.partial(Timeouts, clock=lambda: CLOCK.now))
        patch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.01)
        with served(f"sqlite:///{folder}/collect.db", live_seconds=0.02, timeout=TIMEOUT) as collector:
            yield collector


@pytest.fixture(scope="module")
def long(collector: Served) -> str:
    """A collection with a long estimate."""
    return created(collector, LONG)


def created(collector: Served, policy: sf.Policy) -> str:
    """A collection with nine reports."""
    name, mechanism, _ = collector.create(policy=policy, mechanism="rr")
    assert collector.send(name, mechanism, np.zeros(9, mechanism.report_format.dtype), "nine-reports").status == 200
    return name


@pytest.fixture(autouse=True)
def complaints() -> Iterator[list[str]]:
    """What the log complains of, which is nothing, unless a test takes it out."""
    messages: list[str] = []

    class Recorder(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    handler = Recorder(logging.WARNING)
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "sfumato.server", "asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
    yield messages
    for logger in loggers:
        logger.removeHandler(handler)
    assert messages == []


def inside(served: Served) -> Collector:
    assert served.app is not None
    assert served.app.collector is not None
    collector: Collector = served.app.collector
    return collector


def is_open(collector: Served, end: Connection) -> bool:
    return end in inside(collector).connections.open


@contextmanager
def connected(collector: Served, sent: bytes = b"") -> Iterator[tuple[socket.socket, Connection]]:
    """A connection of whose answers the system keeps little, and the collector's end of it."""
    before = set(inside(collector).connections.open)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(30)
        client.connect(("127.0.0.1", collector.port))
        until(lambda: not inside(collector).connections.open <= before)
        (end,) = inside(collector).connections.open - before
        end.timeout_keep_alive = 3600  # the server's own timer is not what is tested here
        client.sendall(sent)
        yield client, end


def request(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


def read(connection: socket.socket, ends: bytes, received: bytes = b"") -> bytes:
    while not received.endswith(ends):
        piece = connection.recv(2**16)
        assert piece, received
        received += piece
    return received


def read_body(connection: socket.socket, received: bytes = b"") -> bytes:
    """Read one response with a length to its end; its body."""
    while b"\r\n\r\n" not in received:
        received += received_piece(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])[b"content-length"])
    while len(body) < length:
        body += received_piece(connection)
    return body


def received_piece(connection: socket.socket) -> bytes:
    piece = connection.recv(2**16)
    assert piece, "closed"
    return piece


def rest(connection: socket.socket) -> bytes:
    """Whatever still comes, until it is closed one way or another."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(2**16):
            received += piece
    return received


def send_for_long(connection: socket.socket, piece: bytes, seconds: float = 0.0) -> None:
    """Some 250 MB, and if so told, more slowly: with each 16 KiB of them so many seconds go by."""
    for _ in range(2**14):
        connection.sendall(piece * (2**14 // len(piece)))
        if seconds:
            CLOCK.now += seconds
            time.sleep(0.001)


# -- those that wait -------------------------------------------------------------------------------------------


def test_who_sends_no_whole_head_is_not_waited_for(collector: Served) -> None:
    with contextlib.ExitStack() as stack:
        pieces = (b"\r\n", b"GET /heal", HEAD[:-2])
        ends = [stack.enter_context(connected(collector, piece)) for piece in (b"", *pieces)]
        for piece in pieces:
            client, end = stack.enter_context(connected(collector, HEAD))
            assert read(client, ALIVE).startswith(b"HTTP/1.1 200")
            client.sendall(piece)
            ends.append((client, end))
        CLOCK.advance(0)
        CLOCK.advance(0.9)
        assert all(is_open(collector, end) for _, end in ends)
        CLOCK.advance(0.2)
        assert [rest(client) for client, _ in ends] == [b""] * 7
        until(lambda: not any(is_open(collector, end) for _, end in ends))


def test_heads_may_come_in_pieces_and_requests_after_a_pause(collector: Served) -> None:
    with connected(collector) as (client, end):
        for _ in range(3):
            client.sendall(HEAD[:9])
            CLOCK.advance(0)
            CLOCK.advance(0.9)
            client.sendall(HEAD[9:])
            assert read(client, ALIVE).startswith(b"HTTP/1.1 200")
        CLOCK.advance(0)
        CLOCK.advance(100)  # the server's own timer runs
        client.sendall(request("/healthz", "X: " + "a" * 60_000))
        assert read(client, ALIVE).startswith(b"HTTP/1.1 200")
        assert is_open(collector, end)


def test_a_head_is_not_too_long(collector: Served) -> None:
    with connected(collector) as (client, end), contextlib.suppress(ConnectionError):
        client.sendall(request("/healthz", "X: " + "a" * 100_000))  # of which a single look may see all
        assert rest(client) == b""
    until(lambda: not is_open(collector, end))


# -- those that do not read ------------------------------------------------------------------------------------


def test_a_stream_that_nobody_reads_is_dropped(collector: Served, long: str) -> None:
    with connected(collector, request(f"/v1/collections/{long}/live")) as (client, end):
        until(lambda: end.flow.write_paused)
        CLOCK.advance(0)
        CLOCK.advance(0.9)
        assert inside(collector).streams == 1
        assert is_open(collector, end)
        CLOCK.advance(0.2)
        until(lambda: inside(collector).streams == 0 and not is_open(collector, end))
        received = rest(client)
        assert received.startswith(b"HTTP/1.1 200")
        assert not received.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("header", ["Connection: keep-alive", "Connection: close"])
def test_an_answer_that_nobody_reads_is_dropped(collector: Served, long: str, header: str) -> None:
    with connected(collector, request(f"/v1/collections/{long}/estimate", header)) as (client, end):
        until(lambda: end.flow.write_paused)
        CLOCK.advance(0)
        CLOCK.advance(0.9)
        assert is_open(collector, end)
        CLOCK.advance(0.2)
        until(lambda: not is_open(collector, end))
        assert len(rest(client)) < 2**18


def test_the_end_of_answers_that_nobody_reads_is_dropped(collector: Served) -> None:
    # A response that is shorter than the buffer of the transport, so that its rest does not pause the writer.
    assert len(collector.ask("GET", "/static/studio.js").body) < HIGH_WATER_LIMIT

    def ask(connection: socket.socket, end: Connection) -> None:
        answered = end.server_state.total_requests
        connection.sendall(request("/static/studio.js"))
        until(lambda: end.server_state.total_requests > answered)
        until(lambda: not cast(JoinedWrites, end.transport)._buffer)  # written at the end of the event loop's turn

    with connected(collector) as (client, end):
        while not end.transport.get_write_buffer_size():
            ask(client, end)
        end.timeout_keep_alive = 0  # now
        client.sendall(HEAD)
        until(end.transport.is_closing)
        assert not end.flow.write_paused
        CLOCK.advance(0)
        CLOCK.advance(0.9)
        assert is_open(collector, end)
        CLOCK.advance(0.2)
        until(lambda: not is_open(collector, end))


def test_a_reader_that_is_slow_but_moves_gets_all_of_it(collector: Served) -> None:
    labels = sf.Domain([f"{x:0200d}" for x in range(4000)])  # long, because much is sent at once on busy cores
    long = created(collector, sf.Uniform(labels, 5))
    whole = collector.ask("GET", f"/v1/collections/{long}/estimate").body
    with connected(collector, request(f"/v1/collections/{long}/estimate")) as (client, end):
        until(lambda: end.flow.write_paused)
        CLOCK.advance(0)
        received, looks = b"", 0
        while unsent := end.transport.get_write_buffer_size():
            while end.transport.get_write_buffer_size() == unsent:
                received += client.recv(2**13)
            CLOCK.advance(0.9)
            looks += 1
        assert looks >= 3
        assert read_body(client, received) == whole  # all of it may have come already
        assert is_open(collector, end)


def test_each_answer_is_waited_for_anew(collector: Served, long: str) -> None:
    with connected(collector) as (client, end):
        for _ in range(3):  # of which two at least have the same length left
            client.sendall(request(f"/v1/collections/{long}/estimate"))
            until(lambda: end.flow.write_paused)
            CLOCK.advance(0)
            CLOCK.advance(0.9)
            read_body(client)
            until(lambda: not end.flow.write_paused)
        assert is_open(collector, end)


# -- those that send too much ----------------------------------------------------------------------------------

ENDLESS = {
    "path": (b"GET /", b"a"),
    "header": (b"GET / HTTP/1.1\r\nx: ", b"a"),
    "headers": (b"GET / HTTP/1.1\r\n", b"x: y\r\n"),
    "nothing": (b"", b"\r\n"),
    "second head": (HEAD + b"GET / HTTP/1.1\r\n", b"x: y\r\n"),
    "head behind a stream": (b"GET LIVE HTTP/1.1\r\n\r\nGET /", b"a"),
    "extension": (b"GET LIVE HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a"),
    "trailers": (b"GET LIVE HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", b"x: y\r\n"),
    "late trailers": (HEAD[:-2] + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", b"x: y\r\n"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_has_no_end_is_cut_off(collector: Served, long: str, name: str) -> None:
    sent, again = ENDLESS[name]
    with connected(collector, sent.replace(b"LIVE", f"/v1/collections/{long}/live".encode())) as (client, end):
        if name == "late trailers":
            read(client, ALIVE)
        with pytest.raises(ConnectionError):
            send_for_long(client, again)
        until(lambda: not is_open(collector, end) and inside(collector).streams == 0)


def test_a_body_that_nobody_reads_stays_outside(collector: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a request is worked on, little of its body is taken; afterwards it may end, but not go on forever."""
    begin = threading.Event()
    monkeypatch.setattr(inside(collector).readiness, "check", lambda: asyncio.to_thread(begin.wait, 30))
    with connected(collector, request("/readyz", "Content-Length: 1000000000000")) as (client, end):
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            send_for_long(client, b"x")
        until(lambda: end.flow.read_paused)
        assert len(end.cycle.body) < 2**20
        client.settimeout(30)
        begin.set()
        with pytest.raises(ConnectionError):
            send_for_long(client, b"x", seconds=0.001)
        until(lambda: not is_open(collector, end))


def test_who_is_refused_may_send_the_rest_and_ask_again(collector: Served) -> None:
    head = b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    with connected(collector, head) as (client, end):
        assert b"unauthorized" in read(client, b"}}")
        for _ in range(10):
            client.sendall(bytes(100_000))
        CLOCK.advance(0.9)
        client.sendall(HEAD)
        assert read(client, ALIVE).startswith(b"HTTP/1.1 200")
        assert is_open(collector, end)


# -- requests ahead of answers ---------------------------------------------------------------------------------


def test_some_requests_may_be_sent_ahead(collector: Served) -> None:
    with connected(collector, HEAD * 20) as (client, end):
        received = b""
        while received.count(ALIVE) < 20:
            received += read(client, ALIVE)
        assert is_open(collector, end)


def test_not_too_many_requests_may_be_sent_ahead(collector: Served, long: str) -> None:
    with connected(collector, request(f"/v1/collections/{long}/live") + HEAD * 100) as (client, end):
        rest(client)
        until(lambda: inside(collector).streams == 0 and not is_open(collector, end))
    with connected(collector, HEAD * 10_000) as (client, end):
        assert rest(client).count(ALIVE) < 100
        until(lambda: not is_open(collector, end))


def test_a_stream_with_a_request_behind_it_hears_that_its_reader_has_gone(collector: Served, long: str) -> None:
    with connected(collector, request(f"/v1/collections/{long}/live") + HEAD) as (client, end):
        assert client.recv(2**10).startswith(b"HTTP/1.1 200")
        # A stream that an earlier test requested may begin late, and ends once it notices that its reader has gone.
        until(lambda: len(end.pipeline) == 1 and inside(collector).streams == 1)
    until(lambda: inside(collector).streams == 0)
    assert not is_open(collector, end)


# -- how many there are ----------------------------------------------------------------------------------------


def test_there_are_so_many_connections_and_no_more(tmp_path: Path, complaints: list[str]) -> None:
    url = f"sqlite:///{tmp_path}/collect.db"
    with served(url, connections=3, live_seconds=0.1) as collector:
        name, *_ = collector.create(mechanism="rr")
        live = request(f"/v1/collections/{name}/live")
        with (
            connected(collector, live),
            connected(collector, live),
            connected(collector, live) as (_, end),
            socket.socket() as fourth,
        ):
            until(lambda: inside(collector).streams == 3)
            fourth.connect(("127.0.0.1", collector.port))
            assert rest(fourth) == b""
            until(lambda: complaints == ["connections rejected, because too many are open"])
            complaints.clear()
        until(lambda: not is_open(collector, end))
        assert collector.ask("GET", "/readyz").status == 200


def test_a_new_connection_takes_the_place_of_an_idle_one(tmp_path: Path, complaints: list[str]) -> None:
    url = f"sqlite:///{tmp_path}/collect.db"
    with served(url, connections=2) as collector, connected(collector) as (one, end), connected(collector):
        assert collector.ask("GET", "/healthz").status == 200
        assert rest(one) == b""
        until(lambda: not is_open(collector, end))
    assert not complaints


def test_an_address_that_is_not_a_proxy_has_a_share_of_the_connections(tmp_path: Path, complaints: list[str]) -> None:
    url = f"sqlite:///{tmp_path}/collect.db"
    with served(url, connections_each=2, proxies="10.0.0.0/8, ::1") as collector:
        with connected(collector), connected(collector), socket.socket() as third:
            third.connect(("127.0.0.1", collector.port))
            assert rest(third) == b""
            until(lambda: complaints == ["connections rejected, because too many are open"])
            complaints.clear()
        until(lambda: not inside(collector).connections.open)
        assert collector.ask("GET", "/healthz").status == 200
    behind_proxy = served(url, connections_each=2, proxies="127.0.0.0/8")
    with behind_proxy as collector, connected(collector), connected(collector):
        assert collector.ask("GET", "/healthz").status == 200


def is_rejected(collector: Served) -> bool:
    """Whether a new connection is closed at once."""
    with socket.socket() as client:
        try:
            client.connect(("127.0.0.1", collector.port))
        except ConnectionResetError:  # already
            return True
        return rest(client) == b""


def test_the_addresses_of_a_network_share_its_connections(
    tmp_path: Path, complaints: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = iter([*(f"2001:db8::{i}" for i in (1, 2, 3)), "2001:db8:0:1::1", "::ffff:192.0.2.1", "192.0.2.1"])
    monkeypatch.setattr(
        "uvicorn.protocols.http.httptools_impl.get_remote_addr", lambda _: (next(addresses, "192.0.2.1"), 1)
    )
    with served(f"sqlite:///{tmp_path}/collect.db", connections_each=2) as collector:
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                stack.enter_context(connected(collector))
            assert is_rejected(collector)
            assert len(inside(collector).connections.open) == 2
            for _ in range(3):
                stack.enter_context(connected(collector))
            assert is_rejected(collector)
            until(lambda: complaints != [] and inside(collector).connections.rejected == 0)
        assert set(complaints) == {"connections rejected, because too many are open"}
        complaints.clear()


def waits(end: Connection) -> bool:
    """Whether a request has begun to arrive and not ended, or its response is not read."""
    cycle: RequestResponseCycle | None = end.cycle
    return end.flow.write_paused or (cycle is not None and cycle.more_body)


@pytest.mark.parametrize("waits_for", ["body", "reader"])
def test_a_new_connection_takes_the_place_of_the_oldest_one_that_waits_for_its_client(
    tmp_path: Path, complaints: list[str], waits_for: str
) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db", connections=3, live_seconds=0.02) as collector:
        name = created(collector, LONG)
        busy = created(collector, sf.Uniform(sf.Domain(["no", "yes"]), 1))
        head = (
            f"POST /v1/collections/{name}/reports HTTP/1.1\r\nHost: x\r\n"
            "Content-Type: application/json\r\nContent-Length: 99\r\n\r\n"
        )
        stalled = head.encode() + b"some" if waits_for == "body" else request(f"/v1/collections/{name}/live")
        with (
            connected(collector, request(f"/v1/collections/{busy}/live")) as (_, reading),
            connected(collector, stalled) as (_, oldest),
            connected(collector, stalled) as (_, newest),
        ):
            streams = 1 if waits_for == "body" else 3
            until(lambda: inside(collector).streams == streams and waits(oldest) and waits(newest))
            assert collector.ask("GET", "/healthz").status == 200
            until(lambda: not is_open(collector, oldest))
            assert is_open(collector, newest)
            assert is_open(collector, reading)
    assert not complaints


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_connections_are_files_of_which_the_system_allows_so_many() -> None:
    script = """
import resource
from sfumato.server.http.connections import _as_files_allow as most
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 1000))
print([(most(n), resource.getrlimit(resource.RLIMIT_NOFILE)[0]) for n in (10, 500, 10_000)])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[(10, 256), (500, 700), (800, 1000)]\n"


# -- what is no request --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_in_the_one_shape(collector: Served, complaints: list[str], sent: bytes) -> None:
    with connected(collector, sent) as (client, _):
        head, _, body = rest(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/json" in head
    assert json.loads(body)["error"]["reason"] == "malformed"
    assert complaints.pop() == "Invalid HTTP request received."


@pytest.mark.parametrize("protocol", ["h2c", "websocket"])
def test_a_request_to_change_protocols_is_answered_in_this_one(
    collector: Served, complaints: list[str], protocol: str
) -> None:
    """A server may ignore the header (RFC 9110, section 7.8); what follows the request is not read."""
    hidden = request("/metrics")
    for length in (0, len(hidden)):
        upgrade = request("/healthz", "Connection: Upgrade", f"Upgrade: {protocol}", f"Content-Length: {length}")
        with connected(collector, upgrade) as (client, _):
            with contextlib.suppress(OSError):
                client.sendall(hidden)
            received = rest(client)
        assert received.startswith(b"HTTP/1.1 200 ")
        assert received.endswith(ALIVE)
        assert received.count(b"HTTP/1.1 ") == 1
    assert not complaints


def test_nonsense_behind_a_request_does_not_take_its_answer(collector: Served, complaints: list[str]) -> None:
    with connected(collector, HEAD * 3 + b"nonsense\r\n\r\n") as (client, _):
        received = rest(client)
    assert (received.count(b"HTTP/1.1 200 "), received.count(ALIVE), received.count(b"HTTP/1.1 ")) == (3, 3, 3)
    while complaints:
        assert complaints.pop() == "Invalid HTTP request received."


def test_of_unread_answers_only_so_much_is_held(collector: Served, long: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connections = inside(collector).connections
    monkeypatch.setattr(connections, "most_unsent", 10**6)
    ask = request(f"/v1/collections/{long}/estimate")
    with contextlib.ExitStack() as stack:
        readers = []
        for _ in range(12):  # of each some 200 kB are not sent
            client, end = stack.enter_context(connected(collector, ask))
            until(lambda end=end: end.flow.write_paused or not is_open(collector, end))  # type: ignore[misc]
            readers.append((client, end))
        still = [is_open(collector, end) for _, end in readers]
        assert still == sorted(still)  # those who did not read for longest had to go
        assert 2 <= sum(still) <= 8
        assert sum(end.transport.get_write_buffer_size() for _, end in readers if is_open(collector, end)) <= 10**6
        # Who reads after all gets the whole answer.
        whole = read_body(readers[-1][0])
        assert whole == collector.ask("GET", f"/v1/collections/{long}/estimate").body
