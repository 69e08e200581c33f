"""`sfumato store`: check, back up, restore and upgrade the store of a collector."""

from __future__ import annotations

import dataclasses
from typing import Literal

import click

from sfumato.cli._show import JSON_OPTION, show_json, show_table
from sfumato.cli._store import STORE_OPTION, store_errors
from sfumato.errors import InvalidInput


@click.command(short_help="Check, back up, restore or upgrade the store of a collector.")
@click.argument("action", type=click.Choice(["check", "backup", "restore", "upgrade"]))
@click.argument("file", required=False, type=click.Path(dir_okay=False))
@STORE_OPTION
@JSON_OPTION
def command(
    action: Literal["check", "backup", "restore", "upgrade"], file: str | None, store: str, as_json: bool
) -> None:
    """Check, back up, restore or upgrade the store of a collector, which may run meanwhile.

    check reads the whole store and compares its tables with this release. backup writes a copy to FILE, which must not
    exist yet. restore writes the copy in FILE to a store that does not exist yet or has no collections; stop the
    collector first. upgrade brings the tables up to date, as the start of the collector does.

    A backup is a SQLite file, whichever database the store is in, and can be restored to either.

    Example: sfumato store backup collect-monday.db --store sqlite:///collect.db
    """
    from sfumato.server import back_up, check_store, restore, upgrade_store

    if (file is None) == (action in ("backup", "restore")):
        must = "be given" if file is None else "be left out"
        raise InvalidInput(f"store {action}", "FILE", must, file)
    with store_errors():
        if action == "upgrade":
            summary = upgrade_store(store)
        elif action == "check":
            summary = check_store(store)
        else:
            assert file is not None
            summary = back_up(store, file) if action == "backup" else restore(file, store)
    if as_json:
        show_json(dataclasses.asdict(summary))
        return
    rows = [(name, str(value)) for name, value in dataclasses.asdict(summary).items()]
    show_table(("store", "ok" if action == "check" else "done"), rows)
