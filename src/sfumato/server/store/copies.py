"""Back up, restore and check stores.

A backup is a SQLite file with the tables of a store, whichever database the store is in. It can be restored to either
database, so a backup also moves a store from SQLite to PostgreSQL or back. All copies are read in one transaction, and
the collector may run meanwhile.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from sfumato.errors import Description, InvalidInput
from sfumato.server.store import open_store
from sfumato.server.store.base import Execute, Store
from sfumato.server.store.migrations import expected_columns, fingerprint
from sfumato.server.store.records import ID_BYTES, RECEIPT_BYTES
from sfumato.server.store.sqlite import SQLiteStore

__all__ = ["StoreSummary", "back_up", "check_store", "restore", "summary_of", "upgrade_store"]

#: Rows that are copied at once.
_ROWS = 500
_RECORD = ID_BYTES + RECEIPT_BYTES
#: Ends of the names of a store's files: the main file, its write-ahead log, and the index of the log.
_ENDS = ("", "-wal", "-shm")


@dataclass(frozen=True)
class StoreSummary:
    """What a store contains: its id, the fingerprint of its tables, and numbers of collections, reports and batches."""

    identity: str
    fingerprint: str
    migrations: int
    collections: int
    reports: int
    batches: int


def summary_of(store: Store) -> StoreSummary:
    """Return what a store contains, read in one transaction."""
    with store.reading() as execute:
        (identity,) = execute("SELECT id FROM identity").fetchone()
        (migrations,) = execute("SELECT COUNT(*) FROM migrations").fetchone()
        row = execute("SELECT COUNT(*), COALESCE(SUM(reports), 0), COALESCE(SUM(batches), 0) FROM progress").fetchone()
        columns = store.columns(execute)
    return StoreSummary(identity, fingerprint(columns), migrations, *map(int, row))


def check_store(url: str) -> StoreSummary:
    """Return what the store at a URL contains; raise Unavailable if it is damaged or has other tables."""
    store = open_store(url, migrate=False)
    try:
        store.check_schema()
        store.check_damage(thorough=True)
        return summary_of(store)
    finally:
        store.close_all()


def upgrade_store(url: str) -> StoreSummary:
    """Bring the tables of an existing store up to date; return what it contains."""
    store = open_store(url, migrate=False)
    try:
        if isinstance(store, SQLiteStore):
            store._check_file()
        store.migrate()
        return summary_of(store)
    finally:
        store.close_all()


def back_up(url: str, path: str | os.PathLike[str]) -> StoreSummary:
    """Write a backup of the store at a URL to a new file; return what the backup contains."""
    store = open_store(url, migrate=False)
    try:
        store.check_schema()
        with _new_file(path, "backup") as part:
            if isinstance(store, SQLiteStore):
                with store._connected() as execute:
                    execute("VACUUM INTO ?", (str(part),))
            else:
                copy = SQLiteStore(str(part), create=True, marked=False)
                copy.migrate()
                _copy(store, copy)
                copy.close_all()
            return _checked(part)
    finally:
        store.close_all()


def restore(path: str | os.PathLike[str], url: str) -> StoreSummary:
    """Write a backup to a store that does not exist yet or has no collections; return what the store contains."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no backup at {path}")
    if url.startswith("sqlite:///"):
        target = Path(os.path.realpath(url.removeprefix("sqlite:///")))
        with _new_file(target, "restore") as part:
            with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as backup:
                backup.execute("VACUUM INTO ?", (str(part),))
            _checked(part)
        store = open_store(url)  # brings a backup of an earlier release up to date
        try:
            return summary_of(store)
        finally:
            store.close_all()
    store, source = open_store(url), SQLiteStore(str(path), create=False)
    try:
        source.check_schema()
        if summary_of(store).collections:
            raise InvalidInput("restore", "the store", "have no collections", Description("one with collections"))
        _copy(source, store)
        return summary_of(store)
    finally:
        source.close_all()
        store.close_all()


@contextmanager
def _new_file(path: str | os.PathLike[str], subject: str) -> Iterator[Path]:
    """Yield an empty file that only this user may read, and give it its name when it is complete and on disk."""
    target = Path(path)
    # SQLite would copy the log of an earlier store into the new file: it would damage the file, and lose the log.
    for file in (Path(f"{target}{end}") for end in _ENDS):
        if file.exists() and file.stat().st_size:
            hint = (
                "Choose another file." if subject == "backup" else "Stop the collector, and move the file away first."
            )
            raise InvalidInput(subject, "the file", "not exist yet", Description(str(file)), hint=hint)
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield part
        descriptor = os.open(part, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        part.replace(target)
    finally:
        for end in _ENDS:
            Path(f"{part}{end}").unlink(missing_ok=True)


def _checked(path: Path) -> StoreSummary:
    """Return what a backup contains; raise Unavailable if it is damaged."""
    copy = SQLiteStore(str(path), create=False)
    try:
        copy.check_damage(thorough=True)
        summary = summary_of(copy)
    finally:
        copy.close_all()
    with closing(sqlite3.connect(path)) as database:  # one file, without a log next to it
        database.execute("PRAGMA journal_mode = DELETE")
    return summary


def _copy(source: Store, target: Store) -> None:
    """Copy all rows of a store to one that has none, in one transaction of each."""
    tables = {
        table: [column.name for column in columns]
        for table, columns in groupby(expected_columns(), key=lambda column: column.table)
        if table != "migrations"
    }
    with source.reading() as read, target._transaction() as execute:
        execute("DELETE FROM identity")
        for table, columns in tables.items():
            # By all columns: the order of the rows in a table shows which arrived together.
            cursor = read(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {', '.join(columns)}")
            while rows := cursor.fetchmany(_ROWS):
                if table == "recent" and not isinstance(target, SQLiteStore):
                    # Only SQLite has a log of new batch ids; another store looks them up in the table.
                    _insert(target, execute, "batches", ["batch", "receipt"], [*_records(rows)])
                else:
                    _insert(target, execute, table, columns, rows)
        target.restart_numbers(execute)


def _records(rows: Sequence[Sequence[Any]]) -> Iterator[tuple[bytes, bytes]]:
    """Yield batch ids and receipts from rows of the log."""
    for _, records in rows:
        for start in range(0, len(records), _RECORD):
            yield records[start : start + ID_BYTES], records[start + ID_BYTES : start + _RECORD]


def _insert(target: Store, execute: Execute, table: str, columns: list[str], rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows with all their columns, among them numbers that the database would assign."""
    statement = f"INSERT INTO {table} ({', '.join(columns)}){target.own_numbers} VALUES"
    conflict = " ON CONFLICT DO NOTHING" if table == "batches" else ""
    target._insert(execute, statement, [tuple(row) for row in rows], conflict)
