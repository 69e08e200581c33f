"""The option ``--store`` and the store of a collector, for commands that open one."""

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
    help="Database of the collector: sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
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
        message = f"the store is unavailable: {error}. Check --store and that the database accepts connections."
        raise click.ClickException(message) from error
    except _database_errors() as error:  # the database does not have the tables of a collector
        reason = str(error).partition("\n")[0]  # PostgreSQL quotes the statement on the following lines
        message = f"the store cannot be used: {reason}. Check that --store is the database of a collector."
        raise click.ClickException(message) from error


def _database_errors() -> tuple[type[Exception], ...]:
    """Return the error classes of the installed database drivers."""
    try:
        import psycopg
    except ImportError:  # without psycopg no store can be in PostgreSQL
        return (sqlite3.Error,)
    return sqlite3.Error, psycopg.Error
