"""The worth of a ray: a convex function minus a linear one, with its slope and its maximum.

A worth is Σ_i φ_i(g_i·v) - λ·v with convex φ_i. Over an interval, a convex function lies below its chord. If every
g_i·v lies in an interval, a linear program therefore bounds the greatest worth, and bisecting intervals makes the bound
exact (branch and bound). One direction (the mean squared error) takes a few dozen programs. Many directions may not
finish in time.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato._core import Floats
from sfumato.compiler.solvers.deadline import NEVER, Deadline, OutOfTime
from sfumato.compiler.solvers.rays import distinct
from sfumato.compiler.solvers.slice import Slice

__all__ = ["Pricing", "climb", "greatest", "sum_of_squares"]


@dataclass(frozen=True, eq=False)
class Pricing:
    """The function Σ_i scale_i·φ(g_i·v) - λ·v, with the derivative of φ; ``directions`` has one row per g_i."""

    convex: Callable[[Floats], Floats]
    derivative: Callable[[Floats], Floats]
    directions: Floats
    scales: Floats
    multipliers: Floats

    def of(self, rays: Floats) -> Floats:
        """Return the worth of each ray."""
        return np.asarray(self.convex(rays @ self.directions.T) @ self.scales - rays @ self.multipliers)

    def slopes(self, rays: Floats) -> Floats:
        """Return the gradient of the worth at each ray."""
        slopes = (self.derivative(rays @ self.directions.T) * self.scales) @ self.directions
        return np.asarray(slopes - self.multipliers)


def sum_of_squares(directions: Floats, multipliers: Floats) -> Pricing:
    """Return the worth Σ_i (g_i·v)² - λ·v."""
    return Pricing(np.square, lambda at: 2 * at, directions, np.ones(len(directions)), multipliers)


def climb(slice_: Slice, pricing: Pricing, used: Floats, starts: int = 1, deadline: Deadline = NEVER) -> Floats:
    """Return rays that no step along the slope improves; a convex function never decreases on such a step.

    The climb starts from the best of the rays in use and from ``starts`` new rays per coordinate. It stops at the
    deadline.
    """
    likely = used[np.argsort(-pricing.of(used))[: slice_.size]]
    rays = np.concatenate([likely, slice_.spread_vertices(starts * slice_.size, deadline)])
    values = pricing.of(rays)
    climbing = np.arange(len(rays))
    while len(climbing) and not deadline.passed:
        following = slice_.farthest(pricing.slopes(rays[climbing]), deadline)
        climbing = climbing[: len(following)]  # the deadline stopped the others
        reached = pricing.of(following)
        improved = reached > values[climbing] + 1e-12 * np.abs(values[climbing])
        climbing = climbing[improved]
        rays[climbing], values[climbing] = following[improved], reached[improved]
    return slice_.obeying(distinct(rays[np.argsort(-values)]), slice_.size)


def greatest(
    slice_: Slice, pricing: Pricing, start: Floats, deadline: Deadline, tolerance: float, enough: float = np.inf
) -> tuple[float, Floats]:
    """Return an upper bound on the worth of every ray of the slice, and the rays that were visited.

    Stop if the bound is within ``tolerance`` of the best ray, if that ray is worth more than ``enough``, or at the
    deadline.
    """
    linear_program = slice_.linear_program(pricing.directions)
    try:
        lows, highs = slice_.ranges(pricing.directions, deadline)
    except OutOfTime:
        return np.inf, start[None]
    best, rays, order = float(pricing.of(start[None])[0]), [start], itertools.count()
    nodes: list[tuple[float, int, Floats, Floats, Floats]] = []

    def open_node(low: Floats, high: Floats) -> None:
        """Bound the worth where every direction lies between its limits, and queue the node unless it is settled."""
        nonlocal best
        width = high - low
        at_low, at_high = pricing.convex(low), pricing.convex(high)
        ratios = (at_high - at_low) / np.where(width > 1e-12, width, 1)
        slopes = np.where(width > 1e-12, ratios, pricing.derivative(low))
        constant = float(pricing.scales @ (at_low - slopes * low))
        price = (pricing.scales * slopes) @ pricing.directions - pricing.multipliers
        ray = linear_program.farthest(price, low, high, deadline)
        if ray is None:
            if linear_program.ran_out_of_time:  # this node has no bound
                heapq.heappush(nodes, (-np.inf, next(order), low, high, start))
            return
        bound = float(price @ ray) + constant
        value = float(pricing.of(ray[None])[0])
        rays.append(ray)
        best = max(best, value)
        if bound > best + tolerance:
            heapq.heappush(nodes, (-bound, next(order), low, high, ray))

    open_node(lows, highs)
    while nodes and best <= enough and not deadline.passed:
        bound, _, low, high, ray = heapq.heappop(nodes)
        if -bound <= best + tolerance:
            return best + tolerance, np.array(rays)
        at = pricing.directions @ ray
        width = np.maximum(high - low, 1e-300)
        chord = pricing.convex(low) + (pricing.convex(high) - pricing.convex(low)) * (at - low) / width
        split = int(np.argmax(pricing.scales * (chord - pricing.convex(at))))
        # Split at the point itself unless one side would become too narrow.
        middle = min(max(at[split], low[split] + 0.1 * width[split]), high[split] - 0.1 * width[split])
        for lower in (True, False):
            new_low, new_high = low.copy(), high.copy()
            (new_high if lower else new_low)[split] = middle
            open_node(new_low, new_high)
    return max(best + tolerance, -nodes[0][0] if nodes else -np.inf), np.array(rays)
