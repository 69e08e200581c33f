"""Files that executors read with the code of one machine.

That is far cheaper than to have Spark decode them row by row, and refuses what one machine refuses, in the same words.
Files of the disk, or of a share that every machine has mounted, the executors open themselves (``shares``). Files that
only Hadoop's libraries can read are handed over whole; one that is large is left to Spark, which can spread it over all
executors.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sfumato.collecting import Source, suffix_of
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Found", "find_files", "local_paths", "sources"]

#: A file up to this size goes to an executor as it is.
_LARGEST_WHOLE = 2**27
_LOCAL = "file:"


@dataclass(frozen=True)
class Found:
    """The files at some paths, by the way that they go."""

    #: Paths on the disk, in order.
    local: list[str]
    #: Names and content of files to hand over.
    whole: DataFrame | None
    #: Hadoop's names of the large ones.
    large: list[str]


def find_files(running: SparkSession, paths: Sequence[str]) -> Found:
    """The files at these paths, in folders too. Each is taken once."""
    from pyspark.errors import AnalysisException

    shown = ", ".join(paths)
    if len(set(paths)) != len(paths):
        raise InvalidInput("Spark", "the paths", "each be named once", shown)
    try:
        files = running.read.format("binaryFile").load(list(paths))
    except AnalysisException as error:
        raise InvalidInput(shown, "the path", "be readable", str(error)) from error
    uris = files.inputFiles()
    if not uris:
        raise InvalidInput(shown, "the path", "hold at least one file", "none")
    local = local_paths(uri for uri in uris if uri.startswith(_LOCAL))
    if len(local) == len(uris):
        return Found(local, None, [])
    remote = files.where(~files["path"].startswith(_LOCAL))
    rows = remote.select("path", "length").collect()
    if len({row["path"] for row in rows}) != len(rows):  # a folder and a file in it
        raise InvalidInput("Spark", "the files at the paths", "each be named once", shown)
    large = [row["path"] for row in rows if row["length"] > _LARGEST_WHOLE]
    whole = remote.where(files["length"] <= _LARGEST_WHOLE).select("path", "content")
    return Found(local, None if len(large) == len(rows) else whole, large)


def local_paths(uris: Iterable[str]) -> list[str]:
    """The paths that ``file:`` URIs spell, in order."""
    return sorted(url2pathname(urlsplit(uri).path) for uri in uris)


def sources(batches: Iterable[Any], known: Sequence[str]) -> Iterator[Source]:
    """The files that have come to an executor, if their formats are among those known."""
    for batch in batches:
        for path, content in zip(*batch.columns, strict=True):
            shown = path.as_py()
            yield Source(shown, suffix_of(shown, known), io.BytesIO(content.as_buffer()))
