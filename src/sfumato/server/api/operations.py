"""The operations of the API: handler, access, request and response of each.

The application generates its routes from this list, and ``openapi`` generates the OpenAPI document.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from sfumato.server.api import administration, comparison, ingest, management, results, waves
from sfumato.server.api.schemas import (
    BATCH_ID,
    Admission,
    Change,
    ChangeList,
    Check,
    Checked,
    CollectionList,
    CollectionResponse,
    ComparisonResponse,
    Copy,
    Created,
    CreatedSurvey,
    Days,
    Deleted,
    EstimateResponse,
    GrantResponse,
    GrantRows,
    KeyResponse,
    Mine,
    NewCollection,
    NewGrant,
    NewSurvey,
    NewTokens,
    OneReport,
    PlanRequest,
    PlanResponse,
    Receipt,
    Revoke,
    Revoked,
    TokenList,
    TokenUse,
    Undo,
    Undone,
    WavesResponse,
)
from sfumato.server.http.bodies import BATCH_TYPE
from sfumato.server.http.responses import JSON_TYPE
from sfumato.server.http.routing import Handler
from sfumato.server.jobs.comparisons import AGAINST

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
    """One method on one path; ``who`` names its callers: anybody, authors, owners, senders of reports, or readers."""

    method: str
    path: str
    summary: str
    handler: Handler
    who: Literal["anybody", "author", "owner", "sender", "reader"]
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
    "`frequencies` asks for frequencies only, `districts` for the shares of the districts of a map.",
    {"type": "string", "maxLength": 2000},
)

_WAVE = Parameter(
    "wave",
    "query",
    "Number of the wave, if the collection has waves; by default, the last one with reports.",
    {"type": "integer", "minimum": 0, "maximum": 399},
)

_WITHOUT = Parameter(
    "without",
    "query",
    "Days (UTC), separated by commas, whose stored reports are left out. Only for owners; each day must have at least "
    "100 reports.",
    {"type": "string", "maxLength": 2000},
)

_BATCH_WAVE = Parameter(
    "wave",
    "query",
    "Number of the wave of a binary batch, or of the report that is asked about. A report in JSON has it in its body.",
    {"type": "integer", "minimum": 0, "maximum": 399},
)

_BATCH_ID = Parameter(
    ingest.BATCH_HEADER,
    "header",
    "Batch id of a binary batch, or of the report that is asked about. A report in JSON has it in its body.",
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
        parameters=(_BATCH_ID, _BATCH_WAVE),
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/admission",
        "Return whether the collection would count a report of the sender under a batch id; an error is that of the "
        "report.",
        ingest.check_sender,
        "sender",
        Admission,
        parameters=(_BATCH_ID, _BATCH_WAVE),
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
        "author",
        Created,
        body=NewCollection,
        status=201,
    ),
    Operation(
        "POST",
        "/v1/surveys",
        "Create the collections of all questions of a survey and issue their one-time tokens, or do nothing.",
        administration.create_survey,
        "author",
        CreatedSurvey,
        body=NewSurvey,
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
        "owner",
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
        parameters=(*_ESTIMATE, _QUESTION, _WAVE, _WITHOUT),
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/waves",
        "Return the estimate of each wave, and the changes between waves with upper bounds on their standard errors.",
        waves.give_waves,
        "reader",
        WavesResponse,
        response_types=(JSON_TYPE, results.PARQUET_TYPE),
        parameters=(
            Parameter(
                "method",
                "query",
                "Estimation method; `unbiased` by default.",
                {"type": "string", "enum": list(waves.METHODS)},
            ),
            _ESTIMATE[1],
        ),
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/comparison",
        "Return the differences between collections with the same values, with simultaneous intervals.",
        comparison.give_comparison,
        "reader",
        ComparisonResponse,
        parameters=(
            Parameter("with", "query", "Ids of the other collections, separated by commas.", {"type": "string"}),
            Parameter(
                "against",
                "query",
                "What each collection is compared with: the first one (by default), all others one by one (`pairs`), "
                "or all others together (`rest`).",
                {"type": "string", "enum": list(AGAINST)},
            ),
            _ESTIMATE[1],
            _QUESTION,
        ),
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/live",
        "Stream the estimate as server-sent events: once at the start, and again whenever it has changed.",
        results.give_live,
        "reader",
        None,
        response_types=("text/event-stream",),
        parameters=(*_ESTIMATE, _QUESTION, _WAVE),
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/aggregate",
        "Return the exact counts, in the format of `sfumato aggregate`.",
        results.give_aggregate,
        "reader",
        dict[str, Any],
        response_types=(JSON_TYPE, results.AGGREGATE_TYPE),
        parameters=(_WAVE,),
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
        "owner",
        KeyResponse,
        status=201,
    ),
    Operation(
        "POST",
        "/v1/collections/{id}/tokens",
        "Issue one-time tokens. Each allows one report.",
        administration.hand_out_tokens,
        "owner",
        TokenList,
        body=NewTokens,
        status=201,
    ),
    Operation(
        "GET",
        "/v1/mine",
        "List the collections that the token has a role on, the oldest first; an admin token lists all of them.",
        management.give_mine,
        "owner",
        Mine,
        parameters=(_AFTER,),
    ),
    Operation(
        "DELETE",
        "/v1/collections/{id}",
        "Delete a collection that is not open, with its counts, reports, tokens and roles.",
        management.delete_collection,
        "owner",
        Deleted,
    ),
    Operation(
        "POST",
        "/v1/collections/{id}/copies",
        "Create a collection with the same policy, question, mechanism and settings.",
        management.copy_collection,
        "owner",
        Created,
        body=Copy,
        status=201,
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/tokens",
        "Return how many one-time tokens were issued, and how many were used.",
        management.give_token_use,
        "owner",
        TokenUse,
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/roles",
        "List the roles on a collection, by the fingerprints of their tokens.",
        management.give_roles,
        "owner",
        GrantRows,
    ),
    Operation(
        "POST",
        "/v1/collections/{id}/roles",
        "Create a token of an owner or reader of a collection.",
        management.grant_role,
        "owner",
        GrantResponse,
        body=NewGrant,
        status=201,
    ),
    Operation(
        "POST",
        "/v1/collections/{id}/roles/revoke",
        "Revoke the token of an owner or reader.",
        management.revoke_role,
        "owner",
        Revoked,
        body=Revoke,
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/days",
        "Return the stored reports per day, and whether honest devices could have sent them.",
        management.give_days,
        "owner",
        Days,
    ),
    Operation(
        "POST",
        "/v1/collections/{id}/undo",
        "Remove the stored reports of one day from the counts. The day must have at least 100 reports.",
        management.undo_reports,
        "owner",
        Undone,
        body=Undo,
    ),
    Operation(
        "GET",
        "/v1/collections/{id}/log",
        "Return the changes of a collection: who, what and when.",
        management.give_changes,
        "owner",
        ChangeList,
    ),
    Operation(
        "POST",
        "/v1/check",
        "Describe a policy: in words, by the errors of any test against it, and by how far a reply can raise a belief.",
        administration.check_policy,
        "author",
        Checked,
        body=Check,
    ),
    Operation(
        "POST",
        "/v1/plan",
        "Return the expected error of every suitable mechanism.",
        administration.plan_policy,
        "author",
        PlanResponse,
        body=PlanRequest,
    ),
)
