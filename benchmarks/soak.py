"""Run a collector for a long time with live streams and new confidence levels, and watch its memory.

    python -m benchmarks.soak            # fifteen minutes
    python -m benchmarks.soak --minutes 1

All load comes from this machine. Live streams are read all the time. Other clients send single reports, and request
estimates with another confidence level each time. The goal is that memory stays flat after the first quarter.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import secrets
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import sfumato as sf
from benchmarks.collector import ask, collector, live_streams, resident

#: Number of live streams, and of threads that send reports and request estimates.
STREAMS, SENDERS, READERS = 20, 4, 2
#: Seconds between two requests of a thread.
PAUSE = 0.02
#: Largest ratio of the memory at the end to that after a quarter of the time.
FLAT = 1.10


@dataclass
class Load:
    """Latencies in milliseconds and failures of all requests, and events of live streams."""

    sent: list[float] = field(default_factory=list)
    read: list[float] = field(default_factory=list)
    events: int = 0
    failures: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def requests(self, port: int, collection: str, *, reports: bool) -> None:
        """Send reports, or request estimates with another level each time, until the load stops."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while not self.stop.wait(PAUSE):
            start = time.perf_counter()
            try:
                if reports:
                    body = json.dumps({"batch": secrets.token_hex(16), "report": secrets.randbelow(50)})
                    path = f"/v1/collections/{collection}/reports"
                    connection.request("POST", path, body, {"Content-Type": "application/json"})
                else:
                    level = 0.5 + secrets.randbelow(10**9) / (2.1 * 10**9)
                    connection.request("GET", f"/v1/collections/{collection}/estimate?level={level}")
                response = connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(type(error).__name__)
                connection.close()
                continue
            if response.status != 200:
                self.failures.append(content.decode())
            (self.sent if reports else self.read).append(1000 * (time.perf_counter() - start))
        connection.close()

    def stream(self, port: int, collection: str) -> None:
        """Read a live stream until the load stops; open it again if the collector closes it."""
        while not self.stop.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            with contextlib.closing(connection), contextlib.suppress(TimeoutError):
                connection.request("GET", f"/v1/collections/{collection}/live")
                response = connection.getresponse()
                if response.status != 200:
                    self.failures.append(f"live {response.status}")
                    time.sleep(1.0)
                    continue
                for line in response:
                    self.events += line.startswith(b"data:")
                    if self.stop.is_set():
                        break


def run(seconds: float, interval: float) -> tuple[list[tuple[float, float]], Load]:
    """Run the load; return the memory in MB after each interval, with its time, and the figures of the load."""
    load, memory = Load(), []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port, token, process = stack.enter_context(collector(folder))
        policy = sf.Uniform(sf.Domain.range(50), 1).to_dict()
        body = {"title": "soak", "policy": policy, "mechanism": "rr", "submission": "open"}
        collection = ask(port, "POST", "/v1/collections", body, token)["collection"]["id"]
        threads = [threading.Thread(target=load.stream, args=(port, collection)) for _ in range(STREAMS)]
        for number in range(SENDERS + READERS):
            options = {"reports": number < SENDERS}
            threads.append(threading.Thread(target=load.requests, args=(port, collection), kwargs=options))
        for thread in threads:
            thread.start()
        start = time.monotonic()
        try:
            while (elapsed := time.monotonic() - start) < seconds:
                time.sleep(min(interval, seconds - elapsed))
                memory.append((time.monotonic() - start, resident(process)))
                count = len(load.sent) + len(load.read)
                print(
                    f"{memory[-1][0]:6.0f} s   {memory[-1][1]:7.1f} MB   {live_streams(port):3d} streams   "
                    f"{count:9,} requests   {load.events:9,} events   {len(load.failures)} failures",
                    flush=True,
                )
        finally:
            load.stop.set()
            for thread in threads:
                thread.join()
        counted = ask(port, "GET", f"/v1/collections/{collection}/aggregate")["n"]
        assert counted >= len(load.sent) - len(load.failures), (counted, len(load.sent))
    return memory, load


def main() -> None:
    """Run the soak and print memory, latencies and failures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=15.0)
    seconds = 60 * parser.parse_args().minutes
    memory, load = run(seconds, seconds / 30)
    quarter, middle, end = (memory[round(share * (len(memory) - 1))][1] for share in (0.25, 0.5, 1.0))
    print(
        f"memory {memory[0][1]:.1f} MB at {memory[0][0]:.0f} s, {quarter:.1f} after a quarter, {middle:.1f} in the "
        f"middle, {end:.1f} at the end: {end / quarter:.3f} (goal: at most {FLAT})"
    )
    for name, times in (("reports", load.sent), ("estimates", load.read)):
        p50, p99 = np.percentile(times, [50, 99])
        print(f"{len(times):,} {name}: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    print(f"{load.events:,} events of {STREAMS} live streams, {len(load.failures)} failures {load.failures[:3]}")


if __name__ == "__main__":
    main()
