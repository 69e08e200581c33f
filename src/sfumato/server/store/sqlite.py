"""A store in one SQLite file. A commit returns when the data are on disk (write-ahead log, synchronous=FULL)."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sfumato.server.store.base import Execute, Store
from sfumato.server.store.records import ID_BYTES, RECEIPT_BYTES, Submission, SubmissionResult
from sfumato.server.store.statements import Statements

__all__ = ["PendingBatchIds", "SQLiteStore"]

#: Bytes of a batch id with its receipt.
_RECORD = ID_BYTES + RECEIPT_BYTES
#: Sort key of records: the first eight bytes, which suffice to bring ids of one database page together.
_SORTED_BY = np.dtype({"names": ["begin"], "formats": [">u8"], "offsets": [0], "itemsize": _RECORD})

# A common table expression: the indices 0, 1, … of the records of {0} bytes in the first parameter.
_PLACES = (
    "WITH RECURSIVE places (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM places WHERE (i + 2) * {0} <= length(?1)) "
)
_FIND = (
    _PLACES.format(ID_BYTES)
    + f"SELECT batch, receipt FROM places CROSS JOIN batches ON batch = substr(?1, i * {ID_BYTES} + 1, {ID_BYTES})"
)
# ON CONFLICT: after an interruption, some ids were already moved by an earlier transaction.
_MOVE = (
    _PLACES.format(_RECORD) + f"INSERT INTO batches SELECT substr(?1, i * {_RECORD} + 1, {ID_BYTES}), "
    f"substr(?1, i * {_RECORD} + {ID_BYTES + 1}, {RECEIPT_BYTES}) FROM places WHERE true ON CONFLICT DO NOTHING"
)


class PendingBatchIds:
    """Batch ids: new ones in an append-only log (table ``recent``), older ones in a table sorted by id.

    Ids are random, so every id inserted into the sorted table changes a different page, and transactions write whole
    pages. The log stores all ids of a transaction on one page. Once the log is long, its ids are sorted and moved to
    the table in that order, a few with every transaction, so that many fall on the same page.

    Each transaction looks up ids in the table and in the log, whose ids are cached in memory. At its beginning it reads
    the rows that this process and others have appended to the log since. After a failed transaction the cache may
    contain ids that are not stored, so the caller must drop it.
    """

    #: Number of pending ids at which they are moved; as many new ones may arrive meanwhile.
    gathered = 2**16
    #: Maximum ids moved per transaction; more than twice the batches of a group.
    at_once = 2**12

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}
        self._last = 0
        # The ids being moved: all of the log up to row _bound, sorted; _place is the position of the next one.
        self._moving: dict[bytes, bytes] = {}
        self._sorted, self._place, self._bound = b"", 0, 0

    def find(self, execute: Execute, batches: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the receipts of batches that were counted before; call it in every transaction before ``add``."""
        arrived = self._read(execute)
        # Move twice as many ids as arrived, so that the move ends before the log is long again. The limit matters at
        # the start, when the whole log arrives at once.
        self._move(execute, min(2 * arrived, self.at_once))
        receipts = {}
        for batch in batches:
            receipt = self._known.get(batch) or self._moving.get(batch)
            if receipt is not None:
                receipts[batch] = receipt
        receipts.update(execute(_FIND, (b"".join(batches),)).fetchall())
        return receipts

    def add(self, execute: Execute, records: Sequence[bytes]) -> None:
        """Append ids with their receipts to the log, sorted, because the order of arrival must not be stored."""
        execute("INSERT INTO recent (records) VALUES (?)", (b"".join(sorted(records)),))

    def _read(self, execute: Execute) -> int:
        """Cache the ids appended to the log since the last call; return their number."""
        arrived = 0
        statement = "SELECT number, records FROM recent WHERE number > ? ORDER BY number"
        for number, records in execute(statement, (self._last,)).fetchall():
            for start in range(0, len(records), _RECORD):
                self._known[records[start : start + ID_BYTES]] = records[start + ID_BYTES : start + _RECORD]
            arrived += len(records) // _RECORD
            self._last = number
        if len(self._known) >= self.gathered and not self._moving:
            records = b"".join(batch + receipt for batch, receipt in self._known.items())
            order = np.argsort(np.frombuffer(records, _SORTED_BY)["begin"])
            self._sorted, self._place = np.frombuffer(records, f"V{_RECORD}")[order].tobytes(), 0
            self._moving, self._known, self._bound = self._known, {}, self._last
        return arrived

    def _move(self, execute: Execute, most: int) -> None:
        """Move at most ``most`` ids from the log to the table."""
        if not self._moving or not most:
            return
        end = self._place + most * _RECORD
        execute(_MOVE, (self._sorted[self._place : end],))
        self._place = end
        if end >= len(self._sorted):
            execute("DELETE FROM recent WHERE number <= ?", (self._bound,))
            self._moving, self._sorted = {}, b""


#: Seconds that a writer waits for the lock of another process, such as a backup or a second collector.
_TIMEOUT = 10.0
#: Number of prepared statements to cache; groups of different sizes have different statements.
_STATEMENTS = 1000
_SETTINGS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    # Copy pages from the log to the file every 64 MB, so that a page changed by many transactions is copied once.
    "wal_autocheckpoint = 16384",
    "cache_size = -65536",
    "secure_delete = ON",  # overwrite deleted reports
)


MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE collections (
            number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
            created INTEGER NOT NULL, previous TEXT REFERENCES collections (id),
            policy TEXT NOT NULL, mechanism TEXT NOT NULL, certificate TEXT NOT NULL, about TEXT NOT NULL,
            key_hash BLOB)""",
        """CREATE TABLE progress (
            collection TEXT PRIMARY KEY REFERENCES collections (id), state TEXT NOT NULL,
            reports INTEGER NOT NULL, batches INTEGER NOT NULL)""",
        """CREATE TABLE counts (
            collection TEXT NOT NULL, page INTEGER NOT NULL, counts BLOB NOT NULL,
            PRIMARY KEY (collection, page))""",
        """CREATE TABLE batches (
            batch BLOB PRIMARY KEY, receipt BLOB NOT NULL) WITHOUT ROWID""",
        "CREATE TABLE recent (number INTEGER PRIMARY KEY AUTOINCREMENT, records BLOB NOT NULL)",
        """CREATE TABLE raw (
            collection TEXT NOT NULL, day INTEGER NOT NULL, number INTEGER NOT NULL, mixed INTEGER NOT NULL,
            reports BLOB NOT NULL, PRIMARY KEY (collection, day, number)) WITHOUT ROWID""",
        "CREATE INDEX unmixed ON raw (day, collection, number) WHERE mixed = 0",
        """CREATE TABLE tokens (
            collection TEXT NOT NULL REFERENCES collections (id), token_hash BLOB NOT NULL, spent INTEGER NOT NULL,
            PRIMARY KEY (collection, token_hash))""",
        "CREATE TABLE admins (token_hash BLOB PRIMARY KEY, created INTEGER NOT NULL)",
    ),
    ("ALTER TABLE collections ADD COLUMN question TEXT",),
)


class SQLiteStore(Store):
    """A store in the file at ``path``; with ``create``, the file is created if it is missing."""

    migrations = MIGRATIONS
    begin = "BEGIN IMMEDIATE"
    hold = "SELECT state, batches FROM progress WHERE collection = ?"  # BEGIN IMMEDIATE already excludes other writers
    sql = Statements("?")

    def __init__(self, path: str, *, create: bool) -> None:
        super().__init__()
        self.path = path
        self._name = f"{Path(path).absolute().as_uri()}?mode=rw"
        if create:
            _make(path)

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._name,
            uri=True,
            timeout=_TIMEOUT,
            isolation_level=None,
            cached_statements=_STATEMENTS,
            check_same_thread=False,
        )
        try:
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
        except BaseException:  # the file may not be a database
            connection.close()
            raise
        return connection

    def is_unavailable(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.OperationalError)

    def hold_tables(self, execute: Execute) -> None:
        pass  # BEGIN IMMEDIATE already excludes other writers

    # -- batch ids, cached per thread ------------------------------------------------------------------------

    def commit(self, group: Sequence[Submission]) -> list[SubmissionResult]:
        try:
            return super().commit(group)
        except BaseException:
            self._local.pending_batch_ids = None  # the cache may contain ids of the transaction that was rolled back
            raise

    def known_batches(self, execute: Execute, batches: Sequence[bytes]) -> dict[bytes, bytes]:
        pending_batch_ids = getattr(self._local, "pending_batch_ids", None)
        if pending_batch_ids is None:
            pending_batch_ids = self._local.pending_batch_ids = PendingBatchIds()
        return pending_batch_ids.find(execute, batches)

    def write_batches(self, execute: Execute, records: Sequence[bytes]) -> None:
        self._local.pending_batch_ids.add(execute, records)


def _make(path: str) -> None:
    """Create an empty file that only this user may read, if none exists.

    SQLite gives its ``-wal`` and ``-shm`` files the same mode. An existing file is not opened, because closing it again
    would release the locks of every connection in this process.
    """
    with contextlib.suppress(OSError):  # if the file cannot be created, SQLite reports the reason
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
