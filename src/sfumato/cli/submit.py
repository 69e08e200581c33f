"""`sfumato submit`: send reports to a collector, which counts each of them once."""

from __future__ import annotations

import itertools

import click

from sfumato._core import quantity
from sfumato.cli._files import INPUT
from sfumato.cli._show import JSON_OPTION, show_json


@click.command(short_help="Send report files to a collector, which counts each report once.")
@click.argument("url")
@click.argument("collection")
@click.argument("reports", type=INPUT, nargs=-1, required=True)
@click.option(
    "--token",
    envvar="SFUMATO_TOKEN",
    help="Key of the collection, or a one-time token.  [default: environment variable SFUMATO_TOKEN]",
)
@click.option(
    "--batch",
    metavar="NAME",
    help="Name of this submission: reports that are sent again under the same name are not counted twice. For a "
    "collection that is open to everyone, choose a name that others cannot guess.  [default: a random name]",
)
@click.option(
    "--attempts",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Maximum number of attempts to send each batch.",
)
@click.option(
    "--plain-http", is_flag=True, help="Allow an http URL in a local network whose members you trust.  [default: off]"
)
@JSON_OPTION
def command(
    url: str,
    collection: str,
    reports: tuple[str, ...],
    token: str | None,
    batch: str | None,
    attempts: int,
    plain_http: bool,
    as_json: bool,
) -> None:
    """Send the reports in files to a collector, and return when the collector has counted all of them.

    URL is the address of the collector, COLLECTION the id of a collection, and REPORTS are files of reports (.parquet,
    .arrow or .sfb); - reads standard input. The command first audits the mechanism of the collection against its
    policy, and sends nothing if the mechanism violates it.

    To continue after an interruption, run the same command with the same --batch.

    Example: sfumato submit https://collect.example abcdefghijklmnop reports.parquet
    """
    from sfumato.collecting import REPORT_SUFFIXES, read_reports, source_of
    from sfumato.device import Client, new_batch_name

    name = batch or new_batch_name()
    with Client(url, token, attempts=attempts, plain_http=plain_http) as client:
        sources = [source_of(path, REPORT_SUFFIXES) for path in reports]
        note = f"sending as --batch {name}; to continue after an interruption, run the same command with this option"
        click.echo(note, err=True)
        mechanism = client.collection(collection).mechanism
        pieces = itertools.chain.from_iterable(read_reports(mechanism, source) for source in sources)
        receipts = client.submit(collection, pieces, batch=name)
    counted = sum(receipt.reports for receipt in receipts)
    if as_json:
        show_json({"collection": collection, "batch": name, "batches": len(receipts), "reports": counted})
        return
    sent = f"{quantity(counted, 'report')} counted in {quantity(len(receipts), 'batch')}"
    click.echo(f"{sent}, as --batch {name}")
