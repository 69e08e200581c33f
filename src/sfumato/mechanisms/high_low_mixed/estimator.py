"""Estimator from sets of two sizes: least squares at the share for which the mechanism was chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.estimators.base import Estimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.scores import PartitionedScores, Piece, SubsetScores
from sfumato.mechanisms.high_low_mixed.mechanism import HighLowMixedSubsets
from sfumato.mechanisms.parts.sizes import Information
from sfumato.mechanisms.systems.base import OUTSIDE

__all__ = ["HighLowMixedEstimator"]


@dataclass(frozen=True)
class _Size:
    """Sets of one size: their counts, their law, and the scores of a report.

    A set forced to contain one value contains a given other value with probability ``company``, and two given other
    values with probability ``pair``. A report scores ``slope``·1[x in set] + ``intercept`` for a sensitive value x, and
    ``harmless`` for every harmless value.
    """

    counts: slice
    members: int
    weight: float
    gamma: float
    density: float
    company: float
    pair: float
    slope: float
    intercept: float
    harmless: float

    def sets(self, mass: float) -> float:
        """Return the probability of a set of this size, where ``mass`` is the mass of the sensitive values."""
        return self.weight * (mass + (1 - self.gamma) * (1 - mass))

    def rates(self, p: Floats) -> Floats:
        """Return the probability of a set of this size that contains each sensitive value."""
        forced = self.gamma * (p + self.company * (p.sum() - p))
        return np.asarray(self.weight * (forced + (1 - self.gamma) * self.density))

    def pairs(self, mass: float) -> tuple[float, float]:
        """Return (c, e): a set of this size contains the values x and y with probability c + e·(p_x + p_y)."""
        forced, free = self.weight * self.gamma, self.weight * (1 - self.gamma)
        return forced * self.pair * mass + free * self.density * self.company, forced * (self.company - self.pair)


class HighLowMixedEstimator(Estimator):
    """Estimator from the counts of sets of each size that contain a value, and of revealed harmless values.

    The score of a report y is J⁻¹·q_y/(q_y·p) at the distribution p that the share determines, with the likelihoods q_y
    and J = Σ_y q_y q_y'/(q_y·p). This is the unbiased estimate of least variance at p. By symmetry, a few numbers
    determine the scores of all reports.

    A report that reveals a harmless value has the score ``_sensitive`` for every sensitive value, ``_other`` for every
    other harmless value, and ``_other`` + 1/r for the revealed one, where r is the probability of revealing.
    """

    def __init__(self, mechanism: HighLowMixedSubsets) -> None:
        self.size = len(mechanism.domain)
        self._is_sensitive = mechanism.number_of != OUTSIDE
        s, h = int(self._is_sensitive.sum()), len(mechanism.unprotected)
        weights, densities, gammas = (
            np.array([float(number) for number in numbers])
            for numbers in (
                mechanism.weights,
                [part.density for part in mechanism.parts],
                [part.gamma for part in mechanism.parts],
            )
        )
        share = float(mechanism.share)
        information = Information(s, h, share, weights, densities, gammas)
        within, self._revealed = float(information.within), float(information.revealed)
        if within == 0 or self._revealed == 0:
            raise NotIdentifiable("distinguish all values in its reports (its epsilon is too small)", mechanism)
        of_sensitive, mixed, of_harmless = (float(entry) for entry in information.inverse)
        self._sensitive = mixed / (s * (1 - share))
        self._other = of_harmless / (h * (1 - share)) - 1 / (h * self._revealed)
        self._sizes = []
        for number, members in enumerate(mechanism.sizes):
            low, law, density = float(information.low[number]), float(information.laws[number]), members / s
            slope = float(gammas[number]) / (density * within * law) if members < s else 0.0
            company = (members - 1) / (s - 1)
            self._sizes.append(
                _Size(
                    counts=mechanism.numbering.counts_of(number),
                    members=members if members < s else 1,
                    weight=float(weights[number]),
                    gamma=float(gammas[number]),
                    density=density,
                    company=company,
                    pair=company * (members - 2) / (s - 2) if s > 2 else 0.0,
                    slope=slope,
                    intercept=(of_sensitive + mixed * low) / (s * law) - slope * density,
                    harmless=(mixed + of_harmless * low) / (h * law),
                )
            )
        self._end = mechanism.numbering.count_offsets[-1]

    def frequencies(self, fractions: Floats) -> Floats:
        revealed = fractions[self._end :]
        total = float(revealed.sum())
        frequencies = np.where(self._is_sensitive, self._sensitive * total, self._other * total)
        frequencies[~self._is_sensitive] += revealed / self._revealed
        for size in self._sizes:
            counts = fractions[size.counts]
            sets = float(counts.sum()) / size.members
            frequencies[self._is_sensitive] += size.slope * counts + size.intercept * sets
            frequencies[~self._is_sensitive] += size.harmless * sets
        return frequencies

    def _split(self, p: Floats) -> tuple[Floats, Floats, float]:
        """Return the probabilities of the sensitive and of the harmless values, and the mass of the former."""
        sensitive = p[self._is_sensitive]
        return sensitive, p[~self._is_sensitive], float(sensitive.sum())

    def expected_counts(self, p: Floats) -> Floats:
        sensitive, harmless, mass = self._split(p)
        fractions = np.empty(self._end + len(harmless))
        for size in self._sizes:
            # A set of all sensitive values has a single count.
            one_count = size.counts.stop - size.counts.start == 1
            fractions[size.counts] = size.sets(mass) if one_count else size.rates(sensitive)
        fractions[self._end :] = self._revealed * harmless
        return fractions

    # -- errors of the estimate ------------------------------------------------------------------------------

    def second_moments(self) -> Floats:
        # All sets of one size have scores of the same length, and so have all revealed values.
        s, h = np.count_nonzero(self._is_sensitive), np.count_nonzero(~self._is_sensitive)
        true_score = self._other + 1 / self._revealed
        of_revealed = s * self._sensitive**2 + (h - 1) * self._other**2 + true_score**2
        of_sensitive, of_harmless = 0.0, self._revealed * of_revealed
        for size in self._sizes:
            inside, outside = size.density * s, (1 - size.density) * s
            square = inside * (size.slope + size.intercept) ** 2 + outside * size.intercept**2 + h * size.harmless**2
            of_sensitive += size.weight * square
            of_harmless += size.weight * (1 - size.gamma) * square
        return np.where(self._is_sensitive, of_sensitive, of_harmless)

    def _revealed_squares(self, harmless: Floats, mass: float) -> Floats:
        """Return E[φ²; a revealed value] of the score φ of each harmless value."""
        # r·((1-mass)·other² + p_x·((other + 1/r)² - other²))
        common = self._revealed * (1 - mass) * self._other**2
        return np.asarray(common + harmless * (2 * self._other + 1 / self._revealed))

    def variances(self, p: Floats) -> Floats:
        sensitive, harmless, mass = self._split(p)
        of_sensitive = np.full(len(sensitive), self._revealed * (1 - mass) * self._sensitive**2)
        of_harmless = self._revealed_squares(harmless, mass)
        for size in self._sizes:
            sets = size.sets(mass)
            of_sensitive += size.slope * (size.slope + 2 * size.intercept) * size.rates(sensitive)
            of_sensitive += size.intercept**2 * sets
            of_harmless += size.harmless**2 * sets
        squares = np.empty(self.size)
        squares[self._is_sensitive], squares[~self._is_sensitive] = of_sensitive, of_harmless
        return np.asarray(squares - p**2)

    def covariance(self, p: Floats) -> Floats:
        sensitive, harmless, mass = self._split(p)
        revealed = self._revealed * (1 - mass)
        within = np.full((len(sensitive), len(sensitive)), revealed * self._sensitive**2)
        crossed = np.tile(self._sensitive * (revealed * self._other + harmless), (len(sensitive), 1))
        others = revealed * self._other**2 + self._other * (harmless[:, None] + harmless)
        for size in self._sizes:
            sets, rates = size.sets(mass), size.rates(sensitive)
            constant, step = size.pairs(mass)
            within += size.slope**2 * (constant + step * (sensitive[:, None] + sensitive))
            within += size.slope * size.intercept * (rates[:, None] + rates) + size.intercept**2 * sets
            crossed += size.harmless * (size.slope * rates + size.intercept * sets)[:, None]
            others += size.harmless**2 * sets
        covariance = np.empty((self.size, self.size))
        covariance[np.ix_(self._is_sensitive, self._is_sensitive)] = within
        covariance[np.ix_(self._is_sensitive, ~self._is_sensitive)] = crossed
        covariance[np.ix_(~self._is_sensitive, self._is_sensitive)] = crossed.T
        covariance[np.ix_(~self._is_sensitive, ~self._is_sensitive)] = others
        covariance -= np.outer(p, p)
        covariance[np.diag_indices(self.size)] = self.variances(p)
        return covariance

    def variance(self, weights: Floats, p: Floats) -> float:
        sensitive, harmless, mass = self._split(p)
        of_sensitive, of_harmless, total = self._split(weights)
        others = float(of_harmless.sum())
        revealed = self._sensitive * total + self._other * others + of_harmless / self._revealed
        square = float(self._revealed * harmless @ revealed**2)
        for size in self._sizes:
            rates, offset = size.rates(sensitive), size.intercept * total + size.harmless * others
            constant, step = size.pairs(mass)
            # Σ_{x≠y} w_x w_y E[both in the set], with the sums over y taken first.
            pairs = constant * (total**2 - of_sensitive @ of_sensitive)
            pairs += 2 * step * ((of_sensitive * sensitive) @ (total - of_sensitive))
            square += size.slope**2 * float(of_sensitive**2 @ rates + pairs)
            square += 2 * size.slope * offset * float(of_sensitive @ rates) + offset**2 * size.sets(mass)
        return square - float(weights @ p) ** 2

    def scores(self, weights: Floats) -> PartitionedScores:
        of_sensitive, of_harmless, total = self._split(weights)
        others = float(of_harmless.sum())
        revealed = self._sensitive * total + self._other * others + of_harmless / self._revealed
        sensitive, harmless = np.flatnonzero(self._is_sensitive), np.flatnonzero(~self._is_sensitive)
        pieces, ends = [], [float(revealed.min()), float(revealed.max())]
        for size in self._sizes:
            constant = size.intercept * total + size.harmless * others
            sets = SubsetScores(size.slope * of_sensitive, size.members, size.gamma, constant)
            pieces.append(Piece(sets, sensitive, harmless, revealed, size.gamma, size.weight))
            centre = constant + size.members * float(sets.weights.mean())
            ends += [centre - sets.width, centre + sets.width]
        return PartitionedScores(pieces, max(ends) - min(ends))

    # -- the scores of one report ------------------------------------------------------------------------------

    def score_values(self) -> tuple[Floats, Floats]:
        # A sensitive value has a score outside and inside a set of each size, and one for a revealed value. A harmless
        # value has one score for a set of each size, one for another revealed value, and one if it is revealed itself.
        of_sensitive = [value for size in self._sizes for value in (size.intercept, size.slope + size.intercept)]
        of_harmless = [size.harmless for size in self._sizes for _ in range(2)]
        true_score = self._other + 1 / self._revealed
        values = np.where(
            self._is_sensitive[:, None],
            [*of_sensitive, self._sensitive, self._sensitive],
            [*of_harmless, self._other, true_score],
        )
        at_sensitive, at_harmless = [], []
        for size in self._sizes:
            inside = size.weight * (size.gamma + (1 - size.gamma) * size.density)
            at_sensitive += [size.weight - inside, inside]
            at_harmless += [size.weight * (1 - size.gamma), 0.0]
        at_value = np.where(self._is_sensitive[:, None], [*at_sensitive, 0.0, 0.0], [*at_harmless, 0.0, self._revealed])
        return values, at_value

    def score_probabilities(self, p: Floats) -> Floats:
        sensitive, harmless, mass = self._split(p)
        probabilities = np.zeros((self.size, 2 * len(self._sizes) + 2))
        for number, size in enumerate(self._sizes):
            sets, rates = size.sets(mass), size.rates(sensitive)
            inside = np.column_stack([np.maximum(sets - rates, 0.0), rates])
            probabilities[self._is_sensitive, 2 * number : 2 * number + 2] = inside
            probabilities[~self._is_sensitive, 2 * number] = sets
        probabilities[self._is_sensitive, -1] = self._revealed * (1 - mass)
        probabilities[~self._is_sensitive, -2] = self._revealed * np.maximum(1 - mass - harmless, 0.0)
        probabilities[~self._is_sensitive, -1] = self._revealed * harmless
        return probabilities

    def score_bounds(self) -> tuple[Floats, Floats]:
        values, _ = self.score_values()
        return values.min(axis=1), values.max(axis=1)
