"""Estimator of parts: one estimator per part, with the totals that the reports reveal.

A report reveals its part, so the mass of a part is known up to sampling. If a part has unprotected values, the
fraction C of reports that reveal one estimates their mass as C/γ, and thus the mass of the protected values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato._core import Floats, Integers, project_protected
from sfumato.mechanisms.estimators.base import Estimator, HistogramEstimator
from sfumato.mechanisms.estimators.likelihood import Fit
from sfumato.mechanisms.estimators.mixture import MixtureEstimator
from sfumato.mechanisms.estimators.scores import PartitionedScores, Piece, Scores
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.parts.mechanism import Parts

__all__ = ["PartsEstimator", "parts_estimator"]


@dataclass(frozen=True, eq=False)
class _Part:
    """One part: its estimator, its counts, its protected and unprotected values, and the counts of the latter."""

    estimator: MixtureEstimator
    counts: slice
    protected: Integers
    unprotected: Integers
    unprotected_counts: Integers

    def masses(self, fractions: Floats) -> tuple[float, float]:
        """Return the estimated mass of the protected values, and the mass of all values of the part."""
        revealed = float(fractions[self.unprotected_counts].sum())
        total = float(fractions[self.counts].sum()) / self.estimator.each + revealed
        return total - revealed / self.estimator.gamma, total


class PartsEstimator(Estimator):
    """Estimator that works part by part; one report has nonzero scores only for values of its part."""

    def __init__(self, mechanism: Parts) -> None:
        self.size = len(mechanism.domain)
        self._length = mechanism.numbering.count_offsets[-1] + len(mechanism.unprotected)
        known: dict[Mixture, MixtureEstimator] = {}
        unprotected_part = mechanism.part_of[mechanism.unprotected]
        self.parts = []
        for number, mixture in enumerate(mechanism.parts):
            if mixture not in known:
                known[mixture] = _part_estimator(mixture)
            counts = mechanism.numbering.counts_of(number)
            members = np.flatnonzero(unprotected_part == number)
            unprotected_counts = mechanism.numbering.count_offsets[-1] + members
            part = _Part(
                known[mixture], counts, mechanism.protected(number), mechanism.unprotected[members], unprotected_counts
            )
            self.parts.append(part)

    def frequencies(self, fractions: Floats) -> Floats:
        frequencies = np.empty(self.size)
        for part in self.parts:
            frequencies[part.protected] = part.estimator.decode(fractions[part.counts], *part.masses(fractions))
            frequencies[part.unprotected] = fractions[part.unprotected_counts] / part.estimator.gamma
        return frequencies

    def expected_counts(self, p: Floats) -> Floats:
        fractions = np.zeros(self._length)
        for part, total in self._with_totals(p):
            fractions[part.counts] = part.estimator.law(p[part.protected], total)
            fractions[part.unprotected_counts] = part.estimator.gamma * p[part.unprotected]
        return fractions

    def _with_totals(self, p: Floats) -> Iterator[tuple[_Part, float]]:
        """Yield each part with the mass of its values."""
        return ((part, float(p[part.protected].sum() + p[part.unprotected].sum())) for part in self.parts)

    def nearest(self, unbiased: Floats, fractions: Floats) -> Floats:
        nearest = np.empty(self.size)
        for part in self.parts:
            values = np.concatenate([part.protected, part.unprotected])
            revealed = np.arange(len(values)) >= len(part.protected)
            nearest[values] = project_protected(unbiased[values], revealed, part.masses(fractions)[1])
        return nearest

    def fit(self, fractions: Floats, n: int) -> Fit:  # noqa: ARG002
        """Maximize the composite likelihood: revealed values and totals from their fractions, sets from their bits."""
        frequencies = np.zeros(self.size)
        fits = []
        for part in self.parts:
            protected, total = part.masses(fractions)
            protected = min(max(protected, 0.0), total)
            revealed = fractions[part.unprotected_counts]
            frequencies[part.unprotected] = revealed / revealed.sum() * (total - protected) if revealed.any() else 0.0
            estimator = part.estimator
            if protected > 0:
                # The expected counts of unprotected values are subtracted; the rest comes from protected values.
                rest = (fractions[part.counts] - estimator.law(np.zeros(estimator.size), total - protected)) / protected
                fits.append(estimator.fit_part(np.clip(rest, 0.0, 1.0)))
                frequencies[part.protected] = protected * fits[-1].frequencies
        return Fit(
            frequencies,
            all(fit.converged for fit in fits),
            max((fit.iterations for fit in fits), default=0),
            sum(fit.gain for fit in fits),
            max((fit.bound for fit in fits), default=0.0),
        )

    def second_moments(self) -> Floats:
        # A report of one part has score 0 for the values of all other parts.
        second_moments = np.empty(self.size)
        known: dict[MixtureEstimator, tuple[Floats, float]] = {}
        for part in self.parts:
            estimator = part.estimator
            if estimator not in known:
                known[estimator] = estimator.second_moments(), estimator.unprotected_second_moment()
            second_moments[part.protected], second_moments[part.unprotected] = known[estimator]
        return second_moments

    def variances(self, p: Floats) -> Floats:
        squares = np.empty(self.size)
        for part, total in self._with_totals(p):
            estimator = part.estimator
            revealed = estimator.gamma * float(p[part.unprotected].sum())
            of_sets = estimator.squared_scores(p[part.protected], total)
            squares[part.protected] = of_sets + revealed * estimator.revealed_score**2
            squares[part.unprotected] = p[part.unprotected] / estimator.gamma
        return np.asarray(squares - p**2)

    def covariance(self, p: Floats) -> Floats:
        products = np.zeros((self.size, self.size))
        for part, total in self._with_totals(p):
            estimator, unprotected = part.estimator, p[part.unprotected]
            within = estimator.products(p[part.protected], total)
            within += estimator.gamma * unprotected.sum() * estimator.revealed_score**2
            products[np.ix_(part.protected, part.protected)] = within
            products[np.ix_(part.protected, part.unprotected)] = estimator.revealed_score * unprotected
            products[np.ix_(part.unprotected, part.protected)] = estimator.revealed_score * unprotected[:, None]
            products[part.unprotected, part.unprotected] = unprotected / estimator.gamma
        return products - np.outer(p, p)

    def variance(self, weights: Floats, p: Floats) -> float:
        square = 0.0
        for part, total in self._with_totals(p):
            estimator, protected = part.estimator, weights[part.protected]
            square += estimator.quadratic(protected, p[part.protected], total)
            scores = estimator.revealed_score * protected.sum() + weights[part.unprotected] / estimator.gamma
            square += float(estimator.gamma * p[part.unprotected] @ scores**2)
        return square - float(weights @ p) ** 2

    def scores(self, weights: Floats) -> Scores:
        pieces = [
            Piece(
                part.estimator.set_scores(weights[part.protected]),
                part.protected,
                part.unprotected,
                part.estimator.revealed_score * float(weights[part.protected].sum())
                + weights[part.unprotected] / part.estimator.gamma,
                part.estimator.gamma,
            )
            for part in self.parts
        ]
        # The scores of each part lie around the mean weight of its people, or at the scores of its revealed values.
        tops, lows = list[float](), list[float]()
        for part, piece in zip(self.parts, pieces, strict=True):
            protected, width, revealed = weights[part.protected], piece.scores.width, piece.revealed
            tops += [float(protected.max(initial=0)) + width, float(revealed.max(initial=0))]
            lows += [float(protected.min(initial=0)) - width, float(revealed.min(initial=0))]
        return PartitionedScores(pieces, max(tops) - min(lows))

    def score_values(self) -> tuple[Floats, Floats]:
        score_values, at_value = np.zeros((2, self.size, self._score_count))
        for part in self.parts:
            estimator = part.estimator
            first = np.zeros(estimator.size)
            first[0] = 1.0
            sets = len(estimator.set_score_values)
            score_values[part.protected, :sets] = estimator.set_score_values
            score_values[part.protected, sets] = estimator.revealed_score
            # The probabilities are the same for every value of the part.
            at_value[part.protected, :sets] = estimator.set_probabilities(first, 1.0)[0]
            score_values[part.unprotected, 1] = 1 / estimator.gamma
            at_value[part.unprotected, :2] = 1 - estimator.gamma, estimator.gamma
        return score_values, at_value

    def score_probabilities(self, p: Floats) -> Floats:
        probabilities = np.zeros((self.size, self._score_count))
        for part, total in self._with_totals(p):
            estimator, sets = part.estimator, len(part.estimator.set_score_values)
            probabilities[part.protected, :sets] = estimator.set_probabilities(p[part.protected], total)
            probabilities[part.protected, sets] = estimator.gamma * float(p[part.unprotected].sum())
            probabilities[part.protected, sets + 1] = max(1 - total, 0.0) if len(self.parts) > 1 else 0.0
            revealed = estimator.gamma * p[part.unprotected]
            probabilities[part.unprotected, 0], probabilities[part.unprotected, 1] = 1 - revealed, revealed
        return probabilities

    def score_probabilities_outside(self) -> Floats:
        outside_group = np.zeros((self.size, self._score_count))
        for part in self.parts:
            outside_group[part.protected, len(part.estimator.set_score_values) + 1] = 1.0
            outside_group[part.unprotected, 0] = 1.0
        return outside_group

    @property
    def _score_count(self) -> int:
        """Number of scores: those of sets, one for a revealed other value of the part, and 0 for other parts."""
        return max(len(part.estimator.set_score_values) for part in self.parts) + 2

    def known_groups(self) -> Integers:
        groups = np.empty(self.size, dtype=np.int64)
        for number, part in enumerate(self.parts):
            groups[part.protected] = groups[part.unprotected] = number
        return groups

    def score_bounds(self) -> tuple[Floats, Floats]:
        low, high = np.zeros(self.size), np.zeros(self.size)
        for part in self.parts:
            least, greatest = part.estimator.score_bounds()
            revealed = [part.estimator.revealed_score] if len(part.unprotected) else []
            zero_score = [0.0] if len(self.parts) > 1 else []
            low[part.protected] = np.minimum(least, min([*revealed, *zero_score], default=np.inf))
            high[part.protected] = np.maximum(greatest, max([*revealed, *zero_score], default=-np.inf))
            high[part.unprotected] = 1 / part.estimator.gamma
        return low, high


class PartsHistogramEstimator(HistogramEstimator, PartsEstimator):
    """Estimator for parts that all report an index, so that the counts are a histogram over all outputs."""

    def output_scores(self, weights: Floats) -> Floats:
        scores = np.empty(self._length)
        for part in self.parts:
            estimator, protected = part.estimator, weights[part.protected]
            assert isinstance(estimator, HistogramEstimator)
            scores[part.counts] = estimator.output_scores(protected)
            scores[part.unprotected_counts] = (
                estimator.revealed_score * float(protected.sum()) + weights[part.unprotected] / estimator.gamma
            )
        return scores

    def adjoint(self, weights: Floats) -> Floats:
        means = np.empty(self.size)
        for part in self.parts:
            estimator, of_sets = part.estimator, weights[part.counts]
            assert isinstance(estimator, HistogramEstimator)
            means[part.protected] = estimator.adjoint(of_sets)
            revealed = estimator.gamma * weights[part.unprotected_counts]
            means[part.unprotected] = (1 - estimator.gamma) * of_sets.mean() + revealed
        return means


def parts_estimator(mechanism: Parts) -> PartsEstimator:
    """Return the estimator of a mechanism made of parts."""
    return PartsHistogramEstimator(mechanism) if mechanism.numbering.reports_index else PartsEstimator(mechanism)


def _part_estimator(mixture: Mixture) -> MixtureEstimator:
    """Return the estimator of a part."""
    estimator = mixture.estimator
    assert isinstance(estimator, MixtureEstimator)
    return estimator
