"""PostgreSQL: for several workers, and for who already keeps one. Needs the optional dependency psycopg."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato.errors import MissingExtra
from sfumato.server.store.base import Store

__all__ = ["PostgreSQLStore"]

#: Seconds until a server that does not answer counts as away.
_PATIENCE = 10
#: Any number that nobody else locks.
_LOCK = 0x5F0A70


class PostgreSQLStore(Store):
    """A store in the database at ``url``."""

    types = {  # noqa: RUF012
        "BYTES": "BYTEA",
        "WHOLE": "BIGINT",
        "NUMBERED": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "CLUSTERED": "",
    }
    begin = "BEGIN"
    hold = " FOR UPDATE"

    def __init__(self, url: str) -> None:
        super().__init__()
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("postgresql", "a store in PostgreSQL") from None
        self._psycopg = psycopg
        self.url = url

    def connect(self) -> Any:
        connection = self._psycopg.connect(
            self.url,
            autocommit=True,
            connect_timeout=_PATIENCE,
            tcp_user_timeout=1000 * _PATIENCE,
            keepalives_idle=_PATIENCE,
        )
        # A database may be set to acknowledge before it writes; an acknowledged report may not be lost.
        connection.execute("SET synchronous_commit = on")
        # A worker that vanished in the middle of a transaction holds up the others no longer than this.
        for setting in ("idle_in_transaction_session_timeout", "lock_timeout"):
            connection.execute(f"SET {setting} = '{_PATIENCE}s'")
        return connection

    def refusal(self, error: Exception) -> bool:
        return isinstance(error, (self._psycopg.OperationalError, self._psycopg.InterfaceError))

    def statement(self, sql: str) -> str:
        return sql.replace("?", "%s")

    def hold_tables(self, execute: Callable[..., Any]) -> None:
        execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
