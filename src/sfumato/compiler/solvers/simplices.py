"""The most informative ray for its price, under a secret policy whose conditional distributions form simplices.

Let m_s be the least probabilities of secret s and r_s = 1 - Σ m_s the rest, and set W_su = m_s·T_s + r_s·T_su. The
rules then only require W_su ≤ e^ε·W_s'u' for s ≠ s' (RLDP eq. 104), and T ≥ 0. Let s* have the least W, scaled to be 1,
and let t be the least W of the others. Given t, the rows of T are independent: W_s lies in [1, e^ε·t] for s* and in [t,
e^ε] for the others, and t lies in [1, e^ε]. A row in which W lies in [l, h] has three kinds of vertices, with k = m_s·W
= m_s·T_s:

    W = h on a set H of values and l elsewhere, where k ≤ l;
    W = h on H and T = 0 elsewhere, so W = k there, where k ≥ l;
    k = l: W = h on H, T = 0 elsewhere except for one value, whose T follows from k = l.

Within a kind, everything is linear in t. Only the values of t at which kinds change matter: l·(r + m(H)) = h·m(H) for
some set H and row. It remains to choose t and one vertex in each row. Let c_s = Σ_u p·T, c = Σ c_s and
F_s = Σ_u (p·T ln T - λ·T). A ray T is worth (Σ F_s)/c - ln c for its price λ, because it is scaled to p·T = 1
afterwards. A vertex is therefore a point (c_s, F_s) of the plane, and for every θ with S(θ) = Σ_s max (F_s - θ·c_s) < 0

    (Σ F_s)/c - ln c ≤ θ - 1 - ln(-S(θ)),

because ln x ≤ x - 1. The least such bound over θ leaves few vertices, and the search tries their combinations.
"""

from __future__ import annotations

import heapq
import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.compiler.solvers.deadline import Deadline

__all__ = ["Simplices"]


#: Maximum number of values whose subsets are listed.
_MOST_VALUES = 10
#: Maximum number of vertices in memory.
_MOST_AT_ONCE = 2**21
#: Maximum number of θ tried; each is the intersection of two linear pieces of S or the minimum of one piece.
_TRIES = 12
#: Maximum number of combinations of vertices tried at once; larger sets are split.
_MOST_CHOICES = 2**16
#: Relative tolerance of the conditions for each kind of vertex.
_ROUNDING = 1e-12
#: Maximum epsilon of this search; other searches handle larger ones.
_GREATEST_EPSILON = 30.0
#: Rounds spent on the bound after a sufficient ray was found, because multipliers of a good bound guide the search.
_PATIENCE = 8
#: Maximum number of nodes split at once, and of values of t from which rays are taken at once.
_NODES, _RAYS = 64, 64


class _Points(NamedTuple):
    """Vertices of all rows as points (c, F), of shape (problems, rows, vertices); F = -∞ for infeasible vertices."""

    masses: Floats
    gains: Floats


class _Bound(NamedTuple):
    """The least bound of each problem, its θ, and the best vertex of each row just below and above this θ."""

    most: Floats
    theta: Floats
    choices: npt.NDArray[np.intp]


class _Node(NamedTuple):
    """An open node of the search: the values of t numbered ``first`` to ``last``, where ``star`` has the least W."""

    negative_bound: float
    star: int
    first: int
    last: int


class Simplices:
    """The slice p·T = 1 of the cone of a secret under ``AtLeast``, as choices of t and of vertices."""

    def __init__(self, cells: npt.NDArray[np.int64], least: Floats, epsilon: float, prior: Floats) -> None:
        self.cells = cells
        self._least = least
        self._left = 1 - least.sum(axis=1)
        self._ratio = float(np.exp(epsilon))
        self._prior = prior[cells]
        self._sets = np.array(list(itertools.product((False, True), repeat=cells.shape[1])))
        # Every pair of one value and a set without it.
        self._single, self._disjoint = np.nonzero(~self._sets.T)
        self._set_least = least @ self._sets.T
        self._set_prior = self._prior @ self._sets.T
        self.steps = [self._steps(star) for star in range(len(cells))]
        self.vertices = 2 * len(self._sets) + len(self._single)

    @classmethod
    def of(cls, cells: npt.NDArray[np.int64], least: Floats, epsilon: float, prior: Floats) -> Simplices | None:
        """Return the choices; None if there are too many values or a row has no probability above its minimum."""
        leaves = bool(np.all(least.sum(axis=1) < 1 - 1e-9))
        is_small = cells.shape[1] <= _MOST_VALUES and epsilon <= _GREATEST_EPSILON
        return cls(cells, least, epsilon, prior) if leaves and is_small else None

    def _steps(self, star: int) -> Floats:
        """Return the values of t at which kinds of vertices change."""
        parts = self._set_least / (self._left[:, None] + self._set_least)
        others = self._ratio * np.delete(parts, star, axis=0)
        of_star = 1 / (self._ratio * parts[star][parts[star] > 0])
        steps = np.concatenate([[1.0, self._ratio], others.ravel(), of_star])
        steps = np.sort(steps[(steps >= 1) & (steps <= self._ratio)])
        return np.asarray(steps[np.append(True, np.diff(steps) > _ROUNDING)])

    def _ends(self, stars: npt.NDArray[np.intp], lows: Floats, highs: Floats) -> tuple[Floats, Floats]:
        """Return l and h of each row for t from ``lows`` to ``highs``, of shape (problems, rows, 1)."""
        low, high = (
            np.repeat(lows[:, None], len(self.cells), axis=1),
            np.full((len(stars), len(self.cells)), self._ratio),
        )
        low[np.arange(len(stars)), stars], high[np.arange(len(stars)), stars] = 1.0, self._ratio * highs
        return low[:, :, None], high[:, :, None]

    def points(self, stars: npt.NDArray[np.intp], lows: Floats, highs: Floats, prices: Floats) -> _Points:
        """Return all vertices for each t if ``lows`` equals ``highs``; otherwise those of rows that contain every t."""
        low, high = self._ends(stars, lows, highs)
        left, least, set_prior, price = self._left[:, None], self._set_least, self._set_prior, prices @ self._sets.T
        single_least, single_prior = self._least[:, self._single], self._prior[:, self._single]
        on_least, on_prior, on_price = least[:, self._disjoint], set_prior[:, self._disjoint], price[:, self._disjoint]
        # W = h on H and l elsewhere.
        k = low * (1 - left) + (high - low) * least
        up, down = (high - k) / left, np.maximum((low - k) / left, 0.0)
        masses = [up * set_prior + down * (self._prior.sum(axis=1)[:, None] - set_prior)]
        gains = [up * np.log(up) * set_prior - up * price]
        gains[0] += _term(down) * (self._prior.sum(axis=1)[:, None] - set_prior) - down * (
            prices.sum(axis=1)[:, None] - price
        )
        possible = (high - low) * least <= low * left * (1 + _ROUNDING)
        possible[:, :, -1] = True
        gains[0][~possible] = -np.inf
        # W = h on H, T = 0 elsewhere.
        up = high / (left + least)
        masses.append(up * set_prior)
        gains.append(up * np.log(up) * set_prior - up * price)
        possible = high * least >= low * (left + least) * (1 - _ROUNDING)
        possible[:, :, 0] = False
        gains[1][~possible] = -np.inf
        # W = h on H, T = 0 elsewhere but for one value.
        up = (high - low) / left
        rest = low * left - (high - low) * on_least
        single = np.maximum(rest, 0.0) / (np.maximum(single_least, 1e-300) * left)
        masses.append(up * on_prior + single * single_prior)
        gains.append(
            _term(up) * on_prior - up * on_price + _term(single) * single_prior - single * prices[:, self._single]
        )
        slack = _ROUNDING * low * left
        possible = (rest >= -slack) & (rest <= single_least * (high - low) + slack) & (single_least > 0)
        gains[2][~possible] = -np.inf
        return _Points(np.concatenate(masses, axis=2), np.concatenate(gains, axis=2))

    def rays(self, stars: npt.NDArray[np.intp], at: Floats, choices: npt.NDArray[np.intp]) -> Floats:
        """Return the rays of these vertices (one per row) at these values of t, scaled to p·v = 1."""
        low, high = (end[:, :, 0] for end in self._ends(stars, at, at))
        count, rows = len(self._sets), np.arange(len(self.cells))[None]
        vertex_kind = np.digitize(choices, [count, 2 * count])
        which = np.where(vertex_kind == 2, choices - 2 * count, 0)
        on = np.where(vertex_kind == 2, self._disjoint[which], choices - count * (vertex_kind == 1))
        least = self._set_least[rows, on]
        k = np.choose(
            vertex_kind, [low * (1 - self._left) + (high - low) * least, high * least / (self._left + least), low]
        )
        down = np.where(vertex_kind == 0, np.maximum(low - k, 0.0), 0.0) / self._left
        table = np.where(self._sets[on], ((high - k) / self._left)[:, :, None], down[:, :, None])
        single = self._single[which]
        least_single = np.maximum(self._least[rows, single], 1e-300)
        rest = np.maximum(low * self._left - (high - low) * least, 0.0) / (least_single * self._left)
        number, row = np.nonzero(vertex_kind == 2)
        table[number, row, single[number, row]] = rest[number, row]
        vectors = np.empty((len(stars), self.cells.size))
        vectors[:, self.cells.ravel()] = table.reshape(len(stars), -1)
        return np.asarray(vectors / (table * self._prior).sum(axis=(1, 2))[:, None])

    def most_valuable(
        self, prices: Floats, enough: float, tolerance: float, deadline: Deadline
    ) -> tuple[float, Floats]:
        """Return a bound on Σ p·v·ln v - prices·v over the slice, and rays where it is large.

        The search stops in one of these cases:

        - the bound is within ``tolerance`` of the best ray, or not above ``enough``;
        - a ray is worth more than ``enough`` and the bound takes long;
        - the deadline passes.
        """
        search = _Search(self, prices[self.cells], tolerance)
        goal = enough if np.isfinite(enough) else -np.inf
        search.look_everywhere()
        rounds = itertools.count()
        while search.bound > max(search.best + tolerance, goal) and not deadline.passed:
            if search.best > enough and next(rounds) >= _PATIENCE:
                break
            search.go_on(deadline)
        return max(search.bound, search.best + tolerance), np.concatenate(search.rays)


class _Search:
    """Branch and bound over t, then over the vertices of each row."""

    def __init__(self, simplices: Simplices, prices: Floats, tolerance: float) -> None:
        self._simplices = simplices
        self._prices = prices
        self._tolerance = tolerance
        self._nodes: list[_Node] = []
        self._at_once = max(_MOST_AT_ONCE // (simplices.vertices * len(simplices.cells)), 1)
        self.best = -np.inf
        self.rays: list[Floats] = []

    @property
    def bound(self) -> float:
        """Upper bound on the worth of all rays in open nodes."""
        return -self._nodes[0].negative_bound if self._nodes else -np.inf

    def look_everywhere(self) -> None:
        """Open nodes that cover all values of t, as many as fit in memory."""
        stars = len(self._simplices.steps)
        for star, steps in enumerate(self._simplices.steps):
            ends = np.linspace(0, len(steps), max(min(self._at_once // stars, len(steps)), 1) + 1).astype(int).tolist()
            self._open([(star, first, end - 1) for first, end in itertools.pairwise(ends)])

    def go_on(self, deadline: Deadline) -> None:
        """Split the nodes with the greatest bounds, and settle nodes with a single t."""
        parts: list[tuple[int, int, int]] = []
        most_parts = min(self._at_once, _NODES)
        while self._nodes and len(parts) < most_parts and self.bound > self.best + self._tolerance:
            if deadline.passed:  # nodes that cannot be settled would return to the queue forever
                break
            node = heapq.heappop(self._nodes)
            if node.first == node.last:
                self._settle(node, deadline)
                continue
            middle = (node.first + node.last) // 2
            parts += [(node.star, node.first, middle), (node.star, middle + 1, node.last)]
        self._open(parts)

    def _open(self, parts: list[tuple[int, int, int]]) -> None:
        """Compute the bounds of nodes, take rays from them, and queue the nodes that may contain a better ray."""
        if not parts:
            return
        stars, first, last = np.array(parts).T
        steps = self._simplices.steps
        lows = np.array([steps[star][number] for star, number in zip(stars, first, strict=True)])
        highs = np.array([steps[star][number] for star, number in zip(stars, last, strict=True)])
        points = self._simplices.points(stars, lows, highs, self._prices)
        bound = _least_bound(points)
        # Take rays from one t of each node.
        wide = first < last
        if wide.any():
            at = np.array([steps[star][(i + j) // 2] for star, i, j in zip(stars, first, last, strict=True)])
            here = self._simplices.points(stars[wide], at[wide], at[wide], self._prices)
            self._take(stars[wide], at[wide], here, _least_bound(here))
        if not wide.all():
            here = _Points(points.masses[~wide], points.gains[~wide])
            self._take(stars[~wide], lows[~wide], here, _Bound(*(part[~wide] for part in bound)))
        for most, star, i, j in zip(bound.most.tolist(), stars.tolist(), first.tolist(), last.tolist(), strict=True):
            if most > self.best + self._tolerance:
                heapq.heappush(self._nodes, _Node(-most, star, i, j))

    def _take(self, stars: npt.NDArray[np.intp], at: Floats, points: _Points, bound: _Bound) -> None:
        """Collect rays of the best vertices, each improved until no change in one row helps."""
        likely = np.argsort(-bound.most)[:_RAYS]
        points = _Points(points.masses[likely], points.gains[likely])
        for choices in bound.choices[likely].transpose(1, 0, 2):
            self._keep(stars[likely], at[likely], *_improved(points, choices))

    def _keep(self, stars: npt.NDArray[np.intp], at: Floats, choices: npt.NDArray[np.intp], worths: Floats) -> None:
        """Append the rays of these choices and update the best worth."""
        self.best = max(self.best, float(worths.max()))
        self.rays.append(self._simplices.rays(stars, at, choices))

    def _settle(self, node: _Node, deadline: Deadline) -> None:
        """Find the best choice of vertices for one t, or prove that none is better than the best so far."""
        star, at = np.array([node.star]), self._simplices.steps[node.star][[node.first]]
        points = self._simplices.points(star, at, at, self._prices)
        rows = [np.flatnonzero(gains > -np.inf) for gains in points.gains[0]]
        masses, gains = points.masses[0], points.gains[0]
        open_: list[tuple[float, list[npt.NDArray[np.intp]]]] = [(-node.negative_bound, rows)]
        while open_:
            before, rows = open_.pop()
            if deadline.passed:
                most = max(before, *(bound for bound, _ in open_)) if open_ else before
                heapq.heappush(self._nodes, node._replace(negative_bound=-most))
                return
            chosen = _padded(masses, gains, rows)
            bound = _least_bound(chosen)
            limit = np.exp(bound.theta[0] - 1 - self.best - self._tolerance)
            values = chosen.gains[0] - bound.theta[0] * chosen.masses[0]
            # A vertex that is worse than the best of its row by more than this cannot be part of a better ray.
            spare = limit + values.max(axis=1).sum()
            if not spare > 0:
                continue
            rows = [row[values[s, : len(row)] >= values[s].max() - spare] for s, row in enumerate(rows)]
            if np.prod([float(len(row)) for row in rows]) <= _MOST_CHOICES:
                total_mass, total_gain = np.zeros(1), np.zeros(1)
                for s, row in enumerate(rows):
                    total_mass = np.add.outer(total_mass, masses[s, row]).ravel()
                    total_gain = np.add.outer(total_gain, gains[s, row]).ravel()
                worths = total_gain / total_mass - np.log(total_mass)
                places = np.unravel_index(int(worths.argmax()), [len(row) for row in rows])
                choice = np.array([[row[place] for row, place in zip(rows, places, strict=True)]])
                if worths.max() > self.best:
                    self._keep(star, at, choice, worths.max(keepdims=True))
                continue
            # Split the row whose vertices lie farthest apart.
            s = int(np.argmax([np.ptp(masses[s, row]) if len(row) > 1 else -1.0 for s, row in enumerate(rows)]))
            order = rows[s][np.argsort(masses[s, rows[s]], kind="stable")]
            halves = (order[: len(order) // 2], order[len(order) // 2 :])
            open_ += [(float(bound.most[0]), [*rows[:s], half, *rows[s + 1 :]]) for half in halves]


def _term(at: Floats) -> Floats:
    """Return x·ln x, with 0 at x = 0."""
    return np.asarray(at * np.log(np.maximum(at, 1e-300)))


def _padded(masses: Floats, gains: Floats, rows: list[npt.NDArray[np.intp]]) -> _Points:
    """Return some vertices of each row as one problem."""
    width = max(len(row) for row in rows)
    chosen = _Points(np.zeros((1, len(rows), width)), np.full((1, len(rows), width), -np.inf))
    for s, row in enumerate(rows):
        chosen.masses[0, s, : len(row)], chosen.gains[0, s, : len(row)] = masses[s, row], gains[s, row]
    return chosen


def _improved(points: _Points, choices: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], Floats]:
    """Change the vertex of one row at a time while the worth increases; return the choices and their worths."""
    choices = choices.copy()
    number, rows = np.arange(len(choices)), np.arange(choices.shape[1])
    masses = points.masses[number[:, None], rows, choices]
    gains = points.gains[number[:, None], rows, choices]
    worths = gains.sum(axis=1) / masses.sum(axis=1) - np.log(masses.sum(axis=1))
    climbing = True
    while climbing:
        climbing = False
        for s in rows:
            mass = (masses.sum(axis=1) - masses[:, s])[:, None] + points.masses[:, s]
            gain = (gains.sum(axis=1) - gains[:, s])[:, None] + points.gains[:, s]
            reached = gain / mass - np.log(mass)
            following = reached.argmax(axis=1)
            better = number[reached[number, following] > worths + 1e-12 * (1 + np.abs(worths))]
            choices[better, s] = following[better]
            masses[better, s] = points.masses[better, s, following[better]]
            gains[better, s] = points.gains[better, s, following[better]]
            worths[better] = reached[better, following[better]]
            climbing |= len(better) > 0
    return choices, worths


def _least_bound(points: _Points) -> _Bound:
    """Minimise the convex function θ - 1 - ln(-S(θ)); decreasing and increasing pieces determine the next θ."""
    count, rows, _ = points.masses.shape
    number, row = np.arange(count)[:, None], np.arange(rows)
    theta, most, best = np.zeros(count), np.full(count, np.inf), np.zeros(count)
    ends = np.stack([np.full(count, -np.inf), np.full(count, np.inf)])
    lines = np.zeros((2, 2, count))  # below and above: c, F
    choices = np.zeros((count, 2, rows), dtype=np.intp)
    for _ in range(_TRIES):
        chosen = (points.gains - theta[:, None, None] * points.masses).argmax(axis=2)
        mass = points.masses[number, row, chosen].sum(axis=1)
        gain = points.gains[number, row, chosen].sum(axis=1)
        minus = theta * mass - gain
        bound = np.where(minus > 0, theta - 1 - np.log(np.maximum(minus, 1e-300)), np.inf)
        best = np.where(bound < most, theta, best)
        most = np.minimum(most, bound)
        above = (minus >= mass).astype(np.intp)  # the function increases here
        ends[above, number[:, 0]] = theta
        lines[above, 0, number[:, 0]], lines[above, 1, number[:, 0]] = mass, gain
        choices[number[:, 0], above] = chosen
        minima = lines[:, 1] / np.maximum(lines[:, 0], 1e-300) + 1  # minimum of each piece alone
        both = np.isfinite(ends).all(axis=0)
        apart = lines[0, 0] - lines[1, 0]
        meet = np.where(apart > 0, (lines[0, 1] - lines[1, 1]) / np.where(apart > 0, apart, 1), theta)
        inside = np.where(minima[0] <= meet, minima[0], np.where(minima[1] >= meet, minima[1], meet))
        following = np.where(
            both, inside, np.where(above == 1, np.minimum(minima[1], theta - 0.5), np.maximum(minima[0], theta + 0.5))
        )
        if np.all(np.abs(following - theta) <= 1e-13 * (1 + np.abs(theta))):
            break
        theta = following
    missing = ~np.isfinite(ends)
    for side in (0, 1):
        choices[missing[side], side] = choices[missing[side], 1 - side]
    return _Bound(most, best, choices)
