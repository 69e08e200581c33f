"""SQLite: one file beside the service. A commit is on disk when it returns (write-ahead log, synchronous=FULL)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from sfumato.server.store.base import Store

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
)


class SQLiteStore(Store):
    """A store in the file at ``path``."""

    types = {  # noqa: RUF012
        "BYTES": "BLOB",
        "WHOLE": "INTEGER",
        "NUMBERED": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "CLUSTERED": "WITHOUT ROWID",
    }
    begin = "BEGIN IMMEDIATE"
    hold = ""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=_PATIENCE, isolation_level=None, cached_statements=_STATEMENTS, check_same_thread=False
        )
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        return connection

    def refusal(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.OperationalError)

    def statement(self, sql: str) -> str:
        return sql

    def hold_tables(self, execute: Callable[..., Any]) -> None:
        pass  # whoever began to write is alone
