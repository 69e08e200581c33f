"""Examples of the mechanisms of each family of the library, for vectors and contract tests.

A folder of mechanisms has a module of the same name here; ``systems`` has a function per set system.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.registry import Family, all_families

__all__ = ["Examples", "all_examples", "examples_of", "folder_of"]


@dataclass(frozen=True)
class Examples:
    """Examples of one family, by purpose.

    Parameters
    ----------
    samplers
        Returns mechanisms for the vectors of words and decisions. They cover every path of every sampler, on small and
        large domains.
    laws
        Returns mechanisms over few values at a level ε, for the vectors of exact laws.
    reports
        Returns mechanisms for the vectors of batches, one for every shape of report.
    """

    samplers: Callable[[], Sequence[Mechanism]]
    laws: Callable[[str], Sequence[Mechanism]]
    reports: Callable[[], Sequence[Mechanism]] = lambda: ()


def folder_of(family: Family) -> str:
    """Return the folder of a family, or the module of its set system."""
    *_, folder, module = family.mechanisms[0].__module__.split(".")
    return module if folder == "systems" else folder


def examples_of(family: Family) -> Examples:
    """Return the examples of a family of the library."""
    *_, folder, module = family.mechanisms[0].__module__.split(".")
    examples = importlib.import_module(f"{__name__}.{folder}")
    made: Examples = getattr(examples, module if folder == "systems" else "examples")()
    return made


def all_examples() -> list[Examples]:
    """Return the examples of all families of the library, in their order."""
    return [examples_of(family) for family in all_families() if family.is_of_library]
