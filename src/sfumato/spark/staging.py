"""A table that appears whole or not at all, whatever becomes of the tasks that write its files.

Every attempt of a task writes a file of its own in a hidden folder beside the table. Spark tells the driver which
attempt it takes for each partition. The driver moves those files to a second folder, which no task knows, and renames
that folder to the table: the one step that readers see. What other attempts left, or still write, never gets there.
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
from sfumato.errors import InvalidInput
from sfumato.spark.sessions import hadoop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Staging", "put_file", "staged"]

#: File systems where a folder is renamed in one step; an object store copies object by object.
_RENAMING = ("file", "hdfs")
_numbers = itertools.count()


@dataclass(frozen=True)
class Staging:
    """Where the files of a table wait for its commit."""

    #: The URI of the folder that the table is made in; names are as they are, not as a URI spells them.
    folder: str
    name: str
    temporary: str

    @property
    def attempts(self) -> str:
        """The URI of the folder where tasks put their files."""
        return f"{self.folder}/{quote(self.temporary)}/attempts"

    def commit(self, files: Sequence[str]) -> None:
        """Make the table of these files of ``attempts``."""
        filesystem, folder = _open(self.folder)
        waiting = f"{folder}/{self.temporary}"
        filesystem.create_dir(f"{waiting}/table")
        for file in files:
            filesystem.move(f"{waiting}/attempts/{file}", f"{waiting}/table/{file}")
        _refuse_what_is_there(filesystem, f"{folder}/{self.name}")
        filesystem.move(f"{waiting}/table", f"{folder}/{self.name}")


@contextmanager
def staged(running: SparkSession, path: str) -> Iterator[Staging]:
    """The staging of a new table; all that is left of it is removed at the end."""
    staging = _staging(running, path)
    filesystem, folder = _open(staging.folder)
    _refuse_what_is_there(filesystem, f"{folder}/{staging.name}")
    _refuse_what_is_there(filesystem, f"{folder}/{staging.temporary}")
    filesystem.create_dir(f"{folder}/{staging.temporary}/attempts")
    try:
        yield staging
    finally:
        filesystem.delete_dir(f"{folder}/{staging.temporary}")


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


def _staging(running: SparkSession, path: str) -> Staging:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    java, configuration = hadoop(running)
    try:
        asked = java.org.apache.hadoop.fs.Path(path)
        filesystem = asked.getFileSystem(configuration)
        whole = filesystem.makeQualified(asked)
        # resolvePath looks behind links and mounts: what has to rename the table is the file system that holds it.
        folder = filesystem.resolvePath(whole.getParent()).toUri()
    except Py4JJavaError as error:
        raise InvalidInput(path, "the path", "lie in a folder that is there", str(error.java_exception)) from error
    if folder.getScheme() not in _RENAMING:
        must = f"be on a file system that renames a folder in one step ({', '.join(_RENAMING)})"
        raise InvalidInput(path, "the path", must, folder.getScheme())
    uri = f"{folder.getScheme()}://{folder.getAuthority() or ''}{folder.getRawPath()}".rstrip("/")
    mark = f"{running.sparkContext.applicationId}-{os.getpid()}-{next(_numbers)}"
    return Staging(uri, whole.getName(), f".{whole.getName()}.{mark}.tmp")


def _open(uri: str) -> tuple[Any, str]:
    filesystem, path = import_pyarrow("a table of reports", "pyarrow.fs").FileSystem.from_uri(uri)
    return filesystem, path


def _refuse_what_is_there(filesystem: Any, path: str) -> None:
    missing = import_pyarrow("a table of reports", "pyarrow.fs").FileType.NotFound
    if filesystem.get_file_info(path).type != missing:
        raise InvalidInput(path, "the path", "be new", "one that is taken")
