"""What every kind of domain is."""

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

Encoded: TypeAlias = tuple[Integers, Callable[[int], object]]
Fault: TypeAlias = tuple[str, str, object]
LARGEST = 2**31


class DomainKind(ABC):
    """What ``Domain`` asks of each way to describe a set; -1 is the index of what is not in it."""

    name: Literal["list", "range", "grid", "product"]
    size: int
    shape: tuple[int, ...]

    @property
    def by_label(self) -> DomainKind:
        """The kind whose values are this one's labels; only a grid's values are something else."""
        return self

    @property
    @abstractmethod
    def key(self) -> tuple[object, ...]:
        """Equal for equal domains, and for no others."""

    @abstractmethod
    def label(self, index: int) -> Label: ...

    @abstractmethod
    def labels(self) -> Iterator[Label]: ...

    @abstractmethod
    def place(self, value: object) -> int:
        """The index of one value, or -1."""

    @abstractmethod
    def fault(self, value: object) -> Fault:
        """Why ``place(value)`` is -1: the part of the value at fault, what it must be, what it is."""

    @abstractmethod
    def encode(self, values: object, at: At) -> Encoded:
        """Each row's index or -1, and how to look a row's value up again for a message."""

    @abstractmethod
    def decode(self, codes: Integers) -> list[Label]: ...

    @abstractmethod
    def document(self) -> dict[str, Any]: ...

    @abstractmethod
    def text(self) -> str: ...


class Scalar(DomainKind):
    """A kind whose values come in one column."""

    @abstractmethod
    def of_items(self, items: list[Any]) -> Integers: ...

    @abstractmethod
    def of_array(self, array: npt.NDArray[Any]) -> Integers:
        """Indices of a bool, int, uint or float64 array: a fresh array, or read-only the given one, all of it valid."""

    def encode(self, values: object, at: At) -> Encoded:
        column = read_column(values, at)
        if isinstance(column, Coded):
            codes = np.append(self.of_items(column.categories), -1)[column.codes]  # null, -1, picks the last
        elif isinstance(column, Numbers):
            codes = self.of_array(column.array)
            if column.nulls is not None:
                codes = np.where(column.nulls, -1, codes)
        else:
            codes = self.of_items(column.objects)
        return codes, column.at
