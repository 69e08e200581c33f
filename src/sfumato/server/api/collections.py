"""Collections: made once, audited before they are accepted, and remembered ready to count for."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np

from sfumato.collecting import Aggregate, batch_header
from sfumato.mechanisms import Mechanism, check_reports, count_reports, count_size, mechanism_from_spec
from sfumato.policy import describe, policy_from_dict
from sfumato.server.api.schemas import COLLECTION_ID, CollectionAnswer
from sfumato.server.http.refusals import Refusal
from sfumato.server.jobs.threads import Readers
from sfumato.server.store.base import Store
from sfumato.server.store.records import ABOUT, About, Progress, Record

__all__ = ["Collection", "Collections"]

#: So many collections are kept ready.
_MOST_KEPT = 256
#: After so many seconds their state is read again: another worker may have changed it. Counting never relies on this.
_FRESH_SECONDS = 1.0

#: So many bytes of reports are many.
_MANY_BYTES = 2**19

_ID = re.compile(COLLECTION_ID)


class ReportForm:
    """What one report of a mechanism looks like: asked with every report, and worked out once."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.is_index = mechanism.encoding == "index"
        self.outputs = mechanism.outputs
        self.dtype = mechanism.report_dtype
        #: A mechanism with one output has reports of no bits, and a batch gives them one.
        self.size = max(1, (mechanism.bits + 7) // 8)
        self.header_of_one = batch_header(mechanism, 1)


@dataclass
class Collection:
    """A stored collection, with its mechanism built."""

    record: Record
    mechanism: Mechanism
    form: ReportForm
    asks: str
    policy_hash: str
    #: As it is sent: however many read it, and however slowly, there is one of it.
    certificate: bytes
    about: About
    #: That of the record may have been replaced.
    key_hash: bytes | None
    progress: Progress
    read_at: float

    @property
    def id(self) -> str:
        """Its name in every path."""
        return self.record.id

    def answer(self) -> CollectionAnswer:
        """What is public of it."""
        about, record = self.about, self.record
        return CollectionAnswer(
            id=record.id,
            title=about.title,
            description=about.description,
            state=self.progress.state,
            submission=about.submission,
            results=about.results,
            listed=about.listed,
            origins=about.origins,
            keep_days=about.keep_days,
            created=record.created,
            previous=record.previous,
            reports=self.progress.reports,
            batches=self.progress.batches,
            mechanism_hash=self.mechanism.hash,
            policy_hash=self.policy_hash,
            asks=self.asks,
            mechanism=msgspec.Raw(record.mechanism.encode()),
            policy=msgspec.Raw(record.policy.encode()),
        )


class Collections:
    """The collections of a store. What never changes is read once; what does, again after a second."""

    def __init__(self, store: Store, readers: Readers, clock: Callable[[], float]) -> None:
        self._store, self._readers, self._clock = store, readers, clock
        self._kept: OrderedDict[str, Collection] = OrderedDict()
        self._reading: dict[str, asyncio.Task[Collection]] = {}

    def at_hand(self, name: str) -> Collection | None:
        """The collection, if it was read before."""
        return self._kept.get(name)

    async def get(self, name: str, *, fresh: bool = False) -> Collection:
        """The collection of this name, as it was within the last second; with ``fresh``, as it is."""
        known = self._kept.get(name)
        if known is not None and not fresh and self._clock() - known.read_at < _FRESH_SECONDS:
            return known
        if not _ID.fullmatch(name):
            raise Refusal("not-found", "there is no such collection")
        if name not in self._reading or fresh:
            # However many ask at once, one reads.
            self._reading[name] = asyncio.ensure_future(self._read(name, known))
        return await asyncio.shield(self._reading[name])

    async def _read(self, name: str, known: Collection | None) -> Collection:
        try:
            read_at = self._clock()
            found = await self._readers.run(self._load, name, known, read_at)
        finally:
            newest = self._reading.get(name) is asyncio.current_task()
            if newest:
                del self._reading[name]
        if found is None:
            raise Refusal("not-found", "there is no such collection")
        if newest:  # one that began before another may have read what was changed since, such as a key
            self._kept[name] = found
            self._kept.move_to_end(name)
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return found

    def _load(self, name: str, known: Collection | None, read_at: float) -> Collection | None:
        moving = self._store.progress(name)
        if moving is None:
            return None
        progress, said, key_hash = moving
        about = ABOUT.decode(said)
        if known is not None:
            return dataclasses.replace(known, about=about, key_hash=key_hash, progress=progress, read_at=read_at)
        record = self._store.collection(name)
        assert record is not None
        mechanism = mechanism_from_spec(record.mechanism)
        policy = policy_from_dict(msgspec.json.decode(record.policy))
        _warm_up(mechanism)
        form = ReportForm(mechanism)
        certificate = record.certificate.encode()
        return Collection(
            record, mechanism, form, describe(policy), policy.hash, certificate, about, key_hash, progress, read_at
        )

    async def counts(self, collection: Collection) -> Aggregate:
        """What was counted for a collection."""
        return await self._readers.run(self._store.counts, collection.id, collection.mechanism)


def _warm_up(mechanism: Mechanism) -> None:
    """Load what checks and counts reports now, not when the first one waits."""
    none = np.empty((0, *mechanism.report_shape), mechanism.report_dtype)
    if mechanism.report_shape:
        check_reports(mechanism, none)
    counts = np.zeros(count_size(mechanism), np.int64)
    count_reports(mechanism, none, counts)
    if mechanism.encoding in ("index", "bitmap"):  # many at once are counted by other code than few
        row = np.zeros((1, *mechanism.report_shape), mechanism.report_dtype)
        count_reports(mechanism, np.repeat(row, _MANY_BYTES // row.nbytes + 1, axis=0), counts)
