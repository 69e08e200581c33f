"""The OpenAPI document of the API, made of its operations and their types; and a page of it for people."""

from __future__ import annotations

import html
import importlib.metadata
import re
from typing import Any

import msgspec

from sfumato.server.api.operations import OPERATIONS, Operation
from sfumato.server.api.schemas import COLLECTION_ID
from sfumato.server.http.refusals import JSON_TYPE, REASONS, ErrorAnswer

__all__ = ["document", "page_body"]

_REFERENCE = "#/components/schemas/{name}"
_ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The collection.",
    "schema": {"type": "string", "pattern": COLLECTION_ID},
}
_WHO = {
    "anybody": "",
    "admin": " Needs an admin token.",
    "sender": " Needs the collection's key or a one-time token, if the collection asks for one.",
    "reader": " Needs an admin token, unless the collection's results are public.",
}
#: Refusals that any operation may give, and those of operations that take a body.
_ALWAYS = ("malformed", "not-found", "method-not-allowed", "rate", "internal", "unavailable", "overloaded", "invalid")
_WITH_BODY = ("too-slow", "too-large", "unsupported-type", "conflict", "not-open", "token-spent", "too-hard")


def document() -> dict[str, Any]:
    """The whole document."""
    types = [t for own in OPERATIONS for t in (own.body, own.answer) if t is not None]
    schemas, components = msgspec.json.schema_components([*types, ErrorAnswer], ref_template=_REFERENCE)
    known = dict(zip(map(repr, [*types, ErrorAnswer]), schemas, strict=True))
    paths: dict[str, Any] = {}
    for own in OPERATIONS:
        paths.setdefault(own.path, {})[own.method.lower()] = _operation(own, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sfumato collector",
            "version": importlib.metadata.version("sfumato"),
            "description": "Takes randomized reports, counts them exactly once, and estimates from the counts. "
            "Nothing here takes a raw value.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(own: Operation, known: dict[str, Any]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [_ID] if "{id}" in own.path else []
    parameters += [
        {"name": p.name, "in": p.place, "required": False, "description": p.about, "schema": p.schema}
        for p in own.parameters
    ]
    answer = {} if own.answer is None else known[repr(own.answer)]
    found: dict[str, Any] = {
        "operationId": own.handler.__name__,
        "summary": own.about,
        "description": own.about + _WHO[own.who],
        "parameters": parameters,
        "responses": {
            str(own.status): {
                "description": "Done.",
                "content": {kind: {"schema": answer if kind == JSON_TYPE else {}} for kind in own.answer_types},
            },
            **_refusals(own, known[repr(ErrorAnswer)]),
        },
    }
    if own.who != "anybody":
        found["security"] = [{"bearer": []}] if own.who == "admin" else [{}, {"bearer": []}]
    if own.body is not None:
        binary = {"type": "string", "format": "binary"}
        found["requestBody"] = {
            "required": True,
            "content": {
                kind: {"schema": known[repr(own.body)] if kind == JSON_TYPE else binary} for kind in own.body_types
            },
        }
    return found


def _refusals(own: Operation, shape: Any) -> dict[str, Any]:
    reasons = [*_ALWAYS, *(_WITH_BODY if own.body is not None else ())]
    if own.who != "anybody":
        reasons += ["unauthorized", "token-unknown"]
    by_status: dict[int, list[str]] = {}
    for reason in reasons:
        by_status.setdefault(REASONS[reason][0], []).append(f"`{reason}`: {REASONS[reason][1]}")
    return {
        str(status): {"description": "; ".join(said) + ".", "content": {JSON_TYPE: {"schema": shape}}}
        for status, said in sorted(by_status.items())
    }


def page_body() -> str:
    """The operations as HTML."""
    rows = "".join(
        f"<tr><td><code>{own.method} {html.escape(own.path)}</code></td>"
        f"<td>{_text(own.about + _WHO[own.who])}</td></tr>"
        for own in OPERATIONS
    )
    reasons = "".join(
        f"<tr><td><code>{r}</code></td><td>{s}</td><td>{_text(t)}</td></tr>" for r, (s, t) in REASONS.items()
    )
    return (
        f"<table>{rows}</table><h2>Refusals</h2><p>Every refusal is "
        '<code>{"error": {"reason": …, "message": …, "row": …}}</code>.</p>'
        f"<table><tr><th>reason</th><th>status</th><th></th></tr>{reasons}</table>"
        '<p><a href="/openapi.json">OpenAPI</a></p>'
    )


def _text(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))
