"""Estimator of waves: one Toeplitz system, solved by Fourier transforms."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.mechanisms.estimators.base import ScoreEstimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.limits import ScoreLaw
from sfumato.mechanisms.waves.mechanism import Waves
from sfumato.mechanisms.waves.toeplitz import Toeplitz

__all__ = ["WavesEstimator"]

#: Maximum number of mean scores in memory at once.
_BATCH = 2**18
#: Number of rows of a matrix that are transformed at once.
_ROWS = 64


class WavesEstimator(ScoreEstimator):
    """Least squares with the weights of an order without ends, and the exact total.

    Let δ_y(x) be the likelihood of the value x in the report y relative to the uniform law, minus 1, and ω_y the
    probability of y under that law. Then T = Σ_y ω_y δ_y δ_y' is a Toeplitz matrix. With u = T⁻¹1, b = u/Σu and K =
    T⁻¹ - u·u'/Σu, the score of a report is K·δ_y + b. The mean of δ_Y at frequencies p is T·p, so the mean score is
    K·T·p + b = p. All scores of a report sum to 1. The code adds a multiple of 11' to T, which leaves K and b unchanged
    and makes T regular also if no residue is without a value.
    """

    def __init__(self, mechanism: Waves) -> None:
        self.size = len(mechanism.domain)
        self._modulus = mechanism.modulus
        self._indicators = np.array([shifts.indicator for shifts in mechanism.waves])
        #: The likelihoods of a value in the set and of one outside, minus 1, by wave.
        self._levels = np.array(
            [[float(level - 1) for level in pair] for pair in (part.likelihoods for part in mechanism.parts)]
        )
        self._shares = np.array([float(share) for share in mechanism.probabilities])
        self._deviations = np.where(self._indicators, self._levels[:, :1], self._levels[:, 1:])
        self._transforms = np.fft.rfft(self._deviations)
        power = self._shares @ (self._transforms.real**2 + self._transforms.imag**2)
        power[0] = 0.0  # deviations sum to zero
        products = np.fft.irfft(power, self._modulus)[: self.size] / self._modulus
        self.condition = self._least_ratio(power, products)
        if self.condition <= self.size * np.finfo(float).eps:
            raise NotIdentifiable("distinguish all values in its reports", mechanism)
        self._matrix = Toeplitz(products + products[0])
        ones = self._matrix.solve(np.ones(self.size))
        self._ones, self._base = ones, ones / ones.sum()

    def _least_ratio(self, power: Floats, products: Floats) -> float:
        """Return a lower bound on the least eigenvalue of the matrix that is inverted, relative to the greatest.

        The matrix is a principal part of a circulant matrix with eigenvalues ``power``. If one of these is zero, the
        eigenvalues of the matrix itself are computed.
        """
        if not power.any():
            return 0.0
        least = float(power[1:].min() / power.max())
        if least > self.size * np.finfo(float).eps or self.size > 2**11:
            return least
        from scipy.linalg import eigvalsh, toeplitz

        eigenvalues = eigvalsh(toeplitz(products + products[0]))
        return float(eigenvalues[0] / eigenvalues[-1])

    # -- sums over shifts --------------------------------------------------------------------------------------

    def _spread(self, weights: Floats) -> Floats:
        """Return Σ_x weight_x·δ_y(x) for every report y; the last axis of the result has all reports."""
        transformed = np.fft.rfft(weights, self._modulus)[..., None, :] * self._transforms.conj()
        # Entry s is Σ_x weight_x·δ(x - s).
        sums = np.fft.irfft(transformed, self._modulus)
        return np.asarray(sums.reshape(*weights.shape[:-1], -1))

    def _gather(self, tables: Floats) -> Floats:
        """Return Σ_(e, s) table[e, s]·δ_e(x - s) for every value x."""
        transformed = (np.fft.rfft(tables) * self._transforms).sum(axis=0)
        return np.asarray(np.fft.irfft(transformed, self._modulus)[: self.size])

    def _contrast(self, weights: Floats, *, refine: bool = True) -> Floats:
        """Return K·weights for each vector of weights."""
        solutions = self._matrix.solve(weights, refine=refine)
        return np.asarray(solutions - np.multiply.outer(weights @ self._ones, self._base))

    @functools.cached_property
    def _reference(self) -> Floats:
        """The uniform law ω of the reports."""
        return np.repeat(self._shares / self._modulus, self._modulus)

    # -- the estimate ------------------------------------------------------------------------------------------

    def frequencies(self, fractions: Floats) -> Floats:
        scores = self._contrast(self._gather(self._tables(fractions)))
        return np.asarray(scores + self._base * fractions.sum())

    def expected_counts(self, p: Floats) -> Floats:
        return np.asarray(np.maximum(self._reference * (p.sum() + self._spread(p)), 0.0))

    def output_scores(self, weights: Floats) -> Floats:
        return np.asarray(self._spread(self._contrast(weights)) + np.expand_dims(weights @ self._base, -1))

    def scores_of(self, weights: Floats) -> Floats:
        return self.output_scores(weights)  # one transform for all

    def adjoint(self, weights: Floats) -> Floats:
        weighted = self._reference * weights
        return np.asarray(self._gather(self._tables(weighted)) + weighted.sum())

    # -- errors of the estimate --------------------------------------------------------------------------------

    def second_moments(self) -> Floats:
        return self.adjoint(self._squared_lengths)

    @functools.cached_property
    def _squared_lengths(self) -> Floats:
        """The squared length |K·δ_y + b|² of the score of every report y.

        The matrix of the differences K[i+1, j+1] - K[i, j] has rank four, so that of K² has at most rank ten. The
        quadratic form δ'K²δ of the next shift therefore follows from that of a shift, and all of them take m·v·log v
        steps.
        """
        ends = np.zeros((2, self.size))
        ends[0, 0] = ends[1, -1] = 1.0
        rows = self._contrast(ends)  # the first and the last row of K
        # K[i+1, j+1] - K[i, j] = Σ_r sign_r·generator_r[i]·generator_r[j] for i and j below k - 1.
        scaled = self._ones / np.sqrt(self._ones.sum())
        signs = np.array([1.0, -1.0, -1.0, 1.0])
        vectors = np.zeros((10, self.size))
        vectors[:4, :-1] = *self._matrix.generators[:, 1:], scaled[1:], scaled[:-1]
        vectors[4:8, :-1] = self._contrast(vectors[:4])[:, :-1]
        vectors[8:, :-1] = rows[0, 1:], rows[1, :-1]
        sums = self._tables(self._spread(vectors))
        generators, images = sums[:4], sums[4:8]
        inner = signs[:, None] * (vectors[:4] @ vectors[:4].T) * signs
        steps = sums[8] ** 2 - sums[9] ** 2 + 2 * np.einsum("r,res,res->es", signs, generators, images)
        steps += np.einsum("res,rq,qes->es", generators, inner, generators)
        # Terms with the first value enter with the next shift, those with the last value leave with this one.
        at_ends, of_rows = self._tables(self._spread(ends)), self._tables(self._spread(self._contrast(rows)))
        edges = 2 * at_ends * of_rows - np.sum(rows**2, axis=1)[:, None, None] * at_ends**2
        steps += np.roll(edges[0], -1, axis=1) - edges[1]
        start = np.sum(self._contrast(self._deviations[:, : self.size]) ** 2, axis=1)
        forms = start[:, None] + np.cumsum(np.pad(steps[:, :-1], ((0, 0), (1, 0))), axis=1)
        return np.asarray(forms.ravel() + 2 * self._spread(self._contrast(self._base)) + self._base @ self._base)

    def _tables(self, outputs: Floats) -> Floats:
        """Return numbers of all reports as tables with a row per wave and a column per shift."""
        return outputs.reshape(*outputs.shape[:-1], len(self._shares), self._modulus)

    def covariance(self, p: Floats) -> Floats:
        law = self._tables(self.expected_counts(p))
        products = np.empty((self.size, self.size))
        shifts = -np.arange(self._modulus)
        for x in range(self.size):  # Σ_y law_y·δ_y(x)·δ_y(x') for all x'
            products[x] = self._gather(law * self._deviations[:, (x + shifts) % self._modulus])
        # The mean of K·δ_Y is p - b.
        for start in range(0, self.size, _ROWS):
            products[start : start + _ROWS] = self._contrast(products[start : start + _ROWS], refine=False)
        for start in range(0, self.size, _ROWS):
            columns = products[:, start : start + _ROWS].T
            products[:, start : start + _ROWS] = self._contrast(columns, refine=False).T
        mean = p - self._base
        return (products + products.T) / 2 - np.outer(mean, mean)

    # -- the scores of one report ------------------------------------------------------------------------------

    @functools.cached_property
    def _set_transforms(self) -> npt.NDArray[np.complex128]:
        """The transforms of the indicators of all waves."""
        return np.asarray(np.fft.rfft(self._indicators.astype(np.float64)))

    @functools.cached_property
    def _mean_scores(self) -> Floats:
        """The mean score for each value over the reports of each wave whose set contains it, and over the others."""
        inside = self._indicators.sum(axis=1)
        # Over the shifts that put x in the set, the sum of the deviations of x' depends on x' - x only.
        products = np.fft.irfft(self._set_transforms.conj() * self._transforms, self._modulus)
        lags = np.concatenate([products[:, -self.size :], products[:, : self.size]], axis=1)
        sums = np.empty((self.size, len(inside)))
        count = max(1, _BATCH // (2 * self.size))
        for start in range(0, self.size, count):
            values = np.arange(start, min(start + count, self.size))
            rows = self._contrast(np.eye(len(values), self.size, start))
            # Row x of the shifted rows has K[x, x'] at the place of the lag x' - x.
            shifted = np.zeros((len(values), 2 * self.size))
            places = np.arange(self.size) - values[:, None] + self.size
            np.put_along_axis(shifted, places, rows, axis=1)
            sums[values] = shifted @ lags.T
        means = np.stack([sums / inside, -sums / (self._modulus - inside)], axis=2)
        return np.asarray(means.reshape(self.size, -1) + self._base[:, None])

    def score_values(self) -> tuple[Floats, Floats]:
        """Return the mean score of each wave with the value in its set, and outside; scores of one kind differ."""
        densities = self._indicators.mean(axis=1)
        kinds = (1 + self._levels) * np.column_stack([densities, 1 - densities]) * self._shares[:, None]
        return self._mean_scores, np.tile(kinds.ravel(), (self.size, 1))

    def score_probabilities(self, p: Floats) -> Floats:
        law = self.expected_counts(p)
        tables = np.fft.rfft(self._tables(law))
        inside = np.fft.irfft(tables * self._set_transforms, self._modulus)[:, : self.size].T
        total = self._tables(law).sum(axis=1)
        columns = np.stack([inside, total - inside], axis=2)
        return np.asarray(np.maximum(columns.reshape(self.size, -1), 0.0))

    def score_laws(self, p: Floats, n: int) -> Sequence[ScoreLaw]:
        return self.laws_of_means(p, n)
