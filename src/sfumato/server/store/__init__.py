"""Where a collector keeps what it was sent: one set of statements, over SQLite or PostgreSQL."""

from __future__ import annotations

from sfumato.errors import InvalidInput
from sfumato.server.store.base import Store
from sfumato.server.store.records import Outcome, Progress, Record, Submission

__all__ = ["Outcome", "Progress", "Record", "Store", "Submission", "open_store"]


def open_store(url: str, *, migrate: bool = True) -> Store:
    """The store that a URL names, its tables brought up to date unless that is done already.

    ``sqlite:///collect.db`` is a file in this folder, ``sqlite:////var/lib/collect.db`` one with a full path, and
    ``postgresql://user@host/database`` a server.
    """
    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" and separator and rest.startswith("/") and rest[1:]:
        from sfumato.server.store.sqlite import SQLiteStore

        store: Store = SQLiteStore(rest[1:], create=migrate)
    elif scheme in ("postgresql", "postgres") and separator:
        from sfumato.server.store.postgresql import PostgreSQLStore

        store = PostgreSQLStore(url)
    else:
        # A URL may hold a password: only its beginning is shown.
        raise InvalidInput("a store", "its URL", "begin with sqlite:/// or postgresql://", f"{scheme}://…")
    if migrate:
        store.migrate()
    return store
