"""A cache of collections and their mechanisms."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from sfumato._core import canonical_hash
from sfumato.collecting import Aggregate, batch_header
from sfumato.mechanisms import Mechanism, ReportFormat, mechanism_from_spec
from sfumato.policy import describe, policy_from_dict
from sfumato.questions import Question
from sfumato.server.api.schemas import COLLECTION_ID, CollectionResponse, WavesSchedule
from sfumato.server.http.responses import ApiError
from sfumato.server.jobs.threads import Readers
from sfumato.server.store.base import Store
from sfumato.server.store.presentation import PRESENTATION, Presentation
from sfumato.server.store.records import METADATA, Metadata, Progress, Record, StateNow

__all__ = ["Collection", "Collections", "record_wording"]

#: Maximum collections in the cache.
_CACHE_SIZE = 256
#: Seconds after which the state is read again, because another worker may have changed it. Counting reads the store.
_FRESH_SECONDS = 1.0

#: Steps in which strangers see the number of reports of a collection whose results they may not read, seconds between
#: two steps, and number of collections for which the last step is kept.
_SHOWN_STEP, _SHOWN_SECONDS, _SHOWN_SIZE = 100, 600.0, 10_000

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
    presentation: Presentation | None
    metadata: Metadata
    #: Hash of the current key; the key in ``record`` may have been replaced.
    key_hash: bytes | None
    progress: Progress
    read_at: float
    #: The hash of everything that is fixed once the collection has opened.
    wording_hash: str = ""
    #: Response body of the certificate; all requests share one copy.
    certificate: bytes = b""
    #: Least number of reports by which results advance for a reader who sees the last release only; None for others.
    step: int | None = None

    @property
    def id(self) -> str:
        """The id of the collection, which is part of its paths."""
        return self.record.id

    def state(self, now: float) -> StateNow:
        """Return the state at a time."""
        return self.metadata.state_at(self.progress.state, now)

    def worded(self) -> Collection:
        """Return the collection with the hash of its present wording, which its certificate records.

        The hash follows changes before the collection has opened. Certificates of earlier releases have no such hash,
        and stay as they are. A long presentation takes milliseconds to hash.
        """
        wording = _wording_hash(self.metadata, self.presentation, self.mechanism.hash, self.policy_hash)
        certificate = _RECORDED.sub(_recorded(wording), self.record.certificate).encode()
        return dataclasses.replace(self, wording_hash=wording, certificate=certificate)

    @property
    def is_released(self) -> bool:
        """Whether the reader sees the last release only."""
        return self.step is not None

    def released(self, step: int) -> Collection:
        """Return the collection as readers without a token see it: as of the last release, which has steps."""
        reports, batches = self.progress.released_reports, self.progress.released_batches
        progress = dataclasses.replace(self.progress, reports=reports, batches=batches)
        return dataclasses.replace(self, progress=progress, step=step)

    def response(self, now: float) -> CollectionResponse:
        """Return the public description of the collection at a time."""
        metadata, record = self.metadata, self.record
        waves = metadata.waves
        return CollectionResponse(
            id=record.id,
            title=metadata.title,
            description=metadata.description,
            state=self.state(now),
            submission=metadata.submission,
            results=metadata.results,
            listed=metadata.listed,
            origins=metadata.origins,
            keep_days=metadata.keep_days,
            created=record.created,
            opens=metadata.opens,
            closes=metadata.closes,
            wording_hash=self.wording_hash,
            previous=record.previous,
            reports=self.progress.reports,
            batches=self.progress.batches,
            mechanism_hash=self.mechanism.hash,
            policy_hash=self.policy_hash,
            asks=self.asks,
            mechanism=msgspec.Raw(record.mechanism.encode()),
            policy=msgspec.Raw(record.policy.encode()),
            question=None if record.question is None else msgspec.Raw(record.question.encode()),
            release_every=metadata.release_every,
            step=metadata.release_every if self.step is None else self.step,
            waves=None
            if waves is None
            else WavesSchedule(waves.count, waves.days, waves.start, waves.current(now), waves.next(now)),
            presentation=self.presentation,
        )


def _wording_hash(metadata: Metadata, presentation: Presentation | None, mechanism_hash: str, policy_hash: str) -> str:
    """Return the hash of title, description, presentation, mechanism and policy."""
    fixed = {"title": metadata.title, "description": metadata.description}
    presented = {} if presentation is None else {"presentation": msgspec.to_builtins(presentation)}
    return canonical_hash(fixed | {"mechanism_hash": mechanism_hash, "policy_hash": policy_hash} | presented)


def record_wording(certificate: str, metadata: Metadata, presentation: Presentation | None) -> str:
    """Return a new certificate, as JSON, with the hash of the wording."""
    document = msgspec.json.decode(certificate)
    wording = _wording_hash(metadata, presentation, document["mechanism_hash"], document["policy_hash"])
    return certificate.rstrip().removesuffix("}").rstrip() + "," + _recorded(wording)


#: The end of a certificate that records the wording.
_RECORDED = re.compile(r'\s*"wording_hash": "[0-9a-f]{64}"\s*\}\s*$')


def _recorded(wording: str) -> str:
    """Return the end of a certificate that records the hash of a wording."""
    return f'\n  "wording_hash": "{wording}"\n}}\n'


class Collections:
    """The collections of a store. Constant parts are read once; state and metadata are read again after a second."""

    def __init__(self, store: Store, readers: Readers, clock: Callable[[], float]) -> None:
        self._store, self._readers, self._clock = store, readers, clock
        self._cache: OrderedDict[str, Collection] = OrderedDict()
        self._shown: OrderedDict[str, tuple[float, int, int]] = OrderedDict()
        self._reading: dict[str, asyncio.Task[Collection]] = {}

    def cached(self, name: str) -> Collection | None:
        """Return the collection if it is in the cache."""
        return self._cache.get(name)

    def forget(self) -> None:
        """Empty the cache after a deletion; other collections may have named the deleted one as their previous one."""
        self._cache.clear()

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
            fresh = dataclasses.replace(known, metadata=metadata, key_hash=key_hash, progress=progress, read_at=read_at)
            # The wording may change before a collection has opened.
            return fresh if metadata == known.metadata else fresh.worded()
        record = self._store.collection(name)
        assert record is not None
        mechanism = mechanism_from_spec(record.mechanism)
        policy = policy_from_dict(msgspec.json.decode(record.policy))
        mechanism.report_format.warm_up()
        question = None if record.question is None else Question.from_dict(msgspec.json.decode(record.question))
        return Collection(
            record,
            mechanism,
            mechanism.report_format,
            batch_header(mechanism, 1),
            None if question is None else question.checked(mechanism.domain),
            describe(policy),
            policy.hash,
            None if record.presentation is None else PRESENTATION.decode(record.presentation),
            metadata,
            key_hash,
            progress,
            read_at,
        ).worded()

    async def counts(self, collection: Collection) -> Aggregate:
        """Return the counts of a collection that its reader may see: all of them, or those of the last release."""
        released = collection.is_released or collection.metadata.release_every is not None

        def read() -> Aggregate:
            return self._store.counts(collection.id, collection.mechanism, released=released)

        return await self._readers.run(read)

    def shown(self, name: str, reports: int, batches: int) -> tuple[int, int]:
        """Return the numbers of reports and batches that strangers see if they may not read the results.

        They advance by hundreds and at most every ten minutes, because the time of each step is public.
        """
        now = self._clock()
        earlier = self._shown.get(name)
        if earlier is None or now - earlier[0] >= _SHOWN_SECONDS:
            earlier = self._shown[name] = now, reports - reports % _SHOWN_STEP, batches - batches % _SHOWN_STEP
            self._shown.move_to_end(name)
            if len(self._shown) > _SHOWN_SIZE:
                self._shown.popitem(last=False)
        return earlier[1:]

    async def wave_counts(self, collection: Collection) -> dict[int, Aggregate]:
        """Return the counts of each wave that has reports, in order, as the reader of the collection may see them."""

        def read() -> dict[int, Aggregate]:
            return self._store.wave_counts(collection.id, collection.mechanism, released=collection.is_released)

        return await self._readers.run(read)
