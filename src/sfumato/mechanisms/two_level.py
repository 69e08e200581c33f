"""Mechanisms whose columns have two levels: high on a set D(y) of values, low elsewhere.

All the classical mechanisms are of this form, with one ratio high/low for every output y; they differ in the
family of sets. A policy on pairs then binds only through its smallest level, and a prior only through the
lightest and the heaviest set, so audits cost next to nothing for any number of values.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.exact import Epsilon, floor_of_ratio
from sfumato.mechanisms.base import Mechanism, checked_distribution, checked_reports

__all__ = ["ONE", "InclusionMechanism", "MixtureMechanism", "TwoLevelMechanism", "mixing_threshold"]

#: Probabilities are integers over this.
ONE = 2**64


class TwoLevelMechanism(Mechanism):
    """High on D(y), low elsewhere; for every two values x, x' some D(y) holds x and not x'."""

    @functools.cached_property
    @abstractmethod
    def levels(self) -> tuple[Fraction, Fraction]:
        """(high, low), exact up to a factor that is common to the column."""

    @abstractmethod
    def in_set(self, report: int, x: int) -> bool:
        """Whether the value with index x lies in D(report)."""

    @abstractmethod
    def separating(self, x: int, other: int) -> int:
        """A report whose set holds x and not other."""

    @abstractmethod
    def lightest(self, weights: Sequence[Fraction]) -> int:
        """A report whose set, neither empty nor everything, weighs least."""

    @abstractmethod
    def heaviest(self, weights: Sequence[Fraction]) -> int:
        """A report whose set, neither empty nor everything, weighs most."""


class InclusionMechanism(TwoLevelMechanism):
    """A two-level mechanism that is decoded by counting, for each value, the reports whose set holds it."""

    @functools.cached_property
    @abstractmethod
    def inclusion(self) -> tuple[Fraction, Fraction]:
        """Probabilities that a report's set holds the true value, and that it holds a given other value."""

    def risk(self, n: int, p: Sequence[float] | npt.NDArray[np.float64] | None = None) -> float:
        # p̂_x = (T_x/n - b)/(a - b), and T_x is binomial with probability b + p_x(a - b): an exact variance.
        own, other = self.inclusion
        if own == other:
            return float("inf")
        gap = float(own - other)
        held = float(other) + checked_distribution(p, len(self.domain)) * gap
        return float(np.sum(held * (1 - held))) / (gap * gap * checked_reports(n))

    def worst_risk(self, n: int) -> float:
        # Σ h(1-h) is concave and symmetric in the frequencies: greatest at the uniform distribution.
        return self.risk(n)


class MixtureMechanism(TwoLevelMechanism):
    """With probability γ a report is uniform over the outputs whose set holds the true value, a ``share`` of all
    outputs; otherwise it is uniform over all outputs.
    """

    threshold: int
    share: Fraction

    @functools.cached_property
    def levels(self) -> tuple[Fraction, Fraction]:
        """The two levels, in units of the uniform law."""
        gamma = self.gamma
        return gamma / self.share + (1 - gamma), 1 - gamma

    @property
    def gamma(self) -> Fraction:
        """The probability that the report is made to depend on the true value."""
        return Fraction(self.threshold, ONE)

    @functools.cached_property
    def _probabilities(self) -> tuple[Fraction, Fraction]:
        high, low = self.levels
        return high / self.outputs, low / self.outputs

    def probability(self, report: int, x: int) -> Fraction:
        high, low = self._probabilities
        return high if self.in_set(report, x) else low


def mixing_threshold(epsilon: Epsilon, share: Fraction) -> int:
    """⌊2^64·γ⌋ for the largest γ at which a mixture keeps the promise.

    The ratio of its two levels is 1 + γ/((1-γ)·share), at most e^ε iff γ ≤ (e^ε-1)·share / ((e^ε-1)·share + 1).
    Rounding down moves towards the uniform law: the private side for every ε, and ε = 0 is exactly uniform.
    """
    if epsilon.is_infinite:
        return ONE
    return floor_of_ratio((ONE * share, -ONE * share), (share, 1 - share), epsilon)


def extreme_indices(weights: Sequence[Fraction], count: int, *, heaviest: bool) -> list[int]:
    """Indices of the ``count`` lightest or heaviest weights."""
    return sorted(range(len(weights)), key=weights.__getitem__, reverse=heaviest)[:count]
