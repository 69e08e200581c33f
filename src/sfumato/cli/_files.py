"""How commands take files."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["EXISTING_FILE", "NEW_FILE", "VALUES_FILE"]

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, writable=True, path_type=Path)

#: A file of values, or - for standard input.
VALUES_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)
