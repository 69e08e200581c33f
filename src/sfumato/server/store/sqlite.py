"""SQLite: one file beside the service. A commit is on disk when it returns (write-ahead log, synchronous=FULL)."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from sfumato.server.store.base import Execute, Store
from sfumato.server.store.recent import RecentBatches
from sfumato.server.store.records import Outcome, Submission

__all__ = ["SQLiteStore"]

#: How long a writer waits for another process (a backup, a second service) before it is refused.
_PATIENCE = 10.0
#: The statements of groups of many sizes are kept prepared.
_STATEMENTS = 1000
_SETTINGS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    # A page that many transactions change is moved from the log to the file once for all of them: every 64 MB.
    "wal_autocheckpoint = 16384",
    "cache_size = -65536",
    "secure_delete = ON",  # what a rule deletes is overwritten
)


class SQLiteStore(Store):
    """A store in the file at ``path``, which is made if need be and ``create`` says so."""

    types = {  # noqa: RUF012
        "BYTES": "BLOB",
        "WHOLE": "INTEGER",
        "NUMBERED": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "CLUSTERED": "WITHOUT ROWID",
    }
    begin = "BEGIN IMMEDIATE"
    hold = ""

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
            timeout=_PATIENCE,
            isolation_level=None,
            cached_statements=_STATEMENTS,
            check_same_thread=False,
        )
        try:
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
        except BaseException:  # it may be no database
            connection.close()
            raise
        return connection

    def refusal(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.OperationalError)

    def statement(self, sql: str) -> str:
        return sql

    def hold_tables(self, execute: Execute) -> None:
        pass  # whoever began to write is alone

    # -- batch ids: a thread knows the newest ---------------------------------------------------------------

    def commit(self, group: Sequence[Submission]) -> list[Outcome]:
        try:
            return super().commit(group)
        except BaseException:
            self._local.recent = None  # it may have seen what is undone now
            raise

    def known_batches(self, execute: Execute, batches: Sequence[bytes]) -> dict[bytes, bytes]:
        recent = getattr(self._local, "recent", None)
        if recent is None:
            recent = self._local.recent = RecentBatches()
        return recent.find(execute, batches)

    def write_batches(self, execute: Execute, records: Sequence[bytes]) -> None:
        self._local.recent.add(execute, records)


def _make(path: str) -> None:
    """An empty file for this user alone, if there is none; SQLite gives its ``-wal`` and ``-shm`` files the same mode.

    One that is there is not opened: to close it again would take away the locks of every connection in this process.
    """
    with contextlib.suppress(OSError):  # where none can be made there is none, and SQLite says so
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
