"""Published values, and values computed without this package, that tests compare with."""

from __future__ import annotations

import functools
import json
from typing import Any

from support import ROOT

__all__ = ["reference"]


@functools.cache
def _sections() -> dict[str, Any]:
    files = sorted((ROOT / "tests" / "references").glob("*.json"))
    return {name: values for file in files for name, values in json.loads(file.read_text(encoding="utf-8")).items()}


def reference(section: str) -> Any:
    """The values of a section of tests/references; its README.md says where they are from."""
    return _sections()[section]
