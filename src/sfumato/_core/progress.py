"""The object that every ``progress=`` callback receives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Progress", "ProgressCallback"]


@dataclass(frozen=True)
class Progress:
    """Progress of a long computation, which functions pass to their ``progress=`` callback.

    Parameters
    ----------
    done
        Number of completed units.
    total
        Total number of units, or None if it is not known in advance.
    unit
        Name of the units, in the plural: ``"reports"``, ``"values"``, ``"people"``, ``"calls"``, ``"rounds"`` or
        ``"cases"``.
    value
        In a search for an optimal mechanism: the objective value of the best mechanism so far. None in other
        computations.
    bound
        In such a search: the best proved bound on the objective, which no mechanism can improve on. None before a bound
        is proved, and in other computations.

    Examples
    --------
    >>> print(Progress(250_000, 1_000_000, "people"))
    250,000 of 1,000,000 people (25%)
    >>> print(Progress(3, None, "rounds", value=2.5, bound=2.25))
    3 rounds, value 2.5, bound 2.25
    """

    done: int
    total: int | None
    unit: str
    value: float | None = None
    bound: float | None = None

    @property
    def fraction(self) -> float | None:
        """Completed fraction of the work, from 0 to 1; None if the total is not known."""
        if self.total is None:
            return None
        return self.done / self.total if self.total else 1.0

    def __str__(self) -> str:
        if self.total is None or self.fraction is None:
            line = f"{self.done:,} {self.unit}"
        else:
            line = f"{self.done:,} of {self.total:,} {self.unit} ({self.fraction:.0%})"
        if self.value is not None:
            line += f", value {self.value:.6g}"
        return line if self.bound is None else f"{line}, bound {self.bound:.6g}"


#: Function that a long computation calls at intervals to report its progress.
ProgressCallback = Callable[[Progress], None]
