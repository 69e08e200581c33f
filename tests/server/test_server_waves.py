"""A collection with waves counts each device once per wave, and its results are those of the library."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, PolicyViolated
from sfumato.mechanisms import MemoizedMechanism, RandomizedResponse
from sfumato.server.store.records import Schedule
from support.collectors import Served, served

DAY = 86_400
DOMAIN = sf.Domain(["well", "cold", "flu"])
FIRST, LIFETIME = sf.Uniform(DOMAIN, 1), sf.Uniform(DOMAIN, 2)
WEEKLY = MemoizedMechanism.for_policies(RandomizedResponse(DOMAIN, 1), FIRST, LIFETIME)
#: Reports are sets of values, whose counts do not sum to the number of reports; the counts fill more than one page.
SETS = MemoizedMechanism.for_policies(
    sf.mechanisms.SubsetSelection(sf.Domain.range(200), 1),
    sf.Uniform(sf.Domain.range(200), 1),
    sf.Uniform(sf.Domain.range(200), 2),
)


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("waves")
    with served(f"sqlite:///{folder}/collect.db") as running:
        yield running


def at(collector: Served, seconds: float) -> None:
    """Set the clock that dates reports."""
    assert collector.app is not None
    assert collector.app.collector is not None
    collector.app.collector.now = lambda: seconds


def create(collector: Served, mechanism: sf.mechanisms.Mechanism = WEEKLY, **about: Any) -> str:
    """A collection of three weekly waves that starts at the time 0; its id."""
    waves = about.pop("waves", {"count": 3, "days": 7, "start": 0})
    policy = about.pop("policy", sf.Uniform(mechanism.domain, 1))
    settings = {"submission": "open", "mechanism": mechanism.spec, "waves": waves, **about}
    return collector.create(policy, **settings)[0]


def send(
    collector: Served, name: str, report: int | str, batch: str, wave: int | None, token: str | None = None
) -> Any:
    body = {"batch": batch, "report": report} | ({} if wave is None else {"wave": wave})
    return collector.ask("POST", f"/v1/collections/{name}/reports", body, token)


def reports_of(mechanism: MemoizedMechanism, n: int, seed: int) -> Any:
    values = mechanism.domain.decode(np.arange(n) % len(mechanism.domain))
    return sf.privatize(mechanism, values, sf.InsecureSeeded(seed))


def test_the_wave_follows_the_clock() -> None:
    weekly = Schedule(3, 7, start=1000)
    week = 7 * DAY
    times = [999, 1000, 1000 + week - 1, 1000 + week, 1000 + 3 * week - 1, 1000 + 3 * week]
    assert [weekly.current(time) for time in times] == [None, 0, 0, 1, 2, None]
    ends = [1000, 1000 + week, 1000 + week, 1000 + 2 * week, 1000 + 3 * week, None]
    assert [weekly.next(time) for time in times] == ends
    # A report is counted during its wave and the next one.
    assert [[weekly.accepts(wave, time) for wave in range(4)] for time in times] == [
        [False] * 4,
        [True, False, False, False],
        [True, False, False, False],
        [True, True, False, False],
        [False, True, True, False],
        [False, False, True, False],
    ]
    manual = Schedule(2, None, start=0, opened=1)
    assert (manual.current(5), manual.next(5), manual.accepts(0, 5)) == (1, None, True)


@pytest.mark.slow
def test_counts_and_estimates_are_per_wave(store_url: str) -> None:
    with served(store_url) as collector:
        for mechanism in (WEEKLY, SETS):
            name = create(collector, mechanism)
            path = f"/v1/collections/{name}"
            expected = {}
            for wave in (0, 1, 2):
                at(collector, wave * 7 * DAY + 5)
                described = collector.ask("GET", path).json["waves"]
                assert (described["current"], described["next"]) == (wave, (wave + 1) * 7 * DAY)
                reports = reports_of(mechanism, 300 + wave, wave)
                expected[wave] = sf.aggregate(mechanism, reports)
                with collector.client() as client:
                    for _ in range(2):  # counted once
                        client.submit(name, reports, batch=f"wave-{wave}", wave=wave)
                    # The last wave with reports is the default.
                    for counts in (client.aggregate(name), client.aggregate(name, wave=wave)):
                        assert (counts.n, counts.counts.tolist()) == (300 + wave, expected[wave].counts.tolist())
            assert collector.ask("GET", path).json["reports"] == 903
            result = sf.estimate_waves(mechanism, expected)
            one = collector.ask("GET", f"{path}/estimate?wave=1").json
            assert (one["wave"], one["reports"]) == (1, 301)
            np.testing.assert_allclose([row["frequency"] for row in one["rows"]], result[1].frequencies)
            body = collector.ask("GET", f"{path}/waves?level=0.9").json
            assert [(each["wave"], each["reports"]) for each in body["waves"]] == [(0, 300), (1, 301), (2, 302)]
            for each in body["waves"]:
                limits = result[each["wave"]].interval(0.9)
                np.testing.assert_allclose([[row["low"], row["high"]] for row in each["rows"]], np.transpose(limits))
            assert [(each["first"], each["second"]) for each in body["changes"]] == [(0, 1), (1, 2), (0, 2)]
            for each in body["changes"]:
                change = result.change(each["first"], each["second"])
                assert not change.is_linked
                np.testing.assert_allclose(
                    [[row["change"], row["low"], row["high"]] for row in each["rows"]],
                    np.column_stack([[change[label].value for label in change], *change.interval(0.9)]),
                )


def test_a_report_counts_in_its_wave_or_just_after_it(collector: Served) -> None:
    name = create(collector)
    at(collector, 5.0)
    assert send(collector, name, 1, "in-wave-0", 0).status == 200
    for wave, reason in ((None, "invalid"), (3, "invalid"), (1, "not-open")):
        assert send(collector, name, 1, "too-early", wave).reason == reason
    assert send(collector, name, 1, "in-wave-0", 1).reason == "conflict"
    assert send(collector, name, 2, "in-wave-0", 0).reason == "conflict"
    at(collector, 7.5 * DAY)
    assert send(collector, name, 1, "late-wave-0", 0).status == 200
    assert send(collector, name, 2, "in-wave-1", 1).status == 200
    at(collector, 14.5 * DAY)
    late = send(collector, name, 1, "later-wave-0", 0)
    assert (late.reason, late.json["error"]["batch"]) == ("not-open", "later-wave-0")
    # A batch that was counted gets its receipt at any time.
    assert send(collector, name, 1, "in-wave-0", 0).json == {"batch": "in-wave-0", "reports": 1}
    at(collector, 99 * DAY)
    assert send(collector, name, 1, "in-wave-2", 2).reason == "not-open"
    waves = collector.ask("GET", f"/v1/collections/{name}/waves").json["waves"]
    assert [(each["wave"], each["reports"]) for each in waves] == [(0, 2), (1, 1)]


def test_an_administrator_opens_waves(collector: Served) -> None:
    name = create(collector, waves={"count": 3, "days": None})
    path = f"/v1/collections/{name}"
    assert send(collector, name, 0, "first-one", 0).status == 200
    assert collector.as_admin("PATCH", path, {"wave": 1}).json["waves"]["current"] == 1
    assert collector.ask("GET", path).json["waves"] | {"start": 0} == {
        "count": 3, "days": None, "start": 0, "current": 1, "next": None,
    }  # fmt: skip
    for wave in (0, 1, 3):
        assert collector.as_admin("PATCH", path, {"wave": wave}).reason == "invalid"
    assert collector.as_admin("PATCH", f"/v1/collections/{create(collector)}", {"wave": 1}).reason == "invalid"
    assert collector.ask("PATCH", path, {"wave": 2}).reason == "unauthorized"


def test_a_copy_has_the_same_waves_from_the_first_on(collector: Served) -> None:
    at(collector, 9 * DAY)
    name = create(collector)
    copy = collector.as_admin("POST", f"/v1/collections/{name}/copies", {}).json["collection"]
    expected = {"count": 3, "days": 7, "start": 9 * DAY, "current": 0, "next": 16 * DAY}
    assert (copy["waves"], copy["mechanism_hash"]) == (expected, WEEKLY.hash)


def test_a_one_time_token_allows_one_report_per_wave(collector: Served) -> None:
    name = create(collector, submission="token", waves={"count": 2, "days": None})
    path = f"/v1/collections/{name}"
    (token,) = collector.as_admin("POST", f"{path}/tokens", {"count": 1}).json["tokens"]
    assert send(collector, name, 0, "wave-zero", 0, token).status == 200
    assert send(collector, name, 0, "wave-zero-again", 0, token).reason == "token-spent"
    collector.as_admin("PATCH", path, {"wave": 1})
    assert send(collector, name, 0, "wave-one", 1, token).status == 200
    assert send(collector, name, 0, "wave-one-again", 1, token).reason == "token-spent"
    assert send(collector, name, 0, "other-token", 1, "sft_unknown").reason == "token-unknown"
    many = create(collector, submission="token", waves={"count": 400, "days": 1})
    assert collector.as_admin("POST", f"/v1/collections/{many}/tokens", {"count": 251}).reason == "invalid"


@pytest.mark.slow
def test_the_collector_designs_and_audits_both_levels(collector: Served) -> None:
    about = {"lifetime": LIFETIME.to_dict(), "max_changes": 2, "waves": {"count": 3}, "submission": "open"}
    _, mechanism, _ = collector.create(FIRST, **about)
    assert isinstance(mechanism, MemoizedMechanism)
    assert (mechanism.lifetime, mechanism.max_changes) == (LIFETIME, 2)
    assert sf.audit(mechanism, FIRST).holds
    too_weak = {**WEEKLY.spec, "parameters": {**WEEKLY.parameters(), "lifetime": FIRST.to_dict()["policy"]}}
    base = {"title": "weekly", "policy": FIRST.to_dict(), "submission": "open"}
    for wrong in (
        {"mechanism": too_weak},
        {"waves": {"count": 3}},
        {"mechanism": RandomizedResponse(DOMAIN, 1).spec, "waves": {"count": 3}},
        {"mechanism": WEEKLY.spec, "lifetime": LIFETIME.to_dict()},
        {"max_changes": 3},
        {"lifetime": sf.Uniform(DOMAIN, "1/2").to_dict()},
        {"mechanism": WEEKLY.spec, "waves": {"count": 3}, "keep_days": 30},
        {"mechanism": WEEKLY.spec, "waves": {"count": 0}},
    ):
        assert collector.as_admin("POST", "/v1/collections", base | wrong).reason in ("invalid", "malformed"), wrong


def test_a_collection_without_waves_has_none(collector: Served) -> None:
    name, mechanism, _ = collector.create(FIRST, mechanism="rr", submission="open")
    path = f"/v1/collections/{name}"
    assert collector.ask("GET", path).json["waves"] is None
    assert collector.ask("GET", f"{path}/waves").reason == "invalid"
    assert collector.ask("GET", f"{path}/estimate?wave=0").reason == "invalid"
    assert send(collector, name, 1, "with-a-wave", 0).reason == "invalid"
    assert collector.send(name, mechanism, np.array([0, 1]), "without-one").status == 200
    assert collector.ask("GET", f"{path}/estimate").json["wave"] is None


def test_waves_before_the_first_report_are_empty(collector: Served) -> None:
    name = create(collector)
    body = collector.ask("GET", f"/v1/collections/{name}/waves").json
    assert (body["reports"], body["waves"], body["changes"]) == (0, [], [])
    assert collector.ask("GET", f"/v1/collections/{name}/estimate").json["rows"] == []
    for wrong in ("method=bayes", "level=2"):
        assert collector.ask("GET", f"/v1/collections/{name}/waves?{wrong}").reason == "invalid"


def test_waves_are_a_file(collector: Served) -> None:
    name = create(collector)
    at(collector, 5.0)
    with collector.client() as client:
        client.submit(name, reports_of(WEEKLY, 60, 3), wave=0)
    headers = {"Accept": "application/vnd.apache.parquet"}
    table = pq.read_table(io.BytesIO(collector.ask("GET", f"/v1/collections/{name}/waves", headers=headers).body))
    assert table["value"].to_pylist() == list(DOMAIN.labels)


# -- the Python client --------------------------------------------------------------------------------------------


def test_a_device_answers_each_wave_once(collector: Served, tmp_path: Path) -> None:
    name = create(collector)
    file = tmp_path / "ledger.json"
    sf.Ledger(LIFETIME).save(file)
    with collector.client() as client:
        for wave in range(2):
            at(collector, wave * 7 * DAY + 9)
            first = client.answer_wave(name, "flu", file, policy=FIRST, lifetime=LIFETIME)
            again = client.answer_wave(name, "well", file, policy=FIRST, lifetime=LIFETIME)
            assert again == first  # a repeated call sends the same report
        for wave in range(2):
            assert client.aggregate(name, wave=wave).n == 1
        at(collector, 99 * DAY)
        with pytest.raises(InvalidInput, match="have a current wave"):
            client.answer_wave(name, "flu", file, policy=FIRST, lifetime=LIFETIME)
    ledger = sf.Ledger.load(file)
    assert ledger.total == sf.Epsilon(2)
    assert len({ledger.batch_name(name, wave) for wave in range(2)}) == 2


def test_a_device_audits_the_lifetime_level(collector: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    name = create(collector)
    weak = MemoizedMechanism(WEEKLY.single, WEEKLY.permanent, sf.Uniform(DOMAIN, "3/2"))
    with collector.client() as client:
        described = client._json("GET", f"/v1/collections/{name}")
        changed = described | {"mechanism": weak.spec, "mechanism_hash": weak.hash}
        monkeypatch.setattr(client, "_json", lambda *_: changed)
        with pytest.raises(PolicyViolated):
            client.collection(name)


def swapped(what: str) -> dict[str, Any]:
    """Fields of a response that a proxy changes so that they agree with each other."""
    weak, lifetime = sf.Uniform(DOMAIN, 3), sf.Uniform(DOMAIN, 4)
    single = RandomizedResponse(DOMAIN, 3)
    mechanism = {
        "policy": MemoizedMechanism.for_policies(single, weak, lifetime),
        "mechanism": MemoizedMechanism.for_policies(single, weak, lifetime),
        "lifetime": MemoizedMechanism.for_policies(WEEKLY.single, FIRST, lifetime),
        "changes": MemoizedMechanism(WEEKLY.single, WEEKLY.permanent, LIFETIME, max_changes=2),
        "id": WEEKLY,
    }[what]
    changed: dict[str, Any] = {"mechanism": mechanism.spec, "mechanism_hash": mechanism.hash}
    further: dict[str, dict[str, Any]] = {"policy": {"policy": weak.to_dict()}, "id": {"id": "another1"}}
    return changed | further.get(what, {})


#: On the first request nothing is known with which the number of changes could be compared; the budget limits them.
SWAPS = [(what, turn) for what in ("policy", "mechanism", "lifetime", "id") for turn in (0, 1)] + [("changes", 1)]


@pytest.mark.parametrize(("what", "turn"), SWAPS)
def test_nothing_is_drawn_or_sent_under_terms_that_were_swapped(
    collector: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, turn: int
) -> None:
    """A proxy swaps the terms in the response to one request, the first one or a later one."""
    at(collector, 9)
    name, file = create(collector), tmp_path / "ledger.json"
    sf.Ledger().save(file)
    before = file.read_bytes()
    with collector.client() as client:
        client._audits = what != "mechanism"  # an audit that the application makes cannot see this response
        ask, responses = client._json, 0

        def answered(method: str, path: str, document: Any = None, **rest: Any) -> Any:
            nonlocal responses
            responses += 1
            return ask(method, path, document, **rest) | (swapped(what) if responses == turn + 1 else {})

        monkeypatch.setattr(client, "_json", answered)
        for _ in range(turn):
            client.collection(name)  # the application looks at the terms before it asks
        with pytest.raises((InvalidInput, PolicyViolated)):
            client.answer_wave(name, "flu", file, policy=FIRST, lifetime=LIFETIME)
    assert file.read_bytes() == before
    assert collector.ask("GET", f"/v1/collections/{name}").json["reports"] == 0
