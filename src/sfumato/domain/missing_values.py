"""Missing values of a column for which the domain has no separate value: replaced by a value, or marked."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.domain.kinds.base import DomainKind, Scalar
from sfumato.domain.kinds.grid import Grid
from sfumato.domain.kinds.missing import MissingAs
from sfumato.domain.kinds.product import Product
from sfumato.domain.refusals import At


def filled_kind(kind: DomainKind, label: object, at: At) -> DomainKind:
    """Return the kind that encodes missing values as the value with a label.

    The label may be spelled as in a text file. In a product it applies to the attributes that have this label. A
    mapping has one label per attribute; the other attributes reject missing values.
    """
    if isinstance(label, Mapping):
        return _filled_product(kind, label, at)
    if kind.missing is not None and label != kind.missing:
        raise at.error(f"be {kind.missing!r}, the label of missing values of the domain", label)
    filled = _filled(kind, label)
    if filled is None:
        hint = "A domain with missing='unknown' has another value for missing values."
        raise at.error("be a label of the domain", label, hint=hint)
    return filled


def _filled_product(kind: DomainKind, labels: Mapping[str, object], at: At) -> DomainKind:
    """Return the kind of a product that encodes missing values of each attribute as the label of the attribute."""
    if not isinstance(kind, Product) or isinstance(kind, Grid):
        raise at.error("be a label, because the domain has no attributes", dict(labels))
    names = ", ".join(map(repr, kind.factors))
    for name in labels:
        if name not in kind.factors:
            raise at.error(f"name attributes among {names}", name)
    factors = {
        name: filled_kind(factor, labels[name], At(at.subject, f"{at.parameter}[{name!r}]"))
        if name in labels
        else factor
        for name, factor in kind.factors.items()
    }
    return Product(factors)


def _filled(kind: DomainKind, label: object) -> DomainKind | None:
    """Return the kind that encodes missing values as a label, or None if it does not have the label."""
    if isinstance(kind, Product) and not isinstance(kind, Grid):
        factors = {name: _filled(factor, label) for name, factor in kind.factors.items()}
        if not any(factors.values()):
            return None
        return Product({name: factors[name] or factor for name, factor in kind.factors.items()})
    if not isinstance(kind, Scalar):
        return None
    if kind.missing is not None:
        return kind if label == kind.missing else None
    index = kind.by_label.place(label)
    if index < 0 and isinstance(label, str) and kind.cell_reader is not None:
        index = kind.by_label.place(kind.cell_reader[0](label))
    return None if index < 0 else MissingAs(kind, index)


def marked_kind(kind: DomainKind, at: At) -> DomainKind:
    """Return the kind that encodes missing values, in a product those of each attribute, as one more value."""
    if isinstance(kind, Product) and not isinstance(kind, Grid):
        return Product({name: marked_kind(factor, at) for name, factor in kind.factors.items()})
    if not isinstance(kind, Scalar):
        raise at.error("not be drop, because the values are points on a map", "drop")
    if kind.missing is not None:
        raise at.error(f"not be drop, because the domain has the value {kind.missing!r} for missing values", "drop")
    return MissingAs(kind, kind.size)
