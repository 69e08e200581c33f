"""The option ``--store`` and the store of a collector, for commands that open one."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from sfumato.errors import MissingExtra

if TYPE_CHECKING:
    from sfumato.server import Store

__all__ = ["STORE_OPTION", "opened", "store_errors"]

#: Shortest and longest pause in seconds between two attempts to connect to a server.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0


def _require_server(context: click.Context, parameter: click.Parameter, url: str) -> str:  # noqa: ARG001
    """Return the URL; raise MissingExtra if the packages of a collector are not installed."""
    try:
        import sfumato.server  # noqa: F401
    except ImportError as error:
        raise MissingExtra("server", f"the store of a collector ({error.name})") from None
    return url


STORE_OPTION = click.option(
    "--store",
    metavar="URL",
    default="sqlite:///collect.db",
    show_default=True,
    callback=_require_server,
    help="Database of the collector: sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
)


@contextmanager
def opened(url: str, *, migrate: bool = True, wait: float = 0.0) -> Iterator[Store]:
    """Open the store at a URL, within ``wait`` seconds if a server accepts no connections yet; close it on exit."""
    with store_errors():
        store = _open(url, migrate, wait)
        try:
            yield store
        finally:
            store.close()


@contextmanager
def store_errors() -> Iterator[None]:
    """Report errors of a store in one line."""
    from sfumato.server import Unavailable

    try:
        yield
    except Unavailable as error:
        if error.action in str(error):  # the message says what to do
            raise click.ClickException(f"the store cannot be used: {error}.") from error
        message = f"the store is unavailable: {error}. Check --store and that the database accepts connections."
        raise click.ClickException(message) from error
    except _database_errors() as error:  # the database does not have the tables of a collector
        reason = str(error).partition("\n")[0]  # PostgreSQL quotes the statement on the following lines
        message = f"the store cannot be used: {reason}. Check that --store is the database of a collector."
        raise click.ClickException(message) from error


def _open(url: str, migrate: bool, wait: float) -> Store:
    """Open a store; while a PostgreSQL server accepts no connections, try again after growing pauses."""
    from sfumato.server import Unavailable, open_store

    end, pause = time.monotonic() + wait, _SHORTEST_PAUSE
    while True:
        try:
            return open_store(url, migrate=migrate)
        except Unavailable as error:
            left = end - time.monotonic()
            if left <= 0 or "connection" not in str(error):
                raise
            if pause == _SHORTEST_PAUSE:
                click.echo(f"waiting for the database: {error}", err=True)
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE)


def _database_errors() -> tuple[type[Exception], ...]:
    """Return the error classes of the installed database drivers."""
    try:
        import psycopg
    except ImportError:  # without psycopg no store can be in PostgreSQL
        return (sqlite3.Error,)
    return sqlite3.Error, psycopg.Error
