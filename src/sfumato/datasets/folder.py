"""The folder of data files, and functions that read them."""

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

#: Environment variable with the path of the folder.
VARIABLE = "SFUMATO_DATA"

T = TypeVar("T")


@dataclass(frozen=True)
class Loaded(Generic[T]):
    """Data for an experiment, with a description of their source.

    Parameters
    ----------
    value
        The data; the function that loads them describes their type.
    source
        Description of the source for people, such as ``"all people, from adult.data"``.
    stand_in
        Whether the data replace those that the paper used: a sample, an estimate or invented data. False for the
        original data.

    Examples
    --------
    >>> from sfumato.datasets import page_clicks
    >>> loaded = page_clicks(None)
    >>> loaded.stand_in, loaded.source
    (True, 'a stand-in: invented clicks with Zipf frequencies')
    """

    value: T
    source: str
    stand_in: bool


def data_folder(path: Path | str | None = None) -> Path | None:
    """Return the folder with the data files of the papers.

    ``docs/reproduce.md`` lists the names of the files and where to download them.

    Parameters
    ----------
    path
        Path of the folder. The default is the value of the environment variable ``SFUMATO_DATA``.

    Returns
    -------
    pathlib.Path or None
        The folder, or None if neither the path nor the variable is set. The functions of this module then return
        invented data.

    Raises
    ------
    InvalidInput
        If the folder does not exist.

    Examples
    --------
    >>> import tempfile
    >>> from sfumato.datasets import data_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data_folder(folder).is_dir()
    True
    """
    name = path if path is not None else os.environ.get(VARIABLE) or None
    if name is None:
        return None
    folder = Path(name)
    if not folder.is_dir():
        where = "--data" if path is not None else VARIABLE
        hint = "Create the folder, or correct the path."
        raise InvalidInput(where, "the folder", "be an existing directory", str(name), hint=hint)
    return folder


def first_existing(folder: Path | None, *names: str) -> Path | None:
    """Return the first of these files that exists in the folder."""
    paths = [] if folder is None else [folder / name for name in names]
    return next((path for path in paths if path.is_file()), None)


@contextmanager
def text_lines(path: Path) -> Iterator[Iterator[str]]:
    """Open a text file, and decompress it if its suffix is .gz."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as raw:
        yield iter(io.TextIOWrapper(raw, encoding="utf-8"))


def parquet_columns(path: Path, *names: str) -> list[Any]:
    """Return columns of a Parquet file as numpy arrays."""
    table = import_pyarrow(f"reading {path.name}", "pyarrow.parquet").read_table(path, columns=list(names))
    return [table.column(name).to_numpy() for name in names]


def bad_line(path: Path, number: int, must: str, line: str) -> InvalidInput:
    """Return the error for a line that does not have the format of the file."""
    hint = "Download the original file again; docs/reproduce.md names its source."
    return InvalidInput(path.name, f"line {number}", must, line.rstrip("\n"), hint=hint)
