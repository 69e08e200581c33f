"""A cache of collections and their mechanisms."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from sfumato.collecting import Aggregate, batch_header
from sfumato.mechanisms import Mechanism, ReportFormat, mechanism_from_spec
from sfumato.policy import describe, policy_from_dict
from sfumato.questions import Question
from sfumato.server.api.schemas import COLLECTION_ID, CollectionResponse
from sfumato.server.http.responses import ApiError
from sfumato.server.jobs.threads import Readers
from sfumato.server.store.base import Store
from sfumato.server.store.records import METADATA, Metadata, Progress, Record

__all__ = ["Collection", "Collections"]

#: Maximum collections in the cache.
_CACHE_SIZE = 256
#: Seconds after which the state is read again, because another worker may have changed it. Counting reads the store.
_FRESH_SECONDS = 1.0

_ID = re.compile(COLLECTION_ID)


@dataclass
class Collection:
    """A stored collection together with its mechanism object."""

    record: Record
    mechanism: Mechanism
    report_format: ReportFormat
    #: Header of a binary batch with one report.
    header_of_one: bytes
    #: The question that the results answer; None for all frequencies.
    question: Question | None
    #: The requirements of the policy in words.
    asks: str
    policy_hash: str
    #: Response body of the certificate; all requests share one copy.
    certificate: bytes
    metadata: Metadata
    #: Hash of the current key; the key in ``record`` may have been replaced.
    key_hash: bytes | None
    progress: Progress
    read_at: float

    @property
    def id(self) -> str:
        """The id of the collection, which is part of its paths."""
        return self.record.id

    def response(self) -> CollectionResponse:
        """Return the public description of the collection."""
        metadata, record = self.metadata, self.record
        return CollectionResponse(
            id=record.id,
            title=metadata.title,
            description=metadata.description,
            state=self.progress.state,
            submission=metadata.submission,
            results=metadata.results,
            listed=metadata.listed,
            origins=metadata.origins,
            keep_days=metadata.keep_days,
            created=record.created,
            previous=record.previous,
            reports=self.progress.reports,
            batches=self.progress.batches,
            mechanism_hash=self.mechanism.hash,
            policy_hash=self.policy_hash,
            asks=self.asks,
            mechanism=msgspec.Raw(record.mechanism.encode()),
            policy=msgspec.Raw(record.policy.encode()),
            question=None if record.question is None else msgspec.Raw(record.question.encode()),
        )


class Collections:
    """The collections of a store. Constant parts are read once; state and metadata are read again after a second."""

    def __init__(self, store: Store, readers: Readers, clock: Callable[[], float]) -> None:
        self._store, self._readers, self._clock = store, readers, clock
        self._cache: OrderedDict[str, Collection] = OrderedDict()
        self._reading: dict[str, asyncio.Task[Collection]] = {}

    def cached(self, name: str) -> Collection | None:
        """Return the collection if it is in the cache."""
        return self._cache.get(name)

    async def get(self, name: str, *, fresh: bool = False) -> Collection:
        """Return the collection with this id, at most a second old; with ``fresh``, read it from the store."""
        known = self._cache.get(name)
        if known is not None and not fresh and self._clock() - known.read_at < _FRESH_SECONDS:
            return known
        if not _ID.fullmatch(name):
            raise ApiError("not-found", "this collection does not exist; check the id")
        if name not in self._reading or fresh:
            # Concurrent requests share one read.
            self._reading[name] = asyncio.ensure_future(self._read(name, known))
        return await asyncio.shield(self._reading[name])

    async def _read(self, name: str, known: Collection | None) -> Collection:
        """Read a collection from the store and cache it, unless a later read has started."""
        try:
            read_at = self._clock()
            collection = await self._readers.run(self._load, name, known, read_at)
        finally:
            newest = self._reading.get(name) is asyncio.current_task()
            if newest:
                del self._reading[name]
        if collection is None:
            raise ApiError("not-found", "this collection does not exist; check the id")
        if newest:  # an earlier read may have returned a state that has changed since, such as a key
            self._cache[name] = collection
            self._cache.move_to_end(name)
            if len(self._cache) > _CACHE_SIZE:
                self._cache.popitem(last=False)
        return collection

    def _load(self, name: str, known: Collection | None, read_at: float) -> Collection | None:
        """Return the collection as stored, reusing the constant parts of ``known``; None if it does not exist."""
        row = self._store.progress(name)
        if row is None:
            return None
        progress, stored, key_hash = row
        metadata = METADATA.decode(stored)
        if known is not None:
            return dataclasses.replace(known, metadata=metadata, key_hash=key_hash, progress=progress, read_at=read_at)
        record = self._store.collection(name)
        assert record is not None
        mechanism = mechanism_from_spec(record.mechanism)
        policy = policy_from_dict(msgspec.json.decode(record.policy))
        mechanism.report_format.warm_up()
        certificate = record.certificate.encode()
        question = None if record.question is None else Question.from_dict(msgspec.json.decode(record.question))
        return Collection(
            record,
            mechanism,
            mechanism.report_format,
            batch_header(mechanism, 1),
            None if question is None else question.checked(mechanism.domain),
            describe(policy),
            policy.hash,
            certificate,
            metadata,
            key_hash,
            progress,
            read_at,
        )

    async def counts(self, collection: Collection) -> Aggregate:
        """Return the counts of a collection."""
        return await self._readers.run(self._store.counts, collection.id, collection.mechanism)
