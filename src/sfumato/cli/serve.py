"""`sfumato serve`: a collector that takes reports over HTTP and counts each exactly once."""

from __future__ import annotations

import time

import click

from sfumato.cli._store import STORE_OPTION, opened


@click.command(short_help="Run a collector: take reports over HTTP, count them once, show estimates.")
@STORE_OPTION
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="The port to listen on.")
@click.option(
    "--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes; with PostgreSQL only."
)
@click.option(
    "--rate",
    type=click.FloatRange(0),
    default=200,
    show_default=True,
    help="Requests a second from one address; 0: any.",
)
@click.option(
    "--max-bytes", type=click.IntRange(1024), default=2**23, show_default=True, help="The longest body of a request."
)
@click.option(
    "--trust-proxy",
    metavar="ADDRESSES",
    default="127.0.0.1",
    show_default=True,
    help="Proxies whose X-Forwarded-For is believed: addresses or networks with commas between, or *.",
)
def command(
    store: str,
    host: str,
    port: int,
    workers: int,
    rate: float,
    max_bytes: int,
    trust_proxy: str,
) -> None:
    """Run a collector until it is told to stop. The first start prints an admin token, which is kept as a hash only
    (`sfumato admin-tokens` makes and revokes others), and where Studio is.

    Example: sfumato serve --store sqlite:///collect.db --port 8000
    """
    from sfumato.errors import MissingExtra

    try:
        from sfumato.server import (
            ADMIN,
            Settings,
            check_address,
            check_proxies,
            check_uvicorn,
            check_workers,
            new_token,
            serve,
            studio_address,
            token_hash,
        )
    except ImportError as error:
        raise MissingExtra("server", f"running a collector ({error.name})") from None

    # Check everything before a store and a token are created.
    check_uvicorn()
    check_workers(store, workers)
    check_proxies(trust_proxy)
    check_address(host, port)
    token = new_token(ADMIN)
    with opened(store) as opened_store:
        added = opened_store.add_admin(token_hash(token), int(time.time()), only_first=True)
    if added:
        click.echo(f"admin token (it is not shown again): {token}")
        if port:  # else the system chooses one, which the log tells
            click.echo(f"surveys are made in Studio, which asks for it: {studio_address(host, port)}")
    serve(Settings(store=store, rate=rate, max_bytes=max_bytes), host, port, workers, trust_proxy)
