"""What was collected, read back: counts, estimates and certificates."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from sfumato._estimate import estimate
from sfumato.errors import SfumatoError
from sfumato.server.administration import require_admin
from sfumato.server.answers import JsonAnswer
from sfumato.server.collections import Collection
from sfumato.server.collector import Collector
from sfumato.server.downloads import PARQUET_TYPE, as_parquet
from sfumato.server.refusals import Refusal
from sfumato.server.schemas import EstimateAnswer, EstimateRow

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
    if not 0 < level < 1:
        raise Refusal("invalid", "level must lie between 0 and 1")
    return method, level


async def give_estimate(collector: Collector, request: Request) -> JsonAnswer | Response:
    """Frequencies with their errors."""
    collection = await readable(collector, request)
    method, level = asked_estimate(request)
    if request.headers.get("accept", "") == PARQUET_TYPE:
        counts = await collector.collections.counts(collection)
        file = await collector.workers.run(as_parquet, collection, counts, method, level)
        return Response(file, media_type=PARQUET_TYPE)
    return JsonAnswer(await estimate_answer(collector, collection, method, level))


async def estimate_answer(collector: Collector, collection: Collection, method: str, level: float) -> bytes:
    """The estimate as JSON; one that was computed for the same counts before is given again."""
    counts = await collector.collections.counts(collection)

    async def computed() -> bytes:
        return await collector.workers.run(_computed, collection, counts, method, level)

    return await collector.estimates.get((collection.id, counts.n, method, level), computed)


def _computed(collection: Collection, counts: Any, method: str, level: float) -> bytes:
    rows = []
    if counts.n:
        try:
            found = estimate(collection.mechanism, counts, method)
            low, high = found.interval(level)
        except SfumatoError as error:
            raise Refusal("invalid", str(error)) from None
        numbers = np.column_stack([found.frequencies, found.standard_errors, low, high]).tolist()
        rows = [EstimateRow(label, *row) for label, row in zip(found.values, numbers, strict=True)]
    answer = EstimateAnswer(collection.id, counts.n, method, level, rows)
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
    return JsonAnswer(collection.record.certificate.encode())
