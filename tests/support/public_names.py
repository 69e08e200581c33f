"""List what users can import: every public function, class, method and property of the package."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import sfumato

#: Modules whose ``__all__`` is public, next to the root.
MODULES = (
    *("policy", "mechanisms", "compiler", "compiler.bounds", "device", "collecting", "spark", "estimation"),
    *("estimation.information_privacy", "plotting", "datasets", "auditing", "testing", "errors"),
)
#: Packages whose public names are all in the root, or that have a command or an HTTP interface instead.
WITHOUT_OTHER_NAMES = ("cli", "domain", "questions", "randomness", "server")
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
    for module in _modules():
        for short in module.__all__:
            value = getattr(module, short)
            if inspect.isfunction(value) or inspect.isclass(value):
                names.setdefault(id(value), PublicName(f"{module.__name__}.{short}", value))
    return list(names.values())


def public_constants() -> list[str]:
    """Return the path of every public name that is neither a function, a class nor a module."""
    return [
        f"{module.__name__}.{short}"
        for module in _modules()
        for short in module.__all__
        if not (inspect.isroutine(value := getattr(module, short)) or inspect.isclass(value) or inspect.ismodule(value))
    ]


def undocumented_modules() -> list[str]:
    """Return the packages that look public, but whose names are neither listed here nor all in the root."""
    packages = {module.name for module in pkgutil.iter_modules(sfumato.__path__) if not module.name.startswith("_")}
    return sorted(packages - {name.partition(".")[0] for name in MODULES} - set(WITHOUT_OTHER_NAMES))


def _modules() -> list[ModuleType]:
    return [sfumato, *(importlib.import_module(f"sfumato.{name}") for name in MODULES)]


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
