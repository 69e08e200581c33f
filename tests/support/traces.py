"""What somebody who copies the files of a store can link: tokens that were spent with reports that were counted."""

from __future__ import annotations

import sqlite3
import struct
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

State = tuple[frozenset[bytes], Counter[tuple[int, int]]]


def wal_frames(log: bytes) -> Iterator[tuple[int, bool, bytes]]:
    """Page number, end of a transaction, and content of every frame that a write-ahead log holds, the oldest first.

    After a restart of the log, frames of the generation before it lie behind those of the present one.
    """
    if len(log) < 32:
        return
    size = struct.unpack(">I", log[8:12])[0]
    salts = log[16:24]
    frames = [log[start : start + 24 + size] for start in range(32, len(log) - 24 - size + 1, 24 + size)]
    for present in (False, True):
        for frame in frames:
            if (frame[8:16] == salts) == present:
                page, after = struct.unpack(">II", frame[:8])
                yield page, bool(after), frame[24:]


def state_of(image: bytearray) -> State | None:
    """Spent tokens and counts of a database file, or None if it is not consistent."""
    image[18:20] = b"\1\1"  # as if it had no write-ahead log
    database = sqlite3.connect(":memory:")
    try:
        database.deserialize(bytes(image))
        spent = frozenset(row[0] for row in database.execute("SELECT token_hash FROM tokens WHERE spent <> 0"))
        counts: Counter[tuple[int, int]] = Counter()
        for page, data in database.execute("SELECT page, counts FROM counts"):
            for place, count in enumerate(np.frombuffer(data, "<i8").tolist()):
                counts[page, place] = count
    except sqlite3.Error:
        return None
    finally:
        database.close()
    return spent, counts


def linked(path: Path) -> dict[bytes, int]:
    """Token hashes with the output that each was spent on, from every state that the files of a SQLite store hold."""
    log = Path(f"{path}-wal")
    frames = [*wal_frames(log.read_bytes() if log.exists() else b"")]
    image = bytearray(path.read_bytes())
    states = [state_of(bytearray(image))]
    for page, ends, content in frames:
        start = (page - 1) * len(content)
        image.extend(bytes(max(0, start + len(content) - len(image))))
        image[start : start + len(content)] = content
        if ends:
            states.append(state_of(bytearray(image)))
    consistent = [state for state in states if state is not None]
    links = {}
    for (spent, counts), (later_spent, later_counts) in pairwise(consistent):
        tokens, reports = later_spent - spent, later_counts - counts
        if len(tokens) == 1 and sum(reports.values()) == 1:
            ((page, place),) = +reports
            links[next(iter(tokens))] = page * 128 + place
    return links


def indexed_pages(path: Path) -> list[int]:
    """Page numbers that the index of a write-ahead log (``-shm``) holds, of present and of earlier frames."""
    index = Path(f"{path}-shm").read_bytes()
    pages: list[int] = []
    for start in range(0, len(index), 2**15):
        first = 136 if start == 0 else 0
        numbers: Any = np.frombuffer(index[start + first : start + 2**14], "<u4")
        pages += numbers[numbers > 0].tolist()
    return pages


def heap_rows(path: Path) -> Iterator[tuple[int, bytes]]:
    """Inserting transaction and data of every row version that a table file of PostgreSQL holds, deleted ones too."""
    file = path.read_bytes()
    for start in range(0, len(file), 8192):
        page = file[start : start + 8192]
        (lower,) = struct.unpack("<H", page[12:14])
        for place in range(24, lower, 4):
            (pointer,) = struct.unpack("<I", page[place : place + 4])
            offset, length = pointer & 0x7FFF, pointer >> 17
            if length:
                (xmin,) = struct.unpack("<I", page[offset : offset + 4])
                yield xmin, page[offset + page[offset + 22] : offset + length]
