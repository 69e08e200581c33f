"""Counting files: on all cores, in memory that does not grow with them, and from a checkpoint on if there is one.

A Parquet file is counted by some row groups at a time, any other file whole. These units are taken in order, in rounds
of some seconds; a checkpoint is written between rounds, so it never holds a part of a unit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from sfumato._core import Integers, Progress, ProgressCallback, checked_type, core_count
from sfumato.collecting.aggregates import Aggregate
from sfumato.collecting.checkpoint import Checkpoint, State, state_of
from sfumato.collecting.files import REPORT_SUFFIXES, read_reports, rows_by_group
from sfumato.collecting.sources import Source, source_of
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.mechanisms import Mechanism

__all__ = ["COUNTS", "aggregate_files"]

#: Names of files that hold counts already end so.
COUNTS = ".json"
#: Minimum number of pieces per unit, if the file has them: opening a unit costs as much as counting one piece.
_UNIT_PIECES = 8
#: Seconds of work between two checkpoints, roughly.
_ROUND_SECONDS = 5.0


@dataclass(frozen=True)
class _Unit:
    """Some row groups of a file, or with None the whole file."""

    source: Source
    #: That of the file before anything of it was read.
    state: State
    groups: range | None
    #: Whether the file is counted once this unit is.
    last: bool

    @property
    def done(self) -> int | None:
        """How many row groups of the file are counted once this unit is; None if all of it is."""
        return None if self.last or self.groups is None else self.groups.stop


def aggregate_files(
    mechanism: Mechanism,
    paths: Path | str | Sequence[Path | str],
    *,
    resume: Path | str | None = None,
    progress: ProgressCallback | None = None,
    threads: int | None = None,
) -> Aggregate:
    """Count the reports of any number of files exactly, on all cores and in bounded memory.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports.
    paths
        Report files (Parquet, Arrow, binary batches) and files of counts (.json), which are merged in.
    resume
        The path of a checkpoint. What it says is counted is not counted again; it is written every few seconds, whole
        or not at all. If the process ends early, the same call continues from there; files may be added.
    progress
        Called with a :class:`Progress` after every piece: the number of reports counted so far.
    threads
        The number of threads; all cores unless given.

    Returns
    -------
    Aggregate
        The counts of all files: the same integers whatever the number of files and threads.

    Raises
    ------
    InvalidInput
        If a report is invalid, or a file is damaged, of another mechanism, or changed since it was counted.
    MissingFile
        If a file does not exist.

    Examples
    --------
    >>> import sfumato as sf, tempfile
    >>> from sfumato.collecting import write_reports
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), epsilon=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_reports(mechanism, [1, 0, 1], f"{folder}/monday.sfb")
    ...     _ = write_reports(mechanism, [1], f"{folder}/tuesday.sfb")
    ...     files = [f"{folder}/monday.sfb", f"{folder}/tuesday.sfb"]
    ...     counts = sf.aggregate_files(mechanism, files, resume=f"{folder}/checkpoint.json")
    >>> counts.counts
    array([1, 3])
    """
    checked_type("aggregate_files", "the mechanism", mechanism, Mechanism)
    if isinstance(paths, (str, Path)):
        paths = [paths]
    sources = [source_of(path, (*REPORT_SUFFIXES, COUNTS)) for path in paths]
    checkpoint = Checkpoint.start(mechanism) if resume is None else Checkpoint.read(mechanism, resume, sources)
    work = _Work(mechanism, progress, checkpoint.counts.n)
    cores = core_count() if threads is None else threads
    if cores < 1:
        raise InvalidInput("aggregate_files", "threads", "be at least 1", threads)
    units = _units(mechanism, sources, checkpoint)
    size = 1
    while taken := list(islice(units, size)) if resume is not None else [*units]:
        start = time.monotonic()
        counts = work.count(taken, cores)
        checkpoint = checkpoint.extended(counts, [(unit.source, unit.state, unit.done) for unit in taken])
        if resume is not None:
            checkpoint.write(resume)
            size = max(1, int(size * min(2.0, _ROUND_SECONDS / max(time.monotonic() - start, 1e-3))))
    return checkpoint.counts


def _read_counts(mechanism: Mechanism, data: bytes, shown: str) -> Aggregate:
    """Return the counts of a file, or raise an error that names the file."""
    try:
        counts = Aggregate.from_json(data)
        counts.check(mechanism)
    except SfumatoError as error:
        error.args = (f"{shown}: {error}",)
        raise
    return counts


def _unit_rows(mechanism: Mechanism) -> int:
    """Return about how many reports are counted between two checkpoints."""
    return _UNIT_PIECES * mechanism.report_format.piece_rows


def _units(mechanism: Mechanism, sources: Sequence[Source], checkpoint: Checkpoint) -> Iterator[_Unit]:
    enough = _unit_rows(mechanism)
    for source in sources:
        state = state_of(source)
        done = checkpoint.done(source, state)
        if done is None:
            continue
        rows = rows_by_group(source)
        if not rows:
            yield _Unit(source, state, None, last=True)
            continue
        first, pending = done, 0
        for group in range(done, len(rows)):
            pending += rows[group]
            if pending >= enough or group == len(rows) - 1:
                yield _Unit(source, state, range(first, group + 1), last=group == len(rows) - 1)
                first, pending = group + 1, 0


class _Work:
    """What the threads share while they count."""

    def __init__(self, mechanism: Mechanism, progress: ProgressCallback | None, so_far: int) -> None:
        self._mechanism, self._progress, self._so_far = mechanism, progress, so_far
        self._lock = threading.Lock()

    def count(self, units: Sequence[_Unit], threads: int) -> Aggregate:
        """The counts of some units. The refusal of the first that is refused, whatever the threads do."""
        waiting = iter(enumerate(units))
        refusals: dict[int, BaseException] = {}
        total = Aggregate.empty(self._mechanism)

        def run() -> Aggregate:
            counts, n, merged = (
                np.zeros(self._mechanism.report_format.count_size, np.int64),
                0,
                Aggregate.empty(self._mechanism),
            )
            while not refusals:
                with self._lock:
                    number, unit = next(waiting, (-1, None))
                if unit is None:
                    break
                try:
                    if unit.source.suffix == COUNTS:
                        with unit.source.open() as file:
                            merged = merged.merge(_read_counts(self._mechanism, file.read(), unit.source.shown))
                    else:
                        n += self._count_unit(unit, counts)
                except BaseException as error:
                    refusals[number] = error
            return merged.merge(Aggregate(self._mechanism.hash, n, counts))

        with ThreadPoolExecutor(min(threads, len(units))) as pool:
            futures = [pool.submit(run) for _ in range(min(threads, len(units)))]
            try:
                for future in futures:
                    total = total.merge(future.result())
            except BaseException as error:  # an interrupt: let no thread begin another unit
                refusals.setdefault(len(units), error)
                raise
        if refusals:
            raise refusals[min(refusals)]
        return total

    def _count_unit(self, unit: _Unit, counts: Integers) -> int:
        n = 0
        for piece in read_reports(self._mechanism, unit.source, row_groups=unit.groups):
            self._mechanism.report_format.count(piece, counts)
            n += len(piece)
            with self._lock:
                self._so_far += len(piece)
                if self._progress is not None:
                    self._progress(Progress(self._so_far, None, "reports"))
        return n
