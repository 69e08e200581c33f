"""Ranges: the ints from 0, stored as their number alone."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers
from sfumato.domain.kinds.base import LARGEST, CellReader, Fault, Scalar, number_array
from sfumato.domain.refusals import At
from sfumato.domain.scalars import STRING_READERS, Label, as_number


class Counted(Scalar):
    """Range of the ints 0..size-1."""

    name = "range"
    is_ordered = True
    is_numeric = True

    def __init__(self, size: int) -> None:
        self.size = size
        self.shape = (size,)

    @property
    def key(self) -> tuple[object, ...]:
        return ("range", self.size)

    def label(self, index: int) -> Label:
        return index

    def labels(self) -> Iterator[Label]:
        return iter(range(self.size))

    def place(self, value: object) -> int:
        number = as_number(value)
        if number is None or not 0 <= number < self.size or number != int(number):
            return -1
        return int(number)

    def fault(self, value: object) -> Fault:
        return "", f"be an int from 0 to {self.size - 1}", value

    def of_items(self, items: list[Any]) -> Integers:
        array = number_array(items)
        return np.array([self.place(item) for item in items], dtype=np.int64) if array is None else self.of_array(array)

    def of_array(self, array: npt.NDArray[Any]) -> Integers:
        if array.dtype.kind == "b":
            return np.full(len(array), -1, dtype=np.int64)
        if array.dtype.kind == "f":
            array = np.where((array >= 0) & (array < self.size), array, -1.0)
            codes = array.astype(np.int64)
            codes[codes != array] = -1
            return codes
        codes = np.require(array, np.int64, ["C_CONTIGUOUS", "ALIGNED"])
        # One comparison per value: read as unsigned, negative numbers exceed every size. So do uint64 beyond int64.
        if codes.view(np.uint64).max(initial=0) >= self.size:
            return np.where((codes < 0) | (codes >= self.size), -1, codes)
        codes = codes.view()
        if np.may_share_memory(codes, array):
            codes.flags.writeable = False
        return codes

    @property
    def cell_reader(self) -> CellReader | None:
        return STRING_READERS[int]

    def exact_numbers(self) -> list[Fraction | None] | None:
        return list(map(Fraction, range(self.size)))

    def numbers(self) -> Floats | None:
        return np.arange(self.size, dtype=np.float64)

    def decode_array(self, codes: Integers) -> npt.NDArray[Any]:
        return codes

    def decode(self, codes: Integers) -> list[Label]:
        return cast("list[Label]", codes.tolist())

    def document(self) -> dict[str, Any]:
        return {"size": self.size}

    def text(self) -> str:
        return f"Domain.range({self.size})"


def checked_size(k: object, at: At) -> int:
    """Return the size of a range, an int from 1 to 2**31."""
    number = as_number(k)
    if not isinstance(number, int) or not 1 <= number <= LARGEST:
        raise at.error("be an int from 1 to 2**31", k)
    return number
