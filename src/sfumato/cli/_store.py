"""The store of a collector, for the commands that open one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sfumato.server import Store

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
    """Open the store at a URL; close it on exit."""
    from sfumato.server import Unavailable, open_store

    try:
        store = open_store(url, migrate=migrate)
        try:
            yield store
        finally:
            store.close()
    except Unavailable as error:
        raise click.ClickException(f"the store: {error}") from error
    except _database_errors() as error:  # a database that is not the store of a collector
        message = str(error).partition("\n")[0]  # below, PostgreSQL quotes the statement
        raise click.ClickException(f"the store: {message}") from error


def _database_errors() -> tuple[type[Exception], ...]:
    try:
        import psycopg
    except ImportError:  # nor is there a store in PostgreSQL then
        return (sqlite3.Error,)
    return sqlite3.Error, psycopg.Error
