"""Utilities that are sums over outputs, Σ_y w_y·f(v_y) with convex f, and the search for rays that improve them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from sfumato._core import Floats
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.compiler.solvers.pricing import Pricing, climb, greatest
from sfumato.compiler.solvers.slice import Slice

__all__ = ["ConvexUtility", "DecisionUtility", "InformationUtility", "Utility"]


#: Maximum number of directions for which branch and bound runs at once, because climbing is not faster there.
_FEW_DIRECTIONS = 2
#: Starts per coordinate of the first and the second climb, before a proof is attempted. If rules are generated on the
#: way, only the first climb runs, because every new ray must be checked against all rules.
_STARTS = (1, 16)
#: Excess worth of rays of simplices, as a fraction of the value, above which the slower climb is skipped.
_WORTHWHILE = 0.02
#: Excess worth of a ray, as a fraction of the value, that interrupts a proof.
_NOTABLE = 1e-5


class Utility(Protocol):
    """A convex function of rays, with a search for rays that are worth more than their price."""

    def of(self, rays: Floats) -> Floats:
        """Return the utility of each ray (row)."""

    def search(
        self, slice_: Slice, prices: Floats, used: Floats, enough: float, deadline: Deadline
    ) -> tuple[float, Floats]:
        """Return a bound on f(v) - prices·v over the slice, and rays where it is large.

        The bound may be infinite if a ray worth more than ``enough`` was found at once. Otherwise it is close to the
        maximum unless the deadline passed. With infinite ``enough``, the search aims at the bound.
        """


@dataclass(frozen=True, eq=False)
class ConvexUtility:
    """A smooth convex function of a few inner products."""

    pricing: Pricing

    def of(self, rays: Floats) -> Floats:
        return self.pricing.of(rays)

    def search(
        self, slice_: Slice, prices: Floats, used: Floats, enough: float, deadline: Deadline
    ) -> tuple[float, Floats]:
        pricing = replace(self.pricing, multipliers=prices)
        rays = used
        if len(pricing.directions) > _FEW_DIRECTIONS and enough < np.inf:
            for starts in _STARTS[: 2 if slice_.within is None else 1]:
                rules = -1
                # New rules may have moved the best rays inwards, so climb again until no rule is new.
                while len(slice_.rows) > rules and not deadline.passed:
                    rules = len(slice_.rows)
                    rays = climb(slice_, pricing, rays, starts, deadline)
                    if pricing.of(rays).max() > enough:
                        return np.inf, rays
        # No step finds a better ray: prove that none exists, or find one.
        worths = pricing.of(rays)
        scale = max(abs(float(worths.max() + prices.sum())), 1e-7)
        start = rays[int(worths.argmax())]
        most, visited = greatest(slice_, pricing, start, deadline, 1e-7 * scale, enough + _NOTABLE * scale)
        return most, slice_.obeying(visited[np.argsort(-pricing.of(visited))[: 4 * slice_.size]])


@dataclass(frozen=True, eq=False)
class InformationUtility(ConvexUtility):
    """The function Σ_x p_x·v_x·ln v_x, the information of a ray about the value."""

    def search(
        self, slice_: Slice, prices: Floats, used: Floats, enough: float, deadline: Deadline
    ) -> tuple[float, Floats]:
        if not slice_.simplices:
            return super().search(slice_, prices, used, enough, deadline)
        if slice_.within is not None:
            return self._search_between(slice_, prices, used, enough, deadline)
        scale = max(abs(float((self.pricing.of(used) - used @ prices).max() + prices.sum())), 1e-7)
        return slice_.simplices[0].most_valuable(prices, enough, 1e-7 * scale, deadline)

    def _search_between(
        self, slice_: Slice, prices: Floats, used: Floats, enough: float, deadline: Deadline
    ) -> tuple[float, Floats]:
        """Search simplices between the polytope around a confidence set and one within it, then all rays."""
        pricing = replace(self.pricing, multipliers=prices)
        within = slice_.within.simplices if slice_.within is not None else ()
        most, parts = np.inf, []
        for simplices in (*within, *slice_.simplices):
            most, rays = simplices.most_valuable(prices, np.inf, 0.0, Deadline(0.0))
            parts.append(rays[np.argsort(-pricing.of(rays))[: max(slice_.size // 6, 8)]])
        # Rays of the polytope obey all rules. The last bound holds for the set itself.
        rays = np.concatenate([*parts[: len(within)], slice_.draw_inwards(np.concatenate(parts[len(within) :]))])
        if pricing.of(rays).max() > enough + _WORTHWHILE * abs(float(prices.sum())) or deadline.passed:
            return np.inf, rays
        bound, climbed = super().search(slice_, prices, np.concatenate([used, rays]), enough, deadline)
        return min(bound, most) if bound < np.inf else bound, np.concatenate([climbed, rays])


@dataclass(frozen=True, eq=False)
class DecisionUtility:
    """The greatest of a few linear functions, one per decision; a linear program finds the best ray of each."""

    gains: Floats

    def of(self, rays: Floats) -> Floats:
        return np.asarray((rays @ self.gains.T).max(axis=1))

    def search(
        self,
        slice_: Slice,
        prices: Floats,
        used: Floats,
        enough: float,  # noqa: ARG002
        deadline: Deadline,
    ) -> tuple[float, Floats]:
        rays = slice_.farthest(self.gains - prices, deadline)
        if len(rays) < len(self.gains):  # the other decisions may have better rays
            return np.inf, slice_.obeying(rays) if len(rays) else used
        return float((self.of(rays) - rays @ prices).max()), slice_.obeying(rays)
