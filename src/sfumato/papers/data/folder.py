"""Where data files lie, and what was read of them."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from sfumato._core import import_pyarrow
from sfumato.errors import InvalidInput

__all__ = ["VARIABLE", "Loaded", "bad_line", "data_folder", "first_existing", "parquet_columns", "text_lines"]

#: The environment variable that names the folder.
VARIABLE = "SFUMATO_DATA"

T = TypeVar("T")


@dataclass(frozen=True)
class Loaded(Generic[T]):
    """What was read, its ``source`` in words, and whether it only stands in for what a paper used."""

    value: T
    source: str
    stand_in: bool


def data_folder(path: Path | str | None = None) -> Path | None:
    """The folder that was given, or that ``SFUMATO_DATA`` names; None if neither is. It must be there."""
    named = path if path is not None else os.environ.get(VARIABLE) or None
    if named is None:
        return None
    folder = Path(named)
    if not folder.is_dir():
        where = "--data" if path is not None else VARIABLE
        raise InvalidInput(where, "the folder", "be a directory that is there", str(named))
    return folder


def first_existing(folder: Path | None, *names: str) -> Path | None:
    """The first of these files that is in the folder."""
    paths = [] if folder is None else [folder / name for name in names]
    return next((path for path in paths if path.is_file()), None)


@contextmanager
def text_lines(path: Path) -> Iterator[Iterator[str]]:
    """The lines of a text file, unpacked if its name ends in .gz."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as raw:
        yield iter(io.TextIOWrapper(raw, encoding="utf-8"))


def parquet_columns(path: Path, *names: str) -> list[Any]:
    """Columns of a Parquet file as numpy arrays."""
    table = import_pyarrow(f"reading {path.name}", "pyarrow.parquet").read_table(path, columns=list(names))
    return [table.column(name).to_numpy() for name in names]


def bad_line(path: Path, number: int, must: str, line: str) -> InvalidInput:
    """The error for a line that is not as the file's format has it."""
    return InvalidInput(path.name, f"line {number}", must, line.rstrip("\n"))
