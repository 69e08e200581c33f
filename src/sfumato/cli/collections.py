"""`sfumato collections`: list, close, extend, undo and delete the collections of a store, and name authors."""

from __future__ import annotations

import datetime
import json
import time
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._show import JSON_OPTION, show_json, show_table
from sfumato.cli._store import STORE_OPTION, opened
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.server import Store

#: Entry of the log for a change from the command line, instead of the fingerprint of a token.
_WHO = "command line"
_DAY = 86_400


@click.group(short_help="List and manage the collections of a store.")
def command() -> None:
    """List and manage the collections of a store: close, extend, undo a day, delete; and name authors.

    The collector may be running meanwhile. Every change is recorded in the log of its collection.

    Example: sfumato collections list --store sqlite:///collect.db
    """


@command.command("list", short_help="List all collections.")
@STORE_OPTION
@JSON_OPTION
def list_collections(store: str, as_json: bool) -> None:
    """List all collections with their state, number of reports and one-time tokens."""
    from sfumato.server import METADATA, management

    now = int(time.time())
    with opened(store, migrate=False) as opened_store:
        rows: list[dict[str, Any]] = []
        after = 0
        while page := management.owned(opened_store, None, after, 100, now):
            after = page[-1].number
            for one in page:
                metadata = METADATA.decode(one.metadata)
                state = metadata.state_at(one.progress.state, now)
                rows.append(
                    {"id": one.id, "title": metadata.title, "state": state, "reports": one.progress.reports,
                     "issued": one.issued, "used": one.used, "closes": metadata.closes}
                )  # fmt: skip
    if as_json:
        show_json({"collections": rows})
        return
    columns = ("id", "title", "state", "reports", "issued", "used")
    show_table(columns, [tuple(str(row[column]) for column in columns) for row in rows])


@command.command("state", short_help="Open, close or archive a collection.")
@click.argument("collection")
@click.argument("state", metavar="[open|closed|archived]", type=click.Choice(["open", "closed", "archived"]))
@STORE_OPTION
def change_state(collection: str, state: str, store: str) -> None:
    """Open, close or archive a collection. An archived collection stays archived."""
    from sfumato.server import FOLLOWING_STATES

    def decide(before: Any, metadata: str) -> tuple[Any, str]:
        if state not in FOLLOWING_STATES[before]:
            allowed = " or ".join(FOLLOWING_STATES[before])
            raise InvalidInput("collections", "STATE", f"be {allowed} for a collection that is {before}", state)
        return state, metadata

    _change(store, collection, decide, {"state": state})
    click.echo(f"{collection}: {state}")


@command.command("extend", short_help="Change the time at which a collection closes.")
@click.argument("collection")
@click.argument("closes", metavar="TIME")
@STORE_OPTION
def extend(collection: str, closes: str, store: str) -> None:
    """Change the time at which a collection closes: a date such as 2027-01-31, a time in UTC, or never."""
    import msgspec

    from sfumato.server import METADATA

    moment = None if closes == "never" else _moment(closes)

    def decide(state: Any, metadata: str) -> tuple[Any, str]:
        return state, msgspec.json.encode(msgspec.structs.replace(METADATA.decode(metadata), closes=moment)).decode()

    _change(store, collection, decide, {"closes": moment})
    click.echo(f"{collection}: closes {closes}")


def _moment(stated: str) -> int:
    """Return an ISO 8601 date or time in UTC as a Unix time."""
    try:
        moment = datetime.datetime.fromisoformat(stated)
    except ValueError:
        must = "be a date such as 2027-01-31, a time such as 2027-01-31T18:00, or never"
        raise InvalidInput("collections", "TIME", must, stated) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp())


def _change(store: str, collection: str, decide: Any, details: dict[str, Any]) -> None:
    """Change a collection, and record it in the log."""
    from sfumato.server import management

    with opened(store, migrate=False) as opened_store:
        _check(opened_store, collection)
        opened_store.change(collection, decide)
        management.record_change(opened_store, collection, _entry("change", details))


def _check(store: Store, collection: str) -> Any:
    """Return the record of a collection; raise InvalidInput if it does not exist."""
    record = store.collection(collection)
    if record is None:
        hint = "Run `sfumato collections list` for the ids."
        raise InvalidInput("collections", "COLLECTION", "be the id of a collection", collection, hint=hint)
    return record


def _entry(action: str, details: dict[str, Any]) -> Any:
    """Return an entry of the log."""
    from sfumato.server import management

    return management.Change(int(time.time()), _WHO, action, json.dumps(details))


@command.command("undo", short_help="Remove the reports of a day from the counts.")
@click.argument("collection")
@click.argument("day")
@STORE_OPTION
def undo(collection: str, day: str, store: str) -> None:
    """Remove the stored reports of a DAY such as 2026-11-18 (UTC) from the counts, and delete them.

    The day must have at least 100 reports, because the counts before and after would reveal the reports of a smaller
    one.
    """
    from sfumato.mechanisms import mechanism_from_spec
    from sfumato.server import Settings, management

    number = _moment(day) // _DAY
    with opened(store, migrate=False) as opened_store:
        mechanism = mechanism_from_spec(_check(opened_store, collection).mechanism)
        days = dict(management.reports_by_day(opened_store, collection, mechanism))
        n = days[number].n if number in days else 0
        if n < management.LEAST_UNDONE:
            must = f"have at least {management.LEAST_UNDONE} stored reports"
            raise InvalidInput("collections", "DAY", must, f"{day} with {n}")
        entry = _entry("undo", {"day": day, "reports": "REPORTS"})
        removed = management.undo_day(opened_store, collection, mechanism, number, entry, Settings().public_step)
    click.echo(f"{collection}: removed {removed} reports of {day}")


@command.command("delete", short_help="Delete a collection and its data.")
@click.argument("collection")
@click.option("--yes", is_flag=True, help="Delete without asking.  [default: ask]")
@STORE_OPTION
def delete(collection: str, yes: bool, store: str) -> None:
    """Delete a collection that is not open, with its counts, reports, tokens and roles. Backups still contain it."""
    from sfumato.server import METADATA, management

    with opened(store, migrate=False) as opened_store:
        record = _check(opened_store, collection)
        row = opened_store.progress(collection)
        if row is None or row[0].state == "open":
            raise InvalidInput("collections", "COLLECTION", "be closed before it is deleted", collection)
        title = METADATA.decode(record.metadata).title
        if not yes:
            click.confirm(f"Delete {title!r} with {row[0].reports} reports?", abort=True)
        entry = _entry("delete", {"title": title, "reports": row[0].reports})
        management.delete_collection(opened_store, collection, entry)
    click.echo(f"{collection}: deleted")


@command.command("log", short_help="Show the changes of a collection.")
@click.argument("collection")
@STORE_OPTION
@JSON_OPTION
def log(collection: str, store: str, as_json: bool) -> None:
    """Show who changed what in a collection and when, also after it was deleted."""
    from sfumato.server import management

    with opened(store, migrate=False) as opened_store:
        entries = management.changes(opened_store, collection)
    if as_json:
        show_json({"entries": [entry._asdict() for entry in entries]})
        return
    show_table(
        ("when", "who", "action", "what"),
        [(_shown(entry.moment), entry.who, entry.action, entry.details) for entry in entries],
    )


@command.command("author", short_help="Create, list or revoke tokens of authors.")
@click.argument("name", required=False)
@click.option("--days", type=click.IntRange(1), help="Days until the token expires.  [default: never]")
@click.option("--revoke", metavar="FINGERPRINT", help="Revoke the token with this fingerprint.  [default: none]")
@STORE_OPTION
def author(name: str | None, days: int | None, revoke: str | None, store: str) -> None:
    """Create a token for the author NAME, who may create collections and owns those; without NAME, list all tokens."""
    from sfumato.server import AUTHOR, fingerprint, management, new_token, token_hash

    now = int(time.time())
    with opened(store, migrate=name is not None) as opened_store:
        if name is not None:
            token = new_token(AUTHOR)
            expires = None if days is None else now + days * _DAY
            grant = management.Grant(token_hash(token), management.ANY, "author", name, now, expires)
            management.add_grant(opened_store, grant)
            click.echo(f"token of the author {name} (store it now; it is not shown again): {token}")
        grants = management.grants(opened_store, management.ANY)
        if revoke is not None:
            matching = [grant for grant in grants if fingerprint(grant.token_hash) == revoke.lower()]
            if len(matching) != 1:
                raise InvalidInput("collections", "--revoke", "be the fingerprint of a single author's token", revoke)
            management.revoke_grant(opened_store, matching[0].token_hash, management.ANY)
            grants.remove(matching[0])
    rows = [
        (grant.name, fingerprint(grant.token_hash), _shown(grant.created),
         "never" if grant.expires is None else _shown(grant.expires))
        for grant in grants
    ]  # fmt: skip
    show_table(("author", "token", "created", "expires"), rows)


def _shown(moment: int) -> str:
    """Return a Unix time as an ISO 8601 string in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
