"""The finite, ordered, labelled set of values that an input or an output may take.

    Domain(["a", "b", "c"])                                            labels of one type
    Domain.range(1000)                                                 the ints 0..999, never listed
    Domain.grid(latitude=(s, n), longitude=(w, e), rows=8, columns=9)  the cells of a map
    Domain.product(S=["yes", "no"], U=Domain.range(12))                tuples, last factor fastest

A label's place in that order is its index. ``encode`` turns columns of values into indices and
refuses, by row, anything that is not a label: nothing is rounded, guessed or dropped on the way.
"""

from __future__ import annotations

import bisect
import csv
import difflib
import functools
import importlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput, MissingExtra

__all__ = ["Domain"]

Label: TypeAlias = str | int | bool | float | tuple["Label", ...]
Signature: TypeAlias = str | tuple["Signature", ...]
Codes: TypeAlias = npt.NDArray[np.int64]
Encoded: TypeAlias = tuple[Codes, Callable[[int], object]]
Fault: TypeAlias = tuple[str, str, object]

_LARGEST = 2**31
_EXACT_IN_FLOAT = 2**53
_DENSE = 2**16  # a lookup table this long is always worth its memory
_A = {"str": "a str", "int": "an int", "bool": "a bool", "float": "a finite float"}
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int, float),  # 3.0 equals 3, and a dict finds it so
    "float": (float, int),
    "bool": (bool,),
}


class Domain:
    """A finite set of distinct labels in a fixed order; immutable and hashable.

    ``Domain(labels)`` takes any ordered iterable of labels that are all ``str``, all ``int``, all
    ``bool`` or all finite ``float``. The ints 0..k-1 in order are the same domain as ``range(k)``.

    >>> answers = Domain(["yes", "no", "unsure"])
    >>> answers.encode(["no", "no", "yes"])
    array([1, 1, 0])
    >>> answers.encode(["no", "maybe"])
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidInput: Domain.encode: row 1 must be one of the str labels 'yes', 'no', \
'unsure'; got 'maybe'
    """

    __slots__ = ("_hash", "_kind")
    _kind: _Kind
    _hash: int

    def __init__(self, labels: Iterable[Label]) -> None:
        object.__setattr__(self, "_kind", _kind_of(labels, _At("Domain", "labels")))

    @classmethod
    def _of(cls, kind: _Kind) -> Domain:
        domain = cls.__new__(cls)
        object.__setattr__(domain, "_kind", kind)
        return domain

    @classmethod
    def range(cls, k: int) -> Domain:
        """The ints 0..k-1, held as the number k alone."""
        return cls._of(_Counted(_size(k, _At("Domain.range", "k"))))

    @classmethod
    def grid(
        cls,
        *,
        latitude: Sequence[float],
        longitude: Sequence[float],
        rows: int,
        columns: int,
    ) -> Domain:
        """The cells of a map, row by row from the south-west; a cell's label is ``(row, column)``.

        Bounds mean the decimals they are written as: an edge is computed exactly and rounded once.
        Cells hold their south and west edges; the outermost north and east edges belong to the last.
        """
        return cls._of(_grid(latitude, longitude, rows, columns, lambda name: _At("Domain.grid", name)))

    @classmethod
    def product(cls, /, **factors: Domain | Iterable[Label]) -> Domain:
        """All tuples with one label of each factor, in row-major order (last factor fastest)."""
        kinds = {name: _kind_of(factor, _At("Domain.product", name)) for name, factor in factors.items()}
        return cls._of(_product(kinds, _At("Domain.product", "factors")))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, base: Path | str | None = None) -> Domain:
        """The domain a document describes; ``{"file": ...}`` is read only when ``base`` is given.

        A file holds str labels: one a line, or, for ``.csv`` or with ``"column"``, a CSV column
        under a header row. Blank lines are no labels.
        """
        at = _At("Domain.from_dict", "document")
        return cls._of(_read(document, None if base is None else Path(base), at))

    def to_dict(self) -> dict[str, Any]:
        """A JSON and TOML document that ``from_dict`` turns back into an equal domain."""
        return self._kind.document()

    @property
    def kind(self) -> Literal["list", "range", "grid", "product"]:
        """How the domain was described."""
        return self._kind.name

    @property
    def size(self) -> int:
        """How many labels there are; also ``len(domain)``."""
        return self._kind.size

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of a product's factors, a grid's rows and columns, or ``(size,)``."""
        return self._kind.shape

    @property
    def labels(self) -> tuple[Label, ...]:
        """Every label, in order; prefer iteration for a large symbolic domain."""
        return tuple(self._kind.labels())

    @property
    def factors(self) -> dict[str, Domain]:
        """A product's factors by name, in order; empty for any other domain."""
        if self._kind.name != "product" or not isinstance(self._kind, _Product):  # a grid is also one inside
            return {}
        return {name: Domain._of(kind) for name, kind in self._kind.factors.items()}

    @property
    def edges(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The latitude and the longitude edges of a grid's cells, ascending."""
        grid = self._grid_only("edges")
        return grid.latitude.edges, grid.longitude.edges

    def centres(self) -> npt.NDArray[np.float64]:
        """The latitude and longitude of each cell's centre in a grid, one row a cell."""
        return self._grid_only("centres").centres()

    def _grid_only(self, asked: str) -> _Grid:
        if not isinstance(self._kind, _Grid):
            raise InvalidInput(f"Domain.{asked}", "domain", "be a grid", self)
        return self._kind

    def label(self, index: int) -> Label:
        """The label at ``index``."""
        return self._kind.label(_place(_Counted(self.size), index, _At("Domain.label", "index")))

    def index(self, label: object) -> int:
        """The index of ``label`` (for a grid ``(row, column)``)."""
        return _place(self._kind.by_label, label, _At("Domain.index", "label"))

    def encode(self, values: object) -> Codes:
        """The index of each value: a list, a NumPy, Arrow, pandas or polars column.

        A grid takes points ``(latitude, longitude)``, a product takes tuples; both also take a table
        (mapping, DataFrame, Arrow table) with a column for each part. Unknown values, nulls and NaN
        are refused, naming the first such row. A bool is never an int.
        """
        return _encode(self._kind, values, _At("Domain.encode", "values"))

    def encode_one(self, value: object) -> int:
        """The index of one value, as strict as ``encode`` and without NumPy."""
        return _place(self._kind, value, _At("Domain.encode_one", "value"))

    def decode(self, indices: object) -> list[Label]:
        """The label at each index."""
        return self._kind.decode(_encode(_Counted(self.size), indices, _At("Domain.decode", "indices")))

    def decode_array(self, indices: object) -> npt.NDArray[Any]:
        """The label at each index as a bool, int64, float64 or (for str and larger ints) object array."""
        codes = _encode(_Counted(self.size), indices, _At("Domain.decode_array", "indices"))
        if isinstance(self._kind, _Counted):
            return codes
        if isinstance(self._kind, _Listed) and isinstance(self._kind.signature, str):
            return self._kind.array[codes]
        at = _At("Domain.decode_array", "domain")
        raise at.refuse("have scalar labels (decode gives tuples)", self)

    def subset(self, labels: Iterable[Label]) -> Domain:
        """A list domain of these labels of this one, in the order given."""
        at = _At("Domain.subset", "labels")
        looked_up = self._kind.by_label
        chosen = [_place(looked_up, label, at.item(i)) for i, label in enumerate(_column(labels, at).items())]
        return Domain._of(_listed([self._kind.label(i) for i in chosen], at, tuples=True))

    def __len__(self) -> int:
        return self._kind.size

    def __iter__(self) -> Iterator[Label]:
        return self._kind.labels()

    def __contains__(self, label: object) -> bool:
        return self._kind.by_label.place(label) >= 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        return self._kind is other._kind or self._kind.key == other._kind.key

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:  # a long label list is hashed once
            object.__setattr__(self, "_hash", hash(self._kind.key))
            return self._hash

    def __repr__(self) -> str:
        return self._kind.text()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Domain is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Domain is immutable: cannot delete {name!r}")

    def __reduce__(self) -> tuple[Callable[[Mapping[str, Any]], Domain], tuple[dict[str, Any]]]:
        return Domain.from_dict, (self.to_dict(),)


# Refusals ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _At:
    """The place a refusal names: which parameter of what."""

    what: str
    parameter: str

    def item(self, key: object) -> _At:
        return _At(self.what, f"{self.parameter}[{key!r}]")

    def then(self, text: str) -> _At:
        return _At(self.what, self.parameter + text)

    def refuse(self, must: str, got: object) -> InvalidInput:
        return InvalidInput(self.what, self.parameter, must, got)


def _place(kind: _Kind, value: object, at: _At) -> int:
    code = kind.place(value)
    if code < 0:
        part, must, got = kind.fault(value)
        raise at.then(part).refuse(must, got)
    return code


def _encode(kind: _Kind, values: object, at: _At) -> Codes:
    codes, value_at = kind.encode(values, at)
    if codes.min(initial=0) < 0:
        refused = codes < 0
        row = int(refused.argmax())
        more = int(np.count_nonzero(refused)) - 1
        part, must, got = kind.fault(value_at(row))
        others = f" (and {more} more row{'s' if more > 1 else ''})" if more else ""
        raise InvalidInput(at.what, f"row {row}{part}{others}", must, got)
    return codes


def _listing(labels: Sequence[object], most: int = 5) -> str:
    """The first labels, each cut short, and how many are left out."""
    texts = [text if len(text) <= 30 else text[:29] + "…" for text in map(repr, labels[:most])]
    left = len(labels) - len(texts)
    return ", ".join(texts) + (f", … {left} more" if left else "")


# Kinds of domain --------------------------------------------------------------------------------


class _Kind(ABC):
    """What ``Domain`` asks of each way to describe a set; -1 is the index of what is not in it."""

    name: Literal["list", "range", "grid", "product"]
    size: int
    shape: tuple[int, ...]

    @property
    def by_label(self) -> _Kind:
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
    def encode(self, values: object, at: _At) -> Encoded:
        """Each row's index or -1, and how to look a row's value up again for a message."""

    @abstractmethod
    def decode(self, codes: Codes) -> list[Label]: ...

    @abstractmethod
    def document(self) -> dict[str, Any]: ...

    @abstractmethod
    def text(self) -> str: ...


class _Scalar(_Kind):
    """A kind whose values come in one column."""

    @abstractmethod
    def of_items(self, items: list[Any]) -> Codes: ...

    @abstractmethod
    def of_array(self, array: npt.NDArray[Any]) -> Codes:
        """Indices of a bool, int, uint or float64 array; a fresh array."""

    def encode(self, values: object, at: _At) -> Encoded:
        column = _column(values, at)
        if isinstance(column, _Coded):
            codes = np.append(self.of_items(column.levels), -1)[column.codes]  # null, -1, picks the last
        elif isinstance(column, _Numbers):
            codes = self.of_array(column.array)
            if column.nulls is not None:
                codes[column.nulls] = -1
        else:
            codes = self.of_items(column.objects)
        return codes, column.at


class _Counted(_Scalar):
    """The ints 0..size-1."""

    name = "range"

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
        number = _number(value)
        if number is None or not 0 <= number < self.size or number != int(number):
            return -1
        return int(number)

    def fault(self, value: object) -> Fault:
        return "", f"be an int from 0 to {self.size - 1}", value

    def of_items(self, items: list[Any]) -> Codes:
        types = set(map(type, items))
        if types <= {int} or types <= {float}:
            try:
                return self.of_array(np.array(items, dtype=np.float64 if float in types else np.int64))
            except OverflowError:  # an int beyond int64 is refused below, by its row
                pass
        return np.array([self.place(item) for item in items], dtype=np.int64)

    def of_array(self, array: npt.NDArray[Any]) -> Codes:
        if array.dtype.kind == "b":
            return np.full(len(array), -1, dtype=np.int64)
        if array.dtype.kind == "f":
            array = np.where((array >= 0) & (array < self.size), array, -1.0)
            codes = array.astype(np.int64)
            codes[codes != array] = -1
            return codes
        codes = array.astype(np.int64)  # uint64 beyond int64 wraps to below zero, and is refused
        if codes.min(initial=0) < 0 or codes.max(initial=0) >= self.size:
            codes[(codes < 0) | (codes >= self.size)] = -1
        return codes

    def decode(self, codes: Codes) -> list[Label]:
        return cast("list[Label]", codes.tolist())

    def document(self) -> dict[str, Any]:
        return {"size": self.size}

    def text(self) -> str:
        return f"Domain.range({self.size})"


class _Listed(_Scalar):
    """Labels one by one: scalars of one type, or (from ``subset``) tuples of one signature."""

    name = "list"

    def __init__(self, labels: tuple[Label, ...], table: dict[Label, int], signature: Signature) -> None:
        self.size = len(labels)
        self.shape = (self.size,)
        self.signature = signature
        self._labels = labels
        self._table = table
        self._reader = _reader(signature)
        self._types = frozenset(_TYPES[signature]) if isinstance(signature, str) else frozenset()

    @property
    def key(self) -> tuple[object, ...]:
        # The signature keeps 1, 1.0 and True apart, which Python holds equal.
        return ("list", self.signature, self._labels)

    def label(self, index: int) -> Label:
        return self._labels[index]

    def labels(self) -> Iterator[Label]:
        return iter(self._labels)

    def place(self, value: object) -> int:
        return self._table.get(self._reader(value), -1)  # type: ignore[arg-type]  # None is no label

    def fault(self, value: object) -> Fault:
        kind = self.signature if isinstance(self.signature, str) else "tuple"
        return "", f"be one of the {kind} labels {_listing(self._labels)}", value

    def of_items(self, items: list[Any]) -> Codes:
        if not set(map(type, items)) <= self._types:
            items = list(map(self._reader, items))
        find = self._table.get
        return np.fromiter((find(item, -1) for item in items), dtype=np.int64, count=len(items))

    def of_array(self, array: npt.NDArray[Any]) -> Codes:
        given = array.dtype.kind
        if self.signature == "bool" and given == "b":
            return np.array([self._table.get(False, -1), self._table.get(True, -1)])[array.astype(np.intp)]
        if self.signature not in ("int", "float") or given == "b" or len(array) == 0:
            return np.full(len(array), -1, dtype=np.int64)
        if self.signature == "float":
            if given == "f" or (array.min() >= -_EXACT_IN_FLOAT and array.max() <= _EXACT_IN_FLOAT):
                return self._search(array.astype(np.float64, copy=False))
        elif self._fits:
            if given == "f":
                if array.min() >= -(2.0**63) and array.max() < 2.0**63:  # False for NaN
                    whole = array.astype(np.int64)
                    codes = self._search(whole)
                    codes[whole != array] = -1
                    return codes
            elif given == "i" or array.max() < 2**63:
                return self._search(array.astype(np.int64, copy=False))
        # What the labels' own dtype cannot hold exactly is compared as Python numbers, exactly.
        distinct, rows = np.unique(array, return_inverse=True)
        return self.of_items(distinct.tolist())[rows.reshape(-1)]

    @functools.cached_property
    def array(self) -> npt.NDArray[Any]:
        """The scalar labels as an array; str as objects, for a fixed width would cut trailing NULs."""
        if self.signature == "str" or (self.signature == "int" and not self._fits):
            array = np.empty(self.size, dtype=object)
            array[:] = self._labels
            return array
        return np.array(self._labels)

    @functools.cached_property
    def _fits(self) -> bool:
        """Whether int labels fit int64."""
        labels = cast("tuple[int, ...]", self._labels)
        return min(labels) >= -(2**63) and max(labels) < 2**63

    @functools.cached_property
    def _sorted(self) -> tuple[npt.NDArray[Any], Codes]:
        order = np.argsort(self.array, kind="stable").astype(np.int64)
        return self.array[order], order

    @functools.cached_property
    def _dense(self) -> tuple[int, int, Codes] | None:
        """Lowest and highest int label and the index of each int between; None when too sparse."""
        low, high = int(self._sorted[0][0]), int(self._sorted[0][-1])
        if high - low >= max(_DENSE, 8 * self.size):
            return None
        table = np.full(high - low + 1, -1, dtype=np.int64)
        table[self.array - low] = np.arange(self.size)
        return low, high, table

    def _search(self, array: npt.NDArray[Any]) -> Codes:
        """Indices of an array of the labels' own dtype."""
        if self.signature == "int" and self._dense is not None:
            low, high, table = self._dense
            if array.min() >= low and array.max() <= high:
                return cast("Codes", table[array - low])
            inside = (array >= low) & (array <= high)
            codes: Codes = table[np.where(inside, array, low) - low]
            codes[~inside] = -1
            return codes
        labels, order = self._sorted
        near = np.minimum(np.searchsorted(labels, array), self.size - 1)
        codes = order[near]
        codes[labels[near] != array] = -1
        return codes

    def decode(self, codes: Codes) -> list[Label]:
        return list(map(self._labels.__getitem__, codes.tolist()))

    def document(self) -> dict[str, Any]:
        return {"values": [_nested_lists(label) for label in self._labels]}

    def text(self) -> str:
        return f"Domain([{_listing(self._labels)}])"


class _Axis(_Counted):
    """The numbers from ``low`` to ``high`` in ``size`` equal steps; the last step holds both its ends."""

    def __init__(self, low: float, high: float, size: int) -> None:
        super().__init__(size)
        self.low = low
        self.high = high

    @property
    def by_label(self) -> _Kind:
        return _Counted(self.size)

    @property
    def key(self) -> tuple[object, ...]:
        return ("axis", self.low, self.high, self.size)

    def ticks(self, steps: int, which: range) -> list[float]:
        """Some of the ends of ``steps`` equal steps, each the float nearest to the exact decimal."""
        low, high = Fraction(repr(self.low)), Fraction(repr(self.high))
        unit = math.lcm(low.denominator, high.denominator)
        start, stop = int(low * unit), int(high * unit)
        # Python rounds the quotient of two ints correctly, as a Fraction would and ten times faster.
        return [(start * (steps - i) + stop * i) / (unit * steps) for i in which]

    @functools.cached_property
    def edges(self) -> npt.NDArray[np.float64]:
        edges = np.array(self.ticks(self.size, range(self.size + 1)))
        edges.flags.writeable = False  # handed out, and the domain is immutable
        return edges

    def centres(self) -> npt.NDArray[np.float64]:
        return np.array(self.ticks(2 * self.size, range(1, 2 * self.size, 2)))

    @functools.cached_property
    def _edge_list(self) -> list[float]:
        return cast("list[float]", self.edges.tolist())

    def place(self, value: object) -> int:
        number = _number(value)
        if number is None or not self.low <= number <= self.high:
            return -1
        return min(bisect.bisect_right(self._edge_list, number), self.size) - 1

    def fault(self, value: object) -> Fault:
        return "", f"be a number from {self.low} to {self.high}", value

    def of_array(self, array: npt.NDArray[Any]) -> Codes:
        if array.dtype.kind == "b":
            return np.full(len(array), -1, dtype=np.int64)
        array = array.astype(np.float64, copy=False)
        codes = np.searchsorted(self.edges, array, side="right").astype(np.int64, copy=False) - 1
        codes[array == self.high] = self.size - 1
        codes[~(array <= self.high)] = -1  # NaN too
        return codes


class _Product(_Kind):
    """Tuples of labels, row-major."""

    name: Literal["grid", "product"] = "product"

    def __init__(self, factors: Mapping[str, _Kind], spellings: Sequence[tuple[str, ...]] = ()) -> None:
        self.factors = dict(factors)
        self.kinds = tuple(factors.values())
        self.shape = tuple(kind.size for kind in self.kinds)
        self.size = math.prod(self.shape)
        self.spellings = spellings or tuple((name,) for name in factors)

    @property
    def by_label(self) -> _Kind:
        looked_up = {name: kind.by_label for name, kind in self.factors.items()}
        return self if looked_up == self.factors else _Product(looked_up)

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
        parts = _parts(value, self.spellings)
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
        parts = _parts(value, self.spellings)
        for (name, kind), part in zip(self.factors.items(), parts or (), strict=False):
            if kind.place(part) < 0:
                inner, must, got = kind.fault(part)
                return self.part(name) + inner, must, got
        return "", f"be a tuple ({', '.join(self.factors)})", value

    def encode(self, values: object, at: _At) -> Encoded:
        columns = _split(values, self.spellings, at)
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

    def decode(self, codes: Codes) -> list[Label]:
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


class _Grid(_Product):
    """Cells of a map: values are points, labels are pairs of a row and a column number."""

    name = "grid"

    def __init__(self, latitude: _Axis, longitude: _Axis) -> None:
        spellings = (("latitude", "lat"), ("longitude", "lon"))
        super().__init__({"latitude": latitude, "longitude": longitude}, spellings)
        self.latitude = latitude
        self.longitude = longitude

    @property
    def by_label(self) -> _Kind:
        return _Product({"row": self.latitude.by_label, "column": self.longitude.by_label})

    def part(self, name: str) -> str:
        return f", {name}"

    def centres(self) -> npt.NDArray[np.float64]:
        latitudes, longitudes = self.latitude.centres(), self.longitude.centres()
        return np.column_stack([np.repeat(latitudes, len(longitudes)), np.tile(longitudes, len(latitudes))])

    def document(self) -> dict[str, Any]:
        bounds = {name: [axis.low, axis.high] for name, axis in self._axes()}
        return {"grid": {**bounds, "rows": self.shape[0], "columns": self.shape[1]}}

    def text(self) -> str:
        bounds = ", ".join(f"{name}=({axis.low}, {axis.high})" for name, axis in self._axes())
        return f"Domain.grid({bounds}, rows={self.shape[0]}, columns={self.shape[1]})"

    def _axes(self) -> tuple[tuple[str, _Axis], ...]:
        return ("latitude", self.latitude), ("longitude", self.longitude)


def _tuples(kinds: tuple[_Kind, ...]) -> Iterator[tuple[Label, ...]]:
    """As ``itertools.product``, which would first list every factor in full."""
    if not kinds:
        yield ()
        return
    for head in kinds[0].labels():
        for tail in _tuples(kinds[1:]):
            yield (head, *tail)


# Building kinds ---------------------------------------------------------------------------------


def _kind_of(labels: object, at: _At) -> _Kind:
    if isinstance(labels, Domain):
        return labels._kind
    if isinstance(labels, range) and labels.start == 0 and labels.step == 1 and len(labels) > 0:
        return _Counted(_size(len(labels), at))
    return _listed(_column(labels, at).items(), at)


def _size(k: object, at: _At) -> int:
    """An int from 1 to 2**31."""
    number = _number(k)
    if not isinstance(number, int) or not 1 <= number <= _LARGEST:
        raise at.refuse("be an int from 1 to 2**31", k)
    return number


def _listed(given: list[Any], at: _At, *, tuples: bool = False) -> _Kind:
    """The kind for these labels, which may be tuples only if they come from another domain."""
    if not 1 <= len(given) <= _LARGEST:
        raise at.refuse("hold from 1 to 2**31 labels", given)
    allowed = "a str, an int, a bool or a finite float" + (", or a tuple of such" if tuples else "")
    labels: list[Label] = []
    signature: Signature | None = None
    for i, value in enumerate(given):
        plain = _plain(value, tuples=tuples)
        if plain is None:
            raise at.item(i).refuse(f"be {allowed}", value)
        if signature is None:
            signature = plain[0]
        elif plain[0] != signature:
            one = _A.get(str(signature), f"a tuple of {signature}")
            raise at.item(i).refuse(f"be {one}, as {at.item(0).parameter} is", value)
        labels.append(plain[1])
    table = {label: i for i, label in enumerate(labels)}
    if len(table) < len(labels):
        first = next(i for i, label in enumerate(labels) if table[label] != i)
        places = [at.item(i).parameter for i, label in enumerate(labels) if label == labels[first]]
        named = ", ".join(places[:4]) + (f" and {len(places) - 4} more" if len(places) > 4 else "")
        raise _At(at.what, named).refuse("be distinct", labels[first])
    assert signature is not None
    if signature == "int" and labels[0] == 0 and labels == list(range(len(labels))):
        return _Counted(len(labels))  # one domain, one description
    return _Listed(tuple(labels), table, signature)


def _product(factors: Mapping[str, _Kind], at: _At) -> _Kind:
    if len(factors) < 2:
        raise at.refuse("be at least two", list(factors))
    product = _Product(factors)
    if product.size > _LARGEST:
        raise at.refuse("have at most 2**31 combinations", dict(zip(factors, product.shape, strict=True)))
    return product


def _grid(
    latitude: object,
    longitude: object,
    rows: object,
    columns: object,
    at: Callable[[str], _At],
) -> _Kind:
    south_north = _axis(latitude, 90, _size(rows, at("rows")), at("latitude"), at("rows"))
    west_east = _axis(longitude, 180, _size(columns, at("columns")), at("longitude"), at("columns"))
    if south_north.size * west_east.size > _LARGEST:
        raise at("rows").refuse("make at most 2**31 cells with columns", (south_north.size, west_east.size))
    return _Grid(south_north, west_east)


def _axis(bounds: object, most: int, steps: int, at: _At, steps_at: _At) -> _Axis:
    parts = _parts(bounds, ((), ())) or ()
    numbers = [number for number in map(_number, parts) if number is not None and -most <= number <= most]
    if len(numbers) < 2 or not numbers[0] < numbers[1]:
        raise at.refuse(f"be two ascending numbers from -{most} to {most}", bounds)
    low, high = (float(number) + 0.0 for number in numbers)  # -0.0 becomes 0.0, its equal
    # Steps wider than two spacings of floats cannot round to equal edges.
    if (Fraction(high) - Fraction(low)) / steps <= 2 * Fraction(math.ulp(max(abs(low), abs(high)))):
        raise steps_at.refuse("leave each cell wider than floats can resolve", steps)
    return _Axis(low, high, steps)


# Documents --------------------------------------------------------------------------------------

_COMPANIONS = {"values": None, "size": None, "grid": None, "product": "order", "file": "column"}
_GRID_KEYS = ("latitude", "longitude", "rows", "columns")


def _read(document: object, base: Path | None, at: _At) -> _Kind:
    if not isinstance(document, Mapping):
        raise at.refuse("be a mapping", document)
    _known_keys(document, [*_COMPANIONS, *filter(None, _COMPANIONS.values())], at)
    said = [key for key in _COMPANIONS if key in document]
    if len(said) != 1:
        raise at.refuse(f"have exactly one of the keys {_listing(list(_COMPANIONS))}", list(document))
    kind = said[0]
    content = document[kind]
    _known_keys(document, [key for key in (kind, _COMPANIONS[kind]) if key], at)
    here = at.item(kind)
    if kind == "values":
        if not isinstance(content, (list, tuple)):
            raise here.refuse("be a list of labels", content)
        return _listed(list(content), here, tuples=True)
    if kind == "size":
        return _Counted(_size(content, here))
    if kind == "grid":
        return _read_grid(content, here)
    if kind == "product":
        return _read_product(content, document.get("order"), base, at)
    return _listed(_file_labels(content, document.get("column"), base, here), here)


def _read_grid(content: object, at: _At) -> _Kind:
    if not isinstance(content, Mapping):
        raise at.refuse("be a mapping", content)
    _known_keys(content, _GRID_KEYS, at)
    missing = [key for key in _GRID_KEYS if key not in content]
    if missing:
        raise at.refuse(f"have the keys {_listing(missing)}", list(content))
    latitude, longitude, rows, columns = (content[key] for key in _GRID_KEYS)
    return _grid(latitude, longitude, rows, columns, at.item)


def _read_product(content: object, order: object, base: Path | None, at: _At) -> _Kind:
    here = at.item("product")
    if not isinstance(content, Mapping) or not all(isinstance(name, str) for name in content):
        raise here.refuse("be a mapping from factor names to domains", content)
    if order is None:
        order = list(content)
    if not isinstance(order, (list, tuple)) or sorted(map(repr, order)) != sorted(map(repr, content)):
        raise at.item("order").refuse(f"name each of the factors {_listing(list(content))} once", order)
    factors: dict[str, _Kind] = {}
    for name in order:
        factor, place = content[name], here.item(name)
        listed = isinstance(factor, (list, tuple))
        factors[name] = _listed(list(factor), place, tuples=True) if listed else _read(factor, base, place)
    return _product(factors, here)


def _known_keys(document: Mapping[Any, Any], known: Sequence[str], at: _At) -> None:
    for key in document:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, n=1)
            meant = f" (did you mean {close[0]!r}?)" if close else ""
            raise at.then(" key").refuse(f"be one of {_listing(known, most=len(known))}{meant}", key)


def _file_labels(name: object, column: object, base: Path | None, at: _At) -> list[str]:
    if base is None:
        raise at.refuse("come with base=, the folder it lies in", name)
    if not isinstance(name, str) or not name or Path(name).is_absolute():
        raise at.refuse("be a path relative to base", name)
    if column is not None and not isinstance(column, str):
        raise at.then(" column").refuse("be a column name", column)
    path = base / name
    try:
        if column is None and path.suffix.lower() != ".csv":
            return [line for line in path.read_text(encoding="utf-8-sig").split("\n") if line]
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _csv_labels(csv.reader(file, strict=True), column, at)
    except OSError as error:
        raise at.refuse(f"be a readable file ({error.strerror})", str(path)) from error
    except UnicodeDecodeError as error:
        raise at.refuse("be UTF-8 text", str(path)) from error
    except csv.Error as error:
        raise at.refuse(f"be a well-formed CSV file ({error})", str(path)) from error


def _csv_labels(lines: Any, column: str | None, at: _At) -> list[str]:
    header: list[str] = next(lines, [])
    if column is None and len(header) != 1:
        raise at.then(" column").refuse("be named, for this CSV has not exactly one", header)
    if column is not None and header.count(column) != 1:
        raise at.then(" column").refuse(f"occur once in the header {header}", column)
    place = 0 if column is None else header.index(column)
    labels: list[str] = []
    for cells in lines:
        if not cells:
            continue
        if len(cells) != len(header) or not cells[place]:
            raise at.then(f", line {lines.line_num},").refuse("hold a label in the column", cells)
        labels.append(cells[place])
    return labels


def _nested_lists(label: Label) -> Any:
    return list(map(_nested_lists, label)) if isinstance(label, tuple) else label


# Scalars ----------------------------------------------------------------------------------------


def _plain(value: object, *, tuples: bool = False) -> tuple[Signature, Label] | None:
    """The built-in scalar a value is, with the name of its type; None when it can be no label."""
    if isinstance(value, (bool, np.bool_)):
        return "bool", bool(value)
    if isinstance(value, str):
        text = str.__str__(value)  # a subclass may print as something else
        return ("str", text) if text.isascii() or _is_unicode(text) else None
    if isinstance(value, np.timedelta64):  # NumPy counts it among the integers
        return None
    if isinstance(value, (int, np.integer)):
        return "int", int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value) + 0.0  # -0.0 becomes 0.0, its equal
        return ("float", number) if math.isfinite(number) and number == value else None
    if tuples and isinstance(value, (tuple, list)) and value:
        parts = [_plain(part, tuples=True) for part in value]
        if None not in parts:
            signatures, labels = zip(*cast("list[tuple[Signature, Label]]", parts), strict=True)
            return signatures, labels
    return None


def _is_unicode(text: str) -> bool:
    """Whether UTF-8, and so a document, can hold the text: a lone surrogate cannot be written."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(value: object) -> int | float | None:
    """A finite built-in int or float equal to the value, which must be a number and no bool."""
    if type(value) is int or (type(value) is float and math.isfinite(value)):  # nearly always
        return value
    plain = _plain(value)
    if plain is None or plain[0] not in ("int", "float"):
        return None
    return cast("int | float", plain[1])


def _reader(signature: Signature) -> Callable[[object], Label | None]:
    """What turns a value into the built-in to look up among labels of this signature, or None."""
    if isinstance(signature, tuple):
        readers = [_reader(part) for part in signature]

        def read_tuple(value: object) -> Label | None:
            if not isinstance(value, (tuple, list)) or len(value) != len(readers):
                return None
            parts = [read(part) for read, part in zip(readers, value, strict=True)]
            return cast("Label", tuple(parts))  # with a None in it, it is no label either

        return read_tuple

    types = frozenset(_TYPES[signature])
    accepted = {kind.__name__ for kind in types}

    def read(value: object) -> Label | None:
        if type(value) in types:
            return cast("Label", value)
        plain = _plain(value)
        return plain[1] if plain is not None and plain[0] in accepted else None

    return read


# Columns ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Numbers:
    """A bool, int, uint or float64 array, and which of its rows are null."""

    array: npt.NDArray[Any]
    nulls: npt.NDArray[np.bool_] | None = None

    def at(self, row: int) -> object:
        return None if self.nulls is not None and self.nulls[row] else self.array[row].item()

    def items(self) -> list[Any]:
        if self.nulls is None:
            return cast("list[Any]", self.array.tolist())
        return [self.at(row) for row in range(len(self.array))]


@dataclass(frozen=True, slots=True)
class _Coded:
    """Positions in a list of values, -1 for null: a dictionary-encoded or categorical column."""

    codes: npt.NDArray[Any]
    levels: list[Any]

    def at(self, row: int) -> object:
        return None if self.codes[row] < 0 else self.levels[self.codes[row]]

    def items(self) -> list[Any]:
        return [self.at(row) for row in range(len(self.codes))]


@dataclass(frozen=True, slots=True)
class _Objects:
    """Python objects of any type."""

    objects: list[Any]

    def at(self, row: int) -> object:
        return self.objects[row]

    def items(self) -> list[Any]:
        return self.objects


_Column: TypeAlias = _Numbers | _Coded | _Objects


def _column(values: object, at: _At) -> _Column:
    """Any column-like object, without loss."""
    if isinstance(values, list):
        return _Objects(values)
    if isinstance(values, np.ndarray):
        return _from_numpy(values, at)
    if isinstance(values, (str, bytes, bytearray, Mapping)):
        raise at.refuse("be a list or a column", values)
    if isinstance(values, (set, frozenset)):
        raise at.refuse("have an order, which a set has not (use sorted)", values)
    if _library(values) == "pandas":
        return _from_pandas(values, at)
    if _is_arrow(values):
        return _from_arrow(_arrow_column(values))
    if hasattr(values, "__array__"):
        return _from_numpy(np.asarray(values), at)
    if isinstance(values, Iterable):
        return _Objects(list(values))
    raise at.refuse("be a list or a column", values)


def _from_numpy(array: npt.NDArray[Any], at: _At) -> _Column:
    if array.ndim != 1:
        raise at.refuse("have one dimension", array.shape)
    if isinstance(array, np.ma.MaskedArray):
        return _Objects(array.tolist())  # masked rows become None
    kind, width = array.dtype.kind, array.dtype.itemsize
    if kind in "biu":
        return _Numbers(np.asarray(array))
    if kind == "f" and width <= 8:
        return _Numbers(np.asarray(array.astype(np.float64, copy=False)))
    if kind in "OUT":
        return _Objects(array.tolist())
    return _Objects(list(array))  # tolist would turn times into bare ints


def _library(values: object) -> str:
    return type(values).__module__.partition(".")[0]


def _from_pandas(values: Any, at: _At) -> _Column:
    if not hasattr(values, "dtype"):
        raise at.refuse("be a list or a column", type(values))
    dtype = values.dtype
    if isinstance(dtype, np.dtype):
        return _from_numpy(np.asarray(values), at)
    array = getattr(values, "array", values)
    if hasattr(dtype, "categories"):
        return _Coded(np.asarray(array.codes), list(array.categories))
    arrow_backed = hasattr(dtype, "pyarrow_dtype") or dtype.name in ("str", "string")
    nullable_number = hasattr(dtype, "numpy_dtype") and dtype.kind in "biuf"
    if arrow_backed or nullable_number:
        try:
            return _from_arrow(_arrow_column(array.__arrow_array__()))
        except ImportError:  # pandas can do without pyarrow, only slower
            pass
    return _from_numpy(np.asarray(values), at)


def _is_arrow(values: object) -> bool:
    return hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")


def _pyarrow() -> Any:
    try:
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingExtra("arrow", "reading an Arrow or polars column") from error


def _arrow_column(values: Any) -> Any:
    """A ``pyarrow.ChunkedArray`` of anything that speaks Arrow; a table becomes a column of structs."""
    pyarrow = _pyarrow()
    if _library(values) == "polars":  # whose older releases stream a Categorical wrongly
        values = values.to_arrow()
    if isinstance(values, pyarrow.ChunkedArray):
        return values
    if hasattr(values, "__arrow_c_stream__"):
        return pyarrow.chunked_array(values)
    return pyarrow.chunked_array([values if isinstance(values, pyarrow.Array) else pyarrow.array(values)])


def _from_arrow(column: Any) -> _Column:
    pyarrow = _pyarrow()
    types, kind = pyarrow.types, column.type
    if types.is_string_view(kind):
        column = column.cast(pyarrow.large_string())
    if types.is_string(column.type) or types.is_large_string(column.type):
        column = column.dictionary_encode()
    if types.is_dictionary(column.type):
        chunks = column.unify_dictionaries().chunks
        if not chunks:
            return _Objects([])
        codes = pyarrow.chunked_array([chunk.indices for chunk in chunks]).cast(pyarrow.int64())
        return _Coded(codes.fill_null(-1).to_numpy(), chunks[0].dictionary.to_pylist())
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind):
        nulls = None
        if column.null_count:
            nulls = column.is_null().to_numpy()
            column = column.fill_null(pyarrow.scalar(0).cast(kind))
        array = column.to_numpy()
        return _Numbers(array.astype(np.float64, copy=False) if array.dtype.kind == "f" else array, nulls)
    return _Objects(column.to_pylist())


def _split(values: object, spellings: Sequence[Sequence[str]], at: _At) -> list[Any]:
    """One column for each part of a row: by name from a table, by position from tuples."""
    if _library(values) != "pandas" and _is_arrow(values):
        values = _arrow_column(values)  # once, for a stream can be read only once
    table = _table(values)
    if table is not None:
        names, column = table
        return [column(_only(names, spelling, at)) for spelling in spellings]
    width = len(spellings)
    must = f"be a tuple ({', '.join(spelling[0] for spelling in spellings)})"
    if isinstance(values, np.ndarray) and values.ndim == 2:
        if values.shape[1] != width:
            raise at.then(", each row").refuse(must, values.shape)
        return list(values.T)
    rows = _column(values, at).items()
    if not (set(map(type, rows)) <= {tuple, list} and set(map(len, rows)) <= {width}):
        for i, row in enumerate(rows):
            if _parts(row, spellings) is None:
                raise InvalidInput(at.what, f"row {i}", must, row)
        rows = [_parts(row, spellings) for row in rows]
    return [[row[part] for row in rows] for part in range(width)]


def _table(values: Any) -> tuple[list[Any], Callable[[int], Any]] | None:
    """The names in a table (from Arrow: a column of structs) and how to get a column by its position."""
    if isinstance(values, Mapping):
        names = list(values)
        return names, lambda i: values[names[i]]
    if isinstance(values, np.ndarray):
        names = list(values.dtype.names or ())
        return (names, lambda i: values[names[i]]) if names else None
    if _library(values) == "pandas":
        if not hasattr(type(values), "columns"):  # a Series itself would answer for a row so labelled
            return None
        return list(values.columns), lambda i: values.iloc[:, i]
    if _is_arrow(values) and _pyarrow().types.is_struct(values.type):
        return [field.name for field in values.type], values.flatten().__getitem__
    return None


def _only(names: Sequence[object], spelling: Sequence[str], at: _At) -> int:
    """The one position of a column under any of its spellings."""
    found = [i for i, name in enumerate(names) if isinstance(name, str) and name in spelling]
    if len(found) != 1:
        wanted = " or ".join(map(repr, spelling))
        raise at.refuse(f"have exactly one column {wanted}, not {len(found)}", list(names))
    return found[0]


def _parts(value: object, spellings: Sequence[Sequence[str]]) -> Sequence[object] | None:
    """The parts of one row, given by position or by name; None when it is no such row."""
    if isinstance(value, Mapping):
        found = [[value[name] for name in spelling if name in value] for spelling in spellings]
        return [one[0] for one in found] if all(len(one) == 1 for one in found) else None
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.ndim == 1 else None
    if isinstance(value, (tuple, list)) and len(value) == len(spellings):
        return value
    return None
