"""Divide files that every executor can open into splits of about equal size, one per task.

A Parquet file is divided between row groups; any other file is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from sfumato.collecting import Source, rows_by_group, suffix_of

__all__ = ["Piece", "split_files"]

#: A file and a range of its row groups; None for the whole file.
Piece: TypeAlias = tuple[Source, range | None]

#: Maximum bytes per split, if its files can be divided; bounds the work that a failed task repeats.
_MAX_SPLIT_BYTES = 2**27
#: A file is divided if it is larger than 1/8 of a split; opening a smaller file again costs more than the imbalance.
_PARTS = 8


def split_files(paths: Sequence[str], known: Sequence[str], cores: int) -> list[list[Piece]]:
    """Divide files into at least ``cores`` splits; raise InvalidInput for formats that are not in ``known``."""
    sources = [Source(path, suffix_of(path, known)) for path in paths]
    sizes = [Path(path).stat().st_size for path in paths]
    count = max(cores, -(-sum(sizes) // _MAX_SPLIT_BYTES))
    smallest = sum(sizes) / count / _PARTS
    pieces = [
        piece for source, size in zip(sources, sizes, strict=True) for piece in _pieces(source, size, size > smallest)
    ]
    splits: list[list[Piece]] = [[] for _ in range(count)]
    total, before = sum(size for _, size in pieces), 0.0
    for piece, size in pieces:
        middle = before + size / 2
        splits[min(int(count * middle / total), count - 1) if total else 0].append(piece)
        before += size
    return [_join_groups(split) for split in splits if split]


def _pieces(source: Source, size: int, cut: bool) -> Iterator[tuple[Piece, float]]:
    """Yield the row groups of a file, or the file, each with its size."""
    rows = rows_by_group(source) if cut else None
    if not rows or not sum(rows):
        yield (source, None), size
        return
    for group, height in enumerate(rows):
        yield (source, range(group, group + 1)), size * height / sum(rows)


def _join_groups(split: list[Piece]) -> list[Piece]:
    """Join neighbouring row groups of a file into one piece, because opening a file costs as much as reading some."""
    joined: list[Piece] = []
    for source, groups in split:
        if joined and groups is not None and joined[-1][0] is source and joined[-1][1] is not None:
            joined[-1] = (source, range(joined[-1][1].start, groups.stop))
        else:
            joined.append((source, groups))
    return joined
