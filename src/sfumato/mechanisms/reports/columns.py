"""Reports as a pandas, polars or Arrow column: one element per report, for every mechanism.

Indices are unsigned integers. Any other report is a string: the letter ``x`` and the bytes of the report, as two
lower-case hex digits each. The letter prevents CSV readers from parsing the digits as a number ("00", "1e10"). This
module needs only the shape of a report; ``ReportFormat.validate`` decides which reports are valid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from sfumato._core import import_optional, import_pyarrow
from sfumato.domain import arrow_column, is_arrow, is_missing, library
from sfumato.errors import InvalidInput

__all__ = ["HASH_ATTRIBUTE", "REPORT_COLUMN", "reports_from_column", "reports_to_column"]

#: Name of the column of reports.
REPORT_COLUMN = "report"
#: Key of the mechanism's hash in the ``attrs`` of a pandas Series of reports.
HASH_ATTRIBUTE = "sfumato.mechanism"
#: First character of a report that is written as hex digits.
_PREFIX = "x"
#: The two hex digits of every byte, stored as the two bytes of a 16-bit number.
_DIGITS = np.frombuffer(bytes(range(256)).hex().encode(), np.uint16)
_NO_BYTE = 256
#: The byte that two hex digits encode, indexed by the 16-bit number whose bytes they are.
_BYTES = np.full(2**16, _NO_BYTE, np.uint16)
_BYTES[_DIGITS] = np.arange(256)
#: Bound below which all integers are exact in doubles.
_MOST_EXACT = 2.0**53
#: Method that drops missing values, by library.
_DROP = {"pandas": "dropna()", "polars": "drop_nulls()", "pyarrow": "drop_null()"}

#: Result for a column without rows, which may have any type.
_NONE = np.empty(0, np.uint8)

Bytes = npt.NDArray[np.uint8]


# -- array to column ---------------------------------------------------------------------------------------


def reports_to_column(reports: npt.NDArray[Any], like: Any, mechanism_hash: str | None = None) -> Any:
    """Return reports as a column of the same library as ``like``, or as the array itself if ``like`` has no library.

    A pandas Series has the index of ``like``, and the hash of the mechanism in ``attrs``.
    """
    name, has_bytes = library(like), reports.ndim > 1
    if name == "pandas":
        pandas = import_optional("pandas", "pandas", "a column of reports")
        elements = _pandas_strings(pandas, reports) if has_bytes else reports
        index = like.index if isinstance(like, (pandas.Series, pandas.DataFrame)) else None
        column = pandas.Series(elements, index=index, name=REPORT_COLUMN)
        if mechanism_hash is not None:
            column.attrs[HASH_ATTRIBUTE] = mechanism_hash
        return column
    if name in ("polars", "pyarrow"):
        column = _arrow_strings(reports) if has_bytes else import_pyarrow().array(reports)
        return column if name == "pyarrow" else import_optional("polars", "arrow", name).Series(REPORT_COLUMN, column)
    return reports


def _hex_characters(reports: Bytes) -> Bytes:
    """Return the characters of every report's string, one row per report."""
    count, width = reports.shape
    characters = np.empty((count, 1 + 2 * width), np.uint8)
    characters[:, 0] = ord(_PREFIX)
    characters[:, 1:] = _DIGITS[reports].view(np.uint8)
    return characters


def _arrow_strings(reports: Bytes) -> Any:
    """Return reports as an Arrow array of strings."""
    pyarrow = import_pyarrow("a column of reports")
    characters = _hex_characters(reports)
    offsets = np.arange(len(characters) + 1, dtype=np.int64) * characters.shape[1]
    buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(characters)]
    return pyarrow.Array.from_buffers(pyarrow.large_string(), len(characters), buffers)


def _pandas_strings(pandas: Any, reports: Bytes) -> Any:
    """Return reports as strings in the type that this version of pandas uses."""
    dtype = pandas.Series([""]).dtype
    if str(dtype) != "object":  # since version 3, pandas stores strings as Arrow does if pyarrow is installed
        try:
            return pandas.array(_arrow_strings(reports), dtype=dtype)
        except ImportError:
            pass
    characters = _hex_characters(reports)
    joined, length = characters.tobytes().decode(), characters.shape[1]
    return np.array([joined[start : start + length] for start in range(0, len(joined), length)], dtype=object)


# -- column to array ---------------------------------------------------------------------------------------


def reports_from_column(shape: tuple[int, ...], reports: Any, subject: str, first_row: int = 0) -> Any:
    """Return the reports of a column as an array; return anything else unchanged.

    In addition to the output of ``reports_to_column``, a column may hold the bytes of every report, as Parquet files of
    reports do, or hex digits without the letter. Integers may have any type, as after CSV. ``shape`` is the shape of
    one report in an array. ``subject`` and ``first_row`` are used in error messages, as in ``ReportFormat.validate``.
    """
    if isinstance(reports, np.ndarray) and reports.dtype.kind not in "OUT":
        return reports
    return _Reader(sum(shape), library(reports), subject, first_row).read(reports)


class _Reader:
    """Reader of one column: the bytes per report (0 for indices), the column's library, and the names for messages."""

    def __init__(self, width: int, library: str, subject: str, first_row: int) -> None:
        self._width, self._library, self._subject, self._first_row = width, library, subject, first_row

    def read(self, reports: Any) -> Any:
        """Return the reports as an array, or anything that is not a column unchanged."""
        if self._library == "pandas":
            return self._from_pandas(reports)
        if is_arrow(reports):
            return self._from_arrow(reports)
        is_array = isinstance(reports, np.ndarray) and reports.ndim == 1
        if is_array or (isinstance(reports, (list, tuple)) and reports and isinstance(reports[0], (str, bytes))):
            return self._from_objects(reports)
        return reports

    def _from_pandas(self, reports: Any) -> Any:
        """Return the reports of a pandas column."""
        if not hasattr(reports, "dtype"):
            self._refuse_table(reports)
        if not len(reports):
            return _NONE
        self._refuse_missing(np.asarray(reports.isna()))
        if hasattr(reports.dtype, "categories"):
            reports = reports.astype(reports.dtype.categories.dtype)
        dtype = reports.dtype
        if dtype.kind in "mM":  # dates and times would be read as the integers that store them
            self._refuse_column(str(dtype))
        if hasattr(dtype, "fill_value"):  # a sparse column
            dense = np.asarray(reports)
            return self._from_numbers(dense) if dense.dtype.kind in "iuf" else self._from_objects(dense)
        if dtype.kind in "iuf":
            return self._from_numbers(reports.to_numpy(getattr(dtype, "numpy_dtype", dtype)))
        array = getattr(reports, "array", reports)
        if hasattr(array, "__arrow_array__") and dtype.kind != "b":
            try:
                return self._from_arrow(array.__arrow_array__())
            except ImportError:  # pandas works without pyarrow
                pass
        return self._from_objects(np.asarray(reports))

    def _from_arrow(self, reports: Any) -> Any:
        """Return the reports of an Arrow or polars column."""
        types = import_pyarrow("a column of reports", "pyarrow.types")
        if hasattr(reports, "columns"):
            self._refuse_table(reports)
        column = arrow_column(reports)
        if not len(column):
            return _NONE
        if column.null_count:
            self._refuse_missing(column.is_null().to_numpy())
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        arrow_type = column.type
        if types.is_integer(arrow_type) or types.is_floating(arrow_type):
            return self._from_numbers(column.to_numpy())
        is_text = types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type)
        is_bytes = types.is_binary(arrow_type) or types.is_large_binary(arrow_type) or types.is_binary_view(arrow_type)
        if not self._width or not (is_text or is_bytes or types.is_fixed_size_binary(arrow_type)):
            self._refuse_column(str(arrow_type))
        array = column.cast("large_string" if is_text else "large_binary").combine_chunks()
        _, places, content = array.buffers()
        offsets = np.frombuffer(places, np.int64)[array.offset : array.offset + len(array) + 1]
        self._check_lengths(np.diff(offsets), lambda row: array[row].as_py(), is_text=is_text)
        characters = np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]].reshape(len(array), -1)
        return self._from_characters(characters) if is_text else characters

    def _from_objects(self, elements: Any) -> Any:
        """Read strings or bytes; return anything else unchanged."""
        original, elements = elements, elements if isinstance(elements, (list, tuple)) else elements.tolist()
        kinds = set(map(type, elements))
        is_text = all(issubclass(kind, str) for kind in kinds)
        if not is_text and not all(issubclass(kind, bytes) for kind in kinds):
            is_integer = all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds)
            if not self._width and self._library == "pandas" and is_integer:
                return np.array(elements)
            if kinds & {str, bytes}:
                self._refuse_missing(np.array([is_missing(element) for element in elements]))
            return original
        if not elements:
            return _NONE
        if not self._width:
            self._refuse_column("strings" if is_text else "bytes")
        lengths = np.fromiter(map(len, elements), np.int64, len(elements))
        self._check_lengths(lengths, elements.__getitem__, is_text=is_text)
        if not is_text:
            return np.frombuffer(b"".join(elements), np.uint8).reshape(len(elements), -1)
        joined = "".join(elements)
        if not joined.isascii():
            row = next(row for row, element in enumerate(elements) if not element.isascii())
            self._refuse(row, self._must(is_text=True), elements[row])
        return self._from_characters(np.frombuffer(joined.encode(), np.uint8).reshape(len(elements), -1))

    def _from_numbers(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return numbers as indices, or raise InvalidInput if one is not an integer."""
        if self._width:
            self._refuse_column(str(numbers.dtype))
        if numbers.dtype.kind != "f":
            return numbers
        # A column that had missing values holds doubles, even after they were dropped.
        wrong = ~((numbers == np.floor(numbers)) & (np.abs(numbers) < _MOST_EXACT))
        if wrong.any():
            row = int(wrong.argmax())
            self._refuse(row, "be a whole number", float(numbers[row]))
        return numbers.astype(np.int64)

    def _from_characters(self, characters: Bytes) -> Bytes:
        """Return the bytes that rows of hex digits encode, or raise InvalidInput for the first wrong row."""
        reports = _BYTES[np.ascontiguousarray(characters[:, -2 * self._width :]).view(np.uint16)]
        has_prefix = characters.shape[1] > 2 * self._width
        if reports.max() == _NO_BYTE or (has_prefix and (characters[:, 0] != ord(_PREFIX)).any()):
            wrong = (reports == _NO_BYTE).any(axis=1)
            if has_prefix:
                wrong |= characters[:, 0] != ord(_PREFIX)
            row = int(wrong.argmax())
            self._refuse(row, self._must(is_text=True), characters[row].tobytes().decode(errors="replace"))
        return reports.astype(np.uint8)

    # -- errors

    def _must(self, *, is_text: bool) -> str:
        """Return the requirement on one element."""
        return f"be {_PREFIX!r} and {2 * self._width} hex digits" if is_text else f"be {self._width} bytes"

    def _check_lengths(self, lengths: npt.NDArray[np.int64], element: Callable[[int], Any], *, is_text: bool) -> None:
        """Raise InvalidInput for the first element of the wrong length."""
        digits = 2 * self._width
        expected = self._width if not is_text else digits if lengths[0] == digits else 1 + digits
        wrong = lengths != expected
        if wrong.any():
            row = int(wrong.argmax())
            self._refuse(row, self._must(is_text=is_text), element(row))

    def _refuse(self, row: int, must: str, got: object, *, hint: str | None = None) -> NoReturn:
        """Raise InvalidInput for one row."""
        number = self._first_row + row
        raise InvalidInput(self._subject, f"the report in row {number}", must, got, row=number, hint=hint)

    def _refuse_missing(self, missing: npt.NDArray[np.bool_]) -> None:
        """Raise InvalidInput for the first missing report, if there is one."""
        if missing.any():
            drop = _DROP.get(self._library, "dropna()")
            hint = f"Drop the rows without a report with {drop}."
            self._refuse(int(missing.argmax()), "not be missing", None, hint=hint)

    def _refuse_column(self, got: str) -> NoReturn:
        """Raise InvalidInput for a column of the wrong type."""
        must = f"hold strings, {_PREFIX!r} and {2 * self._width} hex digits each" if self._width else "hold integers"
        noun = "the column" if self._library in _DROP else "the array"
        hint = "Check that the reports are those of this mechanism."
        raise InvalidInput(self._subject, noun, must, got, hint=hint)

    def _refuse_table(self, reports: Any) -> NoReturn:
        """Raise InvalidInput for a table in place of a column."""
        hint = "Select the column of reports, such as table['report']."
        raise InvalidInput(self._subject, "the column", "be one column, not a table", type(reports), hint=hint)
