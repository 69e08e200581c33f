"""Subset selection: report a set of d values that is likelier to hold the true one (Ye and Barg 2018)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from sfumato._core import ZERO, Epsilon, EpsilonLike, checked_integer, floor_of_ratio, sign_of_sum
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import SURROGATE_VALUES, Finished, read_epsilon
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.two_level import ONE, OUTSIDE, InclusionMixture, MixtureDraws, extreme_indices, mixing_threshold

__all__ = ["MOST_PLANES", "SubsetSelection", "best_subset_size", "cheap_planes", "nth_set_bit", "scaled_size"]

#: A coin of a value or a block is a/2^R with at most this R.
MOST_PLANES = 8

#: The true value; whether the set is forced to hold it; the next position to flip a coin for; the set so far.
SubsetState = tuple[int, bool, int, int]


class SubsetSelection(InclusionMixture):
    """With probability γ a uniform d-subset that holds the true value, otherwise a uniform d-subset.

    The sampler flips a coin for every value, mends the size by adding or removing uniformly chosen values, and
    if forced swaps a uniformly chosen member for the true value. It is exact: given its size, a set of
    independent coins is uniform, and stays so when a uniform element comes or goes.
    """

    name = "subset-selection"

    def __init__(
        self,
        domain: Domain,
        epsilon: EpsilonLike,
        size: int | None = None,
        *,
        threshold: int | str | None = None,
        coin: int | None = None,
        planes: int | None = None,
    ) -> None:
        k = len(domain)
        if k < 2:
            raise InvalidInput("SubsetSelection", "domain", "have at least two values", domain)
        self.domain = checked_domain("SubsetSelection", domain)
        self.epsilon = read_epsilon("SubsetSelection", epsilon)
        best = best_subset_size(k, self.epsilon) if size is None else size
        self.size = checked_integer("SubsetSelection", "size", best, 1, k - 1)
        self.density = Fraction(self.size, k)
        if threshold is None:
            threshold = mixing_threshold(self.epsilon, self.density)
        self.threshold = checked_integer("SubsetSelection", "threshold", threshold, 0, ONE)
        best_planes = cheap_planes(self.size, k) if planes is None else planes
        self.planes = checked_integer("SubsetSelection", "planes", best_planes, 1, MOST_PLANES)
        cheap_coin = round(Fraction(self.size << self.planes, k))
        self.coin = checked_integer("SubsetSelection", "coin", cheap_coin if coin is None else coin, 0, 2**self.planes)
        groups = -(-k // 64)
        self.layout = Layout(
            64 + 64 * self.planes * groups, (Field.number(32, 32),), lanes=k, planes=self.planes, planes_start=64
        )

    def start(self, x: int) -> tuple[int]:
        return (x,)

    def step(self, state: tuple[int] | SubsetState, draws: Draws) -> SubsetState | Finished:
        if len(state) == 1:
            return state[0], draws.bernoulli(self.threshold, ONE), 0, 0
        x, forced, position, chosen = state
        k = len(self.domain)
        if position < k:
            chosen |= draws.bernoulli(self.coin, 2**self.planes) << position
            return x, forced, position + 1, chosen
        surplus = chosen.bit_count() - self.size
        if surplus > 0:
            return x, forced, k, chosen ^ nth_set_bit(chosen, draws.below(chosen.bit_count()))
        if surplus < 0:
            absent = chosen ^ (1 << k) - 1
            return x, forced, k, chosen | nth_set_bit(absent, draws.below(absent.bit_count()))
        if forced and x == OUTSIDE:
            return Finished(OUTSIDE)
        if forced and not chosen >> x & 1:
            chosen ^= nth_set_bit(chosen, draws.below(self.size)) | 1 << x
        return Finished(chosen)

    def audit_surrogate(self) -> SubsetSelection:
        values = min(len(self.domain), SURROGATE_VALUES)
        size = scaled_size(self.density, values)
        return self.from_parameters(Domain.range(values), self.parameters() | {"size": size})

    def draws(self) -> MixtureDraws:
        return MixtureDraws(values=len(self.domain), members=self.size, coin=self.coin, planes=self.planes)

    @property
    def outputs(self) -> int:
        return math.comb(len(self.domain), self.size)

    def reports(self) -> Iterable[int]:
        members = itertools.combinations(range(len(self.domain)), self.size)
        return sorted(sum(1 << i for i in subset) for subset in members)

    def in_set(self, report: int, x: int) -> bool:
        return bool(report >> x & 1)

    def separating(self, x: int, other: int) -> int:
        others = (i for i in range(len(self.domain)) if i not in (x, other))
        return sum(1 << i for i in [x, *itertools.islice(others, self.size - 1)])

    def lightest(self, weights: Sequence[Fraction]) -> int:
        return sum(1 << i for i in extreme_indices(weights, self.size, heaviest=False))

    def heaviest(self, weights: Sequence[Fraction]) -> int:
        return sum(1 << i for i in extreme_indices(weights, self.size, heaviest=True))

    def parameters(self) -> dict[str, Any]:
        return {
            "epsilon": str(self.epsilon),
            "size": self.size,
            "threshold": str(self.threshold),
            "coin": self.coin,
            "planes": self.planes,
        }

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> SubsetSelection:
        return cls(domain, **parameters)


def best_subset_size(k: int, epsilon: Epsilon) -> int:
    """The size d with the least risk: the floor or the ceiling of k/(e^ε+1), within 1 … k-1.

    The floor is best iff e^2ε ≥ (k-d)(k-d-1)/(d(d+1)); rounding to nearest is wrong.
    """
    if epsilon.is_infinite:
        return 1
    d = floor_of_ratio((Fraction(0), Fraction(k)), (Fraction(1), Fraction(1)), epsilon)
    d = min(max(d, 1), k - 1)
    limit = Fraction((k - d) * (k - d - 1), d * (d + 1))
    floor_is_best = sign_of_sum([(Fraction(1), epsilon * 2), (-limit, ZERO)]) >= 0
    return d if floor_is_best else d + 1


def scaled_size(density: Fraction, among: int, least: int = 1) -> int:
    """The size nearest to this density of ``among`` values, of which some but not all are in a subset."""
    return min(max(round(density * among), least), among - 1)


def cheap_planes(size: int, k: int) -> int:
    """The fewest planes R at which the coin a/2^R nearest d/k leaves the expected count within half a deviation of d.

    The coin changes how often the size must be mended, never the law.
    """
    for planes in range(1, MOST_PLANES + 1):
        coin = round(Fraction(size << planes, k))
        bias = Fraction(coin * k, 1 << planes) - size
        if 4 * bias * bias <= Fraction(size * (k - size), k):
            break
    return planes


def nth_set_bit(bits: int, n: int) -> int:
    """The n-th lowest set bit, as a power of two."""
    for _ in range(n):
        bits &= bits - 1
    return bits & -bits
