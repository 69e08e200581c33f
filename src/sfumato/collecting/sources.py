"""Sources of values and reports: a file, whose suffix states its format, or a pipe, whose first bytes do."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from sfumato._core import PIPE
from sfumato.collecting.batch import MAGIC
from sfumato.collecting.lines import BEGINNING
from sfumato.errors import Description, InvalidInput, UnreadableFile, file_error

__all__ = [
    "ARROW",
    "LINES",
    "PARQUET",
    "STREAM",
    "Source",
    "source_of",
    "standard_input",
    "suffix_of",
    "unreadable",
]

#: Suffixes of Parquet files, and of Arrow IPC files (Feather version 2 is the same format).
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
#: Formats that only a pipe can have: the Arrow IPC stream, and reports as text.
STREAM = ".arrows"
LINES = ".lines"

_STANDARD_INPUT = "standard input"

#: First bytes of each format. Text may begin with PAR1 too, but not with the byte after it, which opens the first page
#: or the footer of a Parquet file (field 1, an i32, in Thrift's compact protocol).
_BEGINNINGS = {
    ".parquet": b"PAR1\x15",
    ".arrow": b"ARROW1\0\0",
    STREAM: b"\xff\xff\xff\xff",
    ".sfb": MAGIC,
    LINES: BEGINNING,
    ".json": b"{",
}
_LONGEST_BEGINNING = len(BEGINNING)
_BUFFER_BYTES = 2**18


@dataclass(frozen=True)
class Source:
    """A file or standard input, and its format as a suffix; "" is text."""

    shown: str
    suffix: str
    #: Standard input from its first byte, or None for a file.
    pipe: BinaryIO | None = None

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file, or return the pipe, which can be read once."""
        try:
            if self.pipe is not None:
                yield self.pipe
                return
            with Path(self.shown).open("rb") as file:
                yield file
        except UnreadableFile:  # from another file that the block opened
            raise
        except OSError as error:
            raise unreadable(self.shown, error) from error


def unreadable(shown: str, error: OSError) -> UnreadableFile:
    """Return the error for a file that the system could not open or read."""
    return file_error(error, shown, "the path", f"be a readable file ({error.strerror or error})", shown)


def source_of(path: Path | str, known: Sequence[str]) -> Source:
    """Return the source that a path names, if its format is a known one; ``-`` is standard input."""
    if str(path) != PIPE:
        return Source(str(path), suffix_of(path, known))
    pipe = standard_input()
    beginning = pipe.read(_LONGEST_BEGINNING)
    whole = io.BufferedReader(_Rejoined(beginning, pipe), _BUFFER_BYTES)
    also = {STREAM: ".arrow", LINES: ".sfb"}  # a reader of the file format also reads its form for pipes
    formats = [suffix for suffix in _BEGINNINGS if also.get(suffix, suffix) in known]
    for suffix in formats:
        if beginning.startswith(_BEGINNINGS[suffix]):
            return Source(_STANDARD_INPUT, suffix, whole)
    if "" in known:
        return Source(_STANDARD_INPUT, "", whole)
    if not beginning:
        hint = "Check that the program that writes the pipe finished without an error."
        raise InvalidInput(_STANDARD_INPUT, "the pipe", "not be empty", Description("nothing"), hint=hint)
    raise InvalidInput(
        _STANDARD_INPUT,
        "the data",
        f"have one of the formats {', '.join(formats)}",
        Description(f"data that begin with {beginning!r}"),
    )


def suffix_of(path: Path | str, known: Sequence[str]) -> str:
    """Return the suffix of a file, which states its format."""
    suffix = Path(path).suffix.lower()
    if suffix not in known:
        raise InvalidInput(str(path), "the file name", f"end in one of {', '.join(known)}", suffix)
    return suffix


def standard_input() -> BinaryIO:
    """Return standard input as a binary stream."""
    if sys.stdin is None:
        hint = "Pass the path of a file instead of -."
        raise InvalidInput(_STANDARD_INPUT, "the pipe", "be open", Description("nothing"), hint=hint)
    return sys.stdin.buffer


class _Rejoined(io.RawIOBase):
    """A pipe, including the bytes that were read to recognize its format. Closing it leaves the pipe open."""

    def __init__(self, beginning: bytes, rest: BinaryIO) -> None:
        self._beginning, self._rest = beginning, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer)
        data = self._beginning[:size] if self._beginning else self._rest.read(size)
        self._beginning = self._beginning[size:]
        buffer[: len(data)] = data
        return len(data)
