"""Reports of many people as one batch in which none of them can be found by its place."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.collecting import write_batch
from sfumato.mechanisms import Mechanism, piece_rows

__all__ = ["mixed_batch"]


def mixed_batch(mechanism: Mechanism, reports: Sequence[npt.NDArray[Any]]) -> bytes:
    """One binary batch of all these reports, in ascending order."""
    together = np.concatenate(reports)
    if together.ndim > 1:
        rows = np.ascontiguousarray(together).view(f"V{together[0].nbytes}")
        together = np.sort(rows, axis=0).view(together.dtype).reshape(together.shape)
    else:
        together = np.sort(together)
    file = io.BytesIO()
    step = piece_rows(mechanism)
    write_batch(mechanism, file, (together[start : start + step] for start in range(0, len(together), step)))
    return file.getvalue()
