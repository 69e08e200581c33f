"""Estimator of nested cyclic designs: a filter over blocks and positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.estimators.base import ScoreEstimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.limits import ScoreLaw
from sfumato.mechanisms.nested_cyclic.mechanism import NestedCyclic
from sfumato.mechanisms.nested_cyclic.transforms import (
    Spectrum,
    indicator_spectrum,
    inverse,
    power_spectrum,
    spectrum,
)

__all__ = ["NestedCyclicEstimator"]


class NestedCyclicEstimator(ScoreEstimator):
    """Least squares at the uniform distribution, as a filter.

    Let f_e(b, i) be the likelihood of the value (b, i) in the report of pattern e that is not shifted, relative to the
    uniform law. In a report shifted by s, the value x has the likelihood f_e(x - s). With Fourier transforms F_e over
    blocks and positions and S = Σ_e |F_e|²/(m·B·b), the score of x in this report is ψ_e(x - s), where ψ_e has the
    transform F_e/S. The mean score of x is then its frequency, for any S without zeros. With this S it is the
    least-squares estimate for uniform values in all blocks of equal size.
    """

    def __init__(self, mechanism: NestedCyclic) -> None:
        self.size = len(mechanism.domain)
        self._patterns, self._deviations = mechanism.patterns, mechanism.deviations
        self._places = mechanism.block_of, mechanism.position_of
        self._power = power_spectrum(self._patterns, self._deviations)
        differences = np.sqrt(np.delete(self._power.ravel(), 0))
        self.condition = float(differences.min() / differences.max()) if differences.max() > 0 else 0.0
        if self.condition <= self._patterns.outputs * np.finfo(float).eps:
            raise NotIdentifiable("distinguish all values in its reports", mechanism)

    # -- sums over shifts --------------------------------------------------------------------------------------

    def _likelihoods(self) -> Iterator[Spectrum]:
        """Yield the transforms F_e of batches of patterns, with the exact mean 1."""
        for levels in self._patterns.batches():
            transformed = spectrum(self._deviations[levels])
            transformed[:, 0, 0] = self._power[0, 0]
            yield transformed

    def _scores(self) -> Iterator[Spectrum]:
        """Yield the transforms of the scores ψ_e of batches of patterns."""
        for transformed in self._likelihoods():
            yield transformed / self._power

    def _score_tables(self) -> Iterator[Floats]:
        """Yield the scores ψ_e of batches of patterns."""
        for transformed in self._scores():
            yield inverse(transformed, self._patterns)

    def _squares(self) -> Iterator[Spectrum]:
        """Yield the transforms of the squared scores of batches of patterns."""
        for scores in self._score_tables():
            yield spectrum(scores**2)

    def _indicators(self, level: int) -> Iterator[Spectrum]:
        """Yield the transforms of the indicator of a level in batches of patterns."""
        for levels in self._patterns.batches():
            yield indicator_spectrum(levels, level)

    def _spread(self, weights: Floats, kernels: Iterator[Spectrum]) -> Floats:
        """Return Σ_x weight_x·kernel_e(x - s) for every output (e, s)."""
        table = np.zeros((self._patterns.blocks, self._patterns.block_size))
        table[self._places] = weights
        transformed = spectrum(table)
        return np.concatenate([inverse(transformed * kernel.conj(), self._patterns).ravel() for kernel in kernels])

    def _gather(self, outputs: Floats, kernels: Iterator[Spectrum]) -> Floats:
        """Return Σ_(e, s) output_(e, s)·kernel_e(x - s) for every value x."""
        tables = outputs.reshape(self._patterns.levels.shape)
        total: Spectrum = np.zeros(self._power.shape, np.complex128)
        start = 0
        for kernel in kernels:
            total += (spectrum(tables[start : start + len(kernel)]) * kernel).sum(axis=0)
            start += len(kernel)
        return inverse(total, self._patterns)[self._places]

    # -- the estimate ----------------------------------------------------------------------------------------

    def frequencies(self, fractions: Floats) -> Floats:
        return self._gather(fractions, self._scores())

    def expected_counts(self, p: Floats) -> Floats:
        return np.maximum(self._spread(p, self._likelihoods()), 0.0) / self._patterns.outputs

    def output_scores(self, weights: Floats) -> Floats:
        return self._spread(weights, self._scores())

    def adjoint(self, weights: Floats) -> Floats:
        return self._gather(weights, self._likelihoods()) / self._patterns.outputs

    # -- errors of the estimate ------------------------------------------------------------------------------

    def second_moments(self) -> Floats:
        return self.adjoint(self._spread(np.ones(self.size), self._squares()))

    def variances(self, p: Floats) -> Floats:
        return np.asarray(self._gather(self.expected_counts(p), self._squares()) - p**2)

    # -- the scores of one report ------------------------------------------------------------------------------

    def _class_scores(self) -> tuple[Floats, Floats]:
        """Return the mean score of each level that occurs, and the probability of the level for the true value."""
        levels, counts = np.unique(self._patterns.levels, return_counts=True)
        sums = np.zeros(len(self._deviations))
        for batch, scores in zip(self._patterns.batches(), self._score_tables(), strict=True):
            sums += np.bincount(batch.ravel(), scores.ravel(), len(sums))
        return sums[levels] / counts, (1 + self._deviations[levels]) * counts / self._patterns.outputs

    def score_values(self) -> tuple[Floats, Floats]:
        """Return the mean score of each level of likelihood; scores of one level differ little."""
        scores, at_value = self._class_scores()
        return np.tile(scores, (self.size, 1)), np.tile(at_value, (self.size, 1))

    def score_probabilities(self, p: Floats) -> Floats:
        law = self.expected_counts(p)
        columns = [self._gather(law, self._indicators(level)) for level in np.unique(self._patterns.levels)]
        return np.maximum(np.column_stack(columns), 0.0)

    def score_laws(self, p: Floats, n: int) -> Sequence[ScoreLaw]:
        return self.laws_of_means(p, n)

    def score_bounds(self) -> tuple[Floats, Floats]:
        ends = np.array([(scores.min(), scores.max()) for scores in self._score_tables()])
        return np.full(self.size, ends[:, 0].min()), np.full(self.size, ends[:, 1].max())
