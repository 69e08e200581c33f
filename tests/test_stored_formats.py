"""Stored formats: what an earlier release wrote is read by this one, and gives the same results.

The files in ``tests/stored`` were written by the commit that ``tests/stored/README.md`` names, which also says what may
be removed from them. The names imported below may move with the code; what the files hold may not.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import http.server
import io
import json
import os
import sqlite3
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato.cli import main
from sfumato.collecting.batch import decode_batch, encode_batch
from sfumato.collecting.files import read_reports, write_reports
from sfumato.collecting.lines import read_lines, write_lines
from sfumato.device.client import Client
from sfumato.mechanisms.base import Mechanism
from sfumato.server.store import open_store
from support.collectors import BATCH_TYPE, Served, served

FOLDER = Path(__file__).parent / "stored"
#: Floating-point results may differ by this fraction: sums may be taken in another order.
RELATIVE = 1e-12


def stored(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


MECHANISMS: list[dict[str, Any]] = stored("mechanisms.json")
REMOVED: list[dict[str, Any]] = stored("removed.json")
CERTIFICATES: list[dict[str, Any]] = stored("certificates.json")
POLICIES: dict[str, str] = stored("policies.json")
REPORT_FILES: list[dict[str, Any]] = stored("report-files.json")
ADMIN, *COLLECTIONS = stored("store-results.json")


def named(spec: dict[str, Any]) -> str:
    return f"{spec['mechanism']}-{spec['parameters'].get('epsilon', '')}"


every_mechanism = pytest.mark.parametrize("entry", MECHANISMS, ids=[named(entry["spec"]) for entry in MECHANISMS])
every_counted = pytest.mark.parametrize(
    "entry",
    [entry for entry in MECHANISMS if "counts" in entry],
    ids=[named(entry["spec"]) for entry in MECHANISMS if "counts" in entry],
)


def tolerance(mechanism: Mechanism) -> float:
    """Return the fraction by which results may differ: rounding, times the condition number of an inverted matrix.

    The linear algebra library rounds differently on other processors. The error of an inverse is the machine precision
    times the condition number, which is 10⁶ for one stored mechanism.
    """
    return max(RELATIVE, 4 * float(np.finfo(float).eps) / mechanism.estimator.condition)


def same_numbers(actual: Any, expected: list[float], relative: float = RELATIVE) -> None:
    """Compare doubles; one that is small only because others cancel is compared with those."""
    array = np.asarray(expected)
    np.testing.assert_allclose(actual, array, rtol=relative, atol=relative * np.abs(array).max(initial=0.0))


def plain(reports: npt.NDArray[Any]) -> list[int | str]:
    """Reports as the service takes them in JSON: numbers, or bytes in hex digits."""
    return [bytes(row).hex() for row in reports] if reports.ndim > 1 else [int(report) for report in reports]


def as_array(mechanism: Mechanism, reports: list[int | str]) -> npt.NDArray[Any]:
    """Return reports as arrays hold them; the inverse of ``plain``."""
    if not mechanism.report_format.shape:
        return np.array(reports, mechanism.report_format.dtype)
    rows = b"".join(bytes.fromhex(str(report)) for report in reports)
    return np.frombuffer(rows, np.uint8).reshape(len(reports), *mechanism.report_format.shape)


# -- mechanisms, reports, counts, estimates ----------------------------------------------------------------


def test_a_spec_of_every_mechanism_is_stored() -> None:
    published = {path.stem for path in (FOLDER.parents[1] / "vectors").glob("*.json")}
    names = {entry["spec"]["mechanism"] for entry in MECHANISMS}
    assert len(names) == 7
    assert names <= published
    assert {entry["spec"]["report"]["encoding"] for entry in MECHANISMS} == {"index", "bitmap", "parted"}


@pytest.mark.parametrize("document", REMOVED, ids=range(len(REMOVED)))
def test_a_document_of_a_removed_mechanism_is_rejected_by_name(document: dict[str, Any]) -> None:
    spec = document.get("mechanism") if "format" in document else document
    assert isinstance(spec, dict)
    message = rf"mechanism must be one of .*; got '{spec['mechanism']}'"
    with pytest.raises(sf.errors.UnknownSpec, match=message):
        sf.mechanism_from_spec(spec)
    if "format" in document:
        certificate = sf.Certificate.from_json(json.dumps(document))
        with pytest.raises(sf.errors.UnknownSpec, match=message):
            sf.verify(certificate)


@every_mechanism
def test_a_spec_is_the_same_mechanism_with_the_same_hash(entry: dict[str, Any]) -> None:
    mechanism = sf.mechanism_from_spec(entry["spec"])
    assert mechanism.hash == entry["hash"]
    assert mechanism.spec == entry["spec"]
    assert mechanism.to_json() == json.dumps(entry["spec"], indent=2, ensure_ascii=False) + "\n"
    assert mechanism.outputs == int(entry["outputs"])
    assert mechanism.bits == entry["spec"]["report"]["bits"]
    risk = mechanism.risk(1000)
    assert np.isinf(risk) if entry["risk"] is None else risk == pytest.approx(entry["risk"], rel=tolerance(mechanism))


@every_counted
def test_a_batch_holds_the_same_reports(entry: dict[str, Any]) -> None:
    mechanism = sf.mechanism_from_spec(entry["spec"])
    payload = bytes.fromhex(entry["batch"])
    reports = decode_batch(mechanism, payload)
    assert plain(reports) == entry["reports"]
    assert encode_batch(mechanism, as_array(mechanism, entry["reports"])) == payload


@every_counted
def test_lines_hold_the_same_reports(entry: dict[str, Any]) -> None:
    mechanism = sf.mechanism_from_spec(entry["spec"])
    text = entry["lines"].encode()
    pieces = list(read_lines(mechanism, io.BytesIO(text), "lines"))
    assert plain(np.concatenate(pieces)) == entry["reports"]
    file = io.BytesIO()
    write_lines(mechanism, file, pieces)
    assert file.getvalue() == text


@every_counted
def test_reports_are_counted_in_the_same_way(entry: dict[str, Any]) -> None:
    mechanism = sf.mechanism_from_spec(entry["spec"])
    counts = sf.aggregate(mechanism, as_array(mechanism, entry["reports"]))
    assert counts.n == len(entry["reports"])
    assert counts.counts.tolist() == entry["counts_of_reports"]


@every_counted
def test_counts_are_read_and_written_in_both_forms(entry: dict[str, Any]) -> None:
    mechanism = sf.mechanism_from_spec(entry["spec"])
    text, binary = json.dumps(entry["counts"]) + "\n", base64.b64decode(entry["binary_counts"])
    counts = sf.Aggregate.from_json(text)
    counts.check(mechanism)
    assert counts == sf.Aggregate.from_bytes(binary)
    assert counts.to_json() == text
    assert counts.to_bytes() == binary
    assert counts.n == entry["counts"]["n"]
    assert counts.counts.tolist() == entry["counts"]["counts"]


@every_counted
def test_counts_give_the_same_estimate(entry: dict[str, Any]) -> None:
    mechanism = sf.mechanism_from_spec(entry["spec"])
    counts, expected = sf.Aggregate.from_json(json.dumps(entry["counts"])), entry["results"]
    if expected is None:
        with pytest.raises(sf.SfumatoError):
            _ = sf.estimate(mechanism, counts).frequencies
        return
    estimate, relative = sf.estimate(mechanism, counts), tolerance(mechanism)
    same_numbers(estimate.frequencies, expected["frequencies"], relative)
    same_numbers(estimate.standard_errors, expected["standard_errors"], relative)
    same_numbers(estimate.covariance[0, : len(expected["covariance"])], expected["covariance"], relative)
    if "variances" in expected:
        same_numbers(np.diag(estimate.covariance), expected["variances"], relative)
    for method in {"simplex", "efficient"} & set(expected):
        same_numbers(sf.estimate(mechanism, counts, method).frequencies, expected[method], relative)


# -- policies, certificates, plans -------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_file_is_the_same_policy(name: str, tmp_path: Path) -> None:
    policy = sf.load_policy(FOLDER / "policies" / name)
    assert policy.hash == POLICIES[name]
    assert sf.policy_from_dict(policy.to_dict()) == policy
    if not name.startswith("by-hand"):
        sf.save_policy(policy, tmp_path / name)
        text = (FOLDER / "policies" / name).read_text(encoding="utf-8")
        assert (tmp_path / name).read_text(encoding="utf-8") == text
        assert policy.to_dict() == (json.loads(text) if name.endswith(".json") else tomllib.loads(text))


def test_a_policy_of_every_kind_is_stored() -> None:
    kinds = {sf.load_policy(FOLDER / "policies" / name).kind for name in POLICIES}
    assert kinds == {"uniform", "high-low", "blocks", "metric", "pairwise", "prior", "secret"}
    assert {path.name for path in (FOLDER / "policies").iterdir()} == {*POLICIES, "labels.csv"}


def certificate_name(document: dict[str, Any]) -> str:
    verb = "obeys" if document["holds"] else "violates"
    return f"{named(document['mechanism'])}-{verb}-{document['policy']['policy']['kind']}"


def check_certificate(document: dict[str, Any]) -> None:
    """Read a certificate, write it again as it was, and verify it."""
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    certificate = sf.Certificate.from_json(text)
    assert certificate.to_json() == text
    assert certificate.holds == document["holds"]
    repeated = json.loads(sf.verify(certificate).to_json())
    frozen = ("holds", "output", "fault", "mechanism", "policy", "mechanism_hash", "policy_hash", "read")
    assert {key: repeated[key] for key in frozen} == {key: document[key] for key in frozen}
    found, expected = dict(repeated["worst"]), dict(document["worst"])
    assert float(found.pop("excess")) == pytest.approx(float(expected.pop("excess")), rel=RELATIVE)
    assert found == expected
    assert ("information" in repeated) == ("information" in document)
    if "information" in document:
        assert repeated["information"] == pytest.approx(document["information"], rel=RELATIVE)
    if not document["holds"]:
        with pytest.raises(sf.errors.PolicyViolated):
            certificate.raise_if_violated()


@pytest.mark.slow
@pytest.mark.parametrize("document", CERTIFICATES, ids=map(certificate_name, CERTIFICATES))
def test_a_certificate_is_read_and_verified(document: dict[str, Any]) -> None:
    check_certificate(document)


def test_a_changed_certificate_is_not_verified() -> None:
    document = next(document for document in CERTIFICATES if not document["holds"])
    text = json.dumps(document | {"holds": True, "worst": document["worst"] | {"violated": False}})
    with pytest.raises(sf.SfumatoError):
        sf.verify(sf.Certificate.from_json(text))


@pytest.mark.slow
@pytest.mark.parametrize("entry", stored("plans.json"), ids=lambda entry: entry["policy"])
def test_a_plan_has_every_row_that_it_had_and_none_is_worse(entry: dict[str, Any]) -> None:
    plan = sf.plan(sf.load_policy(FOLDER / "policies" / entry["policy"]), entry["n"], max_bits=None)
    risks = {row.name: row.risk for row in plan.rows}
    # No search runs, and there is no row of it, if another mechanism is proven to be optimal.
    is_proven = plan.rows[0].ratio is not None and plan.rows[0].ratio <= 1 + 1e-6
    rows = [row for row in entry["rows"] if row["name"] != "optimal" or not is_proven]
    assert risks.keys() >= {row["name"] for row in rows}
    for row in rows:
        # What a search finds is as good as its tolerance; all others are closed forms.
        assert risks[row["name"]] <= row["risk"] * (1 + (1e-3 if row["name"] == "optimal" else RELATIVE))
    best = next(row["risk"] for row in entry["rows"] if row["name"] == entry["best"])
    assert plan.best.risk <= best * (1 + 1e-3)


# -- files of reports, and a checkpoint --------------------------------------------------------------------


@pytest.mark.parametrize("entry", REPORT_FILES, ids=[named(entry["spec"]) for entry in REPORT_FILES])
def test_report_files_hold_the_same_reports(entry: dict[str, Any], tmp_path: Path) -> None:
    mechanism = sf.mechanism_from_spec(entry["spec"])
    reports = as_array(mechanism, entry["reports"])
    for suffix, content in entry["files"].items():
        path = tmp_path / f"reports{suffix}"
        path.write_bytes(base64.b64decode(content))
        assert plain(np.concatenate(list(read_reports(mechanism, path)))) == entry["reports"]
    write_reports(mechanism, reports, tmp_path / "again.sfb")
    assert (tmp_path / "again.sfb").read_bytes() == base64.b64decode(entry["files"][".sfb"])


def test_an_aggregation_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    document = stored("checkpoint.json")
    folder = str(tmp_path.resolve())
    paths = [Path(folder, name) for name in document["files"]]
    for path in paths:
        path.write_bytes(base64.b64decode(document["files"][path.name]))
        os.utime(path, ns=(document["modified"], document["modified"]))
    text = json.dumps(document["checkpoint"]).replace("{folder}", folder)
    (tmp_path / "checkpoint").write_text(text, encoding="utf-8")
    (tmp_path / "mechanism.json").write_text(json.dumps(document["spec"]), encoding="utf-8")
    assert document["checkpoint"]["counts"] == document["counted"]
    command = ["aggregate", str(tmp_path / "mechanism.json"), *map(str, paths), "-o", str(tmp_path / "counts.json")]
    assert main([*command, "--resume", str(tmp_path / "checkpoint")]) == 0
    assert json.loads((tmp_path / "counts.json").read_text(encoding="utf-8")) == document["counts"]
    again = json.loads((tmp_path / "checkpoint").read_text(encoding="utf-8"))
    assert again["counts"] == document["counts"]
    assert {Path(name).name: file["row_groups"] for name, file in again["files"].items()} == dict.fromkeys(
        document["files"]
    )


def test_what_a_checkpoint_names_as_counted_is_not_read_again(tmp_path: Path) -> None:
    document = stored("checkpoint.json")
    folder = str(tmp_path.resolve())
    path = Path(folder, "first.sfb")
    size = document["checkpoint"]["files"]["{folder}/first.sfb"]["bytes"]
    path.write_bytes(bytes(size))  # no batch: it is refused where it is read
    os.utime(path, ns=(document["modified"], document["modified"]))
    files = {str(path): document["checkpoint"]["files"]["{folder}/first.sfb"]}
    (tmp_path / "checkpoint").write_text(json.dumps(document["checkpoint"] | {"files": files}), encoding="utf-8")
    (tmp_path / "mechanism.json").write_text(json.dumps(document["spec"]), encoding="utf-8")
    command = ["aggregate", str(tmp_path / "mechanism.json"), str(path), "-o", str(tmp_path / "counts.json")]
    assert main(command) == 2
    assert main([*command, "--resume", str(tmp_path / "checkpoint")]) == 0
    assert json.loads((tmp_path / "counts.json").read_text(encoding="utf-8")) == document["counted"]


# -- a ledger ----------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path: Path) -> sf.Ledger:
    (tmp_path / "ledger.json").write_bytes((FOLDER / "ledger.json").read_bytes())
    return sf.Ledger.load(tmp_path / "ledger.json")


def test_a_ledger_has_the_same_balance(ledger: sf.Ledger) -> None:
    expected = stored("ledger-results.json")
    assert str(ledger.total) == expected["total"]
    assert [str(release.worst_case) for release in ledger.releases] == expected["worst_cases"]
    for question in expected["questions"]:
        domain = sf.Domain.from_dict(question["domain"])
        spent = ledger.spent(domain)
        assert spent is not None
        assert spent.to_dict() == question["spent"]
        if question["remaining"] is not None:
            assert str(ledger.remaining(domain)) == question["remaining"]


def test_a_ledger_gives_its_answers_again(ledger: sf.Ledger) -> None:
    expected = stored("ledger-results.json")
    before = ledger.releases
    for answer in expected["answers"]:
        mechanism = sf.mechanism_from_spec(answer["spec"])
        policy = sf.policy_from_dict(answer["policy"])
        reports = ledger.answer(answer["collection"], mechanism, policy, answer["value"])
        assert plain(reports) == [answer["report"]]
    assert ledger.releases == before
    asked = expected["answers"][0]
    change = expected["change"]
    arguments = sf.mechanism_from_spec(asked["spec"]), sf.policy_from_dict(asked["policy"])
    with pytest.raises(sf.errors.ValueChanged):
        ledger.answer(change["collection"], *arguments, change["value"])
    cost = ledger.cost_of_change(change["collection"], *arguments, change["value"])
    assert cost.added is not None
    assert cost.added.to_dict() == change["added"]
    assert cost.total.to_dict() == change["total"]
    assert cost.allowed is change["allowed"] is True
    refused = expected["refused"]
    release = sf.mechanism_from_spec(refused["spec"]), sf.policy_from_dict(refused["policy"])
    assert ledger.allows(refused["collection"], *release) is refused["allowed"] is False


def test_a_ledger_with_waves_gives_its_reports_again_and_goes_on() -> None:
    text, expected = (FOLDER / "ledger-waves.json").read_text(encoding="utf-8"), stored("ledger-waves-results.json")
    ledger = sf.Ledger.from_json(text)
    assert ledger.to_json() == text
    assert str(ledger.protected_total) == expected["protected_total"]
    mechanisms: dict[str, Any] = {name: sf.mechanism_from_spec(spec) for name, spec in expected["specs"].items()}
    for answer in expected["answers"]:
        mechanism = mechanisms[answer["collection"]]
        report = ledger.answer_wave(answer["collection"], mechanism, answer["value"], answer["wave"])
        assert int.from_bytes(report[0].tobytes(), "little") == int.from_bytes(
            bytes.fromhex(answer["report"]), "little"
        )
    assert ledger.to_json() == text
    # Known values and full memories need no new permanent answer in later waves.
    before = ledger.releases
    for collection, value, wave in (("weekly", "cancer", 5), ("weekly", "none", 6), ("monthly", 9, 3), ("daily", 0, 9)):
        ledger.answer_wave(collection, mechanisms[collection], value, wave)
    assert ledger.releases == before


def test_a_ledger_is_written_as_it_was_and_goes_on(ledger: sf.Ledger, tmp_path: Path) -> None:
    assert ledger.to_json() == (FOLDER / "ledger.json").read_text(encoding="utf-8")
    domain = sf.Domain.from_dict(stored("ledger-results.json")["questions"][2]["domain"])
    with sf.Ledger.open(tmp_path / "ledger.json") as opened:
        opened.charge("new", sf.mechanisms.RandomizedResponse(domain, "0.1"), sf.Uniform(domain, "0.1"))
    again = sf.Ledger.load(tmp_path / "ledger.json").releases
    assert again[:-1] == ledger.releases
    assert again[-1].collection == "new"


def test_a_ledger_of_secrets_refuses_a_second_one() -> None:
    text = (FOLDER / "ledger-secret.json").read_text(encoding="utf-8")
    ledger = sf.Ledger.from_json(text)
    assert ledger.to_json() == text
    assert str(ledger.total) == stored("ledger-secret-results.json")["total"] == "inf"
    for answer in stored("ledger-secret-results.json")["answers"]:
        policy = sf.policy_from_dict(answer["policy"])
        mechanism = sf.mechanisms.SecretRandomizedResponse(policy.domain, "S", 1)
        assert ledger.spent(policy.domain) == policy
        assert not ledger.allows("next", mechanism, policy)
        said = rf"no finite epsilon for '{answer['collection']}' that holds for every distribution\. .*Ledger\.prove\("
        with pytest.raises(sf.errors.CannotCompose, match=said):
            ledger.charge("next", mechanism, policy)
        with pytest.raises(sf.errors.InvalidInput, match="mechanism must be that of a release"):
            ledger.prove(answer["collection"], mechanism)


# -- the store of a collector, and what it sends -----------------------------------------------------------


def restore(path: Path) -> None:
    """Write the store that was dumped to a file."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript((FOLDER / "store.sql").read_text(encoding="utf-8"))


@contextlib.contextmanager
def serving_dump(path: Path) -> Iterator[Served]:
    """Restore the store and run a service on it."""
    restore(path)
    with served(f"sqlite:///{path}") as service:
        service.admin = ADMIN["admin_token"]
        yield service


@pytest.fixture(scope="module")
def restored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service for tests that count nothing."""
    with serving_dump(tmp_path_factory.mktemp("stored") / "collect.db") as service:
        yield service


def where(entry: dict[str, Any], rest: str = "") -> str:
    return f"/v1/collections/{entry['id']}{rest}"


every_collection = pytest.mark.parametrize("entry", COLLECTIONS, ids=[e["collection"]["title"] for e in COLLECTIONS])


@pytest.mark.component
@every_collection
def test_a_store_has_the_same_collections_and_counts(restored: Served, entry: dict[str, Any]) -> None:
    collection = restored.as_admin("GET", where(entry)).json
    expected = {key: value for key, value in entry["collection"].items() if key != "asks"}  # words for people
    assert {key: collection[key] for key in expected} == expected
    assert restored.as_admin("GET", where(entry, "/aggregate")).json == entry["aggregate"]
    headers = {"Accept": "application/vnd.sfumato.aggregate"}
    binary = restored.ask("GET", where(entry, "/aggregate"), token=restored.admin, headers=headers)
    assert binary.body == base64.b64decode(entry["binary_aggregate"])
    assert restored.as_admin("GET", where(entry, "/certificate")).json == entry["certificate"]
    check_certificate(entry["certificate"])


@pytest.mark.component
@every_collection
def test_a_store_gives_the_same_estimates(restored: Served, entry: dict[str, Any]) -> None:
    estimate = restored.as_admin("GET", where(entry, "/estimate")).json
    expected = entry["estimate"]
    for key in ("collection", "reports", "method"):
        assert estimate[key] == expected[key]
    assert [row["value"] for row in estimate["rows"]] == [row["value"] for row in expected["rows"]]
    for key in ("frequency", "standard_error"):
        same_numbers([row[key] for row in estimate["rows"]], [row[key] for row in expected["rows"]])


@pytest.mark.component
@every_collection
def test_batches_that_a_store_knows_are_not_counted_again(restored: Served, entry: dict[str, Any]) -> None:
    tokens = [token["token"] for token in entry["tokens"]] or [entry["key"]] * len(entry["sent"])
    for sent, token in zip(entry["sent"], tokens, strict=False):
        if "json" in sent:
            answer = restored.ask("POST", where(entry, "/reports"), sent["json"], token)
        else:
            headers = {"Content-Type": BATCH_TYPE, "Idempotency-Key": sent["batch"]}
            payload = bytes.fromhex(sent["payload"])
            answer = restored.ask("POST", where(entry, "/reports"), payload, token, headers)
        assert answer.status == 200, answer.body
        assert answer.json == sent["receipt"]
    assert restored.as_admin("GET", where(entry, "/aggregate")).json == entry["aggregate"]


@pytest.mark.component
def test_a_store_knows_its_keys_tokens_and_states(tmp_path: Path) -> None:
    with_key, with_tokens, closed = COLLECTIONS[1:]
    report = {"batch": "a-new-batch", "report": 0}
    payload, outcomes = bytes.fromhex(with_tokens["sent"][0]["payload"]), []
    with serving_dump(tmp_path / "collect.db") as service:
        assert service.ask("POST", where(with_key, "/reports"), report, "sfk_wrong").status in (401, 403)
        assert service.ask("POST", where(with_key, "/reports"), report, with_key["key"]).status == 200
        assert service.ask("POST", where(closed, "/reports"), report | {"report": "03"}).reason == "not-open"
        for number, token in enumerate(with_tokens["tokens"]):
            headers = {"Content-Type": BATCH_TYPE, "Idempotency-Key": f"new-batch-{number}"}
            answer = service.ask("POST", where(with_tokens, "/reports"), payload, token["token"], headers)
            outcomes.append(answer.reason or "counted")
        counts = [service.as_admin("GET", where(entry, "/aggregate")).json["n"] for entry in COLLECTIONS]
    assert outcomes == ["token-spent" if token["spent"] else "counted" for token in with_tokens["tokens"]]
    before = [entry["aggregate"]["n"] for entry in COLLECTIONS]
    assert [now - then for now, then in zip(counts, before, strict=True)] == [0, 1, outcomes.count("counted"), 0]


@every_collection
def test_a_store_keeps_the_reports_that_it_counted(entry: dict[str, Any], tmp_path: Path) -> None:
    restore(tmp_path / "collect.db")
    mechanism = sf.mechanism_from_spec(entry["collection"]["mechanism"])
    store = open_store(f"sqlite:///{tmp_path}/collect.db")
    # Three transactions kept their reports; those of the closed collection were mixed before the dump.
    shuffled = store.shuffle_reports(entry["id"], mechanism, before_day=10**6)
    store.close_all()
    keeps = entry["collection"]["keep_days"] != 0
    assert shuffled == (3 if keeps and entry["collection"]["state"] == "open" else 0)
    with contextlib.closing(sqlite3.connect(tmp_path / "collect.db")) as database:
        rows = database.execute("SELECT mixed, reports FROM raw WHERE collection = ?", (entry["id"],)).fetchall()
    assert [flag for flag, _ in rows] == [1] * keeps
    for _, batch in rows:
        counts = sf.aggregate(mechanism, decode_batch(mechanism, batch))
        assert json.loads(counts.to_json()) == entry["aggregate"]


@contextlib.contextmanager
def replaying(entry: dict[str, Any]) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """An earlier collector: it answers as recorded. Its URL, and the batches that it was sent."""
    answers = {
        where(entry): json.dumps(entry["collection"]).encode(),
        where(entry, "/certificate"): json.dumps(entry["certificate"]).encode(),
        where(entry, "/aggregate"): base64.b64decode(entry["binary_aggregate"]),
    }
    batches: list[tuple[str, bytes]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(answers[self.path])

        def do_POST(self) -> None:
            batches.append((self.headers["Idempotency-Key"], self.rfile.read(int(self.headers["Content-Length"]))))
            receipts = {sent["batch"]: sent["receipt"] for sent in entry["sent"] if "batch" in sent}
            name = batches[-1][0]
            first = next(iter(receipts.values()))
            self.answer(json.dumps(first | {"batch": name}).encode())

        def answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", batches
        finally:
            server.shutdown()
            thread.join()


@every_collection
def test_a_client_understands_an_earlier_collector(entry: dict[str, Any]) -> None:
    with replaying(entry) as (url, batches), Client(url, attempts=1) as client:
        info = client.collection(entry["id"])
        assert info.mechanism.hash == entry["collection"]["mechanism_hash"]
        assert info.policy.hash == entry["collection"]["policy_hash"]
        assert json.loads(client.certificate(entry["id"]).to_json()) == entry["certificate"]
        assert json.loads(client.aggregate(entry["id"]).to_json()) == entry["aggregate"]
        payload = bytes.fromhex(entry["sent"][0]["payload"])
        (receipt,) = client.submit(entry["id"], decode_batch(info.mechanism, payload), batch="earlier")
        assert (receipt.batch, receipt.reports) == ("earlier-0", entry["sent"][0]["receipt"]["reports"])
        assert batches == [("earlier-0", payload)]


# -- what commands write -----------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", stored("estimates.json"), ids=lambda entry: str(entry["spec"]["mechanism"]))
def test_estimates_are_written_with_the_same_numbers(
    entry: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, counts, table = (tmp_path / name for name in ("mechanism.json", "counts.json", "estimate.csv"))
    spec.write_text(json.dumps(entry["spec"]), encoding="utf-8")
    counts.write_text(json.dumps(entry["counts"]), encoding="utf-8")
    assert main(["estimate", str(spec), str(counts), "-o", str(table), "--json"]) == 0
    answer, expected = json.loads(capsys.readouterr().out), entry["json"]
    assert (answer["n"], answer["method"]) == (expected["n"], expected["method"])
    assert all(row.keys() <= other.keys() for row, other in zip(expected["rows"], answer["rows"], strict=True))
    assert [row["value"] for row in answer["rows"]] == [row["value"] for row in expected["rows"]]
    for key in ("frequency", "standard_error"):
        same_numbers([row[key] for row in answer["rows"]], [row[key] for row in expected["rows"]])
    header, *rows = csv.reader(table.read_text(encoding="utf-8").splitlines())
    earlier_header, *earlier_rows = csv.reader(entry["csv"].splitlines())
    # Further columns, such as coordinates, may follow. Of the numbers, the last two are the interval.
    assert header[:5] == earlier_header
    assert [row[0] for row in rows] == [row[0] for row in earlier_rows]
    for place in (1, 2):
        same_numbers([float(row[place]) for row in rows], [float(row[place]) for row in earlier_rows])
