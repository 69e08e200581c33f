"""The operations of the API: handler, access, request and response of each.

The routes and the OpenAPI document are both generated from this list.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from sfumato.server.api import administration, ingest, results
from sfumato.server.api.schemas import (
    BATCH_ID,
    Change,
    Check,
    Checked,
    CollectionList,
    CollectionResponse,
    Created,
    EstimateResponse,
    KeyResponse,
    NewCollection,
    NewTokens,
    OneReport,
    PlanRequest,
    PlanResponse,
    Receipt,
    TokenList,
)
from sfumato.server.http.bodies import BATCH_TYPE
from sfumato.server.http.responses import JSON_TYPE
from sfumato.server.http.routing import Handler

__all__ = ["OPERATIONS", "Operation", "Parameter"]


@dataclass(frozen=True)
class Parameter:
    """A query or header parameter."""

    name: str
    place: Literal["query", "header"]
    summary: str
    schema: dict[str, Any]


@dataclass(frozen=True)
class Operation:
    """One method on one path; ``who`` may call it: anybody, administrators, senders of reports, readers of results."""

    method: str
    path: str
    summary: str
    handler: Handler
    who: Literal["anybody", "admin", "sender", "reader"]
    response: Any
    response_types: tuple[str, ...] = (JSON_TYPE,)
    body: Any = None
    body_types: tuple[str, ...] = (JSON_TYPE,)
    status: int = 200
    parameters: tuple[Parameter, ...] = field(default=())


_ESTIMATE = (
    Parameter("method", "query", "How to estimate.", {"type": "string", "enum": list(results.METHODS)}),
    Parameter(
        "level",
        "query",
        "The confidence level of the intervals.",
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    ),
)

_BATCH_ID = Parameter(
    ingest.BATCH_HEADER,
    "header",
    "The batch id of a binary batch; one report in JSON has it inside.",
    {"type": "string", "pattern": BATCH_ID},
)

_AFTER = Parameter("after", "query", "Where the page begins.", {"type": "integer", "minimum": 0, "maximum": 10**18 - 1})

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST",
        "/v1/collections/{id}/reports",
        "Send one report, or a batch of them; they are counted once, and on disk when the response comes.",
        ingest.take_reports,
        "sender",
        Receipt,
        body=OneReport,
        body_types=(JSON_TYPE, BATCH_TYPE),
        parameters=(_BATCH_ID,),
    ),
    Operation(
        "GET",
        "/v1/collections",
        "The collections that are listed, the oldest first; for an administrator, all.",
        administration.list_collections,
        "anybody",
        CollectionList,
        parameters=(_AFTER,),
    ),
    Operation(
        "POST",
        "/v1/collections",
        "Open a collection: its mechanism is audited against its policy, and rejected if it does not obey.",
        administration.create_collection,
        "admin",
        Created,
        body=NewCollection,
        status=201,
    ),
    Operation(
        "GET",
        "/v1/collections/{id}",
        "One collection: policy, mechanism, state, and how many reports it has.",
        administration.give_collection,
        "anybody",
        CollectionResponse,
    ),
    Operation(
        "PATCH",
        "/v1/collections/{id}",
        "Open, close or archive a collection, or change its metadata. Its policy never changes.",
        administration.change_collection,
        "admin",
        CollectionResponse,
        body=Change,
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/estimate",
        "How frequent each value is, with its standard error and its interval.",
        results.give_estimate,
        "reader",
        EstimateResponse,
        response_types=(JSON_TYPE, results.PARQUET_TYPE),
        parameters=_ESTIMATE,
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/live",
        "Server-sent events: the estimate, and again whenever it has changed.",
        results.give_live,
        "reader",
        None,
        response_types=("text/event-stream",),
        parameters=_ESTIMATE,
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/aggregate",
        "The exact counts, as `sfumato aggregate` writes them.",
        results.give_aggregate,
        "reader",
        dict[str, Any],
        response_types=(JSON_TYPE, results.AGGREGATE_TYPE),
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/certificate",
        "The proof that the mechanism obeys the policy, as `sfumato audit` writes it.",
        results.give_certificate,
        "anybody",
        dict[str, Any],
    ),
    Operation(
        "POST",
        "/v1/collections/{id}/key",
        "Make a new key, where reports are sent with one; the old one is rejected from then on.",
        administration.replace_key,
        "admin",
        KeyResponse,
        status=201,
    ),
    Operation(
        "POST",
        "/v1/collections/{id}/tokens",
        "Issue one-time tokens: one report for each.",
        administration.hand_out_tokens,
        "admin",
        TokenList,
        body=NewTokens,
        status=201,
    ),
    Operation(
        "POST",
        "/v1/check",
        "A policy in words, the errors it leaves to any test, and how far an answer can raise a suspicion.",
        administration.check_policy,
        "admin",
        Checked,
        body=Check,
    ),
    Operation(
        "POST",
        "/v1/plan",
        "The error to expect of every suitable mechanism, by the planner.",
        administration.plan_policy,
        "admin",
        PlanResponse,
        body=PlanRequest,
    ),
)
