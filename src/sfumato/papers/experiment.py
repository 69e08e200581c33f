"""An experiment and how it is run; the list of all there are."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from sfumato._core import Progress, ProgressCallback
from sfumato.errors import InvalidInput
from sfumato.papers.result import Result

__all__ = ["Experiment", "Run", "all_experiments", "experiment_named"]

T = TypeVar("T")


def _nobody_watches(_progress: Progress) -> None:
    pass


@dataclass(frozen=True)
class Run:
    """How to run an experiment: ``quick`` takes the fewest and smallest cases that still show what is done."""

    quick: bool = False
    seed: int = 0
    #: Where data files lie; stand-ins are invented if None.
    folder: Path | None = None
    progress: ProgressCallback = _nobody_watches

    def of(self, quick: T, full: T) -> T:
        """The one or the other."""
        return quick if self.quick else full

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """The items one after the other, while the progress bar moves."""
        known = list(items)
        for done, item in enumerate(known):
            self.progress(Progress(done, len(known), "cases"))
            yield item
        self.progress(Progress(len(known), len(known), "cases"))

    def seeds(self) -> Iterator[int]:
        """One seed after the other for the parts of an experiment; those of another seed are others."""
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
    #: Where in which paper.
    place: str
    run: _Runnable


@functools.cache
def all_experiments() -> dict[str, Experiment]:
    """All experiments by name; figure 2 before figure 10."""
    package = importlib.import_module("sfumato.papers.experiments")
    names = [module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_")]
    experiments: list[Experiment] = [importlib.import_module(f"{package.__name__}.{name}").EXPERIMENT for name in names]
    return {each.name: each for each in sorted(experiments, key=lambda each: _natural(each.name))}


def experiment_named(name: str) -> Experiment:
    """An experiment, or a refusal that lists those there are."""
    known = all_experiments()
    if name not in known:
        raise InvalidInput("reproduce", "the name", f"be one of {', '.join(known)}", name)
    return known[name]


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts numbers as numbers."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
