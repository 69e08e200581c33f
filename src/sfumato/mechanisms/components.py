"""Mechanisms inside others: the coordinates of a product, and the parts of a value that one person reports."""

from __future__ import annotations

import numpy as np

from sfumato.domain import Domain
from sfumato.mechanisms.base import SURROGATE_VALUES, Mechanism
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.mechanism import TableMechanism

__all__ = ["COMPONENTS", "can_be_component", "numbered", "small"]

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
