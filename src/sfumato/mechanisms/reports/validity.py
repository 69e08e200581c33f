"""Which arrays are reports of a mechanism: anything else is refused with the row and the reason."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.nested_subsets.mechanism import NestedSubsets
from sfumato.mechanisms.partitioned.mechanism import PartitionedMechanism
from sfumato.mechanisms.reports.columns import reports_from_column
from sfumato.mechanisms.subset.mechanism import SubsetSelection
from sfumato.mechanisms.utility_optimized_rappor.mechanism import UtilityOptimizedRappor

__all__ = ["check_reports", "checked_pieces", "piece_rows"]

#: A piece of reports takes about this many bytes; unpacked to one byte a bit, eight times as many.
_PIECE_BYTES = 2**21


def check_reports(mechanism: Mechanism, reports: Any, what: str = "reports", first_row: int = 0) -> npt.NDArray[Any]:
    """Return reports as an array of the mechanism's dtype and shape, every one of them valid.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports.
    reports
        An array or a list, or a column of pandas, polars or Arrow as :func:`privatize` returns it.
    what
        The name of the reports in messages.
    first_row
        The number of the first row in messages.

    Raises
    ------
    InvalidInput
        If a report is missing or invalid; the message names the row.
    """
    reports = reports_from_column(mechanism, reports, what, first_row)
    if isinstance(reports, np.ma.MaskedArray):
        raise InvalidInput(what, "the array", "have no masked rows", type(reports))
    try:
        array = np.asarray(reports)
    except ValueError as error:  # rows of unequal length
        raise InvalidInput(what, "the array", "have one shape", str(error)) from None
    shape, dtype = mechanism.report_shape, mechanism.report_dtype
    if array.shape == (0,):
        return np.empty((0, *shape), dtype)
    if array.ndim != 1 + len(shape) or array.shape[1:] != shape or array.dtype.kind not in "iu":
        kind = "integers" if not shape else f"rows of {shape[0]} bytes"
        raise InvalidInput(what, "the array", f"hold {kind}", f"{array.dtype} of shape {array.shape}")
    if not shape:
        if array.min() < 0 or array.max() >= mechanism.outputs:  # one look at each: reports come in great numbers
            wrong = (array < 0) | (array >= mechanism.outputs)
            _refuse_rows(what, first_row, array, wrong, f"be in 0 … {mechanism.outputs - 1}")
        return array.astype(dtype, copy=False)
    if array.dtype != np.uint8:
        raise InvalidInput(what, "the array", "hold bytes", f"{array.dtype}")
    spare = 8 * shape[0] - mechanism.bits
    if spare:
        _refuse_rows(what, first_row, array, array[:, -1] >> 8 - spare != 0, f"leave its last {spare} bits zero")
    if isinstance(mechanism, SubsetSelection):
        weights = np.bitwise_count(array).sum(axis=1, dtype=np.int64)
        _refuse_rows(what, first_row, array, weights != mechanism.size, f"have exactly {mechanism.size} bits set")
    if isinstance(mechanism, PartitionedMechanism):
        from sfumato.mechanisms.partitioned.report_kernel import first_fault

        wrong = np.arange(len(array)) == first_fault(mechanism, np.ascontiguousarray(array))
        _refuse_rows(what, first_row, array, wrong, "be a report of one of the parts, or of a value in clear")
    if isinstance(mechanism, UtilityOptimizedRappor):
        harmless = np.packbits(~mechanism.is_sensitive, bitorder="little")
        revealed = np.bitwise_count(array & harmless).sum(axis=1, dtype=np.int64)
        _refuse_rows(what, first_row, array, revealed > 1, "have at most one bit of a harmless value set")
    if isinstance(mechanism, NestedSubsets):
        for start in range(0, len(array), piece_rows(mechanism)):
            _refuse_nested(what, first_row + start, array[start : start + piece_rows(mechanism)], mechanism)
    if isinstance(mechanism, ComposedSubsets):
        values = np.packbits(np.arange(mechanism.bits) < len(mechanism.domain), bitorder="little")
        for part, among, named in ((mechanism.values, values, "values"), (mechanism.labels, ~values, "blocks")):
            weights = np.bitwise_count(array & among).sum(axis=1, dtype=np.int64)
            _refuse_rows(what, first_row, array, weights != part.size, f"have exactly {part.size} bits of {named} set")
    return array


def _refuse_rows(what: str, first_row: int, array: npt.NDArray[Any], wrong: npt.NDArray[np.bool_], must: str) -> None:
    if wrong.any():
        row = int(wrong.argmax())
        value = array[row]
        got = value.tobytes().hex() if array.ndim > 1 else int(value)
        raise InvalidInput(what, f"the report in row {first_row + row}", must, got, row=first_row + row)


def _refuse_nested(what: str, first_row: int, array: npt.NDArray[Any], mechanism: NestedSubsets) -> None:
    bits = np.unpackbits(array, axis=1, count=mechanism.bits, bitorder="little")
    size, (in_high, in_low) = len(mechanism.domain), mechanism.sizes
    high = bits[:, size:]
    wrong = high.sum(axis=1, dtype=np.int64) != mechanism.high
    _refuse_rows(what, first_row, array, wrong, f"have exactly {mechanism.high} bits of blocks set")
    held = np.take(bits, mechanism.order, axis=1).reshape(len(bits), mechanism.blocks, mechanism.block_size)
    weights = held.sum(axis=2, dtype=np.uint32)
    wrong = (weights != np.where(high, in_high, in_low)).any(axis=1)
    must = f"have exactly {in_high} values set in every block whose bit is set, and {in_low} in every other"
    _refuse_rows(what, first_row, array, wrong, must)


def piece_rows(mechanism: Mechanism) -> int:
    """How many reports are handled at once: a multiple of 8, so that a packed piece ends on a whole byte."""
    report_bytes = mechanism.report_dtype.itemsize * math.prod(mechanism.report_shape)
    return max(8, _PIECE_BYTES // report_bytes // 8 * 8)


def checked_pieces(mechanism: Mechanism, reports: Any, what: str = "reports") -> Iterator[npt.NDArray[Any]]:
    """Reports, every one checked, cut anew into pieces of ``piece_rows``; only the last may be shorter.

    ``reports`` is one array or an iterator of arrays. How these were cut leaves no trace, and rows count on from one
    to the next.
    """
    rows = piece_rows(mechanism)
    held: list[npt.NDArray[Any]] = []
    length = seen = 0
    for part in reports if isinstance(reports, Iterator) else (reports,):
        array = check_reports(mechanism, part, what, seen)
        seen += len(array)
        while length + len(array) >= rows:
            cut = rows - length
            held.append(array[:cut])
            yield held[0] if len(held) == 1 else np.concatenate(held)
            array, held, length = array[cut:], [], 0
        if len(array):
            held.append(array.copy())  # whoever gave the array may fill it again for the next piece
            length += len(array)
    if held:
        yield held[0] if len(held) == 1 else np.concatenate(held)
