"""`sfumato admin-tokens`: list, create and revoke the admin tokens of a collector."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from sfumato._core import PIPE
from sfumato.cli._files import read_bytes
from sfumato.cli._show import JSON_OPTION, show_json, show_table
from sfumato.cli._store import STORE_OPTION, opened
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.server import Store

_LIST = "Run `sfumato admin-tokens` without options to list the fingerprints."


@click.command(short_help="List, create and revoke the admin tokens of a collector.")
@STORE_OPTION
@click.option(
    "--new",
    "create",
    is_flag=True,
    help="Create another token and print it once; the store keeps only its hash.  [default: create none]",
)
@click.option(
    "--revoke",
    metavar="FINGERPRINT",
    help="Revoke the token with this fingerprint; the collector rejects it from the next request on. With -, read the "
    "token itself from standard input.  [default: revoke none]",
)
@JSON_OPTION
def command(store: str, create: bool, revoke: str | None, as_json: bool) -> None:
    """List the admin tokens of a collector, and create or revoke tokens.

    Each token is listed by its fingerprint (the first eight hexadecimal digits of its SHA-256 hash) and its creation
    time. The collector may be running meanwhile. To replace a token, give --new and --revoke together.

    The last token cannot be revoked without --new, because the collector would create and print another one when it
    next starts.

    Example: sfumato admin-tokens --store sqlite:///collect.db --new --revoke 1a2b3c4d
    """
    from sfumato.server import ADMIN, fingerprint, new_token, token_hash

    with opened(store, migrate=create) as admins:
        revoked = None if revoke is None else _find_hash(admins, revoke)
        token = new_token(ADMIN) if create else None
        if token is not None:
            admins.add_admin(token_hash(token), int(time.time()))
        if revoked is not None and not admins.remove_admin(revoked):
            must, hint = "not name the last admin token", "Add --new to replace the token."
            raise InvalidInput("admin-tokens", "--revoke", must, fingerprint(revoked), hint=hint)
        remaining = [(fingerprint(stored_hash), _moment(created)) for stored_hash, created in admins.admins()]
    if as_json:
        tokens = [{"fingerprint": name, "created": created} for name, created in remaining]
        show_json({"new": token, "revoked": revoked and fingerprint(revoked), "tokens": tokens})
        return
    if token is not None:
        click.echo(f"admin token (store it now; it is not shown again): {token}")
    if revoked is not None:
        click.echo(f"revoked: {fingerprint(revoked)}")
    show_table(("admin token", "created"), remaining)


def _find_hash(admins: Store, requested: str) -> bytes:
    """Return the hash of the token with this fingerprint, or of the token on standard input."""
    from sfumato.server import fingerprint, token_hash

    hashes = [stored_hash for stored_hash, _ in admins.admins()]
    if requested == PIPE:
        stored_hash = token_hash(read_bytes(PIPE).decode(errors="replace").strip())
        if stored_hash not in hashes:
            must = "be an admin token of this store"
            raise InvalidInput("admin-tokens", "the token", must, fingerprint(stored_hash), hint=_LIST)
        return stored_hash
    matching = [stored_hash for stored_hash in hashes if fingerprint(stored_hash) == requested.lower()]
    if len(matching) > 1:
        hint = "Use --revoke - and give the token itself on standard input."
        raise InvalidInput("admin-tokens", "--revoke", "be the fingerprint of a single token", requested, hint=hint)
    if not matching:
        must = "be the fingerprint of an admin token of this store"
        raise InvalidInput("admin-tokens", "--revoke", must, requested, hint=_LIST)
    return matching[0]


def _moment(created: int) -> str:
    """Return a Unix time as an ISO 8601 string in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(created))
