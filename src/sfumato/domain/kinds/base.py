"""Base classes of the kinds of domain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers
from sfumato.domain.columns import Coded, Numbers, read_column
from sfumato.domain.refusals import At
from sfumato.domain.scalars import Label

#: Names of the kinds.
Kind: TypeAlias = Literal["list", "range", "numbers", "grid", "product"]
#: Index of each row (-1 if rejected), and a function that returns the value of a row.
Encoded: TypeAlias = tuple[Integers, Callable[[int], object]]
#: Rejected part of a value, its requirement, and the rejected object.
Fault: TypeAlias = tuple[str, str, object]
#: Function that converts a cell of a text file to a value or returns None, and the requirement in words.
CellReader: TypeAlias = tuple[Callable[[str], object | None], str]
#: Maximum number of labels.
LARGEST = 2**31


class DomainKind(ABC):
    """Interface of each way to describe a set; the index of a value that is not in the set is -1."""

    name: Kind
    size: int
    shape: tuple[int, ...]
    #: Whether the values have one dimension, and those that are numbers ascend.
    is_ordered: bool = False
    #: Whether the values are numbers, apart from the value for missing answers.
    is_numeric: bool = False
    #: Label of missing values, or None if they are rejected.
    missing: str | None = None

    @property
    def by_label(self) -> DomainKind:
        """The kind whose values are the labels of this one; it differs only for grids."""
        return self

    @property
    @abstractmethod
    def key(self) -> tuple[object, ...]:
        """Tuple that is equal for equal domains only."""

    @abstractmethod
    def label(self, index: int) -> Label:
        """Return the label at an index."""

    @abstractmethod
    def labels(self) -> Iterator[Label]:
        """Iterate over all labels in order."""

    @abstractmethod
    def place(self, value: object) -> int:
        """Return the index of one value, or -1."""

    @abstractmethod
    def fault(self, value: object) -> Fault:
        """Return why ``place(value)`` is -1: the rejected part of the value, its requirement, and the part itself."""

    @abstractmethod
    def encode(self, values: object, at: At) -> Encoded:
        """Return the index of each row or -1, and a function that returns the value of a row for messages."""

    @abstractmethod
    def decode(self, codes: Integers) -> list[Label]:
        """Return the label at each index."""

    def exact_numbers(self) -> list[Fraction | None] | None:
        """Return the number of each value, None for the missing value; None if the values are not numbers."""
        return None

    def numbers(self) -> Floats | None:
        """Return the numbers rounded to doubles, NaN for the missing value; None if the values are not numbers."""
        exact = self.exact_numbers()
        return None if exact is None else np.array([np.nan if number is None else float(number) for number in exact])

    def widths(self) -> Floats:
        """Return the width of the set of numbers that share a value, NaN for the missing value."""
        return np.zeros(self.size)

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return the document that describes this kind."""

    @abstractmethod
    def text(self) -> str:
        """Return the ``repr`` of the domain."""


class Scalar(DomainKind):
    """Kind whose values are in one column."""

    #: Index of null rows.
    null_index = -1
    #: Whether the reader of cells reads every decimal number as the nearest double.
    reads_decimals = False

    @property
    @abstractmethod
    def cell_reader(self) -> CellReader | None:
        """How cells of text files become values; None if they are values already."""

    @abstractmethod
    def of_items(self, items: list[Any]) -> Integers:
        """Return the index of each Python object, or -1."""

    @abstractmethod
    def of_array(self, array: npt.NDArray[Any]) -> Integers:
        """Return the indices of a bool, int, uint or float64 array.

        The result is a new array, or a read-only view of the argument if all its values are valid indices.
        """

    def encode(self, values: object, at: At) -> Encoded:
        column = read_column(values, at)
        if isinstance(column, Coded):
            # Code -1 (null) selects the last.
            codes = np.append(self.of_items(column.categories), self.null_index)[column.codes]
        elif isinstance(column, Numbers):
            codes = self.of_array(column.array)
            if column.nulls is not None:
                codes = np.where(column.nulls, self.null_index, codes)
        else:
            codes = self.of_items(column.objects)
        return codes, column.at

    def decode_array(self, codes: Integers) -> npt.NDArray[Any]:
        """Return the label at each index as an array of objects, because a fixed width would cut trailing NULs."""
        array = np.empty(len(codes), dtype=object)
        array[:] = self.decode(codes)
        return array


def number_array(items: list[Any]) -> npt.NDArray[Any] | None:
    """Return an array of Python objects that are all ints of 64 bits or all floats; None for other objects."""
    types = set(map(type, items))
    if types <= {int} or types <= {float}:
        try:
            return np.array(items, dtype=np.float64 if float in types else np.int64)
        except OverflowError:  # an int beyond int64
            pass
    return None
