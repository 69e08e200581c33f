"""Align inputs that have one entry per value of a domain by their labels.

Lists, tuples and arrays have no labels; their entries are in the order of the domain. These inputs have labels:

================================================================  ====================================================
input                                                             labels
================================================================  ====================================================
mapping, ``pyarrow.StructScalar``, ``pyarrow.MapScalar``          keys
``pandas.Series``, ``pandas.DataFrame`` with one column           index
frame with two columns (pandas, polars, Arrow; also structs)      first column; the second one has the entries
frame with a column for each factor of a product, and one more    columns with the names of the factors
``pandas.DataFrame`` as a matrix                                  index and columns
polars or Arrow frame as a matrix                                 first column for rows, names of the others for columns
mapping of mappings as a matrix                                   outer keys for rows, inner keys for columns
``Estimate``                                                      its domain, which must be equal
================================================================  ====================================================

The labels of a product or a grid are tuples: a ``pandas.MultiIndex``. Its levels may be in any order if they have the
names of the factors. Missing, unknown and duplicate labels are rejected, and the message names them.

The default index of pandas (0, 1, 2, …, without a name) counts as labels only if the labels of the domain are numbers.
For other domains, a Series with the default index is treated like a list.

This module does not import any data-frame library: it recognizes objects by the names of their classes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._core import Result, quantity
from sfumato.domain.domain import Domain
from sfumato.domain.kinds.base import Scalar
from sfumato.domain.kinds.counted import Counted
from sfumato.domain.kinds.listed import list_of
from sfumato.domain.kinds.product import Product
from sfumato.domain.lookup import index_of
from sfumato.domain.refusals import At, listing
from sfumato.domain.scalars import is_missing
from sfumato.errors import Description, InvalidInput

__all__ = [
    "align",
    "align_table",
    "frame_columns",
    "frame_rows",
    "has_labels",
    "label_parts",
    "labels_domain",
    "read_mapping",
    "read_numbers",
    "unaligned_table",
]

#: Labels, and the entry of each label.
Pairs: TypeAlias = tuple[list[Any], list[Any]]
#: Column names of a frame, and a function that reads the column at a position.
Frame: TypeAlias = tuple[list[Any], Callable[[int], list[Any]]]

_FORMS = frozenset(
    {
        ("pandas", "Series"),
        ("pandas", "DataFrame"),
        ("polars", "Series"),
        ("polars", "DataFrame"),
        ("pyarrow", "Table"),
        ("pyarrow", "RecordBatch"),
        ("pyarrow", "Array"),
        ("pyarrow", "ChunkedArray"),
        ("pyarrow", "StructScalar"),
        ("pyarrow", "MapScalar"),
    }
)
_UNLABELLED = ("polars.Series", "pyarrow.Array", "pyarrow.ChunkedArray")
_FRAMES = ("pandas.DataFrame", "polars.DataFrame", "pyarrow.Table", "pyarrow.RecordBatch")


def align(domain: Domain, data: Any, subject: str, parameter: str, *, absent: float | None = None) -> Any:
    """Return the entries of a labelled input in the order of the domain.

    Parameters
    ----------
    domain
        The values that the entries belong to.
    data
        One entry per value, in any form listed in the module documentation.
    subject, parameter
        The function and its parameter for error messages.
    absent
        The entry of values that a *mapping* leaves out. If it is None, a mapping must name every value. A Series or a
        frame must always name every value, because a missing row of computed data usually indicates a mistake.

    Returns
    -------
    Any
        A list in the order of the domain, or ``data`` itself if it has no labels.

    Raises
    ------
    InvalidInput
        If a label is missing, unknown or duplicate.

    Examples
    --------
    >>> align(Domain(["a", "b"]), {"b": "2/3", "a": "1/3"}, "Prior", "prior")
    ['1/3', '2/3']
    >>> align(Domain(["a", "b"]), ["2/3", "1/3"], "Prior", "prior")
    ['2/3', '1/3']
    >>> align(Domain(["a", "b"]), {"b": 1}, "Prior", "prior")
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidInput: Prior: prior must have an entry for every value of the domain; got no entry for 'a'
    """
    if type(data) in (list, tuple, np.ndarray):  # the usual case
        return data
    form, at = _form(data), At(subject, parameter)
    if isinstance(data, Result):
        return _frequencies(domain, data, at)
    if isinstance(data, (set, frozenset)):
        raise at.error("be ordered or labelled, which a set is not", data, hint="Use a list or a mapping instead.")
    if form in ("pyarrow.Array", "pyarrow.ChunkedArray") and _struct_names(data) is None:
        return data.to_pylist()
    if form is None and _is_labelled_elsewhere(data):
        must = "be a pandas, polars or Arrow object, a mapping, or a list in domain order"
        raise at.error(must, type(data))
    if form == "pandas.Series" and (_is_positional(data.index, domain) or _is_whole_range(data.index, domain)):
        return _entries(data)
    pairs = _pairs(domain, data, form, at)
    if pairs is None:
        return data
    is_mapping = form is None
    labels, entries = pairs
    is_numeric = form == "pandas.Series" and all(isinstance(entry, (int, float)) for entry in entries)
    hint = "To add zeros, call reindex(domain.labels, fill_value=0) on the Series." if is_numeric else None
    places = _places(domain, labels, at)
    missing = np.flatnonzero(places < 0).tolist()
    if missing and (absent is None or not is_mapping):
        names = listing([domain.label(x) for x in missing], most=3)
        raise at.error("have an entry for every value of the domain", Description(f"no entry for {names}"), hint=hint)
    return [absent if place < 0 else entries[place] for place in places.tolist()]


def _frequencies(domain: Domain, result: Result, at: At) -> list[float]:
    """Return the frequencies of an estimate; other results are not one number per value."""
    frequencies, values = getattr(result, "frequencies", None), getattr(result, "domain", None)
    if frequencies is None or values is None:
        raise at.error("be an Estimate, a mapping by label, or a list in domain order", type(result))
    if values != domain:
        raise at.error("be an estimate over the same domain", values)
    entries: list[float] = np.asarray(frequencies, np.float64).tolist()
    return entries


def align_table(
    rows: Domain, columns: Domain | None, data: Any, subject: str, parameter: str, *, cells: Domain | None = None
) -> Any:
    """Return a labelled table with its rows and columns in the order of their domains.

    Parameters
    ----------
    rows, columns
        The values of the rows and of the columns. If ``columns`` is None, the columns stay in their order.
    data
        A table, in any form listed in the module documentation; each row of a list may have its own labels.
    subject, parameter
        The function and its parameter for error messages.
    cells
        The product of rows and columns, row factor first. If it is given, cells may also be listed by their tuples, as
        a Series with a MultiIndex or a mapping. A frame with axes named like the factors must not have them swapped.

    Returns
    -------
    Any
        A list of rows or an array, or ``data`` itself if it has no labels.

    Raises
    ------
    InvalidInput
        If a label is missing, unknown or duplicate, or if only one of the two axes has labels.

    Examples
    --------
    >>> domain = Domain(["a", "b"])
    >>> align_table(domain, domain, {"b": {"a": 3, "b": 0}, "a": {"a": 0, "b": 2}}, "Metric", "distance")
    [[0, 2], [3, 0]]
    """
    if isinstance(data, np.ndarray):
        return data
    form, at = _form(data), At(subject, parameter)
    if form == "pandas.DataFrame":
        return _align_pandas_table(rows, columns, data, at, cells)
    if form in _FRAMES:
        return _align_frame_table(rows, columns, data, at)
    if cells is not None and _names_cells(rows, data, form):
        flat = align(cells, data, subject, parameter)
        width = len(cells) // len(rows)
        return [flat[start : start + width] for start in range(0, len(flat), width)]
    outer = align(rows, data, subject, parameter)
    if not isinstance(outer, (list, tuple)) or not any(_has_labels(row) for row in outer):
        return outer
    if columns is None:
        raise at.error("have rows without labels, because its columns are not values of a domain", outer[0])
    names = rows.labels if len(outer) == len(rows) else tuple(range(len(outer)))
    return [align(columns, row, subject, f"{parameter}[{name!r}]") for name, row in zip(names, outer, strict=True)]


def read_numbers(
    domain: Domain, data: Any, subject: str, parameter: str, *, absent: float | None = None
) -> npt.NDArray[np.float64]:
    """Return one finite float per value in domain order; labels and ``absent`` work as in ``align``."""
    aligned = align(domain, data, subject, parameter, absent=absent)
    try:
        numbers = np.asarray(aligned, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(subject, parameter, "be numbers, one per value of the domain", data) from None
    if numbers.shape != (len(domain),) or not np.isfinite(numbers).all():
        must = f"be {quantity(len(domain), 'finite number')}, one per value of the domain"
        raise InvalidInput(subject, parameter, must, data)
    return numbers


def unaligned_table(data: Any, subject: str, parameter: str) -> Any:
    """Return a labelled table in its own order, for callers that do not know the domain yet."""
    if isinstance(data, np.ndarray):
        return data
    form, at = _form(data), At(subject, parameter)
    if form == "pandas.DataFrame":
        return data.to_numpy()
    if form in _FRAMES:
        _, column = _frame(data)
        return [list(row) for row in zip(*map(column, range(1, _width(data))), strict=True)]
    if isinstance(data, (list, tuple)) and not any(map(_has_labels, data)):
        return data
    if isinstance(data, (list, tuple)):
        labels, entries = list[Any](), list(data)
    elif form == "pandas.Series" or (form is None and isinstance(data, Mapping)):
        labels, entries = _pairs_of_keys(data, form)
    else:
        return data
    if any(_has_labels(entry) for entry in entries):
        columns = _domain_of(_labels_of(entries[0]), at)
        return [align(columns, entry, subject, parameter) for entry in entries]
    if labels and all(isinstance(label, tuple) and len(label) > 1 for label in labels):
        return _rows_of_cells(labels, entries, at)
    return entries


def frame_rows(data: Any) -> list[tuple[Any, ...]] | None:
    """Return the rows of a pandas, polars or Arrow frame as tuples; None for any other object."""
    if _form(data) not in _FRAMES:
        return None
    names, column = _frame(data)
    return list(zip(*map(column, range(len(names))), strict=True))


def frame_columns(data: Any) -> dict[Any, Any] | None:
    """Return the columns of a pandas, polars or Arrow frame or of a mapping by name; None for any other object."""
    form = _form(data)
    if form == "pandas.DataFrame":
        return {name: data.iloc[:, place] for place, name in enumerate(data.columns)}
    if form == "polars.DataFrame":
        return {name: data.to_series(place) for place, name in enumerate(data.columns)}
    if form in ("pyarrow.Table", "pyarrow.RecordBatch"):
        return {name: data.column(place) for place, name in enumerate(data.schema.names)}
    return dict(data) if form is None and isinstance(data, Mapping) else None


def has_labels(domain: Domain, data: Any) -> bool:
    """Return whether ``align`` reads an input by its labels."""
    if _form(data) == "pandas.Series":
        return not _is_positional(data.index, domain)
    return _has_labels(data)


def labels_domain(data: Any, subject: str, parameter: str) -> Domain | None:
    """Return the labels of a Series or a mapping as a domain, in their order; None if it has no labels."""
    form = _form(data)
    if form != "pandas.Series" and (form is not None or not isinstance(data, Mapping)):
        return None
    if form is not None and _is_default(data.index):
        return Domain.range(len(data))
    return _domain_of(_labels_of(data), At(subject, f"the labels of {parameter}"))


def _rows_of_cells(labels: list[Any], entries: list[Any], at: At) -> list[list[Any]]:
    """Return the rows of a table that lists its cells under labels (row, column, …)."""
    rows, columns = dict.fromkeys(label[0] for label in labels), dict.fromkeys(label[1:] for label in labels)
    by_cell = dict(zip(labels, entries, strict=True))
    if len(by_cell) < len(labels):
        twice = next(label for n, label in enumerate(labels) if label in labels[:n])
        raise at.error("have every cell exactly once", Description(f"{twice!r} twice"))
    missing = [(row, *column) for row in rows for column in columns if (row, *column) not in by_cell]
    if missing:
        raise at.error("have every cell of the table", Description(f"no entry for {listing(missing, most=3)}"))
    return [[by_cell[(row, *column)] for column in columns] for row in rows]


def read_mapping(data: Any, subject: str, parameter: str, must: str) -> dict[Any, Any]:
    """Return a mapping or a pandas Series as a dict from labels to entries."""
    form = _form(data)
    if form is None and isinstance(data, Mapping):
        return dict(data)
    if form != "pandas.Series":
        raise InvalidInput(subject, parameter, must, data)
    labels, entries = _pairs_of_keys(data, form)
    twice = next((label for n, label in enumerate(labels) if label in labels[:n]), None)
    if twice is not None:
        raise InvalidInput(subject, parameter, "name each label once", Description(f"{twice!r} twice"))
    return dict(zip(labels, entries, strict=True))


# -- recognizing inputs ------------------------------------------------------------------------------------


def _form(data: object) -> str | None:
    """Return "library.class" for an object of a data-frame library or a subclass; None for other objects."""
    for base in type(data).__mro__:
        form = (base.__module__.partition(".")[0], base.__name__)
        if form in _FORMS:
            return ".".join(form)
    return None


def _has_labels(data: Any) -> bool:
    """Return whether an input has labels."""
    form = _form(data)
    if form == "pandas.Series":
        return not _is_default(data.index)
    return isinstance(data, Mapping) if form is None else form not in _UNLABELLED


def _labels_of(data: Any) -> list[Any]:
    """Return the labels of a Series, a mapping or an Arrow scalar."""
    return _pairs_of_keys(data, _form(data))[0]


def _is_default(index: Any) -> bool:
    """Return whether an index is the default index of pandas: 0, 1, 2, …, without a name."""
    is_counted = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    return bool(is_counted and index.name is None)


def _is_labelled_elsewhere(data: Any) -> bool:
    """Return whether an object has an index or coordinates of a library that this module does not support."""
    is_array = hasattr(data, "__array__") and not isinstance(data, np.ndarray)
    return is_array and (hasattr(data, "coords") or not callable(getattr(data, "index", len)))


def _is_whole_range(index: Any, domain: Domain) -> bool:
    """Return whether an index equals the labels of a range in order, without comparing each label."""
    return _is_default(index) and isinstance(domain._kind, Counted) and len(index) == len(domain)


def _is_positional(index: Any, domain: Domain) -> bool:
    """Return whether entries with this index are in domain order, because a default index cannot be labels."""
    label = domain.label(0)
    return _is_default(index) and not (isinstance(label, (int, float)) and not isinstance(label, bool))


def _struct_names(data: Any) -> list[str] | None:
    """Return the field names of an Arrow array of structs; None for an array of another type."""
    struct = data.type
    return [struct.field(i).name for i in range(struct.num_fields)] if str(struct).startswith("struct<") else None


def _entries(series: Any) -> list[Any]:
    """Return the entries of a pandas Series as Python objects; float16 and float32 stay NumPy scalars."""
    array = series.to_numpy()
    short = array.dtype.kind == "f" and array.dtype.itemsize < 8
    return list(array) if short else list(array.tolist())


def _frame(data: Any) -> Frame:
    """Return the column names of a frame and a function that reads a column."""
    form = _form(data)
    if form == "pandas.DataFrame":
        return list(data.columns), lambda i: _entries(data.iloc[:, i])
    if form == "polars.DataFrame":
        return list(data.columns), lambda i: list(data.to_series(i).to_list())
    if form in ("pyarrow.Table", "pyarrow.RecordBatch"):
        return list(data.schema.names), lambda i: list(data.column(i).to_pylist())
    fields = data.flatten()
    return _struct_names(data) or [], lambda i: list(fields[i].to_pylist())


def _width(data: Any) -> int:
    """Return the number of columns of a frame."""
    return len(_frame(data)[0])


# -- labels and their entries ------------------------------------------------------------------------------


def _pairs(domain: Domain, data: Any, form: str | None, at: At) -> Pairs | None:
    """Return the labels of an input and their entries; None if it has no labels."""
    if form == "polars.Series" or (form is None and not isinstance(data, Mapping)):
        return None
    if form == "pandas.DataFrame" and len(data.columns) == 1:
        data, form = data.iloc[:, 0], "pandas.Series"
    if form == "pandas.Series":
        labels, entries = _pairs_of_keys(data, form)
        return _in_factor_order(domain, labels, list(data.index.names), at), entries
    if form is not None and not form.endswith("Scalar"):
        if form == "pandas.DataFrame" and not _is_default(data.index):
            must = "be a Series or a frame with one column if it has an index"
            raise at.error(must, Description(f"columns {list(data.columns)}"))
        return _pairs_of_frame(domain, data, at)
    return _pairs_of_keys(data, form)


def _pairs_of_keys(data: Any, form: str | None) -> Pairs:
    """Return the keys and entries of a Series, a mapping or an Arrow scalar."""
    if form == "pandas.Series":
        return list(data.index), _entries(data)
    if form == "pyarrow.StructScalar":
        names = [data.type.field(i).name for i in range(data.type.num_fields)]
        return names, [data[i].as_py() for i in range(len(names))]
    items = data.as_py() if form == "pyarrow.MapScalar" else list(data.items())
    return [label for label, _ in items], [entry for _, entry in items]


def _pairs_of_frame(domain: Domain, data: Any, at: At) -> Pairs:
    """Return labels and entries of a frame: labels are in the first column, or in columns named like factors."""
    names, column = _frame(data)
    parts = label_parts(domain)
    if parts and len(names) == len(parts) + 1 and all(names.count(part) == 1 for part in parts):
        places = [names.index(part) for part in parts]
        (other,) = set(range(len(names))) - set(places)
        return list(zip(*map(column, places), strict=True)), column(other)
    if len(names) != 2:
        factors = f", or the columns {listing(parts)} and one more," if parts else ""
        must = f"have two columns, values and numbers{factors} if it is a frame"
        raise at.error(must, Description(f"columns {names}"))
    return column(0), column(1)


def label_parts(domain: Domain) -> list[str]:
    """Return the names of the parts of labels that are tuples; an empty list for other labels."""
    kind = domain._kind.by_label
    return list(kind.factors) if isinstance(kind, Product) else []


def _in_factor_order(domain: Domain, labels: list[Any], names: Sequence[Hashable], at: At) -> list[Any]:
    """Return tuples with their parts in the order of the factors, if the index levels are named like factors."""
    parts = label_parts(domain)
    if not parts or not set(names) & set(parts):
        return labels
    if sorted(map(repr, names)) != sorted(map(repr, parts)):
        raise at.error(f"have an index with the levels {listing(parts)}", list(names))
    order = [list(names).index(part) for part in parts]
    return [tuple(label[i] for i in order) for label in labels]


def _places(domain: Domain, labels: Iterable[Any], at: At) -> npt.NDArray[np.int64]:
    """Return for each value of the domain the position of its label, or -1 if there is none."""
    kind, items = domain._kind.by_label, list(labels)
    if domain.missing is not None:  # ``value_counts(dropna=False)`` counts missing values under NaN
        items = [domain.missing if is_missing(item) else item for item in items]
    each = (
        kind.of_items(items) if isinstance(kind, Scalar) else np.array([kind.place(item) for item in items], np.int64)
    )
    unknown = np.flatnonzero(each < 0)
    if len(unknown):
        index_of(kind, items[unknown[0]], At(at.subject, f"each label of {at.parameter}"))
    indices, counts = np.unique(each, return_counts=True)
    if len(indices) < len(each):
        twice = domain.label(int(indices[counts > 1][0]))
        raise at.error("name each value once", Description(f"{twice!r} twice"))
    places = np.full(len(domain), -1, dtype=np.int64)
    places[each] = np.arange(len(each))
    return places


# -- tables ------------------------------------------------------------------------------------------------


def _align_pandas_table(rows: Domain, columns: Domain | None, data: Any, at: At, cells: Domain | None) -> Any:
    """Align the rows and columns of a pandas DataFrame."""
    if cells is not None:
        _check_axes(data, at, list(cells.factors))
    row_order = _axis_order(rows, data.index, at.then(", rows"))
    if columns is None:
        return data.to_numpy() if row_order is None else data.to_numpy()[row_order]
    column_order = _axis_order(columns, data.columns, at.then(", columns"))
    if (row_order is None) != (column_order is None) and _is_default(data.index) != _is_default(data.columns):
        axis = "rows (with set_index)" if row_order is None else "columns"
        raise at.error(f"have labels for its {axis} too, or for neither axis", list(data.columns))
    array = data.to_numpy()
    array = array if row_order is None else array[row_order]
    return array if column_order is None else array[:, column_order]


def _axis_order(domain: Domain, index: Any, at: At) -> npt.NDArray[np.int64] | None:
    """Return the position of each value on an axis of a frame; None if the axis has no labels."""
    if _is_positional(index, domain):
        return None
    labels = _in_factor_order(domain, list(index), list(index.names), at)
    places = _places(domain, labels, at)
    missing = np.flatnonzero(places < 0).tolist()
    if missing:
        names = listing([domain.label(x) for x in missing], most=3)
        raise at.error("have an entry for every value of the domain", Description(f"no entry for {names}"))
    return places


def _check_axes(data: Any, at: At, factors: Sequence[str]) -> None:
    """Reject a frame whose axes are named like the factors but swapped."""
    of_rows, of_columns = list(data.index.names), list(data.columns.names)
    if any(name in factors[1:] for name in of_rows) or factors[0] in of_columns:
        must = f"have {factors[0]!r} in its rows and {listing(factors[1:])} in its columns"
        got = Description(f"{of_rows} in its rows and {of_columns} in its columns")
        raise at.error(must, got, hint="Transpose the frame.")


def _align_frame_table(rows: Domain, columns: Domain | None, data: Any, at: At) -> list[list[Any]]:
    """Align a frame without an index; its first column has the labels of the rows."""
    names, column = _frame(data)
    if len(names) < 2 or (columns is not None and len(names) != len(columns) + 1):
        must = "have row labels in the first column, followed by one column per value"
        raise at.error(must, Description(f"columns {names}"))
    by_column = [column(i) for i in range(1, len(names))]
    if columns is not None:
        by_column = align(columns, dict(zip(names[1:], by_column, strict=True)), at.subject, f"{at.parameter}, columns")
    by_row = [list(row) for row in zip(*by_column, strict=True)]
    places = _places(rows, column(0), at.then(", rows"))
    if (places < 0).any():
        names = [rows.label(x) for x in np.flatnonzero(places < 0).tolist()]
        got = Description(f"no entry for {listing(names, most=3)}")
        raise at.then(", rows").error("have an entry for every value of the domain", got)
    return [by_row[place] for place in places.tolist()]


def _names_cells(rows: Domain, data: Any, form: str | None) -> bool:
    """Return whether the labels of an input are those of cells, not of rows."""
    if form == "pandas.Series":
        return type(data.index).__name__ == "MultiIndex" and not all(label in rows for label in data.index)
    if form is not None or not isinstance(data, Mapping) or not data:
        return False
    return all(isinstance(key, tuple) for key in data) and not all(key in rows for key in data)


def _domain_of(labels: list[Any], at: At) -> Domain:
    """Return a domain of labels, which may be tuples."""
    return Domain._of(list_of(labels, at, tuples=True))
