"""Selection of the n-th lowest set bit of a word, by one instruction if the processor has a fast one."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.core import config

from sfumato.mechanisms.kernels.compile import Word, device, instruction
from sfumato.mechanisms.kernels.decisions import ONE, ZERO, popcount

__all__ = ["by_bisection", "by_deposit", "deposits_fast", "nth_set_bit"]


@device
def by_bisection(bits: Word, n: Word) -> Word:
    """Return the n-th lowest set bit, as a power of two, on any processor."""
    place = ZERO
    for step in range(6):
        width = np.uint64(32 >> step)
        lower = popcount(bits >> place & (ONE << width) - ONE)
        beyond = n >= lower
        n -= lower if beyond else ZERO
        place += width if beyond else ZERO
    return ONE << place


@device
def by_deposit(bits: Word, n: Word) -> Word:
    """Return the n-th lowest set bit with the instruction that deposits bits at the positions of a mask."""
    return _deposit(ONE << n, bits)


@instruction
def _deposit(typing_context: Any, source: Any, mask: Any) -> Any:  # noqa: ARG001
    """Return the bits of ``source`` at the positions of the set bits of ``mask``."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        pdep = builder.module.declare_intrinsic("llvm.x86.bmi.pdep.64", (), ir.FunctionType(word, (word, word)))
        return builder.call(pdep, arguments)

    return types.uint64(types.uint64, types.uint64), generate


def deposits_fast() -> bool:
    """Return whether compiled code may use ``by_deposit``, and is faster with it."""
    if config.CPU_NAME or config.CPU_FEATURES is not None:  # type: ignore[attr-defined]
        return False  # numba compiles for another processor than this one
    # The first two AMD generations with this instruction execute it as a slow loop.
    slow = binding.get_host_cpu_name() in ("znver1", "znver2")
    return bool(binding.get_host_cpu_features().get("bmi2", False)) and not slow


nth_set_bit = by_deposit if deposits_fast() else by_bisection
