"""Which decoder a mechanism has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.composed_subsets.estimator import ComposedSubsetsDecoder
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.estimators.base import Decoder
from sfumato.mechanisms.estimators.inclusion import InclusionDecoder, ResponseDecoder, SetDecoder
from sfumato.mechanisms.hadamard.estimator import HadamardDecoder
from sfumato.mechanisms.hadamard.mechanism import HadamardResponse
from sfumato.mechanisms.nested_subsets.estimator import NestedSubsetsDecoder
from sfumato.mechanisms.nested_subsets.mechanism import NestedSubsets
from sfumato.mechanisms.partitioned.estimator import parted_decoder
from sfumato.mechanisms.partitioned.mechanism import PartedMechanism
from sfumato.mechanisms.randomized_response.mechanism import RandomizedResponse
from sfumato.mechanisms.subset.mechanism import SubsetSelection
from sfumato.mechanisms.table.estimator import TableDecoder
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.mechanisms.utility_optimized_rappor.estimator import HighLowBitsDecoder
from sfumato.mechanisms.utility_optimized_rappor.mechanism import UtilityOptimizedRappor

__all__ = ["decoder_for"]


def decoder_for(mechanism: Mechanism) -> Decoder:
    """The decoder of a mechanism."""
    if isinstance(mechanism, UnaryEncoding):
        own, other = mechanism.inclusion
        return InclusionDecoder(mechanism, own * other, other * other)
    for kind, decoder in _DECODERS:
        if isinstance(mechanism, kind):
            return decoder(mechanism)
    raise InvalidInput("estimate", "the mechanism", "have a decoder", mechanism)


_DECODERS: tuple[tuple[type[Mechanism], Callable[[Any], Decoder]], ...] = (
    (RandomizedResponse, ResponseDecoder),
    (SubsetSelection, SetDecoder),
    (HadamardResponse, HadamardDecoder),
    (TableMechanism, TableDecoder),
    (PartedMechanism, parted_decoder),
    (UtilityOptimizedRappor, HighLowBitsDecoder),
    (NestedSubsets, NestedSubsetsDecoder),
    (ComposedSubsets, ComposedSubsetsDecoder),
)
