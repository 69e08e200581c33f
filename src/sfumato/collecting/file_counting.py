"""Count the reports of files on all cores, in bounded memory, and resume from a checkpoint.

A Parquet file is divided into units of some row groups; any other file is one unit. Units are counted in order, in
rounds of some seconds. A checkpoint is written between rounds, so it never contains a part of a unit.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic

import numpy as np

from sfumato._core import Integers, Progress, ProgressCallback, checked_type, core_count
from sfumato.collecting.aggregates import Aggregate
from sfumato.collecting.checkpoint import Checkpoint, CountsType, State, state_of
from sfumato.collecting.files import REPORT_SUFFIXES, read_grouped_reports, read_reports, rows_by_group
from sfumato.collecting.grouped import GroupedAggregate
from sfumato.collecting.groups import Grouping, GroupTally
from sfumato.collecting.sources import Source, source_of
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.mechanisms import Mechanism

__all__ = ["COUNTS", "aggregate_files", "aggregate_group_files"]

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
    return _count_files(_Whole(mechanism), "aggregate_files", paths, resume, progress, threads)


def aggregate_group_files(
    mechanism: Mechanism,
    paths: Path | str | Sequence[Path | str],
    by: str | Sequence[str] = (),
    *,
    weight: str | None = None,
    missing: Any = None,
    resume: Path | str | None = None,
    progress: ProgressCallback | None = None,
    threads: int | None = None,
) -> GroupedAggregate:
    """Count the reports in any number of files by public group, on all cores and in bounded memory.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports.
    paths
        Path of one file, or a sequence of paths: Parquet or Arrow files whose reports have these columns, and ``.json``
        files with counts from :meth:`GroupedAggregate.to_json`, which are added.
    by
        Name of a column that forms the groups, or several names.
    weight
        Name of the column with survey weights (see :func:`aggregate_groups`).
    missing
        Label of people whose group is missing. By default, a missing group raises an error.
    resume
        Path of a checkpoint file, as in :func:`aggregate_files`.
    progress
        A function that is called with a :class:`Progress` after each piece: the number of reports counted so far. The
        default is none.
    threads
        The number of threads. The default is one per core.

    Returns
    -------
    GroupedAggregate
        The counts of each group. They do not depend on the number of files and threads.

    Raises
    ------
    InvalidInput
        If a report or a weight is invalid, a group is missing, a file has no such column, or a file is rejected by
        :func:`aggregate_files`.
    LimitExceeded
        If there are too many groups or different weights.
    MissingFile
        If a file does not exist.

    Examples
    --------
    >>> import sfumato as sf, tempfile
    >>> from sfumato.collecting import aggregate_group_files, write_reports
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), epsilon=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/reports.parquet"
    ...     _ = write_reports(mechanism, [1, 0, 1], path, by={"region": ["north", "south", "north"]})
    ...     counts = aggregate_group_files(mechanism, path, "region")
    >>> counts["north"].counts
    array([0, 2])
    """
    subject = "aggregate_group_files"
    checked_type(subject, "the mechanism", mechanism, Mechanism)
    kind = _ByGroup(mechanism, Grouping.of(by, weight, missing, subject))
    return _count_files(kind, subject, paths, resume, progress, threads)


def _count_files(
    kind: _Kind[CountsType],
    subject: str,
    paths: Path | str | Sequence[Path | str],
    resume: Path | str | None,
    progress: ProgressCallback | None,
    threads: int | None,
) -> CountsType:
    """Count files in rounds, with checkpoints between them."""
    if isinstance(paths, (str, Path)):
        paths = [paths]
    sources = [source_of(path, (*REPORT_SUFFIXES, COUNTS)) for path in paths]
    mechanism = kind.mechanism
    checkpoint = Checkpoint(kind.empty(), {})
    if resume is not None:
        checkpoint = Checkpoint.read(mechanism, resume, sources, kind.empty())
    work = _Work(kind, progress, checkpoint.counts.n)
    cores = core_count() if threads is None else threads
    if cores < 1:
        raise InvalidInput(subject, "threads", "be at least 1", threads)
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


# -- what is counted ---------------------------------------------------------------------------------------


class _Kind(ABC, Generic[CountsType]):
    """What is counted: all reports together, or the reports of each group."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    @abstractmethod
    def empty(self) -> CountsType:
        """Return the counts of zero reports."""

    @abstractmethod
    def parse(self, data: bytes) -> CountsType:
        """Return the counts of a file."""

    @abstractmethod
    def tally(self) -> _Tally[CountsType]:
        """Return a new tally, for one thread."""

    def read(self, data: bytes, shown: str) -> CountsType:
        """Return the checked counts of a file, or raise an error that names the file."""
        try:
            counts = self.parse(data)
            counts.check(self.mechanism)
        except SfumatoError as error:
            error.args = (f"{shown}: {error}",)
            raise
        return counts


class _Tally(ABC, Generic[CountsType]):
    """Counts that one thread adds up."""

    @abstractmethod
    def count(self, unit: _Unit) -> Iterator[int]:
        """Count the reports of a unit, and yield the number of reports of each piece."""

    @abstractmethod
    def result(self) -> CountsType:
        """Return the counts so far."""


class _Whole(_Kind[Aggregate]):
    """Counts of all reports together."""

    def empty(self) -> Aggregate:
        return Aggregate.empty(self.mechanism)

    def parse(self, data: bytes) -> Aggregate:
        return Aggregate.from_json(data)

    def tally(self) -> _WholeTally:
        return _WholeTally(self.mechanism)


class _WholeTally(_Tally[Aggregate]):
    """Tally of all reports together."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism, self._n = mechanism, 0
        self._counts: Integers = np.zeros(mechanism.report_format.count_size, np.int64)

    def count(self, unit: _Unit) -> Iterator[int]:
        for piece in read_reports(self._mechanism, unit.source, row_groups=unit.groups):
            self._mechanism.report_format.count(piece, self._counts)
            self._n += len(piece)
            yield len(piece)

    def result(self) -> Aggregate:
        return Aggregate(self._mechanism.hash, self._n, self._counts)


class _ByGroup(_Kind[GroupedAggregate]):
    """Counts of each group."""

    def __init__(self, mechanism: Mechanism, grouping: Grouping) -> None:
        super().__init__(mechanism)
        self._grouping = grouping

    def empty(self) -> GroupedAggregate:
        return GroupedAggregate.empty(self.mechanism, self._grouping.columns, self._grouping.weight)

    def parse(self, data: bytes) -> GroupedAggregate:
        return self.empty().merge(GroupedAggregate.from_json(data))

    def tally(self) -> _GroupTally:
        return _GroupTally(self.mechanism, self._grouping)


class _GroupTally(_Tally[GroupedAggregate]):
    """Tally of each group."""

    def __init__(self, mechanism: Mechanism, grouping: Grouping) -> None:
        self._mechanism, self._names = mechanism, grouping.columns
        self._tally = GroupTally(mechanism, grouping)

    def count(self, unit: _Unit) -> Iterator[int]:
        pieces = read_grouped_reports(self._mechanism, unit.source, self._names, row_groups=unit.groups)
        for array, columns, row in pieces:
            self._tally.add(array, columns, unit.source.shown, row)
            yield len(array)

    def result(self) -> GroupedAggregate:
        return self._tally.result()


# -- units and threads -------------------------------------------------------------------------------------


def _unit_rows(mechanism: Mechanism) -> int:
    """Return the minimum number of reports per unit."""
    return _UNIT_PIECES * mechanism.report_format.piece_rows


def _units(mechanism: Mechanism, sources: Sequence[Source], checkpoint: Checkpoint[Any]) -> Iterator[_Unit]:
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


class _Work(Generic[CountsType]):
    """State that the threads share while they count."""

    def __init__(self, kind: _Kind[CountsType], progress: ProgressCallback | None, so_far: int) -> None:
        self._kind, self._progress, self._so_far = kind, progress, so_far
        self._lock = threading.Lock()

    def count(self, units: Sequence[_Unit], threads: int) -> CountsType:
        """Return the counts of units, or raise the error of the first invalid unit, whatever the order of threads."""
        waiting = iter(enumerate(units))
        errors: dict[int, BaseException] = {}
        total = self._kind.empty()

        def run() -> CountsType:
            tally, merged = self._kind.tally(), self._kind.empty()
            while not errors:
                with self._lock:
                    number, unit = next(waiting, (-1, None))
                if unit is None:
                    break
                try:
                    if unit.source.suffix == COUNTS:
                        with unit.source.open() as file:
                            merged = merged.merge(self._kind.read(file.read(), unit.source.shown))
                    else:
                        for n in tally.count(unit):
                            self._advance(n)
                except BaseException as error:
                    errors[number] = error
            return merged if errors else merged.merge(tally.result())

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

    def _advance(self, n: int) -> None:
        """Report the progress after another n reports."""
        with self._lock:
            self._so_far += n
            if self._progress is not None:
                self._progress(Progress(self._so_far, None, "reports"))
