"""Import modules when they are first needed, so that importing Sfumato stays fast."""

from __future__ import annotations

import importlib
from typing import Any

from sfumato.errors import MissingExtra

__all__ = ["import_late", "import_optional", "import_pyarrow"]


def import_late(module: str) -> Any:
    """Import a module of a required dependency on first use, and return it."""
    return importlib.import_module(module)


def import_optional(module: str, extra: str, purpose: str) -> Any:
    """Import a module that an extra installs; raise MissingExtra with the purpose if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(extra, purpose) from error


def import_pyarrow(purpose: str = "reading an Arrow or polars column", module: str = "pyarrow") -> Any:
    """Import pyarrow, or one of its submodules; raise MissingExtra if it is not installed."""
    return import_optional(module, "arrow", purpose)
