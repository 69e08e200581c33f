"""Count the reports of files on all cores, in bounded memory, and resume from a checkpoint.

A Parquet file is divided into units of some row groups; any other file is one unit. Units are counted in order, in
rounds of some seconds. A checkpoint is written between rounds, so it never contains a part of a unit.
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

#: Suffix of files with counts.
COUNTS = ".json"
#: Minimum number of pieces per unit, if the file has as many; opening a unit costs as much as counting one piece.
_UNIT_PIECES = 8
#: Approximate time between two checkpoints, in seconds.
_ROUND_SECONDS = 5.0


@dataclass(frozen=True)
class _Unit:
    """Some row groups of a file, or the whole file if ``groups`` is None."""

    source: Source
    #: State of the file before the first read.
    state: State
    groups: range | None
    #: Whether this is the last unit of the file.
    last: bool

    @property
    def done(self) -> int | None:
        """The number of row groups of the file that are counted after this unit; None if the whole file is."""
        return None if self.last or self.groups is None else self.groups.stop


def aggregate_files(
    mechanism: Mechanism,
    paths: Path | str | Sequence[Path | str],
    *,
    resume: Path | str | None = None,
    progress: ProgressCallback | None = None,
    threads: int | None = None,
) -> Aggregate:
    """Count the reports in any number of files, on all cores and in bounded memory.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports.
    paths
        Path of one file, or a sequence of paths: report files (Parquet, Arrow or binary batches), and ``.json`` files
        with counts from :meth:`Aggregate.to_json`, which are added.
    resume
        Path of a checkpoint file, which the function creates and replaces every few seconds. If the process ends early,
        repeat the call with the same checkpoint: reports that it includes are not counted again. A repeated call may
        list more files, but not fewer. By default the function writes no checkpoint.
    progress
        A function that is called with a :class:`Progress` after each piece: the number of reports counted so far. The
        default is none.
    threads
        The number of threads. The default is one per core.

    Returns
    -------
    Aggregate
        The counts of all files. They do not depend on the number of files and threads.

    Raises
    ------
    InvalidInput
        If a report is invalid, or a file is damaged, has reports of another mechanism, or changed since it was counted.
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
    while round_units := list(islice(units, size)) if resume is not None else [*units]:
        start = time.monotonic()
        counts = work.count(round_units, cores)
        checkpoint = checkpoint.extended(counts, [(unit.source, unit.state, unit.done) for unit in round_units])
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
    """Return the minimum number of reports per unit."""
    return _UNIT_PIECES * mechanism.report_format.piece_rows


def _units(mechanism: Mechanism, sources: Sequence[Source], checkpoint: Checkpoint) -> Iterator[_Unit]:
    """Yield the units that the checkpoint does not include."""
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
    """State that the threads share while they count."""

    def __init__(self, mechanism: Mechanism, progress: ProgressCallback | None, so_far: int) -> None:
        self._mechanism, self._progress, self._so_far = mechanism, progress, so_far
        self._lock = threading.Lock()

    def count(self, units: Sequence[_Unit], threads: int) -> Aggregate:
        """Return the counts of units, or raise the error of the first invalid unit, whatever the order of threads."""
        waiting = iter(enumerate(units))
        errors: dict[int, BaseException] = {}
        total = Aggregate.empty(self._mechanism)

        def run() -> Aggregate:
            counts, n, merged = (
                np.zeros(self._mechanism.report_format.count_size, np.int64),
                0,
                Aggregate.empty(self._mechanism),
            )
            while not errors:
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
                    errors[number] = error
            return merged.merge(Aggregate(self._mechanism.hash, n, counts))

        with ThreadPoolExecutor(min(threads, len(units))) as pool:
            futures = [pool.submit(run) for _ in range(min(threads, len(units)))]
            try:
                for future in futures:
                    total = total.merge(future.result())
            except BaseException as error:  # after an interrupt, no thread starts another unit
                errors.setdefault(len(units), error)
                raise
        if errors:
            raise errors[min(errors)]
        return total

    def _count_unit(self, unit: _Unit, counts: Integers) -> int:
        """Add the reports of a unit to the counts, and return their number."""
        n = 0
        for piece in read_reports(self._mechanism, unit.source, row_groups=unit.groups):
            self._mechanism.report_format.count(piece, counts)
            n += len(piece)
            with self._lock:
                self._so_far += len(piece)
                if self._progress is not None:
                    self._progress(Progress(self._so_far, None, "reports"))
        return n
