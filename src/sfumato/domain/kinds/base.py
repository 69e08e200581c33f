"""Base classes of the kinds of domain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers
from sfumato.domain.columns import Coded, Numbers, read_column
from sfumato.domain.refusals import At
from sfumato.domain.scalars import Label

#: Index of each row (-1 if rejected), and a function that returns the value of a row.
Encoded: TypeAlias = tuple[Integers, Callable[[int], object]]
#: Rejected part of a value, its requirement, and the rejected object.
Fault: TypeAlias = tuple[str, str, object]
#: Maximum number of labels.
LARGEST = 2**31


class DomainKind(ABC):
    """Interface of each way to describe a set; the index of a value that is not in the set is -1."""

    name: Literal["list", "range", "grid", "product"]
    size: int
    shape: tuple[int, ...]

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

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return the document that describes this kind."""

    @abstractmethod
    def text(self) -> str:
        """Return the ``repr`` of the domain."""


class Scalar(DomainKind):
    """Kind whose values are in one column."""

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
            codes = np.append(self.of_items(column.categories), -1)[column.codes]  # code -1 (null) selects the last
        elif isinstance(column, Numbers):
            codes = self.of_array(column.array)
            if column.nulls is not None:
                codes = np.where(column.nulls, -1, codes)
        else:
            codes = self.of_items(column.objects)
        return codes, column.at
