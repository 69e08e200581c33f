"""Code shared by the kernels of several families. Running a kernel imports numba; importing this package does not."""

from __future__ import annotations

from typing import Any

__all__ = ["write_thresholds"]


def write_thresholds(*arguments: Any) -> int:
    """Write the thresholds of users with their own priors into an array."""
    from sfumato.mechanisms.prior import local_kernel

    return local_kernel.write_thresholds(*arguments)
