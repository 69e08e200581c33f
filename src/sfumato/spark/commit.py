"""Commit a table in one step, so that it appears as a whole or not at all, whichever tasks fail.

Every attempt of a task writes a separate file in a hidden folder next to the table. Spark reports to the driver which
attempt it accepts for each partition. The driver moves those files to a second folder that no task knows, and renames
that folder to the table. Readers see only this last step. Files of other attempts never become part of the table.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sfumato._core import import_pyarrow
from sfumato.errors import Description, InvalidInput
from sfumato.spark.sessions import hadoop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TableCommit", "commit_table", "put_file"]

#: File systems where a folder is renamed in one step; an object store copies object by object.
_RENAMING = ("file", "hdfs")
_numbers = itertools.count()


@dataclass(frozen=True)
class TableCommit:
    """A table that is not published yet, and the folder where tasks put its files."""

    #: URI of the parent folder of the table. The two names below are not URI-encoded.
    folder: str
    name: str
    temporary: str

    @property
    def attempts(self) -> str:
        """URI of the folder where tasks put their files."""
        return f"{self.folder}/{quote(self.temporary)}/attempts"

    def publish(self, files: Sequence[str]) -> None:
        """Publish these files of ``attempts`` as the table."""
        filesystem, folder = _open(self.folder)
        waiting = f"{folder}/{self.temporary}"
        filesystem.create_dir(f"{waiting}/table")
        for file in files:
            filesystem.move(f"{waiting}/attempts/{file}", f"{waiting}/table/{file}")
        _require_absent(filesystem, f"{folder}/{self.name}")
        filesystem.move(f"{waiting}/table", f"{folder}/{self.name}")


@contextmanager
def commit_table(spark: SparkSession, path: str) -> Iterator[TableCommit]:
    """Yield the commit of a new table; remove its temporary folder on exit."""
    commit = _prepare_commit(spark, path)
    filesystem, folder = _open(commit.folder)
    _require_absent(filesystem, f"{folder}/{commit.name}")
    _require_absent(filesystem, f"{folder}/{commit.temporary}")
    filesystem.create_dir(f"{folder}/{commit.temporary}/attempts")
    try:
        yield commit
    finally:
        filesystem.delete_dir(f"{folder}/{commit.temporary}")


def put_file(local: Path, folder: str) -> None:
    """Copy a file into a folder; on an executor."""
    filesystem, path = _open(folder)
    files = import_pyarrow("a table of reports", "pyarrow.fs")
    files.copy_files(
        str(local),
        f"{path}/{local.name}",
        source_filesystem=files.LocalFileSystem(),
        destination_filesystem=filesystem,
    )


def _prepare_commit(spark: SparkSession, path: str) -> TableCommit:
    """Return the commit of a new table, or raise InvalidInput if the path is unsuitable."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    java, configuration = hadoop(spark)
    try:
        requested = java.org.apache.hadoop.fs.Path(path)
        filesystem = requested.getFileSystem(configuration)
        qualified = filesystem.makeQualified(requested)
        # resolvePath follows links and mounts, because the file system that stores the table must rename it.
        folder = filesystem.resolvePath(qualified.getParent()).toUri()
    except Py4JJavaError as error:
        got = Description(error.java_exception)
        raise InvalidInput(path, "the path", "be in an existing folder", got) from error
    if folder.getScheme() not in _RENAMING:
        must = f"be on a file system that renames a folder in one step ({', '.join(_RENAMING)})"
        hint = "Write to such a file system, and copy the finished table."
        raise InvalidInput(path, "the path", must, folder.getScheme(), hint=hint)
    uri = f"{folder.getScheme()}://{folder.getAuthority() or ''}{folder.getRawPath()}".rstrip("/")
    mark = f"{spark.sparkContext.applicationId}-{os.getpid()}-{next(_numbers)}"
    return TableCommit(uri, qualified.getName(), f".{qualified.getName()}.{mark}.tmp")


def _open(uri: str) -> tuple[Any, str]:
    """Return the file system of a URI, and the path on it."""
    filesystem, path = import_pyarrow("a table of reports", "pyarrow.fs").FileSystem.from_uri(uri)
    return filesystem, path


def _require_absent(filesystem: Any, path: str) -> None:
    """Raise InvalidInput if the path exists."""
    missing = import_pyarrow("a table of reports", "pyarrow.fs").FileType.NotFound
    if filesystem.get_file_info(path).type != missing:
        hint = "Choose another path, or delete the existing table."
        raise InvalidInput(path, "the path", "not exist yet", Description("an existing file or folder"), hint=hint)
