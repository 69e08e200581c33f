"""Choices: a public coin, independent of the value, chooses one of several mechanisms; the report includes its outcome.

The probability of a report is that of its part times the likelihood in the part. The first factor cancels in every
ratio of likelihoods, so a choice obeys a policy if and only if every part that may be drawn obeys it.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from sfumato._core import Epsilon, Floats
from sfumato.mechanisms.base import LARGEST_MATRIX, Finished, Mechanism
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.mixture import Mixture
from sfumato.policy import PairwisePolicy, Policy, Uniform

__all__ = ["Choice", "ChoiceOfMixtures"]


class Choice(Mechanism):
    """Base class of mechanisms that draw one of several parts, independently of the value, and report by it.

    A subclass sets ``parts`` and ``weights``. By default, every part sees the whole value, and reports are those of the
    first part, then those of the second part, and so on.
    """

    #: Mechanisms of which one is drawn, with a probability in proportion to its integer weight.
    parts: tuple[Mechanism, ...]
    weights: tuple[int, ...]

    @property
    def total(self) -> int:
        """Sum of the weights."""
        return sum(self.weights)

    @functools.cached_property
    def probabilities(self) -> tuple[Fraction, ...]:
        """Probability of each part, in the order of the parts."""
        return tuple(Fraction(weight, self.total) for weight in self.weights)

    @functools.cached_property
    def offsets(self) -> tuple[int, ...]:
        """First report of each part, then the number of all reports."""
        return (0, *accumulate(part.outputs for part in self.parts))

    def split_report(self, report: int) -> tuple[int, int]:
        """Return the part of a report, and the report of its mechanism.

        Parameters
        ----------
        report
            A report of this mechanism.

        Returns
        -------
        tuple of int
            The number of the part, and the report of the part's mechanism.
        """
        number = bisect_right(self.offsets, report) - 1
        return number, report - self.offsets[number]

    def _joined(self, number: int, report: int) -> int:
        """Return the report for a report of a part."""
        return self.offsets[number] + report

    def _projected(self, values: Any, number: int) -> Any:  # noqa: ARG002
        """Return the index of what a part sees of a value, or of each of an array of values."""
        return values

    # -- the sampler -----------------------------------------------------------------------------------------

    def step(self, state: Any, draws: Draws) -> Any:
        if not isinstance(state, tuple):
            number = self._drawn(draws)
            return number, self.parts[number].start(self._projected(state, number))
        number, inner = state
        following = self.parts[number].step(inner, draws)
        if isinstance(following, Finished):
            return Finished(self._joined(number, following.report))
        return number, following

    def _drawn(self, draws: Draws) -> int:
        """Draw the number of a part."""
        return bisect_right(self._bounds, draws.below(self._bounds[-1]))

    @functools.cached_property
    def _bounds(self) -> tuple[int, ...]:
        """The sums of the weights up to each part."""
        return tuple(accumulate(self.weights))

    # -- the stated law --------------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        return self.offsets[-1]

    def probability(self, report: int, x: int) -> Fraction:
        number, inner = self.split_report(report)
        return self.probabilities[number] * self.parts[number].probability(inner, self._projected(x, number))

    def matrix(self) -> Floats:
        if len(self.domain) * self.outputs > LARGEST_MATRIX:
            return super().matrix()  # raises an error
        values, pairs = np.arange(len(self.domain)), zip(self.probabilities, self.parts, strict=True)
        laws = (
            float(share) * part.matrix()[self._projected(values, number)] for number, (share, part) in enumerate(pairs)
        )
        return np.hstack(list(laws))

    def classical_epsilon(self) -> Epsilon | None:
        drawn = [part for part, weight in zip(self.parts, self.weights, strict=True) if weight]
        levels = [level for part in drawn if (level := part.classical_epsilon()) is not None]
        return max(levels) if len(levels) == len(drawn) else None

    def guess_probability(self) -> Fraction:
        # Values that a part does not distinguish are equally likely, so one of them is guessed.
        pairs = zip(self.probabilities, self.parts, strict=True)
        of_parts = (share * part.guess_probability() * len(part.domain) for share, part in pairs if share)
        return sum(of_parts, Fraction(0)) / len(self.domain)


class ChoiceOfMixtures(Choice):
    """Base class of choices of mixtures over the whole domain, at one level ε of classical privacy."""

    parts: tuple[Mixture, ...]

    @functools.cached_property
    def _levels(self) -> list[tuple[Fraction, Fraction]]:
        """For each part, the probabilities of a report for a value in its set, and for a value outside."""
        pairs = zip(self.probabilities, self.parts, strict=True)
        shares = ((share / max(part.outputs, 1), part.likelihoods) for share, part in pairs)
        return [(share * high, share * low) for share, (high, low) in shares]

    def probability(self, report: int, x: int) -> Fraction:
        number, inner = self.split_report(report)
        return self._levels[number][not self.parts[number].in_set(inner, x)]

    def matrix(self) -> Floats:
        values = range(len(self.domain))
        if len(values) * self.outputs > LARGEST_MATRIX:
            return super().matrix()  # raises an error
        matrix = np.empty((len(values), self.outputs))
        for number, (part, levels) in enumerate(zip(self.parts, self._levels, strict=True)):
            high, low = map(float, levels)
            columns = [self._joined(number, report) for report in part.reports()]
            matrix[:, columns] = np.where(part.system.members(values), high, low)
        return matrix

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:
        if not isinstance(policy, PairwisePolicy):
            return None
        # All columns of a part have one ratio. The greatest ratio binds at the smallest level, if the part separates a
        # pair with this level; else an audit compares all reports.
        drawn = (number for number, weight in enumerate(self.weights) if weight)
        number = min(drawn, key=lambda each: self.parts[each].likelihoods[1] / self.parts[each].likelihoods[0])
        part, values, (_, (x, other)) = self.parts[number], range(len(self.domain)), policy.least
        inside = (part.system.member(x, place) for place in range(part.system.degree))
        report = next((report for report in inside if not part.in_set(report, other)), None)
        if report is None and isinstance(policy, Uniform):  # all pairs have this level
            report = next(report for report in part.reports() if len({part.in_set(report, x) for x in values}) > 1)
        if report is None:
            return None
        return iter([(self._joined(number, report), [part.probability(report, x) for x in values])])
