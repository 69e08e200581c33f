"""The folder in which several workers share their metrics.

A collector that is killed leaves its folder behind. The next one on the machine with several workers removes it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["metrics_folder", "running_processes"]

_PREFIX = "sfumato-metrics-"
#: File whose lock a collector holds while it uses the folder.
_LOCK = "lock"


@contextlib.contextmanager
def metrics_folder() -> Iterator[str]:
    """Create a folder for the metrics of several workers; remove it at the end, and those of ended collectors now."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            _remove_if_unused(folder)
    while True:
        with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name:
            lock = os.open(Path(name, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                if _locked(lock) and os.fstat(lock).st_nlink:
                    yield name
                    return
            finally:
                os.close(lock)
        # Another collector removed the folder before its lock was held.


def running_processes(folder: str | Path) -> tuple[set[int], set[int]]:
    """Return the processes with metrics in a folder: those that run, and those that have ended."""
    names = [file.name for file in Path(folder).iterdir()]
    ids = {int(match[1]) for name in names if (match := re.search(r"_(\d+)\.db$", name))}
    running = {process for process in ids if _runs(process)}
    return running, ids - running


def _remove_if_unused(folder: Path) -> None:
    """Remove the folder of a collector of this user that has ended; leave a folder without a lock file alone."""
    status = folder.lstat()
    if os.name != "posix" or not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        # Workers whose parent process was killed may still run, and do not hold the lock.
        if _locked(lock) and not running_processes(folder)[0]:
            shutil.rmtree(folder)
    finally:
        os.close(lock)


def _locked(file: int) -> bool:
    """Lock a file until it is closed; return False if another process holds the lock."""
    try:
        import fcntl
    except ImportError:  # Windows, where folders of ended collectors stay
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _runs(process: int) -> bool:
    """Return whether a process exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
