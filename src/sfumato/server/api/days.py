"""Days of stored reports, which owners may leave out of an estimate or remove from the counts."""

from __future__ import annotations

import datetime

from sfumato.collecting import Aggregate
from sfumato.server.api.collections import Collection
from sfumato.server.api.collector import Collector
from sfumato.server.http.responses import ApiError
from sfumato.server.store.management import LEAST_UNDONE, counts_and_days, reports_by_day

__all__ = ["counts_without", "date_of", "day_of_date", "reject_days", "stored_days", "undoable"]

_EPOCH = datetime.date(1970, 1, 1)


def date_of(day: int) -> str:
    """Return a day since 1970 as an ISO 8601 date.

    >>> date_of(20_775)
    '2026-11-18'
    """
    return (_EPOCH + datetime.timedelta(days=day)).isoformat()


def day_of_date(parameter: str, date: str) -> int:
    """Return the number of an ISO 8601 date since 1970; raise ApiError for another string."""
    try:
        return (datetime.date.fromisoformat(date) - _EPOCH).days
    except ValueError:
        raise ApiError("invalid", f"{parameter} must be a date such as 2026-11-18") from None


def reject_days(collection: Collection) -> None:
    """Raise ApiError for a collection that releases reports in groups: a day may have fewer reports than a group."""
    if collection.metadata.release_every is not None:
        raise ApiError("invalid", "a collection with release_every shows no days, and cannot undo one")


async def stored_days(collector: Collector, collection: Collection) -> dict[int, Aggregate]:
    """Return the counts of the stored reports of each day."""
    days = await collector.readers.run(reports_by_day, collector.store, collection.id, collection.mechanism)
    return dict(days)


def undoable(days: dict[int, Aggregate], day: int) -> Aggregate:
    """Return the counts of a day; raise ApiError if it has so few reports that its removal would reveal them."""
    n = days[day].n if day in days else 0
    if n < LEAST_UNDONE:
        message = (
            f"a day must have at least {LEAST_UNDONE} stored reports to be undone or left out, and this one has {n}: "
            "the counts before and after would reveal single reports"
        )
        raise ApiError("invalid", message)
    return days[day]


async def counts_without(collector: Collector, collection: Collection, days: set[int]) -> Aggregate:
    """Return the counts without the stored reports of some days; raise ApiError if they would reveal single reports.

    The difference of two responses is the sum of a day. If all days that can be left out are known, so is the sum of
    all other reports. If these are few, they stay together with the smallest of these days, which is not left out.
    """
    counts, stored = await collector.readers.run(counts_and_days, collector.store, collection.id, collection.mechanism)
    rest = counts
    for day in days:
        left_out = undoable(stored, day)
        rest = Aggregate(rest.mechanism_hash, rest.n - left_out.n, rest.counts - left_out.counts)
    large = {day: one.n for day, one in stored.items() if one.n >= LEAST_UNDONE}
    others = counts.n - sum(large.values())
    smallest = min(large, key=lambda day: (large[day], day))
    if 0 < others < LEAST_UNDONE and smallest in days:
        message = (
            f"{date_of(smallest)} cannot be left out, because {others} reports are not of a day with at least "
            f"{LEAST_UNDONE} stored reports, and the rest would reveal them"
        )
        raise ApiError("invalid", message)
    return rest
