"""Project estimates onto the probability simplex."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["project_protected", "project_to_simplex"]


def project_to_simplex(point: npt.NDArray[np.float64], total: float = 1.0) -> npt.NDArray[np.float64]:
    """Return the point of {q ≥ 0, Σ q = total} nearest in l2: subtract a constant and clip at zero."""
    # Adding a constant does not change the projection. With maximum 0, the sums stay accurate for any point.
    shifted = point - point.max()
    ordered = np.sort(_candidates(shifted, total))[::-1]
    surplus = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    last = int(np.flatnonzero(ordered >= surplus)[-1])  # equality: this entry becomes exactly 0
    return np.asarray(np.maximum(shifted - surplus[last], 0.0))


def project_protected(
    point: npt.NDArray[np.float64], revealed: npt.NDArray[np.bool_], total: float = 1.0
) -> npt.NDArray[np.float64]:
    """Project onto {q ≥ 0, Σ q = total}: keep the mass of ``revealed`` values and project only the others.

    The nearest point in l2 would take mass from all values alike, so values that are known well would absorb the noise
    of the protected ones. If the revealed values have more mass than the total, they are scaled down to it.
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
    """Return all values that can stay positive after the projection, and few others, to avoid sorting a million.

    The mean surplus of any set that contains those values is at most the constant to subtract (Michelot 1986).
    """
    while True:
        above = values[values > (values.sum() - total) / len(values)]
        if not 0 < len(above) < 0.9 * len(values):
            return values
        values = above
