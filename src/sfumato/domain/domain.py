"""The public class: what can be asked of a domain, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers
from sfumato.domain.columns import read_column
from sfumato.domain.documents import read_document
from sfumato.domain.kinds.base import DomainKind
from sfumato.domain.kinds.counted import Counted, checked_size
from sfumato.domain.kinds.grid import Grid, grid_of
from sfumato.domain.kinds.listed import Listed, list_of
from sfumato.domain.kinds.product import Product, product_of
from sfumato.domain.lookup import index_of, indices_of
from sfumato.domain.refusals import At
from sfumato.domain.scalars import Label
from sfumato.errors import InvalidInput


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
    _kind: DomainKind
    _hash: int

    def __init__(self, labels: Iterable[Label]) -> None:
        object.__setattr__(self, "_kind", _kind_of(labels, At("Domain", "labels")))

    @classmethod
    def _of(cls, kind: DomainKind) -> Domain:
        domain = cls.__new__(cls)
        object.__setattr__(domain, "_kind", kind)
        return domain

    @classmethod
    def range(cls, k: int) -> Domain:
        """The ints 0..k-1, held as the number k alone."""
        return cls._of(Counted(checked_size(k, At("Domain.range", "k"))))

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

        ``latitude`` and ``longitude`` are the two outermost edges each, in degrees. Bounds mean the decimals they are
        written as: an edge is computed exactly and rounded once.
        Cells hold their south and west edges; the outermost north and east edges belong to the last.
        """
        return cls._of(grid_of(latitude, longitude, rows, columns, lambda name: At("Domain.grid", name)))

    @classmethod
    def product(cls, /, **factors: Domain | Iterable[Label]) -> Domain:
        """All tuples with one label of each factor, in row-major order (last factor fastest)."""
        kinds = {name: _kind_of(factor, At("Domain.product", name)) for name, factor in factors.items()}
        return cls._of(product_of(kinds, At("Domain.product", "factors")))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, base: Path | str | None = None) -> Domain:
        """The domain a document describes; ``{"file": ...}`` is read only when ``base`` is given.

        A file holds str labels: one a line, or, for ``.csv`` or with ``"column"``, a CSV column
        under a header row. Blank lines are no labels.
        """
        at = At("Domain.from_dict", "document")
        return cls._of(read_document(document, None if base is None else Path(base), at))

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
        if self._kind.name != "product" or not isinstance(self._kind, Product):  # a grid is also one inside
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

    def _grid_only(self, property_name: str) -> Grid:
        if not isinstance(self._kind, Grid):
            raise InvalidInput(f"Domain.{property_name}", "domain", "be a grid", self)
        return self._kind

    def label(self, index: int) -> Label:
        """The label at ``index``."""
        return self._kind.label(index_of(Counted(self.size), index, At("Domain.label", "index")))

    def index(self, label: object) -> int:
        """The index of ``label`` (for a grid ``(row, column)``)."""
        return index_of(self._kind.by_label, label, At("Domain.index", "label"))

    def encode(self, values: object, *, first_row: int = 0, copy: bool = True) -> Integers:
        """The index of each value: a list, a NumPy, Arrow, pandas or polars column.

        A grid takes points ``(latitude, longitude)``, a product takes tuples; both also take a table
        (mapping, DataFrame, Arrow table) with a column for each part. Unknown values, nulls and NaN
        are refused, naming the first such row (counted from ``first_row`` where these values are a
        piece of a longer column). A bool is never an int. With ``copy=False`` an int64 column of a range
        is not copied: the indices are the column itself, read-only, once it is checked.
        """
        return indices_of(self._kind, values, At("Domain.encode", "values"), first_row, copy=copy)

    def encode_one(self, value: object) -> int:
        """The index of one value, as strict as ``encode`` and without NumPy."""
        return index_of(self._kind, value, At("Domain.encode_one", "value"))

    def decode(self, indices: object) -> list[Label]:
        """The label at each index."""
        return self._kind.decode(indices_of(Counted(self.size), indices, At("Domain.decode", "indices")))

    def decode_array(self, indices: object) -> npt.NDArray[Any]:
        """The label at each index as a bool, int64, float64 or (for str and larger ints) object array."""
        codes = indices_of(Counted(self.size), indices, At("Domain.decode_array", "indices"))
        if isinstance(self._kind, Counted):
            return codes
        if isinstance(self._kind, Listed) and isinstance(self._kind.signature, str):
            return self._kind.array[codes]
        at = At("Domain.decode_array", "domain")
        raise at.refuse("have scalar labels (decode gives tuples)", self)

    def subset(self, labels: Iterable[Label]) -> Domain:
        """A list domain of these labels of this one, in the order given."""
        at = At("Domain.subset", "labels")
        looked_up = self._kind.by_label
        chosen = [index_of(looked_up, label, at.item(i)) for i, label in enumerate(read_column(labels, at).items())]
        return Domain._of(list_of([self._kind.label(i) for i in chosen], at, tuples=True))

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


def checked_domain(subject: str, value: object) -> Domain:
    """Return the domain that was given; reject anything else, such as a list of labels.

    >>> checked_domain("Uniform", ["yes", "no"])
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidInput: Uniform: domain must be a Domain, such as Domain(["yes", "no"]); got ['yes', 'no']
    """
    if not isinstance(value, Domain):
        raise At(subject, "domain").refuse('be a Domain, such as Domain(["yes", "no"])', value)
    return value


def _kind_of(labels: object, at: At) -> DomainKind:
    if isinstance(labels, Domain):
        return labels._kind
    if isinstance(labels, range) and labels.start == 0 and labels.step == 1 and len(labels) > 0:
        return Counted(checked_size(len(labels), at))
    return list_of(read_column(labels, at).items(), at)
