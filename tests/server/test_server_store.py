"""What a store does below the service: batch ids in a log and a table, and stored reports that are shuffled."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import sfumato as sf
from sfumato._core import canonical_json
from sfumato.collecting.batch import decode_batch
from sfumato.mechanisms.base import Mechanism
from sfumato.randomness import InsecureSeeded
from sfumato.server.http.responses import ApiError
from sfumato.server.jobs.retention import ClockGuard, shuffle_old_reports
from sfumato.server.jobs.threads import Readers
from sfumato.server.jobs.writer import Writer
from sfumato.server.store import open_store
from sfumato.server.store.base import Store, Unavailable
from sfumato.server.store.records import Record, Submission
from sfumato.server.store.sqlite import PendingBatchIds
from support.collectors import Postgres, at_the_beginning, served

COLLECTION = "a" * 16
MECHANISM = sf.mechanisms.RandomizedResponse(sf.Domain.range(4), 1)
BITMAPS = sf.mechanisms.UnaryEncoding(sf.Domain.range(20), 1)


def open_with(url: str, mechanism: Mechanism = MECHANISM) -> Store:
    """A store with one collection."""
    store = open_store(url)
    spec = canonical_json(mechanism.spec)
    store.add_collection(Record(COLLECTION, 0, 0, None, "{}", spec, "{}", '{"title":"t"}', None))
    return store


def submission(batch: int, reports: Any, mechanism: Mechanism = MECHANISM, day: int = 100) -> Submission:
    array = np.asarray(reports, mechanism.report_format.dtype)
    return Submission(
        COLLECTION, mechanism, batch.to_bytes(16, "big"), array.tobytes()[:20].ljust(20), array, True, None, day
    )


# -- batch ids -----------------------------------------------------------------------------------------------


@pytest.fixture
def few_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are moved from the log after a handful of them."""
    monkeypatch.setattr(PendingBatchIds, "gathered", 5)


class Interrupted(Exception):
    """A transaction that does not come to its end."""


def commit_interrupted(store: Store, group: Sequence[Submission]) -> None:
    """Do all that a commit does, and then not."""

    def fail(*arguments: Any) -> None:  # noqa: ARG001
        raise Interrupted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "_add_counts", fail)
        with pytest.raises(Interrupted):
            store.commit(group)


steps = st.lists(
    st.tuples(
        st.sampled_from(["first", "second", "interrupted", "opened again"]),
        st.lists(st.integers(0, 40), min_size=1, max_size=12),
    ),
    max_size=25,
)


@pytest.mark.slow
@pytest.mark.usefixtures("few_gathered")
@given(steps)
def test_every_id_is_counted_once_whoever_wrote_it_and_whatever_failed(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, list[int]]]
) -> None:
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/collect.db"
    stores = {"first": open_with(url), "second": open_store(url)}
    counted: dict[int, int] = {}
    for who, numbers in steps:
        # Ids 0 to 9 come with two different payloads.
        group = [submission(n, [n % 4] if place % 2 or n >= 10 else [n % 4, 0]) for place, n in enumerate(numbers)]
        if who == "interrupted":
            if any(n not in counted for n in numbers):
                commit_interrupted(stores["first"], group)
            continue
        if who == "opened again":
            stores["first"].close()
            stores["first"] = open_store(url)
        results = stores["second" if who == "second" else "first"].commit(group)
        for n, submitted, result in zip(numbers, group, results, strict=True):
            if n not in counted:
                counted[n] = len(submitted.reports)
                assert result == ("accepted", counted[n])
            elif counted[n] == len(submitted.reports):
                assert result == ("repeated", counted[n])
            else:
                assert result == ("conflict", 0)
    assert stores["first"].counts(COLLECTION, MECHANISM).n == sum(counted.values())
    for store in stores.values():
        store.close_all()


@pytest.mark.skipif(os.name != "posix", reason="files have no such modes elsewhere")
def test_a_new_store_is_its_owners_alone_and_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        store = open_with(f"sqlite:///{tmp_path}/collect.db")
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        store.close_all()
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("collect.db", "collect.db-wal", "collect.db-shm", "collect.db.exists"), 0o600)
    (tmp_path / "link.db").symlink_to(tmp_path / "linked.db")
    open_store(f"sqlite:///{tmp_path}/link.db").close()
    assert stat.S_IMODE((tmp_path / "linked.db").stat().st_mode) == 0o600
    (tmp_path / "collect.db").chmod(0o640)
    open_store(f"sqlite:///{tmp_path}/collect.db").close()
    assert stat.S_IMODE((tmp_path / "collect.db").stat().st_mode) == 0o640


@pytest.mark.slow
@pytest.mark.usefixtures("few_gathered")
def test_ids_move_from_the_log_to_the_table_and_none_is_lost(tmp_path: Path) -> None:
    store = open_with(f"sqlite:///{tmp_path}/collect.db")
    database = sqlite3.connect(tmp_path / "collect.db")
    longest = 0
    for n in range(200):
        assert store.commit([submission(n, [1])])[0].outcome == "accepted"
        (in_log,) = database.execute("SELECT COALESCE(SUM(LENGTH(records)), 0) / 36 FROM recent").fetchone()
        (in_table,) = database.execute("SELECT COUNT(*) FROM batches").fetchone()
        assert max(in_log, in_table) <= n + 1 <= in_log + in_table
        longest = max(longest, in_log)
    assert longest <= 2 * PendingBatchIds.gathered + 2
    assert in_table >= 200 - longest
    again = open_store(f"sqlite:///{tmp_path}/collect.db")
    for opened in (store, again):
        assert {opened.commit([submission(n, [1])])[0].outcome for n in range(200)} == {"repeated"}
        opened.close_all()
    database.close()


@pytest.mark.usefixtures("few_gathered")
def test_a_counted_batch_is_known_before_it_is_sent_again(tmp_path: Path) -> None:
    """Also while its id is moved from the log to the table, which a connection that only reads cannot do."""
    store, reader = (opening(f"sqlite:///{tmp_path}/collect.db") for opening in (open_with, open_store))
    for n in range(40):
        assert reader.expected(submission(n, [1]), "open").outcome == "accepted"
        store.commit([submission(n, [1])])
        assert {reader.expected(submission(m, [1]), "open").outcome for m in range(n + 1)} == {"repeated"}
    for opened in (store, reader):
        opened.close_all()


def test_a_store_in_place_of_another_rejects_nothing(tmp_path: Path) -> None:
    """A device gives up a reply that is rejected, so a rejection must come from the store that the collector opened."""
    path, other = tmp_path / "collect.db", tmp_path / "other.db"
    open_store(f"sqlite:///{other}").close_all()
    store = open_with(f"sqlite:///{path}")
    assert store.progress("unknown") is None
    store.close()
    other.rename(path)
    for read in (lambda: store.progress(COLLECTION), lambda: store.expected(submission(0, [1]), "open")):
        with pytest.raises(Unavailable, match="replaced"):
            read()
    store.close_all()


def test_a_write_that_fails_leaves_no_trace_in_memory(tmp_path: Path) -> None:
    store = open_with(f"sqlite:///{tmp_path}/collect.db")
    group = [submission(n, [2]) for n in range(3)]
    commit_interrupted(store, group)
    database = sqlite3.connect(tmp_path / "collect.db", isolation_level=None)
    assert [result.outcome for result in store.commit(group)] == ["accepted"] * 3
    database.execute("BEGIN IMMEDIATE")  # somebody else writes, for longer than anybody waits
    store._local.connection.execute("PRAGMA busy_timeout = 1")
    with pytest.raises(Unavailable):
        store.commit([submission(3, [2])])
    database.execute("ROLLBACK")
    database.close()
    assert [result.outcome for result in store.commit([*group, submission(3, [2])])] == ["repeated"] * 3 + ["accepted"]
    assert store.counts(COLLECTION, MECHANISM).n == 4
    store.close_all()


# -- kept reports --------------------------------------------------------------------------------------------


def stored_reports(store: Store) -> dict[tuple[int, int], bytes]:
    with store._connected() as execute:
        rows = execute("SELECT day, number, reports FROM raw ORDER BY day, number").fetchall()
    return {(day, number): bytes(reports) for day, number, reports in rows}


def shuffle(store: Store, today: int) -> int:
    return at_the_beginning(today, shuffle_old_reports, store)


@pytest.mark.parametrize("mechanism", [MECHANISM, BITMAPS], ids=["index", "bitmap"])
def test_kept_reports_lie_in_no_order_of_theirs(store_url: str, mechanism: Mechanism) -> None:
    store = open_with(store_url, mechanism)
    rng = np.random.default_rng(5)
    reports = sf.privatize(mechanism, rng.integers(0, len(mechanism.domain), 60), InsecureSeeded(5))
    days = [100] * 30 + [101] * 20 + [102] * 10
    for first in range(0, 60, 2):  # thirty transactions of two batches
        group = [submission(n, reports[n : n + 1], mechanism, days[n]) for n in (first, first + 1)]
        assert {result.outcome for result in store.commit(group)} == {"accepted"}

    def in_order(day: int) -> list[bytes]:
        return sorted(reports[n].tobytes() for n in range(60) if days[n] == day)

    def stored(day: int) -> list[list[bytes]]:
        batches = [
            decode_batch(mechanism, data)
            for (stored_day, _), data in stored_reports(store).items()
            if stored_day == day
        ]
        return [[report.tobytes() for report in batch] for batch in batches]

    assert [len(stored(day)) for day in (100, 101, 102)] == [15, 10, 5]
    for day in (100, 101, 102):
        # Of a transaction: the smaller of the two always first.
        assert all(batch == _ascending(mechanism, batch) for batch in stored(day))
        assert sorted(report for batch in stored(day) for report in batch) == in_order(day)
    assert shuffle(store, 102) == 25
    assert shuffle(store, 102) == 0
    assert [len(stored(day)) for day in (100, 101, 102)] == [1, 1, 5]
    for day in (100, 101):
        (batch,) = stored(day)
        assert batch == _ascending(mechanism, batch)
        assert sorted(batch) == in_order(day)
    assert store.forget_reports(COLLECTION, 101, 10) == 1
    assert store.counts(COLLECTION, mechanism).n == 60
    store.close_all()


def _ascending(mechanism: Mechanism, batch: list[bytes]) -> list[bytes]:
    return sorted(
        batch, key=lambda report: report if mechanism.report_format.shape else int.from_bytes(report, "little")
    )


def test_a_day_of_many_reports_is_shuffled_in_parts(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sfumato.server.store.base as base

    monkeypatch.setattr(base, "_MAX_SHUFFLED_BYTES", 200)
    store = open_with(store_url)
    for n in range(10):
        store.commit([submission(n, [n % 4] * 5)])  # 50 bytes each
    assert shuffle(store, 101) == 10
    batches = [decode_batch(MECHANISM, data) for data in stored_reports(store).values()]
    assert [len(batch) for batch in batches] == [20, 20, 10]
    assert shuffle(store, 101) == 0
    store.close_all()


def test_a_jump_of_the_clock_postpones_deletions_by_a_day(tmp_path: Path) -> None:
    """A clock that is 400 days ahead for an hour deletes nothing; one that stays there deletes after a day."""
    store, uptime = open_with(f"sqlite:///{tmp_path}/collect.db"), [0.0]

    async def run() -> list[bool]:
        readers, writer = Readers(), Writer(store, 10, lambda results, seconds: None)  # noqa: ARG005
        guard = ClockGuard(store, readers, writer, lambda: uptime[0])
        allowed = []
        for uptime[0], day in ((0.0, 100), (3600.0, 101), (7200.0, 501), (9000.0, 101), (10_000.0, 102)):
            allowed.append(await guard.allows(day * 86_400.0))
        for uptime[0], day in ((20_000.0, 502), (90_000.0, 503), (110_000.0, 503), (120_000.0, 503)):
            allowed.append(await guard.allows(day * 86_400.0))
        await writer.stop()
        readers.stop()
        return allowed

    assert asyncio.run(run()) == [True, True, False, True, True, False, False, True, True]
    assert store.last_day() == 503
    store.close_all()


def test_in_postgresql_a_spent_token_shares_no_transaction_with_a_report_of_an_earlier_day(postgres: Postgres) -> None:
    store = open_with(postgres.new_database())
    hashes = [bytes([n]) * 32 for n in range(6)]
    store.add_tokens(COLLECTION, hashes)
    for n, token_hash in enumerate(hashes):
        spending = submission(n, [n % 4], day=100 + n // 3)._replace(token_hash=token_hash)
        assert store.commit([spending])[0].outcome == "accepted"

    def linked() -> int:
        with store._connected() as execute:
            row = execute(
                "SELECT COUNT(*) FROM tokens JOIN raw ON tokens.xmin = raw.xmin WHERE tokens.spent = 1"
            ).fetchone()
        return int(row[0])

    assert linked() == 6
    shuffle(store, 101)
    assert linked() == 3
    shuffle(store, 102)
    assert linked() == 0
    store.close_all()


def test_batches_are_not_told_to_who_has_no_token(store_url: str) -> None:
    store = open_with(store_url)
    known, unknown = b"k" * 32, b"u" * 32
    store.add_tokens(COLLECTION, [known])
    first = submission(1, [2])._replace(token_hash=known)
    outcomes = [
        store.commit([spending])[0].outcome
        for spending in (
            first,
            first._replace(token_hash=unknown),
            first,
            submission(2, [2])._replace(token_hash=known),
        )
    ]
    assert outcomes == ["accepted", "token-unknown", "repeated", "token-spent"]
    store.close_all()


# -- the writer ----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_whoever_waits_hears_that_the_thread_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(writer: Writer) -> None:
        writer._taken = [writer._queue.get()]
        raise MemoryError

    monkeypatch.setattr(Writer, "_take", broken)
    store = open_with(f"sqlite:///{tmp_path}/collect.db")

    async def run() -> list[str]:
        writer = Writer(store, 10, lambda results, seconds: None)  # noqa: ARG005
        before = [writer.submit(submission(n, [1])) for n in range(3)]
        results = await asyncio.gather(*before, return_exceptions=True)
        assert not writer.alive
        results += await asyncio.gather(writer.submit(submission(4, [1])), return_exceptions=True)
        await writer.stop()
        return [error.reason for error in results if isinstance(error, ApiError)]

    assert asyncio.run(run()) == ["unavailable"] * 4
    store.close_all()


@pytest.mark.slow
def test_a_store_that_refuses_writes_is_not_ready_until_it_takes_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sfumato.server.store.sqlite._TIMEOUT", 0.01)
    with served(f"sqlite:///{tmp_path}/collect.db") as collector:
        name, mechanism, _ = collector.create()
        other = sqlite3.connect(tmp_path / "collect.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with caplog.at_level("WARNING"):
            assert collector.send(name, mechanism, [1], "not-now-1").reason == "unavailable"
        records = [
            record for record in caplog.records if record.name == "sfumato.server"
        ]  # a kernel may be compiled too
        said = "database is locked; end the other process that writes the store"
        assert [record.__dict__["fields"] for record in records] == [{"error": said}]
        assert collector.ask("GET", "/readyz").reason == "unavailable"
        other.execute("ROLLBACK")
        other.close()
        assert collector.ask("GET", "/readyz").status == 200
        assert collector.send(name, mechanism, [1], "not-now-1").status == 200
        assert collector.aggregate(name).n == 1


@pytest.mark.usefixtures("few_gathered")
def test_after_a_start_the_log_is_moved_a_little_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/collect.db"
    with monkeypatch.context() as patch:
        patch.setattr(PendingBatchIds, "gathered", 1000)
        store = open_with(url)
        store.commit([submission(n, [1]) for n in range(200)])
        store.close_all()
    monkeypatch.setattr(PendingBatchIds, "at_once", 20)
    store, database = open_store(url), sqlite3.connect(tmp_path / "collect.db")
    moved = []
    for n in range(200, 300):
        store.commit([submission(n, [1])])
        moved.append(database.execute("SELECT COUNT(*) FROM batches").fetchone()[0])
    assert moved[0] == 20
    assert max(later - earlier for earlier, later in pairwise(moved)) <= 20
    assert moved[-1] > 200
    assert {store.commit([submission(n, [1])])[0].outcome for n in range(300)} == {"repeated"}
    database.close()
    store.close_all()


def test_a_failure_within_a_read_is_reported_as_such(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/collect.db")
    with pytest.raises(Unavailable, match="disk I/O"), store.reading(), store.connected():
        raise sqlite3.OperationalError("disk I/O error")
    store.ping()
    store.close()
