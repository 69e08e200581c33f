"""`sfumato submit`: reports go to a collector, each counted exactly once."""

from __future__ import annotations

import itertools

import click

from sfumato.cli._files import INPUT
from sfumato.cli._show import JSON_OPTION, quantity, show_json


@click.command(short_help="Send report files to a collector; what arrived is not counted twice.")
@click.argument("url")
@click.argument("collection")
@click.argument("reports", type=INPUT, nargs=-1, required=True)
@click.option("--token", envvar="SFUMATO_TOKEN", help="The collection's key or a one-time token.  [env: SFUMATO_TOKEN]")
@click.option(
    "--batch",
    help="The name of this sending: sent again under it, nothing is counted twice. Random unless given; where anybody "
    "may send, one that nobody can guess.",
)
@click.option("--attempts", type=click.IntRange(1), default=10, show_default=True, help="How often to try each batch.")
@JSON_OPTION
def command(
    url: str,
    collection: str,
    reports: tuple[str, ...],
    token: str | None,
    batch: str | None,
    attempts: int,
    as_json: bool,
) -> None:
    """Send the reports of files to a collection of a collector, and end when every one of them is counted.

    First the collection's mechanism is audited against its policy: nothing is sent where it breaks that.

    Whatever interrupts it, the same command with the same --batch goes on where it ended.

    Example: sfumato submit https://collect.example abcdefghijklmnop reports.parquet
    """
    from sfumato.collecting import REPORT_SUFFIXES, read_reports, source_of
    from sfumato.device import Client, new_batch_name

    name = batch or new_batch_name()
    with Client(url, token, attempts=attempts) as client:
        sources = [source_of(path, REPORT_SUFFIXES) for path in reports]
        click.echo(f"sending under --batch {name}: with it, the same command goes on where this one ends", err=True)
        mechanism = client.collection(collection).mechanism
        pieces = itertools.chain.from_iterable(read_reports(mechanism, source) for source in sources)
        receipts = client.submit(collection, pieces, batch=name)
    counted = sum(receipt.reports for receipt in receipts)
    if as_json:
        show_json({"collection": collection, "batch": name, "batches": len(receipts), "reports": counted})
        return
    sent = f"{quantity(counted, 'report')} counted in {quantity(len(receipts), 'batch')}"
    click.echo(f"{sent}, under the name {name}")
