"""The decoder of mechanisms made of parts: each part by its own decoder, with the totals that the reports tell.

A report tells its part, so the mass of a part is known up to sampling. Where a part has open values, the share C told
in clear gives their mass C/γ, and with it the mass of the hidden values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato._core import Floats, Integers, project_beside_clear
from sfumato.mechanisms.estimators.base import Decoder, HistogramDecoder
from sfumato.mechanisms.estimators.inclusion import ResponseDecoder, SetDecoder
from sfumato.mechanisms.estimators.likelihood import Fit, fit_bits, fit_histogram
from sfumato.mechanisms.estimators.scores import PartedScores, Piece, Scores
from sfumato.mechanisms.hadamard.estimator import HadamardDecoder
from sfumato.mechanisms.hadamard.mechanism import HadamardResponse
from sfumato.mechanisms.partitioned.mechanism import PartedMechanism
from sfumato.mechanisms.randomized_response.mechanism import RandomizedResponse
from sfumato.mechanisms.subset.mechanism import SubsetSelection
from sfumato.mechanisms.two_level import MixtureMechanism

__all__ = ["PartedDecoder", "parted_decoder"]

PartDecoder = SetDecoder | HadamardDecoder


@dataclass(frozen=True, eq=False)
class _Part:
    """One part: its decoder, where its counts stand, its hidden and its open values, and the counts of the latter."""

    decoder: PartDecoder
    counts: slice
    hidden: Integers
    open: Integers
    open_counts: Integers

    def masses(self, shares: Floats) -> tuple[float, float]:
        """The mass of the hidden values, and that of all values of the part."""
        in_clear = float(shares[self.open_counts].sum())
        total = float(shares[self.counts].sum()) / self.decoder.each + in_clear
        return total - in_clear / self.decoder.gamma, total


class PartedDecoder(Decoder):
    """Part by part; scores of values of different parts never meet in one report."""

    def __init__(self, mechanism: PartedMechanism) -> None:
        self.size = len(mechanism.domain)
        self._length = mechanism.count_offsets[-1] + len(mechanism.open)
        known: dict[MixtureMechanism, PartDecoder] = {}
        open_part = mechanism.part_of[mechanism.open]
        self.parts = []
        for number, mixture in enumerate(mechanism.parts):
            if mixture not in known:
                known[mixture] = _part_decoder(mixture)
            counts = slice(mechanism.count_offsets[number], mechanism.count_offsets[number + 1])
            mine = np.flatnonzero(open_part == number)
            open_counts = mechanism.count_offsets[-1] + mine
            part = _Part(known[mixture], counts, mechanism.hidden(number), mechanism.open[mine], open_counts)
            self.parts.append(part)

    def frequencies(self, shares: Floats) -> Floats:
        frequencies = np.empty(self.size)
        for part in self.parts:
            frequencies[part.hidden] = part.decoder.decode(shares[part.counts], *part.masses(shares))
            frequencies[part.open] = shares[part.open_counts] / part.decoder.gamma
        return frequencies

    def shares(self, p: Floats) -> Floats:
        shares = np.zeros(self._length)
        for part, total in self._with_totals(p):
            shares[part.counts] = part.decoder.law(p[part.hidden], total)
            shares[part.open_counts] = part.decoder.gamma * p[part.open]
        return shares

    def _with_totals(self, p: Floats) -> Iterator[tuple[_Part, float]]:
        return ((part, float(p[part.hidden].sum() + p[part.open].sum())) for part in self.parts)

    def nearest(self, unbiased: Floats, shares: Floats) -> Floats:
        nearest = np.empty(self.size)
        for part in self.parts:
            own = np.concatenate([part.hidden, part.open])
            in_clear = np.arange(len(own)) >= len(part.hidden)
            nearest[own] = project_beside_clear(unbiased[own], in_clear, part.masses(shares)[1])
        return nearest

    def fit(self, shares: Floats) -> Fit:
        """Maximum composite likelihood part by part: totals and values in clear by their shares, sets by their bits."""
        frequencies = np.zeros(self.size)
        fits = []
        for part in self.parts:
            hidden, total = part.masses(shares)
            hidden = min(max(hidden, 0.0), total)
            told = shares[part.open_counts]
            frequencies[part.open] = told / told.sum() * (total - hidden) if told.any() else 0.0
            decoder = part.decoder
            if hidden > 0:
                # What open values add to the counts is known; the rest is as if all came from hidden values.
                own = (shares[part.counts] - decoder.law(np.zeros(decoder.size), total - hidden)) / hidden
                own = np.clip(own, 0.0, 1.0)
                if isinstance(decoder, SetDecoder):
                    fits.append(fit_bits(own, decoder.other, decoder.gap))
                else:
                    fits.append(fit_histogram(own, decoder.shares, decoder.pull, decoder.size))
                frequencies[part.hidden] = hidden * fits[-1].frequencies
        return Fit(
            frequencies,
            all(fit.converged for fit in fits),
            max((fit.iterations for fit in fits), default=0),
            sum(fit.gain for fit in fits),
            max((fit.bound for fit in fits), default=0.0),
        )

    def variances(self, p: Floats) -> Floats:
        energies = np.empty(self.size)
        for part, total in self._with_totals(p):
            in_clear = part.decoder.gamma * float(p[part.open].sum())
            energies[part.hidden] = part.decoder.energy(p[part.hidden], total) + in_clear * part.decoder.in_clear**2
            energies[part.open] = p[part.open] / part.decoder.gamma
        return np.asarray(energies - p**2)

    def covariance(self, p: Floats) -> Floats:
        products = np.zeros((self.size, self.size))
        for part, total in self._with_totals(p):
            decoder, told = part.decoder, p[part.open]
            within = decoder.products(p[part.hidden], total) + decoder.gamma * told.sum() * decoder.in_clear**2
            products[np.ix_(part.hidden, part.hidden)] = within
            products[np.ix_(part.hidden, part.open)] = decoder.in_clear * told
            products[np.ix_(part.open, part.hidden)] = decoder.in_clear * told[:, None]
            products[part.open, part.open] = told / decoder.gamma
        return products - np.outer(p, p)

    def variance(self, weights: Floats, p: Floats) -> float:
        square = 0.0
        for part, total in self._with_totals(p):
            decoder, mine = part.decoder, weights[part.hidden]
            square += decoder.quadratic(mine, p[part.hidden], total)
            scores = decoder.in_clear * mine.sum() + weights[part.open] / decoder.gamma
            square += float(decoder.gamma * p[part.open] @ scores**2)
        return square - float(weights @ p) ** 2

    def scores(self, weights: Floats) -> Scores:
        pieces = [
            Piece(
                part.decoder.set_scores(weights[part.hidden]),
                part.hidden,
                part.open,
                part.decoder.in_clear * float(weights[part.hidden].sum()) + weights[part.open] / part.decoder.gamma,
                part.decoder.gamma,
            )
            for part in self.parts
        ]
        # The scores of each part lie about the mean weight of its people, or at those of its revealed values.
        ends = [
            (float(weights[part.hidden].min(initial=0)), float(weights[part.hidden].max(initial=0)))
            for part in self.parts
        ]
        tops = [
            max(end[1] + piece.scores.width, piece.revealed.max(initial=0))
            for end, piece in zip(ends, pieces, strict=True)
        ]
        lows = [
            min(end[0] - piece.scores.width, piece.revealed.min(initial=0))
            for end, piece in zip(ends, pieces, strict=True)
        ]
        return PartedScores(pieces, float(max(tops) - min(lows)))

    def score_levels(self) -> tuple[Floats, Floats]:
        levels, own = np.zeros((2, self.size, self._score_count))
        for part in self.parts:
            decoder = part.decoder
            first = np.zeros(decoder.size)
            first[0] = 1.0
            sets = len(decoder.set_levels)
            levels[part.hidden, :sets] = decoder.set_levels
            levels[part.hidden, sets] = decoder.in_clear
            own[part.hidden, :sets] = decoder.set_probabilities(first, 1.0)[0]  # the same for every value of the part
            levels[part.open, 1] = 1 / decoder.gamma
            own[part.open, :2] = 1 - decoder.gamma, decoder.gamma
        return levels, own

    def score_probabilities(self, p: Floats) -> Floats:
        probabilities = np.zeros((self.size, self._score_count))
        for part, total in self._with_totals(p):
            decoder, sets = part.decoder, len(part.decoder.set_levels)
            probabilities[part.hidden, :sets] = decoder.set_probabilities(p[part.hidden], total)
            probabilities[part.hidden, sets] = decoder.gamma * float(p[part.open].sum())
            probabilities[part.hidden, sets + 1] = max(1 - total, 0.0) if len(self.parts) > 1 else 0.0
            told = decoder.gamma * p[part.open]
            probabilities[part.open, 0], probabilities[part.open, 1] = 1 - told, told
        return probabilities

    def score_elsewhere(self) -> Floats:
        elsewhere = np.zeros((self.size, self._score_count))
        for part in self.parts:
            elsewhere[part.hidden, len(part.decoder.set_levels) + 1] = 1.0
            elsewhere[part.open, 0] = 1.0
        return elsewhere

    @property
    def _score_count(self) -> int:
        """Those of sets, that of a report that reveals another value of the part, and 0 for reports of other parts."""
        return max(len(part.decoder.set_levels) for part in self.parts) + 2

    def told_together(self) -> Integers:
        groups = np.empty(self.size, dtype=np.int64)
        for number, part in enumerate(self.parts):
            groups[part.hidden] = groups[part.open] = number
        return groups

    def reach(self) -> tuple[Floats, Floats]:
        low, high = np.zeros(self.size), np.zeros(self.size)
        for part in self.parts:
            least, greatest = part.decoder.reach()
            told = [part.decoder.in_clear] if len(part.open) else []
            elsewhere = [0.0] if len(self.parts) > 1 else []
            low[part.hidden] = np.minimum(least, min([*told, *elsewhere], default=np.inf))
            high[part.hidden] = np.maximum(greatest, max([*told, *elsewhere], default=-np.inf))
            high[part.open] = 1 / part.decoder.gamma
        return low, high


class PartedHistogramDecoder(PartedDecoder, HistogramDecoder):
    """Where every part reports an index, the counts are a histogram over all outputs."""

    def output_scores(self, weights: Floats) -> Floats:
        scores = np.empty(self._length)
        for part in self.parts:
            decoder, hidden = part.decoder, weights[part.hidden]
            assert isinstance(decoder, HistogramDecoder)
            scores[part.counts] = decoder.output_scores(hidden)
            scores[part.open_counts] = decoder.in_clear * float(hidden.sum()) + weights[part.open] / decoder.gamma
        return scores

    def scores(self, weights: Floats) -> Scores:
        return HistogramDecoder.scores(self, weights)

    def pull(self, weights: Floats) -> Floats:
        pulled = np.empty(self.size)
        for part in self.parts:
            decoder, own = part.decoder, weights[part.counts]
            assert isinstance(decoder, HistogramDecoder)
            pulled[part.hidden] = decoder.pull(own)
            pulled[part.open] = (1 - decoder.gamma) * own.mean() + decoder.gamma * weights[part.open_counts]
        return pulled


def parted_decoder(mechanism: PartedMechanism) -> PartedDecoder:
    """The decoder of a mechanism made of parts."""
    return PartedHistogramDecoder(mechanism) if mechanism.encoding == "index" else PartedDecoder(mechanism)


def _part_decoder(mixture: MixtureMechanism) -> PartDecoder:
    if isinstance(mixture, HadamardResponse):
        return HadamardDecoder(mixture)
    if isinstance(mixture, RandomizedResponse):
        return ResponseDecoder(mixture)
    assert isinstance(mixture, SubsetSelection)
    return SetDecoder(mixture)
