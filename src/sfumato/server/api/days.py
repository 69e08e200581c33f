"""Days of stored reports, which owners may leave out of an estimate or remove from the counts."""

from __future__ import annotations

import datetime

from sfumato.collecting import Aggregate
from sfumato.server.api.collections import Collection
from sfumato.server.api.collector import Collector
from sfumato.server.http.responses import ApiError
from sfumato.server.store.management import LEAST_UNDONE, reports_by_day

__all__ = ["date_of", "day_of_date", "reject_days", "stored_days", "undoable"]

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
