"""Array kernels: the samplers of ``sfumato.mechanisms``, compiled, for whole chunks of values.

Importing this package imports numba, so nothing else in Sfumato does before an array is privatized.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato.kernels import (
    composed_subsets,
    hadamard,
    nested_subsets,
    parted,
    randomized_response,
    subset,
    table,
    unary,
    utility_optimized_rappor,
)
from sfumato.kernels.base import Kernel
from sfumato.mechanisms import (
    BinaryOptimal,
    BlockMechanism,
    ComposedSubsets,
    ConditionalReporting,
    ConditionalUnary,
    HadamardResponse,
    HighLowHadamard,
    HighLowSubset,
    IndependentReporting,
    Mechanism,
    NestedSubsets,
    PriorBinary,
    PriorSymmetric,
    RandomizedResponse,
    SecretRandomizedResponse,
    SubsetSelection,
    TableMechanism,
    UnaryEncoding,
    UtilityOptimizedRappor,
    UtilityOptimizedRR,
)

__all__ = ["Kernel", "kernel_for"]

_BUILDERS: dict[type[Mechanism], Callable[[Any], Kernel]] = {
    BinaryOptimal: table.build,
    BlockMechanism: parted.build,
    ComposedSubsets: composed_subsets.build,
    ConditionalReporting: table.build,
    ConditionalUnary: table.build,
    HadamardResponse: hadamard.build,
    HighLowHadamard: parted.build,
    HighLowSubset: parted.build,
    IndependentReporting: table.build,
    NestedSubsets: nested_subsets.build,
    PriorBinary: table.build,
    PriorSymmetric: table.build,
    RandomizedResponse: randomized_response.build,
    SecretRandomizedResponse: table.build,
    SubsetSelection: subset.build,
    TableMechanism: table.build,
    UnaryEncoding: unary.build,
    UtilityOptimizedRR: parted.build,
    UtilityOptimizedRappor: utility_optimized_rappor.build,
}


def kernel_for(mechanism: Mechanism) -> Kernel | None:
    """The kernel that samples as the mechanism does, or None: a subclass may sample otherwise, so it has none."""
    build = _BUILDERS.get(type(mechanism))
    return None if build is None else build(mechanism)
