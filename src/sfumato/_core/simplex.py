"""The nearest distribution to an estimate that may have left the simplex."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["project_protected", "project_to_simplex"]


def project_to_simplex(point: npt.NDArray[np.float64], total: float = 1.0) -> npt.NDArray[np.float64]:
    """The point of {q ≥ 0, Σ q = total} nearest in l2: subtract a constant, clip what falls below zero."""
    # A constant changes nothing; less the maximum, the sums stay exact enough however far the point is out.
    shifted = point - point.max()
    ordered = np.sort(_candidates(shifted, total))[::-1]
    surplus = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    last = int(np.flatnonzero(ordered >= surplus)[-1])  # equal: nothing to share out, or nothing left for this one
    return np.asarray(np.maximum(shifted - surplus[last], 0.0))


def project_protected(
    point: npt.NDArray[np.float64], revealed: npt.NDArray[np.bool_], total: float = 1.0
) -> npt.NDArray[np.float64]:
    """Of {q ≥ 0, Σ q = total}: ``revealed`` values keep their mass, and the others are projected onto what these leave.

    The nearest point in plain l2 would take from all alike, and values that are known well would pay for the noise of
    those that are not. Revealed values that leave nothing are scaled down to the total.
    """
    if revealed.all() or not revealed.any():
        return project_to_simplex(point, total)
    projected = np.empty(len(point))
    revealed_part = np.maximum(point[revealed], 0.0)
    mass = float(revealed_part.sum())
    projected[revealed] = revealed_part * (total / mass) if mass > total else revealed_part
    projected[~revealed] = project_to_simplex(point[~revealed], max(total - mass, 0.0))
    return projected


def _candidates(values: npt.NDArray[np.float64], total: float) -> npt.NDArray[np.float64]:
    """All values that can stay positive, and few others: sorting a million is what would take the time.

    The mean surplus of any values that hold those which stay is at most the constant to subtract (Michelot 1986).
    """
    while True:
        above = values[values > (values.sum() - total) / len(values)]
        if not 0 < len(above) < 0.9 * len(values):
            return values
        values = above
