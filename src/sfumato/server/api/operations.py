"""The operations of the API: handler, access, request and response of each.

The application generates its routes from this list, and ``openapi`` generates the OpenAPI document.
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
    """One method on one path; ``who`` names its callers: anybody, administrators, senders of reports, or readers."""

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
    Parameter(
        "method",
        "query",
        "Estimation method; `unbiased` by default.",
        {"type": "string", "enum": list(results.METHODS)},
    ),
    Parameter(
        "level",
        "query",
        "Confidence level of the intervals; 0.95 by default.",
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    ),
)

_QUESTION = Parameter(
    "question",
    "query",
    "Question to answer, such as `mean` or `ranges:18-64,65-`; by default, the question of the collection. "
    "`frequencies` asks for frequencies only.",
    {"type": "string", "maxLength": 2000},
)

_BATCH_ID = Parameter(
    ingest.BATCH_HEADER,
    "header",
    "Batch id of a binary batch. A report in JSON has the batch id in its body.",
    {"type": "string", "pattern": BATCH_ID},
)

_AFTER = Parameter(
    "after",
    "query",
    "Start of the page: `next` of the previous page, or 0.",
    {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST",
        "/v1/collections/{id}/reports",
        "Send one report or a batch of reports. They are counted once, and are on disk when the response arrives.",
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
        "List the collections that are listed and not archived, the oldest first; an admin token lists all of them.",
        administration.list_collections,
        "anybody",
        CollectionList,
        parameters=(_AFTER,),
    ),
    Operation(
        "POST",
        "/v1/collections",
        "Create a collection. Its mechanism is audited against its policy, and rejected if it violates the policy.",
        administration.create_collection,
        "admin",
        Created,
        body=NewCollection,
        status=201,
    ),
    Operation(
        "GET",
        "/v1/collections/{id}",
        "Return a collection: its policy, question, mechanism, state and number of reports.",
        administration.give_collection,
        "anybody",
        CollectionResponse,
    ),
    Operation(
        "PATCH",
        "/v1/collections/{id}",
        "Open, close or archive a collection, or change its metadata. Policy, question and mechanism never change.",
        administration.change_collection,
        "admin",
        CollectionResponse,
        body=Change,
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/estimate",
        "Return the estimated frequency of each value, and the answers to the question of the collection, with "
        "standard errors and confidence intervals.",
        results.give_estimate,
        "reader",
        EstimateResponse,
        response_types=(JSON_TYPE, results.PARQUET_TYPE),
        parameters=(*_ESTIMATE, _QUESTION),
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/live",
        "Stream the estimate as server-sent events: once at the start, and again whenever it has changed.",
        results.give_live,
        "reader",
        None,
        response_types=("text/event-stream",),
        parameters=(*_ESTIMATE, _QUESTION),
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/aggregate",
        "Return the exact counts, in the format of `sfumato aggregate`.",
        results.give_aggregate,
        "reader",
        dict[str, Any],
        response_types=(JSON_TYPE, results.AGGREGATE_TYPE),
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/certificate",
        "Return the certificate that the mechanism obeys the policy, in the format of `sfumato audit`.",
        results.give_certificate,
        "anybody",
        dict[str, Any],
    ),
    Operation(
        "POST",
        "/v1/collections/{id}/key",
        "Replace the key of a collection whose submission mode is `key`. The previous key is revoked.",
        administration.replace_key,
        "admin",
        KeyResponse,
        status=201,
    ),
    Operation(
        "POST",
        "/v1/collections/{id}/tokens",
        "Issue one-time tokens. Each allows one report.",
        administration.hand_out_tokens,
        "admin",
        TokenList,
        body=NewTokens,
        status=201,
    ),
    Operation(
        "POST",
        "/v1/check",
        "Describe a policy: in words, by the errors of any test against it, and by how far a reply can raise a belief.",
        administration.check_policy,
        "admin",
        Checked,
        body=Check,
    ),
    Operation(
        "POST",
        "/v1/plan",
        "Return the expected error of every suitable mechanism.",
        administration.plan_policy,
        "admin",
        PlanResponse,
        body=PlanRequest,
    ),
)
