"""Products: tuples with one label of each factor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from sfumato._core import Integers
from sfumato.domain.kinds.base import LARGEST, DomainKind, Encoded, Fault
from sfumato.domain.refusals import At
from sfumato.domain.rows import split_row, split_rows
from sfumato.domain.scalars import Label


class Product(DomainKind):
    """Tuples of labels, row-major."""

    name: Literal["grid", "product"] = "product"

    def __init__(self, factors: Mapping[str, DomainKind], spellings: Sequence[tuple[str, ...]] = ()) -> None:
        self.factors = dict(factors)
        self.kinds = tuple(factors.values())
        self.shape = tuple(kind.size for kind in self.kinds)
        self.size = math.prod(self.shape)
        self.spellings = spellings or tuple((name,) for name in factors)

    @property
    def by_label(self) -> DomainKind:
        looked_up = {name: kind.by_label for name, kind in self.factors.items()}
        return self if looked_up == self.factors else Product(looked_up)

    @property
    def key(self) -> tuple[object, ...]:
        return (self.name, tuple(self.factors), tuple(kind.key for kind in self.kinds))

    def label(self, index: int) -> Label:
        parts: list[Label] = []
        for kind in reversed(self.kinds):
            index, part = divmod(index, kind.size)
            parts.append(kind.label(part))
        return tuple(reversed(parts))

    def labels(self) -> Iterator[Label]:
        return _tuples(self.kinds)

    def place(self, value: object) -> int:
        parts = split_row(value, self.spellings)
        if parts is None:
            return -1
        code = 0
        for kind, part in zip(self.kinds, parts, strict=True):
            place = kind.place(part)
            if place < 0:
                return -1
            code = code * kind.size + place
        return code

    def part(self, name: str) -> str:
        return f", factor {name!r}"

    def fault(self, value: object) -> Fault:
        parts = split_row(value, self.spellings)
        for (name, kind), part in zip(self.factors.items(), parts or (), strict=False):
            if kind.place(part) < 0:
                inner, must, got = kind.fault(part)
                return self.part(name) + inner, must, got
        return "", f"be a tuple ({', '.join(self.factors)})", value

    def encode(self, values: object, at: At) -> Encoded:
        columns = split_rows(values, self.spellings, at)
        encoded = [
            kind.encode(column, at.item(name))
            for (name, kind), column in zip(self.factors.items(), columns, strict=True)
        ]
        lengths = {name: len(codes) for name, (codes, _) in zip(self.factors, encoded, strict=True)}
        if len(set(lengths.values())) > 1:
            raise at.refuse("have columns of one length", lengths)
        total = encoded[0][0]
        refused = total < 0
        for kind, (codes, _) in zip(self.kinds[1:], encoded[1:], strict=True):
            refused |= codes < 0
            total = total * kind.size + codes
        total[refused] = -1
        return total, lambda row: tuple(value_at(row) for _, value_at in encoded)

    def decode(self, codes: Integers) -> list[Label]:
        columns: list[list[Label]] = []
        for kind in reversed(self.kinds):
            codes, part = np.divmod(codes, kind.size)
            columns.append(kind.decode(part))
        return list(zip(*reversed(columns), strict=True))

    def document(self) -> dict[str, Any]:
        # The order is said apart, because a canonical document sorts its keys.
        documents = {name: kind.document() for name, kind in self.factors.items()}
        return {"product": documents, "order": list(self.factors)}

    def text(self) -> str:
        return f"Domain.product({', '.join(f'{name}={kind.text()}' for name, kind in self.factors.items())})"


def _tuples(kinds: tuple[DomainKind, ...]) -> Iterator[tuple[Label, ...]]:
    """As ``itertools.product``, which would first list every factor in full."""
    if not kinds:
        yield ()
        return
    for head in kinds[0].labels():
        for tail in _tuples(kinds[1:]):
            yield (head, *tail)


def product_of(factors: Mapping[str, DomainKind], at: At) -> DomainKind:
    """The product of two or more factors."""
    if len(factors) < 2:
        raise at.refuse("be at least two", list(factors))
    product = Product(factors)
    if product.size > LARGEST:
        raise at.refuse("have at most 2**31 combinations", dict(zip(factors, product.shape, strict=True)))
    return product
