"""A store in PostgreSQL, which supports several workers and requires the optional dependency psycopg."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato.errors import MissingExtra
from sfumato.server.store.base import Store
from sfumato.server.store.statements import Statements

__all__ = ["PostgreSQLStore"]

#: Seconds after which a server that does not respond counts as unavailable.
_TIMEOUT = 10
#: Key of the advisory lock; any number that other applications do not use.
_LOCK = 0x5F0A70


MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE collections (
            number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE,
            created BIGINT NOT NULL, previous TEXT REFERENCES collections (id),
            policy TEXT NOT NULL, mechanism TEXT NOT NULL, certificate TEXT NOT NULL, about TEXT NOT NULL,
            key_hash BYTEA)""",
        """CREATE TABLE progress (
            collection TEXT PRIMARY KEY REFERENCES collections (id), state TEXT NOT NULL,
            reports BIGINT NOT NULL, batches BIGINT NOT NULL)""",
        """CREATE TABLE counts (
            collection TEXT NOT NULL, page BIGINT NOT NULL, counts BYTEA NOT NULL,
            PRIMARY KEY (collection, page))""",
        """CREATE TABLE batches (
            batch BYTEA PRIMARY KEY, receipt BYTEA NOT NULL)""",
        "CREATE TABLE recent (number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, records BYTEA NOT NULL)",
        """CREATE TABLE raw (
            collection TEXT NOT NULL, day BIGINT NOT NULL, number BIGINT NOT NULL, mixed BIGINT NOT NULL,
            reports BYTEA NOT NULL, PRIMARY KEY (collection, day, number))""",
        "CREATE INDEX unmixed ON raw (day, collection, number) WHERE mixed = 0",
        """CREATE TABLE tokens (
            collection TEXT NOT NULL REFERENCES collections (id), token_hash BYTEA NOT NULL, spent BIGINT NOT NULL,
            PRIMARY KEY (collection, token_hash))""",
        "CREATE TABLE admins (token_hash BYTEA PRIMARY KEY, created BIGINT NOT NULL)",
    ),
    ("ALTER TABLE collections ADD COLUMN question TEXT",),
)


class PostgreSQLStore(Store):
    """A store in the database at ``url``."""

    migrations = MIGRATIONS
    begin = "BEGIN"
    hold = "SELECT state, batches FROM progress WHERE collection = %s FOR UPDATE"
    sql = Statements("%s")

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
            connect_timeout=_TIMEOUT,
            tcp_user_timeout=1000 * _TIMEOUT,
            keepalives_idle=_TIMEOUT,
        )
        # An acknowledged report must not be lost, but a database may be configured to acknowledge before it writes.
        connection.execute("SET synchronous_commit = on")
        # Limit how long a worker that disappeared during a transaction can block the others.
        for setting in ("idle_in_transaction_session_timeout", "lock_timeout"):
            connection.execute(f"SET {setting} = '{_TIMEOUT}s'")
        return connection

    def is_unavailable(self, error: Exception) -> bool:
        return isinstance(error, (self._psycopg.OperationalError, self._psycopg.InterfaceError))

    def hold_tables(self, execute: Callable[..., Any]) -> None:
        execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
