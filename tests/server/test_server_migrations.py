"""Migrations: released steps never change, stores of earlier commits upgrade, and other schemas are refused."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

import sfumato as sf
from sfumato.server.store import open_store
from sfumato.server.store.base import Store, Unavailable
from sfumato.server.store.migrations import (
    MIGRATIONS,
    POSTGRESQL,
    SQLITE,
    Column,
    differences,
    expected_columns,
    fingerprint,
    steps,
)
from sfumato.server.store.records import METADATA
from support.collectors import served

STORED = Path(__file__).parents[1] / "stored"

#: The digest of every released step. Append one line per new step, and never change a line.
RELEASED = (
    "a33d74b1ab99579f9e5fa26b5e4fc148",  # 0: first
    "9481e4001ad62a7feeaca64ed90b4dd0",  # 1: question
    "82fa517a16e97525be0c561edf75c7bf",  # 2: digests
    "9c1ba341a99768c75c1ff3f09146a2ec",  # 3: identity
    "447962ea8e7453163f5aa824893082cb",  # 4: roles
    "494519667077384d5317e108dba0d2bb",  # 5: releases
    "57255a49c4678ba3366ab1dba465b965",  # 6: presentation
    "ae121399b8f174e66d5df78e32479575",  # 7: grantors
    "e1f8966436fe062918b00bfc73c1dff4",  # 8: sorted tokens
    "e0a150ce9e56dec88e7a758ffdc13675",  # 9: no samples
)


def test_released_steps_never_change() -> None:
    assert [migration.digest() for migration in MIGRATIONS] == list(RELEASED)


def test_the_first_two_steps_are_those_of_stores_without_digests() -> None:
    """The statements of both databases, as they were before one list of steps served both."""
    question = "9481e4001ad62a7feeaca64ed90b4dd085dc3ed9850313ebe9f8a6d0238cbd27"
    first = {
        "sqlite": "42ec9afbda42a259b83d0c6f72d3229f2a8ffb8ae71d3b7de73942fa6833066e",
        "postgresql": "18f1e7dddb2160bc6299003b98f63b3fddba1fdf8b86a30860ef4b5443ec936d",
    }
    for name, types in (("sqlite", SQLITE), ("postgresql", POSTGRESQL)):
        statements = ["\n".join(" ".join(sql.split()) for sql in step) for step in steps(types)[:2]]
        assert [hashlib.sha256(step.encode()).hexdigest() for step in statements] == [first[name], question]


# -- stores of earlier commits -------------------------------------------------------------------------------


def restore_dump(name: str, url: str) -> None:
    """Execute a stored dump in an empty database."""
    script = (STORED / name).read_text(encoding="utf-8")
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            database.executescript(script)
        return
    import psycopg

    with psycopg.connect(url, autocommit=True) as database:
        database.execute(script.encode())


@pytest.mark.slow
@pytest.mark.parametrize("step", [2])
def test_a_store_of_an_earlier_commit_upgrades_and_counts_on(store_url: str, step: int) -> None:
    kind = store_url.partition(":")[0]
    name = f"store-step-{step}-{kind}"
    restore_dump(f"{name}.sql", store_url)
    document = json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))
    earlier = open_store(store_url, migrate=False)
    with pytest.raises(Unavailable, match=rf"earlier release \({step} of {len(MIGRATIONS)} migrations\)"):
        earlier.check_schema()
    earlier.close_all()
    with served(store_url) as collector:
        collector.admin = document["admin_token"]
        for entry in document["collections"]:
            path = f"/v1/collections/{entry['id']}"
            assert collector.as_admin("GET", f"{path}/aggregate").json == entry["aggregate"]
            mechanism = sf.mechanism_from_spec(collector.ask("GET", path).json["mechanism"])
            tokens = entry["tokens"] or [entry["key"]] * len(entry["sent"])
            for sent, token in zip(entry["sent"], tokens, strict=False):  # known, and not counted again
                batch = f"{sent['batch']}-0"  # the client numbers the parts of what it sends
                assert collector.send(entry["id"], mechanism, sent["reports"], batch, token).status == 200
            assert collector.as_admin("GET", f"{path}/aggregate").json == entry["aggregate"]
            new = collector.send(entry["id"], mechanism, entry["sent"][0]["reports"][:1], "a-new-batch", tokens[-1])
            assert new.status == 200
            assert collector.as_admin("GET", f"{path}/aggregate").json["n"] == entry["aggregate"]["n"] + 1
        (mean,) = collector.ask("GET", f"/v1/collections/{document['collections'][2]['id']}/estimate").json["answers"]
        assert mean["answer"] == "mean"
    upgraded = open_store(store_url, migrate=False)
    upgraded.check_schema()
    assert recorded(upgraded) == list(enumerate(RELEASED))
    upgraded.close_all()


def test_presentations_leave_the_metadata_that_lists_decode(store_url: str) -> None:
    """The one step that changes stored values. The title has a character that not every type of PostgreSQL takes."""
    if store_url.startswith("sqlite"):
        Path(store_url.removeprefix("sqlite:///")).touch()
    shown = {"ending": 'The end of ,"presentation": "null"', "background": {"shapes": [{"rings": [[[0, 1], [2, 3]]]}]}}
    metadata = {"title": '\0 é ,"presentation":', "listed": True, "keep_days": None}
    store = open_store(store_url, migrate=False)
    with store._transaction() as execute:
        execute(store.sql.create_migrations)
        for step, statements in enumerate(store.migrations[:6]):
            for statement in statements:
                execute(statement)
            execute(store.sql.add_migration, (step,))
        for name, presentation in (("plain", None), ("map", shown)):
            about = msgspec.json.encode({**metadata, "label": name, "presentation": presentation}).decode()
            columns = "id, created, policy, mechanism, certificate, about"
            statement = f"INSERT INTO collections ({columns}) VALUES (?, 0, '{{}}', '{{}}', '{{}}', ?)"
            execute(statement.replace("?", store.sql.mark), (name, about))
    store.migrate()
    plain, map_ = store.collection("plain"), store.collection("map")
    assert plain is not None
    assert map_ is not None
    assert plain.presentation is None
    assert json.loads(map_.presentation or "") == shown
    for record in (plain, map_):
        assert json.loads(record.metadata) == {**metadata, "label": record.id}
        METADATA.decode(record.metadata)
    store.close_all()


def recorded(store: Store) -> list[tuple[int, str]]:
    with store._connected() as execute:
        return [tuple(row) for row in execute(store.sql.migrations).fetchall()]


# -- fingerprints --------------------------------------------------------------------------------------------


def test_both_databases_have_one_fingerprint(store_url: str) -> None:
    store = open_store(store_url)
    with store._connected() as execute:
        columns = store.columns(execute)
    assert fingerprint(columns) == fingerprint(expected_columns())
    assert sorted(columns) == sorted(expected_columns())
    store.migrate()  # again changes nothing
    store.check_schema()
    store.close_all()


CHANGES: dict[str, Any] = {
    "ALTER TABLE raw RENAME TO other": "table raw is missing",
    "ALTER TABLE tokens RENAME COLUMN spent TO used": "column tokens.spent is missing or has another type, "
    "column tokens.used is unknown",
    "ALTER TABLE counts ADD COLUMN more TEXT": "column counts.more is unknown",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_store_with_other_tables_is_refused_and_the_message_names_them(store_url: str, change: str) -> None:
    store = open_store(store_url)
    with store._connected() as execute:
        execute(change)
    for check in (store.check_schema, store.migrate):
        with pytest.raises(Unavailable, match=CHANGES[change]):
            check()
    store.close_all()


def test_tables_of_other_applications_are_left_alone(store_url: str) -> None:
    store = open_store(store_url)
    with store._connected() as execute:
        execute("CREATE TABLE of_a_backup_tool (number BIGINT)")
    store.check_schema()
    store.migrate()
    store.close_all()


def test_a_store_that_ran_another_step_under_a_number_is_refused(store_url: str) -> None:
    store = open_store(store_url)
    with store._transaction() as execute:
        execute(store.sql.record_digest, ("0" * 32, 1))
    with pytest.raises(Unavailable, match=r"another migration 1 than this release has \(question\)"):
        store.migrate()
    store.close_all()


def test_a_column_of_another_type_is_a_difference() -> None:
    columns = [*expected_columns()]
    place = columns.index(Column("progress", "reports", "number"))
    columns[place] = Column("progress", "reports", "text")
    assert differences(columns) == ["column progress.reports is missing or has another type"]


def test_an_empty_database_has_no_schema(store_url: str) -> None:
    if store_url.startswith("sqlite"):
        Path(store_url.removeprefix("sqlite:///")).touch()
    store = open_store(store_url, migrate=False)
    with pytest.raises(Unavailable, match=r"earlier release|there is no store at"):
        store.check_schema()
    store.close_all()
