"""Utilities that are sums over outputs, Σ_y w_y·f(v_y) with f convex, and the search for rays they lack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from sfumato._core import Floats
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.compiler.solvers.pricing import Pricing, climb, greatest
from sfumato.compiler.solvers.slice import Slice

__all__ = ["ConvexUtility", "DecisionUtility", "InformationUtility", "Utility"]


#: A worth of so few directions is maximised by branch and bound at once: no climbing is faster.
_FEW_DIRECTIONS = 2
#: Steps are tried from few starts, then from many, before a proof is: for each coordinate. Where rules are met on the
#: way, only from few: every new ray must be held against all rules.
_STARTS = (1, 16)
#: Rays of simplices are enough by themselves where they are worth this much more, as a fraction of the value; climbing
#: from them takes longer.
_WORTHWHILE = 0.02
#: A proof is broken off for a ray that is worth more than enough by this fraction of the value.
_NOTABLE = 1e-5


class Utility(Protocol):
    """A convex function of rays, and the search for rays that are worth more than their price."""

    def of(self, rays: Floats) -> Floats:
        """The utility of each ray (a row)."""

    def search(
        self, slice_: Slice, prices: Floats, used: Floats, enough: float, deadline: Deadline
    ) -> tuple[float, Floats]:
        """A bound on f(v) - prices·v over the slice, and rays where it is large.

        The bound may be infinite where a ray worth more than ``enough`` was found at once; otherwise it is within
        a small fraction of the greatest, unless the deadline passed. Where nothing is enough, the bound is what counts.
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
                # Rules that were met on the way may have drawn the best rays back: again, until none is new.
                while len(slice_.rows) > rules and not deadline.passed:
                    rules = len(slice_.rows)
                    rays = climb(slice_, pricing, rays, starts, deadline)
                    if pricing.of(rays).max() > enough:
                        return np.inf, rays
        # No step finds a better ray: prove it, or find one.
        worths = pricing.of(rays)
        scale = max(abs(float(worths.max() + prices.sum())), 1e-7)
        start = rays[int(worths.argmax())]
        most, visited = greatest(slice_, pricing, start, deadline, 1e-7 * scale, enough + _NOTABLE * scale)
        return most, slice_.obeying(visited[np.argsort(-pricing.of(visited))[: 4 * slice_.size]])


@dataclass(frozen=True, eq=False)
class InformationUtility(ConvexUtility):
    """Σ_x p_x·v_x·ln v_x, what a ray tells of the value."""

    def search(
        self, slice_: Slice, prices: Floats, used: Floats, enough: float, deadline: Deadline
    ) -> tuple[float, Floats]:
        if not slice_.simplices:
            return super().search(slice_, prices, used, enough, deadline)
        if slice_.within is not None:
            return self._search_between(slice_, prices, used, enough, deadline)
        scale = max(abs(float((self.pricing.of(used) - used @ prices).max() + prices.sum())), 1e-7)
        return slice_.simplices[0].dearest(prices, enough, 1e-7 * scale, deadline)

    def _search_between(
        self, slice_: Slice, prices: Floats, used: Floats, enough: float, deadline: Deadline
    ) -> tuple[float, Floats]:
        """Rays of simplices between the polytope around a confidence set and one in it; then as for all policies."""
        pricing = replace(self.pricing, multipliers=prices)
        within = slice_.within.simplices if slice_.within is not None else ()
        most, parts = np.inf, []
        for simplices in (*within, *slice_.simplices):
            most, rays = simplices.dearest(prices, np.inf, 0.0, Deadline(0.0))
            parts.append(rays[np.argsort(-pricing.of(rays))[: max(slice_.size // 6, 8)]])
        # Those of the polytope keep all rules. The last bound is one for the set itself.
        rays = np.concatenate([*parts[: len(within)], slice_.draw_inwards(np.concatenate(parts[len(within) :]))])
        if pricing.of(rays).max() > enough + _WORTHWHILE * abs(float(prices.sum())) or deadline.passed:
            return np.inf, rays
        bound, climbed = super().search(slice_, prices, np.concatenate([used, rays]), enough, deadline)
        return min(bound, most) if bound < np.inf else bound, np.concatenate([climbed, rays])


@dataclass(frozen=True, eq=False)
class DecisionUtility:
    """The greatest of a few linear functions, one for each decision: the best ray of each is a linear program."""

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
