"""`sfumato serve`: run a collector, which accepts reports over HTTP and counts each of them once."""

from __future__ import annotations

import math
import time

import click

from sfumato.cli._store import STORE_OPTION, opened


@click.command(short_help="Run a collector that accepts reports over HTTP.")
@STORE_OPTION
@click.option("--host", default="127.0.0.1", show_default=True, help="Address or host name to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="TCP port to listen on; 0 lets the system choose a free port, which the log names.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of processes; more than one requires PostgreSQL.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0),
    default=200,
    show_default=True,
    help="Maximum requests per second from one address, for each process; 0 means no limit.",
)
@click.option(
    "--open-batch",
    type=click.IntRange(0),
    default=100,
    show_default=True,
    help="Maximum reports per request to a collection that is open to everyone; 0 means no limit.",
)
@click.option(
    "--open-per-address",
    type=click.IntRange(0),
    default=1000,
    show_default=True,
    help="Maximum reports per day from one address to open collections, for each process; 0 means no limit.",
)
@click.option(
    "--open-per-collection",
    type=click.IntRange(0),
    default=100_000,
    show_default=True,
    help="Maximum reports per day to one open collection, for each process; 0 means no limit.",
)
@click.option(
    "--public-step",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Least number of reports by which public results advance, at most once per minute, for readers without a "
    "token. 0 shows each report at once, so that its arrival can be timed.",
)
@click.option(
    "--allow-hosts",
    "hosts",
    metavar="NAMES",
    default="*",
    show_default=True,
    help="Host names that the collector answers to, separated by commas, or * for all. Browsers store answers by host "
    "name, so a second name would allow a second draw.",
)
@click.option(
    "--max-bytes",
    type=click.IntRange(1024),
    default=2**23,
    show_default=True,
    help="Maximum size of a request body, in bytes.",
)
@click.option(
    "--max-store-bytes",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Maximum size of the store, in bytes; a larger store takes no reports. 0 means no limit.",
)
@click.option(
    "--min-free-bytes",
    type=click.IntRange(0),
    default=2**26,
    show_default=True,
    help="Free bytes on the disk of a SQLite store below which the collector takes no reports.",
)
@click.option(
    "--wait",
    type=click.FloatRange(0, 3600),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="Time to wait for a PostgreSQL server that accepts no connections yet.",
)
@click.option(
    "--trust-proxy",
    metavar="ADDRESSES",
    default="127.0.0.1",
    show_default=True,
    help="Proxies whose X-Forwarded-For header the collector trusts: addresses or networks separated by commas, or * "
    "for all.",
)
def command(
    store: str,
    host: str,
    port: int,
    workers: int,
    rate: float,
    open_batch: int,
    open_per_address: int,
    open_per_collection: int,
    public_step: int,
    hosts: str,
    max_bytes: int,
    max_store_bytes: int,
    min_free_bytes: int,
    wait: float,
    trust_proxy: str,
) -> None:
    """Run a collector, which accepts reports over HTTP and counts each of them once, until SIGTERM or Ctrl+C.

    The first start prints an admin token and the address of Studio, the page where surveys are created. The store
    keeps only a hash of the token, so save it; `sfumato admin-tokens` creates and revokes further tokens. At shutdown
    the collector answers open requests and counts pending reports before it exits.

    Example: sfumato serve --store sqlite:///collect.db --port 8000
    """
    from sfumato.errors import InvalidInput

    if not math.isfinite(rate):  # click accepts nan and inf
        raise InvalidInput("serve", "--rate", "be a finite number; 0 means no limit", rate)
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

    # Validate all options before the store and the first token are created.
    check_uvicorn()
    check_workers(store, workers)
    check_proxies(trust_proxy)
    check_address(host, port)
    token = new_token(ADMIN)
    with opened(store, wait=wait) as opened_store:
        added = opened_store.add_admin(token_hash(token), int(time.time()), only_first=True)
    if added:
        click.echo(f"admin token (store it now; it is not shown again): {token}")
        if port:  # port 0: the system chooses one, and the log names it
            click.echo(f"create surveys in Studio with this token: {studio_address(host, port)}")
    settings = Settings(
        store=store,
        rate=rate,
        open_batch=open_batch,
        open_per_address=open_per_address,
        open_per_collection=open_per_collection,
        public_step=public_step,
        hosts=hosts,
        proxies=trust_proxy,
        max_bytes=max_bytes,
        max_store_bytes=max_store_bytes,
        min_free_bytes=min_free_bytes,
    )
    serve(settings, host, port, workers, trust_proxy)
