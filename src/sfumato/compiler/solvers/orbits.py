"""The least asymptotic error for policies with symmetry, at the uniform distribution and for thousands of values.

Permutations of the values that leave the policy unchanged turn a mechanism into another of the same error, and tr J⁻¹
is convex: so the average over all of them is not worse (``estimation`` has the notation). It is a mixture of *orbits*,
the rays that such permutations make of one. An average of v v' over an orbit commutes with the group, so J is made
of small matrices J_c, each of which counts as often as its component is wide: tr J⁻¹ = Σ_c m_c·tr J_c⁻¹. Rays are
numbered by a few sizes, and 10,000 values are no more work than ten.

The bound is that of ``estimation``, component by component: with N_c = J_c⁻¹ and any λ,
tr J⁻¹ ≥ 2·Σ m_c·tr N_c - λ·1 - δ, where δ is the greatest Σ m_c·tr(N_c²·J_c) - λ·mean of any orbit, and a mean is that
over the values of one class.

* One epsilon, or sensitive and harmless values: a ray is high on d of the sensitive values and low on all others, or
  one harmless value is revealed. Components: differences within either class, and the two means.
* Blocks that may be revealed: every ray lives in one block, and each block is a separate problem.
* Blocks of one size at two epsilons: every block is *high* or *low*, and d of its values are in, as in
  ``NestedSubsets``.
  Components: the constants, differences between blocks and those within them. An orbit is a point in a plane.
"""

from __future__ import annotations

import functools
import math
import operator
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato._core import Epsilon, Floats
from sfumato.compiler.solvers.interior import minimise
from sfumato.policy import Blocks, HighLow, Policy, Uniform, structure_of

__all__ = ["Orbit", "OrbitDesign", "best_orbits"]


#: The search ends where no orbit is worth more than this, relative to the value: what doubles can resolve.
_TOLERANCE = 1e-9
_MOST_ROUNDS = 100
#: Number of sizes to start from, and of new orbits per round.
_FIRST, _NEW = 12, 4
#: Epsilons below this are lost in rounding: what a report tells is of the order ε².
_LEAST_EPSILON = 1e-3
#: Epsilons above this are as good as infinite, e^-100 as good as 0.
_MOST_EPSILON = 100.0
#: Sums that differ by less are the same; at most this many X are compared for each g (usually a few).
_SAME, _MOST_COMPARED = 1 + 1e-12, 1000
#: Orbits of less weight are not named: where the worth is flat, an interior point leaves some to the neighbours.
_LEAST_WEIGHT = 1e-3


@dataclass(frozen=True)
class Orbit:
    """Rays that are permutations of one, in words, and the probability of all of them together."""

    words: str
    weight: float


@dataclass(frozen=True)
class OrbitDesign:
    """The best mechanism for a policy with symmetry, at the uniform distribution.

    ``value`` is n·E|p̂-p|² of its efficient estimate as n grows, and no mechanism that obeys the policy has less than
    ``bound``. ``orbits`` are those of more than a thousandth of all reports, the heaviest first.
    """

    value: float
    bound: float
    orbits: tuple[Orbit, ...]

    @property
    def gap(self) -> float:
        """How much better than this a mechanism may be, relative to the value."""
        return (self.value - self.bound) / self.value if 0 < self.value < math.inf else 0.0

    def __str__(self) -> str:
        lines = [f"estimation {self.value:.6g}, at least {self.bound:.6g} for any mechanism"]
        return "\n".join([*lines, *(f"{orbit.weight:8.4f}  {orbit.words}" for orbit in self.orbits)])


def best_orbits(policy: Policy) -> OrbitDesign | None:
    """The best mixture of orbits; None for policies of another form, or with an epsilon too near 0 for doubles.

    Known are one epsilon, sensitive values, blocks that may be revealed, and blocks of one size whose epsilon across
    is finite and above that within.
    """
    simplest = structure_of(policy)
    if isinstance(simplest, Uniform):
        return _best(_Subsets(len(simplest.domain), 0, simplest.epsilon))
    if isinstance(simplest, HighLow):
        sensitive = int(simplest.is_sensitive.sum())
        return _best(_Subsets(sensitive, len(simplest.domain) - sensitive, simplest.epsilon))
    if not isinstance(simplest, Blocks):
        return None
    if simplest.across.is_infinite:
        return _of_open_blocks(simplest)
    sizes, epsilons = np.bincount(simplest.block_of), set(simplest.epsilons)
    if sizes.min() < sizes.max() or len(epsilons) > 1 or not simplest.epsilons[0] < simplest.across:
        return None
    return _best(_NestedBlocks(len(sizes), int(sizes[0]), simplest.epsilons[0], simplest.across))


def _of_open_blocks(policy: Blocks) -> OrbitDesign | None:
    """Every ray lives in one block, so J consists of blocks, and each of these is a separate problem.

    With the fraction w_j of all values, block j has w_j of the reports and v = v_j/w_j where v_j is a ray of the block
    alone: J = Σ w_j·J_j/w_j², hence tr J⁻¹ = Σ w_j·tr J_j⁻¹.
    """
    sizes, k = np.bincount(policy.block_of), len(policy.domain)
    value = bound = -1 / k
    orbits: list[Orbit] = []
    for (size, epsilon), count in Counter(zip(sizes.tolist(), policy.epsilons, strict=True)).items():
        alone = _best(_Subsets(size, 0, epsilon))
        if alone is None:
            return None
        fraction = count * size / k
        value += fraction * (alone.value + 1 / size)
        bound += fraction * (alone.bound + 1 / size)
        orbits += [Orbit(f"{o.words} in one of {count} blocks", fraction * o.weight) for o in alone.orbits]
    return OrbitDesign(value, bound, _sorted(orbits))


def _sorted(orbits: Iterable[Orbit]) -> tuple[Orbit, ...]:
    return tuple(sorted(orbits, key=lambda orbit: -orbit.weight))


# -- the search --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Orbits:
    """Some orbits (rows): in words, the mean of each class of values, and the average of v v' by components."""

    words: tuple[str, ...]
    means: Floats
    parts: tuple[Floats, ...]

    def of(self, rows: Sequence[int]) -> _Orbits:
        words = tuple(self.words[row] for row in rows)
        return _Orbits(words, self.means[rows], tuple(part[rows] for part in self.parts))

    def __add__(self, other: _Orbits) -> _Orbits:
        parts = tuple(np.concatenate(pair) for pair in zip(self.parts, other.parts, strict=True))
        return _Orbits(self.words + other.words, np.concatenate([self.means, other.means]), parts)


class _Family(ABC):
    """All orbits of the rays of a policy."""

    #: The number of values, the least epsilon between them, and how often each component counts.
    size: int
    epsilon: float
    counts: tuple[int, ...]

    @abstractmethod
    def first(self) -> _Orbits:
        """Return a few orbits that identify all values."""

    @abstractmethod
    def best(self, prices: Sequence[Floats], multipliers: Floats) -> tuple[_Orbits, float]:
        """Some orbits of great worth Σ tr(price·part) - λ·mean, and what no orbit exceeds."""


def _best(family: _Family) -> OrbitDesign | None:
    """Column generation, until no orbit is missing."""
    if family.size > 1 and family.epsilon < _LEAST_EPSILON:
        return OrbitDesign(math.inf, math.inf, ()) if family.epsilon == 0 else None
    orbits, bound = family.first(), -math.inf
    for _ in range(_MOST_ROUNDS):
        weights, multipliers, inverses = _weigh(orbits, family.counts)
        value = sum(count * float(np.trace(inverse)) for count, inverse in zip(family.counts, inverses, strict=True))
        prices = [count * inverse @ inverse for count, inverse in zip(family.counts, inverses, strict=True)]
        candidates, most = family.best(prices, multipliers)
        bound = max(bound, 2 * value - float(multipliers.sum()) - most)
        new = [row for row, words in enumerate(candidates.words) if words not in orbits.words]
        if not new or value - bound <= _TOLERANCE * value:
            break
        orbits += candidates.of(new)
    weighted = zip(orbits.words, weights.tolist(), strict=True)
    mixture = _sorted(Orbit(words, weight) for words, weight in weighted if weight > _LEAST_WEIGHT)
    return OrbitDesign(value - 1 / family.size, min(bound, value) - 1 / family.size, mixture)


def _weigh(orbits: _Orbits, counts: Sequence[int]) -> tuple[Floats, Floats, list[Floats]]:
    """The best weights of these orbits, the multipliers λ of the means, and J_c⁻¹ of each component."""

    def inverses_at(weights: Floats) -> list[Floats]:
        inverses = []
        for part in orbits.parts:
            information = np.tensordot(weights, part, axes=1)
            np.linalg.cholesky(information)  # refuses what is not positive definite
            inverses.append(np.linalg.inv(information).astype(np.float64))
        return inverses

    def trace(weights: Floats) -> tuple[float, Floats, Floats] | None:
        try:
            inverses = inverses_at(weights)
        except np.linalg.LinAlgError:
            return None
        value, slope, hessian = 0.0, np.zeros(len(weights)), np.zeros((len(weights), len(weights)))
        for count, part, inverse in zip(counts, orbits.parts, inverses, strict=True):
            turned = part @ inverse
            value += count * float(np.trace(inverse))
            slope -= count * np.einsum("ab,oba->o", inverse, turned)
            hessian += 2 * count * np.einsum("oab,pba->op", inverse @ turned, turned)
        return value, slope, hessian

    number, classes = orbits.means.shape
    solution = minimise(trace, orbits.means.T, np.ones(classes), None, np.full(number, 1 / number))
    return solution.x, solution.equations, inverses_at(solution.x)


# -- one epsilon, or sensitive and harmless values -----------------------------------------------------------


class _Subsets(_Family):
    """s sensitive values, and h harmless ones or none. Rays are high on d of the sensitive values, 1 ≤ d ≤ s, and low
    on all others, or reveal one harmless value. (With no harmless value d = s is not a ray, and does no harm.)

    The components: the means of the two classes, differences within the sensitive and within the harmless values.

    With one epsilon one size is best (Ye and Barg 2018). With harmless values it mostly is, and ``HighLowSubset`` is
    then the optimum. But two neighbouring sizes together may be better, as what a size tells of single values and of
    the mass of all sensitive ones is not best at the same size: by 3.7% at most for 2 … 21 sensitive and 1 … 10,000
    harmless values and ε = 0.25 … 6 (at 3 sensitive ones and ε = 1.25), by less than 1% for 12 … 60 sensitive ones.
    """

    def __init__(self, sensitive: int, harmless: int, epsilon: Epsilon) -> None:
        self.size, self.epsilon = sensitive + harmless, float(epsilon)
        low, step = math.exp(-self.epsilon), -math.expm1(-self.epsilon)
        d = np.arange(1.0, sensitive + 1)
        high = self.size / (d + low * (self.size - d))
        means = np.stack([high * (d + low * (sensitive - d)) / sensitive, high * low])
        #: Σ (v - mean)² over the values of a class.
        squares = np.stack([(high * step) ** 2 * d * (sensitive - d) / sensitive, np.zeros(sensitive)])
        noun = "sensitive values" if harmless else "values"
        words = [f"{number} of {sensitive} {noun}" for number in range(1, sensitive + 1)]
        if harmless:
            means = np.column_stack([means, [0.0, self.size / harmless]])
            squares = np.column_stack([squares, [0.0, self.size**2 * (1 - 1 / harmless)]])
            words.append(f"one of {harmless} harmless values, revealed")
        members = [sensitive, harmless] if harmless else [sensitive]
        means = means[: len(members)].T
        self._sensitive = sensitive
        self.counts = (1, *(number - 1 for number in members if number > 1))
        lengths = means * np.sqrt(members)
        within = [row / (number - 1) for row, number in zip(squares, members, strict=False) if number > 1]
        parts = (lengths[:, :, None] * lengths[:, None, :], *(row[:, None, None] for row in within))
        self._all = _Orbits(tuple(words), means, parts)

    def first(self) -> _Orbits:
        sizes = np.unique(np.round(np.geomspace(1, self._sensitive, _FIRST)).astype(np.int64))
        return self._all.of([*(sizes - 1).tolist(), *range(self._sensitive, len(self._all.words))])

    def best(self, prices: Sequence[Floats], multipliers: Floats) -> tuple[_Orbits, float]:
        worths = -self._all.means @ multipliers
        for price, part in zip(prices, self._all.parts, strict=True):
            worths += np.einsum("ab,oba->o", price, part)
        return self._all.of(np.argsort(-worths)[:_NEW].tolist()), float(worths.max())


# -- blocks at two epsilons ----------------------------------------------------------------------------------


class _NestedBlocks(_Family):
    """m blocks of b values, each high or low, with any number d of its values in: the likelihoods are 1 and e^-ε in a
    high block, e^(ε-across) and e^-across in a low one. (Where no block is low, or none of the values of a high one or
    all of a low one are in, this is a vector of the cone but no extreme ray, which does no harm.)

    With B_j the sum of block j, W_j its squared differences from their mean and T = Σ B_j, an orbit is worth, up to a
    constant, Σ F_j/T² where F = β·B² + ω·W is quadratic in d and B linear. Where F is concave, and it is if
    differences between blocks are measured better than those within, the d of all high blocks are best nearly equal,
    and so are those of all low ones: three numbers say all, the high blocks g and the values in, X of high and Y of low
    blocks. With Y a real number the greatest is known in closed form, and so only few g and X are left to compare at
    every integer Y. Where F is convex its chord takes its place, and what no orbit exceeds may be more than any has; no
    optimum was seen there.
    """

    def __init__(self, blocks: int, block_size: int, epsilon: Epsilon, across: Epsilon) -> None:
        self.size, self.epsilon = blocks * block_size, float(epsilon)
        self.counts = (1, blocks - 1, blocks * (block_size - 1))
        self.blocks, self.block_size = blocks, block_size
        self.low = math.exp(-min(self.epsilon, _MOST_EPSILON))
        self.step = -math.expm1(-self.epsilon)
        #: How high a value is that is in, in a high and in a low block.
        self.heights = (1.0, math.exp(-min(float(across) - self.epsilon, _MOST_EPSILON)))

    def first(self) -> _Orbits:
        # Sets of the size that is best in a block alone, in one or half of the blocks.
        size = max(1, round(self.block_size * self.low / (1 + self.low)))
        orbits = [self._orbit({(0, size): high, (1, 0): self.blocks - high}) for high in {1, self.blocks // 2}]
        return functools.reduce(operator.add, orbits)

    def _orbit(self, blocks: dict[tuple[int, int], int]) -> _Orbits:
        """One orbit, from the number of blocks of each sort: (0 high or 1 low, values in)."""
        numbers = np.array(list(blocks.values()))
        heights = np.array([self.heights[tier] for tier, _ in blocks])
        d = np.array([inside for _, inside in blocks], dtype=np.float64)
        sums = heights * (d + self.low * (self.block_size - d))
        squares = (heights * self.step) ** 2 * d * (self.block_size - d) / self.block_size
        total = float(numbers @ sums)
        between = float(numbers @ (sums - total / self.blocks) ** 2) / self.block_size / self.counts[1]
        within = float(numbers @ squares) / self.counts[2]
        parts = (float(self.size), *(part * (self.size / total) ** 2 for part in (between, within)))
        sorts = [
            f"{number} {'low' if tier else 'high'} with {inside} of {self.block_size} values in"
            for (tier, inside), number in sorted(blocks.items())
            if number
        ]
        words = "blocks: " + ", ".join(sorts)
        return _Orbits((words,), np.ones((1, 1)), tuple(np.array([[[part]]]) for part in parts))

    def best(self, prices: Sequence[Floats], multipliers: Floats) -> tuple[_Orbits, float]:
        of_one, of_sums, of_squares = (
            float(price[0, 0]) / count for price, count in zip(prices, self.counts, strict=True)
        )
        shape = _Shape(self, of_sums / self.block_size, of_squares)
        (high, inside, inside_low), most = shape.greatest()
        blocks = shape.spread(0, high, inside) | shape.spread(1, self.blocks - high, inside_low)
        constant = of_one * self.size - of_sums / self.block_size * self.size**2 / self.blocks
        return self._orbit(blocks), most * self.size**2 + constant - float(multipliers.sum())


class _Shape:
    """Σ F/T² as a function of the high blocks g and the values in, X and Y of them, for the prices β of B², ω of W."""

    def __init__(self, family: _NestedBlocks, of_sums: float, of_squares: float) -> None:
        self.blocks, self.size, self.heights = family.blocks, family.block_size, family.heights
        #: B/height = base + step·d, and F/height² = p + q·d + r·d².
        self.base, self.step = family.low * self.size, family.step
        curve = self.step**2 * (of_sums - of_squares / self.size)
        slope = 2 * of_sums * self.base * self.step + of_squares * self.step**2
        self.concave = curve <= 0
        self.p, self.q, self.r = of_sums * self.base**2, slope + max(curve, 0.0) * self.size, min(curve, 0.0)

    def spread(self, tier: int, blocks: int, inside: int) -> dict[tuple[int, int], int]:
        """Return the most valuable way to spread ``inside`` values over ``blocks`` blocks."""
        if not blocks:
            return {}
        if self.concave:
            each, more = divmod(inside, blocks)
            return {(tier, each): blocks - more, (tier, each + 1): more}
        full, rest = divmod(inside, self.size)
        numbers: Counter[tuple[int, int]] = Counter({(tier, self.size): full, (tier, 0): blocks - full})
        if rest:
            numbers.subtract([(tier, 0)])
            numbers[tier, rest] += 1
        return numbers

    def totals(self, tier: int, blocks: int) -> tuple[Floats, Floats]:
        """Σ B and Σ F of these blocks, by the number of values in."""
        inside = np.arange(blocks * self.size + 1.0)
        each = inside // max(1, blocks)
        more = inside - each * blocks
        squares = blocks * each**2 + more * (2 * each + 1)
        height = self.heights[tier]
        return (
            height * (blocks * self.base + self.step * inside),
            height**2 * (blocks * self.p + self.q * inside + self.r * squares),
        )

    def reach(self, high: int) -> Floats:
        """For every X, what no Y exceeds: the greatest over real Y, with F in place of its values at integers."""
        totals, worths = self.totals(0, high)
        lows = self.blocks - high
        if not lows:
            return np.asarray(worths / totals**2)
        height = self.heights[1]
        totals, worths = totals + height * lows * self.base, worths + height**2 * lows * self.p
        along, up, bend = height * self.step, height**2 * self.q, height**2 * self.r / lows
        # The derivative of (worth + up·Y + bend·Y²)/(total + along·Y)² has the sign of a linear function of Y.
        inside = (up * totals - 2 * along * worths) / (up * along - 2 * bend * totals)
        inside = np.clip(inside, 0, lows * self.size)
        return np.asarray((worths + up * inside + bend * inside**2) / (totals + along * inside) ** 2)

    def greatest(self) -> tuple[tuple[int, int, int], float]:
        """(g, X, Y) of the greatest Σ F/T², and what none exceeds."""
        first, last = 1, self.blocks
        while first < last:  # the summit over g, but for rounding to integers
            middle = (first + last) // 2
            if self.reach(middle).max() < self.reach(middle + 1).max():
                first = middle + 1
            else:
                last = middle
        best, most = self.compare(first, _Point(0.0, 0.0, (first, 0, 0)))
        for high in self.hopeful(best):
            best, rest = self.compare(high, best)
            most = max(most, rest)
        return best.sizes, max(most, best.value * _SAME)

    def compare(self, high: int, best: _Point) -> tuple[_Point, float]:
        """The better of this point and all with this many high blocks, and what none of those left out exceeds."""
        reach = self.reach(high)
        totals, worths = self.totals(0, high)
        low_totals, low_worths = self.totals(1, self.blocks - high)
        for number, inside in enumerate(np.argsort(-reach).tolist()):
            if reach[inside] <= best.value * _SAME:
                break
            if number == _MOST_COMPARED:
                return best, float(reach[inside])
            values = (worths[inside] + low_worths) / (totals[inside] + low_totals) ** 2
            y = int(values.argmax())
            if values[y] > best.value:
                best = _Point(float(values[y]), float(totals[inside] + low_totals[y]), (high, inside, y))
        return best, 0.0

    def hopeful(self, best: _Point) -> list[int]:
        """All g with which more might be reached: for others, a tangent of F shows that it is not.

        ΣF - θ·T is at most M = Σ max_d (F - θ·B), so ΣF/T² ≤ M/T² + θ/T, which if M < 0 is at most -θ²/4M, for every θ.
        The θ of the best point is 2·ΣF/T; one near to it is good for every g that counts.
        """
        thetas = 2 * best.value * best.total * np.geomspace(1 / 8, 8, 513)[:, None]
        d = np.arange(self.size + 1.0)
        sums, worths = self.base + self.step * d, self.p + self.q * d + self.r * d**2
        of_high, of_low = ((h**2 * worths - thetas * h * sums).max(axis=1)[:, None] for h in self.heights)
        high = np.arange(1, self.blocks + 1)
        most = high * of_high + (self.blocks - high) * of_low
        limits = np.where(most < 0, thetas**2 / -np.where(most < 0, 4 * most, -1.0), np.inf).min(axis=0)
        return [int(g) for g in high[limits > best.value * _SAME] if g != best.sizes[0]]


@dataclass(frozen=True)
class _Point:
    """Σ F/T², and T, at (g, X, Y)."""

    value: float
    total: float
    sizes: tuple[int, int, int]
