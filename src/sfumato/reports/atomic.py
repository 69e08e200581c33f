"""Files that are written whole or not at all."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sfumato.errors import InvalidInput

__all__ = ["replacing"]


@contextmanager
def replacing(path: Path | str) -> Iterator[BinaryIO]:
    """A new file beside ``path`` that takes its place when the block ends, and is removed when the block raises.

    A reader sees the old file or the new one, never a part of it. Through a link the file it leads to is replaced;
    what is no file (a directory, a device) is refused.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise InvalidInput(str(path), "the path", "be that of a file", "something else")
    temporary, file = _beside(target, str(path))
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # else a crash could leave the new name with no content behind it
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _beside(target: Path, shown: str) -> tuple[Path, BinaryIO]:
    for number in itertools.count():
        temporary = target.with_name(f".{target.name}.{os.getpid()}-{number}.tmp")
        try:
            return temporary, temporary.open("xb")
        except FileExistsError:
            continue
        except OSError as error:
            raise InvalidInput(shown, "the path", f"be writable ({error.strerror})", shown) from error
    raise AssertionError("itertools.count ends")
