"""The solvers that the optional dependency ``optimize`` brings."""

from __future__ import annotations

import importlib
from typing import Any

from sfumato.errors import MissingExtra

__all__ = ["needed"]


def needed(module: str) -> Any:
    """An installed module, imported only now, or an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra("optimize", "the optimal design") from None
