"""Which classes of mechanisms the library defines."""

from __future__ import annotations

from sfumato.mechanisms import families
from sfumato.mechanisms.base import Mechanism

__all__ = ["is_library_class"]


def is_library_class(kind: type[Mechanism]) -> bool:
    """Return whether ``families.py`` lists a class; examples in docstrings register others."""
    return any(kind in getattr(value, "mechanisms", ()) for value in vars(families).values())
