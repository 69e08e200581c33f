"""Kernel of parts: every value draws as its part's kernel does, with the part's parameters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Word, Words, device, kernel
from sfumato.mechanisms.kernels.decisions import (
    INDEX_BITS,
    INDEX_MASK,
    ONE,
    ONES,
    WORD_BITS,
    ZERO,
    below,
    bernoulli,
    popcount,
    rejection_rate,
    split,
)
from sfumato.mechanisms.kernels.planes import plane_threshold, store
from sfumato.mechanisms.kernels.shifts import shift_table, shifted
from sfumato.mechanisms.kernels.subsets import draw_subset, include, repairs, subset_space
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.parts.mechanism import Parts
from sfumato.mechanisms.systems.base import OUTSIDE, MixtureDraws

if TYPE_CHECKING:
    from sfumato.mechanisms.high_low_mixed.mechanism import HighLowMixedSubsets

__all__ = ["build", "build_choice"]

#: Marks the report of a revealed value until its index among the outputs is computed.
_REVEALED = ONES


def build(mechanism: Parts) -> Kernel:
    """Return the kernel of a mechanism."""
    return _kernel(mechanism, None)


def build_choice(mechanism: HighLowMixedSubsets) -> Kernel:
    """Return the kernel of a mechanism in which a coin chooses the part."""
    return _kernel(mechanism, mechanism.weight)


def _kernel(mechanism: Parts, weight: int | None) -> Kernel:
    """Return the kernel of a mechanism; with a weight, a coin chooses the second part instead of the first one."""
    parts = mechanism.parts
    unprotected_numbers = np.zeros(len(mechanism.domain), dtype=np.uint64)
    unprotected_numbers[mechanism.unprotected] = np.arange(len(mechanism.unprotected), dtype=np.uint64)
    numbers = np.where(mechanism.number_of == OUTSIDE, ONES, mechanism.number_of.astype(np.uint64))
    values = (mechanism.part_of.astype(np.uint64), numbers, unprotected_numbers)
    frame_words = np.uint64(mechanism.layout.frame_bits // 64)
    # Parts differ in the number of repairs; the greatest of all parts suffices for any mixture of values.
    draws = [part.system.draws() for part in parts]
    needs = [_auxiliary(each) for each in dict.fromkeys(draws)]
    mean, variance = max(mean for mean, _ in needs), max(variance for _, variance in needs)
    index_parts = _index_parameters(parts, draws)
    if mechanism.numbering.reports_index:
        offsets = np.array(mechanism.numbering.offsets, dtype=np.uint64)
        parameters: tuple[Any, ...] = (values, frame_words, index_parts, offsets)
        return Kernel.of(mechanism, _run_indices, parameters, auxiliary_mean=mean, auxiliary_variance=variance)
    parameters = (
        values,
        frame_words,
        index_parts,
        _subset_parameters(draws),
        (np.uint64(weight is not None), *split(weight or 0, 32)),
        np.uint64(len(parts)),
        np.uint64(mechanism.numbering.body_bits),
        np.uint64(mechanism.bits),
    )
    return Kernel.of(mechanism, _run_parts, parameters, auxiliary_mean=mean, auxiliary_variance=variance)


def _auxiliary(draws: MixtureDraws) -> tuple[float, float]:
    """Return approximate mean and variance of the auxiliary words that a value of this part needs."""
    if draws.members:
        return repairs(draws)
    mean = 2.0**-32 + max(rejection_rate(draws.choices), rejection_rate(draws.forced or 1))
    return mean, mean


def _index_parameters(parts: tuple[Mixture, ...], draws: Sequence[MixtureDraws]) -> tuple[Words, ...]:
    """Return per part the threshold's halves and its draws, and the shifts of all cyclic designs with their starts.

    Columns are zero unless the part is a Hadamard response, forced shifts and modulus unless it is a cyclic design.
    """
    thresholds = [split(part.threshold, 32) for part in parts]
    tables = {part: shift_table(part) for part in dict.fromkeys(parts)}
    ends = dict(zip(tables, itertools.accumulate(len(table) for table in tables.values()), strict=True))
    columns = (
        [high for high, _ in thresholds],
        [low for _, low in thresholds],
        [each.columns for each in draws],
        [each.choices for each in draws],
        [each.forced for each in draws],
        [each.modulus for each in draws],
        [ends[part] - len(tables[part]) for part in parts],
    )
    return *(np.array(column, dtype=np.uint64) for column in columns), np.concatenate(list(tables.values()))


def _subset_parameters(draws: Sequence[MixtureDraws]) -> tuple[Words, ...]:
    """Return per part the values, members and coin by planes; all zero if the part reports an index."""
    rows, masks, starts = [], [np.zeros(0, dtype=np.uint64)], [0]
    for each in draws:
        if each.members:
            planes, equal = plane_threshold(each.coin, each.planes)
            rows.append((each.values, each.members, int(equal)))
            masks.append(np.array(planes, dtype=np.uint64))
        else:
            rows.append((0, 0, 0))
        starts.append(sum(map(len, masks)))
    sizes, members, equals = (np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True))
    return sizes, members, equals, np.concatenate(masks), np.array(starts, dtype=np.uint64)


@device
def _index(
    number: Word, part: Word, words: Words, first: Word, parts: Any, auxiliary: Words, position: Word
) -> tuple[Word, Word]:
    """Return the report of a part that reports an index."""
    highs, lows, all_columns, all_choices, all_shifts, moduli, starts, table = parts
    columns, choices, shifts = all_columns[part], all_choices[part], all_shifts[part]
    word = words[first]
    forced, position = bernoulli(word >> INDEX_BITS, highs[part], lows[part], INDEX_BITS, auxiliary, position)
    if shifts != ZERO:
        if forced and number == _REVEALED:
            return number, position
        drawn, position = below(word & INDEX_MASK, shifts if forced else choices, auxiliary, position)
        return shifted(number, table[starts[part] + drawn], moduli[part]) if forced else drawn, position
    if columns == ZERO:
        other, position = below(word & INDEX_MASK, choices, auxiliary, position)
        # A part with one output may have several values, which all report it.
        return number if forced and (choices > ONE or number == _REVEALED) else other, position
    column = (word & INDEX_MASK) * columns >> INDEX_BITS
    block = ZERO
    if choices > ONE:
        block, position = below(words[first + ONE] & INDEX_MASK, choices, auxiliary, position)
    if forced:
        if number == _REVEALED:
            return number, position
        block = number // (columns - ONE)
        row = number % (columns - ONE) + ONE
        if popcount(row & column) & ONE:
            column ^= row & ~row + ONE
    return block * columns + column, position


@kernel("parts with indices")
def _run_indices(
    values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[Any], parameters: Any
) -> Any:
    """Write the reports of all values to ``out``; return the number of auxiliary words read."""
    (part_of, number_of, open_number_of), frame_words, parts, offsets = parameters
    last, all_parts = np.uint64(len(part_of) - 1), np.uint64(len(offsets) - 1)
    position, first = ZERO, ZERO
    for i in range(np.uint64(len(values))):
        x = min(np.uint64(values[i]), last)  # a value outside the domain must not read outside the tables
        part = part_of[x]
        report, position = _index(number_of[x], part, words, first, parts, auxiliary, position)
        out[i] = offsets[all_parts] + open_number_of[x] if report == _REVEALED else offsets[part] + report
        first += frame_words
    return position


@device
def store_parted(out: npt.NDArray[np.uint8], i: Word, body: Words, head: Word, body_bits: Word) -> None:
    """Write a report in the "parted" encoding to row i of ``out``; the head is added to ``body``."""
    # The head is above the body, and may extend into the next word.
    groups, group, shift = np.uint64(len(body)), body_bits // WORD_BITS, body_bits % WORD_BITS
    if group < groups:
        body[group] |= head << shift
    if shift != ZERO and group + ONE < groups:
        body[group + ONE] |= head >> WORD_BITS - shift
    for group in range(groups):
        store(out, i, group, body[group])


@kernel("parts with bitmaps", allocates=True)
def _run_parts(
    values: npt.NDArray[np.int64], words: Words, auxiliary: Words, out: npt.NDArray[np.uint8], parameters: Any
) -> Any:
    """Write the reports of all values to ``out``; return the number of auxiliary words read."""
    (part_of, number_of, open_number_of), frame_words, parts, subsets, coin, all_parts, body_bits, bits = parameters
    sizes, members, equals, masks, starts = subsets
    highs, lows = parts[:2]
    last = np.uint64(len(part_of) - 1)
    groups = (bits + WORD_BITS - ONE) // WORD_BITS
    body, space = np.empty(groups, dtype=np.uint64), subset_space(bits)
    position, first = ZERO, ZERO
    for i in range(np.uint64(len(values))):
        x = min(np.uint64(values[i]), last)
        part, number = part_of[x], number_of[x]
        if coin[0] != ZERO:
            second, position = bernoulli(words[first] & INDEX_MASK, coin[1], coin[2], INDEX_BITS, auxiliary, position)
            part = ONE if second else ZERO
        head = part
        body[:] = ZERO
        if sizes[part] == ZERO:
            body[0], position = _index(number, part, words, first, parts, auxiliary, position)
            revealed = body[0] == _REVEALED
        else:
            forced, position = bernoulli(
                words[first] >> INDEX_BITS, highs[part], lows[part], INDEX_BITS, auxiliary, position
            )
            lanes = (masks[starts[part] : starts[part + ONE]], equals[part])
            position = draw_subset(
                body, space, sizes[part], members[part], lanes, words, first + ONE, auxiliary, position
            )
            revealed = forced and number == _REVEALED
            if forced and not revealed:
                position = include(body, groups, number, members[part], auxiliary, position)
        if revealed:
            body[:] = ZERO
            head = all_parts + open_number_of[x]
        store_parted(out, i, body, head, body_bits)
        first += frame_words
    return position
