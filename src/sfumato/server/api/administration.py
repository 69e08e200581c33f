"""Operations of administrators: create collections, change their metadata, issue tokens, plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from starlette.requests import Request

from sfumato.server.api.collections import Collection, record_wording
from sfumato.server.api.collector import Collector
from sfumato.server.api.schemas import (
    Change,
    Check,
    CollectionList,
    Created,
    CreatedSurvey,
    KeyResponse,
    ListedCollection,
    NewCollection,
    NewSurvey,
    NewTokens,
    PlanRequest,
    TokenList,
)
from sfumato.server.api.tokens import KEY, ONE_TIME, bearer, fingerprint, new_id, new_token, token_hash
from sfumato.server.http.bodies import read_headers, read_json
from sfumato.server.http.responses import ApiError, JsonResponse
from sfumato.server.store.base import Store
from sfumato.server.store.management import (
    ANY,
    Change as LogChange,
    Grant,
    Role,
    add_grant,
    copy_role,
    expiry_of,
    grant_of,
    record_change,
)
from sfumato.server.store.presentation import Presentation
from sfumato.server.store.records import FOLLOWING_STATES, METADATA, Metadata, Record, Schedule, State

__all__ = [
    "as_reader",
    "change_collection",
    "check_policy",
    "create_collection",
    "create_from",
    "create_survey",
    "give_collection",
    "hand_out_tokens",
    "json_response",
    "list_collections",
    "log_entry",
    "owner_of",
    "plan_policy",
    "query_number",
    "replace_key",
    "require_author",
    "require_role",
    "require_token",
]

T = TypeVar("T")

#: Maximum collections per page of a list.
_PAGE = 100

_NEW = msgspec.json.Decoder(NewCollection)
_SURVEY = msgspec.json.Decoder(NewSurvey)
_CHANGE = msgspec.json.Decoder(Change)
_TOKENS = msgspec.json.Decoder(NewTokens)
_CHECK = msgspec.json.Decoder(Check)
_PLAN = msgspec.json.Decoder(PlanRequest)

#: Maximum rows that one request for tokens adds, one per token and wave: for one question, and for all of a survey.
_MOST_TOKEN_ROWS, _MOST_SURVEY_ROWS = 100_000, 500_000


async def is_admin(collector: Collector, request: Request) -> bool:
    """Return whether a request has a valid admin token."""
    secret = bearer(read_headers(request))
    return secret is not None and await collector.readers.run(collector.store.is_admin, token_hash(secret))


async def require_token(request: Request) -> bytes:
    """Return the hash of the bearer token of a request; raise ApiError without one."""
    secret = bearer(read_headers(request))
    if secret is None:
        raise ApiError("unauthorized", "a token is required; send it as a bearer token")
    return token_hash(secret)


async def require_author(collector: Collector, request: Request) -> bytes:
    """Return the hash of the token of an administrator or author; raise ApiError for others."""
    hashed = await require_token(request)
    if not await _may(collector, hashed, ANY, ("author",)):
        raise ApiError("unauthorized", "an admin token or the token of an author is required")
    return hashed


async def owner_of(collector: Collector, request: Request) -> tuple[str, str]:
    """Return the id of the collection and the fingerprint of the token; raise ApiError unless it is an owner's."""
    name = request.path_params["id"]
    return name, await require_role(collector, request, name, "owner")


async def require_role(collector: Collector, request: Request, collection: str, *roles: Role) -> str:
    """Return the fingerprint of the token; raise ApiError unless it has one of the roles or is an admin token."""
    hashed = await require_token(request)
    if not await _may(collector, hashed, collection, roles):
        raise ApiError("unauthorized", f"an admin token or the token of an {roles[0]} of this collection is required")
    await collector.collections.get(collection)  # raises ApiError if the collection does not exist
    return fingerprint(hashed)


async def _may(collector: Collector, hashed: bytes, collection: str, roles: Sequence[Role]) -> bool:
    """Return whether a token is an admin token or has one of the roles on a collection."""
    if await collector.readers.run(collector.store.is_admin, hashed):
        return True
    grant = await collector.readers.run(grant_of, collector.store, hashed, collection, int(collector.now()))
    return grant is not None and grant.role in roles


async def _reads(collector: Collector, request: Request, collection: str) -> bool:
    """Return whether the token of a request may read the results of a collection."""
    secret = bearer(read_headers(request))
    return secret is not None and await _may(collector, token_hash(secret), collection, ("owner", "reader"))


async def as_reader(collector: Collector, request: Request, collection: Collection) -> Collection:
    """Return a collection with public results as the sender of a request may see it.

    Readers without a token see the last release. If they saw each report at once, they could time every arrival.
    """
    step = collector.settings.public_step
    if not step or collection.metadata.release_every is not None or await _reads(collector, request, collection.id):
        return collection
    return collection.released(step)


def json_response(response: Any, status: int = 200) -> JsonResponse:
    """Return a response object as a JSON response."""
    return JsonResponse(msgspec.json.encode(response, enc_hook=str), status)


# -- collections -------------------------------------------------------------------------------------------


async def list_collections(collector: Collector, request: Request) -> JsonResponse:
    """Return the listed collections, or all collections if the request has an admin token."""
    everything = await is_admin(collector, request)
    after = query_number(request.query_params, "after")
    rows = await collector.readers.run(collector.store.collections, after, _PAGE)
    shown = []
    for _, name, stored, progress in rows:
        metadata = METADATA.decode(stored)
        if everything or (metadata.listed and progress.state != "archived"):
            state = metadata.state_at(progress.state, collector.now())
            reports = progress.reports
            if metadata.results == "admin" and not everything:
                reports, _ = collector.collections.shown(name, progress.reports, progress.batches)
            elif collector.settings.public_step and metadata.release_every is None and not everything:
                reports = progress.released_reports
            shown.append(
                ListedCollection(
                    name, metadata.title, metadata.description, state, metadata.submission, metadata.results,
                    reports,
                )
            )  # fmt: skip
    return json_response(CollectionList(shown, rows[-1][0] if len(rows) == _PAGE else None))


def query_number(parameters: Mapping[str, str], name: str) -> int:
    """Return a query parameter as a number, 0 if it is missing."""
    digits = parameters.get(name, "0")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        raise ApiError("invalid", f"{name} must be a number of at most 18 digits")
    return int(digits)


async def give_collection(collector: Collector, request: Request) -> JsonResponse:
    """Return one collection, with everything that a client needs to randomize for it."""
    collection = await collector.collections.get(request.path_params["id"], fresh=True)
    if collection.metadata.results == "public":
        collection = await as_reader(collector, request, collection)
    response = collection.response(collector.now())
    if collection.metadata.results == "admin" and not await _reads(collector, request, collection.id):
        reports, batches = collector.collections.shown(collection.id, response.reports, response.batches)
        response = msgspec.structs.replace(response, reports=reports, batches=batches)
    return json_response(response)


async def create_collection(collector: Collector, request: Request) -> JsonResponse:
    """Audit a mechanism against its policy, and open a collection for it."""
    hashed = await require_author(collector, request)
    return await create_from(collector, request, hashed, await _body(collector, request, _NEW))


async def create_from(
    collector: Collector, request: Request, hashed: bytes, body: NewCollection, source: str | None = None
) -> JsonResponse:
    """Open a collection, which may be a copy; an author, or the token that owns the source, becomes its owner."""
    survey = await _open(collector, request, hashed, [await _designed(collector, body)], source=source)
    return json_response(survey.questions[0], 201)


async def create_survey(collector: Collector, request: Request) -> JsonResponse:
    """Open the collections of all questions of a survey, with their one-time tokens, or none of them."""
    hashed = await require_author(collector, request)
    body = await _body(collector, request, _SURVEY)
    questions = []
    for number, question in enumerate(body.questions, 1):
        try:
            questions.append(await _designed(collector, question))
        except ApiError as error:
            raise ApiError(error.reason, f"question {number}: {error.message}") from None
    return json_response(await _open(collector, request, hashed, questions, body.tokens), 201)


class _Designed(NamedTuple):
    """A collection that can be opened, and what the planner says about its mechanism."""

    record: Record
    metadata: Metadata
    key: str | None
    planned: dict[str, Any]


async def _designed(collector: Collector, body: NewCollection) -> _Designed:
    """Check a new collection, and let the planner design and audit its mechanism."""
    _check_dates(body.opens, body.closes)
    if body.previous is not None:
        await collector.collections.get(body.previous)
    schedule = _schedule(collector, body)
    created = await collector.planner.ask(
        "create",
        policy=body.policy,
        question=body.question,
        mechanism=body.mechanism,
        n=body.n,
        lifetime=body.lifetime,
        max_changes=body.max_changes,
        refresh_every=body.refresh_every,
        waves=schedule is not None,
    )
    _check_background(body.presentation, created["policy"])
    metadata = Metadata(
        title=body.title,
        submission=body.submission,
        results=body.results,
        listed=body.listed,
        description=body.description,
        origins=body.origins,
        keep_days=body.keep_days if schedule is None else 0,
        waves=schedule,
        label=body.label,
        opens=body.opens,
        closes=body.closes,
        release_every=body.release_every,
    )
    key = new_token(KEY) if body.submission == "key" else None
    record = Record(
        id=new_id(),
        number=0,
        created=int(collector.now()),
        previous=body.previous,
        policy=created["policy"],
        mechanism=created["mechanism"],
        certificate=record_wording(created["certificate"], metadata, body.presentation),
        metadata=msgspec.json.encode(metadata).decode(),
        key_hash=None if key is None else token_hash(key),
        question=created["question"],
        presentation=None if body.presentation is None else msgspec.json.encode(body.presentation).decode(),
    )
    return _Designed(record, metadata, key, created)


async def _open(
    collector: Collector,
    request: Request,
    hashed: bytes,
    questions: Sequence[_Designed],
    count: int | None = None,
    source: str | None = None,
) -> CreatedSurvey:
    """Open collections in one transaction, with ``count`` one-time tokens for each; an author becomes their owner."""
    metadata = [one.metadata for one in questions]
    issued = [] if count is None else await collector.readers.run(_new_tokens, count, metadata)
    if await request.is_disconnected():  # the client would not learn of the survey, and may send a changed one
        raise ApiError("malformed", "the connection closed before the mechanisms were designed; nothing was opened")
    is_admin_token = await collector.readers.run(collector.store.is_admin, hashed)
    who = fingerprint(hashed)

    def write(store: Store) -> None:
        with store.transaction():
            for record, about, _, _ in questions:
                store.add_collection(record)
                if source is not None:
                    copy_role(store, hashed, source, record.id)
                elif not is_admin_token:
                    expires = expiry_of(store, hashed)
                    add_grant(store, Grant(hashed, record.id, "owner", "author", record.created, expires))
                proof = msgspec.json.decode(record.certificate)
                fixed = {"mechanism": proof["mechanism_hash"], "wording": proof["wording_hash"]}
                record_change(store, record.id, log_entry(collector, who, "create", title=about.title, **fixed))
            for (record, *_), (_, hashes) in zip(questions, issued, strict=False):
                store.add_tokens(record.id, hashes)
                record_change(store, record.id, log_entry(collector, who, "tokens", count=count))

    await collector.writer.run(write)
    created = []
    for record, _, key, planned in questions:
        response = (await collector.collections.get(record.id)).response(collector.now())
        created.append(Created(response, key, planned["why"], planned["guess"], planned["chance"], planned["part"]))
    return CreatedSurvey(created, [tokens for tokens, _ in issued])


def _new_tokens(count: int, collections: Sequence[Metadata]) -> list[tuple[list[str], list[bytes]]]:
    """Return new one-time tokens for each collection, and their hashes, one per wave if it asks again."""
    if any(metadata.submission != "token" for metadata in collections):
        raise ApiError("invalid", "only collections with submission 'token' have one-time tokens")
    waves = [[None] if metadata.waves is None else range(metadata.waves.count) for metadata in collections]
    rows = [len(numbers) for numbers in waves]
    most = min(_MOST_TOKEN_ROWS // max(rows), _MOST_SURVEY_ROWS // sum(rows))
    if count > most:
        raise ApiError("invalid", f"at most {most} tokens per request for these questions and waves; ask for fewer")
    issued = []
    for numbers in waves:
        tokens = [new_token(ONE_TIME) for _ in range(count)]
        issued.append((tokens, [token_hash(token, wave) for token in tokens for wave in numbers]))
    return issued


def _check_background(presentation: Presentation | None, policy: str) -> None:
    """Raise ApiError for a background whose collection is not a map, or whose districts are not those of all cells."""
    if presentation is None or presentation.background is None:
        return
    grid = msgspec.json.decode(policy)["domain"].get("grid")
    if grid is None:
        raise ApiError("invalid", "only a collection whose values are a grid has a background")
    cells = grid["rows"] * grid["columns"]
    if len(presentation.background.districts) not in (0, cells):
        raise ApiError("invalid", f"districts must have one entry for each of the {cells} cells, or none")


def _check_dates(opens: int | None, closes: int | None) -> None:
    """Raise ApiError for dates in the wrong order."""
    if opens is not None and closes is not None and closes <= opens:
        raise ApiError("invalid", "closes must be later than opens")


async def _body(collector: Collector, request: Request, decoder: msgspec.json.Decoder[T]) -> T:
    """Return the decoded body of a request."""
    return await read_json(request, decoder, collector.settings.max_bytes, collector.timeouts)


async def _log(collector: Collector, name: str, who: str, action: str, **details: Any) -> None:
    """Add an entry to the log of a collection."""
    entry = log_entry(collector, who, action, **details)
    await collector.writer.run(lambda store: record_change(store, name, entry))


def log_entry(collector: Collector, who: str, action: str, **details: Any) -> LogChange:
    """Return an entry of the log."""
    return LogChange(int(collector.now()), who, action, msgspec.json.encode(details).decode())


def _schedule(collector: Collector, body: NewCollection) -> Schedule | None:
    """Return the waves of a new collection, or None; raise ApiError if the request states something else too."""
    if body.lifetime is None and (body.max_changes is not None or body.refresh_every is not None):
        raise ApiError("invalid", "max_changes and refresh_every need a lifetime policy")
    if body.waves is None:
        return None
    if body.keep_days:
        raise ApiError("invalid", "a collection with waves stores no reports; leave keep_days out")
    if body.release_every is not None:
        raise ApiError("invalid", "a collection with waves shows its results at once; leave release_every out")
    start = int(collector.now()) if body.waves.start is None else body.waves.start
    return Schedule(body.waves.count, body.waves.days, start)


def _opened(schedule: Schedule | None, wave: int) -> Schedule:
    """Return the schedule after an administrator has opened a wave; raise ApiError if the wave cannot be opened."""
    if schedule is None or schedule.days is not None:
        raise ApiError("invalid", "only a collection whose waves have no length in days opens waves by request")
    if not schedule.opened < wave < schedule.count:
        message = f"the next waves are {schedule.opened + 1} to {schedule.count - 1}; a wave that is over stays over"
        raise ApiError("invalid", message)
    return msgspec.structs.replace(schedule, opened=wave)


def _keeps_longer(after: int | None, before: int | None) -> bool:
    """Return whether reports are kept longer than before; None is without limit."""
    return before is not None and (after is None or after > before)


async def change_collection(collector: Collector, request: Request) -> JsonResponse:
    """Open, close or archive a collection, or change its metadata."""
    name, who = await owner_of(collector, request)
    change = await _body(collector, request, _CHANGE)
    changes = {
        field: getattr(change, field)
        for field in ("title", "description", "results", "listed", "origins", "label")
        if getattr(change, field) is not None
    }
    for field in ("keep_days", "opens", "closes"):
        if getattr(change, field) is not msgspec.UNSET:
            changes[field] = getattr(change, field)
    now = collector.now()
    reports = (await collector.collections.get(name, fresh=True)).progress.reports

    def decide(before: State, stored: str) -> tuple[State, str]:
        state = change.state or before
        if state not in FOLLOWING_STATES[before]:
            allowed = " or ".join(FOLLOWING_STATES[before])
            message = f"a collection that is {before} cannot become {state}; its state can be {allowed}"
            raise ApiError("not-open", message)
        metadata = METADATA.decode(stored)
        waves = metadata.waves if change.wave is None else _opened(metadata.waves, change.wave)
        after = msgspec.structs.replace(metadata, **changes, waves=waves)
        _check_dates(after.opens, after.closes)
        has_opened = reports > 0 or metadata.opens is None or now >= metadata.opens
        if has_opened and (after.title, after.description, after.opens) != (
            metadata.title, metadata.description, metadata.opens
        ):  # fmt: skip
            message = (
                "title, description and opens are fixed once a collection has opened, because people answered that "
                "wording; use label to rename it, or create a copy"
            )
            raise ApiError("conflict", message)
        if has_opened and _keeps_longer(after.keep_days, metadata.keep_days):
            message = (
                f"keep_days can only be lowered once a collection has opened, because people answered under "
                f"{metadata.keep_days} days; create a copy to keep the reports of other people longer"
            )
            raise ApiError("conflict", message)
        return state, msgspec.json.encode(after).decode()

    await collector.writer.run(lambda store: store.change(name, decide))
    stated = {field: getattr(change, field) for field in ("state", "wave") if getattr(change, field) is not None}
    await _log(collector, name, who, "change", **changes, **stated)
    return json_response((await collector.collections.get(name, fresh=True)).response(collector.now()))


async def replace_key(collector: Collector, request: Request) -> JsonResponse:
    """Replace the key of a collection in any state, and revoke the previous key."""
    _, who = await owner_of(collector, request)
    collection = await collector.collections.get(request.path_params["id"])
    if collection.metadata.submission != "key":
        raise ApiError("invalid", "this collection has no key; only collections with submission 'key' have one")
    key = new_token(KEY)
    await collector.writer.run(lambda store: store.replace_key(collection.id, token_hash(key)))
    await _log(collector, collection.id, who, "key")
    await collector.collections.get(collection.id, fresh=True)  # cache the new key for the next request
    return json_response(KeyResponse(key), 201)


async def hand_out_tokens(collector: Collector, request: Request) -> JsonResponse:
    """Issue one-time tokens, each for one report."""
    _, who = await owner_of(collector, request)
    body = await _body(collector, request, _TOKENS)
    collection = await collector.collections.get(request.path_params["id"])
    ((tokens, hashes),) = await collector.readers.run(_new_tokens, body.count, [collection.metadata])
    await collector.writer.run(lambda store: store.add_tokens(collection.id, hashes))
    await _log(collector, collection.id, who, "tokens", count=body.count)
    return json_response(TokenList(tokens), 201)


# -- planning ----------------------------------------------------------------------------------------------


async def check_policy(collector: Collector, request: Request) -> JsonResponse:
    """Describe a policy in words and numbers."""
    await require_author(collector, request)
    body = await read_json(request, _CHECK, collector.settings.max_bytes, collector.timeouts)
    return json_response(await collector.planner.ask("check", **msgspec.structs.asdict(body)))


async def plan_policy(collector: Collector, request: Request) -> JsonResponse:
    """Return the expected error of each suitable mechanism."""
    await require_author(collector, request)
    body = await read_json(request, _PLAN, collector.settings.max_bytes, collector.timeouts)
    return json_response(await collector.planner.ask("plan", **msgspec.structs.asdict(body)))
