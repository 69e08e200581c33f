"""Mechanisms: exact randomizers of one value, each with the law it states and the sampler that runs."""

from sfumato.mechanisms.base import Finished, Mechanism, mechanism_from_spec
from sfumato.mechanisms.binary import BinaryOptimal
from sfumato.mechanisms.block import BlockMechanism
from sfumato.mechanisms.composed_subsets import ComposedSubsets
from sfumato.mechanisms.conditional_reporting import ConditionalReporting, ConditionalUnary
from sfumato.mechanisms.hadamard import HadamardResponse
from sfumato.mechanisms.high_low_hadamard import HighLowHadamard
from sfumato.mechanisms.high_low_subset import HighLowSubset
from sfumato.mechanisms.independent_reporting import IndependentReporting
from sfumato.mechanisms.nested_subsets import NestedSubsets
from sfumato.mechanisms.prior_binary import PriorBinary
from sfumato.mechanisms.prior_symmetric import PriorSymmetric
from sfumato.mechanisms.randomized_response import RandomizedResponse
from sfumato.mechanisms.secret_response import SecretRandomizedResponse
from sfumato.mechanisms.subset import SubsetSelection
from sfumato.mechanisms.table import TableMechanism
from sfumato.mechanisms.unary import UnaryEncoding
from sfumato.mechanisms.utility_optimized_rappor import UtilityOptimizedRappor
from sfumato.mechanisms.utility_optimized_rr import UtilityOptimizedRR

__all__ = [
    "BinaryOptimal",
    "BlockMechanism",
    "ComposedSubsets",
    "ConditionalReporting",
    "ConditionalUnary",
    "Finished",
    "HadamardResponse",
    "HighLowHadamard",
    "HighLowSubset",
    "IndependentReporting",
    "Mechanism",
    "NestedSubsets",
    "PriorBinary",
    "PriorSymmetric",
    "RandomizedResponse",
    "SecretRandomizedResponse",
    "SubsetSelection",
    "TableMechanism",
    "UnaryEncoding",
    "UtilityOptimizedRR",
    "UtilityOptimizedRappor",
    "mechanism_from_spec",
]
