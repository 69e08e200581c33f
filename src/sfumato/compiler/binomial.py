"""Binomial and multinomial counts from a seeded stream, many at once. For simulations only.

Uniform doubles decide here, which nothing that makes a report may do. Every probability of a count is right to about
nine digits, whatever n: a quotient is taken where a difference of large logarithms would lose them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers
from sfumato.randomness import MAIN, Stream, keystream

__all__ = ["CountDraws"]


#: Below this mean a count is found by going up from zero; from it on by rejection, which needs a mean of ten.
_SMALL_MEAN = 10.0
#: No count of a mean below ten exceeds this in 10^70 draws.
_MOST_STEPS = 200
#: ln k! less Stirling's formula √(2π)·(k+½)ln(k+1) - (k+1), where its series is not yet right to ten digits.
_EXACT_TAILS = 16


class CountDraws:
    """Draws counts; the same stream gives the same counts to the same sequence of calls."""

    def __init__(self, stream: Stream) -> None:
        key, chunk = stream.reserve(1)
        self._keystream = keystream(key, chunk, MAIN)

    def binomial(self, n: npt.ArrayLike, p: npt.ArrayLike) -> Integers:
        """How many of n succeed, each with probability p: one count for each pair of the two arrays."""
        trials, chances = np.broadcast_arrays(np.asarray(n, np.int64), np.asarray(p, np.float64))
        counts = np.where(chances >= 1, trials, 0)
        open_ = np.flatnonzero((trials > 0) & (chances > 0) & (chances < 1))
        if len(open_):
            counts.flat[open_] = self._open(trials.ravel()[open_], chances.ravel()[open_])
        return counts

    def multinomial(self, n: int, weights: Floats) -> Integers:
        """How n fall on outcomes with these weights: halves of the outcomes first, then halves of the halves."""
        levels = [np.append(weights, np.zeros((1 << (len(weights) - 1).bit_length()) - len(weights)))]
        while len(levels[-1]) > 1:
            levels.append(levels[-1].reshape(-1, 2).sum(axis=1))
        counts = np.array([n], np.int64)
        for lower, upper in zip(levels[-2::-1], levels[:0:-1], strict=True):
            left = self.binomial(counts, lower[::2] / np.where(upper > 0, upper, 1.0))
            counts = np.stack([left, counts - left], axis=1).ravel()
        return counts[: len(weights)]

    def _uniforms(self, count: int) -> Floats:
        """Doubles in (0, 1), neither end among them."""
        words = np.frombuffer(self._keystream.update(bytes(8 * count)), np.uint64)
        return np.asarray(((words >> np.uint64(11)) + 0.5) * 2.0**-53)

    def _open(self, n: Integers, p: Floats) -> Integers:
        rare = np.minimum(p, 1 - p)
        small = n * rare < _SMALL_MEAN
        successes = np.empty(len(n), np.int64)
        successes[small] = self._by_steps(n[small], rare[small])
        successes[~small] = self._by_rejection(n[~small], rare[~small])
        return np.where(p > 0.5, n - successes, successes)

    def _by_steps(self, n: Integers, p: Floats) -> Integers:
        """The quantile of a uniform number, by going up from zero."""
        counts = np.zeros(len(n), np.int64)
        left, odds = self._uniforms(len(n)), p / (1 - p)
        chance = np.exp(n * np.log1p(-p))
        moving = np.arange(len(n))
        for count in range(_MOST_STEPS):
            beyond = left[moving] > chance[moving]
            moving = moving[beyond & (n[moving] > count)]
            if not len(moving):
                break
            left[moving] -= chance[moving]
            chance[moving] *= (n[moving] - count) / (count + 1) * odds[moving]
            counts[moving] = count + 1
        return counts

    def _by_rejection(self, n: Integers, p: Floats) -> Integers:
        """Transformed rejection with squeeze (Hörmann 1993, algorithm BTRS), for n·p ≥ 10 and p ≤ 1/2."""
        counts = np.empty(len(n), np.int64)
        waiting = np.arange(len(n))
        deviation = np.sqrt(n * p * (1 - p))
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * p
        while len(waiting):
            size, spread, slope = n[waiting], b[waiting], a[waiting]
            u, v = self._uniforms(len(waiting)) - 0.5, self._uniforms(len(waiting))
            edge = 0.5 - np.abs(u)
            found = np.floor((2 * slope / edge + spread) * u + size * p[waiting] + 0.5)
            accepted = (edge >= 0.07) & (v <= 0.92 - 4.2 / spread)
            inside = (found >= 0) & (found <= size)
            doubtful = np.flatnonzero(inside & ~accepted)
            at = waiting[doubtful]
            hat = slope[doubtful] / edge[doubtful] ** 2 + spread[doubtful]
            height = np.log(v[doubtful] * (2.83 + 5.1 / spread[doubtful]) * deviation[at] / hat)
            accepted[doubtful] = height <= _log_ratio(found[doubtful], n[at].astype(np.float64), p[at])
            counts[waiting[accepted]] = found[accepted].astype(np.int64)
            waiting = waiting[~accepted]
        return counts


def _log_ratio(k: Floats, n: Floats, p: Floats) -> Floats:
    """The logarithm of the probability of k over that of the mode m.

    ln(m!(n-m)!/(k!(n-k)!)) + (k-m)·ln(p/(1-p)) by Stirling's formula, with its logarithms taken of k/m and (n-k)/(n-m):
    both are near one, so nothing is lost however large n is.
    """
    mode = np.floor((n + 1) * p)
    away = k - mode
    rise, fall = np.log1p(away / (mode + 1)), np.log1p(-away / (n - mode + 1))
    odds = np.log(p / (1 - p) * ((n - mode + 1) / (mode + 1)))
    tails = _tail(mode) + _tail(n - mode) - _tail(k) - _tail(n - k)
    return np.asarray(away * odds + (k + 0.5) * (fall - rise) - (n + 1) * fall + tails)


def _tail(k: Floats) -> Floats:
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / (k + 1) ** 2) / (k + 1) ** 2) / (k + 1) ** 2) / (k + 1)
    return np.where(k < _EXACT_TAILS, _TAILS[np.minimum(k, _EXACT_TAILS - 1).astype(np.intp)], series)


def _exact_tail(k: int) -> float:
    return math.log(math.factorial(k)) - 0.5 * math.log(2 * math.pi) - (k + 0.5) * math.log(k + 1) + (k + 1)


_TAILS: Any = np.array([_exact_tail(k) for k in range(_EXACT_TAILS)])
