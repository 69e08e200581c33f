"""What was collected, read back: counts, estimates and certificates."""

from __future__ import annotations

import msgspec
import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from sfumato.collecting import Aggregate
from sfumato.estimation import Estimate
from sfumato.server.api.administration import require_admin
from sfumato.server.api.collections import Collection
from sfumato.server.api.collector import Collector
from sfumato.server.api.downloads import PARQUET_TYPE, as_parquet
from sfumato.server.api.schemas import EstimateAnswer, EstimateRow
from sfumato.server.http.answers import JsonAnswer
from sfumato.server.http.refusals import Refusal
from sfumato.server.jobs.decoded import decoded, estimate_of

__all__ = ["AGGREGATE_TYPE", "METHODS", "estimate_answer", "give_aggregate", "give_certificate", "give_estimate"]

AGGREGATE_TYPE = "application/vnd.sfumato.aggregate"
#: Those that need nothing but counts.
METHODS = ("unbiased", "efficient", "simplex", "mle")


async def readable(collector: Collector, request: Request) -> Collection:
    """The collection, if whoever asks may see its results."""
    collection = await collector.collections.get(request.path_params["id"])
    if collection.about.results == "admin":
        await require_admin(collector, request)
    return collection


def asked_estimate(request: Request) -> tuple[str, float]:
    """The method and the level that a request asks for."""
    method = request.query_params.get("method", "unbiased")
    if method not in METHODS:
        raise Refusal("invalid", f"method must be one of {', '.join(METHODS)}")
    try:
        level = float(request.query_params.get("level", "0.95"))
    except ValueError:
        level = 0.0
    if not 0 < level < 1 or (1 + level) / 2 == 1:  # the normal quantile of 1 is infinite
        raise Refusal("invalid", "level must lie between 0 and 1, and not next to 1")
    return method, level


async def give_estimate(collector: Collector, request: Request) -> JsonAnswer | Response:
    """Frequencies with their errors."""
    collection = await readable(collector, request)
    method, level = asked_estimate(request)
    if request.headers.get("accept", "") == PARQUET_TYPE:
        found = await _found(collector, collection, await collector.collections.counts(collection), method)
        return Response(await collector.workers.run(as_parquet, found, level), media_type=PARQUET_TYPE)
    return JsonAnswer(await estimate_answer(collector, collection, method, level))


async def estimate_answer(collector: Collector, collection: Collection, method: str, level: float) -> bytes:
    """The estimate as JSON; one of the same counts is given again, and computed once for all levels."""
    counts = await collector.collections.counts(collection)

    async def answered() -> bytes:
        found = await _found(collector, collection, counts, method) if counts.n else None
        return await collector.workers.run(_answer, collection, method, level, found)

    return await collector.estimates.get((collection.id, counts.n, method, level), answered)


async def _found(collector: Collector, collection: Collection, counts: Aggregate, method: str) -> Estimate:
    if not counts.n:
        raise Refusal("invalid", "there are no reports to estimate from yet")

    async def computed() -> bytes:
        return await collector.workers.run(decoded, collection.mechanism, counts, method)

    kept = await collector.decoded.get((collection.id, counts.n, method), computed)
    return await collector.workers.run(estimate_of, collection.mechanism, counts.n, method, kept)


def _answer(collection: Collection, method: str, level: float, found: Estimate | None) -> bytes:
    rows = []
    if found is not None:
        numbers = np.column_stack([found.frequencies, found.standard_errors, *found.interval(level)]).tolist()
        rows = [EstimateRow(label, *row) for label, row in zip(found.values, numbers, strict=True)]
    answer = EstimateAnswer(collection.id, 0 if found is None else found.n, method, level, rows)
    return msgspec.json.encode(answer, enc_hook=str)


async def give_aggregate(collector: Collector, request: Request) -> JsonAnswer | Response:
    """The exact counts: JSON, or binary where that is asked for."""
    collection = await readable(collector, request)
    counts = await collector.collections.counts(collection)
    if request.headers.get("accept", "") == AGGREGATE_TYPE:
        return Response(counts.to_bytes(), media_type=AGGREGATE_TYPE)
    return JsonAnswer((await collector.workers.run(counts.to_json)).encode())


async def give_certificate(collector: Collector, request: Request) -> JsonAnswer:
    """The proof that the mechanism obeys the policy."""
    collection = await collector.collections.get(request.path_params["id"])
    return JsonAnswer(collection.certificate)
