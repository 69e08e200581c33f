"""Products: tuples with one label from each factor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sfumato._core import Integers
from sfumato.domain.kinds.base import LARGEST, DomainKind, Encoded, Fault, Kind
from sfumato.domain.refusals import At
from sfumato.domain.rows import split_row, split_rows
from sfumato.domain.scalars import Label


class Product(DomainKind):
    """Tuples of labels in row-major order."""

    name: Kind = "product"

    def __init__(self, factors: Mapping[str, DomainKind], spellings: Sequence[tuple[str, ...]] = ()) -> None:
        self.factors = dict(factors)
        self.factor_kinds = tuple(factors.values())
        self.shape = tuple(factor.size for factor in self.factor_kinds)
        self.size = math.prod(self.shape)
        self.spellings = spellings or tuple((name,) for name in factors)

    @property
    def by_label(self) -> DomainKind:
        by_label = {name: factor.by_label for name, factor in self.factors.items()}
        return self if by_label == self.factors else Product(by_label)

    @property
    def key(self) -> tuple[object, ...]:
        return (self.name, tuple(self.factors), tuple(factor.key for factor in self.factor_kinds))

    def label(self, index: int) -> Label:
        parts: list[Label] = []
        for factor in reversed(self.factor_kinds):
            index, part = divmod(index, factor.size)
            parts.append(factor.label(part))
        return tuple(reversed(parts))

    def labels(self) -> Iterator[Label]:
        return _tuples(self.factor_kinds)

    def place(self, value: object) -> int:
        parts = split_row(value, self.spellings)
        if parts is None:
            return -1
        code = 0
        for factor, part in zip(self.factor_kinds, parts, strict=True):
            place = factor.place(part)
            if place < 0:
                return -1
            code = code * factor.size + place
        return code

    def part(self, name: str) -> str:
        """Return the name of a part of a value for messages."""
        return f", factor {name!r}"

    def fault(self, value: object) -> Fault:
        parts = split_row(value, self.spellings)
        for (name, factor), part in zip(self.factors.items(), parts or (), strict=False):
            if factor.place(part) < 0:
                inner, must, got = factor.fault(part)
                return self.part(name) + inner, must, got
        return "", f"be a tuple ({', '.join(self.factors)})", value

    def encode(self, values: object, at: At) -> Encoded:
        columns = split_rows(values, self.spellings, at)
        encoded = [
            factor.encode(column, at.item(name))
            for (name, factor), column in zip(self.factors.items(), columns, strict=True)
        ]
        lengths = {name: len(codes) for name, (codes, _) in zip(self.factors, encoded, strict=True)}
        if len(set(lengths.values())) > 1:
            raise at.error("have columns of equal length", lengths)
        total = encoded[0][0]
        rejected = total < 0
        for factor, (codes, _) in zip(self.factor_kinds[1:], encoded[1:], strict=True):
            rejected |= codes < 0
            total = total * factor.size + codes
        total[rejected] = -1
        return total, lambda row: tuple(value_at(row) for _, value_at in encoded)

    def decode(self, codes: Integers) -> list[Label]:
        columns: list[list[Label]] = []
        for factor in reversed(self.factor_kinds):
            codes, part = np.divmod(codes, factor.size)
            columns.append(factor.decode(part))
        return list(zip(*reversed(columns), strict=True))

    def document(self) -> dict[str, Any]:
        # The order is stored separately, because a canonical document sorts its keys.
        documents = {name: factor.document() for name, factor in self.factors.items()}
        return {"product": documents, "order": list(self.factors)}

    def text(self) -> str:
        return f"Domain.product({', '.join(f'{name}={factor.text()}' for name, factor in self.factors.items())})"


def _tuples(factors: tuple[DomainKind, ...]) -> Iterator[tuple[Label, ...]]:
    """Yield the same tuples as ``itertools.product``, which would first list every factor in full."""
    if not factors:
        yield ()
        return
    for head in factors[0].labels():
        for tail in _tuples(factors[1:]):
            yield (head, *tail)


def product_of(factors: Mapping[str, DomainKind], at: At) -> DomainKind:
    """Return the product of two or more factors."""
    if len(factors) < 2:
        raise at.error("be at least two", list(factors), hint="Use Domain(labels) for a single attribute.")
    product = Product(factors)
    if product.size > LARGEST:
        raise at.error("have at most 2**31 combinations", dict(zip(factors, product.shape, strict=True)))
    return product
