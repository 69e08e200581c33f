"""The public class ``Domain``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers
from sfumato.domain.columns import Coded, library, read_column
from sfumato.domain.documents import read_document
from sfumato.domain.kinds.base import DomainKind, Kind, Scalar
from sfumato.domain.kinds.counted import Counted, checked_size
from sfumato.domain.kinds.grid import Grid, grid_of
from sfumato.domain.kinds.intervals import intervals_of, is_interval
from sfumato.domain.kinds.listed import list_of
from sfumato.domain.kinds.missing import with_missing
from sfumato.domain.kinds.product import Product, product_of
from sfumato.domain.lookup import index_of, indices_of
from sfumato.domain.missing_values import filled_kind
from sfumato.domain.numeric import NumericDomain
from sfumato.domain.refusals import At
from sfumato.domain.scalars import Label
from sfumato.errors import Description, InvalidInput


class Domain(NumericDomain):
    """The finite set of values that an answer can have: distinct labels in a fixed order; immutable and hashable.

    Each value has an index, its position in this order. Arrays "in domain order" have one entry per value, by index.
    The class methods :meth:`range`, :meth:`numbers`, :meth:`grid` and :meth:`product` describe large domains without
    listing their labels.

    Parameters
    ----------
    labels
        An ordered iterable of labels that are all ``str``, all ``int``, all ``bool`` or all finite ``float``. The ints
        0..k-1 in order give the same domain as ``Domain.range(k)``. A ``pandas.CategoricalDtype`` gives its categories
        in their order. A ``pandas.IntervalIndex`` or other column of ``pandas.Interval`` gives a domain of
        :meth:`numbers`; its intervals must be adjacent and ascending.
    missing
        Label of missing values (None, NaN, null, an empty cell of a CSV file), which is added as the last label. If it
        is None, missing values are rejected.

    Raises
    ------
    InvalidInput
        If the labels are empty, more than 2**31, not distinct, or of different types, or if intervals overlap.

    Examples
    --------
    >>> answers = Domain(["yes", "no", "unsure"])
    >>> answers.encode(["no", "no", "yes"])
    array([1, 1, 0])
    >>> answers.encode(["no", "maybe"])
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidInput: Domain.encode: row 1 must be one of the str labels 'yes', 'no', 'unsure'; got 'maybe'
    """

    __slots__ = ("_hash", "_kind")
    _kind: DomainKind
    _hash: int

    def __init__(self, labels: Iterable[Label] | Any, *, missing: str | None = None) -> None:
        kind = with_missing(_kind_of(labels, At("Domain", "labels")), missing, At("Domain", "missing"))
        object.__setattr__(self, "_kind", kind)

    @classmethod
    def grid(
        cls,
        rows: int,
        columns: int,
        *,
        latitude: Sequence[float] | None = None,
        longitude: Sequence[float] | None = None,
    ) -> Domain:
        """Return the domain of the cells of a grid, on a map or without coordinates.

        Cells are ordered row by row. The label of a cell is ``(row, column)``. On a map, the first row is the
        southernmost and the first column the westernmost. Each cell contains its south and west edges; the last row and
        column also contain the outermost north and east edges.

        Parameters
        ----------
        rows
            Number of rows.
        columns
            Number of columns.
        latitude
            Southern and northern bound of a map in degrees; None for a grid without coordinates.
        longitude
            Western and eastern bound of a map in degrees; None for a grid without coordinates.

        Returns
        -------
        Domain
            A domain of kind ``"grid"``. On a map, :meth:`encode` takes points ``(latitude, longitude)``. Without
            coordinates it takes cells ``(row, column)``, and the grid has the factors ``row`` and ``column``.

        Notes
        -----
        The bounds mean the decimals as written. Each edge is computed exactly and rounded once.

        Examples
        --------
        >>> city = Domain.grid(latitude=(48.0, 48.2), longitude=(16.2, 16.6), rows=2, columns=4)
        >>> city.label(city.encode_one((48.15, 16.25)))
        (1, 0)
        >>> Domain.grid(8, 8).encode([(0, 0), (7, 7)])
        array([ 0, 63])
        """
        return cls._of(grid_of(latitude, longitude, rows, columns, lambda name: At("Domain.grid", name)))

    @classmethod
    def product(cls, /, **factors: Domain | Iterable[Label]) -> Domain:
        """Return the domain of all tuples with one label from each factor.

        Tuples are in row-major order: the last factor varies fastest.

        Parameters
        ----------
        **factors
            At least two domains or iterables of labels, by name.

        Returns
        -------
        Domain
            A domain of kind ``"product"``, with at most 2**31 labels.

        Examples
        --------
        >>> Domain.product(smoker=["yes", "no"], age=range(3)).labels
        (('yes', 0), ('yes', 1), ('yes', 2), ('no', 0), ('no', 1), ('no', 2))
        """
        kinds = {name: _kind_of(factor, At("Domain.product", name)) for name, factor in factors.items()}
        return cls._of(product_of(kinds, At("Domain.product", "factors")))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, base: Path | str | None = None) -> Domain:
        """Return the domain that a dict describes, such as the ``[domain]`` table of a policy file.

        Parameters
        ----------
        document
            A mapping with one of the keys ``"values"``, ``"size"``, ``"low"`` (with ``"high"``), ``"edges"``,
            ``"grid"``, ``"product"`` and ``"file"``, as :meth:`to_dict` returns it. The key ``"file"`` names a file
            with string labels: one per line, or in a CSV column with a header row. A file is read as CSV if its name
            ends in ``.csv``, or if the key ``"column"`` names a column. Blank lines are ignored.
        base
            Folder to which the path under ``"file"`` is relative. If it is None, the key ``"file"`` is rejected.

        Returns
        -------
        Domain
            The domain.

        Raises
        ------
        InvalidInput
            If the mapping is malformed or a file cannot be read.

        Examples
        --------
        >>> Domain.from_dict({"values": ["yes", "no"]})
        Domain(['yes', 'no'])
        """
        at = At("Domain.from_dict", "document")
        return cls._of(read_document(document, None if base is None else Path(base), at))

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON or TOML that describes this domain.

        Returns
        -------
        dict
            A dict from which :meth:`from_dict` builds an equal domain, such as ``{"values": ["yes", "no"]}``.
        """
        return self._kind.document()

    @property
    def kind(self) -> Kind:
        """How the domain is stored: ``"list"``, ``"range"``, ``"numbers"``, ``"grid"`` or ``"product"``."""
        return self._kind.name

    @property
    def size(self) -> int:
        """Number of labels; the same as ``len(domain)``."""
        return self._kind.size

    @property
    def shape(self) -> tuple[int, ...]:
        """Tuple of sizes: of the factors of a product, (rows, columns) of a grid, or ``(size,)`` of other domains."""
        return self._kind.shape

    @property
    def labels(self) -> tuple[Label, ...]:
        """Tuple of all labels in domain order; for a large domain, iterate over the domain instead."""
        return tuple(self._kind.labels())

    @property
    def factors(self) -> dict[str, Domain]:
        """The domains of the attributes by name, in order; an empty dict for domains without attributes.

        A product has its factors, and a grid without coordinates has ``row`` and ``column``.
        """
        if isinstance(self._kind, Grid) or not isinstance(self._kind, Product):  # Grid is a subclass of Product
            return {}
        return {name: Domain._of(kind) for name, kind in self._kind.factors.items()}

    @property
    def is_map(self) -> bool:
        """Whether the domain is a grid with latitude and longitude, so that values are points on a map."""
        return isinstance(self._kind, Grid)

    @property
    def edges(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The latitudes and longitudes of the edges between the cells of a map, in degrees, ascending.

        The first array has one entry more than the grid has rows, the second one more than it has columns. Other
        domains, and grids without coordinates, raise :class:`InvalidInput`.
        """
        grid = self._grid_only("edges")
        return grid.latitude.edges, grid.longitude.edges

    def centres(self) -> npt.NDArray[np.float64]:
        """Return the latitude and longitude of the centre of each cell of a map.

        Returns
        -------
        numpy.ndarray
            Array of shape (size, 2) in domain order: latitude and longitude in degrees.

        Raises
        ------
        InvalidInput
            If the domain is not a grid with latitude and longitude.
        """
        return self._grid_only("centres").centres()

    def _grid_only(self, property_name: str) -> Grid:
        """Return the grid, or reject a domain of another kind."""
        if not isinstance(self._kind, Grid):
            raise InvalidInput(
                f"Domain.{property_name}",
                "domain",
                "be a grid with latitude and longitude",
                self,
                hint="Build the domain with Domain.grid, and pass latitude and longitude.",
            )
        return self._kind

    def label(self, index: int) -> Label:
        """Return the label of the value with an index.

        Parameters
        ----------
        index
            An integer from 0 to ``size - 1``.

        Returns
        -------
        str, int, bool, float or tuple
            The label; a tuple for the values of a product or a grid.
        """
        return self._kind.label(index_of(Counted(self.size), index, At("Domain.label", "index")))

    def index(self, label: object) -> int:
        """Return the index of a label.

        Parameters
        ----------
        label
            A label of the domain; for a grid ``(row, column)``.

        Returns
        -------
        int
            The position of the label in the order of the domain.

        Raises
        ------
        InvalidInput
            If the domain does not have this label.
        """
        return index_of(self._kind.by_label, label, At("Domain.index", "label"))

    def encode(
        self,
        values: object,
        *,
        first_row: int = 0,
        copy: bool = True,
        missing: Label | Mapping[str, Label] | None = None,
    ) -> Integers:
        """Return the index of each value of a column.

        Parameters
        ----------
        values
            A list, or a NumPy, Arrow, pandas or polars column of labels. Domains of :meth:`numbers` take numbers, which
            they put into bins. A map takes points ``(latitude, longitude)`` in degrees; a product and a grid without
            coordinates take tuples. All three also take a table (mapping, DataFrame, Arrow table) with one column per
            part. A bool is never accepted as an int.
        first_row
            Number of the first row in error messages, if ``values`` is a piece of a longer column.
        copy
            If False, an int64 column is not copied if the domain is a range: the result is a read-only view of the
            column.
        missing
            Label that missing values (None, NaN, null) are encoded as. In a product it applies to the attributes that
            have this label. A mapping such as ``{"job": "none", "age": 0}`` has one label per attribute. The default
            rejects them, unless the domain has a label for missing values.

        Returns
        -------
        numpy.ndarray
            One int64 index per value.

        Raises
        ------
        InvalidInput
            If a value is not in the domain, or null or NaN without a label for missing values. The message names the
            first such row.

        Examples
        --------
        >>> Domain(["yes", "no", "unsure"]).encode(["no", None], missing="unsure")
        array([1, 2])
        """
        kind = self._kind if missing is None else filled_kind(self._kind, missing, At("Domain.encode", "missing"))
        return indices_of(kind, values, At("Domain.encode", "values"), first_row, copy=copy, hints=True)

    def encode_one(self, value: object) -> int:
        """Return the index of one value, without creating NumPy arrays.

        Parameters
        ----------
        value
            One value, in a form that :meth:`encode` takes.

        Returns
        -------
        int
            The index of the value.

        Raises
        ------
        InvalidInput
            If the value is not in the domain, or null or NaN in a domain without a label for missing values.
        """
        return index_of(self._kind, value, At("Domain.encode_one", "value"))

    def decode(self, indices: object) -> list[Label]:
        """Return the label at each index.

        Parameters
        ----------
        indices
            A column of integers from 0 to ``size - 1``.

        Returns
        -------
        list
            One label per index.
        """
        return self._kind.decode(indices_of(Counted(self.size), indices, At("Domain.decode", "indices")))

    def decode_array(self, indices: object) -> npt.NDArray[Any]:
        """Return the label at each index as an array.

        Parameters
        ----------
        indices
            A column of integers from 0 to ``size - 1``.

        Returns
        -------
        numpy.ndarray
            A bool, int64 or float64 array; an object array for strings, for ints beyond 64 bits, and if missing values
            have a label.

        Raises
        ------
        InvalidInput
            If the labels are tuples; use :meth:`decode` for those.
        """
        codes = indices_of(Counted(self.size), indices, At("Domain.decode_array", "indices"))
        if not isinstance(self._kind, Scalar) or isinstance(self._kind.label(0), tuple):
            at = At("Domain.decode_array", "domain")
            raise at.error("have scalar labels", self, hint="Use Domain.decode, which returns labels that are tuples.")
        return self._kind.decode_array(codes)

    def subset(self, labels: Iterable[Label]) -> Domain:
        """Return a domain of some labels of this one, in the order of the argument.

        Parameters
        ----------
        labels
            Labels of this domain, without duplicates.

        Returns
        -------
        Domain
            A domain of kind ``"list"``, or ``"range"`` if the labels are 0..k-1 in order. Bins become labels without
            numbers. The label of missing values keeps its meaning if it is the last one.

        Raises
        ------
        InvalidInput
            If a label is unknown or occurs twice.
        """
        at = At("Domain.subset", "labels")
        by_label = self._kind.by_label
        indices = [index_of(by_label, label, at.item(i)) for i, label in enumerate(read_column(labels, at).items())]
        chosen = [self._kind.label(i) for i in indices]
        if self.missing in chosen[:-1] and not all(isinstance(label, str) for label in chosen):
            raise at.error(f"have {self.missing!r} last, the label of missing values", chosen)
        # Numeric labels and the label of missing values have different types, which a list does not allow.
        missing = chosen.pop() if len(chosen) > 1 and chosen[-1] == self.missing else None
        return Domain._of(with_missing(list_of(chosen, at, tuples=True), missing, at))

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
        except AttributeError:  # computed once, because hashing a long list of labels is slow
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
    """Return a domain; reject anything else, such as a list of labels.

    >>> checked_domain("Uniform", ["yes", "no"])
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidInput: Uniform: domain must be a Domain, such as Domain(["yes", "no"]); got ['yes', 'no']
    """
    if not isinstance(value, Domain):
        raise At(subject, "domain").error('be a Domain, such as Domain(["yes", "no"])', value)
    return value


def _kind_of(labels: object, at: At) -> DomainKind:
    """Return the kind of domain for labels; ranges that start at 0 are not listed."""
    if isinstance(labels, Domain):
        return labels._kind
    if isinstance(labels, range) and labels.start == 0 and labels.step == 1 and len(labels) > 0:
        return Counted(checked_size(len(labels), at))
    if type(labels).__name__ == "CategoricalDtype" and library(labels) == "pandas":
        labels = cast("Any", labels).categories
        if labels is None:
            raise at.error("have categories", Description("a CategoricalDtype without categories"))
    column = read_column(labels, at)
    if isinstance(column, Coded) and library(labels) == "pandas" and len(np.unique(column.codes)) < len(column.codes):
        hint = "Pass its dtype, whose categories are the labels."
        raise at.error("be distinct", Description("a column of categories with repeated values"), hint=hint)
    items = column.items()
    return intervals_of(items, at) if items and all(map(is_interval, items)) else list_of(items, at)
