"""Published mechanisms for distribution functions: hierarchical histograms and Haar wavelets with sampled levels.

Each person takes part in one level, chosen at random, and reports the node of that level by a frequency oracle with the
whole ε (Cormode, Kulkarni and Srivastava 2019). The estimate combines all levels by generalized least squares, the
best linear unbiased combination at the uniform distribution. It is at least as accurate as the published consistency
step. All errors are exact if a fixed number of people takes part in each level.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import hadamard

import sfumato as sf

__all__ = [
    "Haar",
    "Hierarchy",
    "LevelSampling",
    "LibraryOracle",
    "Oracle",
    "SignedHadamard",
    "Unary",
    "prefixes",
]

Floats = npt.NDArray[np.float64]

#: Rounds of the multiplicative algorithm for the probabilities of levels; tests check the remaining gap.
_ROUNDS = 300
#: Relative excess of the error over its bound at which the probabilities of levels count as optimal.
_GAP = 1e-4


def prefixes(k: int) -> Floats:
    """Return the workload of a distribution function: row j sums the first j + 1 values."""
    return np.tri(k)


class Oracle(Protocol):
    """Estimator of the mean vector of one level, with the covariance of the estimate from one report."""

    def covariance(self, mean: Floats) -> Floats:
        """Return the covariance of the vector estimated from one report, if the vector's mean is ``mean``."""

    def matrix(self) -> Floats:
        """Return the probability of each output for each symbol."""

    def scores(self) -> Floats:
        """Return the vector estimated from each output, one row per output."""


class Unary:
    """Optimized unary encoding (Wang et al. 2017): bit 1 stays with probability 1/2, bit 0 is set with 1/(e^ε + 1)."""

    def __init__(self, size: int, epsilon: float) -> None:
        self.size = size
        self.keep, self.flip = 0.5, 1 / (math.exp(epsilon) + 1)

    def covariance(self, mean: Floats) -> Floats:
        share = self.flip + (self.keep - self.flip) * mean
        return np.diag(share * (1 - share) / (self.keep - self.flip) ** 2 + mean**2) - np.outer(mean, mean)

    def matrix(self) -> Floats:
        """Return the law of all 2^size bitmaps; for small sizes."""
        bits = self._bitmaps()
        chance = np.full((self.size, self.size), self.flip)
        np.fill_diagonal(chance, self.keep)
        return np.asarray(np.where(bits, chance[:, None], 1 - chance[:, None]).prod(axis=2))

    def scores(self) -> Floats:
        return np.asarray((self._bitmaps() - self.flip) / (self.keep - self.flip))

    def _bitmaps(self) -> npt.NDArray[np.int64]:
        """Return all bitmaps, one per row."""
        return np.asarray(np.arange(2**self.size)[:, None] >> np.arange(self.size) & 1)


class LibraryOracle:
    """A frequency oracle of Sfumato: subset selection or Hadamard response with their unbiased estimators."""

    def __init__(self, size: int, epsilon: float, name: str) -> None:
        self.size = size
        self._mechanism = sf.design(sf.Uniform(sf.Domain.range(size), epsilon), mechanism=name)

    def covariance(self, mean: Floats) -> Floats:
        return np.asarray(self._mechanism.estimator.covariance(mean))

    def matrix(self) -> Floats:
        return np.asarray(self._mechanism.matrix(), dtype=np.float64)

    def scores(self) -> Floats:
        outputs = self._mechanism.channel().outputs
        if self._mechanism.report_format.is_histogram:
            counts = np.eye(len(outputs))
        else:  # outputs are bitmaps, as integers
            counts = np.array([[output >> i & 1 for i in range(self.size)] for output in outputs], dtype=np.float64)
        return np.array([self._mechanism.estimator.frequencies(row) for row in counts])


class SignedHadamard:
    """Hadamard randomized response for a vector with one entry ±1: the oracle of HaarHRR.

    The device draws a row of the Hadamard matrix and reports the sign of its product with the vector, which is flipped
    with probability 1/(e^ε + 1). Symbols are the positive unit vectors, then the negative ones.
    """

    def __init__(self, size: int, epsilon: float) -> None:
        self.size = size
        self.scale = 1 / math.tanh(epsilon / 2)

    def covariance(self, mean: Floats) -> Floats:
        return self.scale**2 * np.eye(self.size) - np.outer(mean, mean)

    def matrix(self) -> Floats:
        """Return the law of pairs of a row and a sign: first all rows with sign +1, then with sign -1."""
        signs = np.concatenate([hadamard(self.size), -hadamard(self.size)]) / self.scale
        return np.concatenate([1 + signs, 1 - signs], axis=1) / (2 * self.size)

    def scores(self) -> Floats:
        rows = self.scale * hadamard(self.size)
        return np.concatenate([rows, -rows]).astype(np.float64)


@dataclass(frozen=True)
class Level:
    """One level: its oracle, and the vector that each value of the domain becomes.

    Attributes
    ----------
    oracle
        Frequency oracle of the level.
    symbols
        Symbol of the oracle for each value of the domain.
    transform
        Vector of each value, one column per value; the oracle estimates its mean.
    """

    oracle: Oracle
    symbols: npt.NDArray[np.int64]
    transform: Floats


class LevelSampling:
    """A mechanism in which each person takes part in one level, with the best linear unbiased estimate.

    Parameters
    ----------
    levels
        The levels.
    probabilities
        Share of people in each level; the same for all by default, as published.
    """

    def __init__(self, levels: Sequence[Level], probabilities: Floats | None = None) -> None:
        self.levels = list(levels)
        self.k = self.levels[0].transform.shape[1]
        m = len(self.levels)
        self.probabilities = np.full(m, 1 / m) if probabilities is None else probabilities
        uniform = np.full(self.k, 1 / self.k)
        self._weights = [np.linalg.pinv(cov, rcond=1e-10, hermitian=True) for cov in self._covariances(uniform)]
        self._information = [
            _centred(level.transform.T @ weight @ level.transform)
            for level, weight in zip(self.levels, self._weights, strict=True)
        ]

    def matrix(self) -> Floats:
        """Return the probability of each pair of level and output for each value; for small domains."""
        return np.concatenate(
            [
                share * level.oracle.matrix()[level.symbols]
                for share, level in zip(self.probabilities, self.levels, strict=True)
            ],
            axis=1,
        )

    def gains(self) -> list[Floats]:
        """Return the matrix of each level that turns a report's vector, minus its mean, into estimated frequencies."""
        inverse = self._inverse(self.probabilities)
        return [inverse @ level.transform.T @ weight for level, weight in zip(self.levels, self._weights, strict=True)]

    def covariance(self, prior: Floats | None = None) -> Floats:
        """Return n times the covariance of the estimated frequencies at a distribution, the uniform one by default."""
        if prior is None:
            return self._inverse(self.probabilities)
        total = np.zeros((self.k, self.k))
        covariances = self._covariances(prior)
        for gain, share, covariance in zip(self.gains(), self.probabilities, covariances, strict=True):
            total += share * (gain @ covariance @ gain.T)
        return total

    def error(self, workload: Floats, prior: Floats | None = None) -> float:
        """Return n times the expected total squared error of ``workload @ estimate``."""
        return float(np.sum((workload @ self.covariance(prior)) * workload))

    def optimized(self, workload: Floats) -> LevelSampling:
        """Return the mechanism whose shares of people per level have the least error at the uniform distribution.

        The error is convex in the shares. The multiplicative algorithm for A-optimal designs (Silvey, Titterington and
        Torsney 1978) reaches the optimum; the greatest derivative bounds the remaining gap.
        """
        loss = workload.T @ workload
        shares = np.full(len(self.levels), 1 / len(self.levels))
        for _ in range(_ROUNDS):
            slopes = self.slopes(loss, shares)
            if slopes.max() <= (1 + _GAP) * (shares @ slopes):
                break
            shares = shares * np.sqrt(slopes)
            shares /= shares.sum()
        result = copy.copy(self)
        result.probabilities = shares
        return result

    def slopes(self, loss: Floats, probabilities: Floats) -> Floats:
        """Return minus the derivative of the error by the share of each level; the greatest one bounds the optimum."""
        inverse = self._inverse(probabilities)
        middle = inverse @ loss @ inverse
        return np.array([np.sum(part * middle) for part in self._information])

    def _covariances(self, prior: Floats) -> list[Floats]:
        """Return the covariance of each level's vector from one report."""
        return [level.oracle.covariance(level.transform @ prior) for level in self.levels]

    def _inverse(self, probabilities: Floats) -> Floats:
        """Return the inverse information at the uniform distribution, among frequencies with sum 1."""
        total = np.full((self.k, self.k), 1 / self.k)
        for share, part in zip(probabilities, self._information, strict=True):
            total += share * part
        return np.asarray(np.linalg.inv(total) - 1 / self.k)


class Hierarchy(LevelSampling):
    """Hierarchical histogram: a tree with a fixed fan-out, and one frequency oracle per level below the root.

    Parameters
    ----------
    k
        The number of values; the tree is cut off after the last value.
    fanout
        Children per node. With fan-out k or more the tree has one level.
    epsilon
        Privacy level of each report.
    oracle
        ``"unary"`` (optimized unary encoding) or a name of Sfumato's mechanisms: ``"subset"``, ``"hadamard"``.
    """

    def __init__(self, k: int, fanout: int, epsilon: float, oracle: str = "subset") -> None:
        self.fanout = fanout
        levels = []
        width = 1
        while width < k:
            node = np.arange(k) // width
            size = int(node[-1]) + 1
            part = Unary(size, epsilon) if oracle == "unary" else LibraryOracle(size, epsilon, oracle)
            levels.append(Level(part, node, np.asarray(np.arange(size)[:, None] == node, dtype=np.float64)))
            width *= fanout
        super().__init__(levels[::-1])


class Haar(LevelSampling):
    """HaarHRR: Hadamard randomized response on the Haar coefficients of one level (Cormode et al. 2019, sec. 4.6).

    On a level of width w, the vector of a value has +1 at its node if the value is in the node's left half, else -1.
    The domain is extended to a power of two.
    """

    def __init__(self, k: int, epsilon: float) -> None:
        depth = max(1, (k - 1).bit_length())
        levels = []
        for level in range(depth):
            width = 2 ** (depth - level)
            node, within = np.divmod(np.arange(k), width)
            right = within >= width // 2
            transform = np.where(np.arange(2**level)[:, None] == node, np.where(right, -1.0, 1.0), 0.0)
            levels.append(Level(SignedHadamard(2**level, epsilon), node + right * 2**level, transform))
        super().__init__(levels)


def _centred(matrix: Floats) -> Floats:
    """Return the matrix of the same quadratic form on vectors with sum 0, and zero on constant vectors."""
    rows = matrix.mean(axis=1)
    return np.asarray(matrix - rows[:, None] - rows + rows.mean())
