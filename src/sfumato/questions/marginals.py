"""The question about tables: the marginal tables of several attributes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sfumato._core import (
    Floats,
    Integers,
    check_keys,
    checked_count,
    quantity,
    read_items,
    read_list,
    read_string,
    unused_name,
)
from sfumato.domain import Domain
from sfumato.errors import Description, InvalidInput, LimitExceeded
from sfumato.questions.base import Question

__all__ = ["Marginals", "cell_positions", "marginal_sums", "table_columns"]

#: Maximum number of entries of the matrix of the question; a larger one would take more than 0.5 GB.
_LARGEST_MATRIX = 2**26
#: Name of the column that states the table of a cell.
_TABLE = "table"
#: Maximum number of answers; tables with more cells than this cannot be read by a person.
_MOST_CELLS = 10**6


class Marginals(Question):
    """Question: the marginal tables of people with several attributes, such as all tables of two attributes.

    The domain is a ``Domain.product`` with one factor per attribute. A marginal table has one cell per combination of
    values of its attributes. The answers are the shares of people in the cells of all tables, and mechanisms are
    compared by the expected squared error of all cells, added up.

    Parameters
    ----------
    order
        The number of attributes of each table: 1 for the frequencies of each attribute, 2 for all pairs.
    attributes
        The attributes to combine, by default all of the domain.
    tables
        The tables to learn, each as the names of its attributes, instead of all tables of one order. A single name is a
        table of one attribute. Leave out ``order`` and ``attributes``.

    Notes
    -----
    Reports that determine the tables of two attributes determine those of one attribute too, as sums of rows.

    Examples
    --------
    >>> from sfumato import Domain, Marginals
    >>> people = Domain.product(sex=Domain(["f", "m"]), smokes=Domain(["yes", "no"]), age=Domain(["young", "old"]))
    >>> question = Marginals(2).checked(people)
    >>> question.tables
    (('sex', 'smokes'), ('sex', 'age'), ('smokes', 'age'))
    >>> question.names[:2], len(question.names)
    (('sex=f, smokes=yes', 'sex=f, smokes=no'), 12)
    >>> Marginals(tables=["age", ("sex", "age")]).checked(people).matrix().sum(axis=1).tolist()
    [4.0, 4.0, 2.0, 2.0, 2.0, 2.0]
    """

    name = "marginals"

    def __init__(
        self,
        order: int | None = None,
        *,
        attributes: Iterable[str] | None = None,
        tables: Iterable[str | Sequence[str]] | None = None,
    ) -> None:
        if tables is not None and (order is not None or attributes is not None):
            got = Description("tables together with order or attributes")
            raise InvalidInput("Marginals", "tables", "be passed alone, because they state the attributes", got)
        self._order = checked_count("Marginals", 2 if order is None else order, "order")
        self._attributes = None if attributes is None else _read_names("attributes", attributes)
        self._stated = None if tables is None else _read_tables(tables)
        self._axes: tuple[tuple[int, ...], ...] = ()

    def _fit(self, domain: Domain) -> None:
        factors = list(domain.factors)
        if not factors:
            hint = "Describe the attributes by Domain.product(sex=..., age=...)."
            raise InvalidInput("Marginals", "the domain", "be a product of attributes", domain, hint=hint)
        for name in self._attributes or itertools.chain.from_iterable(self._stated or ()):
            if name not in factors:
                raise InvalidInput("Marginals", "an attribute", f"be one of {', '.join(map(repr, factors))}", name)
        if self._stated is None:
            chosen = [name for name in factors if name in (self._attributes or factors)]
            if self._order > len(chosen):
                must = f"be at most {len(chosen)}, the number of attributes"
                raise InvalidInput("Marginals", "order", must, self._order)
            tables: Sequence[tuple[str, ...]] = list(itertools.combinations(chosen, self._order))
        else:
            tables = self._stated
        self._axes = tuple(tuple(map(factors.index, names)) for names in tables)
        cells = sum(math.prod(domain.shape[axis] for axis in axes) for axes in self._axes)
        if cells > _MOST_CELLS:
            got = Description(quantity(cells, "cell"))
            raise InvalidInput("Marginals", "the tables", f"have at most {_MOST_CELLS:,} cells together", got)

    @property
    def axes(self) -> tuple[tuple[int, ...], ...]:
        """The positions in the domain of the attributes of each table, in the order of the answers."""
        return self._axes

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The names of the attributes of each table, in the order of the answers."""
        factors = list(self.domain.factors)
        return tuple(tuple(factors[axis] for axis in axes) for axes in self._axes)

    def cells(self, attributes: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the cells of one table.

        Parameters
        ----------
        attributes
            The names of the attributes of the table.

        Returns
        -------
        tuple of str
            Names such as "sex=f, age=old". The value of the last attribute changes fastest.
        """
        factors = self.domain.factors
        columns = [[f"{name}={label}" for label in factors[name].labels] for name in attributes]
        return tuple(map(", ".join, itertools.product(*columns)))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(itertools.chain.from_iterable(map(self.cells, self.tables)))

    def rows(self, prior: Floats | None = None) -> Iterator[Floats]:  # noqa: ARG002
        for axes in self._axes:
            positions = cell_positions(self.domain.shape, axes)
            for cell in range(math.prod(self.domain.shape[axis] for axis in axes)):
                yield (positions == cell).astype(np.float64)

    def matrix(self, prior: Floats | None = None) -> Floats:
        answers = len(self.names)
        if answers * len(self.domain) > _LARGEST_MATRIX:
            raise LimitExceeded(
                f"the matrix of the question supports at most {_LARGEST_MATRIX:,} entries, not {answers:,} cells by "
                f"{len(self.domain):,} values. Use rows() to read it one row at a time."
            )
        return np.array(list(self.rows(prior))).reshape(answers, len(self.domain))

    def answers_of(self, frequencies: Floats, prior: Floats | None = None) -> Floats:  # noqa: ARG002
        shape = self.domain.shape
        return np.concatenate([marginal_sums(frequencies, shape, axes) for axes in self._axes])

    def _parameters(self) -> dict[str, Any]:
        if self._stated is not None:
            return {"tables": [list(names) for names in self._stated]}
        chosen = {} if self._attributes is None else {"attributes": list(self._attributes)}
        return {"order": self._order, **chosen}

    @classmethod
    def _read(cls, parameters: Mapping[str, Any]) -> Marginals:
        check_keys("Marginals", "the document", parameters, optional=["order", "attributes", "tables"])
        tables = parameters.get("tables")
        if tables is not None:
            tables = [
                name if isinstance(name, str) else read_items("Marginals", "a table", name)
                for name in read_items("Marginals", "tables", tables)
            ]
        attributes = parameters.get("attributes")
        if attributes is not None:
            read_items("Marginals", "attributes", attributes)
        return cls(parameters.get("order"), attributes=attributes, tables=tables)

    def __repr__(self) -> str:
        if self._stated is not None:
            return f"Marginals(tables={[names[0] if len(names) == 1 else names for names in self._stated]})"
        chosen = "" if self._attributes is None else f", attributes={list(self._attributes)}"
        return f"Marginals({self._order}{chosen})"


def _read_names(parameter: str, names: Any) -> tuple[str, ...]:
    """Return different names of attributes, or raise InvalidInput."""
    must = "be a list of different names of attributes"
    read = [read_string("Marginals", "an attribute", name) for name in read_list("Marginals", parameter, must, names)]
    if not read or len(set(read)) < len(read):
        raise InvalidInput("Marginals", parameter, must, names)
    return tuple(read)


def _read_tables(tables: Any) -> tuple[tuple[str, ...], ...]:
    """Return the attributes of each table, or raise InvalidInput."""
    must = "be a list of different tables, each a name or a list of names of attributes"
    items = read_list("Marginals", "tables", must, tables)
    read = [_read_names("a table", [names] if isinstance(names, str) else names) for names in items]
    if not read or len(set(map(frozenset, read))) < len(read):
        raise InvalidInput("Marginals", "tables", must, tables)
    return tuple(read)


def cell_positions(shape: Sequence[int], axes: Sequence[int]) -> Integers:
    """Return the cell of a marginal table to which each value belongs, in domain order.

    >>> cell_positions((2, 3), (1,)).tolist()
    [0, 1, 2, 0, 1, 2]
    """
    positions: Any = 0
    for axis in axes:
        digits = np.arange(shape[axis]).reshape([-1 if other == axis else 1 for other in range(len(shape))])
        positions = positions * shape[axis] + digits
    return np.broadcast_to(positions, shape).ravel()


def marginal_sums(vector: Floats, shape: Sequence[int], axes: Sequence[int]) -> Floats:
    """Return the sums of a vector over all values in each cell of a marginal table.

    >>> marginal_sums(np.array([1.0, 2, 3, 4, 5, 6]), (2, 3), (0,)).tolist()
    [6.0, 15.0]
    """
    others = tuple(axis for axis in range(len(shape)) if axis not in axes)
    sums = vector.reshape(shape).sum(axis=others)
    return np.asarray(sums.transpose(np.argsort(np.argsort(axes))).ravel())


def table_columns(question: Marginals, numbers: Mapping[str, Floats]) -> dict[str, Any]:
    """Return the columns of a result with one row per cell: the table, the value of each attribute, and numbers.

    An attribute that is not in the table has the value None.
    """
    factors = question.domain.factors
    used = [name for name in factors if any(name in names for names in question.tables)]
    columns: dict[str, list[Any]] = {name: [] for name in used}
    tables: list[str] = []
    for names in question.tables:
        for labels in itertools.product(*(factors[name].labels for name in names)):
            tables.append(" × ".join(names))
            of_cell = dict(zip(names, labels, strict=True))
            for name in used:
                columns[name].append(of_cell.get(name))
    named: dict[str, Any] = {_TABLE: tables}
    for name in used:
        named[unused_name(name, {_TABLE, *numbers, *named})] = columns[name]
    return {**named, **numbers}
