"""Whether one sender can shut others out of a collector: the share of an honest client's requests that are served.

Run ``python -m benchmarks.shutouts``. All load stays on this machine: the attacker uses addresses 127.0.1.x, the honest
client 127.0.0.9. Five attacks run for a few seconds each: idle connections, slow estimates, new confidence levels,
stalled uploads and live streams. The goal is that at least 95% of the honest requests are served within five seconds.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import resource
import secrets
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import sfumato as sf
from benchmarks.collector import ask, collector
from sfumato.collecting import encode_batch

SECONDS = 8.0
PATIENCE = 5.0
HONEST = "127.0.0.9"
ATTACKERS = [f"127.0.1.{number}" for number in range(1, 22)]
BATCH = "application/vnd.sfumato.reports"


def send(port: int, source: str, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
    """Send one request from an address; return the status, or 0 without a response in time."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE, source_address=(source, 0))
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        if path.endswith("/live"):
            return response.status if b"event" in response.read(20) else 0
        response.read()
        return response.status
    return 0


def honest(port: int, collection: str) -> tuple[float, float, int]:
    """Send reports and read results for a while; return the share served, the median seconds and the number."""
    served, seconds = [], []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        report = json.dumps({"batch": secrets.token_hex(16), "report": 0}).encode()
        for method, part, body in (("POST", "reports", report), ("GET", "estimate", None), ("GET", "live", None)):
            start = time.monotonic()
            headers = {} if body is None else {"Content_Type": "application/json"}
            served.append(send(port, HONEST, method, f"/v1/collections/{collection}/{part}", body, **headers) == 200)
            seconds.append(time.monotonic() - start)
        time.sleep(0.05)
    return statistics.mean(served), statistics.median(seconds), len(served)


@contextlib.contextmanager
def repeated(work: Callable[[int], Any], threads: int = 8) -> Iterator[None]:
    """Repeat work in several threads while the block runs."""
    stop = threading.Event()

    def run(number: int) -> None:
        while not stop.is_set():
            work(number)

    workers = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        stop.set()
        for worker in workers:
            worker.join()


@contextlib.contextmanager
def connections(port: int, sources: list[str], count: int, sent: bytes) -> Iterator[None]:
    """Hold connections open that have sent some bytes and send nothing more."""
    with contextlib.ExitStack() as stack:
        for source in itertools.islice(itertools.cycle(sources), count):
            with contextlib.suppress(OSError):
                one = stack.enter_context(socket.socket())
                one.settimeout(PATIENCE)
                one.bind((source, 0))
                one.connect(("127.0.0.1", port))
                one.sendall(sent)
        yield


def head(method: str, path: str, *headers: str) -> bytes:
    """Return the head of a request."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


def main() -> None:
    """Run the five attacks and print the share of honest requests that were served."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(20_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port, token, _ = stack.enter_context(collector(folder, "--trust-proxy", "", "--rate", "200"))

        def create(values: int, **metadata: Any) -> tuple[str, Any, str]:
            policy = sf.Uniform(sf.Domain.range(values), 1).to_dict()
            body = {"title": "shut out", "policy": policy, "mechanism": "rr", "submission": "open", **metadata}
            created = ask(port, "POST", "/v1/collections", body, token)
            return (
                created["collection"]["id"],
                sf.mechanism_from_spec(created["collection"]["mechanism"]),
                created["key"],
            )

        small, _, _ = create(5)
        wide, mechanism, key = create(3100, submission="key")
        payload = encode_batch(mechanism, np.random.default_rng(1).integers(0, 3100, 5000).astype(np.uint16))
        batch = {"Content_Type": BATCH, "Idempotency_Key": secrets.token_hex(16), "Authorization": f"Bearer {key}"}
        assert send(port, HONEST, "POST", f"/v1/collections/{wide}/reports", payload, **batch) == 200

        def slow(number: int) -> None:
            path = f"/v1/collections/{wide}/estimate?method=efficient&level={0.5 + secrets.randbelow(400) / 1000}"
            send(port, ATTACKERS[number % 2], "GET", path)

        def levels(number: int) -> None:
            level = 0.5 + secrets.randbelow(10**9) / (2.1 * 10**9)
            send(port, ATTACKERS[number % 2], "GET", f"/v1/collections/{wide}/estimate?level={level}")

        upload = head(
            "POST", f"/v1/collections/{wide}/reports", f"Content-Type: {BATCH}", "Idempotency-Key: a-stalled-upload",
            f"Authorization: Bearer {key}", "Content-Length: 1500000",
        ) + bytes(2**20)  # fmt: skip
        live = head("GET", f"/v1/collections/{small}/live")
        attacks: dict[str, Any] = {
            "nothing": contextlib.nullcontext(),
            "10,500 idle connections, 1 address": connections(port, ATTACKERS[:1], 10_500, b""),
            "10,500 idle connections, 21 addresses": connections(port, ATTACKERS, 10_500, b""),
            "slow estimates (efficient, k = 3,100)": repeated(slow),
            "a new confidence level per request": repeated(levels),
            "140 stalled uploads": connections(port, ATTACKERS[:1], 140, upload),
            "500 live streams": connections(port, ATTACKERS[:1], 500, live),
        }
        for name, attack in attacks.items():
            with attack:
                share, seconds, count = honest(port, small)
            print(f"{name:40s} served {share:7.2%} of {count:4d}, median {1000 * seconds:6.1f} ms", flush=True)
            time.sleep(1.0)


if __name__ == "__main__":
    main()
