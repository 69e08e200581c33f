"""Roles, the log, dates, fixed wording, undo, copies and deletion of collections."""

from __future__ import annotations

import asyncio
import json
import queue
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.cli import main
from sfumato.server.api.tokens import token_hash
from sfumato.server.store import management, open_store
from sfumato.server.store.base import Unavailable
from support.collectors import LONG_ENOUGH, POLICY, Postgres, Served, new_author, served, until

pytestmark = pytest.mark.component


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def collector(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres: Postgres
) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("management")
    url = f"sqlite:///{folder}/collect.db" if request.param == "sqlite" else postgres.new_database()
    with served(url) as running:
        yield running


def create(collector: Served, token: str, **metadata: Any) -> str:
    document = {"title": "Which illness?", "policy": POLICY.to_dict(), "mechanism": "rr", **metadata}
    response = collector.ask("POST", "/v1/collections", document, token)
    assert response.status == 201, response.body
    return str(response.json["collection"]["id"])


def actions(collector: Served, name: str, token: str) -> list[str]:
    entries = collector.ask("GET", f"/v1/collections/{name}/log", token=token).json["entries"]
    return [entry["action"] for entry in reversed(entries)]


def test_an_author_owns_what_they_create_and_nothing_else(collector: Served) -> None:
    mine, others = new_author(collector), new_author(collector)
    name = create(collector, mine)
    path = f"/v1/collections/{name}"
    assert collector.ask("GET", path).json["submission"] == "token"  # not open to everyone by default
    assert collector.ask("PATCH", path, {"state": "closed"}, others).reason == "unauthorized"
    assert collector.ask("PATCH", path, {"state": "closed"}, mine).json["state"] == "closed"
    assert collector.ask("PATCH", path, {"state": "open"}, collector.admin).json["state"] == "open"
    assert collector.ask("POST", f"{path}/tokens", {"count": 3}, others).reason == "unauthorized"
    assert len(collector.ask("POST", f"{path}/tokens", {"count": 3}, mine).json["tokens"]) == 3
    listed = collector.ask("GET", "/v1/mine", token=mine).json
    assert (listed["role"], [one["id"] for one in listed["collections"]]) == ("author", [name])
    assert collector.ask("GET", "/v1/mine", token=others).json["collections"] == []
    assert name in [one["id"] for one in collector.ask("GET", "/v1/mine", token=collector.admin).json["collections"]]
    assert collector.ask("GET", "/v1/mine", token="sfu_unknown").reason == "unauthorized"
    assert collector.ask("GET", "/v1/mine").reason == "unauthorized"
    assert actions(collector, name, mine) == ["create", "change", "change", "tokens"]
    assert collector.ask("GET", f"{path}/log").reason == "unauthorized"


# -- surveys of several questions ------------------------------------------------------------------------------


def question(title: str, epsilon: str = "1", **more: Any) -> dict[str, Any]:
    """A question of a survey with one-time links."""
    policy = {"domain": {"values": ["yes", "no"]}, "policy": {"kind": "uniform", "epsilon": epsilon}}
    return {"title": title, "policy": policy, "submission": "token", **more}


def owned(collector: Served, token: str) -> list[tuple[str, int]]:
    """Title and number of one-time tokens of each collection of a token."""
    rows = collector.ask("GET", "/v1/mine", token=token).json["collections"]
    return [(row["title"], row["issued"]) for row in rows]


def test_a_survey_opens_all_its_questions_with_their_tokens(collector: Served) -> None:
    mine = new_author(collector)
    body = {"questions": [question("Tea?"), question("Coffee?", "0.3")], "tokens": 2}
    assert collector.ask("POST", "/v1/surveys", body).reason == "unauthorized"
    created = collector.ask("POST", "/v1/surveys", body, mine)
    assert created.status == 201, created.body
    assert owned(collector, mine) == [("Tea?", 2), ("Coffee?", 2)]
    for row, tokens in zip(created.json["questions"], created.json["tokens"], strict=True):
        name, mechanism = row["collection"]["id"], sf.mechanism_from_spec(row["collection"]["mechanism"])
        assert actions(collector, name, mine) == ["create", "tokens"]
        sent = [
            collector.send(name, mechanism, sf.privatize(mechanism, ["no"]), f"of-{one}"[:60], one) for one in tokens
        ]
        assert [one.status for one in sent] == [200, 200]
    without = collector.ask("POST", "/v1/surveys", {"questions": [question("Water?")]}, mine)
    assert (without.json["tokens"], owned(collector, mine)[-1]) == ([], ("Water?", 0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"questions": [question("Tea?"), question("Coffee?", "none")]}, "question 2: Uniform: epsilon must"),
        ({"questions": [question("Tea?"), question("Coffee?", opens=2, closes=1)]}, "question 2: closes must be later"),
        ({"questions": [question("Tea?"), question("Coffee?", submission="open")]}, "only collections with submission"),
        ({"questions": [question("Tea?")] * 200, "tokens": 10_000}, "at most 2500 tokens"),
        ({"questions": []}, "length >= 1"),
    ],
    ids=["policy", "dates", "submission", "tokens", "none"],
)
def test_a_survey_with_a_wrong_question_opens_nothing(collector: Served, changes: dict[str, Any], message: str) -> None:
    mine = new_author(collector)
    refused = collector.ask("POST", "/v1/surveys", {"tokens": 2, **changes}, mine)
    assert refused.reason == "invalid"
    assert message in refused.json["error"]["message"]
    assert owned(collector, mine) == []


def test_a_survey_that_the_store_cannot_finish_opens_nothing(
    collector: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert collector.app is not None
    mine, store, calls = new_author(collector), collector.app.collector.store, []
    add_tokens = store.add_tokens

    def failing(*arguments: Any) -> None:
        add_tokens(*arguments)
        calls.append(arguments)
        if len(calls) == 2:
            raise Unavailable("the disk is full")

    monkeypatch.setattr(store, "add_tokens", failing)
    body = {"questions": [question("Tea?"), question("Coffee?"), question("Water?")], "tokens": 2}
    assert collector.ask("POST", "/v1/surveys", body, mine).reason == "unavailable"
    assert (len(calls), owned(collector, mine)) == (2, [])
    monkeypatch.undo()
    assert collector.ask("POST", "/v1/surveys", body, mine).status == 201
    assert owned(collector, mine) == [("Tea?", 2), ("Coffee?", 2), ("Water?", 2)]


def test_a_survey_whose_sender_has_gone_opens_nothing(collector: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender would not learn that it is open, and could open a changed draft next to it."""
    assert collector.app is not None
    running, mine, reasons = collector.app.collector, new_author(collector), queue.Queue[str]()
    body = json.dumps({"questions": [question("Tea?"), question("Coffee?")]}).encode()
    head = f"POST /v1/surveys HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {mine}\r\nContent-Type: application/json\r\n"
    sender = socket.create_connection(("127.0.0.1", collector.port))
    ask = running.planner.ask

    async def asked(job: str, **request: Any) -> Any:
        planned = await ask(job, **request)
        sender.close()
        while running.connections.open:
            await asyncio.sleep(0.01)
        return planned

    monkeypatch.setattr(running.planner, "ask", asked)
    monkeypatch.setattr(running.metrics, "rejected", reasons.put)
    sender.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    assert reasons.get(timeout=LONG_ENOUGH) == "malformed"
    assert owned(collector, mine) == []


# -- roles -----------------------------------------------------------------------------------------------------


def test_tokens_of_owners_and_readers_expire_and_are_revoked(collector: Served) -> None:
    mine = new_author(collector)
    name = create(collector, mine, results="admin")
    path, results = f"/v1/collections/{name}", f"/v1/collections/{name}/aggregate"
    tokens = {}
    for role in ("owner", "reader"):
        created = collector.ask("POST", f"{path}/roles", {"role": role, "name": "Bob", "days": 7}, mine)
        assert created.status == 201
        tokens[role] = created.json["token"]
        assert created.json["grant"]["expires"] - created.json["grant"]["created"] == 7 * 86_400
    assert [collector.ask("GET", results, token=token).status for token in tokens.values()] == [200, 200]
    assert collector.ask("GET", results).reason == "unauthorized"
    assert collector.ask("PATCH", path, {"label": "ours"}, tokens["reader"]).reason == "unauthorized"
    assert collector.ask("PATCH", path, {"label": "ours"}, tokens["owner"]).status == 200
    assert collector.ask("GET", "/v1/mine", token=tokens["reader"]).json["role"] == "reader"
    roles = collector.ask("GET", f"{path}/roles", token=mine).json["roles"]
    assert sorted(row["role"] for row in roles) == ["owner", "owner", "reader"]
    assert all(token not in str(roles) for token in tokens.values())
    (reader,) = [row["fingerprint"] for row in roles if row["role"] == "reader"]
    assert collector.ask("POST", f"{path}/roles/revoke", {"fingerprint": reader}, tokens["owner"]).json["revoked"]
    assert collector.ask("GET", results, token=tokens["reader"]).reason == "unauthorized"
    assert collector.app is not None
    now = collector.app.collector.now
    collector.app.collector.now = lambda: now() + 8 * 86_400
    try:
        assert collector.ask("GET", results, token=tokens["owner"]).reason == "unauthorized"
        assert collector.ask("GET", results, token=mine).status == 200
    finally:
        collector.app.collector.now = now
    assert collector.ask("GET", "/v1/mine", token=new_author(collector, days=-1)).reason == "unauthorized"


def granted(collector: Served, name: str, token: str, role: str = "owner", days: int | None = None) -> tuple[str, Any]:
    """A new token with a role that another token grants, and its row."""
    created = collector.ask("POST", f"/v1/collections/{name}/roles", {"role": role, "days": days}, token)
    assert created.status == 201, created.body
    return created.json["token"], created.json["grant"]


def test_roles_expire_no_later_than_that_of_their_grantor(collector: Served) -> None:
    mine = new_author(collector, days=1)
    name = create(collector, mine)
    expires = collector.ask("GET", "/v1/mine", token=mine).json["expires"]
    owner, row = granted(collector, name, mine)
    assert row["expires"] == expires
    assert row["granted_by"] == token_hash(mine).hex()[:8]
    _, row = granted(collector, name, owner, "reader", days=7)
    assert (row["expires"], row["granted_by"]) == (expires, token_hash(owner).hex()[:8])
    _, row = granted(collector, name, collector.admin)
    assert row["expires"] is None
    copy = collector.ask("POST", f"/v1/collections/{name}/copies", {}, owner).json["collection"]["id"]
    roles = collector.ask("GET", f"/v1/collections/{copy}/roles", token=owner).json["roles"]
    assert {row["expires"] for row in roles} == {expires}


@pytest.mark.parametrize("revoked", ["author", "owner"])
def test_revoking_a_role_ends_those_that_it_granted(collector: Served, revoked: str) -> None:
    """Also on copies, and after the collection for which a token was created was deleted."""
    mine = new_author(collector)
    name, other = create(collector, mine), create(collector, mine)
    first, row = granted(collector, name, mine)
    second, _ = granted(collector, name, first)
    reader, _ = granted(collector, name, second, "reader")
    elsewhere, _ = granted(collector, other, mine)
    independent, _ = granted(collector, name, collector.admin)
    copy = collector.ask("POST", f"/v1/collections/{name}/copies", {}, second).json["collection"]["id"]

    def roles_left(name: str) -> int:
        return len(collector.as_admin("GET", f"/v1/collections/{name}/roles").json["roles"])

    assert [roles_left(one) for one in (name, other, copy)] == [5, 2, 3]
    path = f"/v1/collections/{name}"
    origin = {"fingerprint": row["fingerprint"]}
    assert collector.ask("POST", f"{path}/roles/revoke", origin, second).reason == "conflict"
    assert roles_left(name) == 5
    if revoked == "owner":
        assert collector.ask("POST", f"{path}/roles/revoke", origin, mine).json["revoked"]
        assert collector.ask("POST", f"/v1/collections/{copy}/roles/revoke", origin, mine).json["revoked"]
        assert [roles_left(one) for one in (name, other, copy)] == [2, 2, 1]
        assert collector.ask("GET", f"{path}/log", token=independent).status == 200
    else:
        collector.ask("PATCH", path, {"state": "closed"}, mine)
        assert collector.ask("DELETE", path, token=mine).json["deleted"]
        store = open_store(collector.store_url)
        assert management.revoke_grant(store, token_hash(mine), management.ANY)
        store.close()
        assert [roles_left(one) for one in (other, copy)] == [0, 0]
        assert collector.ask("GET", f"/v1/collections/{other}/log", token=elsewhere).reason == "unauthorized"
    for token in (first, second, reader):
        assert collector.ask("GET", "/v1/mine", token=token).reason == "unauthorized"


def test_a_role_whose_grantor_is_revoked_meanwhile_is_not_created(collector: Served) -> None:
    mine = new_author(collector)
    name = create(collector, mine)
    store = open_store(collector.store_url)
    grant = management.Grant(b"new", name, "owner", "", int(time.time()), None, token_hash(mine))
    management.revoke_grant(store, token_hash(mine), management.ANY)
    assert management.pass_on_role(store, grant) is None
    assert management.grants(store, name) == []
    store.close()


def test_the_wording_is_fixed_once_a_collection_has_opened(collector: Served) -> None:
    mine = new_author(collector)
    name = create(collector, mine)
    path = f"/v1/collections/{name}"
    before = collector.ask("GET", path).json
    for change in ({"title": "Another?"}, {"description": "More."}, {"opens": int(time.time()) + 1000}):
        assert collector.ask("PATCH", path, change, mine).reason == "conflict"
    assert collector.ask("PATCH", path, {"title": before["title"], "label": "spring"}, mine).status == 200
    assert collector.ask("GET", path).json["wording_hash"] == before["wording_hash"]
    later = create(collector, mine, opens=int(time.time()) + 1000)
    early = collector.ask("GET", f"/v1/collections/{later}").json
    assert early["state"] == "scheduled"
    changed = collector.ask("PATCH", f"/v1/collections/{later}", {"title": "Better?", "opens": None}, mine).json
    assert (changed["title"], changed["state"]) == ("Better?", "open")
    assert changed["wording_hash"] != early["wording_hash"]
    assert collector.ask("PATCH", f"/v1/collections/{later}", {"title": "Worse?"}, mine).reason == "conflict"
    # The certificate records the wording as it is now.
    for one in (name, later):
        shown = collector.ask("GET", f"/v1/collections/{one}").json
        certificate = sf.Certificate.from_json(collector.ask("GET", f"/v1/collections/{one}/certificate").body.decode())
        assert certificate.wording_hash == shown["wording_hash"]
        assert certificate.mechanism_hash == shown["mechanism_hash"]
        assert sf.verify(certificate) == certificate
        assert sf.Certificate.from_dict(certificate.to_dict()).wording_hash == shown["wording_hash"]


def test_reports_are_accepted_between_the_dates(collector: Served) -> None:
    now = int(time.time())
    name, mechanism, _ = collector.create(mechanism="rr", closes=now + 1000)
    path = f"/v1/collections/{name}"
    reports = np.zeros(5, np.uint8)
    assert collector.send(name, mechanism, reports, "in-good-time").status == 200
    assert collector.as_admin("PATCH", path, {"closes": now - 1}).json["state"] == "closed"
    until(lambda: collector.send(name, mechanism, reports, f"too-late-{time.time_ns()}").reason == "not-open")
    assert collector.send(name, mechanism, reports, "in-good-time").status == 200  # its receipt may have been lost
    extended = collector.as_admin("PATCH", path, {"closes": now + 2000}).json
    assert (extended["state"], extended["closes"]) == ("open", now + 2000)
    assert collector.send(name, mechanism, reports, "in-time-again").status == 200
    assert collector.as_admin("PATCH", path, {"opens": now + 5, "closes": now}).reason == "invalid"


def test_a_flood_of_one_day_is_noticed_and_undone(collector: Served) -> None:
    name, mechanism, _ = collector.create(mechanism="rr")
    path = f"/v1/collections/{name}"
    honest = sf.privatize(mechanism, ["flu", "none", "none"] * 500, sf.InsecureSeeded(5))
    assert collector.app is not None
    running = collector.app.collector
    now = running.now
    try:
        running.now = lambda: 86_400.0 * 20_000
        assert collector.send(name, mechanism, honest, "honest-reports").status == 200
        before = collector.aggregate(name)
        running.now = lambda: 86_400.0 * 20_001
        forged = np.full(4000, 2, np.uint8)
        assert collector.send(name, mechanism, forged, "forged-reports").status == 200
        assert collector.send(name, mechanism, honest[:10], "honest-but-late").status == 200
    finally:
        running.now = now
    days = collector.as_admin("GET", f"{path}/days").json
    assert [(row["day"], row["reports"], row["alarm"]) for row in days["days"]] == [
        ("2024-10-04", 1500, False),
        ("2024-10-05", 4010, True),
    ]
    assert (days["reports"], days["alarm"]) == (5510, True)
    assert "may be forged" in collector.ask("GET", f"{path}/estimate").json["warnings"][0]
    # An owner looks at the results without the day before it is undone; strangers may not.
    without = f"{path}/estimate?without=2024-10-05"
    assert collector.ask("GET", without).reason == "unauthorized"
    preview = collector.as_admin("GET", without).json
    assert preview["reports"] == 1500
    assert "forged" not in str(preview["warnings"])
    expected = sf.estimate(mechanism, before).frequencies.tolist()
    assert [row["frequency"] for row in preview["rows"]] == expected
    assert collector.as_admin("GET", f"{path}/estimate").json["reports"] == 5510
    both = collector.as_admin("GET", f"{path}/estimate?without=2024-10-04,%202024-10-05").json
    assert (both["reports"], both["rows"]) == (0, [])
    for days in ("2024-10-06", "yesterday", "2024-10-05,", ""):
        assert collector.as_admin("GET", f"{path}/estimate?without={days}").reason == "invalid"
    assert collector.ask("POST", f"{path}/undo", {"day": "2024-10-05"}).reason == "unauthorized"
    for day in ("2024-10-06", "yesterday"):
        assert collector.as_admin("POST", f"{path}/undo", {"day": day}).reason == "invalid"
    assert collector.as_admin("POST", f"{path}/undo", {"day": "2024-10-05"}).json == {
        "day": "2024-10-05",
        "reports": 4010,
    }
    assert collector.aggregate(name) == before
    undone = collector.as_admin("GET", f"{path}/estimate").json
    assert undone == preview
    # Neither the forged batch nor a cached estimate comes back.
    assert collector.send(name, mechanism, forged, "forged-reports").status == 200
    assert collector.aggregate(name) == before
    assert collector.send(name, mechanism, honest[:10], "small-day").status == 200
    small = next(row["day"] for row in collector.as_admin("GET", f"{path}/days").json["days"] if row["reports"] == 10)
    assert (
        "reveal single reports" in collector.as_admin("POST", f"{path}/undo", {"day": small}).json["error"]["message"]
    )
    entry = collector.as_admin("GET", f"{path}/log").json["entries"][0]
    assert (entry["action"], entry["what"]) == ("undo", {"day": "2024-10-05", "reports": "4010"})


def test_leaving_days_out_does_not_isolate_the_reports_of_small_days(
    collector: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, mechanism, _ = collector.create(mechanism="rr")
    path = f"/v1/collections/{name}"
    assert collector.app is not None

    def send(day: int, reports: int, batch: str) -> None:
        assert collector.app is not None
        monkeypatch.setattr(collector.app.collector, "now", lambda: 86_400.0 * day)
        assert collector.send(name, mechanism, np.zeros(reports, np.uint8), batch).status == 200

    def without(*days: str) -> int | str:
        response = collector.as_admin("GET", f"{path}/estimate?without={','.join(days)}")
        return int(response.json["reports"]) if response.status == 200 else response.json["error"]["message"]

    first, second, third = "2024-10-04", "2024-10-05", "2024-10-06"
    send(20_000, 200, "the-first-day")
    assert without(first) == 0
    send(20_001, 1, "one-person")
    assert "2024-10-04 cannot be left out, because 1 reports" in str(without(first))
    # Two days whose sums are both known would reveal the rest by difference, so only one of them can be left out.
    send(20_002, 300, "the-third-day")
    assert without(third) == 201
    for days in ([first], [first, third]):
        assert "2024-10-04 cannot be left out" in str(without(*days))
    # The other reports are enough to hide each of them.
    send(20_001, 99, "more-people")
    assert (without(first), without(third), without(first, third), without(first, second, third)) == (400, 300, 100, 0)
    # An undo is possible even if few reports remain: it must remove a flood from a survey with few answers.
    send(20_003, 5, "five-people")
    for day in (first, second, third):
        assert collector.as_admin("POST", f"{path}/undo", {"day": day}).status == 200
    assert collector.aggregate(name).n == 5


def test_a_copy_asks_the_same_and_a_deleted_collection_leaves_its_log(collector: Served) -> None:
    mine = new_author(collector)
    name = create(collector, mine, submission="key", description="In the last year.", keep_days=30)
    path = f"/v1/collections/{name}"
    original = collector.ask("GET", path).json
    copy = collector.ask("POST", f"{path}/copies", {"title": "Again: which illness?"}, mine)
    assert copy.status == 201
    assert copy.json["key"].startswith("sfk_")
    for field in ("mechanism_hash", "policy_hash", "description", "keep_days", "submission"):
        assert copy.json["collection"][field] == original[field]
    next_version = create(collector, collector.admin, previous=name)
    assert collector.ask("DELETE", path, token=mine).reason == "not-open"
    assert collector.ask("PATCH", path, {"state": "closed"}, mine).status == 200
    assert collector.ask("DELETE", path).reason == "unauthorized"
    assert collector.ask("DELETE", path, token=mine).json == {"id": name, "deleted": True}
    assert collector.ask("GET", path).reason == "not-found"
    assert collector.ask("GET", f"/v1/collections/{next_version}").json["previous"] is None
    assert [one["id"] for one in collector.ask("GET", "/v1/mine", token=mine).json["collections"]] == [
        copy.json["collection"]["id"]
    ]
    store = open_store(collector.store_url)
    with store.connected() as execute:
        for table in ("counts", "raw", "tokens", "roles", "progress"):
            (rows,) = execute(f"SELECT COUNT(*) FROM {table} WHERE collection = '{name}'").fetchone()
            assert rows == 0
    assert [change.action for change in management.changes(store, name)] == ["delete", "change", "create"]
    store.close()


def test_used_tokens_are_counted(collector: Served) -> None:
    name, mechanism, _ = collector.create(mechanism="rr", submission="token")
    tokens = collector.as_admin("POST", f"/v1/collections/{name}/tokens", {"count": 4}).json["tokens"]
    assert collector.send(name, mechanism, np.zeros(1, np.uint8), "with-a-token", tokens[0]).status == 200
    assert collector.as_admin("GET", f"/v1/collections/{name}/tokens").json == {"issued": 4, "used": 1}
    (row,) = [one for one in collector.as_admin("GET", "/v1/mine").json["collections"] if one["id"] == name]
    assert (row["issued"], row["used"], row["role"]) == (4, 1, "admin")


def test_the_command_line_manages_collections(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/collect.db"
    store = ["--store", url]
    with served(url) as collector:
        name, mechanism, _ = collector.create(mechanism="rr")
        assert collector.send(name, mechanism, np.zeros(150, np.uint8), "many-reports").status == 200
        day = collector.as_admin("GET", f"/v1/collections/{name}/days").json["days"][0]["day"]
        assert main(["collections", "undo", name, "2001-01-01", *store]) == 2
        assert "at least 100 stored reports" in capsys.readouterr().err
        assert main(["collections", "undo", name, day, *store]) == 0
        assert collector.aggregate(name).n == 0
        assert main(["collections", "extend", name, "2100-01-31", *store]) == 0
        assert collector.ask("GET", f"/v1/collections/{name}").json["closes"] == 4_105_036_800
        assert main(["collections", "author", "Ada", "--days", "30", *store]) == 0
        token = capsys.readouterr().out.partition("not shown again): ")[2].split()[0]
        assert collector.ask("GET", "/v1/mine", token=token).json["role"] == "author"
        (fingerprint,) = [token_hash(token).hex()[:8]]
        owned = create(collector, token)
        (role,) = collector.ask("GET", f"/v1/collections/{owned}/roles", token=token).json["roles"]
        assert role["expires"] == collector.ask("GET", "/v1/mine", token=token).json["expires"] is not None
        assert main(["collections", "author", "--revoke", fingerprint, *store]) == 0
        assert collector.ask("GET", "/v1/mine", token=token).reason == "unauthorized"
        # The token is also the owner of what the author opened: revoking it ends that role, too.
        assert collector.ask("PATCH", f"/v1/collections/{owned}", {"state": "closed"}, token).reason == "unauthorized"
        assert main(["collections", "state", owned, "closed", *store]) == 0
        assert main(["collections", "delete", owned, "--yes", *store]) == 0
        capsys.readouterr()
        assert main(["collections", "delete", name, "--yes", *store]) == 2
        assert "be closed before" in capsys.readouterr().err
        assert main(["collections", "state", name, "closed", *store]) == 0
        assert main(["collections", "delete", name, "--yes", *store]) == 0
        assert main(["collections", "log", name, "--json", *store]) == 0
        entries = json.loads(capsys.readouterr().out.partition("deleted\n")[2])["entries"]
        assert [entry["action"] for entry in entries] == ["delete", "change", "change", "undo", "create"]
        assert main(["collections", "list", "--json", *store]) == 0
        assert json.loads(capsys.readouterr().out) == {"collections": []}
