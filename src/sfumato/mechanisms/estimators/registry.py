"""Which estimator a mechanism has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.composed_subsets.estimator import ComposedSubsetsEstimator
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.estimators.base import Estimator
from sfumato.mechanisms.estimators.inclusion import Inclusion, InclusionEstimator, ResponseEstimator, SetEstimator
from sfumato.mechanisms.estimators.matrix import default_estimator
from sfumato.mechanisms.hadamard.estimator import HadamardEstimator
from sfumato.mechanisms.hadamard.mechanism import HadamardResponse
from sfumato.mechanisms.nested_subsets.estimator import NestedSubsetsEstimator
from sfumato.mechanisms.nested_subsets.mechanism import NestedSubsets
from sfumato.mechanisms.partitioned.estimator import partitioned_estimator
from sfumato.mechanisms.partitioned.mechanism import PartitionedMechanism
from sfumato.mechanisms.randomized_response.mechanism import RandomizedResponse
from sfumato.mechanisms.subset.mechanism import SubsetSelection
from sfumato.mechanisms.table.estimator import table_estimator
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.mechanisms.utility_optimized_rappor.estimator import UtilityOptimizedRapporEstimator
from sfumato.mechanisms.utility_optimized_rappor.mechanism import UtilityOptimizedRappor

__all__ = ["estimator_for"]


def estimator_for(mechanism: Mechanism) -> Estimator:
    """Return the estimator of a mechanism; ``mechanism.estimator`` keeps it."""
    if isinstance(mechanism, UnaryEncoding):
        return InclusionEstimator(mechanism, Inclusion.of_bits(*mechanism.bit_probabilities))
    for kind, estimator in _ESTIMATORS:
        if isinstance(mechanism, kind):
            return estimator(mechanism)
    return default_estimator(mechanism)


_ESTIMATORS: tuple[tuple[type[Mechanism], Callable[[Any], Estimator]], ...] = (
    (RandomizedResponse, ResponseEstimator),
    (SubsetSelection, SetEstimator),
    (HadamardResponse, HadamardEstimator),
    (TableMechanism, table_estimator),
    (PartitionedMechanism, partitioned_estimator),
    (UtilityOptimizedRappor, UtilityOptimizedRapporEstimator),
    (NestedSubsets, NestedSubsetsEstimator),
    (ComposedSubsets, ComposedSubsetsEstimator),
)
