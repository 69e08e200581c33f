"""Modules that are imported when they are first needed, so that importing Sfumato stays light."""

from __future__ import annotations

import importlib
from typing import Any

from sfumato.errors import MissingExtra

__all__ = ["import_late", "import_optional", "import_pyarrow"]


def import_late(module: str) -> Any:
    """Return a module of a core dependency, imported only now."""
    return importlib.import_module(module)


def import_optional(module: str, extra: str, purpose: str) -> Any:
    """Return a module that an extra installs; if it is absent, raise MissingExtra, which names the purpose."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(extra, purpose) from error


def import_pyarrow(purpose: str = "reading an Arrow or polars column", module: str = "pyarrow") -> Any:
    """Return a module of pyarrow."""
    return import_optional(module, "arrow", purpose)
