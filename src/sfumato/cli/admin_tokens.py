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


@click.command(short_help="List a collector's admin tokens, make one, revoke one.")
@STORE_OPTION
@click.option("--new", "make", is_flag=True, help="Make one more, and print it; only its hash is kept.")
@click.option(
    "--revoke", metavar="FINGERPRINT", help="Make one invalid, from the next request on; - reads the token itself."
)
@JSON_OPTION
def command(store: str, make: bool, revoke: str | None, as_json: bool) -> None:
    """List the admin tokens of a collector by fingerprint, the first eight digits of their SHA-256, and by age.

    The collector may be running. Both options together put a new token in the place of an old one. The last token
    is not revoked: the next start of the collector would print another.

    Example: sfumato admin-tokens --store sqlite:///collect.db --new --revoke 1a2b3c4d
    """
    from sfumato.server import ADMIN, fingerprint, new_token, token_hash

    with opened(store, migrate=make) as admins:
        revoked = None if revoke is None else _find_hash(admins, revoke)
        token = new_token(ADMIN) if make else None
        if token is not None:
            admins.add_admin(token_hash(token), int(time.time()))
        if revoked is not None and not admins.remove_admin(revoked):
            raise InvalidInput("admin-tokens", "--revoke", "leave a token, as it does with --new", fingerprint(revoked))
        remaining = [(fingerprint(stored_hash), _moment(created)) for stored_hash, created in admins.admins()]
    if as_json:
        tokens = [{"fingerprint": name, "created": created} for name, created in remaining]
        show_json({"new": token, "revoked": revoked and fingerprint(revoked), "tokens": tokens})
        return
    if token is not None:
        click.echo(f"admin token (it is not shown again): {token}")
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
            raise InvalidInput("admin-tokens", "the token", "be one of those listed", fingerprint(stored_hash))
        return stored_hash
    matching = [stored_hash for stored_hash in hashes if fingerprint(stored_hash) == requested.lower()]
    if len(matching) > 1:
        raise InvalidInput("admin-tokens", "the fingerprint", "be that of one token: use --revoke -", requested)
    if not matching:
        raise InvalidInput("admin-tokens", "the fingerprint", "be one of those listed", requested)
    return matching[0]


def _moment(created: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(created))
