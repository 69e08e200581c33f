"""Files that every executor can open, cut into shares of about the same size: one for each task.

A Parquet file is cut between row groups, any other file is read whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from sfumato.collecting import Source, rows_by_group, suffix_of

__all__ = ["Piece", "shares_of"]

#: A file, and some of its row groups; with None all of it.
Piece: TypeAlias = tuple[Source, range | None]

#: A task that fails is done again from its start: its share is no larger than this, if its files can be cut.
_LARGEST_SHARE = 2**27
#: A file is cut if it is larger than this part of a share. Smaller ones cost more to look into than they are out of
#: balance.
_PARTS = 8


def shares_of(paths: Sequence[str], known: Sequence[str], cores: int) -> list[list[Piece]]:
    """The files in shares, as many as there are cores or more; those of formats that are not known are refused."""
    sources = [Source(path, suffix_of(path, known)) for path in paths]
    sizes = [Path(path).stat().st_size for path in paths]
    count = max(cores, -(-sum(sizes) // _LARGEST_SHARE))
    smallest = sum(sizes) / count / _PARTS
    pieces = [
        piece for source, size in zip(sources, sizes, strict=True) for piece in _pieces(source, size, size > smallest)
    ]
    shares: list[list[Piece]] = [[] for _ in range(count)]
    total, before = sum(size for _, size in pieces), 0.0
    for piece, size in pieces:
        middle = before + size / 2
        shares[min(int(count * middle / total), count - 1) if total else 0].append(piece)
        before += size
    return [_joined(share) for share in shares if share]


def _pieces(source: Source, size: int, cut: bool) -> Iterator[tuple[Piece, float]]:
    """A file's row groups, or the file, each with its size."""
    rows = rows_by_group(source) if cut else None
    if not rows or not sum(rows):
        yield (source, None), size
        return
    for group, height in enumerate(rows):
        yield (source, range(group, group + 1)), size * height / sum(rows)


def _joined(share: list[Piece]) -> list[Piece]:
    """The same share, with neighbouring row groups of a file in one piece: opening it costs as much as reading some."""
    joined: list[Piece] = []
    for source, groups in share:
        if joined and groups is not None and joined[-1][0] is source and joined[-1][1] is not None:
            joined[-1] = (source, range(joined[-1][1].start, groups.stop))
        else:
            joined.append((source, groups))
    return joined
