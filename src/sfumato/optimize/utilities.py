"""Utilities that are sums over outputs, Σ_y w_y·f(v_y) with f convex, and the search for rays they lack."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sfumato.optimize.slice import Slice
from sfumato.optimize.worth import Worth, climb, greatest

__all__ = ["Curved", "OfDecisions", "Utility"]

Floats = npt.NDArray[np.float64]

#: A worth of so few directions is maximised by branch and bound at once: no climbing is faster.
_FEW_DIRECTIONS = 2
#: Steps are tried from few starts, then from many, before a proof is: for each coordinate. Where rules are met on the
#: way, only from few: every new ray must be held against all rules.
_STARTS = (1, 16)
#: A proof is broken off for a ray that is worth more than enough by this share of the value.
_NOTABLE = 1e-5


class Utility(Protocol):
    """A convex function of rays, and the search for rays that are worth more than their price."""

    def of(self, rays: Floats) -> Floats:
        """The utility of each ray (a row)."""

    def search(
        self, slice_: Slice, prices: Floats, used: Floats, enough: float, deadline: float
    ) -> tuple[float, Floats]:
        """A bound on f(v) - prices·v over the slice, and rays where it is large.

        The bound may be infinite where a ray worth more than ``enough`` was found at once; otherwise it is within
        a small fraction of the greatest, unless the deadline passed. Where nothing is enough, the bound is what counts.
        """


@dataclass(frozen=True, eq=False)
class Curved:
    """A smooth convex function of a few inner products."""

    worth: Worth

    def of(self, rays: Floats) -> Floats:
        return self.worth.of(rays)

    def search(
        self, slice_: Slice, prices: Floats, used: Floats, enough: float, deadline: float
    ) -> tuple[float, Floats]:
        worth = replace(self.worth, multipliers=prices)
        found = used
        if len(worth.directions) > _FEW_DIRECTIONS and enough < np.inf:
            for starts in _STARTS[: 2 if slice_.within is None else 1]:
                rules = -1
                # Rules that were met on the way may have drawn the best rays back: again, until none is new.
                while len(slice_.rows) > rules and time.monotonic() < deadline:
                    rules = len(slice_.rows)
                    found = climb(slice_, worth, found, starts)
                    if worth.of(found).max() > enough:
                        return np.inf, found
        # No step finds a better ray: prove it, or find one.
        worths = worth.of(found)
        scale = max(abs(float(worths.max() + prices.sum())), 1e-7)
        start = found[int(worths.argmax())]
        most, seen = greatest(slice_, worth, start, deadline, 1e-7 * scale, enough + _NOTABLE * scale)
        return most, slice_.obeying(seen[np.argsort(-worth.of(seen))[: 4 * slice_.size]])


@dataclass(frozen=True, eq=False)
class OfDecisions:
    """The greatest of a few linear functions, one for each decision: the best ray of each is a linear programme."""

    gains: Floats

    def of(self, rays: Floats) -> Floats:
        return np.asarray((rays @ self.gains.T).max(axis=1))

    def search(
        self,
        slice_: Slice,
        prices: Floats,
        used: Floats,  # noqa: ARG002
        enough: float,  # noqa: ARG002
        deadline: float,  # noqa: ARG002
    ) -> tuple[float, Floats]:
        found = slice_.farthest(self.gains - prices)
        return float((self.of(found) - found @ prices).max()), slice_.obeying(found)
