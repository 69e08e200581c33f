"""64 decisions at once: a plane is a word that holds one bit of the fields of 64 positions, lane by lane."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.kernels.compile import Word, Words, device
from sfumato.mechanisms.kernels.decisions import ONE, ONES, WORD_BITS, ZERO, read

__all__ = [
    "PlaneThreshold",
    "blend",
    "coins_below",
    "draw_lanes",
    "finish_ties",
    "lanes_below",
    "live_lanes",
    "plane_threshold",
    "store",
]

_BYTE_BITS = _WORD_BYTES = np.uint64(8)

#: The planes of a threshold's high part, and the result for a lane that equals it before any auxiliary read. A tuple's
#: length is part of its type, so the compiler generates a separate loop for each number of planes.
PlaneThreshold: TypeAlias = tuple[tuple[np.uint64, ...], np.uint64]


def plane_threshold(high: int, planes: int) -> PlaneThreshold:
    """Return a threshold of ``planes`` bits, 0 ≤ high ≤ 2^planes.

    The threshold 2^planes does not fit the planes. It is the greatest number that fits, with equality counted as below.
    """
    one = high == 1 << planes
    shown = high - one
    return tuple(ONES if shown >> bit & 1 else ZERO for bit in reversed(range(planes))), ONES if one else ZERO


@device
def blend(others: Word, marked: Word, its: Word) -> Word:
    """Return one word in the ``marked`` lanes and another in the other lanes."""
    return others ^ (others ^ its) & marked


@device
def lanes_below(
    words: Words, first: Word, threshold: PlaneThreshold, marked: Word, marked_threshold: PlaneThreshold
) -> tuple[Word, Word]:
    """Return the lanes whose field is below their threshold, and the lanes that equal it.

    Lanes in ``marked`` have ``marked_threshold``.
    """
    masks, others_result = threshold
    marked_masks, marked_result = marked_threshold
    result, equal = blend(others_result, marked, marked_result), ONES
    # From the lowest bit up: a bit that differs from the threshold's overrides the result of the lower bits.
    for plane in range(len(masks) - 1, -1, -1):
        mask = blend(masks[plane], marked, marked_masks[plane])
        different = words[first + np.uint64(plane)] ^ mask
        result = different & mask | result & ~different
        equal &= ~different
    return result, equal


@device
def finish_ties(
    auxiliary: Words, position: Word, rest: Word, bits: Word, ties: Word, low: Word, true_lane: Word, true_low: Word
) -> tuple[Word, Word]:
    """Add to ``bits`` the tied lanes whose ``rest`` further bits are below their threshold's, lowest lane first.

    Return the bits and the next position among the auxiliary words.
    """
    while ties != ZERO:
        lane = ties & ~ties + ONE
        drawn, position = read(auxiliary, position, rest)
        if drawn < (true_low if lane == true_lane else low):
            bits |= lane
        ties ^= lane
    return bits, position


@device
def coins_below(words: Words, first: Word, threshold: PlaneThreshold) -> Word:
    """Return the lanes whose field is below one threshold for all lanes, which has no low part.

    As in ``lanes_below``, but as the majority of the threshold's bit, the inverted bit of the word and the result so
    far. In this form the compiler vectorizes a loop over groups.
    """
    masks, result = threshold
    for plane in range(len(masks) - 1, -1, -1):
        mask, word = masks[plane], words[first + np.uint64(plane)]
        result = (mask | result) & ~word | mask & result
    return result


@device
def live_lanes(k: Word, group: Word) -> Word:
    """Return the lanes of a group of 64 for positions below k."""
    left = k - group * WORD_BITS
    return ONES if left >= WORD_BITS else (ONE << left) - ONE


@device
def store(out: npt.NDArray[np.uint8], i: Word, group: Word, word: Word) -> None:
    """Write 64 bits of row i, or as many as it has bytes for, little-endian and at any alignment."""
    first = group * _WORD_BYTES
    left = np.uint64(out.shape[1]) - first
    if left >= _WORD_BYTES:
        for byte in range(8):  # the length is constant, so the compiler emits a single store
            out[i, first + np.uint64(byte)] = np.uint8(word >> _BYTE_BITS * np.uint64(byte))
    else:
        for byte in range(left):
            out[i, first + byte] = np.uint8(word >> _BYTE_BITS * byte)


@device
def draw_lanes(
    words: Words,
    first: Word,
    auxiliary: Words,
    position: Word,
    rest: Word,
    lanes: Word,
    true_lane: Word,
    of_true: tuple[PlaneThreshold, Word],
    others: tuple[PlaneThreshold, Word],
) -> tuple[Word, Word]:
    """Draw a bit for each of ``lanes``; return the bits and the next position among the auxiliary words.

    ``of_true`` is the threshold, as planes and a low part, of the lanes ``true_lane``; ``others`` is that of all
    others.
    """
    true_threshold, true_low = of_true
    other_threshold, other_low = others
    # A threshold without a low part leaves no ties.
    true_tie = ONES if true_low != ZERO else ZERO
    others_tie = ONES if other_low != ZERO else ZERO
    bits, ties = lanes_below(words, first, other_threshold, true_lane, true_threshold)
    ties &= lanes & blend(others_tie, true_lane, true_tie)
    bits, position = finish_ties(auxiliary, position, rest, bits, ties, other_low, true_lane, true_low)
    return bits & lanes, position
