"""The OpenAPI document, generated from the operations and their types, and its HTML page."""

from __future__ import annotations

import html
import importlib.metadata
import re
from typing import Any

import msgspec

from sfumato.server.api.operations import OPERATIONS, Operation
from sfumato.server.api.schemas import COLLECTION_ID
from sfumato.server.http.responses import JSON_TYPE, REASONS, ErrorResponse

__all__ = ["document", "page_body"]

_REFERENCE = "#/components/schemas/{name}"
_ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "Id of the collection.",
    "schema": {"type": "string", "pattern": COLLECTION_ID},
}
#: Sentence about access that follows the summary of an operation.
_ACCESS = {
    "anybody": "",
    "author": " Requires an admin token, or the token of an author.",
    "sender": " Requires the collection's key or a one-time token, depending on its submission mode.",
    "owner": " Requires an admin token, or the token of an owner of the collection.",
    "reader": " Requires the token of an administrator, owner or reader, unless the collection's results are public.",
}
#: Error reasons of every operation, and additional ones of operations with a request body.
_ALWAYS = ("malformed", "not-found", "method-not-allowed", "rate", "internal", "unavailable", "overloaded", "invalid")
_WITH_BODY = ("too-slow", "too-large", "unsupported-type", "conflict", "not-open", "token-spent", "too-hard")


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    types = [t for operation in OPERATIONS for t in (operation.body, operation.response) if t is not None]
    schemas, components = msgspec.json.schema_components([*types, ErrorResponse], ref_template=_REFERENCE)
    known = dict(zip(map(repr, [*types, ErrorResponse]), schemas, strict=True))
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sfumato collector",
            "version": importlib.metadata.version("sfumato"),
            "description": "Accepts randomized reports, counts each exactly once, and estimates from the counts. "
            "No operation accepts a raw value.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(operation: Operation, known: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI object of an operation; ``known`` maps the repr of a type to its schema."""
    parameters: list[dict[str, Any]] = [_ID] if "{id}" in operation.path else []
    parameters += [
        {"name": p.name, "in": p.place, "required": False, "description": p.summary, "schema": p.schema}
        for p in operation.parameters
    ]
    response = {} if operation.response is None else known[repr(operation.response)]
    document: dict[str, Any] = {
        "operationId": operation.handler.__name__,
        "summary": operation.summary,
        "description": operation.summary + _ACCESS[operation.who],
        "parameters": parameters,
        "responses": {
            str(operation.status): {
                "description": "Success.",
                "content": {
                    kind: {"schema": response if kind == JSON_TYPE else {}} for kind in operation.response_types
                },
            },
            **_error_responses(operation, known[repr(ErrorResponse)]),
        },
    }
    if operation.who != "anybody":
        required = operation.who in ("author", "owner")
        document["security"] = [{"bearer": []}] if required else [{}, {"bearer": []}]
    if operation.body is not None:
        binary = {"type": "string", "format": "binary"}
        document["requestBody"] = {
            "required": True,
            "content": {
                kind: {"schema": known[repr(operation.body)] if kind == JSON_TYPE else binary}
                for kind in operation.body_types
            },
        }
    return document


def _error_responses(operation: Operation, shape: Any) -> dict[str, Any]:
    """Return the error responses of an operation, by status."""
    reasons = [*_ALWAYS, *(_WITH_BODY if operation.body is not None else ())]
    if operation.method == "DELETE":  # an open collection is not deleted
        reasons.append("not-open")
    if operation.who != "anybody":
        reasons += ["unauthorized", "token-unknown"]
    by_status: dict[int, list[str]] = {}
    for reason in reasons:
        by_status.setdefault(REASONS[reason][0], []).append(f"`{reason}`: {REASONS[reason][1]}")
    return {
        str(status): {"description": "; ".join(descriptions) + ".", "content": {JSON_TYPE: {"schema": shape}}}
        for status, descriptions in sorted(by_status.items())
    }


def page_body() -> str:
    """Return the operations as HTML."""
    rows = "".join(
        f"<tr><td><code>{operation.method} {html.escape(operation.path)}</code></td>"
        f"<td>{_with_code(operation.summary + _ACCESS[operation.who])}</td></tr>"
        for operation in OPERATIONS
    )
    reasons = "".join(
        f"<tr><td><code>{reason}</code></td><td>{status}</td><td>{_with_code(meaning)}</td></tr>"
        for reason, (status, meaning) in REASONS.items()
    )
    return (
        f"<table>{rows}</table><h2>Errors</h2><p>Every error response has this form: "
        '<code>{"error": {"reason": …, "message": …, "row": …}}</code>.</p>'
        f"<table><tr><th>reason</th><th>status</th><th>meaning</th></tr>{reasons}</table>"
        '<p><a href="/openapi.json">OpenAPI document</a></p>'
    )


def _with_code(sentence: str) -> str:
    """Return a sentence as HTML, with backquoted parts as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(sentence))
