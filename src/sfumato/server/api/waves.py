"""Results over time: the estimates of all waves of a collection, and the changes between them."""

from __future__ import annotations

import io
import itertools

import msgspec
import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from sfumato._core import finite, import_pyarrow
from sfumato.collecting import Aggregate
from sfumato.errors import MissingExtra, SfumatoError
from sfumato.estimation import WaveEstimates, estimate_waves
from sfumato.mechanisms import Mechanism
from sfumato.server.api.collections import Collection
from sfumato.server.api.collector import Collector
from sfumato.server.api.results import (
    PARQUET_TYPE,
    EstimateRequest,
    cached_response,
    frequency_rows,
    readable,
    requested_estimate,
)
from sfumato.server.api.schemas import ChangeResponse, ChangeRow, WaveResponse, WavesResponse
from sfumato.server.http.responses import ApiError, JsonResponse
from sfumato.server.jobs.estimates import in_words
from sfumato.server.jobs.threads import Workers

__all__ = ["METHODS", "give_waves"]

#: Estimation methods of :func:`estimate_waves`.
METHODS = ("unbiased", "simplex", "mle")
#: Maximum values for which changes are computed; each needs a covariance of all values.
_MOST_CHANGED = 1000
#: Maximum values times waves of a response.
_MOST_ROWS = 200_000


async def give_waves(collector: Collector, request: Request) -> JsonResponse | Response:
    """Return the estimate of each wave that has reports, and the changes between waves."""
    collection = await readable(collector, request)
    if collection.metadata.waves is None:
        raise ApiError("invalid", "this collection has no waves; request its estimate")
    options = requested_estimate(request, collection)
    if options.method not in METHODS:
        raise ApiError("invalid", f"method must be one of {', '.join(METHODS)}")
    if len(collection.mechanism.domain) * collection.metadata.waves.count > _MOST_ROWS:
        raise ApiError("invalid", "this collection has too many values; request the estimate of one wave")
    counts = await collector.collections.wave_counts(collection)
    if request.headers.get("accept", "") == PARQUET_TYPE:
        places = collector.places(options.method)
        with places.take(collector.addresses.of(request.scope), collection.id):
            file = await places.workers.run(_parquet, collection.mechanism, counts, options)
        return Response(file, media_type=PARQUET_TYPE)

    async def encoded(workers: Workers) -> bytes:
        return await workers.run(_encode, collection, counts, options)

    reports = tuple(sorted((wave, each.n) for wave, each in counts.items()))
    key = (collection.id, "waves", collection.is_released, options.method, options.confidence)
    return JsonResponse(await cached_response(collector, request, collection, options, key, reports, encoded))


def _estimates(mechanism: Mechanism, counts: dict[int, Aggregate], method: str) -> WaveEstimates:
    """Return the estimates of all waves; raise ApiError if they are not possible."""
    try:
        return estimate_waves(mechanism, counts, method)
    except SfumatoError as error:
        raise ApiError("invalid", f"the estimate is not possible: {in_words(error)}") from None


def _parquet(mechanism: Mechanism, counts: dict[int, Aggregate], options: EstimateRequest) -> bytes:
    """Return the estimates of all waves as a Parquet file, with one row per wave and value."""
    try:
        parquet = import_pyarrow("an estimate as Parquet", "pyarrow.parquet")
    except MissingExtra:
        message = "the collector cannot write Parquet files, because pyarrow is not installed; request JSON"
        raise ApiError("unsupported-type", message) from None
    if not counts:
        raise ApiError("invalid", "the collection has no reports yet; retry after the first report")
    file = io.BytesIO()
    table = _estimates(mechanism, counts, options.method).to_arrow(options.confidence)
    parquet.write_table(table, file)
    return file.getvalue()


def _encode(collection: Collection, counts: dict[int, Aggregate], options: EstimateRequest) -> bytes:
    """Return the response body with all waves; it is empty before the first report."""
    waves, changes = [], []
    if counts:
        estimates = _estimates(collection.mechanism, counts, options.method)
        waves = [
            WaveResponse(wave, counts[wave].n, frequency_rows(estimates[wave], options.confidence)) for wave in counts
        ]
        numbers = list(counts)
        pairs = list(itertools.pairwise(numbers))
        if len(numbers) > 2:
            pairs.append((numbers[0], numbers[-1]))
        if len(collection.mechanism.domain) <= _MOST_CHANGED:
            changes = [_change(estimates, *pair, options.confidence) for pair in pairs]
    response = WavesResponse(
        collection=collection.id,
        reports=sum(each.n for each in counts.values()),
        method=options.method,
        confidence=options.confidence,
        waves=waves,
        changes=changes,
    )
    return msgspec.json.encode(response, enc_hook=str)


def _change(estimates: WaveEstimates, first: int, second: int, confidence: float) -> ChangeResponse:
    """Return the changes between two waves."""
    table = estimates.change(first, second)
    errors = [table[label].standard_error for label in table]
    numbers = np.column_stack([[table[label].value for label in table], errors, *table.interval(confidence)]).tolist()
    rows = [ChangeRow(label, *finite(row)) for label, row in zip(table, numbers, strict=True)]
    return ChangeResponse(first, second, rows)
