"""64 decisions at once: a plane is a word that holds one bit of the fields of 64 positions, lane by lane."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.kernels.compile import Word, Words, device
from sfumato.kernels.decisions import ONE, ONES, WORD_BITS, ZERO

__all__ = ["BYTES", "PlaneThreshold", "lanes_below", "live_lanes", "plane_threshold", "store"]

BYTES = np.uint64(8)

#: The planes of a threshold's high part, and what becomes of a lane that equals it before any auxiliary read.
PlaneThreshold = tuple[npt.NDArray[np.uint64], np.uint64]


def plane_threshold(high: int, planes: int) -> PlaneThreshold:
    """A threshold of ``planes`` bits, 0 ≤ high ≤ 2^planes.

    2^planes itself has no planes: it is the highest number there is, with equality true.
    """
    one = high == 1 << planes
    shown = high - one
    masks = [ONES if shown >> bit & 1 else ZERO for bit in reversed(range(planes))]
    return np.array(masks, dtype=np.uint64), ONES if one else ZERO


@device
def lanes_below(words: Words, first: Word, threshold: PlaneThreshold) -> tuple[Word, Word]:
    """The lanes whose field is below the threshold, and those whose field equals it."""
    masks, result = threshold
    equal = ONES
    # From the lowest bit up: where a bit differs from the threshold's it overrules what the lower ones said.
    for plane in range(len(masks) - 1, -1, -1):
        mask = masks[np.uint64(plane)]
        different = words[first + np.uint64(plane)] ^ mask
        result = different & mask | result & ~different
        equal &= ~different
    return result, equal


@device
def live_lanes(k: Word, group: Word) -> Word:
    """The lanes of a group of 64 that stand for a position below k."""
    left = k - group * WORD_BITS
    return ONES if left >= WORD_BITS else (ONE << left) - ONE


@device
def store(row: npt.NDArray[np.uint8], group: Word, word: Word) -> None:
    """Write 64 bits of a report, or as many as its row has bytes for: little-endian, whatever the alignment."""
    first = group * BYTES
    left = np.uint64(len(row)) - first
    if left >= BYTES:
        for byte in range(8):
            row[first + np.uint64(byte)] = np.uint8(word >> np.uint64(8 * byte))
    else:
        for byte in range(left):
            row[first + np.uint64(byte)] = np.uint8(word >> BYTES * np.uint64(byte))
