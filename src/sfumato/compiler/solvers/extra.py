"""Solvers and their like, which are imported when they are first needed: importing Sfumato stays light."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["needed"]


def needed(module: str) -> Any:
    """Return a module, imported only now."""
    return importlib.import_module(module)
