"""Missing values: a set of values, and one more value for missing answers."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers
from sfumato.domain.kinds.base import LARGEST, CellReader, DomainKind, Fault, Scalar
from sfumato.domain.kinds.bounded import Bounded
from sfumato.domain.kinds.counted import Counted
from sfumato.domain.refusals import At
from sfumato.domain.scalars import Label, as_label, is_decimal, is_missing


class WithMissing(Scalar):
    """The values of another kind, followed by one value for missing answers: None, NaN, null and its own label."""

    missing: str

    def __init__(self, values: Scalar, missing: str, *, only_labels: bool = False) -> None:
        self.values = values
        self.missing = missing
        self.name = values.name
        self.size = values.size + 1
        self.shape = (self.size,)
        self.is_ordered = values.is_ordered
        self.is_numeric = values.is_numeric
        self.reads_decimals = values.reads_decimals and not is_decimal(missing)
        self._only_labels = only_labels
        self._missing_index = values.size
        self.null_index = -1 if only_labels else values.size

    @functools.cached_property
    def by_label(self) -> DomainKind:
        by_label = self.values.by_label
        assert isinstance(by_label, Scalar)
        return WithMissing(by_label, self.missing, only_labels=True)

    @property
    def key(self) -> tuple[object, ...]:
        return ("missing", self.missing, self.values.key)

    def label(self, index: int) -> Label:
        return self.missing if index == self._missing_index else self.values.label(index)

    def labels(self) -> Iterator[Label]:
        yield from self.values.labels()
        yield self.missing

    def place(self, value: object) -> int:
        index = self.values.place(value)
        return self._missing_index if index < 0 and self._is_missing(value) else index

    def _is_missing(self, value: object) -> bool:
        if isinstance(value, str):
            return str.__str__(value) == self.missing
        return not self._only_labels and is_missing(value)

    def fault(self, value: object) -> Fault:
        part, must, got = self.values.fault(value)
        return part, f"{must}, or {self.missing!r}", got

    def of_items(self, items: list[Any]) -> Integers:
        codes = self.values.of_items(items)
        for row in np.flatnonzero(codes < 0).tolist():
            if self._is_missing(items[row]):
                codes[row] = self._missing_index
        return codes

    def of_array(self, array: npt.NDArray[Any]) -> Integers:
        codes = self.values.of_array(array)
        return np.where(np.isnan(array), self.null_index, codes) if array.dtype.kind == "f" else codes

    @property
    def cell_reader(self) -> CellReader | None:
        read, must = self.values.cell_reader or (str, "be a label")

        def read_cell(cell: str) -> object | None:
            value = read(cell)
            if value is not None and self.values.place(value) >= 0:
                return value
            return self.missing if cell in ("", self.missing) else value

        return read_cell, f"{must}, or empty if it is missing"

    def exact_numbers(self) -> list[Fraction | None] | None:
        numbers = self.values.exact_numbers()
        return None if numbers is None else [*numbers, None]

    def numbers(self) -> Floats | None:
        numbers = self.values.numbers()
        return None if numbers is None else np.append(numbers, np.nan)

    def widths(self) -> Floats:
        return np.append(self.values.widths(), np.nan)

    def decode(self, codes: Integers) -> list[Label]:
        return list(map(self.label, codes.tolist()))

    def document(self) -> dict[str, Any]:
        document = self.values.document()
        if "values" in document:
            document = {"values": [*document["values"], self.missing]}
        return {**document, "missing": self.missing}

    def text(self) -> str:
        return f"{self.values.text()[:-1]}, missing={self.missing!r})"


#: Label of missing values in MissingAs; text files cannot contain it.
_MARK = "\0missing"


class MissingAs(WithMissing):
    """The values of another kind, where missing values have the index of a value or the next index.

    It only encodes columns, and has no label for missing values.
    """

    def __init__(self, values: Scalar, index: int) -> None:
        super().__init__(values, _MARK)
        self.size = max(values.size, index + 1)
        self.shape = (self.size,)
        self._missing_index = self.null_index = index

    def fault(self, value: object) -> Fault:
        return self.values.fault(value)


def with_missing(values: DomainKind, missing: object, at: At) -> DomainKind:
    """Return values with one more value for missing answers; the same values if ``missing`` is None."""
    if missing is None:
        return values
    if not isinstance(values, Scalar) or not isinstance(values.label(0), (str, int, float)):
        raise at.error("be None, because the values are tuples", missing, hint="Use missing= in the factors.")
    plain = as_label(missing)
    if plain is None or plain[0] != "str" or not missing:
        raise at.error("be a label for missing values: a str that is not empty", missing)
    label = str(plain[1])
    if values.place(label) >= 0:
        raise at.error("differ from the other labels", missing)
    if values.size >= LARGEST:
        raise at.error("be None, because the domain already has 2**31 values", missing)
    # A range is described by its bounds, because other readers of its size would overlook the value that is added.
    return WithMissing(Bounded(0, values.size, clips=False) if type(values) is Counted else values, label)
