"""A stranger who polls a collector learns no times of arrival: counts advance in groups, for all who may read them."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import re
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.collecting.batch import encode_batch
from sfumato.server.api.operations import OPERATIONS
from sfumato.server.store import open_store
from support.collectors import BATCH_TYPE, Served, served, until

ARRIVALS = 30


def polled(collector: Served, name: str, path: str, send: Any) -> list[Any]:
    """What a stranger sees before and after each of thirty arrivals."""
    views = []
    for number in range(-1, ARRIVALS):
        if number >= 0:
            send(number)
        response = collector.ask("GET", path.format(name=name))
        views.append((response.status, response.body))
    return views


def steps(views: list[Any]) -> list[int]:
    """The arrivals that a stranger can time: those after which the view changed."""
    return [place for place in range(1, len(views)) if views[place] != views[place - 1]]


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/v1/collections/{name}", "/v1/collections"])
def test_strangers_cannot_time_arrivals_if_results_are_for_admins(tmp_path: Path, path: str) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db") as collector:
        name, mechanism, _ = collector.create(results="admin")

        def send(number: int) -> None:
            assert collector.send(name, mechanism, [1], f"arrival-{number}").status == 200

        assert steps(polled(collector, name, path, send)) == []
        assert collector.as_admin("GET", f"/v1/collections/{name}").json["reports"] == ARRIVALS  # admins see it


PATHS = [
    "/v1/collections/{name}",
    "/v1/collections",
    "/v1/collections/{name}/aggregate",
    "/v1/collections/{name}/estimate",
]


@pytest.mark.slow
def test_results_advance_by_whole_groups(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.0)
    with served(store_url, live_seconds=0.01) as collector:
        created = collector.as_admin(
            "POST",
            "/v1/collections",
            {
                "title": "t",
                "policy": sf.Uniform(sf.Domain.range(5), 1).to_dict(),
                "submission": "open",
                "results": "public",
                "release_every": 12,
            },
        ).json["collection"]
        name, mechanism = created["id"], sf.mechanism_from_spec(created["mechanism"])
        assert created["release_every"] == 12
        sent = []

        def send(number: int) -> None:
            sent.append(number % 5)
            assert collector.send(name, mechanism, [number % 5], f"arrival-{number}").status == 200

        views: dict[str, list[Any]] = {path: [] for path in (*PATHS, "/v1/mine")}
        for number in range(-1, ARRIVALS):
            if number >= 0:
                send(number)
            for path in views:
                response = collector.as_admin("GET", path.format(name=name))  # for admins too
                assert response.status == 200
                views[path].append(response.body)
        assert {path: steps(view) for path, view in views.items()} == {path: [12, 24] for path in views}
        assert collector.aggregate(name) == sf.aggregate(mechanism, sent[:24])
        # A batch with more reports than a group is released with all that waited.
        assert collector.send(name, mechanism, [2] * 40, "a-large-batch").status == 200
        assert collector.aggregate(name) == sf.aggregate(mechanism, sent + [2] * 40)
        repeated = collector.send(name, mechanism, [2] * 40, "a-large-batch")
        assert repeated.json == {"batch": "a-large-batch", "reports": 40}
        assert collector.aggregate(name).n == ARRIVALS + 40
    store = open_store(store_url)
    with store._connected() as execute:
        pending = execute("SELECT reports - released_reports FROM progress").fetchone()
    assert pending == (0,)
    store.close_all()


POLICY = sf.Uniform(sf.Domain.range(5), 1).to_dict()
#: Bodies of all requests that change something, except reports; a deletion is last, because nothing can follow it.
BODIES: dict[str, Any] = {
    "POST /v1/check": {"policy": POLICY},
    "POST /v1/plan": {"policy": POLICY, "n": 100},
    "POST /v1/collections": {"title": "t", "policy": POLICY, "mechanism": "rr"},
    "POST /v1/surveys": {"questions": [{"title": "t", "policy": POLICY, "mechanism": "rr"}], "tokens": 1},
    "PATCH /v1/collections/{id}": {"state": "closed"},
    "POST /v1/collections/{id}/copies": {},
    "POST /v1/collections/{id}/tokens": {"count": 1},
    "POST /v1/collections/{id}/key": {},
    "POST /v1/collections/{id}/roles": {"role": "reader"},
    "POST /v1/collections/{id}/roles/revoke": {"fingerprint": "00000000"},
    "POST /v1/collections/{id}/undo": {"day": "2023-11-14"},
    "DELETE /v1/collections/{id}": None,
}
#: Parameters of all other requests, each tried alone. OTHER stands for the id of another collection.
PARAMETERS: dict[str, tuple[str, ...]] = {
    "method": ("simplex", "mle"), "level": ("0.9",), "question": ("mean",), "wave": ("0",), "without": ("2023-11-14",),
    "against": ("pairs",), "with": ("OTHER",), "after": ("1",),
}  # fmt: skip


def view(collector: Served, request: str, name: str, other: str, token: str | None, accept: str = "*/*") -> Any:
    """Return the numbers of a response in JSON, or the whole body; of a stream, the first event."""
    method, path = request.replace("{id}", name).replace("{name}", "studio.js").replace("OTHER", other).split(" ")
    if "/live?" in path:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", collector.port, timeout=60)) as connection:
            connection.request("GET", path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            status, kind, body = response.status, None, response.readline() + response.readline()
    else:
        answer = collector.ask(method, path, BODIES.get(request), token, {"Accept": accept})
        status, kind, body = answer.status, answer.headers.get("content-type"), answer.body
    is_result = status < 400 and kind == "application/json"
    return status, numbers(json.loads(body)) if is_result else re.sub(rb"[a-z2-7]{16}", b"ID", body)  # ids are random


def numbers(document: Any, place: str = "") -> list[tuple[str, float | None]]:
    """Return the numbers of a document, with their places."""
    if isinstance(document, dict | list):
        items = document.items() if isinstance(document, dict) else enumerate(document)
        return [found for key, value in items for found in numbers(value, f"{place}/{key}")]
    return [] if isinstance(document, str) else [(place, document)]


def everything(collector: Served, name: str, other: str, tokens: list[str | None]) -> dict[Any, Any]:
    """Return the views of all requests that the application answers, with all tokens."""
    assert collector.app is not None
    described = {f"{one.method} {one.path}": one for one in OPERATIONS}
    known = {f"{method} {route.path}" for route in collector.app._routes._routes.values() for method in route.handlers}
    assert known >= {*described, *BODIES}
    # Metrics show the number of reports at once, as documented; a proxy blocks them. Reports are what arrives.
    known -= {"GET /metrics", "POST /v1/collections/{id}/reports"}
    reads = sorted(request for request in known if request.startswith("GET "))
    assert {request for request in known if request.split(" ")[0] not in ("GET", "HEAD", "OPTIONS")} == set(BODIES)
    views: dict[Any, Any] = {}
    for request, token in itertools.product(reads, tokens):
        operation = described.get(request)
        always = "?with=OTHER&" if request.endswith("/comparison") else "?"
        stated = [] if operation is None else [each for each in operation.parameters if each.place == "query"]
        queries = ["", *(f"{each.name}={value}" for each in stated for value in PARAMETERS[each.name])]
        for query in queries:
            for accept in ("application/json",) if operation is None else operation.response_types:
                asked = f"{request}{always}{query}"
                views[asked, accept, tokens.index(token)] = view(collector, asked, name, other, token, accept)
    for request in BODIES:
        views[request, "after them"] = view(collector, request, name, other, tokens[0])
    return views


def views_after(url: str, arrivals: int) -> dict[Any, Any]:
    """Return all views of a collection that has released 12 reports, after further arrivals."""
    with served(url) as collector:
        assert collector.app is not None
        collector.app.collector.now = lambda: 1_700_000_000.0
        body = {"mechanism": "rr", "submission": "token", "release_every": 12}
        policy = sf.Uniform(sf.Domain.range(5), 1)
        other, mechanism, _ = collector.create(policy, mechanism="rr")
        assert collector.send(other, mechanism, [1, 2, 3], "other-reports").status == 200
        name, mechanism, _ = collector.create(policy, **body)
        issued = collector.as_admin("POST", f"/v1/collections/{name}/tokens", {"count": 40}).json["tokens"]
        roles = [
            collector.as_admin("POST", f"/v1/collections/{name}/roles", {"role": role}).json["token"]
            for role in ("owner", "reader")
        ]
        for number, token in enumerate(issued[: 12 + arrivals]):
            sent = collector.send(name, mechanism, [number % 5], f"arrival-{number}", token)
            assert sent.status == 200, sent.body
        return everything(collector, name, other, [collector.admin, *roles, None])


@pytest.mark.slow
def test_no_operation_shows_a_number_before_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All routes of the application are asked for the same things, in stores with and without new reports."""
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.0)
    released, waiting, advanced = (views_after(f"sqlite:///{tmp_path}/{n}.db", n) for n in (0, 11, 12))
    assert {request: view for request, view in waiting.items() if view != released[request]} == {}
    changed = {str(request[0]).partition("?")[0] for request in advanced if advanced[request] != released[request]}
    paths = (*PATHS, "/v1/mine", "/v1/collections/{name}/tokens", "/v1/collections/{name}/live")
    assert changed >= {f"GET {path.replace('name', 'id')}" for path in paths}


@pytest.mark.slow
def test_live_streams_advance_by_whole_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.0)
    with served(f"sqlite:///{tmp_path}/collect.db", live_seconds=0.01) as collector:
        name, mechanism, _ = collector.create(release_every=10)
        connection = http.client.HTTPConnection("127.0.0.1", collector.port, timeout=60)
        connection.request("GET", f"/v1/collections/{name}/live")
        stream = connection.getresponse()
        numbers: list[int] = []
        for number in range(20):
            assert collector.send(name, mechanism, [1], f"arrival-{number}").status == 200
        while not numbers or numbers[-1] < 20:
            line = stream.readline()
            if line.startswith(b"data: "):
                numbers.append(json.loads(line[6:])["reports"])
        connection.close()
        assert set(numbers) <= {0, 10, 20}


@pytest.mark.slow
def test_strangers_cannot_time_arrivals_at_public_results(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next step is an hour away, so nothing may change, not even when the survey is closed."""
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.0)
    with served(store_url, public_step=10, public_seconds=3600.0) as collector:
        name, mechanism, _ = collector.create(mechanism="rr")
        paths = [*PATHS, "/", "/v1/collections/{name}/estimate?method=simplex&level=0.9"]
        views: dict[str, list[Any]] = {path: [] for path in paths}
        for number in range(-1, ARRIVALS):
            if number >= 0:
                assert collector.send(name, mechanism, [number % 5], f"arrival-{number}").status == 200
            for path, view in views.items():
                response = collector.ask("GET", path.format(name=name), token="sfr_of-a-stranger")
                assert response.status == 200
                view.append(response.body)
        assert {path: steps(view) for path, view in views.items()} == {path: [] for path in paths}
        assert collector.ask("GET", f"/v1/collections/{name}").json["step"] == 10
        reader = collector.as_admin("POST", f"/v1/collections/{name}/roles", {"role": "reader"}).json["token"]
        for token in (collector.admin, reader):  # people with a role see every report at once
            assert collector.ask("GET", f"/v1/collections/{name}", token=token).json["step"] is None
            for path, key in (("", "reports"), ("/aggregate", "n"), ("/estimate", "reports")):
                assert collector.ask("GET", f"/v1/collections/{name}{path}", token=token).json[key] == ARRIVALS
        assert collector.as_admin("PATCH", f"/v1/collections/{name}", {"state": "closed"}).status == 200
        assert collector.aggregate(name).n == collector.ask("GET", f"/v1/collections/{name}").json["reports"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("ended", [{"state": "closed"}, {"closes": 1}])
def test_no_step_is_smaller_when_a_survey_closes_and_opens_again(
    store_url: str, monkeypatch: pytest.MonkeyPatch, ended: dict[str, Any]
) -> None:
    """Strangers see the difference of two steps, so a step of one report would show this report."""
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.0)
    with served(store_url, public_step=10, public_seconds=0.01) as collector:
        name, mechanism, _ = collector.create(mechanism="rr")
        path = f"/v1/collections/{name}"
        assert collector.send(name, mechanism, [1] * 10, "ten-people").status == 200
        until(lambda: collector.aggregate(name).n == 10)
        for number in range(9):
            assert collector.send(name, mechanism, [2], f"one-person-{number}").status == 200
            for change in (ended, {"state": "open", "closes": None}):
                assert collector.as_admin("PATCH", path, change).status == 200
                time.sleep(0.05)  # several intervals
                assert collector.aggregate(name).n == collector.ask("GET", path).json["reports"] == 10
        assert collector.as_admin("GET", f"{path}/aggregate").json["n"] == 19
        assert collector.send(name, mechanism, [2], "the-tenth-person").status == 200
        assert collector.as_admin("PATCH", path, ended).status == 200  # a whole step is shown after the end
        until(lambda: collector.aggregate(name).n == 20)


@pytest.mark.slow
def test_public_results_advance_by_steps_and_undo_removes_reports(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.0)
    with served(store_url, public_step=10, public_seconds=0.01) as collector:
        name, mechanism, _ = collector.create(mechanism="rr")
        shown = {0}
        for number in range(ARRIVALS):
            assert collector.send(name, mechanism, [1], f"arrival-{number}").status == 200
            shown.add(collector.aggregate(name).n)
        until(lambda: collector.aggregate(name).n > ARRIVALS - 10)
        shown.add(collector.aggregate(name).n)
        assert all(after - before >= 10 for before, after in pairwise(sorted(shown)))
        # An undo removes reports from the counts that everyone sees.
        assert collector.send(name, mechanism, [2] * 200, "a-flood-of-200").status == 200
        until(lambda: collector.aggregate(name).n == ARRIVALS + 200)
        (day,) = collector.as_admin("GET", f"/v1/collections/{name}/days").json["days"]
        assert collector.as_admin("POST", f"/v1/collections/{name}/undo", {"day": day["day"]}).status == 200
        assert collector.aggregate(name).n == 0
        assert collector.ask("GET", f"/v1/collections/{name}").json["reports"] == 0


@pytest.mark.slow
def test_an_undo_shows_no_step_that_is_smaller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.0)
    with served(f"sqlite:///{tmp_path}/collect.db", public_step=10, public_seconds=3600.0) as collector:
        name, mechanism, _ = collector.create(mechanism="rr")
        assert collector.app is not None
        now = collector.app.collector.now
        collector.app.collector.now = lambda: now() - 86_400
        assert collector.send(name, mechanism, [1], "one-person-yesterday").status == 200
        collector.app.collector.now = now
        assert collector.send(name, mechanism, [2] * 200, "a-flood-of-200").status == 200
        day = collector.as_admin("GET", f"/v1/collections/{name}/days").json["days"][-1]["day"]
        assert collector.as_admin("POST", f"/v1/collections/{name}/undo", {"day": day}).json["reports"] == 200
        assert collector.as_admin("GET", f"/v1/collections/{name}/aggregate").json["n"] == 1
        assert collector.aggregate(name).n == 0


@pytest.mark.slow
def test_public_results_of_waves_advance_by_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.0)
    with served(f"sqlite:///{tmp_path}/collect.db", public_step=13, public_seconds=0.01) as collector:
        policy = sf.Uniform(sf.Domain.range(3), 1)
        lifetime = sf.Uniform(sf.Domain.range(3), 2).to_dict()
        name, mechanism, _ = collector.create(policy, lifetime=lifetime, waves={"count": 3, "days": None})
        report = encode_batch(mechanism, sf.privatize(mechanism, [1] * 12))
        headers = {"Content-Type": BATCH_TYPE, "Idempotency-Key": "twelve-people"}
        sent = collector.ask("POST", f"/v1/collections/{name}/reports?wave=0", report, headers=headers)
        assert sent.status == 200, sent.body
        for path, key in (("/aggregate", "n"), ("/estimate", "reports"), ("/waves", "reports")):
            assert collector.ask("GET", f"/v1/collections/{name}{path}").json[key] == 0
            assert collector.as_admin("GET", f"/v1/collections/{name}{path}").json[key] == 12
        more = encode_batch(mechanism, sf.privatize(mechanism, [1]))
        headers = {"Content-Type": BATCH_TYPE, "Idempotency-Key": "the-thirteenth-person"}
        assert collector.ask("POST", f"/v1/collections/{name}/reports?wave=0", more, headers=headers).status == 200
        assert collector.as_admin("PATCH", f"/v1/collections/{name}", {"state": "closed"}).status == 200
        until(lambda: collector.ask("GET", f"/v1/collections/{name}/aggregate").json["n"] == 13)
        for path, key in (("/aggregate", "n"), ("/estimate", "reports"), ("/waves", "reports")):
            assert collector.ask("GET", f"/v1/collections/{name}{path}").json[key] == 13


@pytest.mark.slow
def test_each_wave_advances_by_steps(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A late report for an earlier wave waits for its own step, and does not delay the present wave."""
    monkeypatch.setattr("sfumato.server.api.collections._FRESH_SECONDS", 0.0)
    with served(store_url, public_step=10, public_seconds=0.01) as collector:
        policy = sf.Uniform(sf.Domain.range(3), 1)
        lifetime = sf.Uniform(sf.Domain.range(3), 2).to_dict()
        name, mechanism, _ = collector.create(policy, lifetime=lifetime, waves={"count": 4, "days": None})
        path = f"/v1/collections/{name}"

        def send(wave: int, people: int, batch: str) -> None:
            reports = encode_batch(mechanism, sf.privatize(mechanism, [1] * people))
            headers = {"Content-Type": BATCH_TYPE, "Idempotency-Key": batch}
            sent = collector.ask("POST", f"{path}/reports?wave={wave}", reports, headers=headers)
            assert sent.status == 200, sent.body

        def shown() -> list[int]:
            return [collector.ask("GET", f"{path}/aggregate?wave={wave}").json["n"] for wave in range(3)]

        def open_wave(wave: int) -> None:
            assert collector.as_admin("PATCH", path, {"wave": wave}).status == 200

        send(0, 10, "ten-people")
        until(lambda: shown() == [10, 0, 0])
        open_wave(1)
        send(0, 1, "one-late-report")
        send(1, 9, "nine-people")
        time.sleep(0.5)  # many intervals
        assert shown() == [10, 0, 0]
        send(1, 1, "the-tenth-person")
        until(lambda: shown() == [10, 10, 0])
        assert collector.ask("GET", path).json["reports"] == 20
        waves = collector.ask("GET", f"{path}/waves").json["waves"]
        assert [(row["wave"], row["reports"]) for row in waves] == [(0, 10), (1, 10)]
        # A wave that accepts no more reports, and a survey that is closed, show no smaller step either.
        send(1, 2, "two-people")
        open_wave(2)
        send(2, 3, "three-people")
        time.sleep(0.5)
        assert shown() == [10, 10, 0]
        assert collector.as_admin("PATCH", path, {"state": "closed"}).status == 200
        time.sleep(0.5)
        assert shown() == [10, 10, 0]
        everything = [collector.as_admin("GET", f"{path}/aggregate?wave={wave}").json["n"] for wave in range(3)]
        assert everything == [11, 12, 3]


def test_a_group_has_at_least_two_reports_and_waves_have_none(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db") as collector:
        body = {"title": "t", "policy": sf.Uniform(sf.Domain.range(3), 1).to_dict()}
        assert collector.as_admin("POST", "/v1/collections", {**body, "release_every": 1}).status in (400, 422)
        name = collector.as_admin("POST", "/v1/collections", {**body, "release_every": 5}).json["collection"]["id"]
        changed = collector.as_admin("PATCH", f"/v1/collections/{name}", {"release_every": 2})
        assert changed.status in (400, 422)  # it is part of what participants were promised
