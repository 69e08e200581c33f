"""Reports that were kept are deleted when their collection's rule says so, and mixed when their day is over.

Batch ids, receipts and all counts stay.
"""

from __future__ import annotations

from sfumato.mechanisms import Mechanism, mechanism_from_spec
from sfumato.server.jobs.threads import Readers
from sfumato.server.jobs.writer import Writer
from sfumato.server.store.base import Store
from sfumato.server.store.records import ABOUT

__all__ = ["day_of", "forget_old_reports", "mix_old_reports"]

_PAGE = 100
#: Reports that come meanwhile wait no longer than so many rows take.
_AT_ONCE = 500


def day_of(now: float) -> int:
    """The number of the day, in UTC."""
    return int(now) // 86_400


async def forget_old_reports(store: Store, readers: Readers, writer: Writer, now: float) -> int:
    """Delete every row of reports that was kept for longer than its collection says. How many there were."""
    today = day_of(now)
    after = deleted = 0
    while True:
        rows = await readers.run(store.collections, after, _PAGE)
        for _, name, text, _ in rows:
            days = ABOUT.decode(text).keep_days
            if days is not None:
                # At most so many days: a report of yesterday is not kept for one day by the end of today.
                deleted += await _forget(writer, name, today - days + 1)
        if len(rows) < _PAGE:
            return deleted
        after = rows[-1][0]


async def _forget(writer: Writer, name: str, before_day: int) -> int:
    deleted = 0
    while found := await writer.run(lambda store: store.forget_reports(name, before_day, _AT_ONCE)):
        deleted += found
    return deleted


async def mix_old_reports(store: Store, readers: Readers, writer: Writer, now: float) -> int:
    """Mix the reports of every day before today. How many rows they were."""
    today = day_of(now)
    mixed = 0
    for name in await readers.run(store.unmixed, today):
        mechanism = await readers.run(_mechanism, store, name)
        while found := await writer.run(lambda store: store.mix_reports(name, mechanism, today)):  # noqa: B023
            mixed += found
    return mixed


def _mechanism(store: Store, name: str) -> Mechanism:
    record = store.collection(name)
    assert record is not None
    return mechanism_from_spec(record.mechanism)
