"""Operations of administrators: create collections, change their metadata, issue tokens, plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request

from sfumato.server.api.collector import Collector
from sfumato.server.api.schemas import (
    Change,
    Check,
    CollectionList,
    Created,
    KeyResponse,
    ListedCollection,
    NewCollection,
    NewTokens,
    PlanRequest,
    TokenList,
)
from sfumato.server.api.tokens import KEY, ONE_TIME, bearer, new_id, new_token, token_hash
from sfumato.server.http.bodies import read_headers, read_json
from sfumato.server.http.responses import ApiError, JsonResponse
from sfumato.server.store.records import METADATA, Metadata, Record, State

__all__ = [
    "change_collection",
    "check_policy",
    "create_collection",
    "give_collection",
    "hand_out_tokens",
    "list_collections",
    "plan_policy",
    "replace_key",
    "require_admin",
]

#: Maximum collections per page of a list.
_PAGE = 100

_NEW = msgspec.json.Decoder(NewCollection)
_CHANGE = msgspec.json.Decoder(Change)
_TOKENS = msgspec.json.Decoder(NewTokens)
_CHECK = msgspec.json.Decoder(Check)
_PLAN = msgspec.json.Decoder(PlanRequest)

#: Allowed changes of state; an archived collection stays archived.
_FOLLOWING = {"open": ("open", "closed"), "closed": ("closed", "open", "archived"), "archived": ("archived",)}


async def is_admin(collector: Collector, request: Request) -> bool:
    """Return whether a request has a valid admin token."""
    secret = bearer(read_headers(request))
    return secret is not None and await collector.readers.run(collector.store.is_admin, token_hash(secret))


async def require_admin(collector: Collector, request: Request) -> None:
    """Raise ApiError unless the request has a valid admin token."""
    if not await is_admin(collector, request):
        raise ApiError("unauthorized", "an admin token is required; send it as a bearer token")


def _json(response: Any, status: int = 200) -> JsonResponse:
    """Return a response object as a JSON response."""
    return JsonResponse(msgspec.json.encode(response, enc_hook=str), status)


# -- collections -------------------------------------------------------------------------------------------


async def list_collections(collector: Collector, request: Request) -> JsonResponse:
    """Return the listed collections, or all collections if the request has an admin token."""
    everything = await is_admin(collector, request)
    after = _number(request.query_params, "after")
    rows = await collector.readers.run(collector.store.collections, after, _PAGE)
    shown = []
    for _, name, stored, progress in rows:
        metadata = METADATA.decode(stored)
        if everything or (metadata.listed and progress.state != "archived"):
            shown.append(
                ListedCollection(
                    name, metadata.title, metadata.description, progress.state, metadata.submission, metadata.results,
                    progress.reports,
                )
            )  # fmt: skip
    return _json(CollectionList(shown, rows[-1][0] if len(rows) == _PAGE else None))


def _number(parameters: Mapping[str, str], name: str) -> int:
    """Return a query parameter as a number, 0 if it is missing."""
    digits = parameters.get(name, "0")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        raise ApiError("invalid", f"{name} must be a number of at most 18 digits")
    return int(digits)


async def give_collection(collector: Collector, request: Request) -> JsonResponse:
    """Return one collection, with everything that a client needs to randomize for it."""
    collection = await collector.collections.get(request.path_params["id"], fresh=True)
    return _json(collection.response())


async def create_collection(collector: Collector, request: Request) -> JsonResponse:
    """Audit a mechanism against its policy, and open a collection for it."""
    await require_admin(collector, request)
    body = await read_json(request, _NEW, collector.settings.max_bytes, collector.timeouts)
    if body.previous is not None:
        await collector.collections.get(body.previous)
    created = await collector.planner.ask(
        "create", policy=body.policy, question=body.question, mechanism=body.mechanism, n=body.n
    )
    metadata = Metadata(
        body.title, body.description, body.submission, body.results, body.listed, body.origins, body.keep_days
    )
    key = new_token(KEY) if body.submission == "key" else None
    record = Record(
        id=new_id(),
        number=0,
        created=int(collector.now()),
        previous=body.previous,
        policy=created["policy"],
        mechanism=created["mechanism"],
        certificate=created["certificate"],
        metadata=msgspec.json.encode(metadata).decode(),
        key_hash=None if key is None else token_hash(key),
        question=created["question"],
    )
    await collector.writer.run(lambda store: store.add_collection(record))
    collection = await collector.collections.get(record.id)
    return _json(Created(collection.response(), key, created["why"], created["guess"], created["chance"]), 201)


async def change_collection(collector: Collector, request: Request) -> JsonResponse:
    """Open, close or archive a collection, or change its metadata."""
    await require_admin(collector, request)
    name = request.path_params["id"]
    change = await read_json(request, _CHANGE, collector.settings.max_bytes, collector.timeouts)
    await collector.collections.get(name)  # raises ApiError if the collection does not exist
    changes = {
        field: getattr(change, field)
        for field in ("title", "description", "results", "listed", "origins")
        if getattr(change, field) is not None
    }
    if change.keep_days is not msgspec.UNSET:
        changes["keep_days"] = change.keep_days

    def decide(before: State, metadata: str) -> tuple[State, str]:
        state = change.state or before
        if state not in _FOLLOWING[before]:
            allowed = " or ".join(_FOLLOWING[before])
            message = f"a collection that is {before} cannot become {state}; its state can be {allowed}"
            raise ApiError("not-open", message)
        return state, msgspec.json.encode(msgspec.structs.replace(METADATA.decode(metadata), **changes)).decode()

    await collector.writer.run(lambda store: store.change(name, decide))
    return _json((await collector.collections.get(name, fresh=True)).response())


async def replace_key(collector: Collector, request: Request) -> JsonResponse:
    """Replace the key of a collection in any state, and revoke the previous key."""
    await require_admin(collector, request)
    collection = await collector.collections.get(request.path_params["id"])
    if collection.metadata.submission != "key":
        raise ApiError("invalid", "this collection has no key; only collections with submission 'key' have one")
    key = new_token(KEY)
    await collector.writer.run(lambda store: store.replace_key(collection.id, token_hash(key)))
    await collector.collections.get(collection.id, fresh=True)  # cache the new key for the next request
    return _json(KeyResponse(key), 201)


async def hand_out_tokens(collector: Collector, request: Request) -> JsonResponse:
    """Issue one-time tokens, each for one report."""
    await require_admin(collector, request)
    body = await read_json(request, _TOKENS, collector.settings.max_bytes, collector.timeouts)
    collection = await collector.collections.get(request.path_params["id"])
    if collection.metadata.submission != "token":
        message = "this collection has no one-time tokens; only collections with submission 'token' have them"
        raise ApiError("invalid", message)
    tokens = [new_token(ONE_TIME) for _ in range(body.count)]
    hashes = [token_hash(token) for token in tokens]
    await collector.writer.run(lambda store: store.add_tokens(collection.id, hashes))
    return _json(TokenList(tokens), 201)


# -- planning ----------------------------------------------------------------------------------------------


async def check_policy(collector: Collector, request: Request) -> JsonResponse:
    """Describe a policy in words and numbers."""
    await require_admin(collector, request)
    body = await read_json(request, _CHECK, collector.settings.max_bytes, collector.timeouts)
    return _json(await collector.planner.ask("check", **msgspec.structs.asdict(body)))


async def plan_policy(collector: Collector, request: Request) -> JsonResponse:
    """Return the expected error of each suitable mechanism."""
    await require_admin(collector, request)
    body = await read_json(request, _PLAN, collector.settings.max_bytes, collector.timeouts)
    return _json(await collector.planner.ask("plan", **msgspec.structs.asdict(body)))
