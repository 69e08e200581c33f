"""Raw batches are deleted when their collection's rule says so. Their ids, their digests and all counts stay."""

from __future__ import annotations

import msgspec

from sfumato.server.readers import Readers
from sfumato.server.schemas import About
from sfumato.server.store import Store
from sfumato.server.writer import Writer

__all__ = ["forget_old_batches"]

_PAGE = 100
#: Reports that come meanwhile wait no longer than so many batches take.
_AT_ONCE = 500
_SECONDS_A_DAY = 86_400
_ABOUT = msgspec.json.Decoder(About)


async def forget_old_batches(store: Store, readers: Readers, writer: Writer, now: float) -> int:
    """Delete every raw batch that was kept for longer than its collection says. How many there were."""
    today = int(now) // _SECONDS_A_DAY
    after = deleted = 0
    while True:
        rows = await readers.run(store.collections, after, _PAGE)
        for _, name, text, _ in rows:
            days = _ABOUT.decode(text).keep_days
            if days is not None:
                # At most so many days: a batch of yesterday is not kept for one day by the end of today.
                deleted += await _forget(writer, name, today - days + 1)
        if len(rows) < _PAGE:
            return deleted
        after = rows[-1][0]


async def _forget(writer: Writer, name: str, before_day: int) -> int:
    deleted = 0
    while found := await writer.run(lambda store: store.forget_batches(name, before_day, _AT_ONCE)):
        deleted += found
    return deleted
