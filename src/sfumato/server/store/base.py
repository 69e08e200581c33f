"""The interface of a store and the parts that all databases share, such as the transaction that counts batches.

Every batch is counted exactly once, because one transaction writes everything about a group of batches: their ids, the
digests of their payloads, the tokens they spend and the counts they add. The transaction first locks the ``progress``
row of each collection, in a fixed order. Two workers therefore never count for one collection at the same time, and
never deadlock.

Counts are stored in pages of ``PAGE`` numbers. A group updates each page that its reports fall on once, regardless of
the number of batches. A collection that asks again has pages for each wave.
"""

from __future__ import annotations

import io
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.collecting import Aggregate, decode_batch, write_batch
from sfumato.mechanisms import Mechanism
from sfumato.randomness import secure
from sfumato.server.store.migrations import MIGRATIONS, Column, differences
from sfumato.server.store.records import ID_BYTES, METADATA, Progress, Record, State, Submission, SubmissionResult
from sfumato.server.store.statements import Statements

__all__ = ["PAGE", "Store", "Unavailable", "page_bytes", "shuffled_batch"]

#: Counts per row of the table ``counts``.
PAGE = 128
#: Shortest and longest pause in seconds between two attempts to connect, after a failure.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
#: Maximum rows per statement.
_MOST_ROWS = 100
#: Maximum rows of reports, and maximum bytes, that are shuffled into one row; both bound the time of a transaction.
_MAX_SHUFFLED_ROWS, _MAX_SHUFFLED_BYTES = 10_000, 2**20

Execute = Callable[..., Any]


class Unavailable(Exception):
    """The database failed, or did not confirm an operation; the caller may retry.

    ``action`` says what an operator can do. In contrast to the message, it names no host, user or file.
    """

    def __init__(self, message: str, action: str | None = None) -> None:
        super().__init__(message)
        self.action = message if action is None else action


class Store(ABC):
    """A store of collections, counts, batches and tokens. One thread writes; any thread may read."""

    #: The statements of each migration step, for this database.
    migrations: tuple[tuple[str, ...], ...]
    #: Statement that begins a transaction with writes, and one that reads a single state.
    begin: str
    begin_reading = "BEGIN"
    #: Clause of an INSERT that sets numbers which the database would assign.
    own_numbers = ""
    #: Statement that returns state and number of batches of a collection, and locks its row until the transaction ends.
    hold: str
    #: Seconds between two calls of ``erase``.
    erase_seconds = 60.0
    #: What an operator can do about an error, by a part of its message.
    actions: ClassVar[dict[str, str]]
    #: The statements that all databases share, with the parameter mark of this one.
    sql: Statements

    def __init__(self) -> None:
        self._local = threading.local()
        self._open: set[Any] = set()
        self._lock = threading.Lock()
        self._identity: str | None = None  # of the store at the first check
        self._pause, self._retry_at = 0.0, 0.0  # seconds between two connections while they fail; end of the pause
        self._failure = "", ""  # message and action of the last connection that failed

    # -- specific to a database --------------------------------------------------------------------------

    @abstractmethod
    def connect(self) -> Any:
        """Return a new connection in autocommit mode."""

    @abstractmethod
    def is_unavailable(self, error: Exception) -> bool:
        """Return whether an error means that the database cannot be used, now or until an operator acts."""

    def unavailable(self, error: Exception) -> Unavailable:
        """Return an error of the database as Unavailable, in one line, with what to do about it if that is known."""
        message = str(error).strip().partition("\n")[0]
        for part, action in self.actions.items():
            if part in message:
                return Unavailable(f"{message}; {action}", action)
        return Unavailable(message, "the store is unavailable; the log of the collector has the reason")

    # -- connections: one per thread, opened again after a failure ----------------------------------------------

    @contextmanager
    def _connected(self) -> Iterator[Execute]:
        """Yield the ``execute`` method of this thread's connection; raise Unavailable if the database fails."""
        connection = getattr(self._local, "connection", None)
        try:
            if connection is None:
                connection = self._local.connection = self._connect()
                with self._lock:
                    self._open.add(connection)
            yield connection.execute
        except Exception as error:
            if not self.is_unavailable(error):
                raise
            self.close()  # rolls back an open transaction
            raise self.unavailable(error) from error

    def _connect(self) -> Any:
        """Return a new connection; after a failure, pause before the next one, so that a server can start."""
        if time.monotonic() < self._retry_at:
            raise Unavailable(*self._failure)
        try:
            connection = self.connect()
        except Exception as error:
            failure = error if isinstance(error, Unavailable) else self.unavailable(error)
            self._failure = str(failure), failure.action
            self._pause = min(max(2 * self._pause, _SHORTEST_PAUSE), _LONGEST_PAUSE)
            self._retry_at = time.monotonic() + self._pause
            raise
        self._pause = 0.0
        return connection

    @contextmanager
    def _transaction(self) -> Iterator[Execute]:
        """Run a block in a transaction, which is rolled back if the block fails; a nested block is a part of it."""
        with self._connected() as execute:
            if getattr(self._local, "writes", False):
                yield execute
                return
            execute(self.begin)
            self._local.writes = True
            try:
                self.check_files()
                yield execute
                execute("COMMIT")
            except BaseException:
                try:
                    execute("ROLLBACK")
                except Exception:
                    self.close()  # rolls back as well
                raise
            finally:
                self._local.writes = False
            self.check_files()  # they may have changed meanwhile

    @contextmanager
    def reading(self) -> Iterator[Execute]:
        """Run a block in a transaction that reads one state of the store and writes nothing."""
        with self._connected() as execute:
            execute(self.begin_reading)
            try:
                yield execute
            finally:
                if self._local.connection is not None:  # a failure within the block has closed it
                    execute("ROLLBACK")

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
        """Raise Unavailable if the database cannot be read."""
        with self._connected() as execute:
            execute("SELECT 1").fetchone()

    def touch(self) -> None:
        """Raise Unavailable if the database cannot be written; the write changes no other data."""
        with self._transaction() as execute:
            execute(self.sql.touch)

    def migrate(self) -> None:
        """Bring the tables up to date; raise Unavailable for a store of a newer release or with other tables."""
        with self._transaction() as execute:
            self.hold_tables(execute)
            execute(self.sql.create_migrations)
            (done,) = execute(self.sql.count_migrations).fetchone()
            self._reject_newer(done)
            for step, statements in enumerate(self.migrations[done:], done):
                for statement in statements:
                    execute(statement)
                execute(self.sql.add_migration, (step,))
            self._record_digests(execute)
            self._check_columns(execute)
            if execute(self.sql.identity).fetchone() is None:
                execute(self.sql.add_identity, (secure.read(16).hex(),))

    def _reject_newer(self, done: int) -> None:
        """Raise Unavailable if the store has run more steps than this release knows."""
        known = len(self.migrations)
        if done > known:
            raise Unavailable(
                f"a newer release of Sfumato has migrated this store ({done} migrations, and this release knows "
                f"{known}); upgrade Sfumato"
            )

    def _record_digests(self, execute: Execute) -> None:
        """Record the digests of steps that have none; raise Unavailable if another step was run under a number."""
        for (step, digest), migration in zip(execute(self.sql.migrations).fetchall(), MIGRATIONS, strict=True):
            if digest is None:
                execute(self.sql.record_digest, (migration.digest(), step))
            elif digest != migration.digest():
                raise Unavailable(
                    f"this store has run another migration {step} than this release has ({migration.name}); "
                    "use the release that migrated it, or restore a backup"
                )

    def _check_columns(self, execute: Execute) -> None:
        """Raise Unavailable if the tables are not those of this release."""
        wrong = differences(self.columns(execute))
        if wrong:
            more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
            raise Unavailable(
                f"the tables of this store are not those of this release: {', '.join(wrong[:3])}{more}; "
                "restore a backup"
            )

    def check_schema(self) -> None:
        """Raise Unavailable unless the store has run all steps of this release and has its tables."""
        with self._connected() as execute:
            names = {column.table for column in self.columns(execute)}
            done = execute(self.sql.count_migrations).fetchone()[0] if "migrations" in names else 0
            self._reject_newer(done)
            if done < len(self.migrations):
                raise Unavailable(
                    f"the store has the schema of an earlier release ({done} of {len(self.migrations)} migrations); "
                    "copy the store with the release that wrote it or with the tools of the database, "
                    "then run `sfumato store upgrade`"
                )
            self._check_columns(execute)

    def identity(self) -> str:
        """Return the random id of this store; raise Unavailable if it has none."""
        with self._connected() as execute:
            row = execute(self.sql.identity).fetchone()
        if row is None:
            raise Unavailable("the store has lost its contents; stop the collector, and restore a backup")
        return str(row[0])

    def last_day(self) -> int | None:
        """Return the last day on which old reports were deleted, or None."""
        with self._connected() as execute:
            row = execute(self.sql.identity).fetchone()
        return None if row is None else row[1]

    def change_last_day(self, day: int) -> None:
        """Record the day on which old reports were deleted."""
        with self._transaction() as execute:
            execute(self.sql.change_last_day, (day,))

    def check_damage(self, *, thorough: bool = False) -> None:  # noqa: ARG002
        """Raise Unavailable if the store is another one than at the start, or is damaged."""
        current = self.identity()
        if self._identity is None:
            self._identity = current
        elif current != self._identity:
            raise Unavailable("the store was replaced by another one while the collector ran; restart the collector")

    def check_files(self) -> None:  # noqa: B027
        """Raise Unavailable if what this thread commits does not reach the files of the store."""

    def restart_numbers(self, execute: Execute) -> None:  # noqa: B027
        """Let the database assign numbers above those that were inserted."""

    @abstractmethod
    def room(self) -> tuple[int, int | None]:
        """Return the bytes that the store uses, and the free bytes of its disk, or None if they are unknown."""

    @abstractmethod
    def columns(self, execute: Execute) -> list[Column]:
        """Return the columns of all tables."""

    @abstractmethod
    def hold_tables(self, execute: Execute) -> None:
        """Block migrations by other processes until the transaction ends."""

    # -- counting ----------------------------------------------------------------------------------------

    def commit(self, group: Sequence[Submission]) -> list[SubmissionResult]:
        """Count a group of batches, each at most once, in one transaction that is on disk when this returns."""
        results: dict[int, SubmissionResult] = {}
        by_collection = sorted(range(len(group)), key=lambda place: group[place].collection)
        with self._transaction() as execute:
            for collection, places in groupby(by_collection, key=lambda place: group[place].collection):
                members = list(places)
                member_results = self._count(execute, collection, [group[place] for place in members])
                results.update(zip(members, member_results, strict=True))
        return [results[place] for place in range(len(group))]

    def _count(self, execute: Execute, collection: str, group: list[Submission]) -> list[SubmissionResult]:
        """Count the submissions of one collection; return the result of each."""
        row = self._hold(execute, collection)
        if row is None:
            return [SubmissionResult("not-found")] * len(group)
        state, _ = row
        known = self.known_batches(execute, [submission.batch for submission in group])
        tokens = self._known_tokens(execute, collection, group)
        counted: list[Submission] = []
        results = []
        for submission in group:
            result = _decide(submission, known, tokens, state)
            if result.outcome == "accepted":
                counted.append(submission)
                known[submission.batch] = submission.receipt
                if submission.token_hash is not None:
                    tokens[submission.token_hash] = True
            results.append(result)
        if counted:
            self.write_batches(execute, [submission.batch + submission.receipt for submission in counted])
            self._spend_tokens(execute, counted)
            self._keep_reports(execute, [submission for submission in counted if submission.keep])
            for wave in dict.fromkeys(submission.wave for submission in counted):
                self._add_counts(execute, [submission for submission in counted if submission.wave == wave])
            if counted[0].release_every is not None:
                self._release(execute, collection)
        return results

    def expected(self, submission: Submission, state: State) -> SubmissionResult:
        """Return what ``commit`` would decide about a submission, whose reports are not needed; write nothing."""
        with self.reading() as execute:
            known = self.find_batches(execute, [submission.batch])
            tokens = self._known_tokens(execute, submission.collection, [submission])
            self.check_files()  # a device gives up a reply that is rejected
        return _decide(submission, known, tokens, state)

    def known_batches(self, execute: Execute, batches: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the receipts of the batches that were counted before, in a transaction that may write."""
        return self.find_batches(execute, batches)

    def find_batches(self, execute: Execute, batches: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the receipts of the batches that were counted before; write nothing."""
        rows = self._where_in(execute, self.sql.batches_in, (), batches)
        return {bytes(batch): bytes(receipt) for batch, receipt in rows}

    def write_batches(self, execute: Execute, records: Sequence[bytes]) -> None:
        """Insert the ids and receipts of batches that are counted now."""
        self._insert(
            execute, self.sql.insert_batches, [(record[:ID_BYTES], record[ID_BYTES:]) for record in sorted(records)]
        )

    def _hold(self, execute: Execute, collection: str) -> tuple[State, int] | None:
        """Lock a collection until the transaction ends; return its state and number of batches."""
        row: tuple[State, int] | None = execute(self.hold, (collection,)).fetchone()
        return row

    #: For the functions of ``management``, which work on any store.
    connected, transaction, hold_collection = _connected, _transaction, _hold

    # -- steps of counting ----------------------------------------------------------------------------------

    def _known_tokens(self, execute: Execute, collection: str, group: Sequence[Submission]) -> dict[bytes, bool]:
        """Return the known tokens of a group, and whether each is spent."""
        hashes = [submission.token_hash for submission in group if submission.token_hash is not None]
        rows = self._where_in(execute, self.sql.tokens_in, (collection,), hashes)
        return {bytes(token_hash): bool(spent) for token_hash, spent in rows}

    def _spend_tokens(self, execute: Execute, counted: Sequence[Submission]) -> None:
        """Mark the one-time tokens of counted submissions as spent."""
        hashes = [submission.token_hash for submission in counted if submission.token_hash is not None]
        if hashes:
            self._where_in(execute, self.sql.spend_tokens_in, (counted[0].collection,), hashes)

    def _keep_reports(self, execute: Execute, submissions: Sequence[Submission]) -> None:
        """Store the reports of each day as one sorted batch, under a random number, without senders and order."""
        for day in {submission.day for submission in submissions}:
            reports = [submission.reports for submission in submissions if submission.day == day]
            batch = shuffled_batch(submissions[0].mechanism, reports)
            number = int.from_bytes(secure.read(8)) >> 2
            self._insert(execute, self.sql.insert_reports, [(submissions[0].collection, day, number, 0, batch)])

    def _add_counts(self, execute: Execute, counted: Sequence[Submission]) -> None:
        """Add the reports of counted submissions to the pages of counts."""
        collection, mechanism, wave = counted[0].collection, counted[0].mechanism, counted[0].wave
        size = mechanism.report_format.count_size
        reports = [submission.reports for submission in counted]
        n = sum(map(len, reports))
        stored_size = size if wave is None else size + 1
        added = np.zeros(-(-stored_size // PAGE) * PAGE, np.int64)
        mechanism.report_format.count(np.concatenate(reports), added[:size])
        added[size:stored_size] = n  # a wave also counts its reports
        pages = added.reshape(-1, PAGE)
        first = 0 if wave is None else wave * len(pages)
        touched = np.flatnonzero(pages.any(axis=1)).tolist()
        stored = self._where_in(execute, self.sql.pages_in, (collection,), [first + page for page in touched])
        for page, data in stored:
            before = np.frombuffer(data, "<i8")
            pages[page - first, : len(before)] += before
        rows = [(collection, first + page, page_bytes(pages, page, stored_size)) for page in touched]
        self._insert(execute, self.sql.insert_pages, rows, self.sql.or_replace_page)
        execute(self.sql.add_progress, (n, len(counted), collection))

    def _where_in(self, execute: Execute, sql: str, before: tuple[Any, ...], values: Sequence[Any]) -> list[Any]:
        """Return the rows of ``sql IN (values)``, queried in few statements; ``before`` are the parameters of sql."""
        rows: list[Any] = []
        for start in range(0, len(values), _MOST_ROWS):
            part = values[start : start + _MOST_ROWS]
            cursor = execute(self.sql.list_of(sql, len(part)), (*before, *part))
            if cursor.description is not None:  # an UPDATE has no rows
                rows += cursor.fetchall()
        return rows

    def _insert(self, execute: Execute, sql: str, rows: Sequence[tuple[Any, ...]], end: str = "") -> None:
        """Insert many rows per statement, because the thread gives up the interpreter lock with every statement."""
        for start in range(0, len(rows), _MOST_ROWS):
            part = rows[start : start + _MOST_ROWS]
            values = [value for row in part for value in row]
            execute(self.sql.rows_of(sql, len(part), len(part[0]), end), values)

    def _release(self, execute: Execute, collection: str) -> None:
        """Copy the counts to those that readers see, if enough reports were counted since the last copy."""
        if execute(self.sql.release, (collection,)).rowcount:
            self._copy_counts(execute, collection)

    def _copy_counts(self, execute: Execute, collection: str) -> None:
        """Replace the released counts of a collection by its present ones."""
        execute(self.sql.forget_released, (collection,))
        execute(self.sql.copy_counts, (collection,))

    def release_step(self, execute: Execute, collection: str, step: int) -> None:
        """Release all reports of a collection in an open transaction, if the number has changed by a step.

        A smaller change would reveal the few reports of it, also when a survey closes. Collections that release
        reports in groups are left as they are.
        """
        if execute(self.sql.release_step, (collection, step)).rowcount:
            self._copy_counts(execute, collection)

    def unreleased(self, step: int) -> list[tuple[str, str]]:
        """Return id and metadata of collections whose number of reports has changed by a step since the last release.

        Collections that release reports in groups are left out.
        """
        with self._connected() as execute:
            rows: list[tuple[str, str]] = execute(self.sql.unreleased, (step,)).fetchall()
        return rows

    def release(self, collection: str, step: int) -> None:
        """Let readers without a token see all reports of a collection that were counted so far, if they are a step."""
        with self._transaction() as execute:
            self._hold(execute, collection)
            self.release_step(execute, collection, step)

    def release_waves(self, collection: str, mechanism: Mechanism, step: int) -> None:
        """Let readers without a token see the reports of each wave that has advanced by a step.

        The number of released batches advances only with all waves, because batches are not counted per wave.
        """
        with self._transaction() as execute:
            self._hold(execute, collection)
            released = self.wave_counts(collection, mechanism, released=True)
            present = self.wave_counts(collection, mechanism)
            new = {wave: counts.n - (released[wave].n if wave in released else 0) for wave, counts in present.items()}
            ready = {wave: n for wave, n in new.items() if n >= step}
            if ready and sum(ready.values()) == sum(new.values()):
                self.release_step(execute, collection, step)
                return
            width = mechanism.report_format.count_size // PAGE + 1
            for wave, n in ready.items():
                pages = (collection, wave * width, (wave + 1) * width)
                execute(self.sql.forget_released_pages, pages)
                execute(self.sql.copy_pages, pages)
                execute(self.sql.add_released, (n, collection))

    def counts(self, collection: str, mechanism: Mechanism, *, released: bool = False) -> Aggregate:
        """Return a consistent snapshot of the counts; with ``released``, as of the last release."""
        with self._connected() as execute:
            rows = execute(self.sql.released_counts if released else self.sql.counts, (collection,)).fetchall()
        counts = np.zeros(mechanism.report_format.count_size, np.int64)
        for _, page, data in rows:
            if page is not None:
                counts[page * PAGE : (page + 1) * PAGE] = np.frombuffer(data, "<i8")
        return Aggregate(mechanism.hash, rows[0][0] if rows else 0, counts)

    def wave_counts(self, collection: str, mechanism: Mechanism, *, released: bool = False) -> dict[int, Aggregate]:
        """Return a consistent snapshot of the counts of each wave that has reports, in the order of the waves.

        With ``released``, they are those as of the last release. The pages of a wave follow those of the wave before.
        They hold its counts, and then its number of reports.
        """
        with self._connected() as execute:
            rows = execute(self.sql.released_wave_pages if released else self.sql.wave_pages, (collection,)).fetchall()
        size = mechanism.report_format.count_size
        width = size // PAGE + 1
        waves: dict[int, npt.NDArray[np.int64]] = {}
        for number, data in rows:
            wave, page = divmod(number, width)
            counts = waves.setdefault(wave, np.zeros(size + 1, np.int64))
            counts[page * PAGE : (page + 1) * PAGE] = np.frombuffer(data, "<i8")
        return {
            wave: Aggregate(mechanism.hash, int(counts[size]), counts[:size].copy()) for wave, counts in waves.items()
        }

    # -- stored reports ----------------------------------------------------------------------------------

    def forget_reports(self, collection: str, before_day: int, most: int) -> int:
        """Delete at most ``most`` rows of reports that arrived before a day; return their number."""
        with self._transaction() as execute:
            self._hold(execute, collection)
            deleted = execute(self.sql.forget_reports, (collection, collection, before_day, most))
        return int(deleted.rowcount)

    def unshuffled(self, before_day: int) -> list[str]:
        """Return the collections that have unshuffled rows from before a day."""
        with self._connected() as execute:
            rows = execute(self.sql.unshuffled_collections, (before_day,)).fetchall()
        return [collection for (collection,) in rows]

    def shuffle_reports(self, collection: str, mechanism: Mechanism, before_day: int) -> int:
        """Replace the rows of one day, earlier than ``before_day``, by one sorted row; return their number.

        This removes the order of arrival. It also removes what PostgreSQL records about the transaction that wrote a
        row, because the same transaction spent a token.
        """
        with self._transaction() as execute:
            self._hold(execute, collection)
            rows = execute(self.sql.unshuffled_rows, (collection, before_day, _MAX_SHUFFLED_ROWS)).fetchall()
            if not rows:
                return 0
            day, first, size = rows[0]
            numbers = [first]
            for row_day, number, length in rows[1:]:
                size += length
                if row_day != day or size > _MAX_SHUFFLED_BYTES:
                    break
                numbers.append(number)
            parameters = (collection, day, numbers[-1])
            stored = execute(self.sql.reports_to_shuffle, parameters).fetchall()
            execute(self.sql.delete_unshuffled, parameters)
            batch = shuffled_batch(mechanism, [decode_batch(mechanism, bytes(reports)) for (reports,) in stored])
            self._insert(execute, self.sql.insert_reports, [(collection, day, first, 1, batch)])
        return len(numbers)

    @abstractmethod
    def erase(self) -> bool:
        """Erase what the database keeps about finished transactions; return False if a reader prevents it.

        A transaction counts a report and spends a token, so its traces link the two.
        """

    # -- collections -------------------------------------------------------------------------------------

    def add_collection(self, record: Record) -> None:
        """Add a collection in the state ``open``; the store assigns its number."""
        with self._transaction() as execute:
            execute(
                self.sql.add_collection,
                (record.id, record.created, record.previous, record.policy, record.mechanism, record.certificate,
                 record.metadata, record.key_hash, record.question, record.presentation),
            )  # fmt: skip
            execute(self.sql.open_collection, (record.id, METADATA.decode(record.metadata).release_every))

    def collection(self, collection: str) -> Record | None:
        """Return the collection with this id, or None."""
        with self._connected() as execute:
            row = execute(self.sql.collection, (collection,)).fetchone()
        return None if row is None else Record(*row)

    def progress(self, collection: str) -> tuple[Progress, str, bytes | None] | None:
        """Return state and counters of a collection, its metadata, and the hash of its key."""
        with self._connected() as execute:
            row = execute(self.sql.progress, (collection,)).fetchone()
            if row is None:
                self.check_files()  # a client gives up its reports if their collection does not exist
        return None if row is None else (Progress(*row[:5]), *row[5:])

    def collections(self, after: int, limit: int) -> list[tuple[int, str, str, Progress]]:
        """Return number, id, metadata and progress of at most ``limit`` collections after a number, oldest first."""
        with self._connected() as execute:
            rows = execute(self.sql.collections, (after, limit)).fetchall()
        return [(number, name, metadata, Progress(*rest)) for number, name, metadata, *rest in rows]

    def states(self) -> dict[str, int]:
        """Return the number of collections in each state that occurs."""
        with self._connected() as execute:
            return dict(execute(self.sql.states).fetchall())

    def change(self, collection: str, decide: Callable[[State, str], tuple[State, str]]) -> None:
        """Change state and metadata of a collection to those that ``decide`` returns for the present ones.

        The transaction that writes them also reads them, so that no concurrent change is lost.
        """
        with self._transaction() as execute:
            row = self._hold(execute, collection)
            assert row is not None
            before, _ = row
            (stored,) = execute(self.sql.metadata, (collection,)).fetchone()
            state, metadata = decide(before, stored)
            execute(self.sql.change_state, (state, collection))
            execute(self.sql.change_metadata, (metadata, collection))

    # -- keys and tokens ---------------------------------------------------------------------------------

    def replace_key(self, collection: str, key_hash: bytes) -> None:
        """Replace the key of a collection, and so revoke the previous one."""
        with self._transaction() as execute:
            execute(self.sql.replace_key, (key_hash, collection))

    def add_tokens(self, collection: str, token_hashes: Sequence[bytes]) -> None:
        """Add one-time tokens, sorted by their hashes, because the order of issue tells whose they are."""
        rows = [(collection, token_hash, 0) for token_hash in sorted(token_hashes)]
        with self._transaction() as execute:
            self._insert(execute, self.sql.insert_tokens, rows)

    def add_admin(self, token_hash: bytes, created: int, *, only_first: bool = False) -> bool:
        """Add an admin token, with ``only_first`` only if the store has none; return whether it was added."""
        with self._transaction() as execute:
            self.hold_tables(execute)
            if only_first and execute(self.sql.any_admin).fetchone():
                return False
            execute(self.sql.add_admin, (token_hash, created))
        return True

    def is_admin(self, token_hash: bytes) -> bool:
        """Return whether this is the hash of an admin token."""
        with self._connected() as execute:
            return execute(self.sql.is_admin, (token_hash,)).fetchone() is not None

    def admins(self) -> list[tuple[bytes, int]]:
        """Return the hash and creation time of every admin token, the oldest first."""
        with self._connected() as execute:
            rows = execute(self.sql.admins).fetchall()
        return [(bytes(token_hash), created) for token_hash, created in rows]

    def remove_admin(self, token_hash: bytes) -> bool:
        """Revoke an admin token unless it is the last one; return whether it was revoked."""
        with self._transaction() as execute:
            self.hold_tables(execute)
            removed = execute(self.sql.remove_admin, (token_hash,))
        return bool(removed.rowcount)


def _decide(
    submission: Submission, known: dict[bytes, bytes], tokens: dict[bytes, bool], state: State
) -> SubmissionResult:
    """Return the result of a submission, given known batches, known tokens and the state of its collection."""
    spent = False if submission.token_hash is None else tokens.get(submission.token_hash)
    if spent is None:  # checked first, so that a client without a token learns nothing about batches
        return SubmissionResult("token-unknown")
    receipt = known.get(submission.batch)
    if receipt is not None:  # a repeated batch gets its receipt even after the collection was closed
        return (
            SubmissionResult("repeated", len(submission.reports))
            if receipt == submission.receipt
            else SubmissionResult("conflict")
        )
    if state != "open" or submission.late or submission.closed:
        return SubmissionResult("not-open")
    if submission.exhausted:
        return SubmissionResult("rate")
    if spent:
        return SubmissionResult("token-spent")
    return SubmissionResult("accepted", len(submission.reports))


def page_bytes(pages: npt.NDArray[np.int64], page: int, size: int) -> bytes:
    """Return a page as stored: little-endian integers, without those beyond the number of counts."""
    return pages[page, : min(PAGE, size - page * PAGE)].astype("<i8").tobytes()


def shuffled_batch(mechanism: Mechanism, reports: Sequence[npt.NDArray[Any]]) -> bytes:
    """Return one binary batch of all reports, sorted, so that their order of arrival is lost."""
    together = np.concatenate(reports)
    if together.ndim > 1:
        rows = np.ascontiguousarray(together).view(f"V{together[0].nbytes}")
        together = np.sort(rows, axis=0).view(together.dtype).reshape(together.shape)
    else:
        together = np.sort(together)
    file = io.BytesIO()
    step = mechanism.report_format.piece_rows
    write_batch(mechanism, file, (together[start : start + step] for start in range(0, len(together), step)))
    return file.getvalue()
