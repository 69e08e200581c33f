"""Mechanisms whose columns have two likelihoods: high on a set D(y) of values, low elsewhere.

All classical mechanisms have this form, with one ratio high/low for every output y; they differ in the family of sets.
A policy on pairs then binds only through its smallest level, and a prior only through the lightest and the heaviest
set. Audits therefore take little time for any number of values.
"""

from __future__ import annotations

import functools
import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, Integers, count_text, exceeds, floor_of_ratio, quantity
from sfumato.errors import LimitExceeded
from sfumato.mechanisms.base import Mechanism, ReportGroup
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

#: Common denominator of all probabilities.
ONE = 2**64
#: Marks a value outside the domain of a mixture, and the report "outside" of such a value.
OUTSIDE = -1
#: Maximum number of outputs, and of pairs of a value and an output, that are listed one by one.
_MOST_LISTED, _MOST_MEMBERSHIPS = 2**20, 10**7


class TwoLevelMechanism(Mechanism):
    """Base class of mechanisms whose columns are high on D(y) and low elsewhere.

    For every two values x and x', some set D(y) contains x but not x'.
    """

    @functools.cached_property
    @abstractmethod
    def likelihoods(self) -> tuple[Fraction, Fraction]:
        """The pair (high, low), exact up to a factor common to the column."""

    @abstractmethod
    def in_set(self, report: int, x: int) -> bool:
        """Return whether D(report) contains the value with index x."""

    @abstractmethod
    def separating(self, x: int, other: int) -> int:
        """Return a report whose set contains x but not ``other``."""

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:
        if isinstance(policy, PairwisePolicy):
            # All columns have the same ratio and every pair is separated, so only the smallest epsilon binds.
            _, (x, other) = policy.least
            return iter([self._column(self.separating(x, other))])
        if isinstance(policy, Prior):
            # high/average is largest where the set is lightest, average/low where it is heaviest.
            return map(self._column, (self.lightest(policy.prior), self.heaviest(policy.prior)))
        return None

    def _column(self, report: int) -> tuple[int, list[Fraction]]:
        """Return a report with the likelihoods of all values."""
        high, low = self.likelihoods
        return report, [high if self.in_set(report, x) else low for x in range(len(self.domain))]

    def classical_epsilon(self) -> Epsilon | None:
        # A spec may state one ε while its threshold keeps another, so the likelihoods are compared.
        epsilon = self.stated_epsilon
        high, low = self.likelihoods
        if epsilon is None or exceeds(high, low, epsilon) or exceeds(low, high, epsilon):
            return None
        return epsilon

    @abstractmethod
    def lightest(self, weights: Sequence[Fraction]) -> int:
        """Return a report whose set has the least weight; the set is neither empty nor the whole domain."""

    @abstractmethod
    def heaviest(self, weights: Sequence[Fraction]) -> int:
        """Return a report whose set has the greatest weight; the set is neither empty nor the whole domain."""


@dataclass(frozen=True)
class MixtureDraws:
    """Decisions that a mixture makes after the first one, which decides whether to force.

    A mixture that reports an index draws one of ``choices``, and one of ``columns`` in it. A cyclic design draws one of
    ``choices``, or one of ``forced`` shifts of the true value modulo ``modulus``. A mixture that reports a set draws
    ``members`` of ``values`` with coins, each set with probability coin/2^planes. Fields that do not apply are zero.
    """

    columns: int = 0
    choices: int = 0
    forced: int = 0
    modulus: int = 0
    values: int = 0
    members: int = 0
    coin: int = 0
    planes: int = 0


class MixtureMechanism(TwoLevelMechanism):
    """Base class of mixtures of a forced and a uniform report.

    With probability γ a report is uniform over the outputs whose set contains the true value, a fraction ``density`` of
    all outputs. Otherwise it is uniform over all outputs. The sampler also accepts OUTSIDE, a value in no set: with
    probability γ its report is then OUTSIDE too.
    """

    threshold: int
    density: Fraction

    @abstractmethod
    def audit_surrogate(self) -> MixtureMechanism: ...

    @abstractmethod
    def draws(self) -> MixtureDraws:
        """Return the decisions after the first one, for kernels that run several mixtures."""

    def forced_shifts(self) -> Integers:
        """Return the forced reports of the value 0, from which a cyclic design shifts those of other values."""
        return np.zeros(0, np.int64)

    @functools.cached_property
    def likelihoods(self) -> tuple[Fraction, Fraction]:
        """The pair (high, low), relative to the uniform law."""
        gamma = self.gamma
        return gamma / self.density + (1 - gamma), 1 - gamma

    @property
    def gamma(self) -> Fraction:
        """Probability γ that the report is forced to depend on the true value."""
        return Fraction(self.threshold, ONE)

    @functools.cached_property
    def _probabilities(self) -> tuple[Fraction, Fraction]:
        """The probabilities of one report given a value in its set, and given a value outside."""
        high, low = self.likelihoods
        return high / self.outputs, low / self.outputs

    def probability(self, report: int, x: int) -> Fraction:
        high, low = self._probabilities
        return high if self.in_set(report, x) else low

    def pattern_counts(self, values: Sequence[int]) -> Mapping[tuple[bool, ...], int]:
        """Return how many outputs have a set that contains some of these values and not the others, by pattern."""
        if self.outputs > _MOST_LISTED:
            raise LimitExceeded(
                f"{self.name} over {quantity(len(self.domain), 'value')} has {count_text(self.outputs)} outputs, more "
                f"than the limit of {_MOST_LISTED:,} that are listed to compare pairs of values. Use a mechanism with "
                "fewer outputs, or SubsetSelection."
            )
        members = self.members(values)
        codes = np.bincount(np.left_shift(1, np.arange(len(values))) @ members, minlength=1 << len(values))
        patterns = ((tuple(bool(code >> i & 1) for i in range(len(values))), code) for code in range(1 << len(values)))
        return {pattern: int(codes[code]) for pattern, code in patterns if codes[code]}

    def members(self, values: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Return whether the set of each output contains each of these values, with one row per value."""
        rows = [[self.in_set(report, int(x)) for report in range(self.outputs)] for x in values]
        return np.array(rows, bool).reshape(len(values), self.outputs)

    def report_groups(self, values: Sequence[int], others: Sequence[int] | None = None) -> list[ReportGroup]:  # noqa: ARG002
        # The low likelihood bounds those of all values, whichever values the other people may have.
        high, low = self._probabilities
        return [
            ReportGroup(tuple(count * (high if member else low) for member in pattern), count * low)
            for pattern, count in self.pattern_counts(values).items()
        ]

    def pair_kinds(self, values: npt.NDArray[np.intp]) -> Integers:
        # All values are in equally many sets, so a pair is determined by the number of sets that contain both.
        if len(values) * self.outputs > _MOST_MEMBERSHIPS:
            raise LimitExceeded(
                f"{self.name} has {count_text(self.outputs)} outputs, too many to compare all pairs of "
                f"{quantity(len(values), 'value')}: values times outputs may be at most {_MOST_MEMBERSHIPS:,}. Use a "
                "mechanism with fewer outputs, or SubsetSelection."
            )
        members = self.members(values.tolist()).astype(np.float64)
        return (members @ members.T).astype(np.int64)

    def empty_outputs(self) -> int:
        """Return the number of outputs whose set contains no value."""
        return 0

    def guess_probability(self) -> Fraction:
        high, low = self._probabilities
        empty = self.empty_outputs()
        return ((self.outputs - empty) * high + empty * low) / len(self.domain)


class InclusionMixture(MixtureMechanism):
    """Base class of mixtures over all sets of d of k values, with d = density·k; they treat all values alike."""

    def symmetry_classes(self) -> Integers:
        return np.zeros(len(self.domain), np.int64)

    def pair_kinds(self, values: npt.NDArray[np.intp]) -> Integers:
        return np.zeros((len(values), len(values)), np.int64)

    def pattern_counts(self, values: Sequence[int]) -> Mapping[tuple[bool, ...], int]:
        k, d, m = len(self.domain), int(self.density * len(self.domain)), len(values)
        patterns = itertools.product((True, False), repeat=m)
        counts = {p: math.comb(k - m, d - sum(p)) if d >= sum(p) else 0 for p in patterns}
        return {pattern: count for pattern, count in counts.items() if count}


def mixing_threshold(epsilon: Epsilon, density: Fraction) -> int:
    """Return ⌊2^64·γ⌋ for the largest γ at which a mixture keeps ε.

    With density u, the ratio of the likelihoods is 1 + γ/((1-γ)·u). It is at most e^ε if and only if γ ≤
    (e^ε-1)·u/((e^ε-1)·u + 1). Rounding down moves the law towards the uniform one, which is the private side for every
    ε. At ε = 0 the law is exactly uniform.
    """
    if epsilon.is_infinite:
        return ONE
    return floor_of_ratio((ONE * density, -ONE * density), (density, 1 - density), epsilon)


def extreme_indices(weights: Sequence[Fraction], count: int, *, heaviest: bool) -> list[int]:
    """Return the indices of the ``count`` lightest or heaviest weights."""
    return sorted(range(len(weights)), key=weights.__getitem__, reverse=heaviest)[:count]
