"""What kernels of several families share. Importing this package does not import numba; running a kernel does."""

from __future__ import annotations

from typing import Any

from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.kernels.base import Kernel

__all__ = ["Kernel", "kernel_for", "write_thresholds"]


def kernel_for(mechanism: Mechanism) -> Kernel | None:
    """Return the kernel that samples as the mechanism does, or None if there is none."""
    from sfumato.mechanisms.kernels import registry

    return registry.kernel_for(mechanism)


def write_thresholds(*arguments: Any) -> int:
    """Write the thresholds of users with their own priors into an array."""
    from sfumato.mechanisms.prior import local_kernel

    return local_kernel.write_thresholds(*arguments)
