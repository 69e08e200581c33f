"""List what users can import: every public function, class, method and property of the package."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sfumato

#: Modules whose ``__all__`` is public, next to the root.
MODULES = (
    *("policy", "mechanisms", "compiler", "compiler.bounds", "device", "collecting", "spark", "estimation"),
    *("estimation.information_privacy", "plotting", "papers.data", "auditing", "testing", "errors"),
)
_PROPERTY = (property, functools.cached_property)
_UNBOUND = (classmethod, staticmethod)


@dataclass(frozen=True)
class PublicName:
    """A public object and the path from which users import it."""

    path: str
    value: Any

    @property
    def test_id(self) -> str:
        """The folder of ``src/sfumato`` that defines the object, and the path."""
        return f"{self.value.__module__.split('.')[1]}:{self.path}"


def public_names() -> list[PublicName]:
    """Return every public function and class, each once, by its shortest path."""
    names: dict[int, PublicName] = {}
    for module in (sfumato, *(importlib.import_module(f"sfumato.{name}") for name in MODULES)):
        for short in module.__all__:
            value = getattr(module, short)
            if inspect.isfunction(value) or inspect.isclass(value):
                names.setdefault(id(value), PublicName(f"{module.__name__}.{short}", value))
    return list(names.values())


def public_members(of: PublicName) -> Iterator[PublicName]:
    """Yield the public methods and properties that a class defines with a docstring, or adds without one."""
    if not inspect.isclass(of.value):
        return
    for name, value in vars(of.value).items():
        is_member = inspect.isfunction(value) or isinstance(value, (*_PROPERTY, *_UNBOUND))
        if is_member and not name.startswith(("_", "test_")) and _is_new_or_documented(of.value, name):
            yield PublicName(f"{of.path}.{name}", value)


def _is_new_or_documented(of: type, name: str) -> bool:
    inherited = any(hasattr(base, name) for base in of.__mro__[1:])
    return not inherited or vars(of)[name].__doc__ is not None
