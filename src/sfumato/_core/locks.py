"""Exclusive access to a file that is read, changed and written again."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import file_error

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["locked"]

#: Process and thread that hold the lock of each path; only the holder changes its entry.
_HOLDERS: dict[Path, tuple[int, int]] = {}
#: Error numbers of file systems without locks.
_UNSUPPORTED = (errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK)


@contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Hold the lock of a path for the duration of the block; wait while another process or thread holds it.

    The thread that holds the lock may enter another block for the same path. The lock is an operating-system lock on a
    hidden file next to the path; the file exists only while the lock is held. The system releases the lock when the
    process ends. On file systems without locks, the existence of the hidden file is the lock.
    """
    target, me = Path(path).resolve(), (os.getpid(), threading.get_ident())
    if _HOLDERS.get(target) == me:
        yield
        return
    marker = target.with_name(f".{target.name}.lock")
    lock = _acquired(marker, str(path))
    _HOLDERS[target] = me
    try:
        yield
    finally:
        del _HOLDERS[target]
        with suppress(OSError):  # Windows does not delete an open file
            marker.unlink()  # a waiting process notices the deletion and creates a new file
        lock.release()


def _acquired(marker: Path, shown: str) -> BaseFileLock:
    """Return the lock of a marker file, acquired; ``shown`` is the path that an error message names."""
    from filelock import FileLock, SoftFileLock

    must = "be writable, on a file system that can lock files"
    try:
        marker.parent.stat()  # FileLock would create a missing folder
        lock: BaseFileLock = FileLock(marker, mode=0o600, thread_local=False)
        try:
            lock.acquire()
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            marker.unlink(missing_ok=True)
            lock = SoftFileLock(marker, mode=0o600, thread_local=False)
            lock.acquire()
    except OSError as error:
        hint = "Choose a path in an existing folder that you may write to."
        raise file_error(error, shown, "the path", must, hint=hint) from error
    return lock
