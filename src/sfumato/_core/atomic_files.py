"""Files, and what goes to a pipe, are written whole or not at all."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from sfumato.errors import InvalidInput, file_error

__all__ = ["PIPE", "replacing", "writing"]

#: Stands for standard input or output where a path is asked for.
PIPE = "-"
_STANDARD_OUTPUT = "standard output"
#: What goes to a pipe waits in memory up to this many bytes, and beyond that in a file without a name.
_MOST_IN_MEMORY = 2**26


@contextmanager
def writing(path: Path | str) -> Iterator[BinaryIO]:
    """``replacing(path)``; or where the path is ``-`` a file whose content goes to standard output.

    It goes there when the block ends, and not at all when the block raises: who reads the pipe gets all or nothing.
    """
    if str(path) != PIPE:
        with replacing(path) as file:
            yield file
        return
    if sys.stdout is None:
        raise InvalidInput(_STANDARD_OUTPUT, "the pipe", "be open", "nothing")
    with tempfile.SpooledTemporaryFile(_MOST_IN_MEMORY) as waiting:
        yield cast(BinaryIO, waiting)
        waiting.seek(0)
        sys.stdout.flush()
        try:
            shutil.copyfileobj(waiting, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise  # no reader is left, which is not a fault
        except OSError as error:
            must = f"be writable ({error.strerror})"
            raise file_error(error, _STANDARD_OUTPUT, "the pipe", must, _STANDARD_OUTPUT) from error


@contextmanager
def replacing(path: Path | str) -> Iterator[BinaryIO]:
    """A new file next to ``path`` that takes its place when the block ends, and is removed when the block raises.

    A reader sees the old file or the new one, never a part of it, and so after a crash. Through a link the file it
    leads to is replaced; anything but a file (a directory, a device) is refused.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise InvalidInput(str(path), "the path", "be that of a file", "something else")
    temporary, file = _open_temporary(target, str(path))
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # else a crash could leave the new name with no content behind it
        temporary.replace(target)
        _keep_name(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _keep_name(folder: Path) -> None:
    """Let the new name survive a crash: it is part of the folder."""
    if os.name != "posix":
        return
    with suppress(OSError):  # some file systems cannot, and the file is in its place
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _open_temporary(target: Path, shown: str) -> tuple[Path, BinaryIO]:
    for number in itertools.count():
        temporary = target.with_name(f".{target.name}.{os.getpid()}-{number}.tmp")
        try:
            return temporary, temporary.open("xb")
        except FileExistsError:
            continue
        except OSError as error:
            raise file_error(error, shown, "the path", f"be writable ({error.strerror})", shown) from error
    raise AssertionError("itertools.count ends")
