"""A store in one SQLite file. A commit returns when the data are on disk (write-ahead log, synchronous=FULL)."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from sfumato.server.store.base import Execute, Store, Unavailable
from sfumato.server.store.migrations import SQLITE, Column, columns_of_sqlite, steps
from sfumato.server.store.records import ID_BYTES, RECEIPT_BYTES, Submission, SubmissionResult
from sfumato.server.store.statements import Statements

__all__ = ["PendingBatchIds", "SQLiteStore"]

#: Bytes of a batch id with its receipt.
_RECORD = ID_BYTES + RECEIPT_BYTES
#: Sort key of records: the first eight bytes, which suffice to bring ids of one database page together.
_SORTED_BY = np.dtype({"names": ["begin"], "formats": [">u8"], "offsets": [0], "itemsize": _RECORD})

# A common table expression: the indices 0, 1, … of the records of {0} bytes in the first parameter.
_PLACES = (
    "WITH RECURSIVE places (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM places WHERE (i + 2) * {0} <= length(?1)) "
)
_FIND = (
    _PLACES.format(ID_BYTES)
    + f"SELECT batch, receipt FROM places CROSS JOIN batches ON batch = substr(?1, i * {ID_BYTES} + 1, {ID_BYTES})"
)
# The ids of a log are found by their bytes, without a cache, by connections that cannot move them to the table.
_FIND_ONE = (
    "SELECT receipt FROM batches WHERE batch = ?1 UNION ALL "
    f"SELECT substr(records, place + {ID_BYTES}, {RECEIPT_BYTES}) "
    f"FROM (SELECT records, instr(records, ?1) AS place FROM recent) WHERE place % {_RECORD} = 1"
)
# ON CONFLICT: after an interruption, some ids were already moved by an earlier transaction.
_MOVE = (
    _PLACES.format(_RECORD) + f"INSERT INTO batches SELECT substr(?1, i * {_RECORD} + 1, {ID_BYTES}), "
    f"substr(?1, i * {_RECORD} + {ID_BYTES + 1}, {RECEIPT_BYTES}) FROM places WHERE true ON CONFLICT DO NOTHING"
)


class PendingBatchIds:
    """Batch ids: new ones in an append-only log (table ``recent``), older ones in a table sorted by id.

    Ids are random, so every id inserted into the sorted table changes a different page, and transactions write whole
    pages. The log stores all ids of a transaction on one page. Once the log is long, its ids are sorted and moved to
    the table in that order, a few with every transaction, so that many fall on the same page.

    Each transaction looks up ids in the table and in the log, whose ids are cached in memory. At its beginning it reads
    the rows that this process and others have appended to the log since. After a failed transaction the cache may
    contain ids that are not stored, so the caller must drop it.
    """

    #: Number of pending ids at which they are moved; as many new ones may arrive meanwhile.
    gathered = 2**16
    #: Maximum ids moved per transaction; more than twice the batches of a group.
    at_once = 2**12

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}
        self._last = 0
        # The ids being moved: all of the log up to row _bound, sorted; _place is the position of the next one.
        self._moving: dict[bytes, bytes] = {}
        self._sorted, self._place, self._bound = b"", 0, 0

    def find(self, execute: Execute, batches: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the receipts of batches that were counted before; call it in every transaction before ``add``."""
        arrived = self._read(execute)
        # Move twice as many ids as arrived, so that the move ends before the log is long again. The limit matters at
        # the start, when the whole log arrives at once.
        self._move(execute, min(2 * arrived, self.at_once))
        receipts = {}
        for batch in batches:
            receipt = self._known.get(batch) or self._moving.get(batch)
            if receipt is not None:
                receipts[batch] = receipt
        receipts.update(execute(_FIND, (b"".join(batches),)).fetchall())
        return receipts

    def add(self, execute: Execute, records: Sequence[bytes]) -> None:
        """Append ids with their receipts to the log, sorted, because the order of arrival must not be stored."""
        execute("INSERT INTO recent (records) VALUES (?)", (b"".join(sorted(records)),))

    def _read(self, execute: Execute) -> int:
        """Cache the ids appended to the log since the last call; return their number."""
        arrived = 0
        statement = "SELECT number, records FROM recent WHERE number > ? ORDER BY number"
        for number, records in execute(statement, (self._last,)).fetchall():
            for start in range(0, len(records), _RECORD):
                self._known[records[start : start + ID_BYTES]] = records[start + ID_BYTES : start + _RECORD]
            arrived += len(records) // _RECORD
            self._last = number
        if len(self._known) >= self.gathered and not self._moving:
            records = b"".join(batch + receipt for batch, receipt in self._known.items())
            self._sorted, self._place = _in_order(records), 0
            self._moving, self._known, self._bound = self._known, {}, self._last
        return arrived

    def _move(self, execute: Execute, most: int) -> None:
        """Move at most ``most`` ids from the log to the table."""
        if not self._moving or not most:
            return
        end = self._place + most * _RECORD
        execute(_MOVE, (self._sorted[self._place : end],))
        self._place = end
        if end >= len(self._sorted):
            execute("DELETE FROM recent WHERE number <= ?", (self._bound,))
            self._moving, self._sorted = {}, b""

    def sort(self, execute: Execute) -> None:
        """Merge the rows of the log into one row of sorted ids, so that their order of arrival is not stored.

        Rows that are being moved stay separate from newer ones, because they are deleted together after the move.
        """
        self._read(execute)
        bound = self._bound if self._moving else 0
        for first, last in ((0, bound), (bound, self._last)):
            rows = execute("SELECT records FROM recent WHERE number > ? AND number <= ?", (first, last)).fetchall()
            if len(rows) > 1:
                execute("DELETE FROM recent WHERE number > ? AND number <= ?", (first, last))
                records = _in_order(b"".join(records for (records,) in rows))
                execute("INSERT INTO recent (number, records) VALUES (?, ?)", (last, records))


def _in_order(records: bytes) -> bytes:
    """Return records sorted by their ids."""
    order = np.argsort(np.frombuffer(records, _SORTED_BY)["begin"])
    return np.frombuffer(records, f"V{_RECORD}")[order].tobytes()


#: Seconds that a writer waits for the lock of another process, such as a backup or a second collector.
_TIMEOUT = 10.0
#: Number of prepared statements to cache; groups of different sizes have different statements.
_STATEMENTS = 1000
#: Seconds that erasing traces waits for readers of the write-ahead log; submissions wait meanwhile.
_ERASE_TIMEOUT = 0.5
#: Bytes of a block of the index of the write-ahead log.
_INDEX_BLOCK = 2**15
#: Bytes of the header of that index.
_INDEX_HEADER = 136
#: Bytes of the headers of the log and of each of its frames.
_LOG_HEADER, _FRAME_HEADER = 32, 24
#: Bytes that a check of readiness writes and deletes: a full disk may still have room for a shorter write.
_PROBE_BYTES = 2**14
#: Size in bytes of the smallest store: one page.
_SMALLEST = 4096
#: Maximum pages of a store that a check of readiness reads completely.
_MOST_CHECKED_PAGES = 2**10
_GONE = (
    "a file of the store was removed, replaced or cut while the collector ran; "
    "stop the collector, and restore the file or a backup"
)
#: Maximum attempts to read the log and its index in one state, while another process writes them.
_ATTEMPTS = 10
_SETTINGS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    # Copy pages from the log to the file every 64 MB, so that a page changed by many transactions is copied once.
    "wal_autocheckpoint = 16384",
    "cache_size = -65536",
    "secure_delete = ON",  # overwrite deleted reports
)


class SQLiteStore(Store):
    """A store in the file at ``path``; with ``create``, the file is created if it is missing.

    Unless ``marked`` is false, a file next to it records that a store exists there.
    """

    migrations = steps(SQLITE)
    begin = "BEGIN IMMEDIATE"
    actions: ClassVar[dict[str, str]] = {
        "malformed": "stop the collector, run `sfumato store check`, and restore a backup",
        "not a database": "check that --store is the database of a collector; if it is, stop the collector, run "
        "`sfumato store check`, and restore a backup",
        "disk I/O error": "check the disk of the store; if a file of it was removed, replaced or cut, "
        "stop the collector, and restore the file or a backup",
        "disk is full": "free space on the disk of the store",
        "readonly": "let the user of the service write the file and its folder",
        "no such": "the tables are not those of this release: run `sfumato store upgrade`, or restore a backup",
        "unable to open": "check that the file exists, and that the user of the service may write it and its folder",
        "locked": "end the other process that writes the store",
    }
    hold = "SELECT state, batches FROM progress WHERE collection = ?"  # BEGIN IMMEDIATE already excludes other writers
    sql = Statements("?")

    def __init__(self, path: str, *, create: bool, marked: bool = True) -> None:
        super().__init__()
        self._marked = marked
        self.path = path
        self._name = f"{Path(path).absolute().as_uri()}?mode=rw"
        self._real_path = os.path.realpath(path)
        self._file: tuple[int, int] | None = None  # device and inode, once known
        self._has_log = False  # whether a connection has turned on the write-ahead log
        if create:
            _check_marker(self._real_path)
            _make(path)

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._name,
            uri=True,
            timeout=_TIMEOUT,
            isolation_level=None,
            cached_statements=_STATEMENTS,
            check_same_thread=False,
        )
        try:
            # A backup has another mode. Changing it would wait for connections to the file that it replaced.
            if self._has_log and connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                raise Unavailable(_GONE)
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
        except BaseException:  # the file may not be a database
            connection.close()
            raise
        self._has_log = True
        if self._file is None:
            self._file = _file_key(Path(self._real_path).stat())
        return connection

    def is_unavailable(self, error: Exception) -> bool:
        # A damaged file raises DatabaseError itself; its other subclasses are errors of this program.
        return isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError

    # -- the file ----------------------------------------------------------------------------------------

    def room(self) -> tuple[int, int | None]:
        files = [Path(f"{self._real_path}{end}") for end in ("", "-wal", "-shm")]
        size = sum(file.stat().st_size for file in files if file.exists())
        return size, shutil.disk_usage(Path(self._real_path).parent).free

    def _check_file(self) -> None:
        """Raise Unavailable if the file was removed, replaced or cut while connections to it were open.

        SQLite keeps writing to a removed file, and a commit to it succeeds. Such a commit must not be acknowledged.
        """
        try:
            status = Path(self._real_path).stat()
        except OSError:
            status = None
        if self._file is None and (status is None or status.st_size < _SMALLEST):
            raise Unavailable(f"there is no store at {self.path}")
        if status is None or status.st_size < _SMALLEST or (self._file and self._file != _file_key(status)):
            self.close()
            raise Unavailable(_GONE)
        self._file = _file_key(status)

    def _connect(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = super()._connect()
        self._local.log = None
        return connection

    def check_files(self) -> None:
        """Raise Unavailable if a file of the store is not the one that this thread's connection writes.

        SQLite keeps writing to files that were removed, and behind the end of a log that was cut. The frames there are
        lost at the next start.
        """
        self._check_file()
        if os.name != "posix":
            return
        for _ in range(_ATTEMPTS):
            log = _Log.read(self._real_path, self._local.log)
            if log is not None:
                self._local.log = log
                return
        raise Unavailable(_GONE)

    def touch(self) -> None:
        """Raise Unavailable if the database cannot be written, or has no space for the reports of a transaction."""
        with self._transaction() as execute:
            execute(self.sql.touch)
            execute("INSERT INTO recent (records) VALUES (zeroblob(?))", (_PROBE_BYTES,))
            execute("DELETE FROM recent WHERE number = last_insert_rowid()")

    def check_schema(self) -> None:
        self._check_file()
        super().check_schema()

    def check_damage(self, *, thorough: bool = False) -> None:
        """Raise Unavailable if the file is gone or damaged; read it with a new connection, which caches nothing.

        A small file is read completely, a larger one only with ``thorough``.
        """
        self._check_file()
        super().check_damage()
        try:
            with contextlib.closing(self.connect()) as connection:
                (pages,) = connection.execute("PRAGMA page_count").fetchone()
                row = connection.execute(self.sql.identity).fetchone()
                complete = thorough or pages <= _MOST_CHECKED_PAGES
                faults = connection.execute("PRAGMA quick_check(1)").fetchone() if complete else ("ok",)
        except sqlite3.Error as error:
            raise self.unavailable(error) from error
        if row is None or row[0] != self._identity or faults != ("ok",):
            raise Unavailable(f"the file of the store is damaged; {self.actions['malformed']}")

    def migrate(self) -> None:
        if self._marked and _marker(self._real_path).exists():
            with self._connected() as execute:
                if not self.columns(execute):  # a collector whose file was cut writes the header of an empty database
                    raise Unavailable(_lost(self._real_path))
        super().migrate()
        if not self._marked:
            return
        with contextlib.suppress(OSError):  # the folder may allow no other files
            descriptor = os.open(_marker(self._real_path), os.O_CREAT | os.O_WRONLY, 0o600)
            os.close(descriptor)

    def hold_tables(self, execute: Execute) -> None:
        pass  # BEGIN IMMEDIATE already excludes other writers

    def columns(self, execute: Execute) -> list[Column]:
        return columns_of_sqlite(execute)

    # -- batch ids, cached per thread ------------------------------------------------------------------------

    def commit(self, group: Sequence[Submission]) -> list[SubmissionResult]:
        try:
            return super().commit(group)
        except BaseException:
            self._local.pending_batch_ids = None  # the cache may contain ids of the transaction that was rolled back
            raise

    def known_batches(self, execute: Execute, batches: Sequence[bytes]) -> dict[bytes, bytes]:
        pending_batch_ids = getattr(self._local, "pending_batch_ids", None)
        if pending_batch_ids is None:
            pending_batch_ids = self._local.pending_batch_ids = PendingBatchIds()
        return pending_batch_ids.find(execute, batches)

    def find_batches(self, execute: Execute, batches: Sequence[bytes]) -> dict[bytes, bytes]:
        receipts = {batch: execute(_FIND_ONE, (batch,)).fetchone() for batch in batches}
        return {batch: row[0] for batch, row in receipts.items() if row is not None}

    def write_batches(self, execute: Execute, records: Sequence[bytes]) -> None:
        self._local.pending_batch_ids.add(execute, records)

    # -- traces of transactions --------------------------------------------------------------------------

    def erase(self) -> bool:
        """Sort the pending batch ids, then empty the write-ahead log and its index.

        The log holds every version of a page. Two versions show which report a transaction counted, and which token it
        spent. SQLite does not empty the log by itself while the store is in use.
        """
        try:
            with self._transaction() as execute:
                self.known_batches(execute, ())
                self._local.pending_batch_ids.sort(execute)
        except BaseException:
            self._local.pending_batch_ids = None
            with contextlib.suppress(Unavailable):
                self._empty_log()  # the log itself may have filled the disk
            raise
        emptied = self._empty_log()
        if emptied:
            self._erase_index()
        return emptied

    def _empty_log(self) -> bool:
        """Copy the write-ahead log to the main file and empty it; return False if a reader prevents it."""
        with self._connected() as execute:
            self.check_files()  # a log that was cut must not be copied
            execute(f"PRAGMA busy_timeout = {1000 * _ERASE_TIMEOUT:.0f}")  # other writers wait meanwhile
            try:
                (busy, _, _) = execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                execute(f"PRAGMA busy_timeout = {1000 * _TIMEOUT:.0f}")
        return not busy

    def _erase_index(self) -> None:
        """Erase the page numbers of earlier transactions from the index of the log (``-shm``).

        While the log is empty, no connection reads the index, and a write lock keeps it empty. SQLite clears the first
        block of the index with the first page that is written to the log, and others only when they are used again.
        """
        with self._transaction() as execute:
            with contextlib.suppress(FileNotFoundError):
                if os.name == "posix" and not Path(f"{self._real_path}-wal").stat().st_size:
                    index, _ = _index_file(f"{self._real_path}-shm")
                    length = os.fstat(index).st_size - _INDEX_BLOCK
                    if length > 0:
                        os.pwrite(index, bytes(length), _INDEX_BLOCK)
            execute(self.sql.touch)


class _Log(NamedTuple):
    """A state in which the files of a store agree, with what identifies it."""

    keys: tuple[tuple[int, int], tuple[int, int]]  # of the log and its index
    main: tuple[int, int] | None  # size of the main file, and time of its last change; None while the log is copied
    salts: bytes  # in every frame of the log; others after the log was emptied
    frames: int
    copied: int  # frames that the main file has too
    last: bytes  # frame of the log

    @classmethod
    def read(cls, path: str, before: _Log | None) -> _Log | None:
        """Return the present state; None if the files do not agree, or were changed by others since the one before."""
        try:
            index, index_key = _index_file(f"{path}-shm")
            header = os.pread(index, _INDEX_HEADER, 0)
            page, frames = struct.unpack_from("=HI", header, 14)
            salts, (copied, begun) = header[32:40], struct.unpack_from("=I28xI", header, 96)
            main = os.stat(path)  # noqa: PTH116 - after the index, which changes before and after the main file does
            log = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)
        except (OSError, struct.error):
            return None
        try:
            keys = (_file_key(os.fstat(log)), index_key)
            length = page + _FRAME_HEADER
            last = _frame(log, length, frames)
            whole = not frames or (len(last) == length and last[8:16] == salts == os.pread(log, 8, 16))
            if before is not None and before.salts == salts:
                # A cut log has lost at least the end of its last frame, and later ones may follow the gap.
                whole = whole and _frame(log, length, before.frames) == before.last
        finally:
            os.close(log)
        now = cls(keys, (main.st_size, main.st_mtime_ns) if begun == copied else None, salts, frames, copied, last)
        return now if whole and (before is None or now._follows(before)) else None

    def _follows(self, before: _Log) -> bool:
        """Return whether the files are those of before, and the main file changed only when the log was copied."""
        copied = None in (self.main, before.main) or (self.salts, self.copied) != (before.salts, before.copied)
        return self.keys == before.keys and (copied or self.main == before.main)


def _frame(log: int, length: int, number: int) -> bytes:
    """Return a frame of the log, counted from 1; empty if the number is 0."""
    return os.pread(log, length, _LOG_HEADER + length * (number - 1)) if number else b""


#: Open descriptors of index files, by device and inode.
_INDEX_FILES: dict[tuple[int, int], int] = {}


def _index_file(path: str) -> tuple[int, tuple[int, int]]:
    """Return a descriptor of an index file, which stays open, and what identifies the file.

    Closing it would release the locks of every connection in this process.
    """
    key = _file_key(os.stat(path))  # noqa: PTH116
    if key not in _INDEX_FILES:
        _INDEX_FILES[key] = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    return _INDEX_FILES[key], key


def _file_key(status: os.stat_result) -> tuple[int, int]:
    """Return what identifies a file: its device and inode."""
    return status.st_dev, status.st_ino


def _marker(path: str) -> Path:
    """Return the file next to a store that records that the store existed."""
    return Path(f"{path}.exists")


def _check_marker(path: str) -> None:
    """Raise Unavailable if a store existed at a path and is missing now; an empty store would hide the loss."""
    file = Path(path)
    if _marker(path).exists() and (not file.exists() or file.stat().st_size < _SMALLEST):
        raise Unavailable(_lost(path))


def _lost(path: str) -> str:
    """Return what to do about a store that existed at a path and is missing or empty."""
    return (
        f"a store existed at {path}, and its file is missing or empty. Restore the file or a backup. To begin with "
        f"an empty store instead, delete {_marker(path)}"
    )


def _make(path: str) -> None:
    """Create an empty file that only this user may read, if none exists.

    SQLite gives its ``-wal`` and ``-shm`` files the same mode. An existing file is not opened, because closing it again
    would release the locks of every connection in this process.
    """
    with contextlib.suppress(OSError):  # if the file cannot be created, SQLite reports the reason
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
