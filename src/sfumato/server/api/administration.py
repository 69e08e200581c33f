"""What an administrator may do: open collections, change what is said about them, hand out tokens, plan."""

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
    KeyAnswer,
    ListedCollection,
    NewCollection,
    NewTokens,
    PlanRequest,
    TokenList,
)
from sfumato.server.api.tokens import KEY, ONE_TIME, bearer, new_id, new_token, token_hash
from sfumato.server.http.bodies import read_headers, read_json
from sfumato.server.http.refusals import JsonAnswer, Refusal
from sfumato.server.store.records import ABOUT, About, Record, State

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

#: A list of collections has at most so many.
_PAGE = 100

_NEW = msgspec.json.Decoder(NewCollection)
_CHANGE = msgspec.json.Decoder(Change)
_TOKENS = msgspec.json.Decoder(NewTokens)
_CHECK = msgspec.json.Decoder(Check)
_PLAN = msgspec.json.Decoder(PlanRequest)

#: From each state those that may follow. What is archived stays so.
_FOLLOWING = {"open": ("open", "closed"), "closed": ("closed", "open", "archived"), "archived": ("archived",)}


async def is_admin(collector: Collector, request: Request) -> bool:
    """Whether a request brings an admin token."""
    secret = bearer(read_headers(request))
    return secret is not None and await collector.readers.run(collector.store.is_admin, token_hash(secret))


async def require_admin(collector: Collector, request: Request) -> None:
    """Refuse whoever is no administrator."""
    if not await is_admin(collector, request):
        raise Refusal("unauthorized", "this needs an admin token")


def _json(answer: Any, status: int = 200) -> JsonAnswer:
    return JsonAnswer(msgspec.json.encode(answer, enc_hook=str), status)


# -- collections -------------------------------------------------------------------------------------------


async def list_collections(collector: Collector, request: Request) -> JsonAnswer:
    """Those that are listed; for an administrator, all."""
    everything = await is_admin(collector, request)
    after = _number(request.query_params, "after")
    rows = await collector.readers.run(collector.store.collections, after, _PAGE)
    shown = []
    for _, name, text, progress in rows:
        about = ABOUT.decode(text)
        if everything or (about.listed and progress.state != "archived"):
            shown.append(
                ListedCollection(
                    name, about.title, about.description, progress.state, about.submission, about.results,
                    progress.reports,
                )
            )  # fmt: skip
    return _json(CollectionList(shown, rows[-1][0] if len(rows) == _PAGE else None))


def _number(parameters: Mapping[str, str], name: str) -> int:
    text = parameters.get(name, "0")
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise Refusal("invalid", f"{name} must be a number")
    return int(text)


async def give_collection(collector: Collector, request: Request) -> JsonAnswer:
    """One collection, and all that a client needs to randomize for it."""
    collection = await collector.collections.get(request.path_params["id"], fresh=True)
    return _json(collection.answer())


async def create_collection(collector: Collector, request: Request) -> JsonAnswer:
    """Audit a mechanism against its policy, and open a collection for it."""
    await require_admin(collector, request)
    asked = await read_json(request, _NEW, collector.settings.max_bytes, collector.deadlines)
    if asked.previous is not None:
        await collector.collections.get(asked.previous)
    made = await collector.planner.ask("create", policy=asked.policy, mechanism=asked.mechanism, n=asked.n)
    about = About(
        asked.title, asked.description, asked.submission, asked.results, asked.listed, asked.origins, asked.keep_days
    )
    key = new_token(KEY) if asked.submission == "key" else None
    record = Record(
        id=new_id(),
        number=0,
        created=int(collector.now()),
        previous=asked.previous,
        policy=made["policy"],
        mechanism=made["mechanism"],
        certificate=made["certificate"],
        about=msgspec.json.encode(about).decode(),
        key_hash=None if key is None else token_hash(key),
    )
    await collector.writer.run(lambda store: store.add_collection(record))
    collection = await collector.collections.get(record.id)
    return _json(Created(collection.answer(), key, made["why"], made["guess"], made["chance"]), 201)


async def change_collection(collector: Collector, request: Request) -> JsonAnswer:
    """Open, close or archive a collection, or say something else about it."""
    await require_admin(collector, request)
    name = request.path_params["id"]
    change = await read_json(request, _CHANGE, collector.settings.max_bytes, collector.deadlines)
    await collector.collections.get(name)  # or there is none
    said = {
        field: getattr(change, field)
        for field in ("title", "description", "results", "listed", "origins")
        if getattr(change, field) is not None
    }
    if change.keep_days is not msgspec.UNSET:
        said["keep_days"] = change.keep_days

    def decide(before: State, about: str) -> tuple[State, str]:
        state = change.state or before
        if state not in _FOLLOWING[before]:
            raise Refusal("not-open", f"a collection that is {before} cannot become {state}")
        return state, msgspec.json.encode(msgspec.structs.replace(ABOUT.decode(about), **said)).decode()

    await collector.writer.run(lambda store: store.change(name, decide))
    return _json((await collector.collections.get(name, fresh=True)).answer())


async def replace_key(collector: Collector, request: Request) -> JsonAnswer:
    """A new key for a collection, whatever its state; the one before it is refused from now on."""
    await require_admin(collector, request)
    collection = await collector.collections.get(request.path_params["id"])
    if collection.about.submission != "key":
        raise Refusal("invalid", "this collection takes no key")
    key = new_token(KEY)
    await collector.writer.run(lambda store: store.replace_key(collection.id, token_hash(key)))
    await collector.collections.get(collection.id, fresh=True)  # the next request is judged by it
    return _json(KeyAnswer(key), 201)


async def hand_out_tokens(collector: Collector, request: Request) -> JsonAnswer:
    """New one-time tokens, each for one report."""
    await require_admin(collector, request)
    asked = await read_json(request, _TOKENS, collector.settings.max_bytes, collector.deadlines)
    collection = await collector.collections.get(request.path_params["id"])
    if collection.about.submission != "token":
        raise Refusal("invalid", "this collection takes no one-time tokens")
    tokens = [new_token(ONE_TIME) for _ in range(asked.count)]
    hashes = [token_hash(token) for token in tokens]
    await collector.writer.run(lambda store: store.add_tokens(collection.id, hashes))
    return _json(TokenList(tokens), 201)


# -- planning ----------------------------------------------------------------------------------------------


async def check_policy(collector: Collector, request: Request) -> JsonAnswer:
    """A policy in words and numbers."""
    await require_admin(collector, request)
    asked = await read_json(request, _CHECK, collector.settings.max_bytes, collector.deadlines)
    return _json(await collector.planner.ask("check", **msgspec.structs.asdict(asked)))


async def plan_policy(collector: Collector, request: Request) -> JsonAnswer:
    """What error to expect of each mechanism."""
    await require_admin(collector, request)
    asked = await read_json(request, _PLAN, collector.settings.max_bytes, collector.deadlines)
    return _json(await collector.planner.ask("plan", **msgspec.structs.asdict(asked)))
