"""Law of the score of one report: its contribution to an estimate of Σ weight·frequency.

A law is evaluated as a characteristic function, for people drawn from each of several distributions, the parts of a
population. The characteristic function suffices to invert the law of a sum of scores; see
``sfumato.mechanisms.estimators.forms``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats

__all__ = [
    "BitScores",
    "ColumnScores",
    "OutputScores",
    "PartitionedScores",
    "Piece",
    "Scores",
    "StretchedScores",
    "SubsetScores",
]

Waves = npt.NDArray[np.complex128]

#: Maximum number of distinct scores; more are moved to a grid of this size, which preserves their mean.
_MOST_SCORES = 512
#: Fraction of the range of scores within which two scores count as equal.
_SAME = 1e-9
#: Number of standard deviations within which a sum of many bits lies, up to a negligible probability.
_REACH = 4.0
#: Maximum operations per point for computing elementary symmetric polynomials term by term.
_MOST_TERMS = 40_000


class Scores(ABC):
    """Law of the score of one report, for one choice of weights."""

    #: Difference between the greatest and the least score of non-negligible probability.
    width: float

    @abstractmethod
    def transform(self, parts: Floats, points: Floats) -> Waves:
        """Return E[exp(i·point·score)] for people drawn from each part, with a row per part.

        A part is a distribution over the values. The mean score is the mean weight of the people in the part.
        """

    def score_values(self, parts: Floats) -> tuple[Floats, Floats] | None:  # noqa: ARG002
        """Return the distinct scores and their probabilities in each part, or None if the class does not list them."""
        return None


@dataclass(frozen=True, eq=False)
class OutputScores(Scores):
    """One score per output of the mechanism; ``law`` returns the probabilities of the outputs at a distribution."""

    scores: Floats
    law: Callable[[Floats], Floats]
    width: float

    @classmethod
    def of(cls, scores: Floats, law: Callable[[Floats], Floats], size: int) -> OutputScores:
        """Return the scores, with the range of those of positive probability."""
        possible = scores[law(np.full(size, 1 / size)) > 0]
        return cls(scores, law, float(np.ptp(possible)))

    def score_values(self, parts: Floats) -> tuple[Floats, Floats]:
        least = float(self.scores.min())
        keys = np.rint((self.scores - least) / (_SAME * max(self.width, 1e-300)))
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        score_values = self.scores[first]
        probabilities = np.array([_sums(place.ravel(), self.law(part), len(first)) for part in parts])
        possible = np.flatnonzero(probabilities.max(axis=0) > 0)
        return score_values[possible], probabilities[:, possible]

    def transform(self, parts: Floats, points: Floats) -> Waves:
        score_values, probabilities = self._grid(parts) if len(self.scores) > _MOST_SCORES else self.score_values(parts)
        return np.asarray(probabilities @ np.exp(1j * np.outer(score_values, points)))

    def _grid(self, parts: Floats) -> tuple[Floats, Floats]:
        """Return scores on a grid; each score is split between its two neighbours, which preserves the mean."""
        least, step = float(self.scores.min()), max(float(np.ptp(self.scores)), 1e-300) / (_MOST_SCORES - 1)
        place = np.clip((self.scores - least) / step, 0, _MOST_SCORES - 1)
        below = np.minimum(place.astype(np.int64), _MOST_SCORES - 2)
        above = place - below
        probabilities = np.empty((len(parts), _MOST_SCORES))
        for row, part in zip(probabilities, parts, strict=True):
            law = self.law(part)
            row[:] = _sums(below, law * (1 - above), _MOST_SCORES) + _sums(below + 1, law * above, _MOST_SCORES)
        score_values = np.asarray(least + step * np.arange(_MOST_SCORES), np.float64)
        return score_values, np.asarray(np.maximum(probabilities, 0.0), np.float64)


def _sums(place: npt.NDArray[np.int64], weights: Floats, size: int) -> Floats:
    """Return the sums of non-negative weights by place."""
    return np.asarray(np.bincount(place, weights=np.maximum(weights, 0.0), minlength=size), np.float64)


def _snapped(weights: Floats) -> Floats:
    """Return weights with at most ``_MOST_SCORES`` distinct values; each of many bits adds little to the sum."""
    if len(np.unique(weights)) <= _MOST_SCORES:
        return weights
    least, step = float(weights.min()), float(np.ptp(weights)) / (_MOST_SCORES - 1)
    return np.asarray(least + step * np.rint((weights - least) / step))


@dataclass(frozen=True, eq=False)
class BitScores(Scores):
    """Independent bits: bit y adds ``weights[y]``, and is set with probability ``other[y]``.

    For people who have value y, the probability is ``other[y] + gap[y]``.
    """

    weights: Floats
    other: Floats
    gap: Floats

    @property
    def width(self) -> float:  # type: ignore[override]
        sizes = np.abs(self.weights)
        noise = math.sqrt(float(self.weights**2 @ (self.other * (1 - self.other))))
        return min(float(sizes.sum()), 2 * _REACH * noise + float(sizes.max()))

    def transform(self, parts: Floats, points: Floats) -> Waves:
        snapped = _snapped(self.weights)
        bits, place, counts = np.unique(
            np.column_stack([snapped, self.other, self.gap]), axis=0, return_inverse=True, return_counts=True
        )
        weights, other, gap = bits.T
        turns = np.expm1(1j * np.outer(weights, points))
        free = 1 + other[:, None] * turns
        # The bit of the true value is set more often, so its factor is replaced.
        replaced = 1 + gap[:, None] * turns / free
        merged = np.array([_sums(place.ravel(), part, len(bits)) for part in parts])
        with np.errstate(divide="ignore"):
            noise = np.exp(counts @ np.log(free))
        return np.asarray((merged @ replaced) * (noise * np.exp(-1j * points * float(snapped @ self.other))))


@dataclass(frozen=True, eq=False)
class SubsetScores(Scores):
    """Uniform sets of ``size`` values, forced with probability ``gamma`` to contain the true value.

    A member adds its weight, and every set adds ``constant``.
    """

    weights: Floats
    size: int
    gamma: float
    constant: float

    @property
    def width(self) -> float:  # type: ignore[override]
        ordered = np.sort(self.weights)
        full = float(ordered[len(ordered) - self.size :].sum() - ordered[: self.size].sum())
        density = self.size / len(ordered)
        noise = math.sqrt(density * (1 - density) * float(np.sum((ordered - ordered.mean()) ** 2)))
        return min(full, 2 * _REACH * noise + float(np.ptp(ordered)))

    def transform(self, parts: Floats, points: Floats) -> Waves:
        return self.reports(parts, np.ones(len(parts)), points)

    def reports(self, parts: Floats, totals: Floats, points: Floats) -> Waves:
        """Return the transforms of set reports for parts with ``totals`` people; ``parts`` lists those with a value.

        People who are not listed send only uniform sets, with probability 1 - γ.
        """
        snapped = _snapped(self.weights)
        weights, place, counts = np.unique(snapped, return_inverse=True, return_counts=True)
        # Snapping shifts the sum of a set by its mean; the remaining error is small compared with the sets' spread.
        constant = self.constant + self.size * float((self.weights - snapped).mean())
        free, forced = _set_transforms(weights, counts, self.size, points)
        merged = np.array([_sums(place.ravel(), part, len(weights)) for part in parts])
        with_true = forced * np.exp(1j * np.outer(weights, points))
        sets = self.gamma * (merged @ with_true) + (1 - self.gamma) * np.outer(totals, free)
        return np.asarray(sets * np.exp(1j * points * constant))


def _set_transforms(weights: Floats, counts: npt.NDArray[np.int64], size: int, points: Floats) -> tuple[Waves, Waves]:
    """Return the transforms of a uniform set of ``size``, and of its other members given a member of each weight."""
    if len(weights) == 1:
        wave: Waves = np.exp(1j * points * weights[0])
        return wave**size, wave[None, :] ** (size - 1)
    if len(weights) == 2:
        return _two_kinds(weights, counts, size, points)
    population = int(counts.sum())
    if len(weights) * population * size <= _MOST_TERMS:
        free = _symmetric(np.repeat(weights, counts), size, points)
        rest = [
            _symmetric(np.repeat(weights, counts - (np.arange(len(weights)) == kind)), size - 1, points)
            for kind in range(len(weights))
        ]
        return free, np.array(rest)
    return _independent(weights, counts, size, points)


def _two_kinds(weights: Floats, counts: npt.NDArray[np.int64], size: int, points: Floats) -> tuple[Waves, Waves]:
    """Return the transforms from the hypergeometric number of members with the greater weight."""
    from scipy import stats

    def transform(others: npt.NDArray[np.int64], members: int) -> Waves:
        greater = np.arange(min(members, int(others[1])) + 1)
        chance = stats.hypergeom.pmf(greater, int(others.sum()), int(others[1]), members)
        likely = chance > 0
        total = members * weights[0] + greater[likely] * (weights[1] - weights[0])
        return np.asarray(chance[likely] @ np.exp(1j * np.outer(total, points)))

    rest = [transform(counts - np.array([kind == 0, kind == 1]), size - 1) for kind in (0, 1)]
    return transform(counts, size), np.array(rest)


def _symmetric(weights: Floats, size: int, points: Floats) -> Waves:
    """Return the mean over all sets of ``size`` of exp(i·point·sum), by the recursion of symmetric polynomials."""
    means = np.zeros((size + 1, len(points)), np.complex128)
    means[0] = 1.0
    taken = np.arange(1, size + 1)[:, None]
    for number, wave in enumerate(np.exp(1j * np.outer(weights, points)), 1):
        # A fraction j/m of the sets of j among the first m elements contains the last one.
        fraction = np.minimum(taken / number, 1.0)
        means[1:] = (1 - fraction) * means[1:] + fraction * wave * means[:-1]
    return np.asarray(means[size])


def _independent(weights: Floats, counts: npt.NDArray[np.int64], size: int, points: Floats) -> tuple[Waves, Waves]:
    """Return transforms of sets whose members are drawn independently, about the mean weight.

    The number of members is then uncorrelated with their sum (Hájek 1964), and the variance is corrected to be exact.
    """
    population = int(counts.sum())
    mean = float(counts @ weights) / population
    stretch = np.sqrt(population / (population - 1))
    turns = np.asarray(np.expm1(1j * np.outer(stretch * (weights - mean), points)), np.complex128)

    def product(fraction: float) -> tuple[Waves, Waves]:
        factors = np.asarray(1 + fraction * turns, np.complex128)
        return factors, np.asarray(np.exp(counts @ np.log(factors)), np.complex128)

    free = np.asarray(product(size / population)[1] * np.exp(1j * size * mean * points), np.complex128)
    factors, whole = product((size - 1) / (population - 1))
    rest_mean = (population * mean - weights) / (population - 1)
    rest: Waves = whole / factors * np.exp(1j * np.outer((size - 1) * rest_mean, points))
    return free, rest


@dataclass(frozen=True, eq=False)
class StretchedScores(Scores):
    """Scores that are stretched about their mean in each part: the same shape with other variances."""

    scores: Scores
    means: Floats
    stretches: Floats

    @property
    def width(self) -> float:  # type: ignore[override]
        return self.scores.width * float(self.stretches.max())

    def transform(self, parts: Floats, points: Floats) -> Waves:
        rows = [
            self.scores.transform(part[None], stretch * points)[0] * np.exp(1j * points * mean * (1 - stretch))
            for part, mean, stretch in zip(parts, self.means, self.stretches, strict=True)
        ]
        return np.array(rows)


@dataclass(frozen=True, eq=False)
class ColumnScores:
    """One score per column of a part; ``law`` returns the columns' probabilities from listed people and a total."""

    columns: Floats
    law: Callable[[Floats, float], Floats]

    @property
    def width(self) -> float:
        return float(np.ptp(self.columns))

    def reports(self, parts: Floats, totals: Floats, points: Floats) -> Waves:
        """Return the transforms of column reports, as ``SubsetScores.reports`` does."""
        rows = np.array([self.law(part, float(total)) for part, total in zip(parts, totals, strict=True)])
        return np.asarray(rows @ np.exp(1j * np.outer(self.columns, points)))


@dataclass(frozen=True, eq=False)
class Piece:
    """Scores of reports from one part of a mechanism: of sets or columns, and of revealed values.

    ``revealed`` holds the score of each unprotected value, which is reported with probability ``gamma``. A public coin
    chooses this piece with probability ``share``, if several pieces are about the same values.
    """

    scores: SubsetScores | ColumnScores
    protected: npt.NDArray[np.int64]
    unprotected: npt.NDArray[np.int64]
    revealed: Floats
    gamma: float
    share: float = 1.0


@dataclass(frozen=True, eq=False)
class PartitionedScores(Scores):
    """Scores of reports that reveal which part of the mechanism they come from."""

    pieces: Sequence[Piece]
    width: float

    def transform(self, parts: Floats, points: Floats) -> Waves:
        total = np.zeros((len(parts), len(points)), np.complex128)
        for piece in self.pieces:
            protected, unprotected = parts[:, piece.protected], parts[:, piece.unprotected]
            sets = piece.scores.reports(protected, protected.sum(axis=1) + unprotected.sum(axis=1), points)
            total += piece.share * (sets + piece.gamma * (unprotected @ np.exp(1j * np.outer(piece.revealed, points))))
        return total
