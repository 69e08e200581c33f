"""Operations of owners: their collections, roles, one-time tokens, days of reports, undo, copies, deletion, log."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from sfumato.estimation import plausibility
from sfumato.server.api.administration import (
    create_from,
    json_response,
    log_entry,
    owner_of,
    query_number,
    require_token,
)
from sfumato.server.api.collector import Collector
from sfumato.server.api.days import date_of, day_of_date, reject_days, stored_days, undoable
from sfumato.server.api.schemas import (
    ChangeList,
    Copy,
    DayRow,
    Days,
    Deleted,
    GrantResponse,
    GrantRow,
    GrantRows,
    LogEntry,
    Mine,
    NewCollection,
    NewGrant,
    NewWaves,
    OwnedCollection,
    Revoke,
    Revoked,
    TokenUse,
    Undo,
    Undone,
)
from sfumato.server.api.tokens import OWNER, READER, fingerprint, new_token, token_hash
from sfumato.server.http.bodies import read_json
from sfumato.server.http.responses import ApiError, JsonResponse
from sfumato.server.store import management as stored
from sfumato.server.store.base import Store
from sfumato.server.store.management import ANY, LEAST_UNDONE, Grant
from sfumato.server.store.records import METADATA, Metadata

__all__ = [
    "copy_collection",
    "delete_collection",
    "give_changes",
    "give_days",
    "give_mine",
    "give_roles",
    "give_token_use",
    "grant_role",
    "revoke_role",
    "undo_reports",
]

#: Maximum collections per page.
_PAGE = 100
_DAY = 86_400

_GRANT = msgspec.json.Decoder(NewGrant)
_REVOKE = msgspec.json.Decoder(Revoke)
_UNDO = msgspec.json.Decoder(Undo)
_COPY = msgspec.json.Decoder(Copy)


async def give_mine(collector: Collector, request: Request) -> JsonResponse:
    """Return the collections that the token has a role on; all of them for an administrator."""
    hashed = await require_token(request)
    after, now = query_number(request.query_params, "after"), int(collector.now())
    if await collector.readers.run(collector.store.is_admin, hashed):
        role, expires, whose = "admin", None, None
    else:
        everywhere = await collector.readers.run(stored.grant_of, collector.store, hashed, ANY, now)
        role, expires, whose = (everywhere.role if everywhere else ""), everywhere and everywhere.expires, hashed
    rows = await collector.readers.run(stored.owned, collector.store, whose, after, _PAGE, now)
    if not role:
        if not rows:
            raise ApiError("unauthorized", "this token has no role here; it may have expired or been revoked")
        role = "owner" if any(row.role == "owner" for row in rows) else "reader"
    shown = []
    for row in rows:
        metadata = METADATA.decode(row.metadata)
        shown.append(
            OwnedCollection(
                id=row.id,
                title=metadata.title,
                label=metadata.label,
                description=metadata.description,
                state=metadata.state_at(row.progress.state, now),
                submission=metadata.submission,
                results=metadata.results,
                reports=row.progress.reports,
                created=row.created,
                opens=metadata.opens,
                closes=metadata.closes,
                role=row.role,
                issued=row.issued,
                used=_shown_use(metadata, row.progress.reports, row.issued, row.used),
            )
        )
    return json_response(Mine(role, expires, shown, rows[-1].number if len(rows) == _PAGE else None))


def _shown_use(metadata: Metadata, reports: int, issued: int, used: int) -> int:
    """Return the number of used tokens that may be shown: with ``release_every``, one per released report."""
    return used if metadata.release_every is None else min(issued, reports)


# -- roles and tokens ----------------------------------------------------------------------------------------


async def give_roles(collector: Collector, request: Request) -> JsonResponse:
    """Return the roles on a collection."""
    name, _ = await owner_of(collector, request)
    rows = await collector.readers.run(stored.grants, collector.store, name)
    return json_response(GrantRows([_row(grant) for grant in rows]))


def _row(grant: Grant) -> GrantRow:
    """Return a role for a response, without the hash of its token."""
    granted_by = None if grant.granted_by is None else fingerprint(grant.granted_by)
    return GrantRow(fingerprint(grant.token_hash), grant.role, grant.name, grant.created, grant.expires, granted_by)


async def grant_role(collector: Collector, request: Request) -> JsonResponse:
    """Create a token with a role on a collection."""
    name, who = await owner_of(collector, request)
    hashed = await require_token(request)
    body = await read_json(request, _GRANT, collector.settings.max_bytes, collector.timeouts)
    now = int(collector.now())
    token = new_token(OWNER if body.role == "owner" else READER)
    expires = None if body.days is None else now + body.days * _DAY
    proposal = Grant(token_hash(token), name, body.role, body.name, now, expires, hashed)
    change = log_entry(collector, who, "grant", role=body.role, fingerprint=fingerprint(proposal.token_hash))

    def write(store: Store) -> Grant:
        with store.transaction():
            grant = stored.pass_on_role(store, proposal)
            if grant is None:
                raise ApiError("unauthorized", "the role of this token has ended; ask an owner for another token")
            stored.record_change(store, name, change)
        return grant

    return json_response(GrantResponse(token, _row(await collector.writer.run(write))), 201)


async def revoke_role(collector: Collector, request: Request) -> JsonResponse:
    """Revoke the role of a token on a collection, with the roles that it granted."""
    name, who = await owner_of(collector, request)
    hashed = await require_token(request)
    body = await read_json(request, _REVOKE, collector.settings.max_bytes, collector.timeouts)
    rows = await collector.readers.run(stored.grants, collector.store, name)
    matching = [grant for grant in rows if fingerprint(grant.token_hash) == body.fingerprint]
    if len(matching) != 1:
        raise ApiError("invalid", "fingerprint must be that of one token with a role on this collection")
    change = log_entry(collector, who, "revoke", fingerprint=body.fingerprint)

    def write(store: Store) -> bool:
        with store.transaction():
            revoked = stored.revoke_grant(store, matching[0].token_hash, name)
            if not (store.is_admin(hashed) or who == body.fingerprint or stored.grant_of(store, hashed, name, 0)):
                message = "your role comes from that token and would end with it; ask an administrator to revoke it"
                raise ApiError("conflict", message)
            stored.record_change(store, name, change)
        return revoked

    return json_response(Revoked(body.fingerprint, await collector.writer.run(write)))


async def give_token_use(collector: Collector, request: Request) -> JsonResponse:
    """Return how many one-time tokens a collection has, and how many were used."""
    name, _ = await owner_of(collector, request)
    collection = await collector.collections.get(name)
    issued, used = await collector.readers.run(stored.issued_tokens, collector.store, name)
    return json_response(TokenUse(issued, _shown_use(collection.metadata, collection.progress.reports, issued, used)))


# -- days, undo, copies, deletion ----------------------------------------------------------------------------


async def give_days(collector: Collector, request: Request) -> JsonResponse:
    """Return the number of stored reports per day, and whether honest devices could have sent them."""
    name, _ = await owner_of(collector, request)
    collection = await collector.collections.get(name)
    mechanism = collection.mechanism
    reject_days(collection)
    if collection.metadata.waves is not None:  # such a collection stores no reports, and its waves are not added up
        return json_response(Days(collection.progress.reports, None, False, []))
    days = await stored_days(collector, collection)
    counts = await collector.collections.counts(collection)
    rows = []
    for day, of_the_day in days.items():
        result = None
        if of_the_day.n >= LEAST_UNDONE:
            result = await collector.workers.run(plausibility, mechanism, of_the_day)
        p_value, alarm = (None, False) if result is None else (result.p_value, result.alarm)
        rows.append(DayRow(date_of(day), of_the_day.n, p_value, alarm))
    whole = await collector.workers.run(plausibility, mechanism, counts)
    return json_response(Days(counts.n, whole.p_value, whole.alarm, rows))


async def undo_reports(collector: Collector, request: Request) -> JsonResponse:
    """Remove the stored reports of one day from the counts, and delete them."""
    name, who = await owner_of(collector, request)
    body = await read_json(request, _UNDO, collector.settings.max_bytes, collector.timeouts)
    collection = await collector.collections.get(name)
    reject_days(collection)
    day = day_of_date("day", body.day)
    undoable(await stored_days(collector, collection), day)
    change = log_entry(collector, who, "undo", day=body.day, reports="REPORTS")
    step = collector.settings.public_step
    removed = await collector.writer.run(
        lambda store: stored.undo_day(store, name, collection.mechanism, day, change, step)
    )
    await collector.collections.get(name, fresh=True)
    return json_response(Undone(body.day, removed))


async def copy_collection(collector: Collector, request: Request) -> JsonResponse:
    """Create a collection with the policy, question, mechanism and settings of this one."""
    name, _ = await owner_of(collector, request)
    body = await read_json(request, _COPY, collector.settings.max_bytes, collector.timeouts)
    collection = await collector.collections.get(name)
    metadata, record = collection.metadata, collection.record
    new = NewCollection(
        title=body.title or metadata.title,
        policy=msgspec.json.decode(record.policy),
        mechanism=msgspec.json.decode(record.mechanism),
        description=metadata.description,
        submission=metadata.submission,
        results=metadata.results,
        listed=metadata.listed,
        origins=metadata.origins,
        keep_days=metadata.keep_days,
        question=None if record.question is None else msgspec.json.decode(record.question),
        label=metadata.label,
        release_every=metadata.release_every,
        presentation=collection.presentation,
        waves=None if metadata.waves is None else NewWaves(metadata.waves.count, metadata.waves.days),
    )
    return await create_from(collector, request, await require_token(request), new, name)


async def delete_collection(collector: Collector, request: Request) -> JsonResponse:
    """Delete a collection that is not open, with all its data."""
    name, who = await owner_of(collector, request)
    collection = await collector.collections.get(name, fresh=True)
    if collection.progress.state == "open":
        raise ApiError("not-open", "an open collection cannot be deleted; close it first")
    change = log_entry(collector, who, "delete", title=collection.metadata.title, reports=collection.progress.reports)
    await collector.writer.run(lambda store: stored.delete_collection(store, name, change))
    collector.collections.forget()
    return json_response(Deleted(name, True))


async def give_changes(collector: Collector, request: Request) -> JsonResponse:
    """Return the log of a collection, the newest entries first."""
    name, _ = await owner_of(collector, request)
    rows = await collector.readers.run(stored.changes, collector.store, name)
    entries = [LogEntry(row.moment, row.who, row.action, msgspec.json.decode(row.details)) for row in rows]
    return json_response(ChangeList(entries))
