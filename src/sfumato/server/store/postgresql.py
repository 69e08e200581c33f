"""A store in PostgreSQL, which supports several workers and requires the optional dependency psycopg."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from sfumato.errors import MissingExtra
from sfumato.server.store.base import Execute, Store
from sfumato.server.store.migrations import POSTGRESQL, Column, steps
from sfumato.server.store.records import Submission, SubmissionResult
from sfumato.server.store.statements import Statements

__all__ = ["PostgreSQLStore"]

#: Seconds after which a server that does not respond counts as unavailable.
_TIMEOUT = 10
#: Maximum bytes of a table other than ``tokens`` that is rewritten to erase deleted rows; bounds how long submissions
#: wait.
_MOST_REWRITTEN = 2**26
#: Begin of a transaction that gives up soon if a reader holds a table, because submissions wait behind it.
_LOCK_BRIEFLY = "SET LOCAL lock_timeout = '500ms'"
#: Tables whose rows show what a transaction wrote. The first one is small, and every commit deletes a version of one of
#: its rows, so it shows early whether an open transaction may still read some.
_TRACED = ("progress", "tokens", "counts", "released", "raw")
#: Key of the advisory lock; any number that other applications do not use.
_LOCK = 0x5F0A70


class PostgreSQLStore(Store):
    """A store in the database at ``url``."""

    migrations = steps(POSTGRESQL)
    begin = "BEGIN"
    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    own_numbers = " OVERRIDING SYSTEM VALUE"
    actions: ClassVar[dict[str, str]] = {
        "read-only transaction": "PostgreSQL accepts no writes: connect to the primary server, or turn off "
        "default_transaction_read_only",
        'FATAL:  database "': "check the name of the database in --store, and that it accepts connections",
        'FATAL:  role "': "check the name of the user in --store",
        "password authentication failed": "correct the password in PGPASSFILE or PGPASSWORD",
        "no password supplied": "set PGPASSFILE or PGPASSWORD; a password file that other users may read is ignored",
        "does not exist": "the database does not have the tables of this release: check that --store is the database "
        "of a collector, run `sfumato store upgrade`, or restore a backup",
        "cached plan": "the tables were changed while the collector ran: run `sfumato store check`",
        "permission denied": "grant the role of the collector all rights on its tables",
        "No space left": "free space on the disk of PostgreSQL",
        "could not extend file": "free space on the disk of PostgreSQL",
        "starting up": "wait until PostgreSQL has started",
    }
    erase_seconds = 3600.0
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
        self._rewritten = False  # whether all tokens were rewritten since this store spent one

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
        errors = self._psycopg.errors
        kinds = (
            self._psycopg.OperationalError,
            self._psycopg.InterfaceError,
            errors.ReadOnlySqlTransaction,
            errors.UndefinedTable,
            errors.UndefinedColumn,
            errors.FeatureNotSupported,  # a prepared statement on tables that were changed
            errors.InsufficientPrivilege,
            errors.DataCorrupted,
            errors.IndexCorrupted,
        )
        return isinstance(error, kinds)

    def restart_numbers(self, execute: Callable[..., Any]) -> None:
        rows = execute(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = current_schema() "
            "AND column_name = 'number' AND is_identity = 'YES'"
        ).fetchall()
        for (table,) in rows:
            execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'number'), "
                f"(SELECT COALESCE(MAX(number), 0) + 1 FROM {table}), false)"
            )

    def room(self) -> tuple[int, int | None]:
        with self._connected() as execute:
            (size,) = execute("SELECT pg_database_size(current_database())").fetchone()
        return int(size), None

    def hold_tables(self, execute: Callable[..., Any]) -> None:
        execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))

    # -- traces of transactions --------------------------------------------------------------------------

    def commit(self, group: Sequence[Submission]) -> list[SubmissionResult]:
        self._rewritten = False
        return super().commit(group)

    def erase(self) -> bool:
        """Give all tokens and all reports of the day one transaction, and remove deleted versions of rows.

        PostgreSQL records the transaction of each row (``xmin``), and keeps deleted versions and the order of writing
        in a table. Transactions have an order too, so the rows of each hour must not keep theirs. ``CLUSTER`` rewrites
        tables in the order of their keys, which are hashes or random. Larger tables without tokens are vacuumed only,
        which leaves the bytes of deleted rows in free space.
        """
        with self._connected() as execute:
            try:
                if not self._rewritten:
                    self._rewrite(execute)
                    self._rewritten = True
                return all(self._remove_versions(execute, table) for table in _TRACED)
            except self._psycopg.errors.LockNotAvailable:  # a backup reads the table
                return False

    def _rewrite(self, execute: Execute) -> None:
        """Write every token and every unsorted report again, in one transaction."""
        with self._local.connection.transaction():
            execute(_LOCK_BRIEFLY)
            execute("UPDATE raw SET mixed = mixed WHERE mixed = 0")  # first, as delete_collection does
            execute("LOCK TABLE tokens IN SHARE ROW EXCLUSIVE MODE")  # no deadlock with workers that spend tokens
            execute("UPDATE tokens SET spent = spent")

    def _remove_versions(self, execute: Execute, table: str) -> bool:
        """Remove deleted versions of the rows of a table; return False if an open transaction may still read some."""
        (size,) = execute("SELECT pg_total_relation_size(%s::regclass)", (table,)).fetchone()
        if table != "tokens" and size > _MOST_REWRITTEN:
            execute(f"VACUUM {table}")
            return True
        with self._local.connection.transaction():
            execute(_LOCK_BRIEFLY)
            execute(f"CLUSTER {table} USING {table}_pkey")
            # The new index counts all versions of rows, those that other transactions may read too.
            statement = f"SELECT reltuples <= (SELECT COUNT(*) FROM {table}) FROM pg_class WHERE oid = %s::regclass"
            (removed,) = execute(statement, (f"{table}_pkey",)).fetchone()
        return bool(removed)

    def columns(self, execute: Callable[..., Any]) -> list[Column]:
        rows = execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position"
        ).fetchall()
        return [Column.of(*row) for row in rows]
