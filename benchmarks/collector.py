"""Measure the collector under load: a report against an empty request, and a batch against a bare SQLite transaction.

    python -m benchmarks.collector

The server is `sfumato serve` with SQLite, in a separate process. This process sends the load over persistent
connections, with one request at a time on each.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import json
import os
import re
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.collecting import encode_batch

#: Seconds of load per measurement.
SECONDS = 4.0
#: Options without limits for open collections: all load comes from one address.
UNLIMITED = ("--open-batch", "0", "--open-per-address", "0", "--open-per-collection", "0", "--public-step", "0")
ROUNDS = 5
CONNECTIONS = 256
#: Reports per batch.
BATCH = 1000
#: Number of live streams whose clients never read.
DEAF = 200

#: The same server and framework, with a handler that reads the body and does nothing.
EMPTY = """
import sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def empty(request):
    await request.body()
    return Response()

app = Starlette(routes=[Route("/v1/collections/{id}/reports", empty, methods=["POST"])])
uvicorn.run(
    app, port=int(sys.argv[1]), http="httptools", loop="uvloop", workers=1, access_log=False, log_level="warning"
)
"""


@dataclass(frozen=True)
class Result:
    """Requests per second, their latencies, and processor time of the server per request."""

    rate: float
    milliseconds: np.ndarray[Any, Any]
    microseconds: float

    def __str__(self) -> str:
        p50, p99 = np.percentile(self.milliseconds, [50, 99])
        times = f"p50 {p50:6.2f} ms   p99 {p99:6.2f} ms"
        return f"{self.rate:8,.0f} requests/s   {times}   {self.microseconds:5.1f} µs of server time"


class _Connection(asyncio.Protocol):
    """A connection that sends a request, waits for the response, and sends the next."""

    def __init__(self, requests: Iterator[bytes], times: list[float], done: asyncio.Future[None]) -> None:
        self._requests, self._times, self._done = requests, times, done
        self._response = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def _next(self) -> None:
        """Send the next request, or close the connection after the last."""
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(None)
            return
        self._start = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._response += data
        head, separator, body = self._response.partition(b"\r\n\r\n")
        if not separator:
            return
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None, head
        if len(body) < int(length[1]):
            return
        if not head.startswith(b"HTTP/1.1 200"):
            self._done.set_exception(AssertionError(self._response.decode()))
            return
        self._times.append(time.perf_counter() - self._start)
        self._response = b""
        self._next()


def load(port: int, process: int, requests: Iterator[bytes], connections: int = CONNECTIONS) -> Result:
    """Send all requests to the server on a port; ``process`` is its process id. The rate counts responses."""

    async def run() -> list[float]:
        loop = asyncio.get_running_loop()
        times: list[float] = []
        done = [loop.create_future() for _ in range(connections)]
        for future in done:
            await loop.create_connection(lambda future=future: _Connection(requests, times, future), "127.0.0.1", port)  # type: ignore[misc]
        await asyncio.gather(*done)
        return times

    start, used = time.perf_counter(), processor_seconds(process)
    times = asyncio.run(run())
    used = processor_seconds(process) - used
    return Result(len(times) / (time.perf_counter() - start), 1000 * np.array(times), 1e6 * used / len(times))


def processor_seconds(process: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def for_seconds(requests: Iterator[bytes], seconds: float = SECONDS) -> Iterator[bytes]:
    """Yield requests for some seconds."""
    end = time.perf_counter() + seconds
    for request in requests:
        if time.perf_counter() > end:
            return
        yield request


def request(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """Return the bytes of a POST request."""
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


# -- servers -----------------------------------------------------------------------------------------------


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(*command: str, port: int, output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Python command while it listens on a port; write its output to a file."""
    with output.open("wb") as file:
        process = subprocess.Popen([sys.executable, *command], stdout=file, stderr=subprocess.STDOUT)
    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, output.read_text()
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.wait()


def ask(port: int, method: str, path: str, body: Any = None, token: str = "") -> Any:
    """Send a JSON request and return the JSON response."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status < 300, content
    return json.loads(content)


@contextlib.contextmanager
def collector(folder: Path, *options: str) -> Iterator[tuple[int, str, int]]:
    """Run a collector with SQLite; yield its port, its admin token and its process id."""
    port, output = free_port(), folder / "serve.log"
    arguments = (
        "--store",
        f"sqlite:///{folder}/collect.db",
        "--port",
        str(port),
        "--rate",
        "1000000",
        *UNLIMITED,
        *options,
    )
    with running("-m", "sfumato.cli", "serve", *arguments, port=port, output=output) as process:
        token = re.search(r"sfa_\S+", output.read_text())
        assert token is not None
        yield port, token[0], process.pid


def resident(process: int) -> float:
    """Return the resident memory of a process in MB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert match is not None
    return int(match[1]) / 1024


# -- loads -------------------------------------------------------------------------------------------------


def batches(mechanism: Any, count: int) -> list[bytes]:
    """Return different batches of BATCH reports each."""
    rng = np.random.default_rng(1)
    values = list(mechanism.domain)
    encoded = []
    for _ in range(count):
        indices = rng.integers(len(values), size=BATCH)
        encoded.append(encode_batch(mechanism, sf.privatize(mechanism, [values[i] for i in indices])))
    return encoded


def bare_sqlite(folder: Path, payloads: list[bytes]) -> float:
    """Return the number of transactions per second that insert one batch each and do nothing else."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE batches (id TEXT PRIMARY KEY, payload BLOB)")
    start, number = time.perf_counter(), 0
    while time.perf_counter() < start + SECONDS:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO batches VALUES (?, ?)", (uuid.uuid4().hex, payloads[number % len(payloads)]))
        connection.execute("COMMIT")
        number += 1
    return number / (time.perf_counter() - start)


def live_streams(port: int) -> int:
    """Return the number of open live streams, from the metrics."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("GET", "/metrics")
        match = re.search(rb"sfumato_live_streams (\d+)", connection.getresponse().read())
    assert match is not None
    return int(match[1])


def deaf_readers(port: int, collection: str, count: int) -> list[socket.socket]:
    """Open live streams whose clients never read."""
    readers = []
    for _ in range(count):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", port))
        reader.sendall(f"GET /v1/collections/{collection}/live HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        readers.append(reader)
    return readers


def singles(path: str, outputs: int, first: int) -> Iterator[bytes]:
    """Yield requests with one report each."""
    for number in itertools.count(first):
        body = b'{"batch":"%s","report":%d}' % (uuid.uuid4().hex.encode(), number % outputs)
        yield request(path, body, {"Content-Type": "application/json"})


def many(path: str, payloads: list[bytes]) -> Iterator[bytes]:
    """Yield requests with one batch each."""
    for number in itertools.count():
        headers = {"Content-Type": "application/vnd.sfumato.reports", "Idempotency-Key": uuid.uuid4().hex}
        yield request(path, payloads[number % len(payloads)], headers)


def main() -> None:
    """Run all measurements and print them."""
    policy = sf.HighLow(sf.Domain([f"v{i}" for i in range(20)]), sensitive=["v1", "v2", "v3"], epsilon=1)
    empty_port = free_port()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        command = ("-c", EMPTY, str(empty_port))
        empty_process = stack.enter_context(running(*command, port=empty_port, output=folder / "empty.log")).pid
        port, token, process = stack.enter_context(collector(folder))
        created = ask(
            port,
            "POST",
            "/v1/collections",
            {"title": "load", "policy": policy.to_dict(), "mechanism": "rr", "submission": "open"},
            token,
        )
        mechanism = sf.mechanism_from_spec(created["collection"]["mechanism"])
        path = f"/v1/collections/{created['collection']['id']}/reports"

        # Alternate between both servers and take the median ratio, because the speed of the machine varies.
        ratios, work, reports = [], [], 0
        for _ in range(ROUNDS):
            empty = load(empty_port, empty_process, for_seconds(singles(path, mechanism.outputs, 0)))
            single = load(port, process, for_seconds(singles(path, mechanism.outputs, reports)))
            ratios.append(single.rate / empty.rate)
            work.append(empty.microseconds / single.microseconds)
            reports += len(single.milliseconds)
            print(f"empty POST handler          {empty}")
            print(f"one report                  {single}")
        print(f"   rate / empty handler     {statistics.median(ratios):.2f}  (goal: at least 0.50)")
        print(f"   by processor time        {statistics.median(work):.2f}")

        payloads = batches(mechanism, 200)
        batch = load(port, process, for_seconds(many(path, payloads)))
        bare = bare_sqlite(folder, payloads)
        print(f"batch of {BATCH:,} reports      {batch}   {batch.rate * BATCH:,.0f} reports/s")
        print(f"bare SQLite transactions    {bare:8,.0f} per second")
        print(f"   batches / transactions   {batch.rate / bare:.2f}  (goal: at least 0.33)")

        counted = ask(port, "GET", path.replace("/reports", "/aggregate"))
        assert counted["n"] == reports + BATCH * len(batch.milliseconds)
        print(f"memory of the collector     {resident(process):8,.0f} MB after {counted['n']:,} reports")

        wide = sf.Uniform(sf.Domain.range(2000), 4).to_dict()
        created = ask(
            port,
            "POST",
            "/v1/collections",
            {"title": "deaf", "policy": wide, "mechanism": "rr", "submission": "open"},
            token,
        )
        path = f"/v1/collections/{created['collection']['id']}/reports"
        load(port, process, for_seconds(singles(path, 2000, 0)), connections=4)
        print(f"   before stalled streams   {resident(process):8,.0f} MB")
        for _ in range(2):  # the second round shows whether the first leaked memory
            readers, start, left = deaf_readers(port, created["collection"]["id"], DEAF), time.perf_counter(), DEAF
            while left:
                load(port, process, for_seconds(singles(path, 2000, 0)), connections=4)
                left = live_streams(port)
                seconds = time.perf_counter() - start
                print(f"   {seconds:3.0f} s with them         {resident(process):8,.0f} MB, {left} streams open")
            for reader in readers:
                reader.close()


if __name__ == "__main__":
    main()
