"""Write files and pipes atomically: the reader gets the complete content or nothing."""

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

from sfumato.errors import Description, InvalidInput, file_error

__all__ = ["PIPE", "replacing", "writing"]

#: Path that stands for standard input or standard output.
PIPE = "-"
_STANDARD_OUTPUT = "standard output"
_FILE_INSTEAD = "Write to a file instead of '-'."
#: Bytes of output to a pipe that are buffered in memory; longer output goes to an anonymous temporary file.
_MOST_IN_MEMORY = 2**26


@contextmanager
def writing(path: Path | str) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces ``path`` when the block ends; ``-`` stands for standard output.

    If the block raises, nothing is written, so the reader of a pipe gets the complete content or nothing.
    """
    if str(path) != PIPE:
        with replacing(path) as file:
            yield file
        return
    if sys.stdout is None:
        raise InvalidInput(_STANDARD_OUTPUT, "the pipe", "be open", Description("a closed stream"), hint=_FILE_INSTEAD)
    with tempfile.SpooledTemporaryFile(_MOST_IN_MEMORY) as buffer:
        yield cast(BinaryIO, buffer)
        buffer.seek(0)
        sys.stdout.flush()
        try:
            shutil.copyfileobj(buffer, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise  # the reader closed the pipe, which is not an error
        except OSError as error:
            raise file_error(error, _STANDARD_OUTPUT, "the pipe", "be writable", hint=_FILE_INSTEAD) from error


@contextmanager
def replacing(path: Path | str) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` when the block ends, and is deleted if the block raises.

    A reader sees the complete old file or the complete new file, also after a crash. If ``path`` is a link, its target
    is replaced. A path to anything but a file, such as a directory or a device, is rejected.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        got = Description("a directory or a device")
        raise InvalidInput(str(path), "the path", "be that of a regular file", got, hint="Choose another path.")
    temporary, file = _open_temporary(target, str(path))
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # otherwise a crash could leave the new name with an empty file
        temporary.replace(target)
        _sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a new name in it survives a crash."""
    if os.name != "posix":
        return
    with suppress(OSError):  # some file systems cannot flush folders; the file itself is already in place
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _open_temporary(target: Path, shown: str) -> tuple[Path, BinaryIO]:
    """Create a temporary file next to the target; ``shown`` is the path that an error message names."""
    for number in itertools.count():
        temporary = target.with_name(f".{target.name}.{os.getpid()}-{number}.tmp")
        try:
            return temporary, temporary.open("xb")
        except FileExistsError:
            continue
        except OSError as error:
            hint = "Choose a path in an existing folder that you may write to."
            raise file_error(error, shown, "the path", "be writable", hint=hint) from error
    raise AssertionError("itertools.count ends")
