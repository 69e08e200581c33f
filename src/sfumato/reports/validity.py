"""Which arrays are reports of a mechanism: anything else is refused with the row and the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism, SubsetSelection

__all__ = ["check_reports"]


def check_reports(mechanism: Mechanism, reports: Any, what: str = "reports", first_row: int = 0) -> npt.NDArray[Any]:
    """The reports as an array of the mechanism's own type, every one of them valid."""
    array = np.asarray(reports)
    shape, dtype = mechanism.report_shape, mechanism.report_dtype
    if array.size == 0:
        array = array.reshape(0, *shape).astype(dtype)
    if array.shape[1:] != shape or array.dtype.kind not in "iu":
        kind = "integers" if not shape else f"rows of {shape[0]} bytes"
        raise InvalidInput(what, "the array", f"hold {kind}", f"{array.dtype} of shape {array.shape}")
    if not shape:
        _refuse_rows(
            what, first_row, array, (array < 0) | (array >= mechanism.outputs), f"be below {mechanism.outputs}"
        )
        return array.astype(dtype, copy=False)
    if array.dtype != np.uint8:
        raise InvalidInput(what, "the array", "hold bytes", f"{array.dtype}")
    spare = 8 * shape[0] - mechanism.bits
    if spare:
        _refuse_rows(what, first_row, array, array[:, -1] >> 8 - spare != 0, f"leave its last {spare} bits zero")
    if isinstance(mechanism, SubsetSelection):
        weights = np.bitwise_count(array).sum(axis=1, dtype=np.int64)
        _refuse_rows(what, first_row, array, weights != mechanism.size, f"have exactly {mechanism.size} bits set")
    return array


def _refuse_rows(what: str, first_row: int, array: npt.NDArray[Any], wrong: npt.NDArray[np.bool_], must: str) -> None:
    if wrong.any():
        row = int(wrong.argmax())
        value = array[row]
        got = value.tobytes().hex() if array.ndim > 1 else int(value)
        raise InvalidInput(what, f"the report in row {first_row + row}", must, got)
