"""The collector: what it takes, what it refuses, what it counts, and what it says."""

from __future__ import annotations

import http.client
import json
import random
import re
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import sfumato as sf
from sfumato.collecting.batch import encode_batch
from sfumato.mechanisms.base import Mechanism
from sfumato.server.api.operations import OPERATIONS
from sfumato.server.http.middleware import RateLimiter
from sfumato.server.http.responses import REASONS
from sfumato.server.http.telemetry import LOG
from sfumato.server.jobs.retention import forget_old_reports
from sfumato.server.run import check_address, check_proxies, studio_address
from sfumato.server.store import open_store
from sfumato.server.store.base import PAGE
from sfumato.server.store.records import Record, Submission
from support import ROOT
from support.collectors import (
    BATCH_TYPE,
    DISEASES,
    LONG_ENOUGH,
    POLICY,
    Postgres,
    Served,
    ServeProcess,
    at_the_beginning,
    served,
    until,
)

pytestmark = pytest.mark.component

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("collector")
    with served(f"sqlite:///{folder}/collect.db", live_seconds=0.05) as running:
        yield running


def reports_of(mechanism: Mechanism, n: int) -> Any:
    return sf.privatize(mechanism, [DISEASES.label(i % 5) for i in range(n)], sf.InsecureSeeded(1))


def one(mechanism: Mechanism, report: Any) -> Any:
    """A report of an array in its JSON form."""
    return report.tobytes().hex() if mechanism.report_format.shape else int(report)


# -- collections -------------------------------------------------------------------------------------------


def test_a_collection_tells_all_that_a_client_needs(collector: Served) -> None:
    name, mechanism, key = collector.create(title="health", description="once", n=1000)
    response = collector.ask("GET", f"/v1/collections/{name}").json
    assert key is None
    assert {field: response[field] for field in ("id", "title", "description", "state", "submission", "previous")} == {
        "id": name,
        "title": "health",
        "description": "once",
        "state": "open",
        "submission": "open",
        "previous": None,
    }
    assert (response["reports"], response["batches"]) == (0, 0)
    assert response["mechanism_hash"] == mechanism.hash
    assert sf.policy_from_dict(response["policy"]) == POLICY
    certificate = sf.Certificate.from_json(collector.ask("GET", f"/v1/collections/{name}/certificate").body.decode())
    assert certificate.holds
    assert sf.verify(certificate).mechanism_hash == mechanism.hash


def test_a_mechanism_that_breaks_its_policy_is_refused(collector: Served) -> None:
    weaker = sf.mechanisms.RandomizedResponse(DISEASES, 2)
    body = {"title": "no", "policy": sf.Uniform(DISEASES, 1).to_dict(), "mechanism": weaker.spec}
    response = collector.as_admin("POST", "/v1/collections", body)
    assert response.reason == "invalid"
    assert "does not obey" in response.json["error"]["message"]


def test_a_cyclic_design_that_is_none_is_refused_by_name(collector: Served) -> None:
    policy = sf.Uniform(DISEASES, 1)
    spec = json.loads(sf.design(policy, mechanism="cyclic").to_json())
    spec["parameters"]["design"] = sf.mechanisms.CyclicDesign.singer(2, 1, 3) | {"polynomial": [1, 1, 1, 1]}
    body = {"title": "no", "policy": policy.to_dict(), "mechanism": spec}
    response = collector.as_admin("POST", "/v1/collections", body)
    assert response.reason == "invalid"
    assert "polynomial must be primitive modulo 2" in response.json["error"]["message"]


def test_a_new_version_is_a_new_collection(collector: Served) -> None:
    first, *_ = collector.create()
    second, *_ = collector.create(policy=sf.Uniform(DISEASES, 2), previous=first)
    assert collector.ask("GET", f"/v1/collections/{second}").json["previous"] == first
    body = {"title": "t", "policy": POLICY.to_dict(), "previous": "a" * 16}
    assert collector.as_admin("POST", "/v1/collections", body).reason == "not-found"
    assert collector.as_admin("PATCH", f"/v1/collections/{first}", {"policy": POLICY.to_dict()}).reason == "invalid"


def test_states_follow_each_other(collector: Served) -> None:
    name, mechanism, _ = collector.create()
    path = f"/v1/collections/{name}"
    reports = reports_of(mechanism, 3)
    assert collector.send(name, mechanism, reports, "before-closing").status == 200
    assert collector.as_admin("PATCH", path, {"state": "archived"}).reason == "not-open"
    assert collector.as_admin("PATCH", path, {"state": "closed"}).json["state"] == "closed"
    assert collector.send(name, mechanism, reports, "after-closing").reason == "not-open"
    assert collector.send(name, mechanism, reports, "before-closing").status == 200  # the first answer stands
    assert collector.as_admin("PATCH", path, {"state": "open", "results": "admin"}).json["results"] == "admin"
    assert collector.as_admin("PATCH", path, {"results": "public"}).json["results"] == "public"
    assert collector.send(name, mechanism, reports, "after-opening").status == 200
    for state in ("closed", "archived"):
        assert collector.as_admin("PATCH", path, {"state": state}).status == 200
    assert collector.as_admin("PATCH", path, {"state": "open"}).reason == "not-open"
    assert collector.aggregate(name).n == 6
    assert name not in json.dumps(collector.ask("GET", "/v1/collections").json)
    assert name in json.dumps(collector.as_admin("GET", "/v1/collections").json)


def test_what_is_not_listed_is_in_no_list(collector: Served) -> None:
    name, *_ = collector.create(listed=False)
    assert name not in json.dumps(collector.ask("GET", "/v1/collections").json)
    assert name.encode() not in collector.ask("GET", "/").body
    shown, *_ = collector.create(title="<b>bold</b>")
    page = collector.ask("GET", "/").body
    assert shown.encode() in page
    assert b"<b>bold" not in page


# -- ingest ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism", ["rr", "unary", "subset", "hadamard", "cyclic", "uo-rr", "high-low-hadamard", "high-low-cyclic"]
)
def test_counts_are_those_of_the_library(collector: Served, mechanism: str) -> None:
    name, built, _ = collector.create(mechanism=mechanism)
    reports = reports_of(built, 500)
    for number, part in enumerate(np.array_split(reports, 7)):
        assert collector.send(name, built, part, f"batch-{mechanism}-{number}").json["reports"] == len(part)
    for number, report in enumerate(reports[:20]):
        body = {"batch": f"{mechanism}-one-{number}", "report": one(built, report)}
        assert collector.ask("POST", f"/v1/collections/{name}/reports", body).status == 200
    expected = sf.aggregate(built, reports).merge(sf.aggregate(built, reports[:20]))
    assert collector.aggregate(name) == expected
    body = collector.ask("GET", f"/v1/collections/{name}/estimate?method=simplex&level=0.9").json
    estimate = sf.estimate(built, expected, "simplex")
    low, high = estimate.interval(0.9)
    assert body["reports"] == 520
    assert body["quantile"] == pytest.approx(1.6448536269514722, abs=1e-12)
    for row, label, frequency, a, b in zip(body["rows"], DISEASES, estimate.frequencies, low, high, strict=True):
        assert (row["value"], row["frequency"], row["low"], row["high"]) == (label, frequency, a, b)


def test_a_domain_of_many_pages(collector: Served) -> None:
    domain = sf.Domain.range(1000)
    name, mechanism, _ = collector.create(policy=sf.Uniform(domain, 3), mechanism="rr")
    assert mechanism.outputs > 7 * PAGE
    reports = np.array([0, 999, 500, 500, 127, 128], mechanism.report_format.dtype)
    assert collector.send(name, mechanism, reports[:3], "pages-first").status == 200
    assert collector.send(name, mechanism, reports[3:], "pages-second").status == 200
    assert collector.aggregate(name) == sf.aggregate(mechanism, reports)


def test_the_same_batch_is_counted_once(collector: Served) -> None:
    name, mechanism, _ = collector.create()
    reports = reports_of(mechanism, 10)
    first = collector.send(name, mechanism, reports, "the-same-batch")
    assert collector.send(name, mechanism, reports, "the-same-batch").json == first.json
    assert collector.send(name, mechanism, reports[:9], "the-same-batch").reason == "conflict"
    assert collector.aggregate(name).n == 10
    # One report in JSON and the binary batch of it are the same payload.
    body = {"batch": "one-report", "report": one(mechanism, reports[0])}
    assert collector.ask("POST", f"/v1/collections/{name}/reports", body).status == 200
    assert collector.send(name, mechanism, reports[:1], "one-report").status == 200
    assert collector.aggregate(name).n == 11


def test_a_batch_sent_many_times_at_once_is_counted_once(collector: Served) -> None:
    name, mechanism, _ = collector.create()
    reports = reports_of(mechanism, 5)
    responses: list[int] = []
    threads = [
        threading.Thread(
            target=lambda: responses.append(collector.send(name, mechanism, reports, "all-at-once").status)
        )
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert responses == [200] * 16
    assert collector.aggregate(name).n == 5


def test_an_invalid_report_refuses_its_whole_batch_with_its_row(collector: Served) -> None:
    name, mechanism, _ = collector.create(mechanism="rr")
    path = f"/v1/collections/{name}/reports"
    headers = {"Content-Type": BATCH_TYPE, "Idempotency-Key": "invalid-batch"}
    good = encode_batch(mechanism, np.array([1, 2, 3, 4]))
    assert mechanism.bits == 3
    broken = good[:48] + bytes([good[48] | 0b00_111_000]) + good[49:]  # the second report becomes 7
    response = collector.ask("POST", path, broken, headers=headers)
    assert (response.reason, response.json["error"]["row"]) == ("invalid", 1)
    for bad in (good[:-1], good + b"\0", good[:-1] + bytes([good[-1] | 0x80]), b"", good[:8] + bytes(32) + good[40:]):
        assert collector.ask("POST", path, bad, headers=headers).reason == "invalid"
    empty = encode_batch(mechanism, [])
    assert collector.ask("POST", path, empty, headers=headers).reason == "invalid"
    for report in (5, -1, 2**70, "01", 1.5, None, True, [1]):
        body = {"batch": "invalid-one", "report": report}
        assert collector.ask("POST", path, body).reason == "invalid", report
    assert collector.aggregate(name).n == 0


@pytest.mark.parametrize("report", ["01", "07", "0A", "21", "1", "", "0505", 5, "zz", "05\n", "0 5", " 05"])
def test_an_invalid_bitmap_in_json_is_refused(collector: Served, report: Any) -> None:
    # Five values, so a byte; the upper three bits are spare, and a subset has exactly `size` members.
    name, mechanism, _ = collector.create(policy=sf.Uniform(DISEASES, "0.1"), mechanism="subset")
    assert mechanism.parameters()["size"] == 2
    path = f"/v1/collections/{name}/reports"
    assert collector.ask("POST", path, {"batch": "invalid-one", "report": report}).reason == "invalid"
    assert collector.ask("POST", path, {"batch": "valid-one", "report": "05"}).status == 200


@pytest.mark.parametrize(
    ("headers", "body", "reason"),
    [
        ({}, b"{}", "unsupported-type"),
        ({"Content-Type": "text/plain"}, b"{}", "unsupported-type"),
        ({"Content-Type": "application/json; charset=latin-1"}, b"{}", "unsupported-type"),
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, b"{}", "unsupported-type"),
        ({"Content-Type": "application/json"}, b"{", "malformed"),
        ({"Content-Type": "application/json"}, b"[" * 3_000, "invalid"),
        ({"Content-Type": "application/json"}, b'{"batch": "12345678", "report": NaN}', "malformed"),
        ({"Content-Type": "application/json"}, b'{"batch": "12345678", "report": 1, "value": "hiv"}', "invalid"),
        ({"Content-Type": "application/json"}, b'{"batch": "short", "report": 1}', "invalid"),
        ({"Content-Type": "application/json"}, b'{"batch": "12345678\\n", "report": 1}', "invalid"),
        ({"Content-Type": BATCH_TYPE}, b"", "malformed"),
        ({"Content-Type": BATCH_TYPE, "Idempotency-Key": "no spaces here"}, b"", "malformed"),
        ({"Content-Type": "application/json"}, bytes(2**23 + 1), "too-large"),
    ],
)  # fmt: skip
def test_a_body_of_the_wrong_kind_is_refused(
    collector: Served, headers: dict[str, str], body: bytes, reason: str
) -> None:
    name, *_ = collector.create()
    assert collector.ask("POST", f"/v1/collections/{name}/reports", body, headers=headers).reason == reason


def test_a_document_without_end_is_refused(collector: Served) -> None:
    nested = b'{"policy": {"domain": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    response = collector.ask("POST", "/v1/check", nested, collector.admin, {"Content-Type": "application/json"})
    assert response.reason == "malformed"


def test_a_body_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db", timeout=1.0) as collector:
        name, *_ = collector.create()
        with socket.create_connection(("127.0.0.1", collector.port)) as connection:
            head = f"POST /v1/collections/{name}/reports HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            connection.sendall((head + "Content-Length: 10\r\n\r\n{").encode())
            response = b""
            while b"too-slow" not in response:
                piece = connection.recv(4096)
                assert piece, response
                response += piece


# -- who may send and read -----------------------------------------------------------------------------------


def test_admin_operations_need_an_admin_token(collector: Served) -> None:
    name, *_ = collector.create()
    for operation in OPERATIONS:
        if operation.who in ("author", "owner"):
            path = operation.path.replace("{id}", name)
            for token in (None, "sfa_wrong", ""):
                response = collector.ask(operation.method, path, {}, token)
                assert (response.status, response.headers["www-authenticate"]) == (401, "Bearer"), path


def test_a_key_is_asked_for(collector: Served) -> None:
    name, mechanism, key = collector.create(submission="key")
    reports = reports_of(mechanism, 3)
    for wrong in (None, "sfk_wrong", collector.admin):
        assert collector.send(name, mechanism, reports, "with-a-key", wrong).reason == "unauthorized"
    assert collector.send(name, mechanism, reports, "with-a-key", key).status == 200


def test_a_one_time_token_is_for_one_report(collector: Served) -> None:
    name, mechanism, _ = collector.create(submission="token")
    reports = reports_of(mechanism, 3)
    tokens = collector.as_admin("POST", f"/v1/collections/{name}/tokens", {"count": 2}).json["tokens"]
    assert collector.send(name, mechanism, reports[:1], "token-report-1").reason == "unauthorized"
    assert collector.send(name, mechanism, reports[:1], "token-report-1", "sft_none").reason == "token-unknown"
    assert collector.send(name, mechanism, reports[:2], "token-report-1", tokens[0]).reason == "invalid"
    assert collector.send(name, mechanism, reports[:1], "token-report-1", tokens[0]).status == 200
    assert collector.send(name, mechanism, reports[:1], "token-report-1", tokens[0]).status == 200  # the same again
    assert collector.send(name, mechanism, reports[1:2], "token-report-2", tokens[0]).reason == "token-spent"
    assert collector.send(name, mechanism, reports[1:2], "token-report-2", tokens[1]).status == 200
    assert collector.aggregate(name).n == 2
    other, *_ = collector.create()
    assert collector.as_admin("POST", f"/v1/collections/{other}/tokens", {"count": 1}).reason == "invalid"


def test_results_may_be_for_administrators_alone(collector: Served) -> None:
    name, *_ = collector.create(results="admin")
    for path in ("estimate", "aggregate", "live"):
        assert collector.ask("GET", f"/v1/collections/{name}/{path}").reason == "unauthorized"
    assert collector.as_admin("GET", f"/v1/collections/{name}/estimate").json["rows"] == []
    assert collector.ask("GET", f"/v1/collections/{name}/certificate").status == 200


def test_other_origins_need_the_collections_leave(collector: Served) -> None:
    name, *_ = collector.create(origins=["https://survey.example"])
    path = f"/v1/collections/{name}"
    allowed = {"Origin": "https://survey.example"}
    preflight = {**allowed, "Access-Control-Request-Method": "POST"}
    for response in (
        collector.ask("GET", path, headers=allowed),
        collector.ask("OPTIONS", f"{path}/reports", headers=preflight),
        collector.ask("POST", f"{path}/reports", {}, headers=allowed),
    ):
        assert response.headers["access-control-allow-origin"] == "https://survey.example"
        assert response.headers["vary"] == "Origin"
    assert (
        "access-control-allow-origin" not in collector.ask("GET", path, headers={"Origin": "https://x.example"}).headers
    )
    assert "access-control-allow-origin" not in collector.ask("GET", "/v1/collections", headers=allowed).headers
    anywhere, *_ = collector.create(origins=["*"])
    response = collector.ask("GET", f"/v1/collections/{anywhere}", headers=allowed)
    assert response.headers["access-control-allow-origin"] == "https://survey.example"


def test_every_answer_has_the_security_headers(collector: Served) -> None:
    for path in ("/", "/docs", "/healthz", "/nothing", "/v1/collections", "/static/plain.css"):
        headers = collector.ask("GET", path).headers
        source = "'none'" if headers["content-type"] == "application/json" else "'self'"
        assert headers["content-security-policy"].startswith(f"default-src {source}"), path
        assert headers["x-content-type-options"] == "nosniff"
        assert source == "'none'" or headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers or "uvicorn" in headers["server"]  # `sfumato serve` sends none
    for path in ("/static/../app.py", "/static/__init__.py", "/static/%2e%2e", "/static/.hidden", "/static/none.css"):
        assert collector.ask("GET", path).reason == "not-found"


def test_an_address_that_asks_too_often_is_refused(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db", rate=1e-9, burst=3) as collector:
        responses = [collector.ask("GET", "/healthz") for _ in range(5)]
    assert [response.status for response in responses] == [200, 200, 200, 429, 429]
    assert responses[-1].headers["retry-after"] == "1"


def test_buckets_fill_up_and_hold_no_address() -> None:
    now = [0.0]
    limiter = RateLimiter(2.0, 4, lambda: now[0])
    assert [limiter.allows("192.0.2.7") for _ in range(5)] == [True] * 4 + [False]
    assert limiter.allows("192.0.2.8")
    now[0] = 1.0
    assert [limiter.allows("192.0.2.7") for _ in range(3)] == [True, True, False]
    # One household has all addresses of a /64.
    assert [limiter.allows(f"2001:db8::{i}") for i in range(5)] == [True] * 4 + [False]
    assert "192.0.2" not in repr(vars(limiter))


# -- what is told --------------------------------------------------------------------------------------------


def test_nothing_in_store_or_log_says_who_sent_what(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    LOG.propagate = True
    with served(f"sqlite:///{tmp_path}/collect.db") as collector:
        name, mechanism, _ = collector.create(submission="token")
        token = collector.as_admin("POST", f"/v1/collections/{name}/tokens", {"count": 1}).json["tokens"][0]
        collector.send(name, mechanism, reports_of(mechanism, 1), "who-sent-this", token)
        collector.send(name, mechanism, reports_of(mechanism, 2), "who-sent-that", token)
    records = [record for record in caplog.records if record.name.startswith("sfumato")]
    log = "\n".join(str({**vars(record), "message": record.getMessage()}) for record in records)
    assert "invalid" in log  # the second was refused, and that is logged
    for secret in ("127.0.0.1", "who-sent", token, collector.admin, name):
        assert secret not in log
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert name.encode() in stored
    for secret in ("127.0.0.1", "who-sent", token, collector.admin):
        assert secret.encode() not in stored


def test_no_line_of_the_log_has_the_time_of_an_accepted_report(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A device asks for admission just before it sends, so a line about the question would have that time too."""
    caplog.set_level("INFO")
    LOG.propagate = True
    with served(f"sqlite:///{tmp_path}/collect.db") as collector:
        name, mechanism, _ = collector.create(submission="token")
        token = collector.as_admin("POST", f"/v1/collections/{name}/tokens", {"count": 1}).json["tokens"][0]

        def admission(batch: str) -> int:
            headers = {"Idempotency-Key": batch}
            return collector.ask("GET", f"/v1/collections/{name}/admission", token=token, headers=headers).status

        assert admission("first-batch") == 200
        assert collector.send(name, mechanism, reports_of(mechanism, 1), "first-batch", token).status == 200
        assert admission("other-batch") == 403
    fields = [vars(record)["fields"] for record in caplog.records if record.getMessage() == "request"]
    sent = [line for line in fields if line["route"].endswith(("/reports", "/admission"))]
    assert [(line["route"].rpartition("/")[2], line["reason"]) for line in sent] == [("admission", "token-spent")]


def test_metrics_count_refusals_by_reason(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db") as collector:
        name, mechanism, _ = collector.create()
        reports = reports_of(mechanism, 4)
        for _ in range(3):
            collector.send(name, mechanism, reports, "count-these")
        collector.send(name, mechanism, reports[:1], "count-these")
        collector.ask("GET", "/nothing")
        text = collector.ask("GET", "/metrics").body.decode()
    for line in (
        "sfumato_reports_total 4.0",
        'sfumato_batches_total{fate="accepted"} 1.0',
        'sfumato_batches_total{fate="repeated"} 2.0',
        'sfumato_refusals_total{reason="conflict"} 1.0',
        'sfumato_refusals_total{reason="not-found"} 1.0',
        'sfumato_refusals_total{reason="rate"} 0.0',
        "sfumato_commit_batches_count 4.0",
    ):
        assert line in text.splitlines(), line
    assert name not in text


def events(collector: Served, path: str) -> Iterator[tuple[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", collector.port, timeout=30)
    connection.request("GET", path)
    response = connection.getresponse()
    assert response.getheader("content-type", "").startswith("text/event-stream")
    kind = ""
    try:
        for line in response:
            if line.startswith(b"event: "):
                kind = line[7:].strip().decode()
            elif line.startswith(b"data: "):
                yield kind, json.loads(line[6:])
    finally:
        connection.close()


def test_live_estimates_follow_the_counts(collector: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.01)
    name, mechanism, _ = collector.create()
    stream = events(collector, f"/v1/collections/{name}/live?method=simplex")
    kind, first = next(stream)
    assert (kind, first["reports"], first["rows"]) == ("estimate", 0, [])
    collector.send(name, mechanism, reports_of(mechanism, 50), "live-batch-1")
    kind, second = next(stream)
    assert (kind, second["reports"], second["method"]) == ("estimate", 50, "simplex")
    assert second == collector.ask("GET", f"/v1/collections/{name}/estimate?method=simplex").json
    stream.close()  # type: ignore[attr-defined]


def test_a_reader_that_never_reads_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stream fills the buffers of its connection, waits, and ends; nothing is kept for it meanwhile."""
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.01)
    domain = sf.Domain.range(4000)
    with served(f"sqlite:///{tmp_path}/collect.db", live_seconds=0.01, timeout=2.0) as collector:
        name, mechanism, _ = collector.create(policy=sf.Uniform(domain, 5), mechanism="rr")
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", collector.port))
            deaf.sendall(f"GET /v1/collections/{name}/live HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            for number in range(10_000):
                reports = np.array([number % 4000], mechanism.report_format.dtype)
                assert collector.send(name, mechanism, reports, f"deaf-{number:06}").status == 200
                text = collector.ask("GET", "/metrics").body.decode()
                if number > 3 and "sfumato_live_streams 0.0" in text:
                    break
            else:
                pytest.fail("the stream went on")


def test_a_policy_is_put_into_words_and_numbers(collector: Served) -> None:
    response = collector.as_admin("POST", "/v1/check", {"policy": POLICY.to_dict()}).json
    assert (response["kind"], response["values"], response["hash"]) == ("high-low", 5, POLICY.hash)
    assert response["region"]["points"] == sf.policy_region(POLICY, "hiv", "none").vertices.tolist()
    sensitive, harmless = response["suspicions"]
    assert (sensitive["values"], sensitive["before"]) == (["hiv", "cancer"], 0.1)
    assert sensitive["after"] == pytest.approx(0.1 * np.e / (0.9 + 0.1 * np.e))
    assert (harmless["count"], harmless["after"]) == (3, 1.0)
    prior = sf.Prior(sf.Domain(["a", "b"]), ["1/4", "3/4"], "0.5")
    response = collector.as_admin("POST", "/v1/check", {"policy": prior.to_dict()}).json
    assert response["region"] is None
    assert {s["values"][0]: s["after"] for s in response["suspicions"]} == {
        label: prior.posterior_interval(label)[1] for label in ("a", "b")
    }


@pytest.mark.parametrize(
    ("policy", "epsilon"),
    [
        (sf.Blocks(sf.Domain.range(6), "aabbbc", ["1", "2", "9"]), 2.0),  # a block of one value tells nothing within
        (sf.Blocks(sf.Domain.range(3), "abc", 1), 0.0),
        (sf.Blocks(sf.Domain.range(4), "aabb", "1", "5"), 1.0),
        (sf.Blocks(sf.Domain.range(4), "aabb", "inf"), np.inf),
        (sf.Secret(sf.Domain.product(s=["a", "b"], u=sf.Domain.range(3)), "s", 1, sf.Anything()), 1.0),
        (sf.Uniform(sf.Domain.range(4), 1), None),
    ],
)
def test_what_is_learned_within_a_block(collector: Served, policy: sf.Policy, epsilon: float | None) -> None:
    def bound(level: float | None) -> Any:
        return None if level is None else pytest.approx(0.1 / (0.1 + 0.9 * np.exp(-level)))

    checked = collector.as_admin("POST", "/v1/check", {"policy": policy.to_dict(), "before": 0.1}).json
    assert checked["within"] == bound(epsilon)
    limited = isinstance(policy, sf.Blocks) and not policy.across.is_infinite
    assert checked["across"] == bound(5.0 if limited else None)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "5", "20", "inf"])
def test_a_collection_is_opened_with_the_odds_of_a_right_guess(collector: Served, epsilon: str) -> None:
    policy = sf.Uniform(sf.Domain.range(4), epsilon)
    planned = collector.as_admin("POST", "/v1/plan", {"policy": policy.to_dict(), "n": 1000}).json
    created = collector.as_admin(
        "POST", "/v1/collections", {"title": "odds", "policy": policy.to_dict(), "n": 1000}
    ).json
    mechanism = sf.mechanism_from_spec(created["collection"]["mechanism"])
    assert created["guess"] == planned["guess"] == pytest.approx(float(mechanism.guess_probability()), rel=1e-15)
    assert created["chance"] == planned["chance"] == 0.25
    assert (created["guess"] == 1) == (epsilon == "inf")


def test_plans_are_those_of_the_planner(collector: Served) -> None:
    response = collector.as_admin("POST", "/v1/plan", {"policy": POLICY.to_dict(), "n": 1000}).json
    plan = sf.plan(POLICY, 1000)
    assert (response["best"], response["why"], len(response["rows"])) == (plan.best.name, plan.reason, len(plan.rows))
    assert [row["risk"] for row in response["rows"]] == [row.risk for row in plan.rows]
    # With so many people, and with no fewer, the error of the best is 1%.
    needed = int(response["one_percent"])
    assert sf.plan(POLICY, needed).best.half_l1 <= 0.01 < sf.plan(POLICY, needed - 1).best.half_l1
    for wrong in ({"policy": POLICY.to_dict()}, {"policy": {"domain": {"file": "/etc/passwd"}, "policy": {}}, "n": 1}):
        assert collector.as_admin("POST", "/v1/plan", wrong).reason == "invalid"


def test_a_plan_states_central_levels(collector: Served) -> None:
    body: dict[str, Any] = {"policy": POLICY.to_dict(), "n": 1000}
    assert {row["central"] for row in collector.as_admin("POST", "/v1/plan", body).json["rows"]} == {None}
    for delta in ("1e-6", 1e-6):
        response = collector.as_admin("POST", "/v1/plan", body | {"delta": delta}).json
        plan = sf.plan(POLICY, 1000, delta=delta)
        assert [(row["name"], row["central"]) for row in response["rows"]] == [(row.name, row.central) for row in plan]
    for wrong in (2, "often", -1):
        assert collector.as_admin("POST", "/v1/plan", body | {"delta": wrong}).reason == "invalid"


def test_a_plan_takes_a_truth_and_a_method(collector: Served) -> None:
    body: dict[str, Any] = {"policy": POLICY.to_dict(), "n": 1000}
    assert collector.as_admin("POST", "/v1/plan", body).json["rows"][0]["tv_error"] is None
    shares = [1 / len(POLICY.domain)] * len(POLICY.domain)
    for truth in ("zipf", shares):
        response = collector.as_admin("POST", "/v1/plan", body | {"truth": truth, "method": "simplex"}).json
        plan = sf.plan(POLICY, 1000, truth=truth, method="simplex")
        assert [(row["name"], row["tv"]) for row in response["rows"]] == [(row.name, row.tv) for row in plan]
        assert all(row["tv_error"] > 0 for row in response["rows"])
    for wrong in ({"truth": "normal"}, {"truth": [0.5]}, {"method": "guess"}, {"truth": "zipf", "question": "mean"}):
        assert collector.as_admin("POST", "/v1/plan", body | wrong).reason == "invalid"


def test_a_plan_takes_the_length_of_reports(collector: Served) -> None:
    policy = sf.Uniform(sf.Domain.range(200), 1)
    body: dict[str, Any] = {"policy": policy.to_dict(), "n": 1000}
    requests: list[tuple[dict[str, Any], Any]] = [
        ({}, "short"),
        ({"max_bits": "short"}, "short"),
        ({"max_bits": None}, None),
        ({"max_bits": 8}, 8),
    ]
    for option, max_bits in requests:
        response = collector.as_admin("POST", "/v1/plan", body | option).json
        plan = sf.plan(policy, 1000, max_bits=max_bits)
        assert (response["best"], response["why"]) == (plan.best.name, plan.reason)
    for wrong in ("long", 0, 1.5, "8", True):
        assert collector.as_admin("POST", "/v1/plan", body | {"max_bits": wrong}).reason == "invalid"


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db", plan_seconds=0.001) as collector:
        body = {"policy": POLICY.to_dict(), "n": 1000}
        assert collector.as_admin("POST", "/v1/plan", body).reason == "too-hard"
        assert collector.ask("GET", "/readyz").status == 200
    with served(f"sqlite:///{tmp_path}/collect.db", plan_values=4) as collector:
        assert collector.as_admin("POST", "/v1/plan", body).reason == "invalid"


def test_a_collector_that_cannot_write_says_so(collector: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    name, mechanism, _ = collector.create()
    assert [collector.ask("GET", path).status for path in ("/healthz", "/readyz")] == [200, 200]
    assert collector.app is not None
    assert collector.app.collector is not None
    monkeypatch.setattr(collector.app.collector.writer, "alive", False)
    assert [collector.ask("GET", path).reason for path in ("/healthz", "/readyz")] == ["unavailable"] * 2
    assert collector.send(name, mechanism, reports_of(mechanism, 1), "in-vain-1").reason == "unavailable"


# -- the documents -------------------------------------------------------------------------------------------


def test_the_documentation_names_every_operation_and_reason(collector: Served) -> None:
    page = (DOCS / "collector.md").read_text(encoding="utf-8")
    for operation in OPERATIONS:
        assert f"| `{operation.method} {operation.path}`" in page, operation.path
    assert set(re.findall(r"^\| `([a-z-]+)` \| (\d+) \| (.*) \|$", page, flags=re.MULTILINE)) >= {
        (reason, str(status), words) for reason, (status, words) in REASONS.items()
    }
    document = collector.ask("GET", "/openapi.json").json
    assert {(method.upper(), path) for path, methods in document["paths"].items() for method in methods} == {
        (operation.method, operation.path) for operation in OPERATIONS
    }
    assert b"/v1/collections/{id}/reports" in collector.ask("GET", "/docs").body


def test_schemathesis_finds_no_fault(collector: Served, request: pytest.FixtureRequest) -> None:
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.core.result import Ok
    from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

    name, mechanism, _ = collector.create(mechanism="rr")
    collector.send(name, mechanism, reports_of(mechanism, 10), "something-there")
    schema = schemathesis.openapi.from_url(f"{collector.url}/openapi.json")
    examples = 300 if request.config.getoption("--soak") else 15
    checks = (not_a_server_error, status_code_conformance, response_schema_conformance)
    headers = {"Authorization": f"Bearer {collector.admin}"}
    requests = 0
    for entry in schema.get_all_operations():
        assert isinstance(entry, Ok), entry
        operation = entry.ok()
        if operation.path.endswith("/live"):
            continue  # it has no end

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
        @given(case=operation.as_strategy())
        def check(case: Any) -> None:
            nonlocal requests
            if "id" in case.path_parameters and requests % 2:
                case.path_parameters["id"] = name
            requests += 1
            case.validate_response(case.call(headers=headers, timeout=LONG_ENOUGH), checks=checks)

        check()
    assert requests > 100


# -- fuzzed batches ------------------------------------------------------------------------------------------


def is_valid(mechanism: Mechanism, valid: set[int], data: bytes) -> list[int] | None:
    """The reports of a batch, read bit by bit from the words of docs/report-format.md; None if it is none."""
    width = max(mechanism.bits, 1)
    if len(data) < 48 or data[:8] != b"SFUM\1\0\0\0" or data[8:40].hex() != mechanism.hash:
        return None
    n = int.from_bytes(data[40:48], "little")
    if len(data) != 48 + -(-n * width // 8) or n == 0:
        return None
    body = int.from_bytes(data[48:], "little")
    values = [body >> i * width & (1 << width) - 1 for i in range(n)]
    return values if body >> n * width == 0 and valid.issuperset(values) else None


def fuzzed(generator: random.Random, good: bytes) -> bytes:
    data = bytearray(good)
    for _ in range(generator.randint(1, 3)):
        match generator.randrange(7):
            case 0 | 1 if data:
                data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
            case 2:
                del data[generator.randrange(len(data) + 1) :]
            case 3:
                data += generator.randbytes(generator.randint(1, 4))
            case 4 if len(data) >= 48:
                data[40:48] = generator.choice([0, 1, 2, 7, 8, 9, 2**31, 2**63, 2**64 - 1]).to_bytes(8, "little")
            case 5 if len(data) > 48:
                data[48:] = generator.randbytes(len(data) - 48)
            case 6 if len(data) > 49:
                data[-1] = generator.randrange(256)
    return bytes(data)


def test_of_fuzzed_batches_none_is_taken_wrongly(collector: Served, request: pytest.FixtureRequest) -> None:
    generator = random.Random(11)
    total = 100_000 if request.config.getoption("--soak") else 2_000
    blocks = sf.Blocks(sf.Domain.range(12), blocks=[i // 6 for i in range(12)], epsilon="0.5")
    names = ["rr", "unary", "subset", "high-low-hadamard", "hadamard", "block-subset"]
    encodings = set()
    accepted = rejected = 0
    connection = http.client.HTTPConnection("127.0.0.1", collector.port, timeout=60)
    for kind in names:
        policy = blocks if kind == "block-subset" else POLICY
        name, mechanism, _ = collector.create(policy=policy, mechanism=kind)
        encodings.add(mechanism.report_format.encoding)
        valid = set(mechanism.reports())
        values = [policy.domain.label(i % len(policy.domain)) for i in range(40)]
        reports = sf.privatize(mechanism, values, sf.InsecureSeeded(1))
        good = [encode_batch(mechanism, reports[: generator.randint(1, 40)]) for _ in range(50)]
        connection.close()  # the server may have done so while the collection was made; the next request opens another
        counted: list[int] = []
        for number in range(total // len(names)):
            data = fuzzed(generator, generator.choice(good))
            headers = {"Content-Type": BATCH_TYPE, "Idempotency-Key": f"fuzzed-{number:07}"}
            connection.request("POST", f"/v1/collections/{name}/reports", data, headers)
            response = connection.getresponse()
            body = response.read()
            expected = is_valid(mechanism, valid, data)
            assert response.status == (422 if expected is None else 200), (kind, data.hex(), body)
            accepted, rejected = accepted + (expected is not None), rejected + (expected is None)
            counted += expected or []
        form = mechanism.report_format
        array = np.array(counted, form.dtype) if not form.shape else np.frombuffer(
            b"".join(map(form.encode, counted)), np.uint8
        ).reshape(-1, *form.shape)  # fmt: skip
        assert collector.aggregate(name) == sf.aggregate(mechanism, array)
    connection.close()
    assert encodings == {"index", "bitmap", "parted"}
    assert accepted > total // 50
    assert rejected > total // 2


# -- stores --------------------------------------------------------------------------------------------------


def submission(mechanism: Mechanism, batch: str, reports: Any, day: int = 100) -> Submission:
    receipt = encode_batch(mechanism, reports)[-20:]
    return Submission("a" * 16, mechanism, batch.encode().ljust(16), receipt, reports, True, None, day)


def test_a_group_is_counted_in_order_and_once(store_url: str) -> None:
    store = open_store(store_url)
    mechanism = sf.mechanisms.RandomizedResponse(DISEASES, 1)
    store.add_collection(Record("a" * 16, 0, 0, None, "{}", "{}", "{}", '{"title":"t"}', None))
    reports = np.array([0, 1, 1, 4], mechanism.report_format.dtype)
    group = [
        submission(mechanism, "first", reports),
        submission(mechanism, "second", reports[:2]),
        submission(mechanism, "first", reports),
        submission(mechanism, "first", reports[:1]),
        submission(mechanism, "third", reports)._replace(collection="b" * 16),
    ]
    assert [tuple(result) for result in store.commit(group)] == [
        ("accepted", 4),
        ("accepted", 2),
        ("repeated", 4),
        ("conflict", 0),
        ("not-found", 0),
    ]
    assert [result.outcome for result in store.commit(group)] == ["repeated"] * 3 + ["conflict", "not-found"]
    many = [submission(mechanism, f"many-{i}", reports[:1]) for i in range(250)]
    assert {result.outcome for result in store.commit(many)} == {"accepted"}
    expected = sf.aggregate(mechanism, np.concatenate([reports, reports[:2], np.zeros(250, int)]))
    assert store.counts("a" * 16, mechanism) == expected
    progress, *_ = store.progress("a" * 16) or (None,)
    assert progress is not None
    assert (progress.reports, progress.batches) == (256, 252)
    store.close()


def test_raw_batches_are_deleted_by_rule_and_counts_stay(store_url: str) -> None:
    store = open_store(store_url)
    mechanism = sf.mechanisms.RandomizedResponse(DISEASES, 1)
    store.add_collection(Record("a" * 16, 0, 0, None, "{}", "{}", "{}", '{"title":"t"}', None))
    reports = np.array([3], mechanism.report_format.dtype)
    old = [submission(mechanism, f"old-batch-{i}", reports, 100) for i in range(5)]
    for earlier in old[:-1]:
        store.commit([earlier])
    store.commit([old[-1], submission(mechanism, "new-batch", reports, 101)])
    assert [store.forget_reports("a" * 16, 101, 3) for _ in range(3)] == [3, 2, 0]
    assert store.counts("a" * 16, mechanism).n == 6
    assert {result.outcome for result in store.commit(old)} == {"repeated"}
    assert store.forget_reports("a" * 16, 102, 10) == 1
    store.close()


def test_each_collection_has_its_own_rule(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/collect.db")
    mechanism = sf.mechanisms.RandomizedResponse(DISEASES, 1)
    keep_days = {"a" * 16: None, "b" * 16: 7, "c" * 16: 0}
    for name, days in keep_days.items():
        metadata = json.dumps({"title": "t", "keep_days": days})
        store.add_collection(Record(name, 0, 0, None, "{}", "{}", "{}", metadata, None))
        reports = np.array([3], mechanism.report_format.dtype)
        for day in range(100, 110):
            store.commit([submission(mechanism, f"{name[0]}-of-day-{day}", reports, day)._replace(collection=name)])

    def forget(today: int) -> int:
        return at_the_beginning(today, forget_old_reports, store)

    # At the end of day 109: nothing of the first, days 100 to 102 of the second, all of the third.
    assert forget(109) == 0 + 3 + 10
    assert forget(109) == 0
    assert forget(110) == 1
    assert [store.counts(name, mechanism).n for name in keep_days] == [10, 10, 10]
    store.close()


def test_a_collection_that_keeps_nothing_raw_stores_nothing_raw(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db") as collector:
        for days, stored in ((0, 0), (None, 1), (30, 1)):
            name, mechanism, _ = collector.create(keep_days=days)
            collector.send(name, mechanism, reports_of(mechanism, 3), "keep-or-not")
            with sqlite3.connect(tmp_path / "collect.db") as database:
                rows = database.execute("SELECT COUNT(*) FROM raw WHERE collection = ?", (name,)).fetchone()
            database.close()
            assert rows == (stored,)


def test_opening_again_changes_nothing_and_the_future_is_refused(store_url: str) -> None:
    store = open_store(store_url)
    assert store.add_admin(b"first", 0, only_first=True)
    assert not store.add_admin(b"second", 0, only_first=True)
    store.close()
    again = open_store(store_url)
    assert again.is_admin(b"first")
    assert not again.is_admin(b"second")
    with again._transaction() as execute:
        execute(again.sql.add_migration, (len(again.migrations),))
    with pytest.raises(Exception, match="migrations, and this release knows"):
        again.migrate()
    again.close()


def test_an_unknown_store_is_refused_without_its_password() -> None:
    with pytest.raises(sf.errors.InvalidInput, match="begin with sqlite") as error:
        open_store("mysql://user:password@host/database")
    assert "password" not in str(error.value)


def test_backup_restore_and_go_on_with_sqlite(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db") as collector:
        name, mechanism, _ = collector.create()
        reports = reports_of(mechanism, 300)
        collector.send(name, mechanism, reports[:100], "before-backup")
        with sqlite3.connect(tmp_path / "collect.db") as database:  # as docs/operations/back-up.md shows, while it runs
            database.execute(f"VACUUM INTO '{tmp_path}/backup.db'")
        database.close()
        collector.send(name, mechanism, reports[100:200], "after-backup")
        estimate = collector.ask("GET", f"/v1/collections/{name}/estimate").body
    with served(f"sqlite:///{tmp_path}/backup.db") as restored:
        assert restored.aggregate(name) == sf.aggregate(mechanism, reports[:100])
        # Clients send again what they have no receipt for; what the backup has is not counted twice.
        restored.send(name, mechanism, reports[:100], "before-backup")
        restored.send(name, mechanism, reports[100:200], "after-backup")
        assert restored.ask("GET", f"/v1/collections/{name}/estimate").body == estimate


def test_backup_restore_and_go_on_with_postgresql(postgres: Postgres, tmp_path: Path) -> None:
    import subprocess

    url, other = postgres.new_database(), postgres.new_database()
    with served(url) as collector:
        name, mechanism, _ = collector.create()
        reports = reports_of(mechanism, 300)
        collector.send(name, mechanism, reports[:100], "before-backup")
        dump = tmp_path / "backup.dump"
        subprocess.run([postgres.bin / "pg_dump", "--format=custom", f"--file={dump}", url], check=True)
        collector.send(name, mechanism, reports[100:200], "after-backup")
        estimate = collector.ask("GET", f"/v1/collections/{name}/estimate").body
    subprocess.run([postgres.bin / "pg_restore", f"--dbname={other}", dump], check=True)
    with served(other) as restored:
        assert restored.aggregate(name).n == 100
        restored.send(name, mechanism, reports[:100], "before-backup")
        restored.send(name, mechanism, reports[100:200], "after-backup")
        assert restored.ask("GET", f"/v1/collections/{name}/estimate").body == estimate


# -- `sfumato serve` -----------------------------------------------------------------------------------------


def test_serve_prints_its_token_once_and_ends_when_told(tmp_path: Path) -> None:
    process = ServeProcess(f"sqlite:///{tmp_path}/collect.db", tmp_path)
    process.start()
    name, mechanism, _ = process.served.create()
    stream = events(process.served, f"/v1/collections/{name}/live")
    next(stream)
    process.served.send(name, mechanism, reports_of(mechanism, 9), "before-the-end")
    assert process.stop() == 0
    assert list(stream)[1:] == []  # at most the last estimate, then the stream ends
    process.start()
    assert process.served.aggregate(name).n == 9
    assert "server" not in process.served.ask("GET", "/healthz").headers
    process.stop()
    log = process.log.read_text()
    assert log.count("sfa_") == 1
    assert log.count(f": {process.served.url}/studio\n") == 1
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert any(line["event"] == "request" and line["status"] == 201 for line in lines)


def test_sqlite_has_one_worker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sfumato.cli import main

    assert main(["serve", "--store", f"sqlite:///{tmp_path}/collect.db", "--workers", "2"]) == 2
    output = capsys.readouterr()
    assert "workers must be 1 with SQLite" in output.err
    assert output.out == ""  # no token was made
    assert not (tmp_path / "collect.db").exists()
    assert main(["serve", "--store", "sqlite:////no/such/folder/collect.db", "--port", "0"]) == 2
    assert "the store" in capsys.readouterr().err


@pytest.mark.parametrize("proxies", ["foo", "127.0.0.1,10.0.0.1/8", "127.0.0.1,*", "10.0.0.0/8,", "[::1]"])
def test_a_proxy_that_is_no_address_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], proxies: str
) -> None:
    from sfumato.cli import main

    assert main(["serve", "--store", f"sqlite:///{tmp_path}/collect.db", "--trust-proxy", proxies]) == 2
    output = capsys.readouterr()
    assert "--trust-proxy must be addresses or networks" in output.err
    assert output.out == ""
    assert not (tmp_path / "collect.db").exists()
    for taken in ("*", "", "127.0.0.1, ::1", "10.0.0.0/8,2001:db8::/32"):
        check_proxies(taken)


def test_an_address_that_cannot_be_listened_on_makes_no_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sfumato.cli import main

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for host in ("127.0.0.1", "192.0.2.1", "no..host"):
            store = f"sqlite:///{tmp_path}/collect.db"
            assert main(["serve", "--store", store, "--host", host, "--port", str(port)]) == 2
            output = capsys.readouterr()
            assert f"the collector cannot listen on {host}:{port}: " in output.err
            assert output.out == ""
    assert not (tmp_path / "collect.db").exists()
    for host in ("", "127.0.0.1", "localhost"):
        check_address(host, 0)


def test_where_studio_is_can_be_opened_on_this_machine() -> None:
    hosts = ("127.0.0.1", "0.0.0.0", "::", "2001:db8::1", "collect.example")
    assert [studio_address(host, 8000) for host in hosts] == [
        *("http://127.0.0.1:8000/studio", "http://127.0.0.1:8000/studio", "http://[::1]:8000/studio"),
        *("http://[2001:db8::1]:8000/studio", "http://collect.example:8000/studio"),
    ]


def test_several_workers_tell_their_metrics_together(postgres: Postgres, tmp_path: Path) -> None:
    process = ServeProcess(postgres.new_database(), tmp_path, "--workers", "2")
    process.start()
    try:
        name, mechanism, _ = process.served.create()
        for number in range(12):
            process.served.send(name, mechanism, reports_of(mechanism, 5), f"worker-{number}")
        assert process.served.aggregate(name).n == 60
        assert "sfumato_reports_total 60.0" in process.served.ask("GET", "/metrics").body.decode()
        assert process.served.as_admin("PATCH", f"/v1/collections/{name}", {"state": "closed"}).status == 200
        for number in range(6):  # whichever worker it is, it counts nothing more
            response = process.served.send(name, mechanism, reports_of(mechanism, 5), f"closed-{number}")
            assert response.reason == "not-open"
    finally:
        assert process.stop() == 0


def test_a_store_that_is_away_is_said_to_be(postgres: Postgres) -> None:
    url = postgres.new_database()
    with served(url) as collector:
        name, mechanism, _ = collector.create()
        postgres.stop()
        assert collector.ask("GET", "/healthz").status == 200
        until(lambda: collector.ask("GET", "/readyz").reason == "unavailable")  # a success is remembered for a second
        response = collector.send(name, mechanism, reports_of(mechanism, 5), "while-it-is-away")
        assert (response.reason, response.headers["retry-after"]) == ("unavailable", "1")
        postgres.start()
        # Each thread of the service finds out for itself; clients send again until it has.
        with collector.client(attempts=20) as client:
            client.submit(name, reports_of(mechanism, 5), batch="while-it-is-away")
            assert client.aggregate(name).n == 5
        while collector.ask("GET", "/readyz").status != 200:
            time.sleep(0.05)
