"""Which decoder a mechanism has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato._estimate.composed_subsets import ComposedSubsetsDecoder
from sfumato._estimate.decoder import Decoder
from sfumato._estimate.hadamard import HadamardDecoder
from sfumato._estimate.high_low_bits import HighLowBitsDecoder
from sfumato._estimate.inclusion import InclusionDecoder, ResponseDecoder, SetDecoder
from sfumato._estimate.nested_subsets import NestedSubsetsDecoder
from sfumato._estimate.parted import parted_decoder
from sfumato._estimate.table import TableDecoder
from sfumato.errors import InvalidInput
from sfumato.mechanisms import (
    ComposedSubsets,
    HadamardResponse,
    Mechanism,
    NestedSubsets,
    RandomizedResponse,
    SubsetSelection,
    TableMechanism,
    UnaryEncoding,
    UtilityOptimizedRappor,
)
from sfumato.mechanisms.parted import PartedMechanism

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
