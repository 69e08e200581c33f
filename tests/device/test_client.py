"""The client: what it sends arrives once, whatever the network does."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.cli import main
from sfumato.collecting.files import write_reports
from sfumato.device.client import Client
from sfumato.device.transport import LOCAL_NETWORK, CollectorRefused, CollectorUnreachable, Transport
from sfumato.errors import InvalidInput, PolicyViolated
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from support import ROOT
from support.collectors import DISEASES, POLICY, Served, free_port, served

pytestmark = pytest.mark.component


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("collector")
    with served(f"sqlite:///{folder}/collect.db") as running:
        yield running


class LossyProxy:
    """Passes requests on, and loses every other answer after the collector gave it."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.lost = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, socket.create_connection(("127.0.0.1", self._to)) as collector:
                while request := self._request(client):
                    collector.sendall(request)
                    answer = self._request(collector)
                    number += 1
                    if number % 2 and request.startswith(b"POST"):
                        self.lost += 1
                        break
                    client.sendall(answer)

    def _request(self, connection: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return b""
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
        )
        while len(body) < length:
            body += connection.recv(65536)
        return head + b"\r\n\r\n" + body

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@contextlib.contextmanager
def hasty(*answers: bytes) -> Iterator[str]:
    """The URL of a server that reads the beginning of each request, gives the next answer and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1024)
                    connection.sendall(answer)

        thread = threading.Thread(target=run)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def answer_of(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Connection: close", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def description_of(mechanism: Mechanism, policy: sf.Policy) -> bytes:
    """What a collector serves that states a mechanism's true hash, and whatever policy."""
    document: dict[str, object] = {
        "id": "falsecollection1",
        "title": "",
        "description": "",
        "state": "open",
        "submission": "open",
    }
    document |= {"reports": 0, "previous": None, "mechanism_hash": mechanism.hash}
    body = json.dumps(document | {"mechanism": mechanism.spec, "policy": policy.to_dict()})
    return answer_of("200 OK", body.encode(), "Content-Type: application/json")


def test_a_mechanism_that_breaks_the_served_policy_is_refused() -> None:
    mechanism = RandomizedResponse(DISEASES, "1/10", threshold=2**64)  # every reply is the truth
    served_as = description_of(mechanism, sf.Uniform(DISEASES, "1/10"))
    with hasty(served_as) as url, Client(url) as client, pytest.raises(PolicyViolated, match="does not obey"):
        client.collection("falsecollection1")
    with hasty(served_as) as url, Client(url) as client, pytest.raises(PolicyViolated, match="does not obey"):
        client.submit("falsecollection1", np.array([1], np.uint32))
    with hasty(served_as) as url, Client(url, audit_mechanisms=False) as client:
        assert client.collection("falsecollection1").mechanism == mechanism


def test_a_policy_over_other_values_is_refused() -> None:
    served_as = description_of(RandomizedResponse(DISEASES, 1), sf.Uniform(sf.Domain.range(len(DISEASES)), 1))
    with hasty(served_as) as url, Client(url) as client, pytest.raises(InvalidInput, match="the mechanism's domain"):
        client.collection("falsecollection1")


def test_a_mechanism_is_audited_once_for_a_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = RandomizedResponse(DISEASES, 1)
    audits: list[sf.Policy] = []

    def counted(mechanism: Mechanism, policy: sf.Policy) -> sf.Certificate:
        audits.append(policy)
        return sf.audit(mechanism, policy)

    monkeypatch.setattr("sfumato.device.client.audit", counted)
    right, wrong = (description_of(mechanism, sf.Uniform(DISEASES, epsilon)) for epsilon in (1, "0.99"))
    with hasty(right, right, wrong) as url, Client(url) as client:
        client.collection("falsecollection1")
        client.collection("falsecollection1")
        assert len(audits) == 1
        with pytest.raises(PolicyViolated):  # another policy by now
            client.collection("falsecollection1")
        with pytest.raises(PolicyViolated):
            client.submit("falsecollection1", np.array([1], np.uint32))


def test_the_whole_way(collector: Served) -> None:
    with collector.client(collector.admin) as admin:
        name, key = admin.create("health", POLICY, submission="key", keep_days=0, results="public")
    with collector.client(key) as client:
        info = client.collection(name)
        assert (info.title, info.policy, info.state, info.previous) == ("health", POLICY, "open", None)
        assert sf.verify(client.certificate(name)).holds
        reports = sf.privatize(info.mechanism, ["flu", "hiv", "none"] * 100)
        (receipt,) = client.submit(name, reports)
        assert receipt.reports == 300
        assert client.aggregate(name) == sf.aggregate(info.mechanism, reports)
    with collector.client(collector.admin) as admin:
        admin.change(name, state="closed")
    with collector.client(key) as client, pytest.raises(CollectorRefused) as refused:
        client.submit(name, reports)
    assert (refused.value.reason, refused.value.status) == ("not-open", 409)


def test_one_time_tokens(collector: Served) -> None:
    with collector.client(collector.admin) as admin:
        name, _ = admin.create("health", POLICY, "rr", submission="token", results="public")
        first, second = admin.tokens(name, 2)
    report = np.array([1], np.uint32)
    with collector.client(first) as client:
        client.submit(name, report)
        with pytest.raises(CollectorRefused, match="token-spent"):
            client.submit(name, report)
    with collector.client(second) as client:
        client.submit(name, report)
        assert client.aggregate(name).n == 2


def test_a_new_key_takes_the_place_of_the_old(collector: Served) -> None:
    report = np.array([1], np.uint32)
    with collector.client(collector.admin) as admin:
        name, old = admin.create("health", POLICY, "rr", submission="key", results="public")
        new = admin.new_key(name)
    with collector.client(old) as client, pytest.raises(CollectorRefused, match="unauthorized"):
        client.submit(name, report)
    with collector.client(new) as client:
        client.submit(name, report)
        assert client.aggregate(name).n == 1


def test_answers_that_are_lost_are_asked_for_again(collector: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.device.client._BATCH_BYTES", 16)  # 42 reports of three bits in a batch
    with collector.client(collector.admin) as admin:
        name, _ = admin.create("health", POLICY, "rr", submission="open", results="public")
    proxy = LossyProxy(collector.port)
    try:
        with Client(f"http://127.0.0.1:{proxy.port}", attempts=5) as client:
            monkeypatch.setattr(client._transport, "_sleep", lambda _: None)
            reports = sf.privatize(client.collection(name).mechanism, ["flu"] * 500)
            receipts = client.submit(name, reports, batch="lossy-")
    finally:
        proxy.close()
    assert len(receipts) == -(-500 // 42)
    assert proxy.lost >= len(receipts) - 1
    assert sum(receipt.reports for receipt in receipts) == 500
    assert collector.aggregate(name).n == 500


def test_batches_are_the_same_however_the_reports_were_cut(collector: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.device.client._BATCH_BYTES", 16)
    with collector.client(collector.admin) as admin:
        name, _ = admin.create("health", POLICY, "rr", submission="open", results="public")
        reports = sf.privatize(admin.collection(name).mechanism, ["flu"] * 500)
        first = admin.submit(name, reports, batch="the-name")
        assert admin.submit(name, iter(np.array_split(reports, 9)), batch="the-name") == first
        assert collector.aggregate(name).n == 500
        with pytest.raises(CollectorRefused, match="conflict"):
            admin.submit(name, reports[::-1][:400], batch="the-name")
        with pytest.raises(sf.errors.InvalidInput, match="6 to 48 letters"):
            admin.submit(name, reports, batch="short")


def test_who_does_not_answer_is_asked_a_few_times() -> None:
    pauses: list[float] = []
    transport = Transport(f"http://127.0.0.1:{free_port()}", None, 5, 1.0, pauses.append)
    with pytest.raises(CollectorUnreachable, match=r"127\.0\.0\.1"):
        transport.ask("GET", "/healthz")
    assert len(pauses) == 4
    for pause, most in zip(pauses, (0.1, 0.2, 0.4, 0.8), strict=True):
        assert most / 2 <= pause <= most


def test_a_collector_that_states_another_hash_is_not_believed(
    collector: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector.client(collector.admin) as client:
        name, _ = client.create("health", POLICY, "rr", submission="open", results="public")
        said = client._json("GET", f"/v1/collections/{name}")
        monkeypatch.setattr(client, "_json", lambda *_: {**said, "mechanism_hash": "0" * 64})
        with pytest.raises(sf.errors.InvalidInput, match="the mechanism hash in the response must be"):
            client.collection(name)


def test_who_asks_to_be_asked_later_is() -> None:
    pauses: list[float] = []
    later = answer_of("503 Service Unavailable", b"", "Retry-After: 3")
    much_later = answer_of("429 Too Many Requests", b"", "Retry-After: 86400")
    some_day = answer_of("503 Service Unavailable", b"", "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT")
    with hasty(later, much_later, some_day, later, answer_of("200 OK", b"here")) as url:
        assert Transport(url, None, 5, 10.0, pauses.append).ask("GET", "/healthz") == b"here"
    # Never before that, but for ten seconds at most; and then as long as without being asked.
    for pause, asked, most in zip(pauses, (3, 10, 0, 3), (0.1, 0.2, 0.4, 0.8), strict=True):
        assert asked + most / 2 <= pause <= asked + most


def test_a_refusal_is_heard_although_the_body_was_not() -> None:
    """A proxy that refuses a long body hangs up at once; what it said is there all the same."""
    said = b'{"error": {"reason": "too-large", "message": "no longer than that", "row": null, "batch": null}}'
    with hasty(answer_of("413 Content Too Large", said)) as url:
        transport = Transport(url, None, 1, 10.0)
        with pytest.raises(CollectorRefused, match=r"too-large.*no longer than that"):
            transport.ask("POST", "/v1/collections/a/reports", bytes(2**24))
        transport.close()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        ("403 Forbidden", b"<html>blocked</html>"),
        ("403 Forbidden", b'{"error": "blocked"}'),
        ("409 Conflict", b'{"error": {"reason": "not-open", "message": "", "row": null}}'),
        ("409 Conflict", b'{"error": {"reason": "not-open", "message": "", "row": null, "batch": "another-name-0"}}'),
    ],
)
def test_a_batch_is_given_up_only_if_the_collector_rejects_it(status: str, body: bytes) -> None:
    """A firewall may answer with any JSON; only a rejection that names the batch ends the attempts."""
    headers = {"Idempotency-Key": "a-name-0"}
    named = b'{"error": {"reason": "not-open", "message": "ended", "row": null, "batch": "a-name-0"}}'
    answers = (answer_of(status, body), answer_of("409 Conflict", named))
    with hasty(*answers) as url, pytest.raises(CollectorRefused, match="ended"):
        Transport(url, None, 2, 10.0, lambda _: None).ask("POST", "/v1/collections/a/reports", b"x", headers)
    with hasty(answer_of(status, body)) as url, pytest.raises(CollectorUnreachable, match="not from a collector"):
        Transport(url, None, 1, 10.0).ask("POST", "/v1/collections/a/reports", b"x", headers)


def test_another_service_is_no_collector() -> None:
    with (
        hasty(answer_of("200 OK", b'{"status": "ok"}')) as url,
        Client(url) as client,
        pytest.raises(CollectorUnreachable, match=r"does not come from a collector.*status"),
    ):
        client.collection("abcdefgh")


def test_reports_that_end_in_an_error_are_sent_again_under_their_name(
    collector: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.device.client._BATCH_BYTES", 16)
    monkeypatch.setattr("sfumato.mechanisms.reports.base._PIECE_BYTES", 64)
    name, mechanism, _ = collector.create(mechanism="rr")
    reports = sf.privatize(mechanism, ["flu"] * 100)

    def pieces() -> Iterator[Any]:
        yield reports[:50]
        raise OSError("the disk is gone")

    with collector.client() as client:
        with pytest.raises(OSError, match="disk") as failed:
            client.submit(name, pieces())
        counted = collector.aggregate(name).n
        assert 0 < counted <= 50
        (note,) = failed.value.__notes__
        client.submit(name, reports, batch=note.partition("batch='")[2].removesuffix("'."))
    assert collector.aggregate(name) == sf.aggregate(mechanism, reports)


@pytest.mark.parametrize(
    "url",
    [
        "collect.example",
        "ftp://collect.example",
        "http://",
        "http://a/?b=c",
        "http://a:port",
        "http://[::1",
        "http://a/b c",
        f"http://{'a' * 64}.example",
    ],
)
def test_a_url_of_no_collector_is_refused(url: str) -> None:
    with pytest.raises(sf.errors.InvalidInput, match=r"be an address such as https://collect\.example"):
        Client(url)


LOCAL = [
    "collector",
    "sfumato.local",
    "a.home.arpa",
    "192.168.1.9",
    "172.31.0.1",
    "169.254.0.1",
    "[fe80::1]",
    "[fd00::1]",
]
PUBLIC = ["collect.example", "ai", "xn--p1ai", "8.8.8.8", "172.32.0.1", "[2001:db8::1]", "localhost.example", "0.0.0.0"]


@pytest.mark.parametrize("host", [*LOCAL, *PUBLIC])
def test_plain_http_leads_to_this_machine_or_after_consent_to_a_local_network(host: str) -> None:
    """The same hosts as on the survey page, which asks participants in a local network."""
    with pytest.raises(InvalidInput, match="url must begin with https:// or lead to this machine") as refused:
        Client(f"http://{host}:8000")
    assert ("plain_http=True" in str(refused.value)) == (host in LOCAL)
    with pytest.raises(InvalidInput) if host in PUBLIC else contextlib.nullcontext():
        Client(f"http://{host}:8000", plain_http=True)
    Client(f"https://{host}")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
def test_plain_http_to_this_machine_is_possible(host: str) -> None:
    Client(f"http://{host}:8000")


def test_the_survey_page_has_the_same_rule_for_local_networks() -> None:
    page = (ROOT / "src" / "sfumato" / "server" / "pages" / "survey.js").read_text(encoding="utf-8")
    assert f"/{LOCAL_NETWORK.pattern}/i.test(" in page


@pytest.mark.parametrize("token", ["sfk_secret\n", "sfk secret", "sfk_sécret", ""])
def test_a_token_that_no_header_can_hold_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(sf.errors.InvalidInput, match="token must have only visible ASCII") as refused:
        Client("https://collect.example", token)
    assert "cret" not in str(refused.value)


def test_whoever_waits_waits_for_some_time() -> None:
    for timeout in (0, -1.0, float("nan")):
        with pytest.raises(sf.errors.InvalidInput, match="timeout must be more than 0"):
            Client("https://collect.example", timeout=timeout)


def test_submit_sends_files_and_goes_on(collector: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, mechanism, _ = collector.create()
    reports = sf.privatize(mechanism, [DISEASES.label(i % 5) for i in range(1000)])
    paths = [str(tmp_path / "one.sfb"), str(tmp_path / "two.parquet")]
    write_reports(mechanism, reports[:600], paths[0])
    write_reports(mechanism, reports[600:], paths[1])
    for _ in range(2):
        assert main(["submit", collector.url, name, *paths, "--batch", "monday"]) == 0
        assert "1,000 reports counted in 1 batch, as --batch monday" in capsys.readouterr().out
    assert collector.aggregate(name) == sf.aggregate(mechanism, reports)
    unreachable = f"http://127.0.0.1:{free_port()}"
    assert main(["submit", unreachable, name, paths[0], "--attempts", "1"]) == 2
    assert "127.0.0.1" in capsys.readouterr().err
    assert main(["submit", collector.url, "a" * 16, paths[0]]) == 2
    assert "not-found" in capsys.readouterr().err
