"""Array kernels: the samplers of ``sfumato.mechanisms``, compiled, for whole chunks of values.

Importing this module imports numba, so nothing else in Sfumato does before an array is privatized.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.blocks.mechanism import BlockMechanism
from sfumato.mechanisms.composed_subsets import kernel as composed_subsets
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.hadamard import kernel as hadamard
from sfumato.mechanisms.hadamard.mechanism import HadamardResponse
from sfumato.mechanisms.high_low.hadamard import HighLowHadamard
from sfumato.mechanisms.high_low.randomized_response import UtilityOptimizedRR
from sfumato.mechanisms.high_low.subset import HighLowSubset
from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.nested_subsets import kernel as nested_subsets
from sfumato.mechanisms.nested_subsets.mechanism import NestedSubsets
from sfumato.mechanisms.partitioned import kernel as parted
from sfumato.mechanisms.prior.binary import PriorBinary
from sfumato.mechanisms.prior.symmetric import PriorSymmetric
from sfumato.mechanisms.randomized_response import kernel as randomized_response
from sfumato.mechanisms.randomized_response.mechanism import RandomizedResponse
from sfumato.mechanisms.secret.conditional import ConditionalReporting, ConditionalUnary
from sfumato.mechanisms.secret.independent import IndependentReporting
from sfumato.mechanisms.secret.randomized_response import SecretRandomizedResponse
from sfumato.mechanisms.subset import kernel as subset
from sfumato.mechanisms.subset.mechanism import SubsetSelection
from sfumato.mechanisms.table import kernel as table
from sfumato.mechanisms.table.binary import BinaryOptimal
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary import kernel as unary
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.mechanisms.utility_optimized_rappor import kernel as utility_optimized_rappor
from sfumato.mechanisms.utility_optimized_rappor.mechanism import UtilityOptimizedRappor

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
