"""The two subset sizes and their weight with the least error, for s sensitive and h harmless values.

A report of size d is a set of d sensitive values, or reveals a harmless value. Relative to a uniform set, its
likelihoods have mean 1 over the sensitive values and are 1 - γ_d for every harmless value.

Permutations of the sensitive values, and of the harmless ones, leave the policy unchanged. The error tr J(p)⁻¹ - |p|²
of the efficient estimate, with J(p) = Σ_y q_y q_y'/(q_y·p), is convex in the mechanism and concave in p. A saddle point
therefore exists at a mechanism that the permutations leave unchanged, and at a distribution p that is uniform within
both classes. The total probability of the sensitive values, the *share* q, determines p. The mechanism is a mixture of
sizes, each with its public probability.

J consists of two numbers, for the differences within either class, and of a 2×2 matrix for the means of the classes.
Let y be the likelihood of harmless values divided by the probability of the report at p. Each entry of J is a sum of
quadratic functions of y over the sets. The probability of revealing a value determines the mean of y, so J depends on
that probability and on the mean of y². Two neighbouring sizes have the least mean of y², which is best if differences
between sensitive values matter more than their total. :func:`best_high_low_mixture` compares neighbouring sizes, and
its ``bound`` compares all sizes. The two agree, up to the tolerance of the search, wherever tests compare them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato._core import ZERO, Epsilon, Floats

__all__ = ["Information", "TwoSizes", "best_high_low_mixture"]

#: Greatest ε that is used as it is; above it, e^-ε is negligible and e^ε overflows.
_MOST_EPSILON = 700.0
#: Least ε above 0 that is used as it is; below it, errors overflow. A bound at a greater ε holds for a smaller one.
_LEAST_EPSILON = 1e-12
#: The share is a multiple of 1/_SHARES strictly between 0 and 1, so that its fraction is short.
_SHARES = 2**24
_ENDS = (Fraction(1, _SHARES), 1 - Fraction(1, _SHARES))
#: Steps of a golden-section search, after which the interval has the relative length 2e-10.
_STEPS = 46
_GOLDEN = (math.sqrt(5) - 1) / 2
#: Points of a grid of mean sizes, and number of grids, each between the neighbours of the best point of the one before.
_POINTS, _ROUNDS = 65, 7
#: Weight below which a size counts as unused; the search leaves such weights.
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class TwoSizes:
    """Two neighbouring subset sizes d and d + 1, and the distribution for which they were chosen.

    Parameters
    ----------
    size
        The smaller size d.
    weight
        The probability of the greater size, 0 ≤ weight < 1.
    share
        Total probability q of the sensitive values; the least favourable one unless the caller stated it.
    bound
        Lower bound on n·E|p̂-p|² at the share q as n grows, for every mechanism that obeys the policy.
    """

    size: int
    weight: float
    share: Fraction
    bound: float


@dataclass(frozen=True, eq=False)
class Information:
    """The matrix J of a mixture of sizes at a share q, by components, and the data from which it is computed.

    ``weights``, ``densities`` (d/s) and ``gammas`` have the sizes on their first axis. Further axes enumerate mixtures.
    """

    sensitive: int
    harmless: int
    share: float
    weights: Floats
    densities: Floats
    gammas: Floats

    @functools.cached_property
    def low(self) -> Floats:
        """Likelihood of harmless values, relative to a uniform set."""
        return np.asarray(1 - self.gammas)

    @functools.cached_property
    def laws(self) -> Floats:
        """Probability of a set at the share q, relative to a uniform set."""
        return np.asarray(self.share + (1 - self.share) * self.low)

    @functools.cached_property
    def revealed(self) -> Floats:
        """Probability that a harmless value is revealed."""
        return np.asarray((self.weights * self.gammas).sum(axis=0))

    @functools.cached_property
    def within(self) -> Floats:
        """Eigenvalue of J on differences between sensitive values; infinite if there is a single one."""
        if self.sensitive == 1:
            return np.full(self.weights.shape[1:], math.inf)
        return np.asarray((self.weights * self.within_of_sizes / self.laws).sum(axis=0))

    @functools.cached_property
    def within_of_sizes(self) -> Floats:
        """Variance of the likelihoods of a set over the sensitive values, times s/(s-1)."""
        spread = (1 - self.densities) / self.densities
        return np.asarray(self.gammas**2 * spread * self.sensitive / (self.sensitive - 1))

    @functools.cached_property
    def means(self) -> tuple[Floats, Floats, Floats]:
        """Entries (sensitive, mixed, harmless) of J on the means of the classes, in units of √s and √h."""
        each = self.weights / self.laws
        harmless = (each * self.low**2).sum(axis=0) + self.revealed / (1 - self.share)
        return np.asarray(each.sum(axis=0)), np.asarray((each * self.low).sum(axis=0)), np.asarray(harmless)

    @functools.cached_property
    def inverse(self) -> tuple[Floats, Floats, Floats]:
        """Entries (sensitive, mixed, harmless) of the inverse of ``means``."""
        sensitive, mixed, harmless = self.means
        # The determinant without cancellation: Σ_{i<j} a_i a_j (l_i - l_j)²/(law_i law_j), and the revealed values.
        each, pairs = self.weights / self.laws, 0.0
        for i in range(len(each)):
            for j in range(i):
                pairs = pairs + each[i] * each[j] * (self.gammas[i] - self.gammas[j]) ** 2
        determinant = pairs + sensitive * self.revealed / (1 - self.share)
        return harmless / determinant, -mixed / determinant, sensitive / determinant

    @functools.cached_property
    def risk(self) -> Floats:
        """The error n·E|p̂-p|² of the efficient estimate at the share q."""
        s, h, q = self.sensitive, self.harmless, self.share
        of_sensitive, _, of_harmless = self.inverse
        # Differences within the classes, the means of the classes, and |p|².
        differences = (s - 1) / self.within + (h - 1) * (1 - q) / (h * self.revealed)
        return np.asarray(differences + of_sensitive / s + of_harmless / h - q**2 / s - (1 - q) ** 2 / h)

    @classmethod
    def of_sizes(cls, sensitive: int, harmless: int, odds: float, share: float, sizes: Floats) -> Information:
        """Return the information of mixtures of ⌊size⌋ and ⌊size⌋ + 1 whose mean size is given; odds are e^ε - 1."""
        first = np.minimum(np.floor(sizes), max(sensitive - 1, 1))
        members = np.stack([first, np.minimum(first + 1, sensitive)])
        weights = np.stack([1 - (sizes - first), sizes - first])
        return cls(sensitive, harmless, share, weights, members / sensitive, _gammas(sensitive, odds, members))


def _gammas(sensitive: int, odds: float, members: Floats) -> Floats:
    """Return γ of sets with these numbers of members."""
    return np.asarray(odds * members / (odds * members + sensitive))


@functools.lru_cache(maxsize=256)  # bounds and mechanisms of one policy use the same mixture
def best_high_low_mixture(sensitive: int, harmless: int, epsilon: Epsilon, share: Fraction | None = None) -> TwoSizes:
    """Return the mixture of two neighbouring sizes with the least error at a share.

    Sizes are 1 … s. By default, the share is the least favourable one, at which the error is greatest.
    """
    if epsilon == ZERO:
        return TwoSizes(1, 0.0, Fraction(1, 2) if share is None else share, math.inf)
    odds = math.expm1(min(max(float(epsilon), _LEAST_EPSILON), _MOST_EPSILON))

    def least(q: float) -> tuple[float, float]:
        return _least_size(sensitive, harmless, odds, q)

    if share is None:
        # The least error is concave in the share, and may be greatest at either end.
        q, _ = _minimise(lambda q: -least(q)[1], 1 / _SHARES, 1 - 1 / _SHARES)
        share = max((Fraction(round(q * _SHARES), _SHARES), *_ENDS), key=lambda end: least(float(end))[1])
    mean_size, _ = least(float(share))
    if abs(mean_size - round(mean_size)) < _NEGLIGIBLE:
        mean_size = float(round(mean_size))
    size = min(math.floor(mean_size), max(sensitive - 1, 1))
    information = Information.of_sizes(sensitive, harmless, odds, float(share), np.array(mean_size))
    return TwoSizes(size, mean_size - size, share, _bound(information, odds))


def _least_size(sensitive: int, harmless: int, odds: float, share: float) -> tuple[float, float]:
    """Return the mean size with the least error at a share, and that error."""

    def risks(sizes: Floats) -> Floats:
        return Information.of_sizes(sensitive, harmless, odds, share, sizes).risk

    sizes = np.arange(1.0, sensitive + 1)
    with np.errstate(divide="ignore"):  # sets of all sensitive values alone do not distinguish them
        errors = risks(sizes)
        best = int(np.argmin(errors))
        # The error is convex in the probability of revealing a value, so the best mean size is next to the best size.
        low, high = sizes[max(best - 1, 0)], sizes[min(best + 1, sensitive - 1)]
        for _ in range(_ROUNDS if low < high else 0):
            sizes = np.linspace(low, high, _POINTS)
            errors = risks(sizes)
            best = int(np.argmin(errors))
            low, high = sizes[max(best - 1, 0)], sizes[min(best + 1, _POINTS - 1)]
    return float(sizes[best]), float(errors[best])


def _minimise(function: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Return the minimum of a function without other local minima, and its place, by golden-section search."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(_STEPS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return min((left, at_left), (right, at_right), key=lambda option: option[1])


def _bound(information: Information, odds: float) -> float:
    """Return a lower bound on the error of every mechanism at the share, which the best mixture attains.

    With N = J⁻¹ and any λ, tr J'⁻¹ ≥ 2·tr N - tr(N²·J') for every information J', and the likelihoods of all reports
    sum to one. So the error is at least 2·tr N - λ·1 - δ - |p|². Here δ is the greatest tr(N²·v v') - λ·v of any report
    with likelihoods v, scaled to v·p = 1. The λ of the two classes make it 0 for the sizes of the mixture and for
    revealed values.
    """
    s, h, q = information.sensitive, information.harmless, information.share
    members = np.arange(1.0, s + 1)
    everything = Information(s, h, q, np.ones(s), members / s, _gammas(s, odds, members))
    first, mixed, last = (float(entry) for entry in information.inverse)
    low, laws = everything.low, everything.laws
    # |N·v|² on the means of the classes, and on the differences within the sensitive values.
    squares = ((first + mixed * low) ** 2 / s + (mixed + last * low) ** 2 / h) / laws**2
    if s > 1:
        squares += (s - 1) * everything.within_of_sizes / (laws * float(information.within)) ** 2
    revealed = (mixed**2 / s + last**2 / h) / (1 - q) ** 2 + (1 - 1 / h) / float(information.revealed) ** 2
    # Sizes in use and revealed values have λ·(1, low)/law = squares and λ·(0, 1)/(1 - q) = revealed.
    used = (information.densities[information.weights > 0] * s).round().astype(np.int64) - 1
    of_harmless = revealed * (1 - q)
    of_sensitive = float(np.mean(squares[used] * laws[used] - of_harmless * low[used]))
    excess = max(float(np.max(squares - (of_sensitive + of_harmless * low) / laws)), 0.0)
    trace = float(information.risk) + q**2 / s + (1 - q) ** 2 / h
    return 2 * trace - of_sensitive - of_harmless - excess - q**2 / s - (1 - q) ** 2 / h
