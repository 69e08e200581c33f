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

#: The thread of the process that holds each file; only the holder writes to its own entry.
_HOLDERS: dict[Path, tuple[int, int]] = {}
#: Errors of a file system that has no locks.
_UNSUPPORTED = (errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK)


@contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Wait until no other process and no other thread is in such a block for this path.

    The thread that is in one may enter another. The lock is the system's, on a hidden file next to the path that exists
    only meanwhile, and ends with the process. On a file system without locks the existence of that file is the lock.
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
        with suppress(OSError):  # Windows keeps a file that is open
            marker.unlink()  # a process that waits sees that the file is gone, and makes a new one
        lock.release()


def _acquired(marker: Path, shown: str) -> BaseFileLock:
    from filelock import FileLock, SoftFileLock

    must = "be writable, on a file system that can lock files"
    try:
        marker.parent.stat()  # FileLock would make the folder
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
        raise file_error(error, shown, "the path", f"{must} ({error.strerror})", shown) from error
    return lock
