"""Published mechanisms for repeated collection with memoization: L-SUE, L-OSUE, L-GRR and LOLOHA, with exact laws.

The device draws a permanent answer once per value and randomizes it again for every report. The permanent answer
supports the true value with probability p₁ and a given other value with probability q₁; a second randomization
replaces support by p₂ and no support by q₂ (Arcolezi et al. 2022 and, for LOLOHA, 2023). Two levels bound what leaks:
``first`` for one report, ``lifetime`` for all reports about one unchanged value.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["LGRR", "LOLOHA", "LOSUE", "LSUE", "Memoized", "published_buckets"]

Floats = npt.NDArray[np.float64]

#: Maximum number of buckets that LOLOHA is tried with; the best number is about 1 + e^first.
_MOST_BUCKETS = 64


@dataclass(frozen=True)
class Memoized:
    """A memoized mechanism over k values, by the probabilities with which its two stages support a value.

    ``true`` and ``other`` are p₁ and q₁ of the permanent answer; ``keep`` and ``flip`` are p₂ and q₂ of each report.
    """

    k: int
    true: float
    other: float
    keep: float
    flip: float

    def levels(self) -> tuple[float, float]:
        """Return the exact levels of one report and of all reports about one value."""
        raise NotImplementedError

    def matrices(self) -> tuple[Floats, Floats]:
        """Return the laws of the permanent answer given the value, and of a report given the permanent answer."""
        raise NotImplementedError

    def supports(self) -> npt.NDArray[np.bool_]:
        """Return which values each report supports, one row per report in the order of :meth:`matrices`."""
        raise NotImplementedError

    @property
    def report_rates(self) -> tuple[float, float]:
        """The probabilities that one report supports the true value, and a given other value."""
        p, q = (rate * self.keep + (1 - rate) * self.flip for rate in (self.true, self.other))
        return p, q

    def variance(self, frequency: float) -> float:
        """Return the variance of an estimated frequency from one report of a person drawn from the population."""
        return _variance(*self.report_rates, frequency)

    def permanent_variance(self, frequency: float) -> float:
        """Return the variance from the permanent answer: the limit of the mean over waves if no value changes."""
        return _variance(self.true, self.other, frequency)

    def mean_variance(self, frequency: float, waves: int) -> float:
        """Return the variance of the mean over waves of one person's estimates, if the value does not change.

        Two waves share only the permanent answer, so their covariance is the variance from that answer.
        """
        return self.variance(frequency) / waves + (1 - 1 / waves) * self.permanent_variance(frequency)

    def published_variance(self) -> float:
        """Return V* of Arcolezi et al. (2022, eq. 11): the variance of a value that no person has."""
        support = self.keep * self.other + self.flip * (1 - self.other)
        return support * (1 - support) / ((self.true - self.other) ** 2 * (self.keep - self.flip) ** 2)


def _variance(true: float, other: float, frequency: float) -> float:
    """Return the variance of a frequency estimated from whether a report supports it."""
    rate = other + (true - other) * frequency
    return rate * (1 - rate) / (true - other) ** 2


def _check(first: float, lifetime: float) -> None:
    """Raise ValueError unless 0 < first < lifetime."""
    if not 0 < first < lifetime:
        raise ValueError(f"the levels must satisfy 0 < first < lifetime; got {first} and {lifetime}")


class _Unary(Memoized):
    """Longitudinal unary encoding: both stages randomize each bit of the one-hot vector independently."""

    def levels(self) -> tuple[float, float]:
        p, q = self.report_rates
        return _unary_level(p, q), _unary_level(self.true, self.other)

    def matrices(self) -> tuple[Floats, Floats]:
        bits = self.supports()
        chance = np.full((self.k, self.k), self.other)
        np.fill_diagonal(chance, self.true)
        permanent = np.where(bits, chance[:, None], 1 - chance[:, None]).prod(axis=2)
        chance = np.where(bits, self.keep, self.flip)
        return permanent, np.where(bits, chance[:, None], 1 - chance[:, None]).prod(axis=2)

    def supports(self) -> npt.NDArray[np.bool_]:
        return np.asarray(np.arange(2**self.k)[:, None] >> np.arange(self.k) & 1, dtype=bool)


def _unary_level(p: float, q: float) -> float:
    """Return ε of unary encoding: two values differ in two bits."""
    return math.log(p * (1 - q) / ((1 - p) * q))


class LSUE(_Unary):
    """L-SUE: symmetric unary encoding twice, the basic RAPPOR of Erlingsson et al. (2014)."""

    @classmethod
    def at(cls, k: int, first: float, lifetime: float) -> LSUE:
        _check(first, lifetime)
        a, b = math.exp(lifetime / 2), math.exp(first / 2)
        keep = (a * b - 1) / (a * b + a - b - 1)
        return cls(k, a / (a + 1), 1 / (a + 1), keep, 1 - keep)


class LOSUE(_Unary):
    """L-OSUE: optimized unary encoding for the permanent answer, symmetric unary encoding for each report."""

    @classmethod
    def at(cls, k: int, first: float, lifetime: float) -> LOSUE:
        _check(first, lifetime)
        a, b = math.exp(lifetime), math.exp(first)
        keep = (a * b - 1) / (a * b + a - b - 1)
        return cls(k, 0.5, 1 / (a + 1), keep, 1 - keep)


def _response_rates(size: int, first: float, lifetime: float) -> tuple[float, float, float, float]:
    """Return p₁, q₁, p₂ and q₂ of randomized response twice, with both levels reached exactly."""
    _check(first, lifetime)
    a, b = math.exp(lifetime), math.exp(first)
    true, other = a / (a + size - 1), 1 / (a + size - 1)
    keep = (b / (b + size - 1) - other) / (true - other)
    return true, other, keep, (1 - keep) / (size - 1)


def _published_rates(size: int, first: float, lifetime: float) -> tuple[float, float, float, float]:
    """Return p₁, q₁, p₂ and q₂ as published (Arcolezi et al. 2022, section 4.2).

    The published p₂ solves (p₁p₂ + q₁q₂)/(p₁q₂ + q₁p₂) = e^first, which omits the size - 2 further values through which
    a report can arise. For more than two values, one report is more private than asked, and less accurate.
    """
    true, other, *_ = _response_rates(size, first, lifetime)
    b = math.exp(first)
    keep = (b * true - other) / (b * true - (size - 1) * b * other + (size - 1) * true - other)
    return true, other, keep, (1 - keep) / (size - 1)


def _response(size: int, true: float, other: float) -> Floats:
    """Return the matrix of randomized response."""
    return np.where(np.eye(size, dtype=bool), true, other)


class LGRR(Memoized):
    """L-GRR: generalized randomized response twice."""

    @classmethod
    def at(cls, k: int, first: float, lifetime: float) -> LGRR:
        """Return L-GRR whose report has exactly the level ``first``."""
        return cls(k, *_response_rates(k, first, lifetime))

    @classmethod
    def published(cls, k: int, first: float, lifetime: float) -> LGRR:
        """Return L-GRR with the published probabilities, whose report has a level below ``first`` if k > 2."""
        return cls(k, *_published_rates(k, first, lifetime))

    def levels(self) -> tuple[float, float]:
        p, q = self.report_rates
        return math.log(p / q), math.log(self.true / self.other)

    def matrices(self) -> tuple[Floats, Floats]:
        return _response(self.k, self.true, self.other), _response(self.k, self.keep, self.flip)

    def supports(self) -> npt.NDArray[np.bool_]:
        return np.eye(self.k, dtype=bool)


@dataclass(frozen=True)
class LOLOHA(Memoized):
    """LOLOHA: L-GRR on one of g buckets, to which a hash function of the person maps the values.

    The hash function is uniformly distributed over all functions and published with each report. A given other value
    has the bucket of the answer with probability q₁ = 1/g. The permanent answer belongs to a bucket: a change of the
    value within its bucket costs nothing, so all reports of a person leak at most g times ``lifetime``.
    """

    buckets: int

    @classmethod
    def at(cls, k: int, first: float, lifetime: float, buckets: int | None = None) -> LOLOHA:
        """Return LOLOHA whose report has exactly the level ``first``, by default with the best number of buckets.

        The best number minimizes the variance of one wave if all values are equally frequent.
        """
        if buckets is None:
            every = (cls.at(k, first, lifetime, g) for g in range(2, _MOST_BUCKETS + 1))
            return min(every, key=lambda mechanism: mechanism.variance(1 / k))
        true, _, keep, flip = _response_rates(buckets, first, lifetime)
        return cls(k, true, 1 / buckets, keep, flip, buckets)

    @classmethod
    def published(cls, k: int, first: float, lifetime: float) -> LOLOHA:
        """Return LOLOHA with the published probabilities and number of buckets."""
        buckets = published_buckets(first, lifetime)
        true, _, keep, flip = _published_rates(buckets, first, lifetime)
        return cls(k, true, 1 / buckets, keep, flip, buckets)

    def levels(self) -> tuple[float, float]:
        g, rest = self.buckets, (1 - self.true) / (self.buckets - 1)
        p = self.true * self.keep + (1 - self.true) * self.flip
        return math.log(p * (g - 1) / (1 - p)), math.log(self.true / rest)

    def matrices(self) -> tuple[Floats, Floats]:
        """Return the laws over pairs of a hash function and a bucket; for small k and g."""
        g, hashes = self.buckets, self._hashes()
        inner = _response(g, self.true, (1 - self.true) / (g - 1))
        permanent = inner[hashes.T].reshape(self.k, -1) / len(hashes)
        return permanent, np.asarray(np.kron(np.eye(len(hashes)), _response(g, self.keep, self.flip)), np.float64)

    def supports(self) -> npt.NDArray[np.bool_]:
        hashes = self._hashes()
        return np.asarray((hashes[:, None, :] == np.arange(self.buckets)[None, :, None]).reshape(-1, self.k))

    def _hashes(self) -> npt.NDArray[np.int64]:
        """Return all functions from values to buckets, one per row."""
        return np.array(list(itertools.product(range(self.buckets), repeat=self.k)))


def published_buckets(first: float, lifetime: float) -> int:
    """Return the number of buckets that minimizes V* of published LOLOHA, at least 2 (Arcolezi et al. 2023, eq. 6)."""
    _check(first, lifetime)
    a, b = math.exp(lifetime), math.exp(first)
    root = math.sqrt(a**4 - 14 * a**2 - 12 * a**2 * b**2 + 12 * a * b + 12 * a**3 * b + 1)
    return max(round((root - a**2 + 6 * a - 6 * b + 1) / (6 * (a - b))), 2)
