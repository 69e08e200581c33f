"""Mechanisms whose columns have two likelihoods: high on a set D(y) of values, low elsewhere.

All the classical mechanisms are of this form, with one ratio high/low for every output y; they differ in the
family of sets. A policy on pairs then binds only through its smallest level, and a prior only through the
lightest and the heaviest set, so audits cost next to nothing for any number of values.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato._core import Epsilon, exceeds, floor_of_ratio
from sfumato.mechanisms.base import Mechanism
from sfumato.policy import PairwisePolicy, Policy, Prior

__all__ = [
    "ONE",
    "OUTSIDE",
    "InclusionMixture",
    "MixtureDraws",
    "MixtureMechanism",
    "TwoLevelMechanism",
    "mixing_threshold",
]

#: Probabilities are integers over this.
ONE = 2**64
#: Stands for a value outside the domain of a mixture, and for the report that it may not answer with.
OUTSIDE = -1


class TwoLevelMechanism(Mechanism):
    """High on D(y), low elsewhere; for every two values x, x' some D(y) holds x and not x'."""

    @functools.cached_property
    @abstractmethod
    def likelihoods(self) -> tuple[Fraction, Fraction]:
        """(high, low), exact up to a factor that is common to the column."""

    @abstractmethod
    def in_set(self, report: int, x: int) -> bool:
        """Whether the value with index x lies in D(report)."""

    @abstractmethod
    def separating(self, x: int, other: int) -> int:
        """A report whose set holds x and not other."""

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:
        if isinstance(policy, PairwisePolicy):
            # All columns have the same ratio and every pair is separated: the smallest epsilon is the one to meet.
            _, (x, other) = policy.least
            return iter([self._column(self.separating(x, other))])
        if isinstance(policy, Prior):
            # high/average is largest where the set is lightest, average/low where it is heaviest.
            return map(self._column, (self.lightest(policy.prior), self.heaviest(policy.prior)))
        return None

    def _column(self, report: int) -> tuple[int, list[Fraction]]:
        high, low = self.likelihoods
        return report, [high if self.in_set(report, x) else low for x in range(len(self.domain))]

    def classical_epsilon(self) -> Epsilon | None:
        # A spec from elsewhere may state one ε and keep another.
        epsilon = self.stated_epsilon
        high, low = self.likelihoods
        if epsilon is None or exceeds(high, low, epsilon) or exceeds(low, high, epsilon):
            return None
        return epsilon

    @abstractmethod
    def lightest(self, weights: Sequence[Fraction]) -> int:
        """A report whose set, neither empty nor everything, weighs least."""

    @abstractmethod
    def heaviest(self, weights: Sequence[Fraction]) -> int:
        """A report whose set, neither empty nor everything, weighs most."""


@dataclass(frozen=True)
class MixtureDraws:
    """What a mixture draws: one of ``choices``, and of ``columns`` in it; or ``members`` of ``values``, by coins.

    What does not apply is zero. A coin is set with probability coin/2^planes.
    """

    columns: int = 0
    choices: int = 0
    values: int = 0
    members: int = 0
    coin: int = 0
    planes: int = 0


class MixtureMechanism(TwoLevelMechanism):
    """With probability γ a report is uniform over the outputs whose set holds the true value, a fraction ``density`` of
    all outputs; otherwise it is uniform over all outputs.

    Its sampler also takes OUTSIDE, a value that is in no set: with probability γ the report is then OUTSIDE too.
    """

    threshold: int
    density: Fraction

    @abstractmethod
    def audit_surrogate(self) -> MixtureMechanism: ...

    @abstractmethod
    def draws(self) -> MixtureDraws:
        """The decisions after the first, whether to force: what a kernel of several mixtures looks up."""

    @functools.cached_property
    def likelihoods(self) -> tuple[Fraction, Fraction]:
        """The two likelihoods, in units of the uniform law."""
        gamma = self.gamma
        return gamma / self.density + (1 - gamma), 1 - gamma

    @property
    def gamma(self) -> Fraction:
        """The probability that the report is made to depend on the true value."""
        return Fraction(self.threshold, ONE)

    @functools.cached_property
    def _probabilities(self) -> tuple[Fraction, Fraction]:
        high, low = self.likelihoods
        return high / self.outputs, low / self.outputs

    def probability(self, report: int, x: int) -> Fraction:
        high, low = self._probabilities
        return high if self.in_set(report, x) else low

    def empty_outputs(self) -> int:
        """Return the number of outputs whose set holds no value."""
        return 0

    def guess_probability(self) -> Fraction:
        high, low = self._probabilities
        empty = self.empty_outputs()
        return ((self.outputs - empty) * high + empty * low) / len(self.domain)


class InclusionMixture(MixtureMechanism):
    """A uniform set of d of k values, forced with probability γ to hold the true one: d = density·k."""


def mixing_threshold(epsilon: Epsilon, density: Fraction) -> int:
    """⌊2^64·γ⌋ for the largest γ at which a mixture keeps the promise.

    With d the density, the ratio of the likelihoods is 1 + γ/((1-γ)·d), at most e^ε iff γ ≤ (e^ε-1)·d/((e^ε-1)·d + 1).
    Rounding down moves towards the uniform law: the private side for every ε, and ε = 0 is exactly uniform.
    """
    if epsilon.is_infinite:
        return ONE
    return floor_of_ratio((ONE * density, -ONE * density), (density, 1 - density), epsilon)


def extreme_indices(weights: Sequence[Fraction], count: int, *, heaviest: bool) -> list[int]:
    """Indices of the ``count`` lightest or heaviest weights."""
    return sorted(range(len(weights)), key=weights.__getitem__, reverse=heaviest)[:count]
