"""All extreme rays of a prior policy, up to permutations of values of equal probability.

With π·v = 1, the rules of the policy are e^-ε ≤ v ≤ e^ε (one of the two for a one-sided policy). This slice has one
equation, so at most one entry of a vertex lies strictly between the limits. That entry follows from the others. The
number of values of each class at the high level and the class of the entry in between identify an orbit.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato._core import Floats, Integers
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.compiler.solvers.orbits.family import MOST_FIRST, Family
from sfumato.compiler.solvers.orbits.kinds import Kinds, Orbits, Sort
from sfumato.compiler.solvers.orbits.pricing import Prices
from sfumato.policy import Prior

__all__ = ["PriorFamily"]

#: Maximum number of combinations of values at the high level.
_MOST_LISTED = 2_000_000
#: Number of orbits that are returned at given prices.
_MOST_BEST = 8
#: Slack of the limits, because the entry in between may equal one of them up to rounding.
_SLACK = 1e-12


class PriorFamily(Family):
    """The orbits of a prior policy, all of which are listed."""

    def __init__(self, kinds: Kinds, policy: Prior) -> None:
        self.kinds, self.least_epsilon = kinds, float(policy.epsilon)
        prior, sizes = np.array([float(policy.prior[block[0, 0]]) for block in kinds.blocks]), kinds.sizes
        self._low = 0.0 if policy.side == "upper" else math.exp(-self.least_epsilon)
        # Without an upper limit, no value but the one in between is above the lower limit.
        is_limited = policy.side != "lower" and self.least_epsilon < math.log(1 / prior.min())
        self._high = math.exp(self.least_epsilon) if is_limited else 1 / float(prior.min())
        inside, places, thirds = [], [], []
        for place in range(len(sizes)):
            rest = sizes - np.eye(len(sizes))[place]
            most = np.minimum(rest, np.floor(1 / (prior * self._high))) if is_limited else np.zeros(len(sizes))
            grid = np.meshgrid(*(np.arange(count + 1) for count in most), indexing="ij")
            counts = np.stack(grid, axis=-1).reshape(-1, len(sizes))
            third = (1 - (counts * self._high + (rest - counts) * self._low) @ prior) / prior[place]
            allowed = (third >= self._low * (1 - _SLACK)) & ((third <= self._high * (1 + _SLACK)) | (not is_limited))
            inside.append(counts[allowed])
            places.append(np.full(int(allowed.sum()), place))
            thirds.append(third[allowed])
        self._inside, self._places, self._thirds = (np.concatenate(parts) for parts in (inside, places, thirds))
        self._all = self._listed()

    @staticmethod
    def fits(kinds: Kinds) -> bool:
        """Return whether the orbits can be listed."""
        return float(np.prod(kinds.sizes + 1)) * len(kinds.sizes) <= _MOST_LISTED

    def _listed(self) -> Orbits:
        """Return all orbits without their sorts."""
        sizes, probabilities = self.kinds.sizes, self.kinds.probabilities
        is_third = np.eye(len(sizes))[self._places]
        counts = np.stack([self._inside, sizes - self._inside - is_third, is_third])
        levels = np.stack([np.full(len(is_third), self._high), np.full(len(is_third), self._low), self._thirds])
        levels = levels[:, :, None] / np.einsum("lok,lo,k->o", counts, levels, probabilities)[:, None]
        sums = (counts * levels).sum(axis=0)
        within = (counts * (levels - sums / sizes) ** 2).sum(axis=0)
        entropies = levels * np.log(np.where(levels > 0, levels, 1.0))
        information = np.einsum("lok,lo,k->o", counts, entropies[:, :, 0], probabilities)
        return Orbits(((),) * len(sums), sums, np.zeros_like(sums), within, information)

    def _rays(self, rows: Integers) -> Orbits:
        """Return the orbits in these rows with their sorts."""
        rays = [
            [
                Sort(kind, self._high, self._low, int(count), 1, float(self._thirds[row]) if kind == place else None)
                for kind, count in enumerate(self._inside[row])
            ]
            for row, place in zip(rows.tolist(), self._places[rows].tolist(), strict=True)
        ]
        return self.kinds.orbits(rays)

    def first(self) -> Orbits:
        rows = np.linspace(0, len(self._all) - 1, min(len(self._all), MOST_FIRST)).round().astype(np.int64)
        return self.with_opposites(self._rays(rows))

    def best(self, prices: Prices, tolerance: float, deadline: Deadline) -> tuple[Orbits, float]:  # noqa: ARG002
        worths: Floats = prices.of(self._all)
        return self._rays(np.argsort(-worths)[:_MOST_BEST]), float(worths.max())
