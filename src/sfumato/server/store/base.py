"""The statements of a store, the same for every database, and the transaction in which a group of batches is counted.

Exactly once: the batch ids of a group, the digests of what came under them, the tokens they spend and the counts they
add are one transaction. It first takes hold of the ``progress`` row of each collection, in order, so that two workers
never count for one collection at the same time, and never wait for each other in a circle.

Counts are kept in pages of ``PAGE`` numbers: a group touches the pages that its reports fall on, once each, however
many batches it has.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._aggregate import Aggregate
from sfumato.mechanisms import Mechanism
from sfumato.server.store.migrations import MIGRATIONS
from sfumato.server.store.records import Outcome, Progress, Record, State, Submission
from sfumato.tally import count_reports, count_size

__all__ = ["PAGE", "Store", "Unavailable"]

#: So many counts are one row of the table ``counts``.
PAGE = 128
#: A statement takes at most so many rows at once.
_MOST_ROWS = 100

_RECORD = "id, number, created, previous, policy, mechanism, certificate, about, key_hash"


class Unavailable(Exception):
    """The database did not do what it was asked, or did not say whether it did. The same request may be made again."""


class Store(ABC):
    """Collections, counts, batches and tokens. Writes come from one thread; reads may come from any."""

    #: The database's own for the words of ``migrations``.
    types: dict[str, str]
    #: How a transaction that will write begins, and how a row is held until it ends.
    begin: str
    hold: str

    def __init__(self) -> None:
        self._local = threading.local()
        self._open: set[Any] = set()
        self._lock = threading.Lock()

    # -- what a database does ----------------------------------------------------------------------------

    @abstractmethod
    def connect(self) -> Any:
        """A new connection that commits every statement outside a transaction."""

    @abstractmethod
    def refusal(self, error: Exception) -> bool:
        """Whether the error means that the database is away or refused for now."""

    @abstractmethod
    def statement(self, sql: str) -> str:
        """A statement with ``?`` for its parameters, as the database writes it."""

    # -- connections: one a thread, made anew after a failure ----------------------------------------------

    @contextmanager
    def _connected(self) -> Iterator[Callable[..., Any]]:
        connection = getattr(self._local, "connection", None)
        try:
            if connection is None:
                connection = self._local.connection = self.connect()
                with self._lock:
                    self._open.add(connection)
            yield lambda sql, parameters=(): connection.execute(self.statement(sql), parameters)
        except Exception as error:
            if not self.refusal(error):
                raise
            self.close()  # what it was in the middle of is undone with it
            raise Unavailable(str(error)) from error

    @contextmanager
    def _transaction(self) -> Iterator[Callable[..., Any]]:
        with self._connected() as execute:
            execute(self.begin)
            try:
                yield execute
            except BaseException:
                execute("ROLLBACK")
                raise
            execute("COMMIT")

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def close_all(self) -> None:
        """Close the connections of all threads, which must have ended."""
        with self._lock:
            for connection in self._open:
                connection.close()
            self._open.clear()

    def ping(self) -> None:
        """Do nothing, or raise Unavailable."""
        with self._connected() as execute:
            execute("SELECT 1").fetchone()

    def migrate(self) -> None:
        """Bring the tables up to date."""
        with self._transaction() as execute:
            self.hold_tables(execute)
            execute("CREATE TABLE IF NOT EXISTS migrations (step INTEGER PRIMARY KEY)")
            (done,) = execute("SELECT COUNT(*) FROM migrations").fetchone()
            if done > len(MIGRATIONS):
                raise Unavailable(f"the store has {done} migrations, of which this release knows {len(MIGRATIONS)}")
            for step, statements in enumerate(MIGRATIONS[done:], done):
                for sql in statements:
                    for word, own in self.types.items():
                        sql = sql.replace(word, own)
                    execute(sql)
                execute("INSERT INTO migrations VALUES (?)", (step,))

    @abstractmethod
    def hold_tables(self, execute: Callable[..., Any]) -> None:
        """Let no other process migrate until the transaction ends."""

    # -- counting ----------------------------------------------------------------------------------------

    def commit(self, group: Sequence[Submission]) -> list[Outcome]:
        """Count a group of batches, each at most once, in one transaction; it is on disk when this returns."""
        outcomes: dict[int, Outcome] = {}
        by_collection = sorted(range(len(group)), key=lambda place: group[place].collection)
        with self._transaction() as execute:
            for collection, places in groupby(by_collection, key=lambda place: group[place].collection):
                own = list(places)
                found = self._count(execute, collection, [group[place] for place in own])
                outcomes.update(zip(own, found, strict=True))
        return [outcomes[place] for place in range(len(group))]

    def _count(self, execute: Callable[..., Any], collection: str, group: list[Submission]) -> list[Outcome]:
        held = f"SELECT state, batches FROM progress WHERE collection = ?{self.hold}"
        row = execute(held, (collection,)).fetchone()
        if row is None:
            return [Outcome("not-found")] * len(group)
        state, batches = row
        known = _known_batches(execute, collection, group)
        tokens = _known_tokens(execute, collection, group)
        counted: list[Submission] = []
        outcomes = []
        for submission in group:
            outcome = _decide(submission, known, tokens, state)
            if outcome.fate == "accepted":
                counted.append(submission)
                known[submission.batch] = (submission.digest, outcome.reports)
                if submission.token_hash is not None:
                    tokens[submission.token_hash] = True
            outcomes.append(outcome)
        if counted:
            _write_batches(execute, counted, batches)
            _spend_tokens(execute, counted)
            _add_counts(execute, counted)
        return outcomes

    def counts(self, collection: str, mechanism: Mechanism) -> Aggregate:
        """What was counted, of one moment."""
        with self._connected() as execute:
            # One statement sees one state of the database; an empty collection has no page.
            rows = execute(
                "SELECT progress.reports, counts.page, counts.counts FROM progress "
                "LEFT JOIN counts ON counts.collection = progress.collection WHERE progress.collection = ?",
                (collection,),
            ).fetchall()
        counts = np.zeros(count_size(mechanism), np.int64)
        for _, page, data in rows:
            if page is not None:
                counts[page * PAGE : (page + 1) * PAGE] = np.frombuffer(data, "<i8")
        return Aggregate(mechanism.hash, rows[0][0] if rows else 0, counts)

    def forget_batches(self, collection: str, before_day: int, most: int) -> int:
        """Delete some raw batches that came before a day; ids, digests and counts stay. How many they were."""
        with self._transaction() as execute:
            deleted = execute(
                "DELETE FROM raw WHERE collection = ? AND day < ? AND (day, number) IN "
                "(SELECT day, number FROM raw WHERE collection = ? AND day < ? ORDER BY day, number LIMIT ?)",
                (collection, before_day, collection, before_day, most),
            )
        return int(deleted.rowcount)

    # -- collections -------------------------------------------------------------------------------------

    def add_collection(self, record: Record) -> None:
        """A new collection, open; its number is given here."""
        with self._transaction() as execute:
            execute(
                "INSERT INTO collections (id, created, previous, policy, mechanism, certificate, about, key_hash) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (record.id, record.created, record.previous, record.policy, record.mechanism, record.certificate,
                 record.about, record.key_hash),
            )  # fmt: skip
            execute("INSERT INTO progress VALUES (?, 'open', 0, 0)", (record.id,))

    def collection(self, collection: str) -> Record | None:
        """The collection of this id."""
        with self._connected() as execute:
            row = execute(f"SELECT {_RECORD} FROM collections WHERE id = ?", (collection,)).fetchone()
        return None if row is None else Record(*row)

    def progress(self, collection: str) -> tuple[Progress, str] | None:
        """What moves about a collection, and what is said about it now."""
        with self._connected() as execute:
            row = execute(
                "SELECT state, reports, batches, about FROM progress JOIN collections ON id = collection "
                "WHERE collection = ?",
                (collection,),
            ).fetchone()
        return None if row is None else (Progress(*row[:3]), row[3])

    def collections(self, after: int, limit: int) -> list[tuple[int, str, str, Progress]]:
        """Number, id, what is said, and progress of the collections after a number, the oldest first."""
        with self._connected() as execute:
            rows = execute(
                "SELECT number, id, about, state, reports, batches FROM collections "
                "JOIN progress ON collection = id WHERE number > ? ORDER BY number LIMIT ?",
                (after, limit),
            ).fetchall()
        return [(number, name, about, Progress(*rest)) for number, name, about, *rest in rows]

    def change(self, collection: str, decide: Callable[[State, str], tuple[State, str]]) -> None:
        """Open, close or archive a collection, or say something else about it: what comes of what is there now.

        What is there is read in the transaction that changes it, so that of two changes at once neither is lost.
        """
        with self._transaction() as execute:
            (before,) = execute(f"SELECT state FROM progress WHERE collection = ?{self.hold}", (collection,)).fetchone()
            (said,) = execute("SELECT about FROM collections WHERE id = ?", (collection,)).fetchone()
            state, about = decide(before, said)
            execute("UPDATE progress SET state = ? WHERE collection = ?", (state, collection))
            execute("UPDATE collections SET about = ? WHERE id = ?", (about, collection))

    # -- tokens ------------------------------------------------------------------------------------------

    def add_tokens(self, collection: str, token_hashes: Sequence[bytes]) -> None:
        """One-time tokens that were handed out."""
        with self._transaction() as execute:
            _insert(execute, "tokens", [(collection, token_hash, 0) for token_hash in token_hashes])

    def add_admin(self, token_hash: bytes, created: int, *, only_first: bool = False) -> bool:
        """An admin token; with ``only_first`` only if there is none yet. Whether it was added."""
        with self._transaction() as execute:
            self.hold_tables(execute)
            if only_first and execute("SELECT 1 FROM admins LIMIT 1").fetchone():
                return False
            execute("INSERT INTO admins VALUES (?, ?)", (token_hash, created))
        return True

    def is_admin(self, token_hash: bytes) -> bool:
        """Whether this is the hash of an admin token."""
        with self._connected() as execute:
            return execute("SELECT 1 FROM admins WHERE token_hash = ?", (token_hash,)).fetchone() is not None


# -- the parts of counting ---------------------------------------------------------------------------------

Execute = Callable[..., Any]


def _known_batches(execute: Execute, collection: str, group: Sequence[Submission]) -> dict[str, tuple[bytes, int]]:
    """Digest and number of reports of the batch ids that were counted before."""
    rows = _where_in(
        execute,
        "SELECT batch, digest, reports FROM batches WHERE collection = ? AND batch",
        collection,
        [submission.batch for submission in group],
    )
    return {batch: (bytes(digest), reports) for batch, digest, reports in rows}


def _known_tokens(execute: Execute, collection: str, group: Sequence[Submission]) -> dict[bytes, bool]:
    """Which of the tokens that the group brings there are, and whether they are spent."""
    hashes = [submission.token_hash for submission in group if submission.token_hash is not None]
    rows = _where_in(
        execute, "SELECT token_hash, spent FROM tokens WHERE collection = ? AND token_hash", collection, hashes
    )
    return {bytes(token_hash): bool(spent) for token_hash, spent in rows}


def _decide(
    submission: Submission, known: dict[str, tuple[bytes, int]], tokens: dict[bytes, bool], state: State
) -> Outcome:
    if submission.batch in known:  # the first answer stands, also after the collection was closed
        digest, reports = known[submission.batch]
        return Outcome("repeated", reports) if digest == submission.digest else Outcome("conflict")
    if state != "open":
        return Outcome("not-open")
    if submission.token_hash is not None:
        spent = tokens.get(submission.token_hash)
        if spent is None or spent:
            return Outcome("token-unknown" if spent is None else "token-spent")
    return Outcome("accepted", len(submission.reports))


def _write_batches(execute: Execute, counted: Sequence[Submission], before: int) -> None:
    """Ids and digests, and the raw batches that are to be kept, numbered on from those ``before``."""
    _insert(execute, "batches", [(s.collection, s.batch, s.digest, len(s.reports)) for s in counted])
    raw = [(s.collection, s.day, n, s.payload) for n, s in enumerate(counted, before) if s.payload is not None]
    _insert(execute, "raw", raw)


def _spend_tokens(execute: Execute, counted: Sequence[Submission]) -> None:
    hashes = [submission.token_hash for submission in counted if submission.token_hash is not None]
    if hashes:
        _where_in(
            execute, "UPDATE tokens SET spent = 1 WHERE collection = ? AND token_hash", counted[0].collection, hashes
        )


def _add_counts(execute: Execute, counted: Sequence[Submission]) -> None:
    collection, mechanism = counted[0].collection, counted[0].mechanism
    size = count_size(mechanism)
    added = np.zeros(-(-size // PAGE) * PAGE, np.int64)
    reports = [submission.reports for submission in counted]
    count_reports(mechanism, reports[0] if len(reports) == 1 else np.concatenate(reports), added[:size])
    pages = added.reshape(-1, PAGE)
    touched = np.flatnonzero(pages.any(axis=1)).tolist()
    stored = _where_in(execute, "SELECT page, counts FROM counts WHERE collection = ? AND page", collection, touched)
    for page, data in stored:
        before = np.frombuffer(data, "<i8")
        pages[page, : len(before)] += before
    rows = [(collection, page, _page_bytes(pages, page, size)) for page in touched]
    _insert(execute, "counts", rows, " ON CONFLICT (collection, page) DO UPDATE SET counts = excluded.counts")
    n = sum(map(len, reports))
    execute(
        "UPDATE progress SET reports = reports + ?, batches = batches + ? WHERE collection = ?",
        (n, len(counted), collection),
    )


def _page_bytes(pages: npt.NDArray[np.int64], page: int, size: int) -> bytes:
    return pages[page, : min(PAGE, size - page * PAGE)].astype("<i8").tobytes()


def _where_in(execute: Execute, sql: str, collection: str, values: Sequence[Any]) -> list[Any]:
    """The rows of ``sql IN (values)``, in as few statements as their length allows."""
    rows: list[Any] = []
    for start in range(0, len(values), _MOST_ROWS):
        part = values[start : start + _MOST_ROWS]
        found = execute(f"{sql} IN ({_marks(len(part))})", (collection, *part))
        if found.description is not None:  # an UPDATE has no rows
            rows += found.fetchall()
    return rows


def _insert(execute: Execute, table: str, rows: Sequence[tuple[Any, ...]], conflict: str = "") -> None:
    """Insert rows, many with each statement: a thread gives up the interpreter with every one."""
    for start in range(0, len(rows), _MOST_ROWS):
        part = rows[start : start + _MOST_ROWS]
        row = f"({_marks(len(part[0]))})"
        values = [value for own in part for value in own]
        execute(f"INSERT INTO {table} VALUES {', '.join([row] * len(part))}{conflict}", values)


def _marks(count: int) -> str:
    return ", ".join("?" * count)
