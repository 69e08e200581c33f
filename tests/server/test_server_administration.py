"""Admin tokens and keys come and go, plans take no more memory than they may, streams outlive a store that is away."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.cli import main
from sfumato.server.api.tokens import fingerprint, token_hash
from sfumato.server.http.responses import ApiError
from sfumato.server.jobs.estimates import cached_estimate
from sfumato.server.jobs.planner import Planner
from sfumato.server.store import open_store
from sfumato.server.store.base import Unavailable
from support.collectors import DISEASES, LONG_ENOUGH, Postgres, Served, served, until

pytestmark = pytest.mark.component

Tokens = Callable[..., dict[str, Any]]


@pytest.fixture
def tokens(capsys: pytest.CaptureFixture[str]) -> Tokens:
    """`sfumato admin-tokens --json`, and what it answers."""

    def run(url: str, *options: str) -> dict[str, Any]:
        capsys.readouterr()
        assert main(["admin-tokens", "--store", url, "--json", *options]) == 0
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    return run


def stream(collector: Served, name: str, token: str | None = None) -> Iterator[Any]:
    """The documents of a live stream."""
    connection = http.client.HTTPConnection("127.0.0.1", collector.port, timeout=60)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    connection.request("GET", f"/v1/collections/{name}/live", headers=headers)
    response = connection.getresponse()
    try:
        for line in response:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
    finally:
        connection.close()


# -- admin tokens --------------------------------------------------------------------------------------------


def test_tokens_are_made_listed_and_revoked(store_url: str, tokens: Tokens, capsys: pytest.CaptureFixture[str]) -> None:
    first = tokens(store_url, "--new")
    assert first["revoked"] is None
    assert first["tokens"] == [
        {"fingerprint": fingerprint(token_hash(first["new"])), "created": first["tokens"][0]["created"]}
    ]
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", first["tokens"][0]["created"])
    listed = first["tokens"][0]["fingerprint"]
    # The last one stays, unless another takes its place.
    assert main(["admin-tokens", "--store", store_url, "--revoke", listed]) == 2
    assert "--revoke must not name the last admin token" in capsys.readouterr().err
    second = tokens(store_url, "--new", "--revoke", listed.upper())
    assert second["revoked"] == listed
    assert [listed["fingerprint"] for listed in second["tokens"]] == [fingerprint(token_hash(second["new"]))]
    # What is wrong is found before anything is made.
    assert main(["admin-tokens", "--store", store_url, "--new", "--revoke", listed]) == 2
    assert "--revoke must be the fingerprint of an admin token of this store" in capsys.readouterr().err
    assert tokens(store_url) == {"new": None, "revoked": None, "tokens": second["tokens"]}
    assert main(["admin-tokens", "--store", store_url, "--new"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"not shown again\): sfa_\S{43}\n", output)
    assert second["tokens"][0]["fingerprint"] in output


def test_a_token_at_hand_is_revoked_by_itself(
    tmp_path: Path, tokens: Tokens, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/collect.db"
    leaked = tokens(url, "--new")["new"]
    other = tokens(url, "--new")["new"]
    for sent, code in ((leaked, 0), (leaked, 2), ("", 2)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{sent}\n".encode())))
        assert main(["admin-tokens", "--store", url, "--revoke", "-"]) == code
        output = capsys.readouterr()
        assert leaked not in output.out + output.err
    (left,) = tokens(url)["tokens"]
    assert left["fingerprint"] == fingerprint(token_hash(other))


def test_a_fingerprint_of_two_tokens_revokes_neither(
    tmp_path: Path, tokens: Tokens, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/collect.db"
    store = open_store(url)
    for number in range(2):
        store.add_admin(bytes([1, 2, 3, 4, *[number] * 28]), number)
    store.close()
    assert main(["admin-tokens", "--store", url, "--revoke", "01020304"]) == 2
    assert "--revoke must be the fingerprint of a single token" in capsys.readouterr().err
    assert len(tokens(url)["tokens"]) == 2


def test_of_two_who_revoke_at_once_one_leaves_the_last(store_url: str) -> None:
    store = open_store(store_url)
    with ThreadPoolExecutor(2) as pool:
        for _ in range(10):
            for name in (b"first", b"second"):
                if not store.is_admin(name):
                    store.add_admin(name, 0)
            assert sorted(pool.map(store.remove_admin, (b"first", b"second"))) == [False, True]
            assert len(store.admins()) == 1
    store.close()
    store.close_all()


def test_tokens_of_no_store_are_not_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["admin-tokens", "--store", f"sqlite:///{tmp_path}/mistyped.db"]) == 2
    assert "the store" in capsys.readouterr().err


def test_what_is_no_store_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Sir or Madam, " * 100)
    for command in (["admin-tokens"], ["admin-tokens", "--new"], ["serve", "--port", "0"]):
        assert main([*command, "--store", f"sqlite:///{path}"]) == 2
        assert capsys.readouterr().err == (
            "sfumato: the store cannot be used: file is not a database; "
            "check that --store is the database of a collector; if it is, stop the collector, run "
            "`sfumato store check`, and restore a backup.\n"
        )


def test_an_empty_database_has_no_tokens_to_list(postgres: Postgres, capsys: pytest.CaptureFixture[str]) -> None:
    url = postgres.new_database()
    for options in ([], ["--revoke", "01020304"]):
        assert main(["admin-tokens", "--store", url, *options]) == 2
        assert re.fullmatch(
            'sfumato: the store cannot be used: relation "\\w+" does not exist; the database does not have the tables '
            "of this release: check that --store is the database of a collector, run `sfumato store upgrade`, or "
            "restore a backup.\n",
            capsys.readouterr().err,
        )


def test_a_missing_database_and_a_missing_user_are_named(
    postgres: Postgres, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgres.new_database()
    database = url.partition("?")[0].rpartition("/")[2]
    for wrong, advice in (
        (url.replace(f"/{database}", "/absent"), "check the name of the database in --store"),
        (url.replace("://postgres", "://absent"), "check the name of the user in --store"),
    ):
        assert wrong != url
        assert main(["admin-tokens", "--store", wrong]) == 2
        message = capsys.readouterr().err
        assert message.startswith("sfumato: the store cannot be used: ")
        assert "does not exist; " + advice in message


def test_a_revoked_token_opens_nothing_any_more(
    tmp_path: Path, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.01)
    url = f"sqlite:///{tmp_path}/collect.db"
    with served(url, live_seconds=0.02) as collector:
        name, *_ = collector.create(results="admin")
        path = f"/v1/collections/{name}/estimate"
        live = stream(collector, name, collector.admin)
        assert next(live)["reports"] == 0
        assert collector.as_admin("GET", path).status == 200
        other = tokens(url, "--new", "--revoke", fingerprint(token_hash(collector.admin)))["new"]
        assert collector.as_admin("GET", path).reason == "unauthorized"
        assert collector.as_admin("POST", "/v1/collections", {}).reason == "unauthorized"
        assert list(live) == []  # and what it had opened ends
        assert collector.ask("GET", path, token=other).status == 200


# -- keys of collections -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(f"sqlite:///{tmp_path_factory.mktemp('collector')}/collect.db") as running:
        yield running


def test_a_new_key_takes_the_place_of_the_old_one(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 1000.0)
    with served(store_url) as collector, served(store_url) as worker:
        name, mechanism, old = collector.create(submission="key", mechanism="rr")
        path = f"/v1/collections/{name}"
        reports = sf.privatize(mechanism, ["flu"] * 7)
        first = collector.send(name, mechanism, reports, "under-the-old-key", old)
        assert worker.send(name, mechanism, reports, "of-the-other-worker", old).status == 200
        created = collector.as_admin("POST", f"{path}/key")
        new = created.json["key"]
        assert (created.status, set(created.json)) == (201, {"key"})
        assert re.fullmatch(r"sfk_\S{43}", new)
        assert new != old
        # Where it was made it counts at once, and by the others it is seen when they look again.
        for process in (collector, worker):
            for batch in ("under-the-old-key", "under-the-new-key"):
                assert process.send(name, mechanism, reports, batch, old).reason == "unauthorized"
            assert process.send(name, mechanism, reports, "under-the-old-key", new).json == first.json
            assert process.send(name, mechanism, reports, "under-the-new-key", new).status == 200
            monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.0)
        assert collector.aggregate(name).n == 3 * 7
        # Also of what takes no reports any more: whoever has no receipt yet still gets it.
        for state in ("closed", "archived"):
            assert collector.as_admin("PATCH", path, {"state": state}).status == 200
            newest = collector.as_admin("POST", f"{path}/key").json["key"]
            assert collector.send(name, mechanism, reports, "under-the-new-key", new).reason == "unauthorized"
            assert collector.send(name, mechanism, reports, "under-the-new-key", newest).status == 200
            assert collector.send(name, mechanism, reports, "after-the-end", newest).reason == "not-open"
            new = newest


def test_what_was_read_before_a_key_was_made_does_not_bring_the_old_one_back(
    collector: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 1000.0)
    name, mechanism, old = collector.create(submission="key", mechanism="rr")
    path = f"/v1/collections/{name}"
    assert collector.app is not None
    assert collector.app.collector is not None
    store, has_read, go_on = collector.app.collector.store, threading.Event(), threading.Event()
    progress = store.progress

    def held(collection: str) -> Any:
        row = progress(collection)
        if not has_read.is_set():
            has_read.set()
            go_on.wait(30)
        return row

    monkeypatch.setattr(store, "progress", held)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(collector.ask, "GET", path)
        assert has_read.wait(30)
        new = collector.as_admin("POST", f"{path}/key").json["key"]
        go_on.set()
        assert slow.result().status == 200
    reports = sf.privatize(mechanism, ["flu"])
    assert collector.send(name, mechanism, reports, "one-more-report", old).reason == "unauthorized"
    assert collector.send(name, mechanism, reports, "one-more-report", new).status == 200


def test_only_what_takes_a_key_gets_a_new_one(collector: Served) -> None:
    for submission in ("open", "token"):
        name, *_ = collector.create(submission=submission, mechanism="rr")
        assert collector.as_admin("POST", f"/v1/collections/{name}/key").reason == "invalid"
        assert collector.ask("POST", f"/v1/collections/{name}/key").reason == "unauthorized"
    for nothing in ("a" * 16, "no-id"):
        assert collector.as_admin("POST", f"/v1/collections/{nothing}/key").reason == "not-found"


# -- planning ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_what_takes_too_much_memory_is_too_hard_and_the_next_is_not() -> None:
    """A policy of a hundred bytes whose distances are two million fractions, and one that takes nothing."""
    large = {"domain": {"size": 1500}, "policy": {"kind": "metric", "distance": "absolute", "epsilon": "0.1"}}
    small = sf.Uniform(sf.Domain(["no", "yes"]), 1).to_dict()

    async def run() -> None:
        planner = Planner(LONG_ENOUGH, 150 * 2**20, 5000)
        try:
            with pytest.raises(ApiError, match="more memory than the collector allows") as error:
                await planner.ask("check", policy=large, before=0.1)
            assert error.value.reason == "too-hard"
            assert (await planner.ask("check", policy=small, before=0.1))["values"] == 2
            nested: list[Any] = []
            for _ in range(900):
                nested = [nested]
            deep = {**small, "policy": {"kind": "high-low", "sensitive": nested, "epsilon": 1}}
            with pytest.raises(ApiError, match="nested too deeply") as error:
                await planner.ask("check", policy=deep, before=0.1)
            assert error.value.reason == "invalid"
            with pytest.raises(ApiError, match="mechanism must be one of") as error:
                await planner.ask("create", policy=small, mechanism={"mechanism": []}, n=None)
            assert error.value.reason == "invalid"
        finally:
            await planner.stop()

    asyncio.run(run())


def test_a_fault_in_planning_is_the_collectors_own_and_the_process_goes_on(capfd: pytest.CaptureFixture[str]) -> None:
    small = sf.Uniform(sf.Domain(["no", "yes"]), 1).to_dict()

    async def run() -> None:
        planner = Planner(LONG_ENOUGH, 2**30, 5000)
        try:
            await planner.ask("check", policy=small, before=0.1)
            process = planner._process
            with pytest.raises(ApiError) as error:
                await planner.ask("no such job")
            assert (error.value.reason, error.value.message) == (
                "internal",
                "internal error of the collector; its administrator finds details in the log",
            )
            assert (await planner.ask("check", policy=small, before=0.1))["values"] == 2
            assert planner._process is process
        finally:
            await planner.stop()

    asyncio.run(run())
    (line,) = map(json.loads, capfd.readouterr().err.splitlines())
    assert (line["event"], line["job"], line["error"]) == ("internal error in the planner", "no such job", "KeyError")
    assert any("planner.py" in place for place in line["at"])


@pytest.mark.parametrize(
    "policy",
    [
        sf.Uniform(DISEASES, 0),
        sf.HighLow(DISEASES, sensitive=["hiv"], epsilon=0),
        sf.Blocks(DISEASES, blocks=[0, 0, 1, 1, 1], epsilon=[0, 1]),
    ],
)
def test_what_nothing_can_be_estimated_from_is_not_opened(collector: Served, policy: sf.Policy) -> None:
    created = collector.as_admin("POST", "/v1/collections", {"title": "a test", "policy": policy.to_dict()})
    assert created.reason == "invalid"
    assert created.json["error"]["message"].startswith(
        "frequencies cannot be estimated from reports of this mechanism: the mechanism must"
    )
    assert "(Domain" not in created.json["error"]["message"]


def test_why_nothing_can_be_estimated_is_said_without_python() -> None:
    mechanism = sf.design(sf.Uniform(DISEASES, 0), mechanism="rr")
    with pytest.raises(ApiError, match=r"\(its epsilon is 0\)\. Use a mechanism with a larger epsilon\.$"):
        cached_estimate(mechanism, sf.aggregate(mechanism, [0, 1]), "unbiased")


# -- streams -------------------------------------------------------------------------------------------------


def test_a_stream_goes_on_after_the_store_was_away(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.01)
    with served(postgres.new_database(), live_seconds=0.02) as collector:
        name, mechanism, _ = collector.create(mechanism="rr")
        assert collector.app is not None
        assert collector.app.collector is not None
        store, missed = collector.app.collector.store, []
        progress = store.progress

        def watched(collection: str) -> Any:
            try:
                return progress(collection)
            except Unavailable:
                missed.append(collection)
                raise

        monkeypatch.setattr(store, "progress", watched)
        live = stream(collector, name)
        assert next(live)["reports"] == 0
        postgres.stop()
        until(lambda: len(missed) > 3)  # so often it looked in vain
        postgres.start()
        reports = sf.privatize(mechanism, ["flu"] * 7)
        with collector.client(attempts=20) as client:
            client.submit(name, reports, batch="after-it-was-away")
        assert next(live)["reports"] == 7
        live.close()  # type: ignore[attr-defined]
