"""What a collector gives to one who asks for too much, and what its client makes of an answer that is none."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.cli import main
from sfumato.collecting.batch import encode_batch
from sfumato.collecting.files import write_reports
from sfumato.device.client import Client
from sfumato.device.transport import CollectorRefused, CollectorUnreachable
from sfumato.server.api.results import PARQUET_TYPE
from sfumato.server.http.bodies import MemoryBudget
from sfumato.server.http.limits import DailyBudget
from sfumato.server.http.middleware import RateLimiter
from sfumato.server.http.responses import ApiError, JsonResponse
from sfumato.server.jobs.estimates import ResultCache
from sfumato.server.jobs.planner import _MOST_WAITING, Planner
from sfumato.server.jobs.threads import Workers
from sfumato.server.settings import Settings
from support.collectors import BATCH_TYPE, DISEASES, Response, Served, free_port, served, until

pytestmark = pytest.mark.component

YES_NO = sf.Domain(["no", "yes"])
#: Reports of 256 bytes, of which some make a long body.
WIDE = sf.Uniform(sf.Domain.range(2048), 1)


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("collector")
    with served(f"sqlite:///{folder}/collect.db", live_seconds=0.02, plan_values=20_000) as running:
        yield running


@contextlib.contextmanager
def begun(collector: Served, name: str, kind: str, length: int, body: bytes = b"") -> Iterator[socket.socket]:
    """A connection on which a body is announced, and some of it sent."""
    with socket.create_connection(("127.0.0.1", collector.port), timeout=30) as connection:
        head = (
            f"POST /v1/collections/{name}/reports HTTP/1.1\r\nHost: x\r\nIdempotency-Key: held-back-batch\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        yield connection


# -- what is sent ----------------------------------------------------------------------------------------------


def test_too_many_reports_are_refused_before_they_are_sent(collector: Served) -> None:
    name, mechanism, _ = collector.create(policy=sf.Uniform(YES_NO, 1), mechanism="rr")
    assert mechanism.bits == 1
    most = np.zeros(2**20, mechanism.report_format.dtype)
    assert collector.send(name, mechanism, most, "as-many-as-may-be").json["reports"] == 2**20
    with begun(collector, name, BATCH_TYPE, 2**23) as connection:  # 67 million of them, and nothing of it sent
        response = b""
        while b"too-large" not in response:
            piece = connection.recv(4096)
            assert piece, response
            response += piece
    assert collector.send(name, mechanism, np.zeros(2**20 + 8, np.uint32), "eight-more-reports").reason == "too-large"
    with collector.client() as client:  # which cuts them
        receipts = client.submit(name, np.zeros(2**20 + 8, np.uint32))
    assert sum(receipt.reports for receipt in receipts) == 2**20 + 8
    assert collector.aggregate(name).n == 2**21 + 8


def test_the_client_sends_no_batch_that_has_too_many() -> None:
    from sfumato.device.client import _batches

    mechanism = sf.mechanisms.UnaryEncoding(YES_NO, 1)  # two bits, in a byte: a mebibyte would hold four times as many
    lengths = [len(piece) for piece in _batches(mechanism, np.zeros((2**21 + 1, 1), np.uint8))]
    assert lengths == [2**20, 2**20, 1]


@pytest.mark.parametrize("submission", ["open", "token"])
def test_who_may_send_one_report_may_send_no_more_bytes_than_it_takes(collector: Served, submission: str) -> None:
    name, mechanism, _ = collector.create(submission=submission, mechanism="rr")
    token = None
    if submission == "token":
        (token,) = collector.as_admin("POST", f"/v1/collections/{name}/tokens", {"count": 1}).json["tokens"]
        long = np.zeros(2**16, mechanism.report_format.dtype)
        assert collector.send(name, mechanism, long, "not-just-one", token).reason == "too-large"
    path = f"/v1/collections/{name}/reports"
    for spaces, reason in ((2**13, "too-large"), (2**10, None)):
        body = b'{"batch": "just-one-report", "report": 1' + b" " * spaces + b"}"
        assert collector.ask("POST", path, body, token, {"Content-Type": "application/json"}).reason == reason
    name, mechanism, _ = collector.create(policy=sf.Uniform(sf.Domain.range(20_000), 1), mechanism="unary")
    long_one = {"batch": "one-long-report", "report": bytes(2500).hex()}  # longer than what is beside it may be
    assert collector.ask("POST", f"/v1/collections/{name}/reports", long_one).status == 200


def test_long_bodies_share_their_room_and_short_ones_need_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryBudget, "share", 1)
    budget = MemoryBudget(2**17)
    monkeypatch.setattr("sfumato.server.api.collector.MemoryBudget", lambda: budget)
    with served(f"sqlite:///{tmp_path}/collect.db") as collector:
        name, mechanism, _ = collector.create(policy=WIDE, mechanism="unary")
        reports = np.zeros((600, 256), np.uint8)  # 150 KiB, of which 64 need no budget
        with begun(collector, name, BATCH_TYPE, 2**18, bytes(2**17)):
            until(lambda: budget.left == 2**16)
            response = collector.send(name, mechanism, reports, "no-memory-is-left")
            assert (response.reason, response.headers["retry-after"]) == ("overloaded", "1")
            assert collector.send(name, mechanism, reports[:200], "a-short-one").status == 200
            assert budget.left == 2**16
        until(lambda: budget.left == 2**17)  # whoever held it back has gone
        assert collector.send(name, mechanism, reports, "no-memory-is-left").status == 200
        assert budget.left == 2**17


def test_a_header_that_decides_comes_once(collector: Served) -> None:
    name, mechanism, _ = collector.create()
    payload = encode_batch(mechanism, sf.privatize(mechanism, ["flu"]))
    sent = {"Content-Type": BATCH_TYPE, "Idempotency-Key": "the-first-name", "Authorization": "Bearer nothing"}
    for twice in (None, *sent):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", collector.port)) as connection:
            connection.putrequest("POST", f"/v1/collections/{name}/reports")
            for header, value in (*sent.items(), *([(twice, sent[twice])] if twice else [])):
                connection.putheader(header, value)
            connection.putheader("Content-Length", str(len(payload)))
            connection.endheaders(payload)
            response = connection.getresponse()
            assert (response.status, b"malformed" in response.read()) == ((400, True) if twice else (200, False)), twice
    assert collector.aggregate(name).n == 1


# -- what is worked on -----------------------------------------------------------------------------------------


def test_long_batches_wait_in_a_line_that_holds_up_nobody_else(
    collector: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.server.api import ingest

    name, mechanism, _ = collector.create(policy=WIDE, mechanism="unary")
    reports = np.zeros((100, 256), np.uint8)
    begin, unpack = threading.Event(), ingest._many_reports
    unpacked = []

    def slow(*arguments: Any) -> Any:
        unpacked.append(1)
        begin.wait(30)
        return unpack(*arguments)

    monkeypatch.setattr(ingest, "_many_reports", slow)
    with ThreadPoolExecutor(24) as pool:
        sending = [pool.submit(collector.send, name, mechanism, reports, f"long-batch-{i}") for i in range(24)]
        until(lambda: sum(future.done() for future in sending) == 6 and len(unpacked) == 2)  # and sixteen wait
        for path in ("/readyz", "/v1/collections", f"/v1/collections/{name}"):
            assert collector.ask("GET", path).status == 200
        assert len(unpacked) == 2
        begin.set()
        reasons = sorted(str(future.result().reason) for future in sending)
    assert reasons == ["None"] * 18 + ["overloaded"] * 6
    assert collector.aggregate(name).n == 1800


def test_estimates_hold_up_no_long_batches(collector: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    name, mechanism, _ = collector.create(policy=WIDE, mechanism="unary")
    reports = np.zeros((100, 256), np.uint8)
    assert collector.send(name, mechanism, reports, "the-first-batch").status == 200
    begin, begun_with = threading.Event(), []

    def slow(*arguments: Any) -> Any:
        begun_with.append(arguments[-1])
        begin.wait(30)
        return sf.estimate(*arguments)

    monkeypatch.setattr("sfumato.server.jobs.estimates.estimate", slow)
    with ThreadPoolExecutor(3) as pool:
        paths = [f"/v1/collections/{name}/estimate?method={method}" for method in ("unbiased", "simplex")]
        futures = [pool.submit(collector.ask, "GET", path) for path in paths]
        try:
            until(lambda: len(begun_with) == 2)
            sent = pool.submit(collector.send, name, mechanism, reports, "another-batch")
            assert sent.result(20).status == 200
            assert not any(future.done() for future in futures)
        finally:
            begin.set()
        assert [future.result().json["reports"] for future in futures] == [100, 100]


@pytest.mark.parametrize(("method", "mechanism"), [("unbiased", "rr"), ("efficient", "rr"), ("mle", "unary")])
def test_an_estimate_is_computed_once_for_all_levels(
    collector: Served, monkeypatch: pytest.MonkeyPatch, method: str, mechanism: str
) -> None:
    name, built, _ = collector.create(mechanism=mechanism)
    computed = []

    def counted(*arguments: Any) -> Any:
        computed.append(arguments[1].n)
        return sf.estimate(*arguments)

    ask = Planner.ask

    async def counted_ask(planner: Planner, job: str, **request: Any) -> Any:
        computed.extend([json.loads(request["counts"])["n"]] if job == "estimate" else [])
        return await ask(planner, job, **request)

    monkeypatch.setattr("sfumato.server.jobs.estimates.estimate", counted)
    monkeypatch.setattr(Planner, "ask", counted_ask)
    confidences = [0.5, 0.9, 0.95, 0.999]
    paths = [f"/v1/collections/{name}/estimate?method={method}&level={confidence}" for confidence in confidences]
    for number, total in enumerate((3, 6)):
        assert collector.send(name, built, sf.privatize(built, ["flu"] * 3), f"some-reports-{number}").status == 200
        with ThreadPoolExecutor(len(paths)) as pool:
            responses = list(pool.map(lambda path: collector.ask("GET", path).json, paths))
        estimate = sf.estimate(built, collector.aggregate(name), method)
        for confidence, response in zip(confidences, responses, strict=True):
            numbers = np.column_stack([estimate.frequencies, estimate.standard_errors, *estimate.interval(confidence)])
            assert [[*row.values()][1:] for row in response["rows"]] == numbers.tolist()
            assert (response["level"], response["reports"]) == (confidence, total)
    assert computed == [3, 6]


def test_the_document_of_an_estimate_is_cached_and_gives_every_interval() -> None:
    from sfumato.server.jobs.estimates import cached_estimate, estimate_of

    mechanism = sf.mechanisms.RandomizedResponse(sf.Domain.range(300), 100)  # nearly the truth: some have no error
    counts = sf.aggregate(mechanism, np.zeros(9, mechanism.report_format.dtype))
    for method in ("unbiased", "efficient", "simplex", "mle"):
        estimate = sf.estimate(mechanism, counts, method)
        assert np.sqrt(estimate.estimator.variances(estimate.nearest).min()) < 1e-7
        document = cached_estimate(mechanism, counts, method)
        assert json.loads(document) == estimate.to_dict()
        assert len(document) < 300 * 100  # the matrix alone has 300 times 300 numbers
        again = estimate_of(mechanism, document)
        assert again == estimate
        for confidence in (0.5, 0.95, 0.9999999999999998):
            np.testing.assert_array_equal(again.interval(confidence), estimate.interval(confidence))
        np.testing.assert_array_equal(again.standard_errors, estimate.standard_errors)


@pytest.mark.parametrize("operation", ["estimate", "live"])
def test_a_confidence_that_rounds_to_one_is_rejected(collector: Served, operation: str) -> None:
    name, mechanism, _ = collector.create()
    assert collector.send(name, mechanism, sf.privatize(mechanism, ["flu"]), "just-one-report").status == 200
    path = f"/v1/collections/{name}/{operation}?level=0.999999999999999"
    assert collector.ask("HEAD", f"{path}8").status == 200
    assert collector.ask("GET", f"{path}9").reason == "invalid"


def test_certificates_are_sent_from_one_copy(collector: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.0)
    name, _, _ = collector.create()
    sent: list[bytes] = []

    def recorded(body: bytes) -> JsonResponse:
        sent.append(body)
        return JsonResponse(body)

    monkeypatch.setattr("sfumato.server.api.results.JsonResponse", recorded)
    bodies = [collector.ask("GET", f"/v1/collections/{name}/certificate").body for _ in range(2)]
    assert sent == bodies
    assert sent[0] is sent[1]


def test_workers_take_more_once_they_are_done() -> None:
    async def run() -> None:
        workers, go = Workers(1, 1), threading.Event()
        waiting = [asyncio.create_task(workers.run(go.wait)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(ApiError, match="wait") as error:
            await workers.run(int)
        assert error.value.reason == "overloaded"
        go.set()
        assert await asyncio.gather(*waiting) == [True, True]
        assert await workers.run(int) == 0
        workers.stop()

    asyncio.run(run())


def test_what_is_asked_for_by_many_is_computed_once() -> None:
    async def run() -> None:
        cache, computed = ResultCache(10_000), []

        def computing(outcome: bytes | ApiError) -> Any:
            async def compute() -> bytes:
                computed.append(outcome)
                await asyncio.sleep(0.01)
                if isinstance(outcome, ApiError):
                    raise outcome
                return outcome

            return compute

        first = asyncio.create_task(cache.get("a", computing(b"1")))
        others = [asyncio.create_task(cache.get("a", computing(b"2"))) for _ in range(5)]
        await asyncio.sleep(0)
        first.cancel()  # who asked first goes away
        assert await asyncio.gather(*others) == [b"1"] * 5
        assert computed == [b"1"]
        for reason, times in (("too-hard", 1), ("invalid", 1), ("overloaded", 3)):
            computed.clear()
            for _ in range(3):
                with pytest.raises(ApiError, match="why") as error:
                    await cache.get(reason, computing(ApiError(reason, "why")))
                assert error.value.reason == reason
            assert len(computed) == times
        assert await cache.get("large", computing(bytes(9_000))) == bytes(9_000)
        assert await cache.get("a", computing(b"3")) == b"3"  # the first was pushed out
        # A new version replaces the result of the one before, so that a cache does not fill up with old ones.
        before = len(cache._results)
        for version in range(100):
            assert await cache.get("a", computing(b"%d" % version), version) == b"%d" % version
            assert cache._cached("a", version) == b"%d" % version
        assert cache._cached("a", 98) is None
        assert len(cache._results) == before

    asyncio.run(run())


def test_participants_never_wait_for_the_planner(collector: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a device needs to randomize and to say what that reveals comes without it, whoever else plans."""
    name, mechanism, _ = collector.create()

    async def busy(_: Planner, job: str, **request: Any) -> Any:
        raise AssertionError(f"the planner was asked to {job}: {request}")

    monkeypatch.setattr(Planner, "ask", busy)
    path = f"/v1/collections/{name}"
    assert collector.ask("GET", path).json["mechanism"] == mechanism.spec
    assert collector.ask("GET", f"/c/{name}").status == 200
    assert collector.send(name, mechanism, sf.privatize(mechanism, ["flu"] * 10), "some-reports").status == 200
    assert collector.ask("GET", f"{path}/certificate").status == 200
    # What a collector says that a reply reveals is no longer anybody's source.
    assert collector.ask("GET", f"{path}/reveals").status == 404


def test_a_stream_ends_when_its_reader_may_read_no_more(collector: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.01)
    name, mechanism, _ = collector.create()
    streams = []
    for token in (None, collector.admin):
        connection = http.client.HTTPConnection("127.0.0.1", collector.port, timeout=30)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request("GET", f"/v1/collections/{name}/live", headers=headers)
        streams.append((connection, connection.getresponse()))
        assert streams[-1][1].readline() == b"event: estimate\n"
    assert collector.as_admin("PATCH", f"/v1/collections/{name}", {"results": "admin"}).status == 200
    until(lambda: b"sfumato_live_streams 1.0" in collector.ask("GET", "/metrics").body)
    assert collector.send(name, mechanism, sf.privatize(mechanism, ["flu"] * 7), "not-for-all").status == 200
    (public, shown), (admin, read) = streams
    assert b'"reports":7' not in shown.read()
    while b'"reports":7' not in read.readline():
        pass
    public.close()
    admin.close()


# -- the client ------------------------------------------------------------------------------------------------


class Pretender(BaseHTTPRequestHandler):
    """Passes for a collector until reports come; then it sends ``response_body``."""

    collection: bytes
    status, response_headers, response_body = 200, {}, b""  # type: ignore[var-annotated]

    def do_GET(self) -> None:
        self._say(200, {}, self.collection)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._say(self.status, self.response_headers, self.response_body)

    def _say(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("status", "headers", "response_body", "words"),
    [
        (200, {}, b"<html>please log in</html>", "the response does not come from a collector: <html>please log in"),
        (200, {}, b"17", "the response does not come from a collector: 17"),
        (302, {"Location": "https://elsewhere.example/"}, b"", "redirects to https://elsewhere.example/"),
        (200, {}, b'{"batch": "another-name-0", "reports": 3}', "the response must be Receipt.*another-name"),
        (200, {}, b'{"batch": "monday-0", "reports": 2}', "the response must be Receipt.*'reports': 2"),
        (200, {}, b"{}", "the response must be Receipt"),
    ],
)
def test_an_answer_that_is_no_receipt_is_none(
    collector: Served, status: int, headers: dict[str, str], response_body: bytes, words: str
) -> None:
    name, mechanism, _ = collector.create()
    collection = collector.ask("GET", f"/v1/collections/{name}").body
    kind = type(
        "Scripted",
        (Pretender,),
        {"collection": collection, "status": status, "response_headers": headers, "response_body": response_body},
    )
    with HTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            with Client(f"http://127.0.0.1:{server.server_port}", attempts=1) as client:
                reports = sf.privatize(mechanism, ["flu"] * 3)
                with pytest.raises(CollectorUnreachable, match=words) as failed:
                    client.submit(name, reports, batch="monday")
        finally:
            server.shutdown()
            thread.join()
    assert failed.value.batch == "monday"


def test_whoever_was_interrupted_is_told_the_name(
    collector: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, mechanism, _ = collector.create(mechanism="rr")
    reports = sf.privatize(mechanism, [DISEASES.label(i % 5) for i in range(100)])
    monkeypatch.setattr("sfumato.device.client._BATCH_BYTES", 16)  # 42 reports of three bits in a batch
    with collector.client() as client:
        send, sent = client._transport.ask, []

        def breaks(method: str, *rest: Any, **more: Any) -> bytes:
            if method == "POST":
                sent.append(rest)
                if len(sent) == 2:
                    raise CollectorUnreachable("gone")
            return send(method, *rest, **more)

        monkeypatch.setattr(client._transport, "ask", breaks)
        with pytest.raises(CollectorUnreachable, match=r"gone \(batch [0-9a-f]{32}\)") as failed:
            client.submit(name, reports)
        assert collector.aggregate(name).n == 42
        assert len(client.submit(name, reports, batch=failed.value.batch)) == 3
        assert collector.aggregate(name) == sf.aggregate(mechanism, reports)
        with pytest.raises(CollectorRefused, match=r"conflict.*\(batch [0-9a-f]{32}\)") as rejected:
            client.submit(name, reports[:50], batch=failed.value.batch)
        assert rejected.value.batch == failed.value.batch
    path = str(tmp_path / "reports.sfb")
    write_reports(mechanism, reports, path)
    assert main(["submit", f"http://127.0.0.1:{free_port()}", name, path, "--attempts", "1"]) == 2
    assert "sending as --batch " in capsys.readouterr().err
    assert main(["submit", collector.url, name, path, "--batch", "tuesday", "--json"]) == 0
    output = capsys.readouterr()
    assert "--batch tuesday" in output.err
    assert '"batch": "tuesday"' in output.out


def test_addresses_are_those_that_a_trusted_proxy_tells(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db", rate=0.001, burst=2) as collector:

        def ask(*addresses: str) -> str | None:
            return collector.ask("GET", "/healthz", headers={"X-Forwarded-For": ", ".join(addresses)}).reason

        assert [ask("192.0.2.1") for _ in range(3)] == [None, None, "rate"]
        # What stands before the address that the proxy saw, anybody may have written.
        assert ask("192.0.2.2", "192.0.2.1") == "rate"
        assert [ask("192.0.2.2"), collector.ask("GET", "/healthz").reason] == [None, None]


def test_an_address_of_ipv4_is_the_same_however_it_is_written() -> None:
    limiter = RateLimiter(1e-9, 1, lambda: 0.0)
    addresses = ("::ffff:192.0.2.1", "::ffff:192.0.2.2", "192.0.2.1", "::ffff:c000:202", "2001:db8::1", "2001:db8::2")
    assert [limiter.allows(address) for address in addresses] == [True, True, False, False, True, False]


def test_a_page_of_another_origin_reads_when_to_ask_again(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db", rate=1e-9, burst=2) as collector:
        name, _, _ = collector.create(origins=["https://survey.example"])
        path = f"/v1/collections/{name}"
        first, limited = (collector.ask("GET", path, headers={"Origin": "https://survey.example"}) for _ in range(2))
        assert (first.status, limited.status, limited.headers["retry-after"]) == (200, 429, "1")
        for header in ("access-control-allow-origin", "access-control-expose-headers", "vary"):
            assert limited.headers[header] == first.headers[header]
        stranger = collector.ask("GET", path, headers={"Origin": "https://x.example"})
        assert (stranger.status, "access-control-allow-origin" in stranger.headers) == (429, False)
        assert collector.ask("GET", "/nothing").reason == "rate"  # where nothing is, the limit holds too


# -- rejections name their batch -------------------------------------------------------------------------------


def test_a_rejected_submission_names_batch_and_collection(collector: Served) -> None:
    name, mechanism, _ = collector.create(submission="key", mechanism="rr")
    path, batch = f"/v1/collections/{name}/reports", "batch-number-1"
    for token, body in ((None, {"batch": batch, "report": 0}), ("sfk_wrong", {"batch": batch, "report": 0})):
        error = collector.ask("POST", path, body, token, {"Idempotency-Key": batch}).json["error"]
        assert (error["reason"], error["batch"], error["collection"]) == ("unauthorized", batch, name)
    error = collector.send(name, mechanism, [0], batch).json["error"]
    assert (error["batch"], error["collection"]) == (batch, name)
    opened, *_ = collector.create(mechanism="rr")
    differs = collector.ask(
        "POST", f"/v1/collections/{opened}/reports", {"batch": batch, "report": 0}, None, {"Idempotency-Key": batch[1:]}
    )
    assert differs.reason == "malformed"
    assert collector.ask("GET", "/v1/collections/abcdefghijklmnop").json["error"]["batch"] is None


# -- one address does not use up what all share ----------------------------------------------------------------


def test_an_open_collection_takes_few_reports_per_request_address_and_day(tmp_path: Path) -> None:
    limits = {"open_batch": 100, "open_per_address": 250, "open_per_collection": 400}
    with served(f"sqlite:///{tmp_path}/collect.db", **limits) as collector:
        name, mechanism, _ = collector.create(mechanism="rr")
        forged = np.zeros(2**20, np.uint8)

        def send(reports: int, batch: str, sender: str) -> Any:
            headers = {"Content-Type": BATCH_TYPE, "Idempotency-Key": batch, "X-Forwarded-For": sender}
            payload = encode_batch(mechanism, forged[:reports])
            return collector.ask("POST", f"/v1/collections/{name}/reports", payload, None, headers)

        assert send(2**20, "a-million-forged", "198.51.100.1").reason == "too-large"
        assert send(101, "one-too-many", "198.51.100.1").reason == "too-large"
        assert [send(100, f"small-batch-{i}", "198.51.100.1").reason for i in range(3)] == [None, None, "rate"]
        refused = send(100, "small-batch-2", "198.51.100.1")
        assert 1 <= int(refused.headers["retry-after"]) <= 86_400
        assert send(20, "small-batch-3", "198.51.100.1").status == 200  # the refused ones used nothing
        assert send(20, "small-batch-3", "198.51.100.1").status == 200  # a repeated batch uses nothing either
        assert send(30, "small-batch-4", "198.51.100.1").status == 200
        assert collector.aggregate(name).n == 250
        assert send(1, "small-batch-5", "198.51.100.1").reason == "rate"
        again = send(100, "small-batch-0", "198.51.100.1")  # a batch that was counted gets its receipt at any time
        assert (again.status, again.json) == (200, {"batch": "small-batch-0", "reports": 100})
        assert send(99, "small-batch-0", "198.51.100.1").reason == "conflict"
        assert send(100, "small-batch-0", "203.0.113.8").status == 200
        assert [send(100, f"from-elsewhere-{i}", "203.0.113.7").reason for i in range(2)] == [None, "rate"]
        assert send(100, "small-batch-1", "203.0.113.9").status == 200  # also if the collection has no room for it
        assert collector.aggregate(name).n == 350
        closed, other, key = collector.create(mechanism="rr", submission="key")
        assert collector.send(closed, other, forged[:10_000], "many-with-a-key", key).status == 200


def test_reports_of_other_addresses_have_their_own_budget_until_the_collection_is_full() -> None:
    each, all_of_them = DailyBudget(250, "each"), DailyBudget(400, "all")
    for address in (b"one", b"two"):
        each.use(address, 200, 5.0)
    with pytest.raises(ApiError, match="each") as failed:
        each.use(b"one", 51, 86_399.0)
    assert (failed.value.reason, failed.value.retry_after) == ("rate", 1)
    each.use(b"one", 250, 86_400.0)  # the next day
    all_of_them.use("collection", 400, 0.0)
    with pytest.raises(ApiError, match="all"):
        all_of_them.use("collection", 1, 0.0)
    all_of_them.give_back("collection", 1)
    all_of_them.use("collection", 1, 0.0)
    DailyBudget(0, "none").use(b"one", 10**9, 0.0)


def test_uploads_of_one_address_use_a_share_of_the_memory() -> None:
    budget = MemoryBudget(800)
    budget.take(100, b"one")
    with pytest.raises(ApiError, match="this address"):
        budget.take(1, b"one")
    budget.take(100, b"two")
    budget.give_back(100, b"one")
    budget.take(100, b"one")
    assert budget.left == 600


def test_an_address_has_a_share_of_streams_and_of_waiting_estimates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db", streams_each=2, estimates_each=1, live_seconds=0.05) as collector:
        name, mechanism, _ = collector.create(mechanism="rr")
        assert collector.send(name, mechanism, np.zeros(10, np.uint8), "some-reports").status == 200
        path = f"/v1/collections/{name}/estimate"
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                connection = stack.enter_context(
                    contextlib.closing(http.client.HTTPConnection("127.0.0.1", collector.port))
                )
                connection.request("GET", f"/v1/collections/{name}/live")
                assert connection.getresponse().status == 200
            assert collector.ask("GET", f"/v1/collections/{name}/live").reason == "overloaded"
        until(lambda: collector.ask("HEAD", f"/v1/collections/{name}/live").status == 200)
        busy, go = threading.Event(), threading.Event()

        def slow(*arguments: Any) -> Any:
            busy.set()
            go.wait()
            return sf.estimate(*arguments)

        monkeypatch.setattr("sfumato.server.jobs.estimates.estimate", slow)
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(collector.ask, "GET", f"{path}?method=simplex")
            busy.wait()
            assert collector.ask("GET", f"{path}?method=simplex&level=0.5").reason == "overloaded"
            joined = pool.submit(collector.ask, "GET", f"{path}?method=simplex")  # waits for the same computation
            assert collector.ask("GET", path).status == 200  # known, from the stream
            go.set()
            assert [first.result().status, joined.result().status] == [200, 200]


def test_slow_estimates_of_one_network_hold_up_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals of slow methods may take seconds for each level, for example with 1,500 values."""
    from sfumato.server.api import results

    limits = {name: value for name, value in dataclasses.asdict(Settings()).items() if "estimates" in name}
    begun, go, encode = [], threading.Event(), results._encode

    def slow(collection: Any, options: results.EstimateRequest, *rest: Any) -> bytes:
        if options.method == "efficient":
            begun.append(options.confidence)
            go.wait()
        return encode(collection, options, *rest)

    monkeypatch.setattr(results, "_encode", slow)
    with served(f"sqlite:///{tmp_path}/collect.db", **limits) as collector, ThreadPoolExecutor(20) as pool:
        name, mechanism, _ = collector.create(mechanism="rr")
        assert collector.send(name, mechanism, np.zeros(10, np.uint8), "some-reports").status == 200

        def ask(query: str, sender: str) -> Future[Response]:
            path = f"/v1/collections/{name}/estimate{query}"
            return pool.submit(collector.ask, "GET", path, headers={"X-Forwarded-For": sender})

        try:
            waiting = [ask(f"?method=efficient&level=0.50{level}", f"2001:db8::{level}") for level in (1, 2)]
            until(lambda: len(begun) == 2)
            refused = ask("?method=mle&level=0.503", "2001:db8::3").result(60)
            assert (refused.status, refused.reason, refused.headers["retry-after"]) == (503, "overloaded", "1")
            for sender in ("2001:db8::4", "2001:db8:0:1::1"):
                for query in ("", "?level=0.504", "?method=simplex"):
                    assert ask(query, sender).result(60).status == 200
            waiting.append(ask("?method=mle", "2001:db8:0:1::1"))  # another network has places for slow methods too
            until(lambda: len(inside(collector).slow_places._each._held) == 2)
            assert not any(future.done() for future in waiting)
        finally:
            go.set()
        assert [future.result().status for future in waiting] == [200] * 3


def test_everything_that_takes_long_takes_a_slow_place(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db", slow_estimates_each=1) as collector:
        name, mechanism, _ = collector.create(mechanism="rr")
        second, *_ = collector.create(mechanism="rr")
        lifetime = sf.Uniform(YES_NO, 2).to_dict()
        waves, *_ = collector.create(policy=sf.Uniform(YES_NO, 1), lifetime=lifetime, waves={"count": 2, "days": None})
        body = {"batch": "a-wave-report", "report": 0, "wave": 0}
        assert collector.ask("POST", f"/v1/collections/{waves}/reports", body).status == 200
        for number, one in enumerate((name, second)):
            assert collector.send(one, mechanism, np.zeros(10, np.uint8), f"some-reports-{number}").status == 200
        paths = [f"{name}/estimate?method={method}" for method in ("efficient", "mle", "bayes", "best")]
        paths += [f"{waves}/waves?method=mle", f"{name}/comparison?with={second}"]
        quick = [f"{name}/estimate", f"{name}/estimate?method=simplex&level=0.5", f"{waves}/waves"]
        with inside(collector).slow_places.take(inside(collector).addresses.name("127.0.0.1"), "another"):
            for accept in ("application/json", PARQUET_TYPE):
                reasons = [
                    collector.ask("GET", f"/v1/collections/{path}", headers={"Accept": accept}).reason for path in paths
                ]
                assert reasons == ["overloaded"] * len(paths)
            assert [collector.ask("GET", f"/v1/collections/{path}").reason for path in quick] == [None] * len(quick)
        assert [collector.ask("GET", f"/v1/collections/{path}").reason for path in paths] == [None] * len(paths)


def test_unusual_levels_of_a_collection_leave_places_for_its_usual_results(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db", estimates_per_collection=1) as collector:
        name, mechanism, _ = collector.create(mechanism="rr")
        assert collector.send(name, mechanism, np.zeros(10, np.uint8), "some-reports").status == 200
        path = f"/v1/collections/{name}/estimate"
        with inside(collector).quick_places.take(b"another address", name):
            assert collector.ask("GET", f"{path}?level=0.5").reason == "overloaded"
            assert [collector.ask("GET", f"{path}{query}").reason for query in ("", "?level=0.9")] == [None, None]
        assert collector.ask("GET", f"{path}?level=0.5").status == 200


def test_a_full_queue_names_no_plan_to_readers_of_estimates(collector: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    name, mechanism, _ = collector.create(mechanism="rr")
    assert collector.send(name, mechanism, np.zeros(10, np.uint8), "some-reports").status == 200
    monkeypatch.setattr(inside(collector).slow_estimates, "_waiting", _MOST_WAITING)
    response = collector.ask("GET", f"/v1/collections/{name}/estimate?method=mle")
    assert response.reason == "overloaded"
    assert "plan" not in response.json["error"]["message"]


def test_a_long_estimate_ends_at_its_time_limit(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db", estimate_seconds=0.01) as collector:
        name, mechanism, _ = collector.create(mechanism="rr")
        assert collector.send(name, mechanism, np.zeros(10, np.uint8), "some-reports").status == 200
        response = collector.ask("GET", f"/v1/collections/{name}/estimate?method=efficient")
        assert response.reason == "too-hard"
        assert "an estimate by this method takes longer than 0.01 seconds" in response.json["error"]["message"]
        assert collector.ask("GET", f"/v1/collections/{name}/estimate?method=simplex").status == 200


def test_unusual_levels_and_questions_evict_no_usual_response(collector: Served) -> None:
    name, mechanism, _ = collector.create(mechanism="rr")
    assert collector.send(name, mechanism, np.zeros(10, np.uint8), "some-reports").status == 200
    path = f"/v1/collections/{name}/estimate"
    assert collector.ask("GET", path).status == 200
    usual = len(inside(collector).estimate_responses._results)
    levels = [collector.ask("GET", f"{path}?level={level}").json["level"] for level in (0.5001, 0.50049, 0.501, 0.9999)]
    assert levels == [0.501, 0.501, 0.501, 0.9999]  # rounded up to a thousandth
    assert collector.ask("GET", f"{path}?question=shares:flu").status in (200, 422)
    assert len(inside(collector).estimate_responses._results) == usual


def inside(collector: Served) -> Any:
    assert collector.app is not None
    return collector.app.collector


def test_a_collector_answers_to_its_host_names_alone(tmp_path: Path) -> None:
    """A browser stores answers by host name, so that a second name would allow a second draw."""
    with served(f"sqlite:///{tmp_path}/collect.db", hosts="collect.example, Other.Example") as collector:

        def ask(path: str, host: str) -> str | None:
            return collector.ask("GET", path, headers={"Host": host}).reason

        assert ask("/v1/collections", "second.example") == "wrong-host"
        assert ask("/studio", f"127.0.0.1:{collector.port}") == "wrong-host"
        hosts = ("collect.example", "COLLECT.example:8443", "other.example")
        assert [ask("/v1/collections", host) for host in hosts] == [None] * 3
        assert ask("/readyz", "127.0.0.1") is None


def test_a_rate_is_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    for rate in ("nan", "inf"):
        assert main(["serve", "--rate", rate]) == 2
        assert "--rate must be a finite number" in capsys.readouterr().err
