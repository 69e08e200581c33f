"""The mechanisms of single attributes inside a mechanism for several of them."""

from __future__ import annotations

from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.memoized.mechanism import MemoizedMechanism
from sfumato.mechanisms.product.mechanism import ProductMechanism
from sfumato.mechanisms.sampled_parts.mechanism import SampledParts

__all__ = ["attribute_parts"]


def attribute_parts(mechanism: Mechanism) -> tuple[Mechanism, ...]:
    """Return the mechanisms of the attributes, of which one report has one or all; none if a report is about values."""
    single = mechanism.single if isinstance(mechanism, MemoizedMechanism) else mechanism
    if isinstance(single, SampledParts):
        return tuple(single.parts)
    return single.factors if isinstance(single, ProductMechanism) else ()
