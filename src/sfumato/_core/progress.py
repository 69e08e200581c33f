"""The one object that every ``progress=`` callback receives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Progress", "ProgressCallback"]


@dataclass(frozen=True)
class Progress:
    """How far a long computation is: the argument of every ``progress=`` callback.

    Parameters
    ----------
    done
        Number of units that are done.
    total
        Number of units there are, or None where it is not known beforehand.
    unit
        What is counted, in the plural: ``"reports"``, ``"values"``, ``"people"``, ``"calls"``, ``"rounds"`` or
        ``"cases"``.
    value
        Utility of the best mechanism of a search so far; None elsewhere.
    bound
        Utility that no mechanism exceeds, as far as the search has proved; None elsewhere, and before anything is
        proved.

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
        """Fraction of the work that is done, from 0 to 1; None where the total is not known."""
        if self.total is None:
            return None
        return self.done / self.total if self.total else 1.0

    def __str__(self) -> str:
        if self.total is None or self.fraction is None:
            text = f"{self.done:,} {self.unit}"
        else:
            text = f"{self.done:,} of {self.total:,} {self.unit} ({self.fraction:.0%})"
        if self.value is not None:
            text += f", value {self.value:.6g}"
        return text if self.bound is None else f"{text}, bound {self.bound:.6g}"


#: A function that is called now and then while a computation runs.
ProgressCallback = Callable[[Progress], None]
