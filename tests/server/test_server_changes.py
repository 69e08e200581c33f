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


def test_what_was_archived_stays_so(collector: Served) -> None:
    body = {"title": "old", "policy": POLICY.to_dict(), "mechanism": "high-low-subset"}
    created = collector.ask("POST", "/v1/collections", body, collector.admin)
    path = f"/v1/collections/{created.json['collection']['id']}"
    for state in ("closed", "archived"):
        assert collector.ask("PATCH", path, {"state": state}, collector.admin).status == 200
    assert collector.ask("PATCH", path, {"state": "open"}, collector.admin).reason == "not-open"
    assert collector.ask("PATCH", path, {"listed": False}, collector.admin).json["state"] == "archived"
