"""How commands take files."""

from __future__ import annotations

import sys
from pathlib import Path

import click

__all__ = ["EXISTING_FILE", "FILE_OR_PIPE", "NEW_FILE", "NEW_FILE_OR_PIPE", "read_file_or_pipe"]

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, writable=True, path_type=Path)

#: A file, or - for standard input or output.
FILE_OR_PIPE = click.Path(exists=True, dir_okay=False, allow_dash=True)
NEW_FILE_OR_PIPE = click.Path(dir_okay=False, writable=True, allow_dash=True)


def read_file_or_pipe(path: str) -> bytes:
    """All of a file, or of standard input."""
    return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
