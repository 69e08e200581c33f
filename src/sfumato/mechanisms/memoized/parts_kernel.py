"""Kernel of memoized mechanisms made of parts: every decision reads the auxiliary stream, with the part's numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.cyclic.kernel import shift_table
from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Word, Words, device, kernel
from sfumato.mechanisms.kernels.decisions import ONE, ONES, WORD_BITS, ZERO, rejection_rate, split
from sfumato.mechanisms.memoized.decisions_kernel import (
    draw_index,
    draw_set,
    extend_set,
    flip,
    keep_parameters,
    keeps_answer,
)
from sfumato.mechanisms.memoized.mechanism import MemoizedMechanism
from sfumato.mechanisms.partitioned.kernel import store_parted, value_tables
from sfumato.mechanisms.partitioned.mechanism import PartitionedMechanism
from sfumato.mechanisms.subset.kernel import include, repairs
from sfumato.mechanisms.two_level import MixtureMechanism

__all__ = ["build_parts"]

#: Marks a permanent answer that reveals a value.
_REVEALED = ONES


def build_parts(
    mechanism: MemoizedMechanism, single: PartitionedMechanism, permanent: PartitionedMechanism, most_values: int
) -> Kernel | None:
    """Return the kernel of a mechanism of parts, or None if a part has sets of more than ``most_values`` values."""
    draws = [part.draws() for part in (*single.parts, *permanent.parts)]
    if max(each.values for each in draws) > most_values:
        return None
    odds = mechanism.instantaneous.odds
    values = (permanent.part_of.astype(np.uint64), *value_tables(permanent))
    keep = tuple(np.array(column, np.uint64) for column in zip(*(keep_parameters(*each) for each in odds), strict=True))
    parameters = (
        values,
        keep,
        _numbers(permanent.parts, [split(part.threshold, 32) for part in permanent.parts]),
        _numbers(single.parts, [(ZERO, ZERO)] * len(single.parts)),
        np.array(single.offsets, np.uint64),
        np.uint64(single.reports_index),
        np.uint64(0 if single.reports_index else single.body_bits),
        np.uint64(max(64, 0 if single.reports_index else single.bits)),
    )
    needs = [_words(one) for one in draws]
    again = max((2**64 % each[1]) / 2**64 + 2 * rejection_rate(min(each[1], 2**31)) for each in odds)
    # Parts differ in their needs; the greatest of all parts suffices for any mixture of values.
    mean = 2 * max(mean for mean, _ in needs) + 2 * again + 2
    variance = 4 * max(variance for _, variance in needs) + 1
    function = _run_indices if single.reports_index else _run_bodies
    return Kernel.of(mechanism, function, parameters, auxiliary_mean=mean, auxiliary_variance=variance)


def _words(draws: Any) -> tuple[float, float]:
    """Return approximate mean and variance of the auxiliary words of one report of a part."""
    if draws.members:
        mean, variance = repairs(draws)
        return 1 + draws.values + mean, variance
    rates = sum(rejection_rate(number or 1) for number in (draws.choices, draws.forced, draws.columns))
    return 3 + 2 * rates, 1.0


def _numbers(parts: Sequence[MixtureMechanism], thresholds: Sequence[tuple[Any, Any]]) -> tuple[Words, ...]:
    """Return per part the halves of the threshold and the numbers of its draws, and the shifts of cyclic designs."""
    draws = [part.draws() for part in parts]
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
        [each.values for each in draws],
        [each.members for each in draws],
        [each.coin for each in draws],
        [each.planes for each in draws],
    )
    return *(np.array(column, dtype=np.uint64) for column in columns), np.concatenate(list(tables.values()))


@device
def _index_of(number: Word, part: Word, numbers: Any, auxiliary: Words, position: Word) -> tuple[Word, Word]:
    """Return the report of a part that reports an index; all ones if it reveals the value."""
    highs, lows, columns, choices, shifts, moduli, starts, _, _, _, _, table = numbers
    index = (ZERO, columns[part], choices[part], shifts[part], moduli[part], starts[part], table)
    return draw_index(number, highs[part], lows[part], index, auxiliary, position)


@device
def _keeps_answer(keep: Any, part: Word, auxiliary: Words, position: Word) -> tuple[bool, Word]:
    """Return whether a report keeps the permanent answer of a part."""
    modes, choices, numerators, rejected = keep
    return keeps_answer((modes[part], choices[part], numerators[part], rejected[part]), auxiliary, position)


@kernel("memoized parts with indices")
def _run_indices(
    values: npt.NDArray[np.int64],
    words: Words,  # noqa: ARG001
    auxiliary: Words,
    out: npt.NDArray[Any],
    parameters: Any,
) -> Any:
    """Write the reports of all values to ``out``; return the number of auxiliary words read."""
    (part_of, number_of, open_number_of), keep, permanent, single, offsets, _, _, _ = parameters
    last, all_parts = np.uint64(len(part_of) - 1), np.uint64(len(offsets) - 1)
    position = ZERO
    for i in range(np.uint64(len(values))):
        x = min(np.uint64(values[i]), last)  # a value outside the domain must not read outside the tables
        part = part_of[x]
        answer, position = _index_of(number_of[x], part, permanent, auxiliary, position)
        keeps, position = _keeps_answer(keep, part, auxiliary, position)
        if not keeps:
            answer, position = _index_of(ZERO, part, single, auxiliary, position)
        out[i] = offsets[all_parts] + open_number_of[x] if answer == _REVEALED else offsets[part] + answer
    return position


@device
def _set_of(body: Words, part: Word, numbers: Any, auxiliary: Words, position: Word) -> Word:
    """Write a uniform set of a part to ``body``; return the new auxiliary position."""
    sizes, members, coins, planes = numbers[7], numbers[8], numbers[9], numbers[10]
    subset = (members[part], coins[part], planes[part])
    return draw_set(body, sizes[part], subset, auxiliary, position)


@kernel("memoized parts with bitmaps", allocates=True)
def _run_bodies(
    values: npt.NDArray[np.int64],
    words: Words,  # noqa: ARG001
    auxiliary: Words,
    out: npt.NDArray[np.uint8],
    parameters: Any,
) -> Any:
    """Write the reports of all values to ``out``; return the number of auxiliary words read."""
    (part_of, number_of, open_number_of), keep, permanent, single, offsets, _, body_bits, bits = parameters
    last, all_parts = np.uint64(len(part_of) - 1), np.uint64(len(offsets) - 1)
    body = np.empty((bits + WORD_BITS - ONE) // WORD_BITS, dtype=np.uint64)
    position = ZERO
    for i in range(np.uint64(len(values))):
        x = min(np.uint64(values[i]), last)
        part, number = part_of[x], number_of[x]
        body[:] = ZERO
        size, reported = permanent[8][part], single[8][part]
        if size == ZERO:
            answer, position = _index_of(number, part, permanent, auxiliary, position)
            revealed = answer == _REVEALED
            if reported == ZERO or revealed:
                body[0] = answer
            else:
                body[answer // WORD_BITS] = ONE << answer % WORD_BITS
            size = ONE
        else:
            forced, position = flip(permanent[0][part], permanent[1][part], auxiliary, position)
            position = _set_of(body, part, permanent, auxiliary, position)
            revealed = forced and number == _REVEALED
            if forced and not revealed:
                groups = (permanent[7][part] + WORD_BITS - ONE) // WORD_BITS
                position = include(body, groups, number, size, auxiliary, position)
        keeps, position = _keeps_answer(keep, part, auxiliary, position)
        if keeps and not revealed and reported != ZERO:
            position = extend_set(body, single[7][part], size, reported, auxiliary, position)
        if not keeps:
            revealed = False
            body[:] = ZERO
            if reported == ZERO:
                body[0], position = _index_of(ZERO, part, single, auxiliary, position)
            else:
                _, position = flip(ZERO, ZERO, auxiliary, position)
                position = _set_of(body, part, single, auxiliary, position)
        head = part
        if revealed:
            body[:] = ZERO
            head = all_parts + open_number_of[x]
        store_parted(out, i, body, head, body_bits)
    return position
