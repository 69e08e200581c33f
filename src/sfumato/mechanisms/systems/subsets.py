"""All sets of d of k values: subset selection (Ye and Barg 2018)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from sfumato._core import ZERO, Epsilon, EpsilonLike, checked_integer, floor_of_ratio, sign_of_sum
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import SURROGATE_VALUES, Finished
from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.registry import Family
from sfumato.mechanisms.reports.bitmap import BitmapFormat
from sfumato.mechanisms.reports.count_laws import subset_counts
from sfumato.mechanisms.systems.base import OUTSIDE, Force, MixtureDraws
from sfumato.mechanisms.systems.symmetric import SymmetricSystem

__all__ = [
    "MOST_PLANES",
    "SUBSET",
    "SubsetSelection",
    "Subsets",
    "best_subset_size",
    "cheap_planes",
    "nth_set_bit",
    "scaled_size",
]

#: Maximum number of planes: the coin of a value or a block is a/2^R with R at most this.
MOST_PLANES = 8

#: The true value; whether the set is forced to contain it; the next position to flip a coin for; the set so far.
SubsetState = tuple[int, bool, int, int]


@dataclass(frozen=True)
class Subsets(SymmetricSystem):
    """The sets of d of k values, as bitmaps of k bits.

    The sampler flips a coin a/2^R for every value, then adds or removes uniformly chosen values until the set has d
    members. If the set must contain the true value and does not, a uniformly chosen member is replaced by it.
    """

    size: int
    members_per_set: int
    coin: int
    planes: int

    @cached_property
    def layout(self) -> Layout:  # type: ignore[override]
        frame_bits = 64 + 64 * self.planes * -(-self.size // 64)
        return Layout(frame_bits, (Field.number(32, 32),), lanes=self.size, planes=self.planes, planes_start=64)

    @property
    def outputs(self) -> int:
        return math.comb(self.size, self.members_per_set)

    def start(self, x: int) -> tuple[int]:
        return (x,)

    def step(self, state: tuple[int] | SubsetState, draws: Draws, force: Force) -> SubsetState | Finished:
        if len(state) == 1:
            return state[0], force(), 0, 0
        x, forced, position, chosen = state
        if position < self.size:
            chosen |= draws.bernoulli(self.coin, 2**self.planes) << position
            return x, forced, position + 1, chosen
        surplus = chosen.bit_count() - self.members_per_set
        if surplus > 0:
            return x, forced, position, chosen ^ nth_set_bit(chosen, draws.below(chosen.bit_count()))
        if surplus < 0:
            absent = chosen ^ (1 << self.size) - 1
            return x, forced, position, chosen | nth_set_bit(absent, draws.below(absent.bit_count()))
        if forced and x == OUTSIDE:
            return Finished(OUTSIDE)
        if forced and not chosen >> x & 1:
            chosen ^= nth_set_bit(chosen, draws.below(self.members_per_set)) | 1 << x
        return Finished(chosen)

    def surrogate(self) -> Subsets:
        values = min(self.size, SURROGATE_VALUES)
        return Subsets(values, scaled_size(self.density, values), self.coin, self.planes)

    def draws(self) -> MixtureDraws:
        return MixtureDraws(values=self.size, members=self.members_per_set, coin=self.coin, planes=self.planes)

    def reports(self) -> Iterable[int]:
        return sorted(map(self.as_report, itertools.combinations(range(self.size), self.members_per_set)))

    def contains(self, report: int, x: int) -> bool:
        return bool(report >> x & 1)

    def as_report(self, values: Sequence[int]) -> int:
        return sum(1 << x for x in values)

    def document(self) -> dict[str, Any]:
        return {"size": self.members_per_set, "coin": self.coin, "planes": self.planes}


class SubsetSelection(Mixture):
    """Subset selection: report a random set of d values that often contains the true one.

    With probability γ the set is drawn uniformly from the sets of d values that contain the true value, otherwise from
    all sets of d values. A report is a bitmap with one bit per value, of which exactly d are set.

    Parameters
    ----------
    domain
        The k values, at least two.
    epsilon
        The level ε of classical local differential privacy.
    size
        The number d of values in the set, from 1 to k-1. By default, d minimizes the expected squared error of the
        estimated frequencies (the risk).
    threshold
        The integer ⌊2^64·γ⌋ that a stored spec holds. Omit it to compute it from ``epsilon``.
    coin
        Setting of the sampler, which first includes each value with probability coin/2^planes. It affects the speed,
        not the probabilities of the reports.
    planes
        Number of random bits per coin, from 1 to 8. It affects the speed, not the probabilities of the reports.

    Notes
    -----
    With t = e^ε, the set contains the true value with probability d·t/(d·t + k-d), so γ = (t-1)d/((t-1)d + k). γ is
    rounded down to a multiple of 2^-64, so that ε holds exactly. The risk is least for d = ⌊k/(t+1)⌋ or ⌈k/(t+1)⌉
    within 1 … k-1; the floor d is better if and only if t² ≥ (k-d)(k-d-1)/(d(d+1)). With the best d, the risk at the
    uniform distribution is the optimum of Ye and Barg (2018) for ε-local differential privacy.

    The sampler flips a coin for every value, then adds or removes uniformly chosen values until the set has d members.
    If the set must contain the true value and does not, a uniformly chosen member is replaced by the true value. The
    sampler is exact: given its size, a set of independent coins is uniform, and it stays uniform when a uniformly
    chosen element is added or removed.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import SubsetSelection
    >>> mechanism = SubsetSelection(Domain(["none", "flu", "hiv", "cancer"]), "ln 3", size=2)
    >>> mechanism.gamma
    Fraction(1, 2)
    >>> mechanism.probability(0b0011, 0)  # the report {none, flu}, given "none"
    Fraction(1, 4)
    >>> mechanism.outputs
    6
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
        subject, values = "SubsetSelection", checked_domain("SubsetSelection", domain)
        k = len(values)
        if k < 2:
            raise InvalidInput(subject, "domain", "have at least two values", domain)
        level = Epsilon(epsilon, subject=subject)
        best = best_subset_size(k, level) if size is None else size
        self.size = checked_integer(subject, "size", best, 1, k - 1)
        self.planes = checked_integer(
            subject, "planes", cheap_planes(self.size, k) if planes is None else planes, 1, MOST_PLANES
        )
        cheap_coin = round(Fraction(self.size << self.planes, k))
        self.coin = checked_integer(subject, "coin", cheap_coin if coin is None else coin, 0, 2**self.planes)
        system = Subsets(k, self.size, self.coin, self.planes)
        super().__init__(values, level, system, threshold=threshold)

    def parameters(self) -> dict[str, Any]:
        # The settings of the sampler stand after those of the law.
        parameters = super().parameters()
        return parameters | {key: parameters.pop(key) for key in ("coin", "planes")}


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield subset selection for every policy."""
    build = partial(SubsetSelection, request.policy.domain, request.epsilon)
    yield "subset", Candidate(build, "k per report", classical=True)


SUBSET = Family(
    mechanisms=(SubsetSelection,),
    report_format=lambda mechanism: BitmapFormat(len(mechanism.domain), mechanism.size),
    kernel="sfumato.mechanisms.kernels.subsets:build",
    candidates=_candidates,
    count_law=subset_counts,
    in_browser=True,
    memory="sfumato.mechanisms.memoized.subsets:SUBSET",
)


def best_subset_size(k: int, epsilon: Epsilon) -> int:
    """Return the size d with the least risk: the floor or the ceiling of k/(e^ε+1), within 1 … k-1.

    The floor is best if and only if e^2ε ≥ (k-d)(k-d-1)/(d(d+1)). Rounding to the nearest integer is sometimes worse.
    """
    if epsilon.is_infinite:
        return 1
    d = floor_of_ratio((Fraction(0), Fraction(k)), (Fraction(1), Fraction(1)), epsilon)
    d = min(max(d, 1), k - 1)
    limit = Fraction((k - d) * (k - d - 1), d * (d + 1))
    floor_is_best = sign_of_sum([(Fraction(1), epsilon * 2), (-limit, ZERO)]) >= 0
    return d if floor_is_best else d + 1


def scaled_size(density: Fraction, among: int, least: int = 1) -> int:
    """Return the size nearest to this density of ``among`` values, at least ``least`` and below ``among``."""
    return min(max(round(density * among), least), among - 1)


def cheap_planes(size: int, k: int) -> int:
    """Return the fewest planes R at which the coin a/2^R nearest to d/k leaves little work for resizing.

    The expected number of set coins must be within half a standard deviation of d. The coin changes how often the
    sampler has to resize the set, never the law.
    """
    for planes in range(1, MOST_PLANES + 1):
        coin = round(Fraction(size << planes, k))
        bias = Fraction(coin * k, 1 << planes) - size
        if 4 * bias * bias <= Fraction(size * (k - size), k):
            break
    return planes


def nth_set_bit(bits: int, n: int) -> int:
    """Return the n-th lowest set bit, as a power of two."""
    for _ in range(n):
        bits &= bits - 1
    return bits & -bits
