"""Find files and decide how each reaches the executors, which read them with the code of one machine.

That is much faster than decoding by Spark row by row, and raises the same errors. The executors open local files and
files of a mounted share themselves (``splits``). Remote files, which only Hadoop's libraries can read, are sent as a
whole. Spark decodes a large remote file, because it can spread one file over all executors.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sfumato.collecting import Source, suffix_of
from sfumato.errors import Description, InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["InputFiles", "find_files", "local_paths", "sources"]

#: Maximum size of a remote file that is sent to an executor whole.
_MAX_REMOTE_BYTES = 2**27
_LOCAL = "file:"


@dataclass(frozen=True)
class InputFiles:
    """The files at some paths, by the way that they reach the executors."""

    #: Paths of local files, in order.
    local: list[str]
    #: Names and content of remote files to send whole.
    remote: DataFrame | None
    #: Hadoop paths of large remote files.
    large: list[str]


def find_files(spark: SparkSession, paths: Sequence[str]) -> InputFiles:
    """Find the files at these paths and in their folders, and reject duplicates."""
    from pyspark.errors import AnalysisException

    shown = ", ".join(paths)
    if len(set(paths)) != len(paths):
        raise InvalidInput("Spark", "the paths", "be different", Description(shown))
    try:
        binary = spark.read.format("binaryFile").load(list(paths))
    except AnalysisException as error:
        raise InvalidInput(shown, "the path", "be readable", Description(error)) from error
    uris = binary.inputFiles()
    if not uris:
        raise InvalidInput(shown, "the path", "contain at least one file", Description("an empty folder"))
    local = local_paths(uri for uri in uris if uri.startswith(_LOCAL))
    if len(local) == len(uris):
        return InputFiles(local, None, [])
    remote = binary.where(~binary["path"].startswith(_LOCAL))
    rows = remote.select("path", "length").collect()
    if len({row["path"] for row in rows}) != len(rows):  # a folder and a file in it
        raise InvalidInput(
            "Spark", "the paths", "list each file once, directly or through its folder", Description(shown)
        )
    large = [row["path"] for row in rows if row["length"] > _MAX_REMOTE_BYTES]
    small = remote.where(binary["length"] <= _MAX_REMOTE_BYTES).select("path", "content")
    return InputFiles(local, None if len(large) == len(rows) else small, large)


def local_paths(uris: Iterable[str]) -> list[str]:
    """Return the paths of ``file:`` URIs, in order."""
    return sorted(url2pathname(urlsplit(uri).path) for uri in uris)


def sources(batches: Iterable[Any], known: Sequence[str]) -> Iterator[Source]:
    """Yield the files that were sent to an executor, if their formats are in ``known``."""
    for batch in batches:
        for path, content in zip(*batch.columns, strict=True):
            shown = path.as_py()
            yield Source(shown, suffix_of(shown, known), io.BytesIO(content.as_buffer()))
