"""Mechanisms inside others: the coordinates of a product, and the parts of a value that one person reports."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from sfumato.domain import Domain
from sfumato.mechanisms.base import SURROGATE_VALUES, Mechanism
from sfumato.mechanisms.draws import Field, Layout
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.mechanism import TableMechanism

__all__ = ["COMPONENTS", "can_be_component", "diagonal", "joined_layouts", "numbered", "small"]

#: Classes of components by name. Their samplers make one decision per field of their layouts, always.
COMPONENTS: dict[str, type[Mechanism]] = {
    kind.name: kind for kind in (RandomizedResponse, HadamardResponse, CyclicDesign, TableMechanism)
}


def can_be_component(mechanism: object) -> bool:
    """Return whether a mechanism may be a factor of a product, or report a part of a value."""
    # The sampler of a subclass may differ.
    return type(mechanism) in COMPONENTS.values()


def numbered(component: Mechanism) -> Mechanism:
    """Return a component over numbered values, as a spec describes it."""
    values = Domain.range(len(component.domain))
    return component if component.domain == values else type(component).from_parameters(values, component.parameters())


def joined_layouts(components: Sequence[Mechanism], *first: Field) -> tuple[tuple[int, ...], Layout]:
    """Return the first bit of each component in a frame, then the frame's length, and the layout of the whole frame.

    A decision about the choice of a component reads ``first``, in front of their bits.
    """
    start = sum(field.width for field in first)
    offsets = tuple(accumulate((component.layout.frame_bits for component in components), initial=start))
    fields = (
        Field(field.start + offset, field.step, field.width)
        for component, offset in zip(components, offsets, strict=False)
        for field in component.layout.numbers
    )
    return offsets, Layout(offsets[-1], (*first, *fields))


def diagonal(shape: Sequence[int]) -> list[int]:
    """Return values that together have every index of every coordinate."""
    return list(map(int, np.ravel_multi_index([np.arange(max(shape)) % size for size in shape], shape)))


def small(component: Mechanism) -> Mechanism:
    """Return a component of the same class with few values and outputs."""
    if not isinstance(component, TableMechanism):
        surrogate = component.audit_surrogate()
        assert surrogate is not None
        return surrogate
    if component.outputs <= SURROGATE_VALUES and len(component.domain) <= SURROGATE_VALUES:
        return component
    rows = component.weights[:SURROGATE_VALUES]
    columns = np.unique(np.linspace(0, component.outputs, SURROGATE_VALUES, endpoint=False).astype(np.intp))
    return TableMechanism(Domain.range(len(rows)), np.add.reduceat(rows, columns, axis=1))
