"""The store of a collector, in SQLite or PostgreSQL."""

from __future__ import annotations

from sfumato.errors import Description, InvalidInput
from sfumato.server.store.base import Store
from sfumato.server.store.records import Progress, Record, Submission, SubmissionResult

__all__ = ["Progress", "Record", "Store", "Submission", "SubmissionResult", "open_store"]


def open_store(url: str, *, migrate: bool = True) -> Store:
    """Open the store at a URL; with ``migrate``, bring its tables up to date.

    Accepted URLs are ``sqlite:///collect.db`` (a file in the current folder), ``sqlite:////var/lib/collect.db`` (a file
    with an absolute path) and ``postgresql://user@host/database`` (a database server).
    """
    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" and separator and rest.startswith("/") and rest[1:]:
        from sfumato.server.store.sqlite import SQLiteStore

        store: Store = SQLiteStore(rest[1:], create=migrate)
    elif scheme in ("postgresql", "postgres") and separator:
        from sfumato.server.store.postgresql import PostgreSQLStore

        store = PostgreSQLStore(url)
    else:
        # Show only the beginning, because a URL may contain a password.
        shown = Description(f"{scheme}://…" if separator else "one without ://")
        raise InvalidInput("the store", "its URL", "begin with sqlite:/// or postgresql://", shown)
    if migrate:
        store.migrate()
    return store
