"""The estimator of mixtures over set systems, which may be parts of a larger mechanism."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._core import Floats, Integers
from sfumato.mechanisms.estimators.base import Estimator, HistogramEstimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.inclusion import Inclusion, InclusionMarginal
from sfumato.mechanisms.estimators.likelihood import Fit, fit_bit_counts, fit_histogram
from sfumato.mechanisms.estimators.marginals import MarginalEstimator, checked_axes
from sfumato.mechanisms.estimators.matrix import default_estimator
from sfumato.mechanisms.estimators.scores import ColumnScores, Scores, SubsetScores

if TYPE_CHECKING:
    from sfumato.mechanisms.mixture import Mixture
    from sfumato.mechanisms.systems.base import SetSystem

__all__ = ["ListedMixtureEstimator", "MixtureEstimator", "SubsetsEstimator", "mixture_estimator", "mixture_moments"]


def mixture_estimator(mechanism: Mixture) -> Estimator:
    """Return the estimator of a mixture: a closed form, if pairs of values are balanced."""
    counts_sets = mechanism.report_format.counts_per_report == mechanism.density * mechanism.system.size
    if counts_sets and mechanism.system.triple_density is not None and not mechanism.report_format.is_histogram:
        return SubsetsEstimator(mechanism)
    if not mechanism.report_format.is_histogram or mechanism.system.pair_density is None:
        return default_estimator(mechanism)
    return ListedMixtureEstimator(mechanism)


def mixture_moments(
    values: Any, share: Any, pair_density: Any, gamma: Any, rest: Any, *, in_block: Any = None
) -> tuple[Any, Any]:
    """Return the mean of |φ|² for a protected value, and for an unprotected value of the same part.

    ``values`` is the number of values per block, and ``share`` the share of its outputs whose set contains one of them.
    ``in_block`` is the number of values in the block of the protected value, if blocks differ. Numbers are Fractions,
    doubles, or arrays of them. ``rest`` is 1 - γ, which doubles would lose at γ near 1.
    """
    other, gap = rest * share + gamma * pair_density, gamma * (1 - pair_density)
    together = values if in_block is None else in_block
    # A value has score (1 - b)/(a - b) if the set contains it, else -b/(a - b). So |φ|² follows from the mean number of
    # values in the set, for a forced set and for a uniform one.
    forced, free = 1 + (together - 1) * pair_density, values * share
    of_forced = (forced * (1 - other) ** 2 + (together - forced) * other**2) / gap**2
    of_free = (free * (1 - other) ** 2 + (values - free) * other**2) / gap**2
    # An unprotected value that is revealed has score 1/γ, and the estimated mass of all protected values is 1 - 1/γ. So
    # each protected value has score (-pair_density·γ·(1 - 1/γ) - (1 - γ)·share)/(a - b).
    of_revealed = values * (rest * (pair_density - share) / gap) ** 2 + 1 / gamma**2
    return gamma * of_forced + rest * of_free, gamma * of_revealed + rest * of_free


def _inclusion(system: SetSystem, gamma: Fraction) -> Inclusion | None:
    """Return the probabilities of containing one and two values, if those of three values are known."""
    pair, triple = system.pair_density, system.triple_density
    if pair is None or triple is None:
        return None
    free, free_pair = (1 - gamma) * system.density, (1 - gamma) * system.density * pair
    return Inclusion(gamma + free, gamma * pair + free, gamma * pair + free_pair, gamma * pair * triple + free_pair)


class MixtureEstimator(Estimator):
    """Estimator from the share of reports whose set contains a value.

    Let c be the share of a value's sets that contain a given other value of its block, and u the share of the block's
    outputs whose set contains a value. A report has the score (1[x in set] - b)/(a - b) for each value x of its block,
    with b = γ·c + (1-γ)·u and a - b = γ·(1-c), and zero for values of other blocks. With several blocks, c equals u.

    The mixture may be a part of a larger mechanism. Then ``p`` sums to the mass of the part's protected values, and
    ``total`` is that mass plus the mass of its unprotected values, whose reports are revealed with probability γ and
    otherwise uniform. For a whole mechanism, both are 1. "A set" below is a report that is not revealed.
    """

    #: Number of counts that a set increments.
    each = 1

    def __init__(self, mechanism: Mixture) -> None:
        system, gamma = mechanism.system, mechanism.gamma
        pair_density, rest, share = system.pair_density, 1 - gamma, system.density * system.blocks
        assert pair_density is not None
        gap = gamma * (1 - pair_density)
        if gap == 0:
            raise NotIdentifiable("distinguish all values in its reports (its epsilon is 0)", mechanism)
        assert system.blocks == 1 or pair_density == share
        self.size = len(mechanism.domain)
        self.system = system
        self.gamma, self._rest = float(gamma), float(rest)
        self.other, self.gap = float(gamma * pair_density + rest * share), float(gap)
        self._forced, self._free = float(gamma * pair_density), float(rest * system.density)
        #: Share of the reports of a block that a value would have in its sets by chance, if that is a known share.
        self._chance = float(share) if pair_density == share else None
        self.inclusion = _inclusion(system, gamma)
        #: Score of every protected value for a report that reveals an unprotected value.
        self.revealed_score = float(rest * (pair_density - share) / gap)
        self._block_of = system.block_of()
        sizes = np.bincount(self._block_of, minlength=system.blocks)
        self._sizes = sizes[sizes > 0]
        self._starts = np.cumsum(self._sizes) - self._sizes
        moments = {
            int(size): mixture_moments(
                Fraction(self.size, system.blocks), share, pair_density, gamma, rest, in_block=int(size)
            )
            for size in np.unique(sizes[sizes > 0])
        }
        self._moments = np.array([float(moments[size][0]) if size else 0.0 for size in sizes.tolist()])
        self._unprotected_moment = float(next(iter(moments.values()))[1])

    # -- probabilities of sets ---------------------------------------------------------------------------------

    def _of_block(self, numbers: Floats) -> Floats | float:
        """Return for each value the sum of the numbers of the values in its block."""
        if self.system.blocks == 1:
            return float(numbers.sum())
        return np.repeat(np.add.reduceat(numbers, self._starts), self._sizes)

    def rates(self, p: Floats, total: float) -> Floats:
        """Return for each value the probability of a set that contains it."""
        return np.asarray(self.gap * p + self._forced * self._of_block(p) + self._free * total)

    def _in_block(self, p: Floats, total: float) -> Floats | float:
        """Return for each value the probability of a set of its block."""
        return self.gamma * self._of_block(p) + self._rest * total / self.system.blocks

    @property
    def set_score_values(self) -> Floats:
        """The scores of a value that is not in the set, of one that is, and of one of another block."""
        in_block = (np.array([0.0, 1.0]) - self.other) / self.gap
        return in_block if self.system.blocks == 1 else np.append(in_block, 0.0)

    def set_probabilities(self, p: Floats, total: float) -> Floats:
        """Return the probabilities of ``set_score_values`` for each value; they sum to the probability of a set."""
        rates, in_block = self.rates(p, total), self._in_block(p, total)
        sets = self.gamma * float(p.sum()) + self._rest * total
        columns = [in_block - rates, rates, sets - in_block][: len(self.set_score_values)]
        return np.column_stack([np.maximum(column, 0.0) for column in columns])

    @abstractmethod
    def law(self, p: Floats, total: float) -> Floats:
        """Return the expected counts of sets."""

    def expected_counts(self, p: Floats) -> Floats:
        return self.law(p, 1.0)

    # -- estimates ---------------------------------------------------------------------------------------------

    @abstractmethod
    def decode(self, counts: Floats, protected: float, total: float) -> Floats:
        """Return the inverse of ``law``, for a known mass of the protected values."""

    def frequencies(self, fractions: Floats) -> Floats:
        return self.decode(fractions, 1.0, 1.0)

    @abstractmethod
    def fit_part(self, fractions: Floats) -> Fit:
        """Return the distribution of maximum likelihood from the fractions of sets."""

    # -- moments -----------------------------------------------------------------------------------------------

    def second_moments(self) -> Floats:
        return np.asarray(self._moments[self._block_of])

    def unprotected_second_moment(self) -> float:
        """Return the mean of |φ(Y)|² for an unprotected value."""
        return self._unprotected_moment

    def squared_scores(self, p: Floats, total: float) -> Floats:
        """Return E[φ²; a set] of each value's score φ."""
        # The rate of a set that contains the value is gap·p plus a part that all values of a block share.
        scale, shared = (1 - 2 * self.other) / self.gap**2, self._forced * self._of_block(p) + self._free * total
        level = shared * scale + self._in_block(p, total) * (self.other / self.gap) ** 2
        return np.asarray(p * (self.gap * scale) + level)

    @abstractmethod
    def _shared(self, p: Floats, total: float) -> Floats:
        """Return for each pair of values the probability of a set that contains both."""

    def products(self, p: Floats, total: float) -> Floats:
        """Return E[φφ'; a set]."""
        products, rates = self._shared(p, total), self.rates(p, total)
        products -= self.other * (rates[:, None] + rates)
        products += self._in_block(p, total) * self.other**2
        products /= self.gap**2
        if self.system.blocks > 1:
            products[self._block_of[:, None] != self._block_of] = 0.0
        products[np.diag_indices(self.size)] = self.squared_scores(p, total)
        return products

    @abstractmethod
    def quadratic(self, weights: Floats, p: Floats, total: float) -> float:
        """Return E[(Σ weight·φ)²; a set], without building a matrix."""

    def variances(self, p: Floats) -> Floats:
        return self.squared_scores(p, 1.0) - p**2

    def variance(self, weights: Floats, p: Floats) -> float:
        return self.quadratic(weights, p, 1.0) - float(weights @ p) ** 2

    def covariance(self, p: Floats) -> Floats:
        return self.products(p, 1.0) - np.outer(p, p)

    # -- scores ------------------------------------------------------------------------------------------------

    @abstractmethod
    def set_scores(self, weights: Floats) -> SubsetScores | ColumnScores:
        """Return the law of a set's contribution to Σ weight·frequency."""

    def score_values(self) -> tuple[Floats, Floats]:
        first = np.zeros(self.size)
        first[0] = 1.0
        score_values = self.set_score_values
        # The probabilities are the same for every value.
        at_value = self.set_probabilities(first, 1.0)[0]
        return np.tile(score_values, (self.size, 1)), np.tile(at_value, (self.size, 1))

    def score_probabilities(self, p: Floats) -> Floats:
        return self.set_probabilities(p, 1.0)

    def score_bounds(self) -> tuple[Floats, Floats]:
        least, greatest = self.set_score_values[:2]
        return np.full(self.size, least), np.full(self.size, greatest)

    def marginal(self, shape: Sequence[int], axes: Sequence[int]) -> MarginalEstimator:
        if self.inclusion is None:
            return super().marginal(shape, axes)
        return InclusionMarginal(self, self.inclusion, shape, checked_axes(shape, axes, self.size))


class ListedMixtureEstimator(MixtureEstimator, HistogramEstimator):
    """Estimator of a mixture whose counts are the histogram of its outputs."""

    def __init__(self, mechanism: Mixture) -> None:
        super().__init__(mechanism)
        self._outputs = mechanism.outputs
        self._of_set = float(mechanism.gamma / (mechanism.density * mechanism.outputs))

    def law(self, p: Floats, total: float) -> Floats:
        law: Floats = self.system.spread(p * self._of_set)
        np.maximum(law, 0.0, out=law)  # a transform may round to less than zero
        law += self._rest * total / self._outputs
        return law

    def count_bounds(self, most_cells: int) -> tuple[Floats, Floats, float, float]:  # noqa: ARG002
        free = self._rest / self._outputs
        return np.array(free), np.array(free + self._of_set), 1.0, 1.0

    def decode(self, counts: Floats, protected: float, total: float) -> Floats:
        return self._decoded(counts, 1, protected, total)

    def frequencies_of_counts(self, counts: Integers, n: int) -> Floats:
        return self._decoded(counts, n, 1.0, 1.0)

    def _decoded(self, counts: Floats | Integers, n: int, protected: float, total: float) -> Floats:
        """Return the frequencies from counts of n reports."""
        if self._chance is None:
            known = self._forced * protected + self._free * total
            return np.asarray((self.system.gather(counts) / n - known) / self.gap)
        differences = np.asarray(self.system.contrast(counts, self._chance), np.float64)
        differences /= n * self.gap
        return differences

    def output_scores(self, weights: Floats) -> Floats:
        blocks = np.zeros((self.system.blocks, 1))
        blocks[: len(self._starts), 0] = np.add.reduceat(weights, self._starts)
        scores: Floats = self.system.spread(weights / self.gap).reshape(self.system.blocks, -1)
        scores -= self.other / self.gap * blocks
        return scores.ravel()

    def adjoint(self, weights: Floats) -> Floats:
        return np.asarray(self._of_set * self.system.gather(weights) + self._rest * weights.mean())

    def fit_part(self, fractions: Floats) -> Fit:
        return fit_histogram(fractions, self.expected_counts, self.adjoint, self.size)

    def _shared(self, p: Floats, total: float) -> Floats:
        return self.system.shared(self.law(p, total))

    def quadratic(self, weights: Floats, p: Floats, total: float) -> float:
        scores = self.output_scores(weights)
        return float(self.law(p, total) @ np.square(scores, out=scores))

    def set_scores(self, weights: Floats) -> ColumnScores:
        return ColumnScores(self.output_scores(weights), self.law)


class SubsetsEstimator(MixtureEstimator):
    """Estimator of a mixture over all sets of d of k values, whose counts are those of the bits of bitmaps."""

    def __init__(self, mechanism: Mixture) -> None:
        super().__init__(mechanism)
        inclusion, system, gamma = self.inclusion, mechanism.system, mechanism.gamma
        assert inclusion is not None
        assert system.pair_density is not None
        free_pair = (1 - gamma) * system.density * system.pair_density
        self.each = int(system.density * self.size)
        self._pair_protected, self._pair_total = float(inclusion.without_true - free_pair), float(free_pair)
        self._pair_slope = float(inclusion.with_true - inclusion.without_true)

    def law(self, p: Floats, total: float) -> Floats:
        return self.rates(p, total)

    def count_bounds(self, most_cells: int) -> tuple[Floats, Floats, float, float]:  # noqa: ARG002
        return np.array(self.other), np.array(self.other + self.gap), float(self.each), float(self.each)

    def decode(self, counts: Floats, protected: float, total: float) -> Floats:
        return np.asarray((counts - self._forced * protected - self._free * total) / self.gap)

    def fit(self, fractions: Floats, n: int) -> Fit:  # noqa: ARG002
        return self.fit_part(fractions)

    def fit_part(self, fractions: Floats) -> Fit:
        return fit_bit_counts(fractions, self.other, self.gap)

    def _shared(self, p: Floats, total: float) -> Floats:
        return np.asarray(self._intercept(p, total) + self._pair_slope * (p[:, None] + p))

    def _intercept(self, p: Floats, total: float) -> float:
        """Return the probability of a set with two values, without its part that depends on their frequencies."""
        return self._pair_protected * float(p.sum()) + self._pair_total * total

    def quadratic(self, weights: Floats, p: Floats, total: float) -> float:
        rates, everything = self.rates(p, total), float(weights.sum())
        sets = self.gamma * float(p.sum()) + self._rest * total
        # Σ_{x≠y} w_x w_y E[both], with the sums over y taken first.
        pairs = self._intercept(p, total) * (everything**2 - weights @ weights)
        pairs += 2 * self._pair_slope * ((weights * p) @ (everything - weights))
        offset = self.other * everything
        squares = weights**2 @ rates + pairs - 2 * offset * (weights @ rates) + offset**2 * sets
        return float(squares) / self.gap**2

    def scores(self, weights: Floats) -> Scores:
        return self.set_scores(weights)

    def set_scores(self, weights: Floats) -> SubsetScores:
        constant = -self.other * float(weights.sum()) / self.gap
        return SubsetScores(weights / self.gap, self.each, self.gamma, constant)
