"""The most valuable orbit of a policy at given prices, by branch and bound over all patterns.

In a pattern, the number X of values at the high level of each cell identifies an orbit, up to the way in which the X
values are spread over the blocks of the cell. Let S be the sums of the kinds and T = p·v the scale, both linear in X.

* Estimation: the worth is (S'AS + Σ F)/T², where F = β·B² + ω·W is summed over the blocks. B is the sum of a block, and
  W is its sum of squared differences from the mean. F is quadratic in the number of values inside. If F is concave, an
  even spread is best, otherwise a spread in which all blocks but one are full or empty.
* Information: the worth is (Σ p·v·ln v - ℓ·S)/T - ln T, and the spread has no effect.

A worth exceeds μ only where an expression Q(X) is positive: S'AS + Σ F - μT², or Σ p·v·ln v - ℓ·S - T·ln T - μT. In the
first case, Σ F is replaced by its maximum over real numbers of values in a block, or by the chord if F is convex. In
small boxes, the Σ F of an even spread is linear. Either way, Q is easy to bound in a box of X, from its slope and
curvature at the centre. Boxes in which Q may be positive are halved until they are single points, where the worth is
computed exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers
from sfumato.compiler.solvers.deadline import NEVER, Deadline
from sfumato.compiler.solvers.orbits.kinds import Kinds, Orbits
from sfumato.compiler.solvers.orbits.patterns import Patterns

__all__ = ["InformationPrices", "Prices", "SquaredPrices", "greatest"]

#: Number of boxes to visit before the tolerance grows, number of further boxes until it grows again, and its growth.
_MANY_BOXES, _MORE_BOXES, _COARSER = 500_000, 100_000, 4.0
#: Maximum number of boxes to halve at the same time; boxes of greater excess come first.
_AT_ONCE = 4096
#: Maximum number of patterns of which the best orbit is returned.
_MOST_ORBITS = 24


@dataclass(frozen=True, eq=False)
class SquaredPrices:
    """Prices of an orbit: S'AS + Σ_kinds (β·Σ (B - mean)² + ω·ΣW); A includes the multipliers of the means."""

    form: Floats
    between: Floats
    within: Floats

    def of(self, orbits: Orbits) -> Floats:
        """Return the worth of each orbit."""
        squares = np.einsum("ok,kl,ol->o", orbits.sums, self.form, orbits.sums)
        return np.asarray(squares + orbits.between @ self.between + orbits.within @ self.within)


@dataclass(frozen=True, eq=False)
class InformationPrices:
    """Prices of an orbit: Σ p·v·ln v - ℓ·S."""

    multipliers: Floats

    def of(self, orbits: Orbits) -> Floats:
        """Return the worth of each orbit."""
        return np.asarray(orbits.information - orbits.sums @ self.multipliers)


Prices = SquaredPrices | InformationPrices


def greatest(
    kinds: Kinds, patterns: Patterns, prices: Prices, tolerance: float, deadline: Deadline = NEVER
) -> tuple[Orbits, float]:
    """Return orbits of great worth, and an upper bound on the worth of every orbit.

    The bound exceeds the greatest worth by at most the tolerance, or by more if the boxes would be too many.
    """
    objective: _Objective
    if isinstance(prices, SquaredPrices):
        objective = _Squares(kinds, patterns, prices)
    else:
        objective = _Entropy(kinds, patterns, prices)
    most, points = np.full(len(patterns), -np.inf), np.zeros_like(patterns.limits)
    numbers = np.maximum(patterns.numbers, 1).astype(np.int64)
    queue = [_Boxes(np.arange(len(patterns)), numbers, np.zeros_like(patterns.limits), patterns.limits)]
    visited, limit, best = 0, _MANY_BOXES, -np.inf
    while queue:
        deadline.require()
        boxes = queue.pop()
        worths = objective.exact(boxes.rows, boxes.middles.astype(np.float64))
        order = np.argsort(worths)  # the last assignment to a pattern is its best point
        better = order[worths[order] > most[boxes.rows[order]]]
        most[boxes.rows[better]], points[boxes.rows[better]] = worths[better], boxes.middles[better]
        best = max(best, float(worths.max()))
        visited += len(worths)
        while visited > limit:
            tolerance, limit = _COARSER * tolerance, limit + _MORE_BOXES
        excess, parts = objective.excess(boxes, best + tolerance)
        order = np.argsort(excess)
        order = order[(excess > 0)[order] & ~boxes.are_points[order]]
        for start in range(0, len(order), _AT_ONCE):  # the boxes of greatest excess come last, and are halved first
            some = order[start : start + _AT_ONCE]
            queue.append(boxes.halves(some, parts[some]))
    chosen = [row for row in np.argsort(-most)[:_MOST_ORBITS].tolist() if most[row] > -np.inf]
    rays = [patterns.sorts(row, points[row].tolist(), objective.is_convex[row].tolist()) for row in chosen]
    return kinds.orbits(rays), best + tolerance


@dataclass(frozen=True, eq=False)
class _Boxes:
    """Boxes of numbers of values inside: the row of the pattern of each, and its least and greatest numbers.

    ``numbers`` has the number of blocks of each cell, or 1 for an empty cell.
    """

    rows: Integers
    numbers: Integers
    lows: Integers
    highs: Integers

    @property
    def centres(self) -> Floats:
        """Centres of the boxes."""
        return np.asarray((self.lows + self.highs) / 2)

    @property
    def middles(self) -> Integers:
        """Integer points near the centres: equal numbers in all blocks of a cell, where possible."""
        middles = (self.lows + self.highs) // 2
        equal = middles - middles % self.numbers
        return np.asarray(np.where(equal >= self.lows, equal, middles))

    @property
    def are_points(self) -> npt.NDArray[np.bool_]:
        """Whether each box is a single point."""
        return np.asarray((self.lows == self.highs).all(axis=1))

    def halves(self, some: Integers, parts: Floats) -> _Boxes:
        """Return the halves of some boxes, cut across the cell with the largest part."""
        lows, highs, middles = self.lows[some], self.highs[some], self.middles[some]
        split = np.where(highs > lows, parts, -np.inf).argmax(axis=1)
        is_split = np.eye(lows.shape[1], dtype=bool)[split]
        return _Boxes(
            np.tile(self.rows[some], 2),
            np.tile(self.numbers[some], (2, 1)),
            np.concatenate([lows, np.where(is_split, middles + 1, lows)]),
            np.concatenate([np.where(is_split, middles, highs), highs]),
        )


class _Objective(ABC):
    """The worth of the orbits of patterns as a function of the values inside, X."""

    def __init__(self, kinds: Kinds, patterns: Patterns) -> None:
        self.patterns = patterns
        #: Whether blocks of a cell should be full or empty.
        self.is_convex = np.zeros(patterns.kinds.shape, dtype=bool)
        self.sizes = kinds.sizes[patterns.kinds]
        self.steps = patterns.highs - patterns.lows
        #: One row per pattern: the sums of the kinds without values inside, and the kinds of the cells as 0 and 1.
        self.is_kind = np.eye(len(kinds.blocks))[patterns.kinds]
        self.bases = np.einsum("pg,pgk->pk", patterns.numbers * self.sizes * patterns.lows, self.is_kind)
        self.weights = kinds.probabilities
        #: Slopes of the scale T.
        self.slopes = self.steps * self.weights[patterns.kinds]

    def sums(self, rows: Integers, inside: Floats) -> Floats:
        """Return the sums of the kinds."""
        return np.asarray(self.bases[rows] + np.einsum("ng,ngk->nk", self.steps[rows] * inside, self.is_kind[rows]))

    @abstractmethod
    def exact(self, rows: Integers, inside: Floats) -> Floats:
        """Return the worth of points."""

    @abstractmethod
    def excess(self, boxes: _Boxes, threshold: float) -> tuple[Floats, Floats]:
        """Return an upper bound on Q in each box, and the part of each cell in it."""


class _Squares(_Objective):
    """The worth (S'AS + ΣF)/T², where F = constant + linear·d + square·d² for d values inside a block."""

    def __init__(self, kinds: Kinds, patterns: Patterns, prices: SquaredPrices) -> None:
        super().__init__(kinds, patterns)
        # β·Σ (B - mean)² = β·ΣB² - β·S²/number
        self.form = prices.form - np.diag(prices.between / kinds.numbers)
        of_sums, of_squares = prices.between[patterns.kinds], prices.within[patterns.kinds]
        base = self.sizes * patterns.lows
        self.constant = patterns.numbers * of_sums * base**2
        self.linear = 2 * of_sums * base * self.steps + of_squares * self.steps**2
        self.square = self.steps**2 * (of_sums - of_squares / self.sizes)
        several = patterns.numbers > 1
        self.is_convex = several & (self.square > 0)
        self.upper_linear = self.linear + np.where(self.is_convex, self.square * self.sizes, 0.0)
        self.upper_square = np.where(self.is_convex, 0.0, self.square / np.maximum(patterns.numbers, 1))

    def exact(self, rows: Integers, inside: Floats) -> Floats:
        numbers, sizes = np.maximum(self.patterns.numbers[rows], 1), self.sizes[rows]
        each, full = inside // numbers, inside // sizes
        even = numbers * each**2 + (inside - numbers * each) * (2 * each + 1)
        uneven = full * sizes**2 + (inside - full * sizes) ** 2
        squares = np.where(self.is_convex[rows], uneven, even)
        blocks = self.constant[rows] + self.linear[rows] * inside + self.square[rows] * squares
        sums = self.sums(rows, inside)
        totals = sums @ self.weights
        worths = np.einsum("nk,kl,nl->n", sums, self.form, sums) + blocks.sum(axis=1)
        return np.where(totals > 0, worths / np.where(totals > 0, totals, 1.0) ** 2, -np.inf)

    def excess(self, boxes: _Boxes, threshold: float) -> tuple[Floats, Floats]:
        rows, centres, reach = boxes.rows, boxes.centres, (boxes.highs - boxes.lows) / 2
        sums = self.sums(rows, centres)
        totals = sums @ self.weights
        # Between d and d + 1 values in every block of a cell, ΣF of an even spread is linear.
        least = boxes.lows // boxes.numbers
        is_linear = (boxes.highs <= (least + 1) * boxes.numbers) & ~self.is_convex[rows]
        linear = np.where(is_linear, self.linear[rows] + self.square[rows] * (2 * least + 1), self.upper_linear[rows])
        square = np.where(is_linear, 0.0, self.upper_square[rows])
        rest = np.where(is_linear, boxes.numbers * self.square[rows] * least * (least + 1), 0.0)
        blocks = self.constant[rows] - rest + linear * centres + square * centres**2
        prices = sums @ self.form
        middle = np.einsum("nk,nk->n", sums, prices) + blocks.sum(axis=1) - threshold * totals**2
        slopes = 2 * np.einsum("nk,ngk->ng", prices, self.is_kind[rows]) * self.steps[rows]
        slopes += linear + 2 * square * centres - 2 * threshold * totals[:, None] * self.slopes[rows]
        form = self.form - threshold * np.outer(self.weights, self.weights)
        kinds, steps = self.patterns.kinds[rows], self.steps[rows]
        couplings = 2 * steps[:, :, None] * form[kinds[:, :, None], kinds[:, None, :]] * steps[:, None, :]
        diagonal = np.einsum("ngg->ng", couplings)
        bends = diagonal + 2 * square
        diagonal[...] = 0.0
        # Along one cell the maximum of |slope|·s + bend·s²/2 for s ≤ reach; products of two cells at their greatest.
        ends = np.where(bends < 0, np.minimum(np.abs(slopes) / np.where(bends < 0, -bends, 1.0), reach), reach)
        parts = np.abs(slopes) * ends + bends * ends**2 / 2
        parts += np.einsum("ngh,nh->ng", np.abs(couplings), reach) * reach / 2
        return middle + parts.sum(axis=1), parts


class _Entropy(_Objective):
    """The worth (Σ p·v·ln v - ℓ·S)/T - ln T; multiplied by T, it is concave in X."""

    def __init__(self, kinds: Kinds, patterns: Patterns, prices: InformationPrices) -> None:
        super().__init__(kinds, patterns)
        probabilities, multipliers = self.weights[patterns.kinds], prices.multipliers[patterns.kinds]
        high, low = (
            probabilities * levels * np.log(np.where(levels > 0, levels, 1.0)) - multipliers * levels
            for levels in (patterns.highs, patterns.lows)
        )
        self.constant = (patterns.numbers * self.sizes * low).sum(axis=1)
        self.linear = high - low
        #: Quotients of the slopes of both parts; the logarithm of T, plus 1 + μ, at which the slope of Q vanishes.
        self.flat = self.linear / np.where(self.slopes > 0, self.slopes, np.inf)

    def exact(self, rows: Integers, inside: Floats) -> Floats:
        totals = self.sums(rows, inside) @ self.weights
        positive = np.where(totals > 0, totals, 1.0)
        worths = (self.constant[rows] + (self.linear[rows] * inside).sum(axis=1)) / positive - np.log(positive)
        return np.where(totals > 0, worths, -np.inf)

    @np.errstate(over="ignore")  # a tangent that exceeds every double is not the best one
    def excess(self, boxes: _Boxes, threshold: float) -> tuple[Floats, Floats]:
        rows, centres, reach = boxes.rows, boxes.centres, (boxes.highs - boxes.lows) / 2
        totals = self.sums(rows, centres) @ self.weights
        middle = self.constant[rows] + (self.linear[rows] * centres).sum(axis=1) - totals * threshold
        bound, parts = np.full(len(rows), np.inf), np.zeros_like(reach)
        # -T·ln T lies below its tangents. Use the best of those at the centre and where the slope of a cell vanishes.
        flat = self.flat[rows] - 1 - threshold
        for logarithms in (np.log(np.where(totals > 0, totals, 1.0)), *flat.T):
            slopes = self.linear[rows] - (logarithms + 1 + threshold)[:, None] * self.slopes[rows]
            each = np.abs(slopes) * reach
            tangent = middle - totals * (logarithms + 1) + np.exp(logarithms) + each.sum(axis=1)
            is_better = tangent < bound
            bound, parts = np.where(is_better, tangent, bound), np.where(is_better[:, None], each, parts)
        return bound, parts
