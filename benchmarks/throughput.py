"""Compare the collector with a bare Starlette endpoint at 64 connections: single reports, and batches of 1,000.

    python -m benchmarks.throughput

Both servers run in separate processes: `sfumato serve` with SQLite, whose commits are on disk before the receipt, and
uvicorn with httptools, uvloop and one worker, whose handler reads the body and returns a fixed response. The rounds
alternate, and the ratios are medians of five rounds, because the speed of the machine varies.

wrk produces the load if it is installed, because it uses little of the processor. Otherwise this process does.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import sfumato as sf
from benchmarks.collector import (
    BATCH,
    EMPTY,
    ask,
    batches,
    collector,
    for_seconds,
    free_port,
    load,
    many,
    processor_seconds,
    running,
    singles,
)

SECONDS = 5
ROUNDS = 5
CONNECTIONS = 64
#: Least ratios of rates, of single reports and of batches.
GOALS = {"one report": 0.6, f"batch of {BATCH:,}": 0.45}

#: A script of wrk: every request has another batch id, and the last line of the output has the figures.
_SCRIPT = """
local bodies, number = {}, 0
for line in io.lines("%(bodies)s") do
    bodies[#bodies + 1] = line:gsub("..", function(digits) return string.char(tonumber(digits, 16)) end)
end
wrk.method = "POST"
function request()
    number = number + 1
    local batch = string.format("%(prefix)s-%%010d", number)
    if #bodies == 0 then
        wrk.headers["Content-Type"] = "application/json"
        local body = string.format('{"batch":"%%s","report":%%d}', batch, number %% %(outputs)d)
        return wrk.format(nil, nil, nil, body)
    end
    wrk.headers["Content-Type"] = "application/vnd.sfumato.reports"
    wrk.headers["Idempotency-Key"] = batch
    return wrk.format(nil, nil, nil, bodies[number %% #bodies + 1])
end
function done(summary, latency, requests)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.timeout + errors.status
    print(string.format("figures %%d %%d %%d %%d %%d", summary.requests, summary.duration, failed,
                        latency:percentile(50), latency:percentile(99)))
end
"""


@dataclass(frozen=True)
class Round:
    """One round of load: requests, rate per second, median and 99th percentile, and processor time per request."""

    requests: int
    rate: float
    p50: float
    p99: float
    microseconds: float

    def __str__(self) -> str:
        return (
            f"{self.rate:8,.0f} requests/s   p50 {self.p50:6.2f} ms   p99 {self.p99:6.2f} ms   "
            f"{self.microseconds:5.1f} µs of server time"
        )


def by_wrk(port: int, process: int, path: str, outputs: int, payloads: list[bytes], folder: Path) -> Round:
    """Send load with wrk; without payloads, single reports."""
    _PREFIXES.append(f"round{len(_PREFIXES)}")
    bodies, script = folder / "bodies", folder / "load.lua"
    bodies.write_text("".join(payload.hex() + "\n" for payload in payloads))
    script.write_text(_SCRIPT % {"bodies": bodies, "prefix": _PREFIXES[-1], "outputs": outputs})
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "-s", str(script), f"http://127.0.0.1:{port}{path}"]
    used = processor_seconds(process)
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    used = processor_seconds(process) - used
    match = re.search(r"figures (\d+) (\d+) (\d+) (\d+) (\d+)", output)
    assert match is not None, output
    requests, duration, failed, p50, p99 = map(int, match.groups())
    assert not failed, output
    return Round(requests, 1e6 * requests / duration, p50 / 1000, p99 / 1000, 1e6 * used / requests)


#: Prefixes of batch ids that were used.
_PREFIXES: list[str] = []


def by_python(port: int, process: int, path: str, outputs: int, payloads: list[bytes], folder: Path) -> Round:  # noqa: ARG001
    """Send load from this process; without payloads, single reports."""
    requests = many(path, payloads) if payloads else singles(path, outputs, 0)
    result = load(port, process, for_seconds(requests, SECONDS), CONNECTIONS)
    p50, p99 = np.percentile(result.milliseconds, [50, 99])
    return Round(len(result.milliseconds), result.rate, float(p50), float(p99), result.microseconds)


def main() -> None:
    """Run all rounds and print rates, latencies and ratios."""
    send: Callable[[int, int, str, int, list[bytes], Path], Round] = by_wrk if shutil.which("wrk") else by_python
    policy = sf.HighLow(sf.Domain([f"v{i}" for i in range(20)]), sensitive=["v1", "v2", "v3"], epsilon=1)
    empty_port = free_port()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        command = ("-c", EMPTY, str(empty_port))
        empty_process = stack.enter_context(running(*command, port=empty_port, output=folder / "empty.log")).pid
        port, token, process = stack.enter_context(collector(folder))
        body = {"title": "load", "policy": policy.to_dict(), "mechanism": "rr", "submission": "open"}
        created = ask(port, "POST", "/v1/collections", body, token)["collection"]
        mechanism = sf.mechanism_from_spec(created["mechanism"])
        path = f"/v1/collections/{created['id']}/reports"
        kinds: dict[str, list[bytes]] = {"one report": [], f"batch of {BATCH:,}": batches(mechanism, 200)}
        print(f"load by {send.__name__}, {CONNECTIONS} connections, {SECONDS} s per round")
        reports = 0
        for kind, payloads in kinds.items():
            ratios, work, late = [], [], []
            for _ in range(ROUNDS):
                empty = send(empty_port, empty_process, path, mechanism.outputs, payloads, folder)
                full = send(port, process, path, mechanism.outputs, payloads, folder)
                reports += full.requests * (BATCH if payloads else 1)
                ratios.append(full.rate / empty.rate)
                work.append(empty.microseconds / full.microseconds)
                late.append(full.p99)
                print(f"{'bare endpoint':20s}{empty}\n{kind:20s}{full}   {ratios[-1]:.2f}", flush=True)
            print(f"   {kind}: rate / bare endpoint {statistics.median(ratios):.2f} (goal: at least {GOALS[kind]:.2f})")
            print(f"   {kind}: by processor time {statistics.median(work):.2f}, p99 {statistics.median(late):.1f} ms")
        counted = ask(port, "GET", path.replace("/reports", "/aggregate"))["n"]
        # At the end of a round, wrk leaves at most one request per connection without reading its receipt.
        most = reports + ROUNDS * CONNECTIONS * sum(BATCH if payloads else 1 for payloads in kinds.values())
        assert reports <= counted <= most, (reports, counted, most)
        print(f"{counted:,} reports counted, {reports:,} acknowledged")


if __name__ == "__main__":
    main()
