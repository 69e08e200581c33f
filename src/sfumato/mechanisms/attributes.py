"""What reports reveal about single attributes."""

from __future__ import annotations

from fractions import Fraction

from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.memoized.mechanism import MemoizedMechanism
from sfumato.mechanisms.product.mechanism import ProductMechanism
from sfumato.mechanisms.sampled_parts.mechanism import SampledParts
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.mechanism import TableMechanism

__all__ = ["attribute_guesses"]

#: Maximum weights of a table that are added up per attribute; bounds the time of a plan.
_MOST_WEIGHTS = 2**16


def attribute_guesses(mechanism: Mechanism) -> list[tuple[Fraction, int]]:
    """Return the probability of a correct guess of each attribute from a report, and its number of values.

    For a report about several attributes at once, the guess is of one of them if all have two values and the mechanism
    is randomized response or a small table. Otherwise it is of these attributes together. The list is empty if it would
    only have the guess of the whole value.
    """
    shape = mechanism.domain.shape if mechanism.domain.kind == "product" else ()
    return _guesses(mechanism.single if isinstance(mechanism, MemoizedMechanism) else mechanism, shape)


def _guesses(mechanism: Mechanism, shape: tuple[int, ...]) -> list[tuple[Fraction, int]]:
    """Return these probabilities for a mechanism whose values have attributes of these sizes."""
    parts: list[tuple[Mechanism, tuple[int, ...]]] = []
    if isinstance(mechanism, SampledParts):
        each = zip(mechanism.parts, mechanism.axes, strict=True)
        parts = [(part, tuple(mechanism.domain.shape[axis] for axis in axes)) for part, axes in each]
    elif isinstance(mechanism, ProductMechanism):
        parts = [(factor, (len(factor.domain),)) for factor in mechanism.factors]
    if parts:
        return [
            one
            for part, sizes in parts
            for one in _guesses(part, sizes) or [(part.guess_probability(), len(part.domain))]
        ]
    if set(shape) != {2}:
        return []
    if isinstance(mechanism, RandomizedResponse):  # the attribute is reported by randomized response, too
        return [(mechanism.gamma + (1 - mechanism.gamma) / 2, 2)] * len(shape)
    if not isinstance(mechanism, TableMechanism) or mechanism.weights.size > _MOST_WEIGHTS:
        return []
    weights = mechanism.weights.astype(object).reshape(*shape, -1)
    places = range(len(shape))
    sums = (weights.sum(axis=tuple(other for other in places if other != place)) for place in places)
    return [(Fraction(sum(table.max(axis=0)), TOTAL * len(mechanism.domain)), 2) for table in sums]
