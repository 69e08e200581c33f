"""A mechanism in the form that a search uses: rays of the cone with weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from sfumato._core import Floats, Progress, ProgressCallback

__all__ = ["LEAST_WEIGHT", "DesignWeights", "Rounds", "count_rounds"]

#: Function that is called with the value and the bound after every round of a search.
Rounds = Callable[[float, float], None]

#: Minimum weight of a ray; lighter rays are dropped.
LEAST_WEIGHT = 1e-10


@dataclass(frozen=True, eq=False)
class DesignWeights:
    """Rays (rows) with v·p = 1 and their weights, the value of the design, and a bound on every design.

    Parameters
    ----------
    rays
        The rays, one per row.
    weights
        The weight of each ray.
    value
        The value of the design.
    bound
        Bound on the value of every design.
    complete
        Whether the bound accounts for every ray.
    in_time
        Whether the search converged before the deadline.
    """

    rays: Floats
    weights: Floats
    value: float
    bound: float
    complete: bool
    in_time: bool

    def used(self) -> DesignWeights:
        """Return the design without rays of negligible weight."""
        used = self.weights > LEAST_WEIGHT
        return replace(self, rays=self.rays[used], weights=self.weights[used])


def count_rounds(progress: ProgressCallback | None) -> Rounds | None:
    """Return a function that counts the rounds of a search and of its parts, and calls ``progress``."""
    if progress is None:
        return None
    numbers = itertools.count(1)

    def report(value: float, bound: float) -> None:
        progress(Progress(next(numbers), None, "rounds", float(value), float(bound) if math.isfinite(bound) else None))

    return report
