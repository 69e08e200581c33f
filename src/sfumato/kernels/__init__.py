"""Array kernels: the samplers of ``sfumato.mechanisms``, compiled, for whole chunks of values.

Importing this package imports numba, so nothing else in Sfumato does before an array is privatized.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato.kernels import hadamard, randomized_response, subset, table, unary
from sfumato.kernels.base import Kernel
from sfumato.mechanisms import (
    HadamardResponse,
    Mechanism,
    RandomizedResponse,
    SubsetSelection,
    TableMechanism,
    UnaryEncoding,
)

__all__ = ["Kernel", "kernel_for"]

_BUILDERS: dict[type[Mechanism], Callable[[Any], Kernel]] = {
    HadamardResponse: hadamard.build,
    RandomizedResponse: randomized_response.build,
    SubsetSelection: subset.build,
    TableMechanism: table.build,
    UnaryEncoding: unary.build,
}


def kernel_for(mechanism: Mechanism) -> Kernel | None:
    """The kernel that samples as the mechanism does, or None: a subclass may sample otherwise, so it has none."""
    build = _BUILDERS.get(type(mechanism))
    return None if build is None else build(mechanism)
