"""A collector that cannot count says so: it acknowledges nothing, is not ready, and names what to do."""

from __future__ import annotations

import concurrent.futures
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.cli import main
from sfumato.server.store import open_store, sqlite
from sfumato.server.store.base import Unavailable
from sfumato.server.store.copies import back_up
from sfumato.server.store.postgresql import PostgreSQLStore
from support.collectors import LONG_ENOUGH, Postgres, Served, ServeProcess, served, until

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every probe check."""
    monkeypatch.setattr("sfumato.server.jobs.readiness._FRESH_SECONDS", 0.0)


def not_ready(collector: Served, *words: str) -> None:
    response = collector.ask("GET", "/readyz")
    assert response.status == 503
    message = response.json["error"]["message"]
    assert all(word in message for word in words), message


def test_the_metrics_state_readiness_without_a_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.api.collector._CHECK_SECONDS", 0.05)
    path = tmp_path / "collect.db"

    def states(value: float) -> bool:
        return f"sfumato_ready {value}" in collector.ask("GET", "/metrics").body.decode().splitlines()

    with served(f"sqlite:///{path}") as collector:
        until(lambda: states(1.0))
        remove(path)
        until(lambda: states(0.0))


def test_the_metrics_count_collections_soon_after_a_change(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.api.collector._CHECK_SECONDS", 0.05)
    with served(store_url) as collector:

        def counted(**states: int) -> bool:
            lines = collector.ask("GET", "/metrics").body.decode().splitlines()
            return {f'sfumato_collections{{state="{state}"}} {float(n)}' for state, n in states.items()} <= {*lines}

        names = [collector.create(mechanism="rr")[0] for _ in range(2)]
        until(lambda: counted(open=2, closed=0, archived=0))
        assert collector.as_admin("PATCH", f"/v1/collections/{names[0]}", {"state": "closed"}).status == 200
        until(lambda: counted(open=1, closed=1, archived=0))


# -- a store that is gone ------------------------------------------------------------------------------------


def remove(path: Path) -> None:
    for file in path.parent.glob("collect.db*"):
        if file.suffix != ".exists":
            file.unlink()


def remove_main_file(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    os.truncate(path, 0)


def replace(path: Path) -> None:
    shutil.copy(path, path.with_name("copy.db"))
    path.with_name("copy.db").rename(path)


def copy_over(path: Path) -> None:
    """As `cp` does: the file remains, and gets the contents of a copy."""
    shutil.copy(path, path.with_name("copy.db"))
    path.write_bytes(path.with_name("copy.db").read_bytes())


def put_backup_in_place(path: Path) -> None:
    """As an operator who does not stop the collector before."""
    back_up(f"sqlite:///{path}", path.with_name("backup.db"))
    path.write_bytes(path.with_name("backup.db").read_bytes())
    remove_log(path)


def log_of(path: Path) -> Path:
    return path.with_name("collect.db-wal")


def remove_log(path: Path) -> None:
    log_of(path).unlink()


def remove_index(path: Path) -> None:
    path.with_name("collect.db-shm").unlink()


def replace_log(path: Path) -> None:
    replace(log_of(path))


def empty_log(path: Path) -> None:
    os.truncate(log_of(path), 0)


def halve_log(path: Path) -> None:
    os.truncate(log_of(path), log_of(path).stat().st_size // 2)


def shave_log(path: Path) -> None:
    """The header of the last frame stays, and its page has lost a few bytes."""
    os.truncate(log_of(path), log_of(path).stat().st_size - 5)


LOSSES = [
    *(remove, remove_main_file, cut, replace, copy_over),
    *(remove_log, remove_index, replace_log, empty_log, halve_log, shave_log),
]


@pytest.mark.parametrize("lose", LOSSES)
def test_no_receipt_for_a_store_that_is_gone(tmp_path: Path, lose: Any) -> None:
    path = tmp_path / "collect.db"
    with served(f"sqlite:///{path}") as collector:
        name, mechanism, _ = collector.create()
        assert collector.send(name, mechanism, [1], "while-it-is-there").status == 200
        assert collector.ask("GET", "/readyz").status == 200
        lose(path)
        answers = [collector.send(name, mechanism, [1], f"when-gone-{number}") for number in range(21)]
        assert [answer.reason for answer in answers] == ["unavailable"] * 21
        not_ready(collector, "removed, replaced or cut", "restore")
        assert "sfumato_ready 0.0" in collector.ask("GET", "/metrics").body.decode().splitlines()


@pytest.mark.component
@pytest.mark.parametrize("lose", [remove_log, halve_log])
def test_every_report_with_a_receipt_that_came_after_a_loss_survives_a_kill(tmp_path: Path, lose: Any) -> None:
    """Senders go on while the log is lost: reports are refused or stored, also that of the moment of the loss."""
    process = ServeProcess(f"sqlite:///{tmp_path}/collect.db", tmp_path)
    process.start()
    name, mechanism, _ = process.served.create(mechanism="rr")
    store = open_store(f"sqlite:///{tmp_path}/collect.db", migrate=False)
    assert store.erase()  # copies the collection to the main file
    store.close_all()
    receipts: dict[str, float] = {}

    def send(sender: int) -> None:
        for number in range(100):
            batch, moment = f"sender-{sender}-batch-{number}", time.monotonic()
            status = process.served.send(name, mechanism, [1], batch).status
            assert status in (200, 503)
            if status == 503:
                return
            receipts[batch] = moment  # before it was sent: a receipt may arrive late

    with concurrent.futures.ThreadPoolExecutor(4) as senders:
        running = [senders.submit(send, sender) for sender in range(4)]
        until(lambda: len(receipts) > 20)
        lose(tmp_path / "collect.db")
        lost = time.monotonic()
        for sender in running:
            sender.result()
    process.kill()
    process.start()
    for batch, moment in receipts.items():
        if moment > lost:
            counted = process.served.ask("GET", f"/v1/collections/{name}/aggregate").json["n"]
            assert process.served.send(name, mechanism, [1], batch).status == 200
            assert process.served.ask("GET", f"/v1/collections/{name}/aggregate").json["n"] == counted, batch
    process.stop()


def test_a_log_that_is_cut_during_a_transaction_is_seen_at_its_end(tmp_path: Path) -> None:
    """The transaction fills the gap, so the log has its length again, and its last frame."""
    path = tmp_path / "collect.db"
    store = open_store(f"sqlite:///{path}")
    for _ in range(5):
        store.touch()
    before = log_of(path).stat().st_size

    def cut_and_write() -> None:
        with store._transaction() as execute:
            halve_log(path)
            execute(store.sql.touch)

    with pytest.raises(Unavailable, match="cut"):
        cut_and_write()
    assert log_of(path).stat().st_size >= before
    for use in (store.touch, store.erase):  # nor are the frames in the gap copied to the main file
        with pytest.raises(Unavailable, match="cut"):
            use()
    store.close_all()


def test_other_programs_may_use_the_files(tmp_path: Path) -> None:
    """Another process writes, copies the log and empties it, and reads a backup."""
    path = tmp_path / "collect.db"
    store = open_store(f"sqlite:///{path}")
    other = sqlite3.connect(path, isolation_level=None)
    for statement in (
        store.sql.touch,
        "PRAGMA wal_checkpoint(PASSIVE)",
        store.sql.touch,
        "PRAGMA wal_checkpoint(TRUNCATE)",
        f"VACUUM INTO '{tmp_path}/copy.db'",
        "VACUUM",
    ):
        store.touch()
        other.execute(statement).fetchall()
    other.close()
    store.touch()
    assert store.erase()
    store.touch()
    store.close_all()


def empty(path: Path) -> None:
    """As a collector leaves a store that was cut while it ran: a database without tables."""
    cut(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    assert path.stat().st_size > 0


@pytest.mark.parametrize("lose", [remove, cut, empty])
def test_no_empty_store_is_made_where_one_was(tmp_path: Path, lose: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "collect.db"
    open_store(f"sqlite:///{path}").close_all()
    lose(path)
    with pytest.raises(Unavailable, match="a store existed at"):
        open_store(f"sqlite:///{path}")
    assert main(["serve", "--store", f"sqlite:///{path}", "--port", "0"]) == 2
    assert "delete" in capsys.readouterr().err
    assert lose is empty or not path.exists() or path.stat().st_size == 0
    path.with_name("collect.db.exists").unlink()  # deliberately
    open_store(f"sqlite:///{path}").close_all()


# -- stores that cannot count --------------------------------------------------------------------------------


def test_a_damaged_store_is_not_ready(tmp_path: Path) -> None:
    path = tmp_path / "collect.db"
    with served(f"sqlite:///{path}") as collector:
        name, mechanism, _ = collector.create()
        collector.send(name, mechanism, [1], "before-the-damage")
        store = open_store(f"sqlite:///{path}", migrate=False)
        assert store.erase()
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(os.urandom(path.stat().st_size - 4096))
        not_ready(collector, "sfumato store check", "restore a backup")
        assert collector.send(name, mechanism, [1], "after-the-damage").reason in ("unavailable", None)
        store.close_all()


def test_a_store_of_an_earlier_schema_is_not_ready(store_url: str) -> None:
    with served(store_url) as collector:
        store = open_store(store_url)
        with store._transaction() as execute:
            execute("DELETE FROM migrations WHERE step >= 2")
        not_ready(collector, "earlier release", "sfumato store upgrade")
        with store._transaction() as execute:
            execute("ALTER TABLE raw RENAME TO other")
            for step in range(2, len(store.migrations)):
                execute(store.sql.add_migration, (step,))
        not_ready(collector, "table raw is missing")
        store.close_all()


def test_a_read_only_postgresql_is_not_ready(postgres: Postgres) -> None:
    import psycopg

    url = postgres.new_database()
    with served(url) as collector:
        name, mechanism, _ = collector.create()
        with psycopg.connect(url, autocommit=True) as admin:
            database = admin.info.dbname
            admin.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
                (database,),
            )
        until(lambda: "accepts no writes" in collector.ask("GET", "/readyz").body.decode())
        assert collector.send(name, mechanism, [1], "not-written").reason == "unavailable"
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("SET default_transaction_read_only = off")
            admin.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = off")
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
                (database,),
            )
        until(lambda: collector.ask("GET", "/readyz").status == 200)
        assert collector.send(name, mechanism, [1], "not-written").status == 200


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"min_free_bytes": 2**62}, ("nearly full", "free space")), ({"max_store_bytes": 1}, ("quota", "keep_days"))],
)
def test_a_store_without_room_takes_no_reports(tmp_path: Path, settings: dict[str, int], words: tuple[str]) -> None:
    with served(f"sqlite:///{tmp_path}/collect.db", **settings) as collector:
        name, mechanism, _ = collector.create()
        not_ready(collector, *words)
        assert collector.send(name, mechanism, [1], "no-room-for-it").reason == "unavailable"


def connect_again(collector: Served) -> None:
    """Let the writer thread open another connection for its next write."""
    assert collector.app is not None
    inside = collector.app.collector
    inside._loop.call_soon_threadsafe(inside.writer.run, lambda store: store.close())


@pytest.mark.parametrize(
    ("fault", "words"), [("max_page_count = 1", "free space"), ("query_only = ON", "let the user of the service write")]
)
def test_a_full_or_read_only_store_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, words: str
) -> None:
    """SQLite reports both as it does for a disk; the senders repeat what was rejected."""
    with served(f"sqlite:///{tmp_path}/collect.db") as collector:
        name, mechanism, _ = collector.create(mechanism="rr")
        acknowledged: list[int] = []

        def send(number: int) -> int:
            response = collector.send(name, mechanism, [number % 5] * 200, f"batch-number-{number}")
            assert response.status in (200, 503), response.body
            acknowledged.extend([number] if response.status == 200 else [])
            return response.status

        assert send(0) == 200
        with monkeypatch.context() as patch:
            patch.setattr(sqlite, "_SETTINGS", (*sqlite._SETTINGS, fault))
            connect_again(collector)
            rejected = [number for number in range(1, 400) if send(number) == 503]
            assert rejected
            not_ready(collector, words)
        connect_again(collector)
        for number in rejected:
            until(lambda: send(number) == 200)  # noqa: B023
        assert sorted(acknowledged) == list(range(400))
        expected = [number % 5 for number in range(400) for _ in range(200)]
        assert collector.aggregate(name) == sf.aggregate(mechanism, expected)
        assert collector.ask("GET", "/readyz").status == 200


def test_a_locked_store_is_not_ready_before_any_report_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.store.sqlite._TIMEOUT", 0.05)
    with served(f"sqlite:///{tmp_path}/collect.db") as collector:
        other = sqlite3.connect(tmp_path / "collect.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        until(lambda: "end the other process" in collector.ask("GET", "/readyz").body.decode())
        other.execute("ROLLBACK")
        other.close()
        until(lambda: collector.ask("GET", "/readyz").status == 200)


# -- processes -----------------------------------------------------------------------------------------------


def test_connections_pause_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Meanwhile the operator reads the reason."""
    monkeypatch.setattr("sfumato.server.store.base._SHORTEST_PAUSE", LONG_ENOUGH)
    monkeypatch.setattr("sfumato.server.store.base._LONGEST_PAUSE", LONG_ENOUGH)
    store, attempts = PostgreSQLStore("postgresql://stranger@127.0.0.1:1/none"), 0
    connect = store.connect

    def counting() -> Any:
        nonlocal attempts
        attempts += 1
        return connect()

    monkeypatch.setattr(store, "connect", counting)
    reasons = set()
    for _ in range(50):
        with pytest.raises(Unavailable, match="port 1 failed") as caught:
            store.ping()
        reasons.add((str(caught.value), caught.value.action))
    assert (attempts, len(reasons)) == (1, 1)


@pytest.mark.parametrize("lose", [cut, put_backup_in_place])
def test_a_file_without_a_log_is_not_waited_for(tmp_path: Path, lose: Any) -> None:
    """A backup has no write-ahead log. To turn it on, SQLite would wait for all connections to the file before."""
    path = tmp_path / "collect.db"
    store = open_store(f"sqlite:///{path}")
    store.ping()
    lose(path)
    with pytest.raises(Unavailable, match="removed, replaced or cut"):
        store.connect()
    store.close_all()


@pytest.mark.component
def test_a_store_whose_tables_were_changed_and_restored_counts_again(postgres: Postgres) -> None:
    """PostgreSQL refuses a prepared statement whose result has other types, as long as its connection is open."""
    import psycopg

    url = postgres.new_database()
    with served(url) as collector, psycopg.connect(url, autocommit=True) as database:
        name, mechanism, _ = collector.create()

        def outcomes(batches: str) -> list[str | None]:
            return [collector.send(name, mechanism, [1], f"{batches}-{number}").reason for number in range(12)]

        assert outcomes("prepared") == [None] * 12
        database.execute("ALTER TABLE counts ALTER COLUMN counts TYPE TEXT USING encode(counts, 'hex')")
        assert None not in outcomes("refused")
        database.execute("ALTER TABLE counts ALTER COLUMN counts TYPE BYTEA USING decode(counts, 'hex')")
        assert {*outcomes("restored")} <= {None, "unavailable"}  # the first one opens another connection
        assert outcomes("restored") == [None] * 12
        assert collector.aggregate(name).n == 24


@pytest.mark.component
def test_a_collector_waits_for_postgresql_to_start(postgres: Postgres, tmp_path: Path) -> None:
    url = postgres.new_database()
    postgres.stop()
    process = ServeProcess(url, tmp_path, "--wait", "300")
    with process.log.open("ab") as log:
        command = [*process._command, "--port", str(process.served.port)]
        running = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        until(lambda: "waiting for the database" in process.log.read_text())
        postgres.start()
        until(lambda: "startup complete" in process.log.read_text())
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


@pytest.mark.component
def test_the_process_ends_with_its_writer_thread(tmp_path: Path) -> None:
    """`sfumato serve` exits with an error, so that a supervisor starts it again."""
    script = (
        "import sys\n"
        "from sfumato.server.jobs.writer import Writer\n"
        "def broken(writer):\n"
        "    writer._taken = [writer._queue.get()]\n"
        "    raise MemoryError\n"
        "Writer._take = broken\n"
        "from sfumato.cli import main\n"
        f"sys.exit(main(['serve', '--store', 'sqlite:///{tmp_path}/collect.db', '--port', '0']))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 2
    assert "the writer thread of the collector has ended" in ended.stderr
