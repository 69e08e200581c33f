"""The best mixture of orbits, and a bound on every mechanism.

The average of v v' over an orbit commutes with the permutations. J therefore consists of small matrices J_c, one per
component of dimension m_c, and tr J⁻¹ = Σ_c m_c·tr J_c⁻¹. The bound is that of ``estimation``, component by component.
With N_c = J_c⁻¹ and any λ, tr J⁻¹ ≥ 2·Σ m_c·tr N_c - λ·1 - δ. Here δ is the greatest Σ m_c·tr(N_c²·J_c) - λ·mean of any
orbit, and a mean is taken over the values of one kind.

The mutual information of a mixture is the sum of Σ p·v·ln v over its orbits. For any λ, it is at most λ·1 + δ, where δ
is the greatest Σ p·v·ln v - λ·mean of any orbit.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sfumato._core import Epsilon, Floats, Integers
from sfumato.compiler.solvers.deadline import NEVER, Deadline, OutOfTime
from sfumato.compiler.solvers.interior import minimise
from sfumato.compiler.solvers.mixture import solve_weights
from sfumato.compiler.solvers.orbits.families import family_of
from sfumato.compiler.solvers.orbits.family import Family
from sfumato.compiler.solvers.orbits.kinds import Kinds, Orbits
from sfumato.compiler.solvers.orbits.pricing import InformationPrices, Prices, SquaredPrices
from sfumato.domain import Domain, Frequencies, checked_distribution
from sfumato.policy import Blocks, Policy, Secret, Uniform, structure_of

__all__ = ["Orbit", "OrbitDesign", "best_orbits", "orbit_information"]


#: Distance of value and bound, relative to the value, at which the search ends; the resolution of double precision.
_TOLERANCE = 1e-9
#: Relative precision of the weights, which the bound inherits.
_PRECISION = 1e-11
#: Precision of the greatest worth of an orbit, relative to the gap between value and bound.
_WORTH_FRACTION = 0.1
_MOST_ROUNDS = 100
#: Total weight of new orbits at the start of a round.
_NEW_SHARE = 0.1
#: Epsilons below this are lost in rounding, because the information in a report is of the order ε².
_LEAST_EPSILON = 1e-3
#: Minimum weight of an orbit in the result; an interior point leaves small weights on neighbours of the best orbit.
_LEAST_WEIGHT = 1e-3
#: Distances of means from 1 below this are rounding errors.
_NO_REACH = 1e-12


@dataclass(frozen=True)
class Orbit:
    """The permutations of one ray: a description, their total probability, and images of the ray.

    Parameters
    ----------
    words
        Description of the ray.
    weight
        Probability of all outputs of the orbit together.
    image
        Function that returns one ray of the orbit for each number: likelihoods in domain order with v·p = 1.
    """

    words: str
    weight: float
    image: Callable[[int], Floats] = field(repr=False, compare=False)

    @property
    def ray(self) -> Floats:
        """One ray of the orbit: likelihoods in domain order, scaled to v·p = 1."""
        return self.image(0)


@dataclass(frozen=True)
class OrbitDesign:
    """The best mechanism for a symmetric policy.

    Parameters
    ----------
    value
        The limit of n·E|p̂-p|² of its efficient estimate as n grows, or the mutual information in nats.
    bound
        Bound on that quantity for every mechanism that obeys the policy: a lower bound on an error, an upper bound on
        an information.
    orbits
        The orbits with more than a thousandth of all reports, in decreasing order of weight.
    """

    value: float
    bound: float
    orbits: tuple[Orbit, ...]

    @property
    def gap(self) -> float:
        """The largest possible improvement, relative to the value."""
        return abs(self.value - self.bound) / self.value if 0 < self.value < math.inf else 0.0

    def rays(self, images: int = 1) -> tuple[Floats, Floats]:
        """Return some rays of each orbit (rows), and their weights.

        A few rays do not form a mechanism. A search over tables can start from them.

        Parameters
        ----------
        images
            Number of rays of each orbit. They differ by cyclic shifts of the values and the blocks.

        Returns
        -------
        tuple of numpy.ndarray
            Likelihoods in domain order, scaled to v·p = 1, and the weight of the orbit divided by ``images``.
        """
        rays = [orbit.image(number) for orbit in self.orbits for number in range(images)]
        return np.array(rays), np.repeat([orbit.weight / images for orbit in self.orbits], images)

    def __str__(self) -> str:
        lines = [f"value {self.value:.6g}, bound {self.bound:.6g}"]
        return "\n".join([*lines, *(f"{orbit.weight:8.4f}  {orbit.words}" for orbit in self.orbits)])


def best_orbits(policy: Policy, prior: Frequencies | None = None, *, deadline: Deadline = NEVER) -> OrbitDesign | None:
    """Return the mixture of orbits with the least error of estimated frequencies.

    Parameters
    ----------
    policy
        Any policy; see Returns.
    prior
        Distribution of values; uniform by default, also for a :class:`Prior` policy.
    deadline
        Time limit.

    Returns
    -------
    OrbitDesign or None
        The design. None if the policy and the distribution leave too few values exchangeable, or if an epsilon is too
        near 0 for double precision. These policies are supported:

        - blocks with one epsilon between them, finite or infinite;
        - a secret attribute under :class:`Anything`;
        - any policy on pairs of values with at most five classes of exchangeable values (up to ten if they have only
          one value each);
        - prior policies with few different probabilities.

    Raises
    ------
    OutOfTime
        If the deadline passes before any bound is known. After a later deadline, the design has a gap.
    """
    return _search(policy, prior, _Error, deadline)


def orbit_information(
    policy: Policy, prior: Frequencies | None = None, *, deadline: Deadline = NEVER
) -> OrbitDesign | None:
    """Return the mixture of orbits with the greatest mutual information between value and report, in nats.

    Parameters and policies are those of ``best_orbits``.
    """
    return _search(policy, prior, _Information, deadline)


def _distribution(policy: Policy, prior: Frequencies | None) -> Floats:
    """Return the distribution of values as an array that sums to one."""
    stated = checked_distribution(prior, policy.domain, "best_orbits", "prior")
    return np.asarray(stated / stated.sum())


def _search(policy: Policy, prior: Frequencies | None, goal: type[_Goal], deadline: Deadline) -> OrbitDesign | None:
    """Return the best mixture of orbits."""
    distribution = _distribution(policy, prior)
    if distribution.min() <= 0:
        return None
    pairwise = policy.as_pairwise if isinstance(policy, Secret) else None
    simplest = structure_of(pairwise or policy)
    if isinstance(simplest, Blocks) and simplest.across.is_infinite:
        return _of_open_blocks(simplest, distribution, goal, deadline)
    family = family_of(simplest, distribution, deadline)
    if family is None:
        return None
    if family.kinds.values.sum() > 1 and family.least_epsilon < _LEAST_EPSILON:
        return OrbitDesign(math.inf, math.inf, ()) if family.least_epsilon == 0 and goal is _Error else None
    return _best_mixture(family, goal, deadline)


def _of_open_blocks(policy: Blocks, prior: Floats, goal: type[_Goal], deadline: Deadline) -> OrbitDesign | None:
    """Combine the best mixtures of the blocks, each of which is a separate problem.

    Every ray lies in one block, so J is block-diagonal. Block j with the total probability w_j has w_j of the reports
    and v = v_j/w_j, where v_j is a ray of the block alone. Then J = Σ w_j·J_j/w_j², hence tr J⁻¹ = Σ w_j·tr J_j⁻¹. The
    information is Σ w_j·(I_j - ln w_j).
    """
    value = bound = -float(prior @ prior) if goal is _Error else 0.0
    orbits: list[Orbit] = []
    designs: dict[tuple[Epsilon, tuple[float, ...]], OrbitDesign | None] = {}
    for block, epsilon in enumerate(policy.epsilons):
        members = np.flatnonzero(policy.block_of == block)
        total = float(prior[members].sum())
        shares = prior[members] / total
        key = epsilon, tuple(shares.tolist())
        if key not in designs:
            alone = Uniform(Domain.range(len(members)), epsilon)
            designs[key] = _search(alone, shares, goal, deadline)
        design = designs[key]
        if design is None:
            return None
        constant = float(shares @ shares) if goal is _Error else -math.log(total)
        value += total * (design.value + constant)
        bound += total * (design.bound + constant)
        orbits += [
            Orbit(orbit.words, total * orbit.weight, _embedded(orbit, members, total, len(prior)))
            for orbit in design.orbits
        ]
    return OrbitDesign(value, bound, _sorted(orbits))


def _embedded(orbit: Orbit, members: Integers, total: float, size: int) -> Callable[[int], Floats]:
    """Return the images of an orbit within one block, which is revealed."""

    def image(number: int) -> Floats:
        ray = np.zeros(size)
        ray[members] = orbit.image(number) / total
        return ray

    return image


def _sorted(orbits: Iterable[Orbit]) -> tuple[Orbit, ...]:
    """Return the orbits in decreasing order of weight."""
    return tuple(sorted(orbits, key=lambda orbit: -orbit.weight))


# -- the search --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Solution:
    """The best weights of some orbits, their cost, and prices: no mixture costs less than base minus any worth."""

    weights: Floats
    cost: float
    base: float
    prices: Prices


class _Goal(ABC):
    """What a mixture of orbits minimises."""

    #: Weight at or below which an orbit is dropped after a round; negative to keep all.
    dropped: ClassVar[float]

    @staticmethod
    @abstractmethod
    def solve(kinds: Kinds, orbits: Orbits, start: Floats, deadline: Deadline) -> _Solution:
        """Return the best weights of these orbits, near which the start should be."""

    @staticmethod
    @abstractmethod
    def value(cost: float, kinds: Kinds) -> float:
        """Return the utility that a cost stands for."""


def _best_mixture(family: Family, goal: type[_Goal], deadline: Deadline) -> OrbitDesign:
    """Generate orbits until none is missing, or until the deadline."""
    kinds, orbits, bound = family.kinds, family.first(), -math.inf
    solution = goal.solve(kinds, orbits, np.full(len(orbits), 1 / len(orbits)), deadline)
    for _ in range(_MOST_ROUNDS):
        try:
            candidates, most = _candidates(family, orbits, solution, solution.cost - bound, deadline)
            bound = max(bound, solution.base - most)
            if not len(candidates) or solution.cost - bound <= _TOLERANCE * abs(solution.cost):
                break
            used = np.flatnonzero(solution.weights > goal.dropped)
            start = np.append((1 - _NEW_SHARE) * solution.weights[used], np.full(len(candidates), _NEW_SHARE))
            start[len(used) :] /= len(candidates)
            more = orbits.of(used.tolist()) + candidates
            solution, orbits = goal.solve(kinds, more, start, deadline), more
        except OutOfTime:
            if bound == -math.inf:
                raise
            break
    mixture = [
        Orbit(kinds.words(ray), weight, functools.partial(kinds.ray, ray))
        for ray, weight in zip(orbits.sorts, solution.weights.tolist(), strict=True)
        if weight > _LEAST_WEIGHT
    ]
    value, limit = (goal.value(cost, kinds) for cost in (solution.cost, min(bound, solution.cost)))
    return OrbitDesign(value, limit, _sorted(mixture))


def _candidates(
    family: Family, orbits: Orbits, solution: _Solution, gap: float, deadline: Deadline
) -> tuple[Orbits, float]:
    """Return new orbits that are worth more than those in use, and an upper bound on the worth of every orbit."""
    old, level = set(orbits.sorts), solution.base - solution.cost  # the level is the worth of the orbits in use
    precise = _WORTH_FRACTION * _TOLERANCE * abs(solution.cost)
    tolerance = max(precise, _WORTH_FRACTION * min(gap, abs(solution.cost)))
    while True:
        candidates, most = family.best(solution.prices, tolerance, deadline)
        worths = solution.prices.of(candidates)
        better = [row for row, ray in enumerate(candidates.sorts) if worths[row] > level and ray not in old]
        # A search that needed more than the tolerance does not improve by a smaller one.
        if better or tolerance == precise or most - worths.max() > 2 * tolerance:
            return candidates.of(better), most
        tolerance = precise


class _Error(_Goal):
    """The error of estimated frequencies; the cost is tr J⁻¹."""

    dropped = 1e-8

    @staticmethod
    def solve(kinds: Kinds, orbits: Orbits, start: Floats, deadline: Deadline) -> _Solution:
        parts, dimensions = kinds.parts(orbits), [dimension for _, _, dimension in kinds.components]

        def inverses_at(weights: Floats) -> list[Floats]:
            inverses = []
            for part in parts:
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
            for count, part, inverse in zip(dimensions, parts, inverses, strict=True):
                turned = part @ inverse
                value += count * float(np.trace(inverse))
                slope -= count * np.einsum("ab,oba->o", inverse, turned)
                left, right = inverse @ turned, turned.transpose(0, 2, 1)
                hessian += 2 * count * left.reshape(len(weights), -1) @ right.reshape(len(weights), -1).T
            return value, slope, hessian

        # Σ w = 1 and Σ w·(mean - 1) = 0, in units of the distance from 1. One kind follows from the others by p·v = 1.
        totals = kinds.values * kinds.probabilities
        others = np.delete(np.arange(len(totals)), totals.argmax())
        offsets = kinds.means(orbits)[:, others] - 1
        reach = np.abs(offsets).max(axis=0, initial=0.0)
        reach[reach < _NO_REACH] = 1.0
        equations = np.column_stack([np.ones(len(orbits)), offsets / reach]).T
        solution = minimise(trace, equations, np.eye(len(totals))[0], None, start, _PRECISION, deadline)
        deadline.require()  # weights that have not converged do not form a mechanism
        slopes = solution.equations[1:] / reach
        multipliers = (solution.equations[0] - slopes.sum()) * totals
        multipliers[others] += slopes
        inverses = inverses_at(solution.x)
        value = sum(count * float(np.trace(inverse)) for count, inverse in zip(dimensions, inverses, strict=True))
        base = 2 * value - float(multipliers.sum())
        return _Solution(solution.x, value, base, _Error._prices(kinds, inverses, multipliers))

    @staticmethod
    def _prices(kinds: Kinds, inverses: list[Floats], multipliers: Floats) -> SquaredPrices:
        """Return the worth Σ m_c·tr(N_c²·J_c) - λ·mean as coefficients of the sums and squares of an orbit."""
        root = np.sqrt(kinds.values)
        of_means = inverses[0] @ inverses[0] / root[:, None] / root
        # The mean of a kind is S/values, and T = p·S is 1.
        scaled = np.outer(kinds.probabilities, multipliers / kinds.values)
        prices = {"between": np.zeros(len(root)), "within": np.zeros(len(root))}
        for (name, kind, _), inverse in zip(kinds.components[1:], inverses[1:], strict=True):
            prices[name][kind] = float(inverse[0, 0]) ** 2
        return SquaredPrices(of_means - (scaled + scaled.T) / 2, prices["between"] / kinds.sizes, prices["within"])

    @staticmethod
    def value(cost: float, kinds: Kinds) -> float:
        return cost - kinds.squared_norm


class _Information(_Goal):
    """The mutual information; the cost is minus this information."""

    dropped = -1.0  # the multipliers of few orbits are ambiguous

    @staticmethod
    def solve(kinds: Kinds, orbits: Orbits, start: Floats, deadline: Deadline) -> _Solution:  # noqa: ARG004
        totals = kinds.values * kinds.probabilities
        weights, multipliers, value = solve_weights(
            kinds.means(orbits), orbits.information, totals, deadline, tolerance=1e-10
        )
        prices = InformationPrices(multipliers / kinds.values)
        return _Solution(weights, -value, -float(multipliers.sum()), prices)

    @staticmethod
    def value(cost: float, kinds: Kinds) -> float:  # noqa: ARG004
        return -cost
