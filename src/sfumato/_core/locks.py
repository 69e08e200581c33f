"""One at a time: a lock on a file that is read, changed and written again."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.errors import InvalidInput

try:
    import fcntl
except ImportError:
    _HAS_LOCKS = False  # as on Windows
else:
    _HAS_LOCKS = True

__all__ = ["locked"]

#: Which thread of which process holds each file; only the holder writes to its own entry.
_HELD: dict[Path, tuple[int, int]] = {}
#: What a file system says that knows no such locks.
_UNKNOWN = (errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK)


@contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Wait until nobody else is in such a block for this path: no other process, and no other thread.

    The thread that is in one may enter another. The lock is the system's, on a file beside the path that is there only
    meanwhile, and ends with the process. **Windows, and some file systems, have none of this kind: nothing is locked
    there.**
    """
    target, me = Path(path).resolve(), (os.getpid(), threading.get_ident())
    if not _HAS_LOCKS or _HELD.get(target) == me:
        yield
        return
    beside = target.with_name(f".{target.name}.lock")
    descriptor = _lock(beside, str(path))
    if descriptor is None:
        yield
        return
    _HELD[target] = me
    try:
        yield
    finally:
        del _HELD[target]
        beside.unlink(missing_ok=True)
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a process that was forked meanwhile may have it open as well
        os.close(descriptor)


def _lock(beside: Path, shown: str) -> int | None:
    """The descriptor of the locked file, or None where there are no such locks."""
    while True:
        try:
            descriptor = os.open(beside, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise InvalidInput(shown, "the path", f"be writable ({error.strerror})", shown) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_there(beside, descriptor):
                return descriptor
        except OSError as error:
            os.close(descriptor)
            beside.unlink(missing_ok=True)
            if error.errno in _UNKNOWN:
                return None
            raise InvalidInput(shown, "the path", f"be where files can be locked ({error.strerror})", shown) from error
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # who had it removed the file: that is no lock any more


def _is_there(beside: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), beside.stat())
    except FileNotFoundError:
        return False
