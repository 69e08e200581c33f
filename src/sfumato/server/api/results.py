"""Read results: counts, certificates, and estimates as JSON, as files and as live streams.

A live stream checks the collection at intervals and sends the current estimate; it queues nothing. If a client stops
reading, only its own stream waits, in the buffers of its connection, and the connection times out.
"""

from __future__ import annotations

import asyncio
import dataclasses
import io
import math
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import msgspec
import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from sfumato._core import canonical_json, finite, import_pyarrow
from sfumato.collecting import Aggregate
from sfumato.errors import InvalidInput, MissingExtra
from sfumato.estimation import Answers, Estimate
from sfumato.questions import Frequencies, Question, Workload, read_question
from sfumato.server.api.administration import as_reader, require_role
from sfumato.server.api.collections import Collection
from sfumato.server.api.collector import Collector
from sfumato.server.api.days import counts_without, day_of_date, reject_days
from sfumato.server.api.schemas import AnswerRow, EstimateResponse, EstimateRow
from sfumato.server.http.responses import ApiError, JsonResponse, Send
from sfumato.server.jobs.estimates import cached_estimate, estimate_of, in_words
from sfumato.server.jobs.threads import Workers

__all__ = [
    "AGGREGATE_TYPE",
    "METHODS",
    "PARQUET_TYPE",
    "as_parquet",
    "cached_response",
    "estimate_response",
    "frequency_rows",
    "give_aggregate",
    "give_certificate",
    "give_estimate",
    "give_live",
    "readable",
    "requested_estimate",
]

PARQUET_TYPE = "application/vnd.apache.parquet"
AGGREGATE_TYPE = "application/vnd.sfumato.aggregate"
#: Estimation methods that need only counts, and no prior.
METHODS = ("unbiased", "efficient", "simplex", "mle", "bayes", "best")
#: Confidence levels whose responses are cached together.
_USUAL_LEVELS = (0.9, 0.95, 0.99)
#: Maximum values of an estimate in a stream; for larger domains the stream sends only the number of reports.
_MOST_VALUES = 10_000
#: Maximum answers of an event in a stream; a request for the estimate returns more.
_MOST_ANSWERS = 256
#: The question about the share of each district of a map.
_DISTRICTS = "districts"
#: Maximum characters of the query parameter ``question``.
_LONGEST_QUESTION = 2000
#: Seconds without an event after which a comment is sent, so that proxies do not close the connection.
_SILENCE = 15.0
#: Error reasons that end a stream: the client lost access, or the collection no longer exists.
_OVER = ("unauthorized", "not-found")


@dataclass(frozen=True)
class EstimateRequest:
    """What a request asks for: the method, the confidence level, and a question, which is None for all frequencies."""

    method: str
    confidence: float
    question: Question | None
    #: The wave that is stated; None for the last one with reports, or if the collection has no waves.
    wave: int | None = None
    #: Whether the question is about the districts of a map, which the collection holds.
    is_about_districts: bool = False
    #: Days since 1970 whose stored reports are left out, and the counts of all other reports.
    without: tuple[int, ...] = ()
    rest: Aggregate | None = None

    @property
    def document(self) -> dict[str, Any] | None:
        """The document of the question; that of districts has no matrix, which would be large."""
        if self.is_about_districts:
            return {"question": _DISTRICTS}
        return None if self.question is None else self.question.to_dict()

    @property
    def key(self) -> tuple[str, float, str, tuple[int, ...]]:
        """The key of the response in a cache."""
        question = "" if self.document is None else canonical_json(self.document)
        return self.method, self.confidence, question, self.without


def as_parquet(estimate: Estimate | Answers, confidence: float) -> bytes:
    """Return a table as a Parquet file, with the same table as ``sfumato estimate -o estimate.parquet``."""
    try:
        parquet = import_pyarrow("an estimate as Parquet", "pyarrow.parquet")
    except MissingExtra:
        raise ApiError(
            "unsupported-type",
            "the collector cannot write Parquet files, because pyarrow is not installed. Request the estimate as JSON, "
            "or ask its operator to install the extra 'arrow'",
        ) from None
    file = io.BytesIO()
    parquet.write_table(estimate.to_arrow(confidence), file)
    return file.getvalue()


async def readable(collector: Collector, request: Request) -> Collection:
    """Return the collection as the client may see it; raise ApiError if the client may not read its results."""
    collection = await collector.collections.get(request.path_params["id"])
    if collection.metadata.results == "admin":
        await require_role(collector, request, collection.id, "owner", "reader")
        return collection
    return await as_reader(collector, request, collection)


def requested_estimate(request: Request, collection: Collection) -> EstimateRequest:
    """Return what a request asks for, from its query parameters; by default, the question of the collection."""
    method = request.query_params.get("method", "unbiased")
    if method not in METHODS:
        raise ApiError("invalid", f"method must be one of {', '.join(METHODS)}")
    try:
        confidence = float(request.query_params.get("level", "0.95"))
    except ValueError:
        confidence = 0.0
    if not 0 < confidence < 1 or (1 + confidence) / 2 == 1:  # the normal quantile of 1 is infinite
        raise ApiError("invalid", "level must be a number between 0 and 1, such as 0.95, and not too close to 1")
    confidence = _on_grid(confidence)
    return EstimateRequest(
        method,
        confidence,
        _requested_question(request, collection),
        _requested_wave(request, collection),
        request.query_params.get("question") == _DISTRICTS,
    )


def _requested_wave(request: Request, collection: Collection) -> int | None:
    """Return the wave that a request states; raise ApiError if the collection does not have it."""
    digits, waves = request.query_params.get("wave"), collection.metadata.waves
    if digits is None:
        return None
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= 3
    if waves is None or not is_number or int(digits) >= waves.count:
        must = "be left out" if waves is None else f"be a number from 0 to {waves.count - 1}"
        raise ApiError("invalid", f"wave must {must}")
    return int(digits)


async def _without_days(
    collector: Collector, request: Request, collection: Collection, options: EstimateRequest
) -> EstimateRequest:
    """Return a request that leaves out the days that an owner names; raise ApiError if that reveals single reports."""
    await require_role(collector, request, collection.id, "owner")
    reject_days(collection)
    days = {day_of_date("without", date.strip()) for date in request.query_params["without"].split(",")}
    rest = await counts_without(collector, collection, days)
    return dataclasses.replace(options, without=tuple(sorted(days)), rest=rest)


async def _counts_of(
    collector: Collector, collection: Collection, options: EstimateRequest
) -> tuple[int | None, Aggregate]:
    """Return counts and their wave: the stated wave, or else the last one that has reports.

    The waves are never added up: reports of one person in several waves are not independent.
    """
    if collection.metadata.waves is None:
        return None, await collector.collections.counts(collection) if options.rest is None else options.rest
    counts = await collector.collections.wave_counts(collection)
    number = max(counts, default=0) if options.wave is None else options.wave
    if number not in counts:
        empty = np.zeros(collection.report_format.count_size, np.int64)
        return number, Aggregate(collection.mechanism.hash, 0, empty)
    return number, counts[number]


def _on_grid(confidence: float) -> float:
    """Round a confidence level up to the next thousandth if that is less than 1, so that few different levels exist."""
    rounded = math.ceil(1000 * confidence - 1e-9) / 1000
    return confidence if rounded == 1 else rounded


def _requested_question(request: Request, collection: Collection) -> Question | None:
    """Return the question of a request, or that of the collection; None for all frequencies."""
    stated = request.query_params.get("question")
    if stated is None:
        return collection.question
    if stated == _DISTRICTS:
        return _district_shares(collection)
    if len(stated) > _LONGEST_QUESTION:
        raise ApiError("invalid", f"question must have at most {_LONGEST_QUESTION} characters")
    try:
        question = read_question("estimate", stated, collection.mechanism.domain)
    except InvalidInput as error:
        raise ApiError("invalid", in_words(error)) from None
    return None if isinstance(question, Frequencies) else question


def _district_shares(collection: Collection) -> Question:
    """Return the question about the share of each district on the background of a map."""
    background = None if collection.presentation is None else collection.presentation.background
    if background is None or not background.districts:
        raise ApiError("invalid", "this collection has no districts; ask another question")
    of_cells = np.array(background.districts)
    present = [index for index in range(len(background.shapes)) if (of_cells == index).any()]
    matrix = np.array([of_cells == index for index in present], float)
    names = [background.shapes[index].name or f"district {index + 1}" for index in present]
    try:
        return Workload(matrix, names).checked(collection.mechanism.domain)
    except InvalidInput as error:
        raise ApiError("invalid", in_words(error)) from None


async def give_estimate(collector: Collector, request: Request) -> JsonResponse | Response:
    """Return the estimated frequencies, or the answers to the question, with their standard errors and intervals."""
    collection = await readable(collector, request)
    options = requested_estimate(request, collection)
    if "without" in request.query_params:
        options = await _without_days(collector, request, collection, options)
    if request.headers.get("accept", "") == PARQUET_TYPE:
        wave, counts = await _counts_of(collector, collection, options)
        places = collector.places(options.method)
        with places.take(collector.addresses.of(request.scope), collection.id):
            estimate = await _estimate(collector, collection, counts, options, wave)
            table = estimate if options.question is None else _answers(estimate, options.question)
            content = await places.workers.run(as_parquet, table, options.confidence)
        return Response(content, media_type=PARQUET_TYPE)
    return JsonResponse(await estimate_response(collector, collection, options, request))


async def estimate_response(
    collector: Collector, collection: Collection, options: EstimateRequest, request: Request
) -> bytes:
    """Return the estimate as JSON from a cache; the estimate is computed once for all levels and questions."""
    wave, counts = await _counts_of(collector, collection, options)

    async def encoded(workers: Workers) -> bytes:
        estimate = await _estimate(collector, collection, counts, options, wave) if counts.n else None
        return await workers.run(_encode, collection, options, estimate, wave)

    key, version = (*_view(collection, wave), *options.key), _version(collection, counts)
    return await cached_response(collector, request, collection, options, key, version, encoded)


async def cached_response(
    collector: Collector,
    request: Request,
    collection: Collection,
    options: EstimateRequest,
    key: Hashable,
    version: Hashable,
    compute: Callable[[Workers], Coroutine[Any, Any, bytes]],
) -> bytes:
    """Return a response from its cache, or compute it in a place for its method."""
    usual = options.confidence in _USUAL_LEVELS and options.question in (None, collection.question)
    cache = collector.estimate_responses if usual else collector.unusual_responses
    places = collector.places(options.method)
    # There are few usual responses, so each quick one has a separate place that no other level or question can use up.
    place = key if usual and places is collector.quick_places else collection.id

    async def computed() -> bytes:  # many readers may wait for it, and only the request that starts it takes a place
        with places.take(collector.addresses.of(request.scope), place):
            return await compute(places.workers)

    return await cache.get(key, computed, version)


def _view(collection: Collection, wave: int | None) -> tuple[str, bool, int | None]:
    """Return what identifies a collection in a cache: its last release and its present counts have separate entries."""
    return collection.id, collection.is_released, wave


def _version(collection: Collection, counts: Aggregate) -> tuple[int, int]:
    """Return the version of counts in a cache: after an undo, the number of reports may return to an earlier one."""
    return counts.n, collection.progress.batches


async def _estimate(
    collector: Collector, collection: Collection, counts: Aggregate, options: EstimateRequest, wave: int | None
) -> Estimate:
    """Return the estimate from the cache, or compute it; raise ApiError without reports."""
    if not counts.n:
        raise ApiError("invalid", "the collection has no reports yet; retry after the first report")

    method = options.method
    places = collector.places(method)

    async def computed() -> bytes:
        if places is collector.quick_places:
            return await places.workers.run(cached_estimate, collection.mechanism, counts, method)
        spec, content = collection.record.mechanism, await places.workers.run(counts.to_json)
        document: str = await collector.slow_estimates.ask("estimate", mechanism=spec, counts=content, method=method)
        return document.encode()

    key = (*_view(collection, wave), method, options.without)
    cached = await collector.cached_estimates.get(key, computed, _version(collection, counts))
    return await places.workers.run(estimate_of, collection.mechanism, cached)


def _answers(estimate: Estimate, question: Question) -> Answers:
    """Return the answers to a question; raise ApiError if the reports do not determine them."""
    try:
        return estimate.answers(question)
    except InvalidInput as error:
        raise ApiError("invalid", f"the question has no answer: {in_words(error)}") from None


def frequency_rows(estimate: Estimate, confidence: float) -> list[EstimateRow]:
    """Return the estimated frequencies of all values with their intervals."""
    numbers = np.column_stack([estimate.frequencies, estimate.standard_errors, *estimate.interval(confidence)]).tolist()
    return [EstimateRow(label, *row) for label, row in zip(estimate.values, numbers, strict=True)]


def _warnings(estimate: Estimate | None, answers: Answers | None) -> list[str]:
    """Return the warnings of an estimate and its answers."""
    return [warning for result in (estimate, answers) if result is not None for warning in result.warnings]


def _encode(collection: Collection, options: EstimateRequest, estimate: Estimate | None, wave: int | None) -> bytes:
    """Return the response body of an estimate, without rows if the estimate is None."""
    confidence, question = options.confidence, options.question
    rows, answer_rows, answers = [], [], None
    if estimate is not None and estimate.is_complete:
        rows = frequency_rows(estimate, confidence)
    if estimate is not None and question is not None:
        answers = _answers(estimate, question)
        columns = [np.asarray(column, object).tolist() for column in answers.named_columns(confidence).values()]
        answer_rows = [AnswerRow(*finite(row)) for row in map(list, zip(*columns, strict=True))]
    response = EstimateResponse(
        collection=collection.id,
        reports=0 if estimate is None else estimate.n,
        method=options.method,
        confidence=confidence,
        quantile=NormalDist().inv_cdf((1 + confidence) / 2),
        rows=rows,
        complete=estimate is None or estimate.is_complete,
        question=options.document,
        answers=answer_rows,
        rounding=0.0 if answers is None else answers.rounding,
        warnings=_warnings(estimate, answers),
        wave=wave,
    )
    return msgspec.json.encode(response, enc_hook=str)


async def give_aggregate(collector: Collector, request: Request) -> JsonResponse | Response:
    """Return the exact counts as JSON, or in binary form if the ``Accept`` header names its type."""
    collection = await readable(collector, request)
    options = EstimateRequest("unbiased", 0.95, None, _requested_wave(request, collection))
    _, counts = await _counts_of(collector, collection, options)
    if request.headers.get("accept", "") == AGGREGATE_TYPE:
        return Response(counts.to_bytes(), media_type=AGGREGATE_TYPE)
    return JsonResponse((await collector.workers.run(counts.to_json)).encode())


async def give_certificate(collector: Collector, request: Request) -> JsonResponse:
    """Return the certificate that the mechanism obeys the policy."""
    collection = await collector.collections.get(request.path_params["id"])
    return JsonResponse(collection.certificate)


# -- live streams ------------------------------------------------------------------------------------------


async def give_live(collector: Collector, request: Request) -> Response:
    """Return a stream that sends the estimate at the start and whenever the counts have changed."""
    collection = await readable(collector, request)
    options = requested_estimate(request, collection)
    await _event(collector, collection, options, request)  # report an error before the stream begins
    if collector.streams >= collector.settings.streams:
        raise ApiError("overloaded", "too many live streams are open; retry later, or request the estimate instead")
    return _Stream(collector, request, options)


class _Stream(Response):
    """A response that sends events until the client disconnects or the collector stops."""

    def __init__(self, collector: Collector, request: Request, options: EstimateRequest) -> None:
        super().__init__(
            media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        del self.headers["content-length"]
        self._collector, self._request, self._options = collector, request, options
        if request.method != "HEAD":
            self._count(1)

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": b""})
            return
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            disconnected = asyncio.create_task(_disconnected(receive))
            try:
                await self._events(send, disconnected)
            finally:
                disconnected.cancel()
        finally:
            self._count(-1)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _count(self, change: int) -> None:
        """Add to the number of open streams, of all addresses and of this one."""
        self._collector.streams_each.change(self._collector.addresses.of(self._request.scope), change)
        self._collector.streams += change
        self._collector.metrics.streams(self._collector.streams)

    async def _events(self, send: Send, disconnected: asyncio.Task[None]) -> None:
        """Send events until the client disconnects or loses access, or the collector stops."""
        collector = self._collector
        stopping = asyncio.create_task(collector.stopping.wait())
        sent, quiet = -1, 0.0
        try:
            while not disconnected.done() and not stopping.done():
                try:
                    parts, sent = await self._news(sent)
                except ApiError as error:
                    if error.reason in _OVER:
                        return
                    parts = None  # the collector is overloaded or the store unavailable: the next check may succeed
                if parts is not None:
                    for part in parts:
                        await _send(send, part)
                    quiet = 0.0
                elif quiet >= _SILENCE:
                    await _send(send, b":\n\n")
                    quiet = 0.0
                await asyncio.wait(
                    (disconnected, stopping), timeout=collector.settings.live_seconds, return_when="FIRST_COMPLETED"
                )
                quiet += collector.settings.live_seconds
        finally:
            stopping.cancel()

    async def _news(self, sent: int) -> tuple[tuple[bytes, ...] | None, int]:
        """Check access; return an event in parts and the number of reports, or None if there are still ``sent``."""
        collection = await readable(self._collector, self._request)
        reports = collection.progress.reports
        if reports == sent:
            return None, sent
        return await _event(self._collector, collection, self._options, self._request), reports


async def _event(
    collector: Collector, collection: Collection, options: EstimateRequest, request: Request
) -> tuple[bytes, ...]:
    """Return an event in parts; all streams share the long part, so that waiting streams hold no copies of it."""
    if len(collection.mechanism.domain) > _MOST_VALUES:
        return b"event: reports\ndata: ", msgspec.json.encode({"reports": collection.progress.reports}), b"\n\n"
    if options.question is not None and len(options.question.names) > _MOST_ANSWERS:
        options = dataclasses.replace(options, question=None)
    return b"event: estimate\ndata: ", await estimate_response(collector, collection, options, request), b"\n\n"


async def _send(send: Send, body: bytes) -> None:
    """Send a part of the response body."""
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _disconnected(receive: Any) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
