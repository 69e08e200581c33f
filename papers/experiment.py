"""Experiments, how they run, and the list of all of them."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from papers.result import Result
from sfumato._core import Progress, ProgressCallback
from sfumato.errors import InvalidInput

__all__ = ["Experiment", "Run", "all_experiments", "experiment_named"]

T = TypeVar("T")


def _ignore(_progress: Progress) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class Run:
    """Options of a run.

    Parameters
    ----------
    quick
        Whether to run only the fewest and smallest cases that still show the method.
    seed
        Seed of the random numbers.
    folder
        Folder with data files. If None, experiments invent stand-ins.
    progress
        A function that is called with the progress.
    """

    quick: bool = False
    seed: int = 0
    folder: Path | None = None
    progress: ProgressCallback = _ignore

    def of(self, quick: T, full: T) -> T:
        """Return the first value for a quick run, and the second otherwise."""
        return quick if self.quick else full

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, and report progress."""
        known = list(items)
        for done, item in enumerate(known):
            self.progress(Progress(done, len(known), "cases"))
            yield item
        self.progress(Progress(len(known), len(known), "cases"))

    def seeds(self) -> Iterator[int]:
        """Yield a different seed for each part of an experiment."""
        number = self.seed * 1_000_003
        while True:
            yield number
            number += 1


class _Runnable(Protocol):
    def __call__(self, run: Run) -> Result: ...


@dataclass(frozen=True)
class Experiment:
    """A figure or a table of a paper."""

    name: str
    title: str
    #: Paper, and figure or table in it.
    place: str
    run: _Runnable


@functools.cache
def all_experiments() -> dict[str, Experiment]:
    """Return all experiments by name, with figure 2 before figure 10."""
    package = importlib.import_module("papers.experiments")
    names = [module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_")]
    experiments: list[Experiment] = [importlib.import_module(f"{package.__name__}.{name}").EXPERIMENT for name in names]
    return {each.name: each for each in sorted(experiments, key=lambda each: _natural(each.name))}


def experiment_named(name: str) -> Experiment:
    """Return the experiment with a name, or raise InvalidInput with the list of names."""
    known = all_experiments()
    if name not in known:
        raise InvalidInput("reproduce", "the name", f"be one of {', '.join(known)}", name)
    return known[name]


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that orders numbers by value."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
