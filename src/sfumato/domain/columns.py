"""Read columns of values without loss: lists, NumPy arrays, and Arrow, pandas and polars columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import import_pyarrow
from sfumato.domain.refusals import At


@dataclass(frozen=True, slots=True)
class Numbers:
    """Bool, int, uint or float64 array with a mask of its null rows."""

    array: npt.NDArray[Any]
    nulls: npt.NDArray[np.bool_] | None = None

    def at(self, row: int) -> object:
        """Return the value of a row, or None for null."""
        return None if self.nulls is not None and self.nulls[row] else self.array[row].item()

    def items(self) -> list[Any]:
        """Return all values as Python objects."""
        if self.nulls is None:
            return cast("list[Any]", self.array.tolist())
        return [self.at(row) for row in range(len(self.array))]


@dataclass(frozen=True, slots=True)
class Coded:
    """Dictionary-encoded or categorical column: positions in a list of values, -1 for null."""

    codes: npt.NDArray[Any]
    categories: list[Any]

    def at(self, row: int) -> object:
        """Return the value of a row, or None for null."""
        return None if self.codes[row] < 0 else self.categories[self.codes[row]]

    def items(self) -> list[Any]:
        """Return all values as Python objects."""
        return [self.at(row) for row in range(len(self.codes))]


@dataclass(frozen=True, slots=True)
class Objects:
    """Column of Python objects of any type."""

    objects: list[Any]

    def at(self, row: int) -> object:
        """Return the value of a row."""
        return self.objects[row]

    def items(self) -> list[Any]:
        """Return all values."""
        return self.objects


Column: TypeAlias = Numbers | Coded | Objects


def read_column(values: object, at: At) -> Column:
    """Convert any column-like object without loss."""
    if isinstance(values, list):
        return Objects(values)
    if isinstance(values, Coded):
        return values
    if isinstance(values, np.ndarray):
        return _from_numpy(values, at)
    if isinstance(values, (str, bytes, bytearray, Mapping)):
        raise at.error("be a list or a column", values)
    if isinstance(values, (set, frozenset)):
        raise at.error("be ordered, which a set is not", values, hint="Pass sorted(values).")
    if library(values) == "pandas":
        return _from_pandas(values, at)
    if is_arrow(values):
        return _from_arrow(arrow_column(values))
    if hasattr(values, "__array__"):
        return _from_numpy(np.asarray(values), at)
    if isinstance(values, Iterable):
        return Objects(list(values))
    raise at.error("be a list or a column", values)


def _from_numpy(array: npt.NDArray[Any], at: At) -> Column:
    """Convert a NumPy array of one dimension."""
    if array.ndim != 1:
        raise at.error("have one dimension", array.shape)
    if isinstance(array, np.ma.MaskedArray):
        return Objects(array.tolist())  # masked rows become None
    dtype_kind, width = array.dtype.kind, array.dtype.itemsize
    if dtype_kind in "biu":
        return Numbers(np.asarray(array))
    if dtype_kind == "f" and width <= 8:
        return Numbers(np.asarray(array.astype(np.float64, copy=False)))
    if dtype_kind in "OUT":
        return Objects(array.tolist())
    return Objects(list(array))  # tolist would convert dates and times to ints


def library(values: object) -> str:
    """Return the name of the top-level package that defines an object's type."""
    return type(values).__module__.partition(".")[0]


def _from_pandas(values: Any, at: At) -> Column:
    """Convert a pandas Series, Index or array."""
    if not hasattr(values, "dtype"):
        raise at.error("be a list or a column", type(values))
    dtype = values.dtype
    if isinstance(dtype, np.dtype):
        return _from_numpy(np.asarray(values), at)
    array = getattr(values, "array", values)
    if hasattr(dtype, "categories"):
        return Coded(np.asarray(array.codes), list(array.categories))
    arrow_backed = hasattr(dtype, "pyarrow_dtype") or dtype.name in ("str", "string")
    nullable_number = hasattr(dtype, "numpy_dtype") and dtype.kind in "biuf"
    if arrow_backed or nullable_number:
        try:
            return _from_arrow(arrow_column(array.__arrow_array__()))
        except ImportError:  # without pyarrow, the slower conversion below works too
            pass
    return _from_numpy(np.asarray(values), at)


def is_arrow(values: object) -> bool:
    """Return whether an object supports Arrow's C data interface."""
    return hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")


def arrow_column(values: Any) -> Any:
    """Convert an object with Arrow's C interface to a ``pyarrow.ChunkedArray``; a table becomes structs."""
    pyarrow = import_pyarrow()
    if library(values) == "polars":  # older releases of polars export a Categorical incorrectly
        values = values.to_arrow()
    if isinstance(values, pyarrow.ChunkedArray):
        return values
    if hasattr(values, "__arrow_c_stream__"):
        return pyarrow.chunked_array(values)
    return pyarrow.chunked_array([values if isinstance(values, pyarrow.Array) else pyarrow.array(values)])


def _from_arrow(column: Any) -> Column:
    """Convert a ``pyarrow.ChunkedArray``."""
    pyarrow = import_pyarrow()
    types, arrow_type = pyarrow.types, column.type
    if types.is_string_view(arrow_type):
        column = column.cast(pyarrow.large_string())
    if types.is_string(column.type) or types.is_large_string(column.type):
        column = column.dictionary_encode()
    if types.is_dictionary(column.type):
        chunks = column.unify_dictionaries().chunks
        if not chunks:
            return Objects([])
        codes = pyarrow.chunked_array([chunk.indices for chunk in chunks]).cast(pyarrow.int64())
        return Coded(codes.fill_null(-1).to_numpy(), chunks[0].dictionary.to_pylist())
    if (
        types.is_boolean(arrow_type)
        or types.is_integer(arrow_type)
        or types.is_float32(arrow_type)
        or types.is_float64(arrow_type)
    ):
        nulls = None
        if column.null_count:
            nulls = column.is_null().to_numpy()
            column = column.fill_null(pyarrow.scalar(0).cast(arrow_type))
        array = column.to_numpy()
        return Numbers(array.astype(np.float64, copy=False) if array.dtype.kind == "f" else array, nulls)
    return Objects(column.to_pylist())
