"""Roles on collections, the log of changes, undo, and deletion. All functions work on both databases.

======  =============================================================================================================
role    rights
======  =============================================================================================================
author  create collections, and own those; a role on the whole collector, whose column ``collection`` is empty
owner   everything about one collection, except its policy, question and mechanism
reader  read the results of one collection, also if they are not public
======  =============================================================================================================

An administrator has all rights. A role ends at the latest with the role of the token that granted it. The log records
who changed what and when; it contains nothing about participants.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from sfumato.collecting import Aggregate, decode_batch
from sfumato.mechanisms import Mechanism
from sfumato.server.store.base import PAGE, Store, page_bytes
from sfumato.server.store.records import Progress

__all__ = [
    "ANY",
    "LEAST_UNDONE",
    "Change",
    "DayOfReports",
    "Grant",
    "Owned",
    "Role",
    "add_grant",
    "changes",
    "copy_role",
    "counts_and_days",
    "delete_collection",
    "expiry_of",
    "grant_of",
    "grants",
    "issued_tokens",
    "owned",
    "pass_on_role",
    "record_change",
    "reports_by_day",
    "revoke_grant",
    "undo_day",
]

Role = Literal["author", "owner", "reader"]
#: The column ``collection`` of a role on the whole collector.
ANY = ""
#: Minimum reports of a day that can be undone: the counts before and after would reveal the reports of a smaller day.
LEAST_UNDONE = 100
#: Maximum entries of the log per request.
_MOST_ENTRIES = 1000


class Grant(NamedTuple):
    """A token's role on a collection, with the hash of the token; ``expires`` is a Unix time or None.

    ``granted_by`` is the hash of the token that granted the role; None for an author's roles.
    """

    token_hash: bytes
    collection: str
    role: Role
    name: str
    created: int
    expires: int | None
    granted_by: bytes | None = None


class Change(NamedTuple):
    """An entry of the log: Unix time, fingerprint of the token, action, and what changed, as JSON."""

    moment: int
    who: str
    action: str
    details: str


class Owned(NamedTuple):
    """A collection that a token has a role on, with its one-time tokens: issued and used."""

    number: int
    id: str
    created: int
    metadata: str
    progress: Progress
    role: Role | Literal["admin"]
    issued: int
    used: int


class DayOfReports(NamedTuple):
    """The stored reports of one day (days since 1970, UTC), as counts."""

    day: int
    counts: Aggregate


def _mark(store: Store, statement: str) -> str:
    """Return a statement with the parameter mark of the store instead of ``?``."""
    return statement.replace("?", store.sql.mark)


# -- roles ---------------------------------------------------------------------------------------------------


def add_grant(store: Store, grant: Grant) -> None:
    """Add a role, or replace the role that the token has on the collection."""
    with store.transaction() as execute:
        execute(
            _mark(
                store,
                "INSERT INTO roles VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (token_hash, collection) DO UPDATE SET "
                "role = excluded.role, name = excluded.name, created = excluded.created, expires = excluded.expires",
            ),
            tuple(grant),
        )


def pass_on_role(store: Store, grant: Grant) -> Grant | None:
    """Add a role that expires no later than that of its grantor; return it, or None if the grantor has lost its own."""
    assert grant.granted_by is not None
    with store.transaction() as execute:
        store.hold_tables(execute)  # so that no concurrent revocation misses the new role
        if not store.is_admin(grant.granted_by):
            grantor = grant_of(store, grant.granted_by, grant.collection, grant.created)
            if grantor is None:
                return None
            ends = [time for time in (grant.expires, grantor.expires) if time is not None]
            grant = grant._replace(expires=min(ends, default=None))
        add_grant(store, grant)
    return grant


def copy_role(store: Store, token_hash: bytes, source: str, copy: str) -> None:
    """Give a token its role on a collection also on a copy, and the tokens that it comes from theirs."""
    statement = (
        "WITH RECURSIVE chain AS (SELECT * FROM roles WHERE token_hash = ? AND collection = ? UNION SELECT roles.* "
        "FROM roles JOIN chain ON roles.token_hash = chain.granted_by AND roles.collection = chain.collection) "
        "INSERT INTO roles SELECT token_hash, ?, role, name, created, expires, granted_by FROM chain"
    )
    with store.transaction() as execute:
        store.hold_tables(execute)
        execute(_mark(store, statement), (token_hash, source, copy))


def grant_of(store: Store, token_hash: bytes, collection: str, now: int) -> Grant | None:
    """Return the role of a token on a collection unless it has expired; None if it has none."""
    with store.connected() as execute:
        row = execute(
            _mark(
                store,
                "SELECT * FROM roles WHERE token_hash = ? AND collection = ? AND (expires IS NULL OR expires > ?)",
            ),
            (token_hash, collection, now),
        ).fetchone()
    return None if row is None else Grant(*row)


def grants(store: Store, collection: str) -> list[Grant]:
    """Return all roles on a collection, or on the whole collector, the oldest first."""
    with store.connected() as execute:
        rows = execute(
            _mark(
                store,
                "SELECT * FROM roles WHERE collection = ? ORDER BY created, token_hash",
            ),
            (collection,),
        ).fetchall()
    return [Grant(*row) for row in rows]


def revoke_grant(store: Store, token_hash: bytes, collection: str) -> bool:
    """Revoke the role of a token on a collection, or with ANY all its roles; return whether it had one.

    A token of an author is also the owner of the collections that the author opened. With a role end the roles that its
    token granted on that collection, and so on.
    """
    its_roles = "token_hash = ?" if collection == ANY else "token_hash = ? AND collection = ?"
    statement = (
        f"WITH RECURSIVE ended AS (SELECT token_hash, collection FROM roles WHERE {its_roles} UNION "
        "SELECT roles.token_hash, roles.collection FROM roles JOIN ended "
        "ON granted_by = ended.token_hash AND roles.collection = ended.collection) "
        "DELETE FROM roles WHERE (token_hash, collection) IN (SELECT token_hash, collection FROM ended)"
    )
    with store.transaction() as execute:
        store.hold_tables(execute)
        removed = execute(_mark(store, statement), (token_hash,) if collection == ANY else (token_hash, collection))
    return bool(removed.rowcount)


def expiry_of(store: Store, token_hash: bytes) -> int | None:
    """Return the time at which a token expires; None if it never does."""
    with store.connected() as execute:
        row = execute(_mark(store, "SELECT MIN(expires) FROM roles WHERE token_hash = ?"), (token_hash,)).fetchone()
    return None if row[0] is None else int(row[0])


def owned(store: Store, token_hash: bytes | None, after: int, limit: int, now: int) -> list[Owned]:
    """Return the collections that a token has a role on, the oldest first; all of them if the token is None."""
    join = "" if token_hash is None else "JOIN roles ON roles.collection = collections.id AND roles.token_hash = ? "
    role = "'admin'" if token_hash is None else "roles.role"
    valid = "" if token_hash is None else "AND (roles.expires IS NULL OR roles.expires > ?) "
    parameters = (after, limit) if token_hash is None else (token_hash, after, now, limit)
    with store.connected() as execute:
        rows = execute(
            _mark(
                store,
                f"SELECT number, id, collections.created, about, state, {store.sql.shown_numbers}, {role}, "
                "(SELECT COUNT(*) FROM tokens WHERE tokens.collection = id), "
                "(SELECT COUNT(*) FROM tokens WHERE tokens.collection = id AND spent <> 0) "
                f"FROM collections JOIN progress ON progress.collection = id {join}"
                f"WHERE number > ? {valid}ORDER BY number LIMIT ?",
            ),
            parameters,
        ).fetchall()
    return [Owned(*(*row[:4], Progress(*row[4:7]), *row[7:])) for row in rows]


def issued_tokens(store: Store, collection: str) -> tuple[int, int]:
    """Return the number of one-time tokens of a collection, and how many of them were used."""
    with store.connected() as execute:
        issued, used = execute(
            _mark(store, "SELECT COUNT(*), COALESCE(SUM(CASE WHEN spent <> 0 THEN 1 ELSE 0 END), 0) FROM tokens "
                  "WHERE collection = ?"),
            (collection,),
        ).fetchone()  # fmt: skip
    return int(issued), int(used)


# -- log -----------------------------------------------------------------------------------------------------


def record_change(store: Store, collection: str, change: Change) -> None:
    """Add an entry to the log of a collection."""
    with store.transaction() as execute:
        _record(store, execute, collection, change)


def _record(store: Store, execute: Any, collection: str, change: Change) -> None:
    """Add an entry to the log in an open transaction."""
    statement = "INSERT INTO changes (collection, moment, who, action, details) VALUES (?, ?, ?, ?, ?)"
    execute(_mark(store, statement), (collection, *change))


def changes(store: Store, collection: str) -> list[Change]:
    """Return the log of a collection, the newest entries first; it remains after the collection was deleted."""
    statement = "SELECT moment, who, action, details FROM changes WHERE collection = ? ORDER BY number DESC LIMIT ?"
    with store.connected() as execute:
        rows = execute(_mark(store, statement), (collection, _MOST_ENTRIES)).fetchall()
    return [Change(*row) for row in rows]


# -- reports of one day --------------------------------------------------------------------------------------


def reports_by_day(store: Store, collection: str, mechanism: Mechanism) -> list[DayOfReports]:
    """Return the counts of the stored reports of each day; days whose reports were deleted are missing."""
    statement = "SELECT day, reports FROM raw WHERE collection = ? ORDER BY day, number"
    days: dict[int, Aggregate] = {}
    with store.connected() as execute:
        for day, batch in execute(_mark(store, statement), (collection,)).fetchall():
            counts = _counts(mechanism, bytes(batch))
            days[day] = days[day].merge(counts) if day in days else counts
    return [DayOfReports(day, counts) for day, counts in days.items()]


def counts_and_days(store: Store, collection: str, mechanism: Mechanism) -> tuple[Aggregate, dict[int, Aggregate]]:
    """Return all counts, and those of the stored reports of each day, from one state of the store."""
    with store.reading():  # the calls use the connection of this thread, and so its transaction
        counts = store.counts(collection, mechanism)
        return counts, dict(reports_by_day(store, collection, mechanism))


def _counts(mechanism: Mechanism, batch: bytes) -> Aggregate:
    """Return the counts of the reports in a stored batch."""
    reports = decode_batch(mechanism, batch)
    counts = np.zeros(mechanism.report_format.count_size, np.int64)
    mechanism.report_format.count(reports, counts)
    return Aggregate(mechanism.hash, len(reports), counts)


def undo_day(store: Store, collection: str, mechanism: Mechanism, day: int, change: Change, step: int) -> int:
    """Remove the stored reports of a day from the counts, delete them, and log it; return their number.

    The ids of their batches are kept, so a batch of that day that is sent again is not counted again. Readers without a
    token see the removal at once, unless they have seen almost none of the day: then it waits for the next ``step``.
    """
    with store.transaction() as execute:
        store.hold_collection(execute, collection)
        statement = "SELECT reports FROM raw WHERE collection = ? AND day = ?"
        rows = execute(_mark(store, statement), (collection, day)).fetchall()
        removed = [_counts(mechanism, bytes(batch)) for (batch,) in rows]
        n = sum(one.n for one in removed)
        if not n:
            return 0
        size = mechanism.report_format.count_size
        total = np.zeros(-(-size // PAGE) * PAGE, np.int64)
        for one in removed:
            total[:size] += one.counts
        pages = total.reshape(-1, PAGE)
        statement = "SELECT page, counts FROM counts WHERE collection = ?"
        for page, data in execute(_mark(store, statement), (collection,)).fetchall():
            if page >= len(pages) or not pages[page].any():
                continue
            left = np.frombuffer(data, "<i8") - pages[page, : len(data) // 8]
            if (left < 0).any():
                raise ValueError("the stored reports are not all in the counts")
            pages[page, : len(left)] = left
            update = "UPDATE counts SET counts = ? WHERE collection = ? AND page = ?"
            execute(_mark(store, update), (page_bytes(pages, page, size), collection, page))
        execute(_mark(store, "DELETE FROM raw WHERE collection = ? AND day = ?"), (collection, day))
        execute(_mark(store, "UPDATE progress SET reports = reports - ? WHERE collection = ?"), (n, collection))
        store.release_step(execute, collection, step)
        _record(store, execute, collection, change._replace(details=change.details.replace("REPORTS", str(n))))
    return n


# -- deletion ------------------------------------------------------------------------------------------------

_OF_A_COLLECTION = ("counts", "released", "raw", "tokens", "roles", "progress")


def delete_collection(store: Store, collection: str, change: Change) -> None:
    """Delete a collection with its counts, reports, tokens and roles; its log and the hashes of batch ids remain."""
    with store.transaction() as execute:
        store.hold_collection(execute, collection)
        for table in _OF_A_COLLECTION:
            execute(_mark(store, f"DELETE FROM {table} WHERE collection = ?"), (collection,))
        execute(_mark(store, "UPDATE collections SET previous = NULL WHERE previous = ?"), (collection,))
        execute(_mark(store, "DELETE FROM collections WHERE id = ?"), (collection,))
        _record(store, execute, collection, change)
