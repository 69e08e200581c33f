"""Files handed whole to executors, which read them with the code of one machine.

That is far cheaper than to have Spark decode them row by row, and refuses what one machine refuses, in the same words.
A file that is large is left to Spark, which can spread it over all executors.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidInput
from sfumato.reports.sources import Source, suffix_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["by_size", "sources"]

#: A file up to this size goes to an executor as it is.
_LARGEST_WHOLE = 2**27


def by_size(running: SparkSession, paths: Sequence[str]) -> tuple[DataFrame | None, list[str]]:
    """The files at these paths, in folders too: those to hand over, with their content, and the names of large ones."""
    from pyspark.errors import AnalysisException

    shown = ", ".join(paths)
    if len(set(paths)) != len(paths):
        raise InvalidInput("Spark", "the paths", "each be named once", shown)
    try:
        files = running.read.format("binaryFile").load(list(paths))
    except AnalysisException as error:
        raise InvalidInput(shown, "the path", "be readable", str(error)) from error
    sizes = {row["path"]: row["length"] for row in files.select("path", "length").collect()}
    if not sizes:
        raise InvalidInput(shown, "the path", "hold at least one file", "none")
    large = [file for file, size in sizes.items() if size > _LARGEST_WHOLE]
    if len(large) == len(sizes):
        return None, large
    return files.where(files["length"] <= _LARGEST_WHOLE).select("path", "content"), large


def sources(batches: Iterable[Any], known: Sequence[str]) -> Iterator[Source]:
    """The files that have come to an executor, if their formats are among those known."""
    for batch in batches:
        for path, content in zip(*batch.columns, strict=True):
            shown = path.as_py()
            yield Source(shown, suffix_of(shown, known), io.BytesIO(content.as_buffer()))
