"""Compare the results of collections that ask different groups of people for the same values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.requests import Request

from sfumato.collecting import Aggregate
from sfumato.server.api.collections import Collection
from sfumato.server.api.collector import Collector
from sfumato.server.api.results import EstimateRequest, readable, requested_estimate
from sfumato.server.api.schemas import ComparisonResponse, DifferenceRow
from sfumato.server.http.responses import ApiError, JsonResponse
from sfumato.server.jobs.comparisons import AGAINST

__all__ = ["give_comparison"]

#: Maximum collections of a comparison.
_MOST_GROUPS = 50
#: Maximum differences of a comparison; each takes some milliseconds.
_MOST_DIFFERENCES = 1000


async def give_comparison(collector: Collector, request: Request) -> JsonResponse:
    """Return the differences between collections, with simultaneous intervals and adjusted p-values."""
    names = [request.path_params["id"], *filter(None, request.query_params.get("with", "").split(","))]
    against = request.query_params.get("against", "first")
    if against not in AGAINST:
        raise ApiError("invalid", f"against must be one of {', '.join(AGAINST)}")
    if not 2 <= len(set(names)) == len(names) <= _MOST_GROUPS:
        raise ApiError("invalid", f"with must name 1 to {_MOST_GROUPS - 1} other collections, each once")
    groups = [await readable(collector, _about(request, name)) for name in names]
    options = requested_estimate(request, groups[0])
    if options.method != "unbiased":
        raise ApiError("invalid", "method must be unbiased; differences of other estimates have no intervals")
    _check(groups, options, against)
    counts = [await collector.collections.counts(group) for group in groups]
    empty = [group.id for group, one in zip(groups, counts, strict=True) if not one.n]
    if empty:
        raise ApiError("invalid", f"every collection must have reports; {empty[0]} has none yet")

    async def encoded() -> bytes:
        with collector.slow_places.take(collector.addresses.of(request.scope), names[0]):
            return await _encode(collector, groups, counts, options, against)

    version = tuple((one.n, group.progress.batches) for group, one in zip(groups, counts, strict=True))
    views = tuple((group.id, group.is_released) for group in groups)
    key = ("comparison", views, against, *options.key)
    return JsonResponse(await collector.unusual_responses.get(key, encoded, version))


def _about(request: Request, name: str) -> Request:
    """Return the request as if it were about another collection, with the same token."""
    return Request({**request.scope, "path_params": {"id": name}})


def _check(groups: Sequence[Collection], options: EstimateRequest, against: str) -> None:
    """Raise ApiError unless the collections have the same values, no waves, and not too many differences."""
    if any(group.metadata.waves is not None for group in groups):
        raise ApiError("invalid", "collections with waves are not compared; request their waves")
    size = len(groups[0].mechanism.domain)
    answers = size if options.question is None else len(options.question.names)
    pairs = {"first": len(groups) - 1, "rest": len(groups)}.get(against, len(groups) * (len(groups) - 1) // 2)
    if pairs * answers > _MOST_DIFFERENCES:
        message = f"a comparison has at most {_MOST_DIFFERENCES:,} differences, not {pairs * answers:,}"
        raise ApiError("invalid", f"{message}; compare fewer collections, or against the first one only")
    if any(group.mechanism.domain != groups[0].mechanism.domain for group in groups):
        raise ApiError("invalid", "all collections must have the same values")


async def _encode(
    collector: Collector,
    groups: Sequence[Collection],
    counts: Sequence[Aggregate],
    options: EstimateRequest,
    against: str,
) -> bytes:
    """Return the response body, computed in the process for slow estimates."""
    question = None if options.question is None else options.question.to_dict()
    rows: list[list[Any]] = await collector.slow_estimates.ask(
        "compare",
        mechanisms=[group.record.mechanism for group in groups],
        counts=[one.to_json() for one in counts],
        question=question,
        against=against,
        confidence=options.confidence,
    )
    response = ComparisonResponse(
        collections=[group.id for group in groups],
        reports=[one.n for one in counts],
        method=options.method,
        confidence=options.confidence,
        against=against,
        question=question,
        rows=[DifferenceRow(*row) for row in rows],
    )
    return msgspec.json.encode(response, enc_hook=str)
