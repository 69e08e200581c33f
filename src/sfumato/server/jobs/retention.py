"""Delete stored reports after ``keep_days`` of their collection, and shuffle the reports of past days.

Batch ids, receipts and counts are always kept.
"""

from __future__ import annotations

from collections.abc import Callable

from sfumato.mechanisms import Mechanism, mechanism_from_spec
from sfumato.server.http.telemetry import LOG
from sfumato.server.jobs.threads import Readers
from sfumato.server.jobs.writer import Writer
from sfumato.server.store.base import Store
from sfumato.server.store.records import METADATA

__all__ = ["ClockGuard", "day_of", "forget_old_reports", "shuffle_old_reports"]

#: Days between two deletions above which the clock may be wrong, and seconds to wait then.
_LONGEST_GAP, _GUARD_SECONDS = 2, 86_400.0
#: Collections read per query.
_PAGE = 100
#: Maximum rows deleted per transaction; bounds how long new reports wait.
_AT_ONCE = 500


def day_of(now: float) -> int:
    """Return the number of the day since 1970, in UTC."""
    return int(now) // 86_400


class ClockGuard:
    """Postpone deletions after a jump of the clock, which would delete reports that are not old.

    The store records the last day of a deletion. If today is more than two days away from it, the collector was stopped
    for long or its clock jumped. Deletions then wait for a day of uptime, in which a wrong clock can be corrected.
    """

    def __init__(self, store: Store, readers: Readers, writer: Writer, clock: Callable[[], float]) -> None:
        self._store, self._readers, self._writer, self._clock = store, readers, writer, clock
        self._jump: tuple[int, float] | None = None  # day to which the clock jumped, and uptime then

    async def allows(self, now: float) -> bool:
        """Return whether old reports may be deleted at this time, and record the day."""
        today, last = day_of(now), await self._readers.run(self._store.last_day)
        if last is None or abs(today - last) <= _LONGEST_GAP:
            self._jump = None
        else:
            if self._jump is None or abs(today - self._jump[0]) > _LONGEST_GAP:
                self._jump = today, self._clock()
                LOG.warning(
                    "the clock may be wrong: deletions wait for a day", extra={"fields": {"days": today - last}}
                )
            if self._clock() - self._jump[1] < _GUARD_SECONDS:
                return False
        if last != today:
            await self._writer.run(lambda store: store.change_last_day(today))
        return True


async def forget_old_reports(store: Store, readers: Readers, writer: Writer, now: float) -> int:
    """Delete all reports older than ``keep_days`` of their collection; return the number of deleted rows."""
    today = day_of(now)
    after = deleted = 0
    while True:
        rows = await readers.run(store.collections, after, _PAGE)
        for _, name, metadata, _ in rows:
            days = METADATA.decode(metadata).keep_days
            if days is not None:
                # keep_days is a maximum: with 1, a report of yesterday is deleted before the end of today.
                deleted += await _forget(writer, name, today - days + 1)
        if len(rows) < _PAGE:
            return deleted
        after = rows[-1][0]


async def _forget(writer: Writer, name: str, before_day: int) -> int:
    """Delete the reports of a collection that arrived before a day; return the number of deleted rows."""
    deleted = 0
    while rows := await writer.run(lambda store: store.forget_reports(name, before_day, _AT_ONCE)):
        deleted += rows
    return deleted


async def shuffle_old_reports(store: Store, readers: Readers, writer: Writer, now: float) -> int:
    """Shuffle the reports of every day before today; return the number of shuffled rows."""
    today = day_of(now)
    shuffled = 0
    for name in await readers.run(store.unshuffled, today):
        mechanism = await readers.run(_mechanism, store, name)
        while rows := await writer.run(lambda store: store.shuffle_reports(name, mechanism, today)):  # noqa: B023
            shuffled += rows
    return shuffled


def _mechanism(store: Store, name: str) -> Mechanism:
    """Return the mechanism of a collection."""
    record = store.collection(name)
    assert record is not None
    return mechanism_from_spec(record.mechanism)
