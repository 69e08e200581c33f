"""Two administrators at once: what one says is not lost to the other."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.collectors import POLICY, Served, served

pytestmark = pytest.mark.component


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Served]:
    with served(f"sqlite:///{tmp_path}/collect.db") as running:
        yield running


def test_of_two_changes_at_once_neither_is_lost(collector: Served) -> None:
    body = {"title": "before", "policy": POLICY.to_dict(), "mechanism": "high-low-subset"}
    created = collector.ask("POST", "/v1/collections", body, collector.admin)
    path = f"/v1/collections/{created.json['collection']['id']}"
    with ThreadPoolExecutor(2) as pool:
        for round_ in range(20):
            changes = {"state": "closed"}, {"label": f"round {round_}"}
            responses = list(pool.map(lambda change: collector.ask("PATCH", path, change, collector.admin), changes))
            assert [response.status for response in responses] == [200, 200]
            # The collection may be shown as it was a second ago; a change shows it as it is.
            now = collector.ask("PATCH", path, {}, collector.admin).json
            (mine,) = collector.ask("GET", "/v1/mine", token=collector.admin).json["collections"]
            assert (now["state"], mine["label"]) == ("closed", f"round {round_}")
            assert collector.ask("PATCH", path, {"state": "open"}, collector.admin).status == 200


def test_reports_are_not_kept_longer_than_participants_were_promised(collector: Served) -> None:
    name, mechanism, _ = collector.create(mechanism="rr", keep_days=30)
    path = f"/v1/collections/{name}"
    assert collector.send(name, mechanism, [0], "one-report").status == 200
    for days in (31, None):
        rejected = collector.as_admin("PATCH", path, {"keep_days": days, "label": "longer"})
        assert rejected.reason == "conflict"
        assert "keep_days can only be lowered" in rejected.json["error"]["message"]
    assert collector.as_admin("GET", path).json["keep_days"] == 30
    for days in (30, 7, 0):
        assert collector.as_admin("PATCH", path, {"keep_days": days}).json["keep_days"] == days
    assert collector.as_admin("PATCH", path, {"keep_days": 1}).reason == "conflict"
    forever, _, _ = collector.create(mechanism="rr")
    assert collector.as_admin("PATCH", f"/v1/collections/{forever}", {"keep_days": 36_500}).json["keep_days"] == 36_500
    # Before it opens, a collection has made no promise to anyone.
    later, _, _ = collector.create(mechanism="rr", keep_days=0, opens=2**32)
    for days in (30, None, 7):
        assert collector.as_admin("PATCH", f"/v1/collections/{later}", {"keep_days": days}).json["keep_days"] == days


def test_what_was_archived_stays_so(collector: Served) -> None:
    body = {"title": "old", "policy": POLICY.to_dict(), "mechanism": "high-low-subset"}
    created = collector.ask("POST", "/v1/collections", body, collector.admin)
    path = f"/v1/collections/{created.json['collection']['id']}"
    for state in ("closed", "archived"):
        assert collector.ask("PATCH", path, {"state": state}, collector.admin).status == 200
    assert collector.ask("PATCH", path, {"state": "open"}, collector.admin).reason == "not-open"
    assert collector.ask("PATCH", path, {"listed": False}, collector.admin).json["state"] == "archived"
