"""Nothing that remains in a store links a one-time token to a report: its files are replayed as a thief would do it."""

from __future__ import annotations

import re
import sqlite3
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato._core import canonical_json
from sfumato.collecting.batch import decode_batch
from sfumato.server.api.tokens import token_hash
from sfumato.server.jobs.retention import shuffle_old_reports
from sfumato.server.store import copies, open_store
from sfumato.server.store.base import Store
from sfumato.server.store.migrations import MIGRATIONS
from sfumato.server.store.records import Record, Submission
from support.collectors import Postgres, Served, at_the_beginning, served, until
from support.traces import heap_rows, indexed_pages, linked

PEOPLE = 40
MECHANISM = sf.mechanisms.RandomizedResponse(sf.Domain.range(200), 1)
COLLECTION = "a" * 16


def answers(collector: Served, keep_days: int | None) -> dict[bytes, int]:
    """Forty people send one report each; what a thief wants to know."""
    name, mechanism, _ = collector.create(
        sf.Uniform(MECHANISM.domain, 1), mechanism="rr", submission="token", keep_days=keep_days
    )
    tokens = collector.as_admin("POST", f"/v1/collections/{name}/tokens", {"count": PEOPLE}).json["tokens"]
    truth = {}
    for number, token in enumerate(tokens):
        report = (37 * number) % 200
        assert collector.send(name, mechanism, [report], f"of-person-{number}", token).status == 200
        truth[token_hash(token)] = report
    return truth


def hits(path: Path, truth: dict[bytes, int]) -> int:
    """How many of forty people the files give away."""
    links = linked(path)
    return sum(links.get(token) == report for token, report in truth.items())


@pytest.mark.slow
def test_the_replay_finds_every_person_in_a_log_that_is_not_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The power of the tests below."""
    monkeypatch.setattr(Store, "erase_seconds", 3600.0)
    path = tmp_path / "collect.db"
    with served(f"sqlite:///{path}") as collector:
        truth = answers(collector, 0)
        assert hits(path, truth) >= PEOPLE - 1  # the start may erase while the first report is counted
    assert hits(path, truth) == 0  # emptied at the stop


@pytest.mark.slow
@pytest.mark.parametrize("keep_days", [None, 0, 1])
def test_files_of_a_running_store_link_no_token_to_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_days: int | None
) -> None:
    monkeypatch.setattr(Store, "erase_seconds", 0.1, raising=False)
    path = tmp_path / "collect.db"
    with served(f"sqlite:///{path}") as collector:
        truth = answers(collector, keep_days)
        until(lambda: hits(path, truth) == 0)
        until(lambda: len(indexed_pages(path)) < 4)
        age = re.search(r"^sfumato_store_trace_age_seconds (\S+)", collector.ask("GET", "/metrics").body.decode(), re.M)
        assert age is not None


# -- below the service ---------------------------------------------------------------------------------------


def open_with_tokens(url: str, tokens: int) -> Store:
    store = open_store(url)
    spec = canonical_json(MECHANISM.spec)
    store.add_collection(Record(COLLECTION, 0, 0, None, "{}", spec, "{}", '{"title":"t"}', None))
    store.add_tokens(COLLECTION, [hash_of(number) for number in range(tokens)])
    return store


def hash_of(number: int) -> bytes:
    return token_hash(f"token {number}")


def spending(number: int) -> Submission:
    reports = np.array([(37 * number) % 200], MECHANISM.report_format.dtype)
    batch = token_hash(f"batch {number}")[:16]
    return Submission(COLLECTION, MECHANISM, batch, bytes(20), reports, True, hash_of(number), 100)


def test_batch_ids_and_reports_keep_no_order_of_arrival(tmp_path: Path) -> None:
    """Kendall's tau of forty numbers has a standard error of 0.11; the bound 0.6 rejects chance once in 10^7 times."""
    store = open_with_tokens(f"sqlite:///{tmp_path}/collect.db", PEOPLE)
    for number in range(PEOPLE):
        assert store.commit([spending(number)])[0].outcome == "accepted"
    assert store.erase()
    database = sqlite3.connect(tmp_path / "collect.db")
    rows = database.execute("SELECT records FROM recent").fetchall()
    assert len(rows) == 1
    ids = [rows[0][0][start : start + 16] for start in range(0, len(rows[0][0]), 36)]
    assert ids == sorted(spending(number).batch for number in range(PEOPLE))
    stored = [row[0] for row in database.execute("SELECT reports FROM raw ORDER BY day, number")]
    order = [decode_batch(MECHANISM, batch).tolist()[0] * 173 % 200 for batch in stored]  # 37 * 173 = 1 modulo 200
    assert sorted(order) == list(range(PEOPLE))
    tau = np.mean([1 if first < second else -1 for first, second in combinations(order, 2)])
    assert abs(tau) < 0.6
    database.close()
    assert {store.commit([spending(number)])[0].outcome for number in range(PEOPLE)} == {"repeated"}
    store.close_all()


def test_a_reader_keeps_the_log_and_the_next_try_empties_it(tmp_path: Path) -> None:
    path = tmp_path / "collect.db"
    store = open_with_tokens(f"sqlite:///{path}", 2)
    store.commit([spending(0)])
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT COUNT(*) FROM tokens").fetchone() == (2,)
    store.commit([spending(1)])
    assert not store.erase()
    assert store.commit([spending(1)])[0].outcome == "repeated"  # and it goes on
    reader.execute("ROLLBACK")
    reader.close()
    assert store.erase()
    assert linked(path) == {}
    store.close_all()


def issued_order(path: Path) -> list[bytes]:
    """Hashes of tokens in the order in which the bytes of the file have them, from the end: how SQLite fills a page."""
    database = sqlite3.connect(path)
    hashes = [token for (token,) in database.execute("SELECT token_hash FROM tokens")]
    (number,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'tokens'").fetchone()
    database.close()
    page = path.read_bytes()[(number - 1) * 4096 : number * 4096]
    return sorted(hashes, key=lambda token: -page.index(token))


@pytest.mark.parametrize("issue", ["one request", "an earlier release"])
def test_tokens_of_waves_keep_no_order_of_issue(tmp_path: Path, issue: str) -> None:
    """Otherwise the neighbours of a row show which waves its person answered."""
    path = tmp_path / "collect.db"
    hashes = [token_hash(f"token {person}", wave) for person in range(10) for wave in range(4)]
    if issue == "one request":
        store = open_with_tokens(f"sqlite:///{path}", 0)
        store.add_tokens(COLLECTION, hashes)
    else:
        (before,) = (step for step, migration in enumerate(MIGRATIONS) if migration.name == "sorted tokens")
        path.touch()
        store = open_store(f"sqlite:///{path}", migrate=False)
        with store._transaction() as execute:
            execute(store.sql.create_migrations)
            for step, statements in enumerate(store.migrations[:before]):
                for statement in statements:
                    execute(statement)
                execute(store.sql.add_migration, (step,))
            columns = "id, created, policy, mechanism, certificate, about"
            execute(f"INSERT INTO collections ({columns}) VALUES (?, 0, '{{}}', '{{}}', '{{}}', '{{}}')", (COLLECTION,))
            store._insert(execute, store.sql.insert_tokens, [(COLLECTION, one, n % 3) for n, one in enumerate(hashes)])
        store.migrate()
    with store._connected() as execute:
        rows = execute("SELECT token_hash, spent FROM tokens").fetchall()
        with pytest.raises(sqlite3.OperationalError, match="no such column: rowid"):
            execute("SELECT rowid FROM tokens")
    if issue == "an earlier release":
        assert dict(rows) == {one: int(n % 3 > 0) for n, one in enumerate(hashes)}
    assert [one for one, _ in rows] == sorted(hashes)
    assert store.erase()
    assert issued_order(path) == sorted(hashes)
    store.close_all()


@pytest.mark.slow
def test_the_index_of_a_long_log_is_erased(tmp_path: Path) -> None:
    path = tmp_path / "collect.db"
    store = open_with_tokens(f"sqlite:///{path}", 0)
    for first in range(0, 60_000, 1000):
        store.add_tokens(COLLECTION, [hash_of(10_000 + number) for number in range(first, first + 1000)])
    assert Path(f"{path}-shm").stat().st_size > 2**15
    assert len(indexed_pages(path)) > 4062
    assert store.erase()
    assert len(indexed_pages(path)) <= 2  # those of the write that follows
    store.add_tokens(COLLECTION, [hash_of(number) for number in range(1000)])
    assert store.commit([spending(number) for number in range(1000)])[0].outcome == "accepted"
    assert store.counts(COLLECTION, MECHANISM).n == 1000
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
    store.close_all()


# -- PostgreSQL ----------------------------------------------------------------------------------------------


def versions(store: Store, folder: Path, table: str) -> list[tuple[int, bytes]]:
    """Every row version in the file of a table."""
    with store._connected() as execute:
        execute("CHECKPOINT")
        (name,) = execute(f"SELECT pg_relation_filepath('{table}')").fetchone()
    return [*heap_rows(folder / name)]


def transactions(store: Store, table: str) -> list[int]:
    """The transactions that wrote the rows of a table, in the order of the rows."""
    with store._connected() as execute:
        return [int(xmin) for (xmin,) in execute(f"SELECT xmin::text FROM {table} ORDER BY ctid").fetchall()]


@pytest.mark.parametrize("interval", [1, 2, PEOPLE])
def test_tables_of_postgresql_link_no_token_to_a_report(postgres: Postgres, interval: int) -> None:
    """However many people answer between two erasures: their transactions are in order, and so link them too."""
    store = open_with_tokens(postgres.new_database(), PEOPLE)

    def shared(table: str) -> int:
        """Transactions that wrote a spent token and a row, present or deleted, of another table."""
        tokens = {xmin for xmin, data in versions(store, postgres.folder, "tokens") if len(data) > 0}
        return len(tokens & {xmin for xmin, _ in versions(store, postgres.folder, table)})

    for number in range(PEOPLE):
        assert store.commit([spending(number)])[0].outcome == "accepted"
        if number == PEOPLE - 1:
            assert shared("raw") >= interval  # those since the last erasure
        if (number + 1) % interval == 0:
            until(store.erase)  # the server may read statistics for itself meanwhile
    assert [shared(table) for table in ("counts", "progress", "batches")] == [0, 0, 0]
    # One transaction wrote all that is there, so it tells nothing about any of them.
    assert len({*transactions(store, "tokens"), *transactions(store, "raw")}) == 1
    with store._connected() as execute:
        rows = execute("SELECT token_hash FROM tokens ORDER BY ctid").fetchall()
        numbers = [number for (number,) in execute("SELECT number FROM raw ORDER BY ctid").fetchall()]
    assert [bytes(row[0]) for row in rows] == sorted(hash_of(number) for number in range(PEOPLE))
    assert numbers == sorted(numbers)
    assert len(versions(store, postgres.folder, "tokens")) == len(versions(store, postgres.folder, "raw")) == PEOPLE
    assert at_the_beginning(101, shuffle_old_reports, store) == PEOPLE
    until(store.erase)
    assert len(versions(store, postgres.folder, "raw")) == 1
    assert {store.commit([spending(number)])[0].outcome for number in range(PEOPLE)} == {"repeated"}
    store.close_all()


def test_postgresql_samples_no_reports(postgres: Postgres) -> None:
    """Otherwise its samples would outlive them: the server takes them by itself, and never from an empty table."""
    store = open_with_tokens(postgres.new_database(), 120)
    for number in range(120):
        assert store.commit([spending(number)])[0].outcome == "accepted"
    with store._connected() as execute:
        execute("ANALYZE")
        sampled = "SELECT tablename, attname FROM pg_stats WHERE schemaname = 'public' AND tablename = 'raw'"
        assert sorted(execute(sampled).fetchall()) == [
            ("raw", name) for name in ("collection", "day", "mixed", "number")
        ]
    assert store.forget_reports(COLLECTION, 101, 1000) == 120
    store.close_all()


def test_deleted_rows_that_an_open_transaction_may_read_postpone_the_erasure(postgres: Postgres) -> None:
    """The transaction has read another table, so it holds no lock on those that are rewritten."""
    import psycopg

    url = postgres.new_database()
    store = open_with_tokens(url, 2)
    with psycopg.connect(url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert reader.execute("SELECT COUNT(*) FROM admins").fetchone() == (0,)
        store.commit([spending(0)])
        for _ in range(3):  # and what it writes does not grow with every try
            assert not store.erase()
            assert len(versions(store, postgres.folder, "tokens")) == 5  # two are present
        assert reader.execute("SELECT COUNT(*) FROM tokens").fetchone() == (2,)  # no row of its state is missing
    until(store.erase)
    assert len(versions(store, postgres.folder, "tokens")) == 2
    store.close_all()


def test_a_backup_of_postgresql_keeps_no_order_of_rows(postgres: Postgres, tmp_path: Path) -> None:
    """Also of rows that were written since the last erasure."""
    url = postgres.new_database()
    store = open_with_tokens(url, PEOPLE)
    for number in range(PEOPLE):
        assert store.commit([spending(number)])[0].outcome == "accepted"
    store.close_all()
    copies.back_up(url, tmp_path / "backup.db")
    assert issued_order(tmp_path / "backup.db") == sorted(hash_of(number) for number in range(PEOPLE))


def test_a_reader_of_postgresql_postpones_the_erasure(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    monkeypatch.setattr("sfumato.server.store.postgresql._TIMEOUT", 1)
    url = postgres.new_database()
    store = open_with_tokens(url, 2)
    store.commit([spending(0)])
    with psycopg.connect(url) as reader:  # a transaction that stays open, as that of a backup
        assert reader.execute("SELECT COUNT(*) FROM counts").fetchone() is not None
        assert not store.erase()
    until(store.erase)
    store.close_all()
