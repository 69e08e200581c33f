"""Lists: labels given one by one."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers, exact_fraction, label_document
from sfumato.domain.kinds.base import LARGEST, CellReader, Fault, Scalar
from sfumato.domain.kinds.counted import Counted
from sfumato.domain.refusals import At, listing
from sfumato.domain.scalars import STRING_READERS, TYPES, Label, Signature, as_label, reader_for

#: Largest integer up to which floats represent every integer.
_EXACT_IN_FLOAT = 2**53
#: Lookup tables up to this length are always used, because their memory is small.
_DENSE = 2**16
#: Names of the scalar types in messages.
_A = {"str": "a str", "int": "an int", "bool": "a bool", "float": "a finite float"}

_CELL_READERS = {scalar.__name__: reader for scalar, reader in STRING_READERS.items()}


class Listed(Scalar):
    """Labels stored one by one: scalars of one type, or (from ``subset``) tuples of one signature."""

    name = "list"

    def __init__(self, labels: tuple[Label, ...], table: dict[Label, int], signature: Signature) -> None:
        self.size = len(labels)
        self.shape = (self.size,)
        self.signature = signature
        self.is_numeric = signature in ("int", "float")
        self.reads_decimals = signature == "float"
        self._labels = labels
        self._table = table
        self._reader = reader_for(signature)
        self._types = frozenset(TYPES[signature]) if isinstance(signature, str) else frozenset()

    @property
    def key(self) -> tuple[object, ...]:
        # The signature distinguishes 1, 1.0 and True, which are equal in Python.
        return ("list", self.signature, self._labels)

    def label(self, index: int) -> Label:
        return self._labels[index]

    def labels(self) -> Iterator[Label]:
        return iter(self._labels)

    def place(self, value: object) -> int:
        return self._table.get(self._reader(value), -1)  # type: ignore[arg-type]  # None is never a label

    def fault(self, value: object) -> Fault:
        type_name = self.signature if isinstance(self.signature, str) else "tuple"
        return "", f"be one of the {type_name} labels {listing(self._labels)}", value

    def of_items(self, items: list[Any]) -> Integers:
        if not set(map(type, items)) <= self._types:
            items = list(map(self._reader, items))
        find = self._table.get
        return np.fromiter((find(item, -1) for item in items), dtype=np.int64, count=len(items))

    def of_array(self, array: npt.NDArray[Any]) -> Integers:
        dtype_kind = array.dtype.kind
        if self.signature == "bool" and dtype_kind == "b":
            return np.array([self._table.get(False, -1), self._table.get(True, -1)])[array.astype(np.intp)]
        if self.signature not in ("int", "float") or dtype_kind == "b" or len(array) == 0:
            return np.full(len(array), -1, dtype=np.int64)
        if self.signature == "float":
            if dtype_kind == "f" or (array.min() >= -_EXACT_IN_FLOAT and array.max() <= _EXACT_IN_FLOAT):
                return self._search(array.astype(np.float64, copy=False))
        elif self._fits:
            if dtype_kind == "f":
                if array.min() >= -(2.0**63) and array.max() < 2.0**63:  # False for NaN
                    whole = array.astype(np.int64)
                    codes = self._search(whole)
                    codes[whole != array] = -1
                    return codes
            elif dtype_kind == "i" or array.max() < 2**63:
                return self._search(array.astype(np.int64, copy=False))
        # Values that the dtype of the labels cannot represent exactly are compared as Python numbers.
        distinct, rows = np.unique(array, return_inverse=True)
        return self.of_items(distinct.tolist())[rows.reshape(-1)]

    @functools.cached_property
    def array(self) -> npt.NDArray[Any]:
        """Scalar labels as an array; strings as objects, because a fixed width would cut trailing NULs."""
        if self.signature == "str" or (self.signature == "int" and not self._fits):
            array = np.empty(self.size, dtype=object)
            array[:] = self._labels
            return array
        return np.array(self._labels)

    @functools.cached_property
    def _fits(self) -> bool:
        """Whether all int labels fit int64."""
        labels = cast("tuple[int, ...]", self._labels)
        return min(labels) >= -(2**63) and max(labels) < 2**63

    @functools.cached_property
    def _sorted(self) -> tuple[npt.NDArray[Any], Integers]:
        """The labels in ascending order, and the index of each."""
        order = np.argsort(self.array, kind="stable").astype(np.int64)
        return self.array[order], order

    @functools.cached_property
    def _dense(self) -> tuple[int, int, Integers] | None:
        """Lowest and highest int label, and the index of each int between them; None if they are too sparse."""
        low, high = int(self._sorted[0][0]), int(self._sorted[0][-1])
        if high - low >= max(_DENSE, 8 * self.size):
            return None
        table = np.full(high - low + 1, -1, dtype=np.int64)
        table[self.array - low] = np.arange(self.size)
        return low, high, table

    def _search(self, array: npt.NDArray[Any]) -> Integers:
        """Return the indices of an array with the dtype of the labels."""
        if self.signature == "int" and self._dense is not None:
            low, high, table = self._dense
            if array.min() >= low and array.max() <= high:
                return cast("Integers", table[array - low])
            inside = (array >= low) & (array <= high)
            codes: Integers = table[np.where(inside, array, low) - low]
            codes[~inside] = -1
            return codes
        labels, order = self._sorted
        near = np.minimum(np.searchsorted(labels, array), self.size - 1)
        codes = order[near]
        codes[labels[near] != array] = -1
        return codes

    @functools.cached_property
    def is_ordered(self) -> bool:  # type: ignore[override]  # the base class declares an attribute
        if self.is_numeric:
            return bool((self.array[1:] > self.array[:-1]).all())
        return isinstance(self.signature, str)

    @property
    def cell_reader(self) -> CellReader | None:
        return _CELL_READERS.get(self.signature) if isinstance(self.signature, str) else None

    def exact_numbers(self) -> list[Fraction | None] | None:
        return [exact_fraction(label) for label in self._labels] if self.is_numeric else None

    def decode_array(self, codes: Integers) -> npt.NDArray[Any]:
        return self.array[codes]

    def decode(self, codes: Integers) -> list[Label]:
        return list(map(self._labels.__getitem__, codes.tolist()))

    def document(self) -> dict[str, Any]:
        return {"values": [label_document(label) for label in self._labels]}

    def text(self) -> str:
        return f"Domain([{listing(self._labels)}])"


def list_of(values: list[Any], at: At, *, tuples: bool = False) -> Scalar:
    """Return the kind for these labels; tuples are allowed only as labels of another domain."""
    if not 1 <= len(values) <= LARGEST:
        raise at.error("contain from 1 to 2**31 labels", values)
    allowed = "a str, an int, a bool or a finite float" + (", or a tuple of these" if tuples else "")
    labels: list[Label] = []
    signature: Signature | None = None
    for i, value in enumerate(values):
        plain = as_label(value, tuples=tuples)
        if plain is None:
            raise at.item(i).error(f"be {allowed}", value)
        if signature is None:
            signature = plain[0]
        elif plain[0] != signature:
            expected = _A.get(str(signature), f"a tuple of {signature}")
            raise at.item(i).error(f"be {expected}, like {at.item(0).parameter}", value)
        labels.append(plain[1])
    table = {label: i for i, label in enumerate(labels)}
    if len(table) < len(labels):
        first = next(i for i, label in enumerate(labels) if table[label] != i)
        places = [at.item(i).parameter for i, label in enumerate(labels) if label == labels[first]]
        named = ", ".join(places[:4]) + (f" and {len(places) - 4} more" if len(places) > 4 else "")
        raise At(at.subject, named).error("be distinct", labels[first])
    assert signature is not None
    if signature == "int" and labels[0] == 0 and labels == list(range(len(labels))):
        return Counted(len(labels))  # equal domains have the same description
    return Listed(tuple(labels), table, signature)
