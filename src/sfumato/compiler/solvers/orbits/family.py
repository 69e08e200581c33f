"""All orbits of the extreme rays of a policy: which ones to start from, and the most valuable at given prices."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod

import numpy as np

from sfumato.compiler.solvers.deadline import Deadline
from sfumato.compiler.solvers.orbits.kinds import Kinds, Orbits
from sfumato.compiler.solvers.orbits.patterns import Cell, Patterns
from sfumato.compiler.solvers.orbits.pricing import Prices, greatest

__all__ = ["MOST_FIRST", "Family", "PatternFamily"]

#: Maximum number of initial orbits, without their opposites.
MOST_FIRST = 240
#: Epsilons are limited to this in the ratio of opposites, so that it fits in double precision.
_MOST_EPSILON = 100.0
#: Difference between the levels of a ray below which it counts as constant.
_CONSTANT = 1e-12


class Family(ABC):
    """All orbits of the extreme rays of a policy at a distribution.

    Attributes
    ----------
    kinds
        The exchangeable values.
    least_epsilon
        Least epsilon between two values, or that of a prior policy.
    """

    kinds: Kinds
    least_epsilon: float

    @abstractmethod
    def first(self) -> Orbits:
        """Return a few orbits that identify all values, and average to the constant vector with positive weights."""

    @abstractmethod
    def best(self, prices: Prices, tolerance: float, deadline: Deadline) -> tuple[Orbits, float]:
        """Return orbits of great worth, and an upper bound on the worth of every orbit."""

    def with_opposites(self, orbits: Orbits) -> Orbits:
        """Return each of the orbits once, and for each ray v the orbit of its opposite 1 + s·(1 - v).

        A ray and its opposite mix to the constant vector. The step s is the largest for which the ratio between the
        values of the opposite is at most e^ε, so that it obeys every rule at ε or more.
        """
        ratio = math.exp(min(self.least_epsilon, _MOST_EPSILON))
        opposites = []
        for sorts in orbits.sorts:
            levels = [level for sort in sorts for level in (sort.high, sort.low, sort.third) if level is not None]
            least, most = min(levels), max(levels)
            step = (ratio - 1) / ((1 - least) + ratio * (most - 1)) if most - least > _CONSTANT else 0.0
            opposites.append([sort.mapped(functools.partial(_reflected, step=step)) for sort in sorts])
        both = orbits + self.kinds.orbits(opposites)
        return both.of(list({sorts: row for row, sorts in enumerate(both.sorts)}.values()))


def _reflected(level: float, step: float) -> float:
    """Return the level of an opposite."""
    return 1 + step * (1 - level)


class PatternFamily(Family):
    """The orbits of a policy on pairs of values."""

    def __init__(self, kinds: Kinds, patterns: list[list[Cell]], least_epsilon: float) -> None:
        self.kinds, self.least_epsilon = kinds, least_epsilon
        self.patterns = Patterns.of(patterns, kinds.sizes)

    def first(self) -> Orbits:
        patterns, rays = self.patterns, []
        width = patterns.kinds.shape[1]
        heights = np.maximum(patterns.highs + patterns.lows, np.finfo(float).tiny)
        each = np.maximum(np.round(self.kinds.sizes[patterns.kinds] * patterns.lows / heights), 1)
        step = 1 + len(patterns) * (width + 2) // MOST_FIRST
        for row in range(0, len(patterns), step):
            # No value inside, one value inside one cell, or in each block as many as are best for a single block.
            several = np.minimum(each[row] * patterns.numbers[row], patterns.limits[row]).astype(np.int64)
            for inside in (np.zeros(width, dtype=np.int64), several, *np.eye(width, dtype=np.int64)):
                filled = np.where(inside > 0, patterns.highs[row], patterns.lows[row]) * patterns.numbers[row]
                if (inside <= patterns.limits[row]).all() and filled.any():
                    rays.append(patterns.sorts(row, inside.tolist()))
        return self.with_opposites(self.kinds.orbits(rays))

    def best(self, prices: Prices, tolerance: float, deadline: Deadline) -> tuple[Orbits, float]:
        return greatest(self.kinds, self.patterns, prices, tolerance, deadline)
