"""The least asymptotic error for symmetric policies, at the uniform distribution and for thousands of values.

A permutation of the values that leaves the policy unchanged turns a mechanism into another one with the same error.
Since tr J⁻¹ is convex, the average over all such permutations is not worse (``estimation`` has the notation). This
average is a mixture of *orbits*: the rays that the permutations make of one ray. The average of v v' over an orbit
commutes with the group. J therefore consists of small matrices J_c, one per component of dimension m_c, and
tr J⁻¹ = Σ_c m_c·tr J_c⁻¹. A few sizes identify a ray, so 10,000 values take no more work than ten.

The bound is that of ``estimation``, component by component. With N_c = J_c⁻¹ and any λ, tr J⁻¹ ≥ 2·Σ m_c·tr N_c - λ·1 -
δ. Here δ is the greatest Σ m_c·tr(N_c²·J_c) - λ·mean of any orbit, and a mean is taken over the values of one class.

The module covers three forms of policies:

* One epsilon, or sensitive and harmless values: a ray is high on d of the sensitive values and low on all others, or it
  reveals one harmless value. The components are the differences within either class and the two means.
* Blocks that may be revealed: every ray lies in one block, and each block is a separate problem.
* Blocks of one size at two epsilons: every block is *high* or *low*, and d of its values are in, as in
  ``NestedSubsets``. The components are the constants, the differences between blocks, and the differences within
  blocks. An orbit is a point in a plane.
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


#: Worth of an orbit, relative to the value, at which the search ends; the resolution of double precision.
_TOLERANCE = 1e-9
_MOST_ROUNDS = 100
#: Number of initial sizes, and of new orbits per round.
_FIRST, _NEW = 12, 4
#: Epsilons below this are lost in rounding, because the information in a report is of the order ε².
_LEAST_EPSILON = 1e-3
#: Epsilons above this count as infinite, because e^-100 is negligible.
_MOST_EPSILON = 100.0
#: Ratio below which sums count as equal, and maximum number of X compared for each g (usually a few suffice).
_SAME, _MOST_COMPARED = 1 + 1e-12, 1000
#: Minimum weight of an orbit in the result; an interior point leaves small weights on neighbours of the best orbit.
_LEAST_WEIGHT = 1e-3


@dataclass(frozen=True)
class Orbit:
    """The permutations of one ray, described in words, and their total probability."""

    words: str
    weight: float


@dataclass(frozen=True)
class OrbitDesign:
    """The best mechanism for a symmetric policy, at the uniform distribution.

    Parameters
    ----------
    value
        The limit of n·E|p̂-p|² of its efficient estimate as n grows.
    bound
        Lower bound on that limit for every mechanism that obeys the policy.
    orbits
        The orbits with more than a thousandth of all reports, in decreasing order of weight.
    """

    value: float
    bound: float
    orbits: tuple[Orbit, ...]

    @property
    def gap(self) -> float:
        """The largest possible improvement, relative to the value."""
        return (self.value - self.bound) / self.value if 0 < self.value < math.inf else 0.0

    def __str__(self) -> str:
        lines = [f"estimation {self.value:.6g}, lower bound {self.bound:.6g}"]
        return "\n".join([*lines, *(f"{orbit.weight:8.4f}  {orbit.words}" for orbit in self.orbits)])


def best_orbits(policy: Policy) -> OrbitDesign | None:
    """Return the best mixture of orbits; None for other policies, or if an epsilon is too near 0 for double precision.

    The supported policies are one epsilon, sensitive values, blocks that may be revealed, and blocks of one size whose
    epsilon across blocks is finite and above that within.
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
    """Combine the best mixtures of the blocks, each of which is a separate problem.

    Every ray lies in one block, so J is block-diagonal. Block j with the fraction w_j of all values has w_j of the
    reports and v = v_j/w_j, where v_j is a ray of the block alone. Then J = Σ w_j·J_j/w_j², hence tr J⁻¹ = Σ w_j·tr
    J_j⁻¹.
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
        where = f"one of {count} blocks" if count > 1 else "1 block"
        orbits += [Orbit(f"{orbit.words} in {where}", fraction * orbit.weight) for orbit in alone.orbits]
    return OrbitDesign(value, bound, _sorted(orbits))


def _sorted(orbits: Iterable[Orbit]) -> tuple[Orbit, ...]:
    """Return the orbits in decreasing order of weight."""
    return tuple(sorted(orbits, key=lambda orbit: -orbit.weight))


# -- the search --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Orbits:
    """Some orbits (rows): a description, the mean of each class of values, and the average of v v' by component."""

    words: tuple[str, ...]
    means: Floats
    parts: tuple[Floats, ...]

    def of(self, rows: Sequence[int]) -> _Orbits:
        """Return the orbits in these rows."""
        words = tuple(self.words[row] for row in rows)
        return _Orbits(words, self.means[rows], tuple(part[rows] for part in self.parts))

    def __add__(self, other: _Orbits) -> _Orbits:
        parts = tuple(np.concatenate(pair) for pair in zip(self.parts, other.parts, strict=True))
        return _Orbits(self.words + other.words, np.concatenate([self.means, other.means]), parts)


class _Family(ABC):
    """All orbits of the rays of a policy."""

    #: Number of values, least epsilon between them, and dimension of each component.
    size: int
    epsilon: float
    counts: tuple[int, ...]

    @abstractmethod
    def first(self) -> _Orbits:
        """Return a few orbits that identify all values."""

    @abstractmethod
    def best(self, prices: Sequence[Floats], multipliers: Floats) -> tuple[_Orbits, float]:
        """Return orbits of great worth Σ tr(price·part) - λ·mean, and an upper bound on the worth of every orbit."""


def _best(family: _Family) -> OrbitDesign | None:
    """Generate orbits until none is missing."""
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
    """Return the best weights of these orbits, the multipliers λ of the means, and J_c⁻¹ of each component."""

    def inverses_at(weights: Floats) -> list[Floats]:
        inverses = []
        for part in orbits.parts:
            information = np.tensordot(weights, part, axes=1)
            np.linalg.cholesky(information)  # raises if the matrix is not positive definite
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
    """Rays for s sensitive values and h harmless ones, where h may be 0.

    A ray is high on d of the sensitive values, 1 ≤ d ≤ s, and low on all others, or it reveals one harmless value.
    (Without harmless values, d = s is not a ray, but including it does no harm.) The components are the means of the
    two classes and the differences within the sensitive and within the harmless values.

    With one epsilon, one size is best (Ye and Barg 2018). With harmless values, usually one size is best as well, and
    ``HighLowSubset`` is then optimal. Two neighbouring sizes together may be better, because the size that is best for
    single values differs from the size that is best for the total of the sensitive values. The gain is at most 3.7% for
    2 … 21 sensitive and 1 … 10,000 harmless values and ε = 0.25 … 6 (at 3 sensitive values and ε = 1.25). It is below
    1% for 12 … 60 sensitive values.
    """

    def __init__(self, sensitive: int, harmless: int, epsilon: Epsilon) -> None:
        self.size, self.epsilon = sensitive + harmless, float(epsilon)
        low, step = math.exp(-self.epsilon), -math.expm1(-self.epsilon)
        d = np.arange(1.0, sensitive + 1)
        high = self.size / (d + low * (self.size - d))
        means = np.stack([high * (d + low * (sensitive - d)) / sensitive, high * low])
        #: Sum of (v - mean)² over the values of a class.
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
    """Rays for m blocks of b values, each block high or low, with any number d of its values in.

    The likelihoods are 1 and e^-ε in a high block, and e^(ε-across) and e^-across in a low one. (If no block is low, or
    no value of a high block or every value of a low block is in, the vector lies in the cone but is not an extreme ray.
    Including it does no harm.)

    Let B_j be the sum of block j, W_j its sum of squared differences from the mean, and T = Σ B_j. The worth of an
    orbit is, up to a constant, Σ F_j/T², where F = β·B² + ω·W is quadratic in d and B is linear. F is concave if
    differences between blocks are measured better than those within. Then the best d of all high blocks are nearly
    equal, and so are those of all low blocks. Three numbers describe such an orbit: the number g of high blocks, and
    the values in, X of high and Y of low blocks. For real Y the maximum is known in closed form, so only few g and X
    must be compared at every integer Y. If F is convex, its chord replaces it. The upper bound may then exceed the
    worth of every orbit. No optimum has been observed there.
    """

    def __init__(self, blocks: int, block_size: int, epsilon: Epsilon, across: Epsilon) -> None:
        self.size, self.epsilon = blocks * block_size, float(epsilon)
        self.counts = (1, blocks - 1, blocks * (block_size - 1))
        self.blocks, self.block_size = blocks, block_size
        self.low = math.exp(-min(self.epsilon, _MOST_EPSILON))
        self.step = -math.expm1(-self.epsilon)
        #: Likelihood of a value that is in, in a high block and in a low block.
        self.heights = (1.0, math.exp(-min(float(across) - self.epsilon, _MOST_EPSILON)))

    def first(self) -> _Orbits:
        # Subsets of the size that is best for a single block, in one block or in half of the blocks.
        size = max(1, round(self.block_size * self.low / (1 + self.low)))
        orbits = [self._orbit({(0, size): high, (1, 0): self.blocks - high}) for high in {1, self.blocks // 2}]
        return functools.reduce(operator.add, orbits)

    def _orbit(self, blocks: dict[tuple[int, int], int]) -> _Orbits:
        """Return one orbit, from the number of blocks of each sort: (0 for high or 1 for low, values in)."""
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
    """Σ F/T² as a function of the high blocks g and the values in, X and Y, for the prices β of B² and ω of W."""

    def __init__(self, family: _NestedBlocks, of_sums: float, of_squares: float) -> None:
        self.blocks, self.size, self.heights = family.blocks, family.block_size, family.heights
        #: Coefficients of B/height = base + step·d and of F/height² = p + q·d + r·d².
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
        """Return Σ B and Σ F of these blocks, by the number of values in."""
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
        """Return for every X an upper bound over all Y: the maximum over real Y, with F at real arguments."""
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
        """Return (g, X, Y) of the greatest Σ F/T², and an upper bound on every Σ F/T²."""
        first, last = 1, self.blocks
        while first < last:  # find the maximum over g, up to rounding to integers
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
        """Return the best of this point and all with this many high blocks, and a bound on the points left out."""
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
        """Return all g that may reach more than the best point; a tangent of F excludes the others.

        ΣF - θ·T is at most M = Σ max_d (F - θ·B), so ΣF/T² ≤ M/T² + θ/T. If M < 0, this is at most -θ²/4M, for every θ.
        The θ of the best point is 2·ΣF/T; a nearby θ works for every relevant g.
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
    """The values Σ F/T² and T at (g, X, Y)."""

    value: float
    total: float
    sizes: tuple[int, int, int]
