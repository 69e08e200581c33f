"""The store of a collector, for the commands that open one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sfumato.server.store import Store

__all__ = ["STORE_OPTION", "opened"]

STORE_OPTION = click.option(
    "--store",
    metavar="URL",
    default="sqlite:///collect.db",
    show_default=True,
    help="Where to keep everything: sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
)


@contextmanager
def opened(url: str, *, migrate: bool = True) -> Iterator[Store]:
    """The store at a URL, until the block ends."""
    from sfumato.server.store import open_store
    from sfumato.server.store.base import Unavailable

    try:
        store = open_store(url, migrate=migrate)
        try:
            yield store
        finally:
            store.close()
    except Unavailable as error:
        raise click.ClickException(f"the store: {error}") from error
