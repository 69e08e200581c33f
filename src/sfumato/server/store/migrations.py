"""The schema of a store as numbered steps, and its fingerprint.

To change the tables, append a ``Migration`` to ``MIGRATIONS``, and its digest to ``RELEASED`` in
``tests/server/test_server_migrations.py``. A step is one list of statements for both databases; names in braces stand
for the types and functions of each (``SQLITE`` and ``POSTGRESQL``). A released step never changes, because stores in
the field have run it: a store records the digest of each step, and a release that disagrees with one refuses the store.

The fingerprint is a hash of all tables with the names and types of their columns. Both databases have the same one.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

__all__ = [
    "CREATE_MIGRATIONS",
    "MIGRATIONS",
    "POSTGRESQL",
    "SQLITE",
    "Column",
    "Migration",
    "columns_of_sqlite",
    "differences",
    "expected_columns",
    "fingerprint",
    "steps",
]

#: What the names in braces stand for, by database. ``key`` is a number that the database assigns in order,
#: ``find`` a function that returns the position of a string in another, 0 if it is missing, and ``analyzed`` begins a
#: statement for databases that store samples of columns for their planner.
SQLITE = {
    "number": "INTEGER",
    "bytes": "BLOB",
    "key": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "sorted": " WITHOUT ROWID",
    "find": "instr",
    "analyzed": "-- ",
}
POSTGRESQL = {
    "number": "BIGINT",
    "bytes": "BYTEA",
    "key": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "sorted": "",
    "find": "strpos",
    "analyzed": "",
}

#: Kinds of column types in a fingerprint, by the type that a database reports.
_KINDS = {"integer": "number", "bigint": "number", "text": "text", "blob": "bytes", "bytea": "bytes"}


class Migration(NamedTuple):
    """One step: its name, and its statements with names in braces."""

    name: str
    statements: tuple[str, ...]

    def digest(self) -> str:
        """Return the digest that a store records for this step."""
        return hashlib.sha256("\n".join(" ".join(sql.split()) for sql in self.statements).encode()).hexdigest()[:32]


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        "first",
        (
            """CREATE TABLE collections (
            number {key}, id TEXT NOT NULL UNIQUE,
            created {number} NOT NULL, previous TEXT REFERENCES collections (id),
            policy TEXT NOT NULL, mechanism TEXT NOT NULL, certificate TEXT NOT NULL, about TEXT NOT NULL,
            key_hash {bytes})""",
            """CREATE TABLE progress (
            collection TEXT PRIMARY KEY REFERENCES collections (id), state TEXT NOT NULL,
            reports {number} NOT NULL, batches {number} NOT NULL)""",
            """CREATE TABLE counts (
            collection TEXT NOT NULL, page {number} NOT NULL, counts {bytes} NOT NULL,
            PRIMARY KEY (collection, page))""",
            """CREATE TABLE batches (
            batch {bytes} PRIMARY KEY, receipt {bytes} NOT NULL){sorted}""",
            "CREATE TABLE recent (number {key}, records {bytes} NOT NULL)",
            """CREATE TABLE raw (
            collection TEXT NOT NULL, day {number} NOT NULL, number {number} NOT NULL, mixed {number} NOT NULL,
            reports {bytes} NOT NULL, PRIMARY KEY (collection, day, number)){sorted}""",
            "CREATE INDEX unmixed ON raw (day, collection, number) WHERE mixed = 0",
            """CREATE TABLE tokens (
            collection TEXT NOT NULL REFERENCES collections (id), token_hash {bytes} NOT NULL, spent {number} NOT NULL,
            PRIMARY KEY (collection, token_hash))""",
            "CREATE TABLE admins (token_hash {bytes} PRIMARY KEY, created {number} NOT NULL)",
        ),
    ),
    Migration("question", ("ALTER TABLE collections ADD COLUMN question TEXT",)),
    Migration("digests", ("ALTER TABLE migrations ADD COLUMN digest TEXT",)),
    Migration("identity", ("CREATE TABLE identity (id TEXT NOT NULL, last_day {number}, touched {number} NOT NULL)",)),
    Migration(
        "roles",
        (
            """CREATE TABLE roles (
            token_hash {bytes} NOT NULL, collection TEXT NOT NULL, role TEXT NOT NULL, name TEXT NOT NULL,
            created {number} NOT NULL, expires {number}, PRIMARY KEY (token_hash, collection))""",
            """CREATE TABLE changes (
            number {key}, collection TEXT NOT NULL, moment {number} NOT NULL, who TEXT NOT NULL, action TEXT NOT NULL,
            details TEXT NOT NULL)""",
            "CREATE INDEX changes_of ON changes (collection, number)",
        ),
    ),
    Migration(
        "releases",
        (
            """CREATE TABLE released (
            collection TEXT NOT NULL, page {number} NOT NULL, counts {bytes} NOT NULL,
            PRIMARY KEY (collection, page))""",
            "ALTER TABLE progress ADD COLUMN release_every {number}",
            "ALTER TABLE progress ADD COLUMN released_reports {number} NOT NULL DEFAULT 0",
            "ALTER TABLE progress ADD COLUMN released_batches {number} NOT NULL DEFAULT 0",
        ),
    ),
    Migration(
        "presentation",
        (
            "ALTER TABLE collections ADD COLUMN presentation TEXT",
            # The last member of the JSON object moves. No string contains these characters, because its quotes are
            # escaped. Functions for JSON are not used, because those of PostgreSQL reject the character 0.
            """UPDATE collections SET
            presentation = NULLIF(substr(about, {find}(about, ',"presentation":') + 16,
                length(about) - {find}(about, ',"presentation":') - 16), 'null'),
            about = substr(about, 1, {find}(about, ',"presentation":') - 1) || '}}'
            WHERE {find}(about, ',"presentation":') > 0""",
        ),
    ),
    Migration("grantors", ("ALTER TABLE roles ADD COLUMN granted_by {bytes}",)),
    Migration(
        "sorted tokens",  # SQLite had numbered the tokens in their order of issue
        (
            "CREATE TABLE unsorted AS SELECT * FROM tokens",
            "DROP TABLE tokens",
            """CREATE TABLE tokens (
            collection TEXT NOT NULL REFERENCES collections (id), token_hash {bytes} NOT NULL, spent {number} NOT NULL,
            PRIMARY KEY (collection, token_hash)){sorted}""",
            """INSERT INTO tokens SELECT collection, token_hash, CAST(spent <> 0 AS INTEGER) FROM unsorted
            ORDER BY collection, token_hash""",
            "DROP TABLE unsorted",
        ),
    ),
    Migration(
        "no samples",  # PostgreSQL's would outlive deleted reports; a change of the type deletes them
        tuple(
            f"{{analyzed}}ALTER TABLE {table} ALTER COLUMN {column} TYPE {{bytes}}, "
            f"ALTER COLUMN {column} SET STATISTICS 0"
            for table, column in (("raw", "reports"), ("counts", "counts"), ("released", "counts"))
        ),
    ),
)

#: The table that records the steps, which the first step expects.
CREATE_MIGRATIONS = "CREATE TABLE IF NOT EXISTS migrations (step INTEGER PRIMARY KEY)"


def steps(types: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Return the statements of every step for the database with these types."""
    return tuple(tuple(sql.format(**types) for sql in migration.statements) for migration in MIGRATIONS)


class Column(NamedTuple):
    """A column of a table, with the kind of its type."""

    table: str
    name: str
    kind: str

    @classmethod
    def of(cls, table: str, name: str, declared: str) -> Column:
        """Return the column that a database reports with this declared type."""
        return cls(table, name, _KINDS.get(declared.lower(), declared.lower()))


def columns_of_sqlite(execute: Any) -> list[Column]:
    """Return the columns of all tables of a SQLite database."""
    rows = execute(
        "SELECT tables.name, columns.name, columns.type FROM sqlite_master AS tables "
        "JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%'"
    ).fetchall()
    return [Column.of(*row) for row in rows]


@cache
def expected_columns() -> tuple[Column, ...]:
    """Return the columns of a store that has run all steps."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        for statement in (CREATE_MIGRATIONS, *chain.from_iterable(steps(SQLITE))):
            database.execute(statement)
        return tuple(columns_of_sqlite(database.execute))


def fingerprint(columns: Iterable[Column]) -> str:
    """Return the fingerprint of a schema: 16 hex digits, for any order of its columns.

    Tables of other applications, such as those of a backup tool, are left out.
    """
    tables = {column.table for column in expected_columns()}
    lines = sorted(f"{column.table}.{column.name} {column.kind}" for column in columns if column.table in tables)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def differences(columns: Sequence[Column]) -> list[str]:
    """Return how a schema differs from that of this release, in words; nothing if the fingerprints are equal."""
    if fingerprint(columns) == fingerprint(expected_columns()):
        return []
    present, tables = set(columns), {column.table for column in columns}
    expected = set(expected_columns())
    wrong = [
        f"column {column.table}.{column.name} is missing or has another type"
        if column.table in tables
        else f"table {column.table} is missing"
        for column in expected_columns()
        if column not in present
    ]
    known = {(column.table, column.name) for column in expected}
    wrong += [
        f"column {column.table}.{column.name} is unknown"
        for column in columns
        if column.table in {table for table, _ in known} and (column.table, column.name) not in known
    ]
    return list(dict.fromkeys(wrong))
