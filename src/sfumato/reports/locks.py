"""One at a time: a lock on a file that is read, changed and written again."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.errors import InvalidInput

if sys.platform != "win32":
    import fcntl

__all__ = ["locked"]


class _Held(threading.local):
    """The files that this thread holds."""

    def __init__(self) -> None:
        self.paths: set[Path] = set()


_HELD = _Held()


@contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Wait until nobody else is in such a block for this path: no other process, and no other thread.

    The thread that is in one may enter another. The lock is the system's, on a file beside the path that is there only
    meanwhile, and ends with the process. **Windows has none of this kind: nothing is locked there.**
    """
    target = Path(path).resolve()
    if sys.platform == "win32" or target in _HELD.paths:
        yield
        return
    beside = target.with_name(f".{target.name}.lock")
    descriptor = _lock(beside, str(path))
    _HELD.paths.add(target)
    try:
        yield
    finally:
        _HELD.paths.remove(target)
        beside.unlink(missing_ok=True)
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a process that was forked meanwhile may have it open as well
        os.close(descriptor)


def _lock(beside: Path, shown: str) -> int:
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
