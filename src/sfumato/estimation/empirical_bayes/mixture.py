"""Nonparametric maximum likelihood of a mixing distribution (Kiefer and Wolfowitz 1956).

Each observation is normal around an unknown parameter θ ≥ 0, with a variance A + B·θ - C·θ² that may differ between
observations. The parameters are drawn from an unknown distribution G. Its maximum-likelihood estimate is a convex
problem over a grid of atoms (Koenker and Mizera 2014), which an interior-point method with Newton steps solves.

Three rules decide about large values, which few observations surround:

- The grid and the bins of observations are uniform in units of the standard error σ, so the grid is never coarse.
- A parameter farther than the *reach* from an observation does not contribute to its likelihood. Observations that are
  separated by twice the reach form separate problems, and an observation on its own keeps its value.
- An atom that stands for m observations within σ is known up to a variance of σ²/m. The observations do not
  distinguish it from parameters with a variance t² around it, if t² is below the error σ²·√(2/m) of their sample
  variance. The expected positive part of such an error is σ²·√(2/m)/√(2π) = σ²/√(πm). Posteriors therefore use the
  fitted distribution with a normal kernel of variance σ²·(1/m + 1/√(πm)) around each atom. The atom at 0 is kept as it
  is, because zero is a possible frequency of many values. If m is large the kernel is narrow.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato._core import Floats, Integers

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["Mixture", "Noise", "fit_mixture"]

#: Distance of neighbouring atoms, in standard errors. Two atoms represent any mean between them, and their variance of
#: at most (0.2/2)² is 1% of that of the noise.
_STEP = 0.2
#: Width of a bin of observations, in standard errors; it adds 0.1²/12 = 0.1% to the variance of the noise.
_BIN = 0.1
#: Ratio of standard errors up to which observations share a bin.
_ERROR_BIN = 1.01
#: Likelihood of an observation, relative to its maximum and divided by the number of observations, that counts as zero.
_NEGLIGIBLE = 1e-6
#: Number of first atoms by which the rows of a block of likelihoods differ at most.
_BLOCK = 64
#: Distance, in standard errors, by which atoms extend beyond the observations; it holds the kernel of an outermost one.
_MARGIN = 3.0
#: Largest difference of the log-likelihood from its maximum, over all observations.
_TOLERANCE = 1e-3
#: Least variance, relative to the greatest one of a problem, that the grid resolves. A more precise observation keeps
#: its value, because the others do not add to it; the grid and the bands of matrices stay small.
_FINEST = 0.01
#: Maximum number of Newton steps; 12 to 30 are usual.
_MOST_STEPS = 200
#: Fraction of the longest step inside the positive numbers that is taken.
_INSIDE = 0.995
#: Variance, relative to that of the widest noise, below which an observation counts as exact.
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Noise:
    """Variance of each observation as a function of its parameter: constant + slope·θ - square·θ².

    Parameters
    ----------
    constant
        The variance at θ = 0, shape (k,).
    slope
        The coefficient of θ, shape (k,).
    square
        The coefficient of -θ², shape (k,).
    """

    constant: Floats
    slope: Floats
    square: Floats

    def rows(self, rows: Integers) -> Noise:
        """Return the noise of some observations."""
        return Noise(self.constant[rows], self.slope[rows], self.square[rows])

    def scaled(self, factor: float) -> Noise:
        """Return the noise with all variances multiplied by a factor."""
        return Noise(factor * self.constant, factor * self.slope, factor * self.square)

    def variance(self, parameters: Floats) -> Floats:
        """Return the variance at one parameter per observation, or at a row of parameters for each."""
        shape = (-1,) + (1,) * (parameters.ndim - 1)
        constant, slope, square = (part.reshape(shape) for part in (self.constant, self.slope, self.square))
        least = max(_LEAST_VARIANCE * float(self.constant.max(initial=0.0)), 1e-300)
        curve = constant + parameters * (slope - square * parameters)
        return np.asarray(np.maximum(curve, np.maximum(constant / 4, least)))


@dataclass(frozen=True, eq=False)
class Mixture:
    """A fitted distribution of parameters, and the posteriors of the observations.

    Parameters
    ----------
    atoms
        Its possible parameters, ascending.
    weights
        The fitted probability of each.
    smooth_weights
        The probability of each with a kernel around each atom, under which posteriors are computed.
    gap
        Upper bound on the distance of the log-likelihood from its maximum over all distributions on the grid.
    log_likelihood
        The log-likelihood of all observations under the fitted distribution.
    mean
        Posterior mean of the parameter of each observation.
    variance
        Posterior variance of the parameter of each observation.
    problems
        The separate convex problems with their solutions, for draws from the posterior.
    place
        The bin of each observation.
    """

    atoms: Floats
    weights: Floats
    smooth_weights: Floats
    gap: float
    log_likelihood: float
    mean: Floats
    variance: Floats
    problems: list[tuple[_Problem, Floats, Integers]]
    place: Integers

    def draw(self, generator: Generator) -> Floats:
        """Draw the parameter of every observation from its posterior."""
        uniform = generator.random(len(self.place))
        order = np.argsort(self.place, kind="stable")
        starts = np.searchsorted(self.place[order], np.arange(int(self.place.max()) + 2))
        parameters = self.mean.copy()  # a single observation that is far from all others keeps its value
        for problem, weights, part in self.problems:
            for rows, atoms, cumulative in problem.cumulative_posterior(weights):
                bins = part[rows]
                chosen = np.concatenate([order[starts[each] : starts[each + 1]] for each in bins])
                row = np.repeat(np.arange(len(bins)), starts[bins + 1] - starts[bins])
                flat = (cumulative + np.arange(len(bins))[:, None]).ravel()
                position = np.searchsorted(flat, row + uniform[chosen] * cumulative[row, -1]) - row * len(atoms)
                parameters[chosen] = atoms[np.clip(position, 0, len(atoms) - 1)]
        return parameters


def fit_mixture(observations: Floats, noise: Noise, floor: float = 0.0) -> Mixture:
    """Fit the distribution of parameters, at least ``floor``, to observations with normal errors."""
    bins = _Bins(observations, noise, floor)
    count = len(observations)
    reach = math.sqrt(2 * math.log(max(count, 2) / _NEGLIGIBLE))
    # A bin that is far from all others keeps its value, with the variance of its noise.
    mean, variance = np.maximum(bins.values, floor), bins.deviation**2
    alone, near = bins.separate(reach)
    likelihoods = (
        -0.5 * np.log(2 * math.pi * variance[alone]) - 0.5 * (bins.values[alone] - mean[alone]) ** 2 / (variance[alone])
    )
    log_likelihood = float(np.sum(likelihoods)) - len(alone) * math.log(count)
    parts = [(mean[alone], np.full(len(alone), 1 / count), np.full(len(alone), 1 / count))]
    problems, gap = [], 0.0
    for part in near:
        problem = _Problem(bins, part, reach)
        number = float(problem.counts.sum())
        solution = problem.solve(_TOLERANCE * number / count)
        smooth = problem.smoothed(solution)
        parts.append((problem.atoms, solution * (number / count), smooth * (number / count)))
        shrunk = part[problem.is_resolved]
        mean[shrunk], variance[shrunk] = (each[problem.is_resolved] for each in problem.posterior(smooth))
        gap += problem.gap(solution)
        log_likelihood += problem.log_likelihood(solution) + number * math.log(number / count)
        problems.append((problem, smooth, part))
    atoms, weights, smooth_weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(atoms, kind="stable")
    return Mixture(
        atoms[order],
        weights[order],
        smooth_weights[order],
        gap,
        log_likelihood,
        bins.means_of_observations(mean, variance),
        variance[bins.place],
        problems,
        bins.place,
    )


class _Bins:
    """Observations in bins of similar values and standard errors."""

    def __init__(self, observations: Floats, noise: Noise, floor: float) -> None:
        self.floor = floor
        inside = np.maximum(observations, floor)
        at_zero, deviation = np.sqrt(noise.variance(np.zeros_like(inside))), np.sqrt(noise.variance(inside))
        # Positions in which one standard error has length one. With the variance A + B·θ, ∫ dθ/σ(θ) from 0 is
        # 2·(√(A + B·θ) - √A)/B = 2·θ/(√(A + B·θ) + √A).
        position = np.where(observations < floor, observations / at_zero, 2 * inside / (deviation + at_zero))
        key = np.zeros(len(observations), np.int64)
        for code in (position / _BIN, np.log(at_zero) / math.log(_ERROR_BIN), np.log(deviation) / math.log(_ERROR_BIN)):
            whole = np.floor(code + 1e-6)
            whole = np.asarray(whole - whole.min(), np.int64)
            key = key * (int(whole.max()) + 1) + whole
        _, place, counts = np.unique(key, return_inverse=True, return_counts=True)
        self.place: Integers = place
        self.counts = counts.astype(np.float64)
        self._observations = observations
        self.values = self._mean(observations)
        self.noise = Noise(*(self._mean(part) for part in (noise.constant, noise.slope, noise.square)))
        self.deviation = np.sqrt(self.noise.variance(np.maximum(self.values, floor)))

    def _mean(self, numbers: Floats) -> Floats:
        """Return the mean over each bin."""
        return np.asarray(np.bincount(self.place, weights=numbers) / self.counts)

    def means_of_observations(self, mean: Floats, variance: Floats) -> Floats:
        """Return the posterior mean of each observation from that of its bin, to first order.

        The derivative of a posterior mean with respect to the observation is the posterior variance over σ².
        """
        slope = np.clip(variance / self.deviation**2, 0.0, 1.0)
        moved = mean[self.place] + (self._observations - self.values[self.place]) * slope[self.place]
        return np.asarray(np.maximum(moved, self.floor))

    def separate(self, reach: float) -> tuple[Integers, list[Integers]]:
        """Return the bins that hold one observation far from all others, and the other bins by separate problem."""
        inside = np.maximum(self.values, self.floor)
        order = np.argsort(inside, kind="stable")
        top = np.maximum.accumulate((inside + reach * self.deviation)[order])
        bottom = np.minimum.accumulate((inside - reach * self.deviation)[order][::-1])[::-1]
        parts = np.split(order, np.flatnonzero(bottom[1:] > top[:-1]) + 1)
        single = [len(part) == 1 and self.counts[part[0]] == 1 for part in parts]
        alone = [part for part, is_single in zip(parts, single, strict=True) if is_single]
        near = [part for part, is_single in zip(parts, single, strict=True) if not is_single]
        return np.concatenate(alone) if alone else np.empty(0, np.int64), near


class _Problem:
    """The convex problem of bins that are near each other.

    A row of likelihoods is zero outside a window of atoms, so the matrix is kept as dense blocks along its diagonal.
    """

    def __init__(self, bins: _Bins, part: Integers, reach: float) -> None:
        values, noise = bins.values[part], bins.noise.rows(part)
        inside = np.maximum(values, bins.floor)
        self.counts = bins.counts[part]
        self.atoms = _grid(inside, noise, bins.floor)
        at_zero = noise.variance(np.zeros(len(values)))
        #: Whether the grid is fine enough for each row.
        self.is_resolved = at_zero >= _FINEST * at_zero.max()
        first, last = self._windows(inside, noise, reach)
        self._shift = np.empty(len(values))
        self._blocks: list[tuple[Integers, slice, Floats]] = []
        order, start = np.argsort(first, kind="stable"), 0
        while start < len(order):
            begin = int(first[order[start]])
            stop = int(np.searchsorted(first[order], begin + _BLOCK, side="right"))
            chosen = order[start:stop]
            columns = slice(begin, int(last[chosen].max()))
            self._blocks.append(
                (chosen, columns, self._likelihood(values[chosen], noise.rows(chosen), chosen, columns))
            )
            start = stop
        #: Number of sub-diagonals of the Hessian.
        self._width = max(columns.stop - columns.start for _, columns, _ in self._blocks) - 1

    def _windows(self, inside: Floats, noise: Noise, reach: float) -> tuple[Integers, Integers]:
        """Return the first and the last atom, plus one, that each row reaches.

        The upper end solves (θ - u)² = reach²·(A + B·θ).
        """
        variance, slope = noise.variance(inside), np.maximum(noise.slope, 0.0) * reach**2
        upper = inside + (slope + np.sqrt(slope**2 + 4 * reach**2 * variance)) / 2
        first = np.searchsorted(self.atoms, inside - reach * np.sqrt(variance), side="right") - 1
        last = np.searchsorted(self.atoms, upper, side="left") + 1
        return np.maximum(first, 0), np.minimum(last, len(self.atoms))

    def _likelihood(self, values: Floats, noise: Noise, rows: Integers, columns: slice) -> Floats:
        """Return the likelihoods of some rows, each relative to its maximum, whose logarithm is kept."""
        distance = values[:, None] - self.atoms[columns]
        variance = noise.variance(np.broadcast_to(self.atoms[columns], distance.shape))
        exponent = -(distance**2) / (2 * variance) - 0.5 * np.log(variance)
        self._shift[rows] = exponent.max(axis=1)
        return np.asarray(np.exp(exponent - self._shift[rows, None]))

    def _mixed(self, weights: Floats) -> Floats:
        """Return the likelihood of each row under the mixture."""
        mixed = np.empty(len(self.counts))
        for rows, columns, likelihood in self._blocks:
            mixed[rows] = likelihood @ weights[columns]
        return mixed

    def _derivative(self, ratios: Floats) -> Floats:
        """Return the adjoint of ``_mixed``."""
        derivative = np.zeros(len(self.atoms))
        for rows, columns, likelihood in self._blocks:
            derivative[columns] += ratios[rows] @ likelihood
        return derivative

    def _hessian(self, scales: Floats) -> Floats:
        """Return L'·diag(scales²)·L as a lower band: row d holds the d-th sub-diagonal."""
        band = np.zeros((self._width + 1, len(self.atoms)))
        for rows, columns, likelihood in self._blocks:
            scaled = likelihood * scales[rows, None]
            product = scaled.T @ scaled
            below, across = _lower_triangle(len(product))
            band[below - across, columns.start + across] += product[below, across]
        return band

    def log_likelihood(self, weights: Floats) -> float:
        """Return the log-likelihood of the observations."""
        mixed = np.log(self._mixed(weights)) + self._shift - 0.5 * math.log(2 * math.pi)
        return float(self.counts @ mixed)

    def _posteriors(self, weights: Floats) -> Iterator[tuple[Integers, Floats, Floats]]:
        """Yield rows, the atoms that they reach, and the posterior probabilities of the atoms for each row."""
        for rows, columns, likelihood in self._blocks:
            probabilities = likelihood * weights[columns]
            yield rows, self.atoms[columns], probabilities / probabilities.sum(axis=1, keepdims=True)

    def posterior(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the posterior mean and variance of the parameter of each row."""
        mean, variance = np.empty((2, len(self.counts)))
        for rows, atoms, probabilities in self._posteriors(weights):
            mean[rows] = probabilities @ atoms
            variance[rows] = np.einsum("ij,ij->i", probabilities, (atoms - mean[rows, None]) ** 2)
        return mean, variance

    def cumulative_posterior(self, weights: Floats) -> Iterator[tuple[Integers, Floats, Floats]]:
        """Yield rows, the atoms that they reach, and the posterior distribution function of each row at the atoms."""
        for rows, atoms, probabilities in self._posteriors(weights):
            yield rows, atoms, np.cumsum(probabilities, axis=1)

    def smoothed(self, weights: Floats) -> Floats:
        """Return the weights with a kernel around each atom, which stands for the error of its position (see above)."""
        size, radius = len(self.atoms), math.ceil(_MARGIN / _STEP)
        steps = round(1 / _STEP)
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        places = np.arange(size)
        within = sums[np.minimum(places + steps + 1, size)] - sums[np.maximum(places - steps, 0)]
        members = np.maximum(within * self.counts.sum(), 1.0)
        spread = (1 / members + 1 / np.sqrt(math.pi * members)) / _STEP**2
        offsets = np.arange(-radius, radius + 1)
        kernel = np.exp(-(offsets[:, None] ** 2) / (2 * spread))
        at_zero = self.atoms[0] == 0
        targets = places + offsets[:, None]
        kernel[(targets < 0) | (targets >= size)] = 0.0
        if at_zero:
            kernel[:, 0] = offsets == 0
        kernel *= weights / kernel.sum(axis=0)
        return np.asarray(np.bincount(np.clip(targets, 0, size - 1).ravel(), weights=kernel.ravel(), minlength=size))

    def gap(self, weights: Floats) -> float:
        """Return an upper bound on the missing log-likelihood: n·max of the directional derivatives."""
        derivative = self._derivative(self.counts / self._mixed(weights))
        return max(float(derivative.max()) - float(self.counts.sum()), 0.0)

    def solve(self, tolerance: float) -> Floats:
        """Return the weights of the atoms by a primal-dual interior-point method.

        The problem is min -Σ c_i·ln((L·w)_i) + Σ w with Σ c = 1 and w ≥ 0; its solution sums to one.
        """
        from scipy.linalg.lapack import dpbtrf, dpbtrs  # called directly: the checks of scipy take as long

        size, shares = len(self.atoms), self.counts / self.counts.sum()
        weights, slack = np.full(size, 1.0 / size), np.ones(size)
        goal = max(tolerance / float(self.counts.sum()), 1e-12)
        for _ in range(_MOST_STEPS):
            mixed = self._mixed(weights)
            gradient = 1.0 - self._derivative(shares / mixed)
            if -float(gradient.min()) <= goal and float(weights @ slack) <= goal:
                break
            diagonal = slack / weights
            hessian = self._hessian(np.sqrt(shares) / mixed)
            hessian[0] += diagonal
            factor, failure = dpbtrf(hessian, lower=True, overwrite_ab=True)
            if failure:
                raise np.linalg.LinAlgError(f"the Hessian is not positive definite (LAPACK dpbtrf: {failure})")
            centre = float(weights @ slack) / size
            # A predictor, then a corrected step towards the central path (Mehrotra 1992).
            step = dpbtrs(factor, -gradient, lower=True)[0]
            dual = -slack - diagonal * step
            after = (weights + _longest(weights, step) * step) @ (slack + _longest(slack, dual) * dual) / size
            aim = (centre * (float(after) / centre) ** 3 - step * dual) / weights
            step = dpbtrs(factor, aim - gradient, lower=True)[0]
            dual = aim - slack - diagonal * step
            weights = weights + _INSIDE * _longest(weights, step) * step
            slack = slack + _INSIDE * _longest(slack, dual) * dual
        return np.asarray(weights / weights.sum())


def _grid(inside: Floats, noise: Noise, floor: float) -> Floats:
    """Return atoms from a little below the least to a little above the greatest observation, at least ``floor``.

    They are uniform in units of the least standard error, with the variance A + B·θ between the two ends. Above the
    greatest observation the variance counts as constant, because it falls to zero at the greatest possible parameter.
    """
    low, high = float(inside.min()), float(inside.max())
    low = max(low - _MARGIN * math.sqrt(_least_variance(noise, low)), floor)
    at_low, at_high = _least_variance(noise, low), _least_variance(noise, high)
    high += _MARGIN * math.sqrt(at_high)
    slope = max(at_high - at_low, 0.0) / (high - low)
    length = 2 * (high - low) / (math.sqrt(at_low + slope * (high - low)) + math.sqrt(at_low))
    steps = np.linspace(0.0, length, max(2, math.ceil(length / _STEP) + 1))
    # The inverse of the integral that ``_Bins`` uses: θ - low = √A·s + B·s²/4.
    return np.asarray(low + math.sqrt(at_low) * steps + slope * steps**2 / 4)


def _least_variance(noise: Noise, parameter: float) -> float:
    """Return the least variance of any observation at a parameter, at least that of the finest grid."""
    variances = noise.variance(np.full(len(noise.constant), parameter))
    return max(float(variances.min()), _FINEST * float(variances.max()))


def _longest(point: Floats, step: Floats) -> float:
    """Return the longest multiple of a step, at most 1, that keeps a positive point non-negative."""
    # The most negative ratio of step to point is the first to reach zero.
    steepest = float((step / point).min())
    return min(1.0, -1.0 / steepest) if steepest < 0 else 1.0


@functools.lru_cache(maxsize=16)
def _lower_triangle(size: int) -> tuple[Integers, Integers]:
    """Return the rows and columns of the lower triangle of a square matrix; problems of one fit share them."""
    return np.tril_indices(size)
