"""Kernel of memoized mechanisms: every decision reads the auxiliary stream, in the order of the sampler.

Tables, and sets of more than 128 values, have no kernel: they are sampled value by value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.mechanisms.cyclic.kernel import shift_table
from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Words, kernel
from sfumato.mechanisms.kernels.decisions import ONE, WORD_BITS, ZERO, rejection_rate, split
from sfumato.mechanisms.kernels.planes import store
from sfumato.mechanisms.local_hashing.mechanism import LocalHashing
from sfumato.mechanisms.memoized.decisions_kernel import (
    draw_index,
    draw_set,
    extend_set,
    flip,
    keep_parameters,
    keeps_answer,
)
from sfumato.mechanisms.memoized.mechanism import MemoizedMechanism
from sfumato.mechanisms.memoized.parts_kernel import build_parts
from sfumato.mechanisms.partitioned.mechanism import PartitionedMechanism
from sfumato.mechanisms.subset.kernel import include, repairs
from sfumato.mechanisms.subset.mechanism import SubsetSelection
from sfumato.mechanisms.two_level import MixtureMechanism

__all__ = ["build"]

#: Greatest number of values of sets; bounds the memory of a chunk, whose sets need two auxiliary words per value.
_MOST_VALUES = 128


def build(mechanism: MemoizedMechanism) -> Kernel | None:
    """Return the kernel of a mechanism, or None if it is a table or has long sets."""
    single, permanent = mechanism.single, mechanism.permanent
    if isinstance(single, PartitionedMechanism) and isinstance(permanent, PartitionedMechanism):
        return build_parts(mechanism, single, permanent, _MOST_VALUES)
    if not isinstance(single, MixtureMechanism) or not isinstance(permanent, MixtureMechanism):
        return None
    numerator, denominator = mechanism.instantaneous.odds[0]
    keep = keep_parameters(numerator, denominator)
    share, again = numerator / denominator, (2**64 % denominator) / 2**64 + 2 * rejection_rate(min(denominator, 2**31))
    if isinstance(single, SubsetSelection) and isinstance(permanent, SubsetSelection):
        return _subset_kernel(mechanism, single, permanent, keep, share, again)
    index = _index_parameters(permanent)
    draws = permanent.draws()
    numbers = (draws.choices or 1, draws.forced or 1, draws.columns or 1)
    mean = 9 + 2 * again + 4 * sum(rejection_rate(number) for number in numbers)
    parameters = (*split(permanent.threshold, 32), keep, index)
    return Kernel.of(mechanism, _run_indices, parameters, auxiliary_mean=mean)


def _index_parameters(permanent: MixtureMechanism) -> tuple[Any, ...]:
    """Return the numbers of an index mixture: whether it hashes, columns, choices, shifts, modulus, start and table."""
    draws = permanent.draws()
    numbers = (isinstance(permanent, LocalHashing), draws.columns, draws.choices, draws.forced, draws.modulus, 0)
    return *(np.uint64(number) for number in numbers), shift_table(permanent)


def _subset_kernel(
    mechanism: MemoizedMechanism,
    single: SubsetSelection,
    permanent: SubsetSelection,
    keep: tuple[np.uint64, ...],
    share: float,
    again: float,
) -> Kernel | None:
    """Return the kernel of sets, whose coins take an auxiliary word each."""
    values = len(mechanism.domain)
    if values > _MOST_VALUES:
        return None
    sets = [(np.uint64(each.size), np.uint64(each.coin), np.uint64(each.planes)) for each in (permanent, single)]
    (first, spread), (second, other_spread) = repairs(permanent.draws()), repairs(single.draws())
    blank = 1 + values + second
    extension = single.size - permanent.size
    mean = 3 + again + values + first + share * extension + (1 - share) * blank
    variance = spread + other_spread + share * (1 - share) * (blank - extension) ** 2 + 1
    parameters = (np.uint64(values), *split(permanent.threshold, 32), keep, *sets)
    return Kernel.of(mechanism, _run_sets, parameters, auxiliary_mean=mean, auxiliary_variance=variance)


@kernel("memoized index")
def _run_indices(
    values: npt.NDArray[np.int64],
    words: Words,  # noqa: ARG001
    auxiliary: Words,
    out: npt.NDArray[Any],
    parameters: Any,
) -> Any:
    """Write the reports of all values to ``out``; return the number of auxiliary words read."""
    high, low, keep, index = parameters
    position = ZERO
    for i in range(np.uint64(len(values))):
        answer, position = draw_index(np.uint64(values[i]), high, low, index, auxiliary, position)
        keeps, position = keeps_answer(keep, auxiliary, position)
        if not keeps:
            answer, position = draw_index(ZERO, ZERO, ZERO, index, auxiliary, position)
        out[i] = answer
    return position


@kernel("memoized sets", allocates=True)
def _run_sets(
    values: npt.NDArray[np.int64],
    words: Words,  # noqa: ARG001
    auxiliary: Words,
    out: npt.NDArray[np.uint8],
    parameters: Any,
) -> Any:
    """Write the reports of all values to ``out``; return the number of auxiliary words read."""
    k, high, low, keep, permanent, single = parameters
    groups = (k + WORD_BITS - ONE) // WORD_BITS
    chosen = np.empty(groups, dtype=np.uint64)
    position = ZERO
    for i in range(np.uint64(len(values))):
        forced, position = flip(high, low, auxiliary, position)
        position = draw_set(chosen, k, permanent, auxiliary, position)
        x = np.uint64(values[i])
        if forced and x < k:
            position = include(chosen, groups, x, permanent[0], auxiliary, position)
        keeps, position = keeps_answer(keep, auxiliary, position)
        if keeps:
            position = extend_set(chosen, k, permanent[0], single[0], auxiliary, position)
        else:
            _, position = flip(ZERO, ZERO, auxiliary, position)
            position = draw_set(chosen, k, single, auxiliary, position)
        for group in range(groups):
            store(out, i, group, chosen[group])
    return position
