"""Bounded integers: the ints from a first to a last one, with other numbers clipped or rejected."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers
from sfumato.domain.kinds.base import LARGEST, CellReader, DomainKind, Fault, Scalar, number_array
from sfumato.domain.kinds.counted import Counted
from sfumato.domain.refusals import At
from sfumato.domain.scalars import Label, as_double, as_number, read_double

#: Largest magnitude of a label: up to here, doubles represent every int and its neighbours.
_LARGEST_INT = 2**53 - 1


class Bounded(Scalar):
    """The ints low..high-1; if ``clips``, smaller numbers count as the first one and larger numbers as the last one."""

    name = "range"
    is_ordered = True
    is_numeric = True
    reads_decimals = True

    def __init__(self, low: int, high: int, *, clips: bool) -> None:
        self.low = low
        self.last = high - 1
        self.clips = clips
        self.size = high - low
        self.shape = (self.size,)

    @property
    def by_label(self) -> DomainKind:
        return Bounded(self.low, self.last + 1, clips=False) if self.clips else self

    @property
    def key(self) -> tuple[object, ...]:
        return ("bounded", self.low, self.last, self.clips)

    def label(self, index: int) -> Label:
        return self.low + index

    def labels(self) -> Iterator[Label]:
        return iter(range(self.low, self.last + 1))

    def place(self, value: object) -> int:
        number = as_number(value)
        if number is None:
            number = as_double(value)  # an infinity, a Decimal or a Fraction
        if number is None or not (self.clips or self.low <= number <= self.last):
            return -1
        number = min(max(number, self.low), self.last)
        return int(number) - self.low if number == int(number) else -1

    def fault(self, value: object) -> Fault:
        return "", f"be an int from {self.low} to {self.last}", value

    def of_items(self, items: list[Any]) -> Integers:
        array = number_array(items)
        return np.array([self.place(item) for item in items], dtype=np.int64) if array is None else self.of_array(array)

    def of_array(self, array: npt.NDArray[Any]) -> Integers:
        if array.dtype.kind == "b":
            return np.full(len(array), -1, dtype=np.int64)
        if array.dtype.kind == "f":
            clipped = np.clip(array, self.low, self.last)
            whole = np.where(np.isnan(clipped), self.low, clipped).astype(np.int64)
            accepted = whole == (clipped if self.clips else array)  # False for NaN
            return np.where(accepted, whole - self.low, -1)
        if array.dtype.kind == "u":
            array = np.minimum(array, np.uint64(2**63 - 1))  # larger numbers do not fit int64
        array = array.astype(np.int64, copy=False)
        whole = np.clip(array, self.low, self.last)
        return whole - self.low if self.clips else np.where(whole == array, whole - self.low, -1)

    @property
    def cell_reader(self) -> CellReader | None:
        return read_double, "be a number"  # programs write a column of ints with missing values as 36.0

    def exact_numbers(self) -> list[Fraction | None] | None:
        return list(map(Fraction, range(self.low, self.last + 1)))

    def numbers(self) -> Floats | None:
        return np.arange(self.low, self.last + 1, dtype=np.float64)

    def decode(self, codes: Integers) -> list[Label]:
        return cast("list[Label]", (codes + self.low).tolist())

    def decode_array(self, codes: Integers) -> npt.NDArray[Any]:
        return codes + self.low

    def document(self) -> dict[str, Any]:
        bounds = {"low": self.low, "high": self.last + 1}
        return bounds if self.clips else {**bounds, "out_of_range": "refuse"}

    def text(self) -> str:
        refused = "" if self.clips else ", out_of_range='refuse'"
        return f"Domain.range({self.low}, {self.last + 1}{refused})"


def range_of(low: object, high: object, at: At, high_at: At, *, clips: bool) -> Scalar:
    """Return the kind for the ints low..high-1; ``at`` and ``high_at`` are the places of the bounds in messages."""
    for bound, place in ((low, at), (high, high_at)):
        if not isinstance(as_number(bound), int) or abs(cast("int", as_number(bound))) > _LARGEST_INT:
            raise place.error("be an int between -2**53 and 2**53", bound)
    first, end = cast("int", as_number(low)), cast("int", as_number(high))
    if not 1 <= end - first <= LARGEST:
        raise high_at.error(f"be greater than the first label {first}, by at most 2**31", high)
    if first == 0 and not clips:
        return Counted(end)  # equal domains have the same description
    return Bounded(first, end, clips=clips)
