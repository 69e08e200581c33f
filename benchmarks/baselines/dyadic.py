"""Counting people over time with dyadic intervals, with exact laws (Erlingsson et al. 2019).

A person has a status of 0 or 1 in each of T waves, T a power of two, and starts from 0. The device draws one of the
levels h = 0 … log2 T once, independently of the values. In level h it reports for every interval of 2^h waves whether
the status rose or fell between its ends: a sign that is right with probability e^a/(1 + e^a), and uniform if nothing
changed. A count in wave t is the sum of the changes over the intervals that make up 1 … t.

If only changes from one wave to the next are counted, the lowest level is enough: every device reports a sign in every
wave (:class:`Signs`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Dyadic", "Signs", "one_wave_change_variance", "one_wave_variance"]


def _gain(epsilon: float) -> float:
    """Return the mean of a sign that is right with probability e^ε/(1 + e^ε)."""
    return math.tanh(epsilon / 2)


@dataclass(frozen=True)
class Dyadic:
    """Dyadic intervals over T waves, for at most c changes, the first one from 0 included, at one level ε for all.

    Two histories with at most c changes each differ in at most 2c reports of a level. Where one of them has no change,
    the ratio of likelihoods is 2e^a/(1 + e^a) on one side and (1 + e^a)/2 on the other. The product of both is e^a, so
    a = ε/c gives exactly ε.
    """

    waves: int
    changes: int
    epsilon: float

    @property
    def levels(self) -> int:
        """Number of levels."""
        return self.waves.bit_length()

    @property
    def sign_epsilon(self) -> float:
        """Level a of one sign."""
        return self.epsilon / self.changes

    def probability(self, level: int, signs: Sequence[int], history: Sequence[int]) -> float:
        """Return the probability of a level and its signs for a history of T values."""
        width = 1 << level
        ends = [0, *history[width - 1 :: width]]
        right = 1 / (1 + math.exp(-self.sign_epsilon))
        total = 1 / self.levels
        for sign, start, end in zip(signs, ends, ends[1:], strict=False):
            total *= 0.5 if start == end else (right if sign == end - start else 1 - right)
        return total

    def reports(self) -> list[tuple[int, tuple[int, ...]]]:
        """Return all reports: a level and one sign per interval; for small T."""
        return [
            (level, signs)
            for level in range(self.levels)
            for signs in itertools.product((-1, 1), repeat=self.waves >> level)
        ]

    def histories(self) -> list[tuple[int, ...]]:
        """Return all histories with at most ``changes`` changes; for small T."""
        every = itertools.product((0, 1), repeat=self.waves)
        return [each for each in every if sum(a != b for a, b in itertools.pairwise((0, *each))) <= self.changes]

    def estimate(self, level: int, signs: Sequence[int], wave: int) -> float:
        """Return the unbiased estimate of one person's status in a wave, counted from 1."""
        if not wave >> level & 1:
            return 0.0
        return self.levels / _gain(self.sign_epsilon) * signs[(wave >> level) - 1]

    def variance(self, wave: int, status: int) -> float:
        """Return the variance of that estimate: one interval for every bit of the number of the wave."""
        return wave.bit_count() * self.levels / _gain(self.sign_epsilon) ** 2 - status

    def estimate_change(self, level: int, signs: Sequence[int], wave: int) -> float:
        """Return the unbiased estimate of the change of one person's status from the wave before to a wave."""
        return 0.0 if level else self.levels / _gain(self.sign_epsilon) * signs[wave - 1]

    def change_variance(self, change: int) -> float:
        """Return the variance of that estimate."""
        return self.levels / _gain(self.sign_epsilon) ** 2 - change**2


@dataclass(frozen=True)
class Signs:
    """Signs of the lowest level alone, one in every wave, for at most c changes, at one level ε for all.

    The argument for the level of all reports is that of :class:`Dyadic`.
    """

    waves: int
    changes: int
    epsilon: float

    def probability(self, signs: Sequence[int], history: Sequence[int]) -> float:
        """Return the probability of the signs of all waves for a history of T values."""
        dyadic = Dyadic(self.waves, self.changes, self.epsilon)
        return dyadic.levels * dyadic.probability(0, signs, history)

    def estimate_change(self, signs: Sequence[int], wave: int) -> float:
        """Return the unbiased estimate of the change of one person's status from the wave before to a wave."""
        return signs[wave - 1] / _gain(self.epsilon / self.changes)

    def change_variance(self, change: int) -> float:
        """Return the variance of that estimate."""
        return 1 / _gain(self.epsilon / self.changes) ** 2 - change**2


def one_wave_variance(waves: int, epsilon: float, status: int) -> float:
    """Return the variance if each person answers once, in a uniformly drawn wave, by randomized response at ε."""
    return waves * (1 / _gain(epsilon) ** 2 + 4 * status - 1) / 4 - status


def one_wave_change_variance(waves: int, epsilon: float, before: int, after: int) -> float:
    """Return the variance of the change between two waves if each person answers once, in a uniformly drawn wave."""
    noise = (1 / _gain(epsilon) ** 2 - 1) / 4
    return waves * (2 * noise + before**2 + after**2) - (after - before) ** 2
