"""Kernel of cyclic designs: one 64-bit word per value, with the decision above and the index below."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.kernels.compile import Word, Words, device
from sfumato.mechanisms.kernels.decisions import (
    INDEX_BITS,
    INDEX_MASK,
    ZERO,
    below,
    bernoulli,
    rejection_rate,
    rejections,
    split,
)
from sfumato.mechanisms.kernels.repaired import looked_up_kernel
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.systems.shifts import CyclicDesign, Shifts

__all__ = ["build", "shift_table", "shifted"]


def build(mechanism: CyclicDesign) -> Kernel:
    """Return the kernel of a mechanism."""
    draws = mechanism.system.draws()
    parameters = (
        *split(mechanism.threshold, 32),
        np.uint64(draws.choices),
        rejections(draws.choices),
        np.uint64(draws.forced),
        rejections(draws.forced),
        np.uint64(draws.modulus),
        shift_table(mechanism),
    )
    mean = 2.0**-32 + max(rejection_rate(draws.choices), rejection_rate(draws.forced))
    return Kernel.of(mechanism, _run, parameters, auxiliary_mean=mean)


def shift_table(mechanism: Mixture) -> Words:
    """Return the forced reports of value 0 in the high halves, and the least values that wrap around in the low."""
    system = mechanism.system
    if not isinstance(system, Shifts):
        return np.zeros(0, np.uint64)
    shifts, modulus = system.forced_shifts().astype(np.uint64), np.uint64(system.design.modulus)
    return shifts << INDEX_BITS | modulus - shifts % modulus


@device
def shifted(x: Word, entry: Word, modulus: Word) -> Word:
    """Return the forced report of a value, from an entry of ``shift_table``."""
    return (entry >> INDEX_BITS) + x - modulus * np.uint64(x >= entry & INDEX_MASK)


@device
def _drawn(words: Words, i: Word, parameters: Any) -> tuple[Word, Word, Word]:
    """Return the decision, all ones if it forces the report, and the product whose high half is the number drawn."""
    high, _, outputs, _, forced = parameters[:5]
    decision, index = words[i] >> INDEX_BITS, words[i] & INDEX_MASK
    force = ZERO - np.uint64(decision < high)
    return decision, force, index * (outputs ^ (outputs ^ forced) & force)


@device
def _place(words: Words, i: Word, parameters: Any) -> Word:
    """Return the number drawn if the report is forced, else 0."""
    _, force, product = _drawn(words, i, parameters)
    return product >> INDEX_BITS & force


@device
def _quick(x: Any, words: Words, i: Word, parameters: Any, entry: Word) -> tuple[Word, bool]:
    """Return the report from the frame alone, and whether it is an exception that needs more bits."""
    high, _, _, rejected, _, rejected_forced, modulus, _ = parameters
    decision, force, product = _drawn(words, i, parameters)
    number = product >> INDEX_BITS
    exception = (decision == high) | (product & INDEX_MASK < rejected ^ (rejected ^ rejected_forced) & force)
    return number ^ (number ^ shifted(np.uint64(x), entry, modulus)) & force, exception


@device
def _exact(x: Any, words: Words, i: Word, parameters: Any, auxiliary: Words, position: Word) -> tuple[Word, Word]:
    """Return the report as the scalar sampler does, and the new auxiliary position."""
    high, low, outputs, _, forced, _, modulus, table = parameters
    force, position = bernoulli(words[i] >> INDEX_BITS, high, low, INDEX_BITS, auxiliary, position)
    number, position = below(words[i] & INDEX_MASK, forced if force else outputs, auxiliary, position)
    if not force:
        return number, position
    return shifted(np.uint64(x), table[number], modulus), position


_run = looked_up_kernel(CyclicDesign.name, _place, _quick, _exact)
