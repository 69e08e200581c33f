"""What a store does, the same for every database, and the transaction in which a group of batches is counted.

Exactly once: the batch ids of a group, the digests of what came under them, the tokens they spend and the counts they
add are one transaction. It first takes hold of the ``progress`` row of each collection, in order, so that two workers
never count for one collection at the same time, and never wait for each other in a circle.

Counts are kept in pages of ``PAGE`` numbers: a group touches the pages that its reports fall on, once each, however
many batches it has.
"""

from __future__ import annotations

import io
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.collecting import Aggregate, decode_batch, write_batch
from sfumato.mechanisms import Mechanism, count_reports, count_size, piece_rows
from sfumato.server.store.records import ID_BYTES, Outcome, Progress, Record, State, Submission
from sfumato.server.store.statements import Statements

__all__ = ["PAGE", "Store", "Unavailable", "mixed_batch"]

#: Counts per row of the table ``counts``.
PAGE = 128
#: Maximum rows per statement.
_MOST_ROWS = 100
#: Maximum rows of reports that are mixed into one, and maximum bytes; both bound the time of a transaction.
_MOST_MIXED, _MOST_MIXED_BYTES = 10_000, 2**20

Execute = Callable[..., Any]


class Unavailable(Exception):
    """The database did not do what it was asked, or did not say whether it did. The same request may be made again."""


class Store(ABC):
    """Collections, counts, batches and tokens. Writes come from one thread; reads may come from any."""

    #: The steps by which the tables came about. A step that was released never changes: new ones are added.
    migrations: tuple[tuple[str, ...], ...]
    #: How a transaction that will write begins.
    begin: str
    #: Reads state and number of batches of a collection, and holds its row until the transaction ends.
    hold: str
    #: The statements that every database shares, with its mark for parameters.
    sql: Statements

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

    # -- connections: one a thread, made anew after a failure ----------------------------------------------

    @contextmanager
    def _connected(self) -> Iterator[Execute]:
        connection = getattr(self._local, "connection", None)
        try:
            if connection is None:
                connection = self._local.connection = self.connect()
                with self._lock:
                    self._open.add(connection)
            yield connection.execute
        except Exception as error:
            if not self.refusal(error):
                raise
            self.close()  # what it was in the middle of is undone with it
            raise Unavailable(str(error)) from error

    @contextmanager
    def _transaction(self) -> Iterator[Execute]:
        with self._connected() as execute:
            execute(self.begin)
            try:
                yield execute
                execute("COMMIT")
            except BaseException:
                try:
                    execute("ROLLBACK")
                except Exception:
                    self.close()  # which undoes it too
                raise

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

    def touch(self) -> None:
        """Write something that changes nothing, or raise Unavailable."""
        with self._transaction() as execute:
            execute(self.sql.touch)

    def migrate(self) -> None:
        """Bring the tables up to date."""
        with self._transaction() as execute:
            self.hold_tables(execute)
            execute(self.sql.create_migrations)
            (done,) = execute(self.sql.count_migrations).fetchone()
            known = len(self.migrations)
            if done > known:
                raise Unavailable(f"the store has {done} migrations, of which this release knows {known}")
            for step, statements in enumerate(self.migrations[done:], done):
                for statement in statements:
                    execute(statement)
                execute(self.sql.add_migration, (step,))

    @abstractmethod
    def hold_tables(self, execute: Execute) -> None:
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

    def _count(self, execute: Execute, collection: str, group: list[Submission]) -> list[Outcome]:
        row = self._hold(execute, collection)
        if row is None:
            return [Outcome("not-found")] * len(group)
        state, batches = row
        known = self.known_batches(execute, [submission.batch for submission in group])
        tokens = self._known_tokens(execute, collection, group)
        counted: list[Submission] = []
        outcomes = []
        for submission in group:
            outcome = _decide(submission, known, tokens, state)
            if outcome.fate == "accepted":
                counted.append(submission)
                known[submission.batch] = submission.receipt
                if submission.token_hash is not None:
                    tokens[submission.token_hash] = True
            outcomes.append(outcome)
        if counted:
            self.write_batches(execute, [submission.batch + submission.receipt for submission in counted])
            self._spend_tokens(execute, counted)
            self._keep_reports(execute, [submission for submission in counted if submission.keep], batches)
            self._add_counts(execute, counted)
        return outcomes

    def known_batches(self, execute: Execute, batches: Sequence[bytes]) -> dict[bytes, bytes]:
        """The receipts of those batches that were counted before."""
        rows = self._where_in(execute, self.sql.batches_in, (), batches)
        return {bytes(batch): bytes(receipt) for batch, receipt in rows}

    def write_batches(self, execute: Execute, records: Sequence[bytes]) -> None:
        """Ids of batches that are counted now, each with its receipt."""
        self._insert(
            execute, self.sql.insert_batches, [(record[:ID_BYTES], record[ID_BYTES:]) for record in sorted(records)]
        )

    def _hold(self, execute: Execute, collection: str) -> tuple[State, int] | None:
        """State and number of batches of a collection, which nobody else changes until the transaction ends."""
        found: tuple[State, int] | None = execute(self.hold, (collection,)).fetchone()
        return found

    # -- the parts of counting ------------------------------------------------------------------------------

    def _known_tokens(self, execute: Execute, collection: str, group: Sequence[Submission]) -> dict[bytes, bool]:
        """Which of the tokens that the group brings there are, and whether they are spent."""
        hashes = [submission.token_hash for submission in group if submission.token_hash is not None]
        rows = self._where_in(execute, self.sql.tokens_in, (collection,), hashes)
        return {bytes(token_hash): bool(spent) for token_hash, spent in rows}

    def _spend_tokens(self, execute: Execute, counted: Sequence[Submission]) -> None:
        hashes = [submission.token_hash for submission in counted if submission.token_hash is not None]
        if hashes:
            self._where_in(execute, self.sql.spend_tokens_in, (counted[0].collection,), hashes)

    def _keep_reports(self, execute: Execute, kept: Sequence[Submission], number: int) -> None:
        """The reports of a day as one batch, sorted: who sent which, and in which order, is not kept."""
        for day in {submission.day for submission in kept}:
            own = [submission.reports for submission in kept if submission.day == day]
            batch = mixed_batch(kept[0].mechanism, own)
            self._insert(execute, self.sql.insert_reports, [(kept[0].collection, day, number, 0, batch)])

    def _add_counts(self, execute: Execute, counted: Sequence[Submission]) -> None:
        collection, mechanism = counted[0].collection, counted[0].mechanism
        size = count_size(mechanism)
        added = np.zeros(-(-size // PAGE) * PAGE, np.int64)
        reports = [submission.reports for submission in counted]
        count_reports(mechanism, np.concatenate(reports), added[:size])
        pages = added.reshape(-1, PAGE)
        touched = np.flatnonzero(pages.any(axis=1)).tolist()
        stored = self._where_in(execute, self.sql.pages_in, (collection,), touched)
        for page, data in stored:
            before = np.frombuffer(data, "<i8")
            pages[page, : len(before)] += before
        rows = [(collection, page, _page_bytes(pages, page, size)) for page in touched]
        self._insert(execute, self.sql.insert_pages, rows, self.sql.or_replace_page)
        n = sum(map(len, reports))
        execute(self.sql.add_progress, (n, len(counted), collection))

    def _where_in(self, execute: Execute, sql: str, before: tuple[Any, ...], values: Sequence[Any]) -> list[Any]:
        """The rows of ``sql IN (values)``, in as few statements as their length allows; before them those of sql."""
        rows: list[Any] = []
        for start in range(0, len(values), _MOST_ROWS):
            part = values[start : start + _MOST_ROWS]
            found = execute(self.sql.list_of(sql, len(part)), (*before, *part))
            if found.description is not None:  # an UPDATE has no rows
                rows += found.fetchall()
        return rows

    def _insert(self, execute: Execute, sql: str, rows: Sequence[tuple[Any, ...]], end: str = "") -> None:
        """Insert rows, many with each statement: a thread gives up the interpreter with every one."""
        for start in range(0, len(rows), _MOST_ROWS):
            part = rows[start : start + _MOST_ROWS]
            values = [value for own in part for value in own]
            execute(self.sql.rows_of(sql, len(part), len(part[0]), end), values)

    def counts(self, collection: str, mechanism: Mechanism) -> Aggregate:
        """What was counted, of one moment."""
        with self._connected() as execute:
            rows = execute(self.sql.counts, (collection,)).fetchall()
        counts = np.zeros(count_size(mechanism), np.int64)
        for _, page, data in rows:
            if page is not None:
                counts[page * PAGE : (page + 1) * PAGE] = np.frombuffer(data, "<i8")
        return Aggregate(mechanism.hash, rows[0][0] if rows else 0, counts)

    # -- reports that are kept ---------------------------------------------------------------------------

    def forget_reports(self, collection: str, before_day: int, most: int) -> int:
        """Delete some rows of reports that came before a day; ids, receipts and counts stay. How many they were."""
        with self._transaction() as execute:
            self._hold(execute, collection)
            deleted = execute(self.sql.forget_reports, (collection, collection, before_day, most))
        return int(deleted.rowcount)

    def unmixed(self, before_day: int) -> list[str]:
        """The collections of which there are rows to mix that came before a day."""
        with self._connected() as execute:
            rows = execute(self.sql.unmixed_collections, (before_day,)).fetchall()
        return [collection for (collection,) in rows]

    def mix_reports(self, collection: str, mechanism: Mechanism, before_day: int) -> int:
        """Make one row of many that came on the same day, before a day; how many they were.

        With it goes the order in which they came, and what PostgreSQL notes of the transaction that wrote a row, which
        is also that in which a token was spent.
        """
        with self._transaction() as execute:
            self._hold(execute, collection)
            rows = execute(self.sql.unmixed_rows, (collection, before_day, _MOST_MIXED)).fetchall()
            if not rows:
                return 0
            day, first, size = rows[0]
            numbers = [first]
            for own_day, number, length in rows[1:]:
                size += length
                if own_day != day or size > _MOST_MIXED_BYTES:
                    break
                numbers.append(number)
            parameters = (collection, day, numbers[-1])
            found = execute(self.sql.reports_to_mix, parameters).fetchall()
            execute(self.sql.delete_mixed, parameters)
            batch = mixed_batch(mechanism, [decode_batch(mechanism, bytes(reports)) for (reports,) in found])
            self._insert(execute, self.sql.insert_reports, [(collection, day, first, 1, batch)])
        return len(numbers)

    # -- collections -------------------------------------------------------------------------------------

    def add_collection(self, record: Record) -> None:
        """A new collection, open; its number is given here."""
        with self._transaction() as execute:
            execute(
                self.sql.add_collection,
                (record.id, record.created, record.previous, record.policy, record.mechanism, record.certificate,
                 record.about, record.key_hash),
            )  # fmt: skip
            execute(self.sql.open_collection, (record.id,))

    def collection(self, collection: str) -> Record | None:
        """The collection of this id."""
        with self._connected() as execute:
            row = execute(self.sql.collection, (collection,)).fetchone()
        return None if row is None else Record(*row)

    def progress(self, collection: str) -> tuple[Progress, str, bytes | None] | None:
        """What moves about a collection, what is said about it now, and the hash of its key."""
        with self._connected() as execute:
            row = execute(self.sql.progress, (collection,)).fetchone()
        return None if row is None else (Progress(*row[:3]), *row[3:])

    def collections(self, after: int, limit: int) -> list[tuple[int, str, str, Progress]]:
        """Number, id, what is said, and progress of the collections after a number, the oldest first."""
        with self._connected() as execute:
            rows = execute(self.sql.collections, (after, limit)).fetchall()
        return [(number, name, about, Progress(*rest)) for number, name, about, *rest in rows]

    def change(self, collection: str, decide: Callable[[State, str], tuple[State, str]]) -> None:
        """Open, close or archive a collection, or say something else about it: what comes of what is there now.

        What is there is read in the transaction that changes it, so that of two changes at once neither is lost.
        """
        with self._transaction() as execute:
            held = self._hold(execute, collection)
            assert held is not None
            before, _ = held
            (said,) = execute(self.sql.about, (collection,)).fetchone()
            state, about = decide(before, said)
            execute(self.sql.change_state, (state, collection))
            execute(self.sql.change_about, (about, collection))

    # -- keys and tokens ---------------------------------------------------------------------------------

    def replace_key(self, collection: str, key_hash: bytes) -> None:
        """Another key for a collection; the one before it is none any more."""
        with self._transaction() as execute:
            execute(self.sql.replace_key, (key_hash, collection))

    def add_tokens(self, collection: str, token_hashes: Sequence[bytes]) -> None:
        """One-time tokens that were handed out."""
        with self._transaction() as execute:
            self._insert(execute, self.sql.insert_tokens, [(collection, token_hash, 0) for token_hash in token_hashes])

    def add_admin(self, token_hash: bytes, created: int, *, only_first: bool = False) -> bool:
        """An admin token; with ``only_first`` only if there is none yet. Whether it was added."""
        with self._transaction() as execute:
            self.hold_tables(execute)
            if only_first and execute(self.sql.any_admin).fetchone():
                return False
            execute(self.sql.add_admin, (token_hash, created))
        return True

    def is_admin(self, token_hash: bytes) -> bool:
        """Whether this is the hash of an admin token."""
        with self._connected() as execute:
            return execute(self.sql.is_admin, (token_hash,)).fetchone() is not None

    def admins(self) -> list[tuple[bytes, int]]:
        """The hash of every admin token and when it was made, the oldest first."""
        with self._connected() as execute:
            rows = execute(self.sql.admins).fetchall()
        return [(bytes(token_hash), created) for token_hash, created in rows]

    def remove_admin(self, token_hash: bytes) -> bool:
        """Let an admin token be none any more, unless it is the last one. Whether it was removed."""
        with self._transaction() as execute:
            self.hold_tables(execute)
            removed = execute(self.sql.remove_admin, (token_hash,))
        return bool(removed.rowcount)


def _decide(submission: Submission, known: dict[bytes, bytes], tokens: dict[bytes, bool], state: State) -> Outcome:
    spent = False if submission.token_hash is None else tokens.get(submission.token_hash)
    if spent is None:  # and nothing is told about batches
        return Outcome("token-unknown")
    receipt = known.get(submission.batch)
    if receipt is not None:  # the first answer stands, also after the collection was closed
        return Outcome("repeated", len(submission.reports)) if receipt == submission.receipt else Outcome("conflict")
    if state != "open":
        return Outcome("not-open")
    if spent:
        return Outcome("token-spent")
    return Outcome("accepted", len(submission.reports))


def _page_bytes(pages: npt.NDArray[np.int64], page: int, size: int) -> bytes:
    return pages[page, : min(PAGE, size - page * PAGE)].astype("<i8").tobytes()


def mixed_batch(mechanism: Mechanism, reports: Sequence[npt.NDArray[Any]]) -> bytes:
    """One binary batch of all these reports, in ascending order."""
    together = np.concatenate(reports)
    if together.ndim > 1:
        rows = np.ascontiguousarray(together).view(f"V{together[0].nbytes}")
        together = np.sort(rows, axis=0).view(together.dtype).reshape(together.shape)
    else:
        together = np.sort(together)
    file = io.BytesIO()
    step = piece_rows(mechanism)
    write_batch(mechanism, file, (together[start : start + step] for start in range(0, len(together), step)))
    return file.getvalue()
