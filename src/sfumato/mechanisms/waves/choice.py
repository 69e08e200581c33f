"""Choice of waves and their weights for a question: a small convex program.

At the uniform distribution, the error of the answers is about tr(W·K·W'), where K is the inverse of the information J
on differences of frequencies. J is a sum over waves, weighted by their probabilities, and every term is a Toeplitz
matrix. The error is therefore a convex function of the weights.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, Floats
from sfumato.mechanisms.split_mix import split_mix_keys
from sfumato.mechanisms.waves.sets import Wave
from sfumato.mechanisms.waves.toeplitz import Toeplitz

__all__ = ["WEIGHT_SUM", "best_modulus", "best_waves", "deviations"]

#: Sum of the integer weights of default waves, and the greatest sum.
WEIGHT_SUM = 2**12
#: Residues per value, up to an epsilon. Residues without a value keep the two ends of the order apart. Smaller sets,
#: which are best at larger epsilon, need fewer of them.
_RESIDUES_PER_VALUE = ((1.5, 1.25), (3.0, 1.2), (math.inf, 1.0625))
#: Greatest number of periods of a wave of constant frequency.
_FEW_PERIODS = 12
#: Waves of rising frequency that start in each octave; each rises by one octave.
_PER_OCTAVE = 3
#: Densities of waves, relative to the density 1/(1 + e^ε) that subset selection uses.
_DENSITIES = (1, 2, 5)
#: Number of sketched answers if the question has more.
_SKETCHES = 64
#: Number of steps for all waves, and again each time that waves of little weight are dropped.
_STEPS = 30
#: Exponent of the multiplicative steps. They are proven to decrease the error with 1/2; with 0.9 they converge faster.
_EXPONENT = 0.9
#: Least epsilon for which waves are chosen. The best waves hardly change below it.
_LEAST_EPSILON = 2.0**-10
#: Level above which e^ε counts as infinite, because it is too large for doubles.
_GREATEST_LEVEL = 700.0


def best_modulus(size: int, epsilon: Epsilon) -> int:
    """Return the number of residues for k values: a little more than k, with a fast Fourier transform."""
    ratio = next(ratio for limit, ratio in _RESIDUES_PER_VALUE if float(epsilon) <= limit)
    least = max(size + 1, math.ceil(ratio * size))
    return next(number for number in range(least, 2 * least + 2) if _is_smooth(number))


def _is_smooth(number: int) -> bool:
    """Return whether a number has no prime factor above 5."""
    for prime in (2, 3, 5):
        while number % prime == 0:
            number //= prime
    return number == 1


def deviations(members: npt.NDArray[np.bool_], epsilon: float) -> Floats:
    """Return the likelihoods of residues for a set at a level ε, relative to their mean, minus 1."""
    density = members.mean()
    if epsilon > _GREATEST_LEVEL:
        return np.asarray(members / density - 1)
    high = math.expm1(epsilon)
    return np.asarray(high * (members - density) / (1 + high * density))


def best_waves(modulus: int, epsilon: Epsilon, answers: Floats, count: int) -> tuple[tuple[Wave, ...], tuple[int, ...]]:
    """Return waves and integer weights of little error for some answers.

    Parameters
    ----------
    modulus
        The number v of residues.
    epsilon
        The level of privacy.
    answers
        The matrix W of the question, one column per value.
    count
        Maximum number of waves.
    """
    size, level = answers.shape[1], max(float(epsilon), _LEAST_EPSILON)
    candidates = np.array(_candidates(modulus, level), dtype=object)
    lags = np.array([_lag_products(wave, modulus, level, size) for wave in candidates])
    sketch = _sketch(answers)
    weights = np.full(len(candidates), 1 / len(candidates))
    for most in (len(candidates), 2 * count, count):
        chosen = np.sort(np.argsort(-weights, kind="stable")[:most])
        chosen = chosen[weights[chosen] >= 0.5 / WEIGHT_SUM]
        candidates, lags = candidates[chosen], lags[chosen]
        weights = _optimal_weights(lags, sketch, weights[chosen] / weights[chosen].sum())
    return tuple(candidates), _integers(weights)


def _candidates(modulus: int, epsilon: float) -> list[Wave]:
    """Return waves of all frequencies, of the density of subset selection and of greater ones up to one half."""
    least = 1 / (1 + math.exp(min(epsilon, 50.0)))
    widths = {max(1, round(modulus * min(factor * least, 0.5))) for factor in _DENSITIES}
    top = modulus // 2
    rates = [(rate, rate) for rate in range(1, min(_FEW_PERIODS, top) + 1)]
    start = _FEW_PERIODS / 2
    while start < top:
        rates.append((round(start), round(2 * start)))
        start *= 2 ** (1 / _PER_OCTAVE)
    rates += [(0, modulus), (1, max(top, 1))]
    waves: dict[bytes, Wave] = {}
    for width in sorted(widths):
        for first, last in rates:
            members = (wave := Wave(first, last, width)).members(modulus)
            if 0 < members.sum() < modulus:
                waves.setdefault(members.tobytes(), wave)
    return list(waves.values())


def _lag_products(wave: Wave, modulus: int, epsilon: float, size: int) -> Floats:
    """Return the mean product of the deviations of two values, for each distance between them."""
    transform = np.fft.rfft(deviations(wave.members(modulus), epsilon))
    products = np.fft.irfft(transform.real**2 + transform.imag**2, modulus)
    return np.asarray(products[:size] / modulus)


def _sketch(answers: Floats) -> Floats:
    """Return at most a few combinations of answers, with the same total of squares on average.

    The signs of the combinations come from a fixed seed, so the choice is reproducible.
    """
    if len(answers) <= _SKETCHES:
        return answers
    keys = split_mix_keys(0, _SKETCHES * len(answers)).reshape(_SKETCHES, len(answers))
    signs = np.where(keys >> np.uint64(63), 1.0, -1.0)
    return np.asarray(signs @ answers / math.sqrt(_SKETCHES))


def _optimal_weights(lags: Floats, answers: Floats, weights: Floats) -> Floats:
    """Return weights of nearly the least error, by a multiplicative algorithm from given weights.

    Each step multiplies a weight by a power of the wave's gradient (Torsney 1983, "A moment inequality and monotonicity
    of an algorithm").
    """
    size = lags.shape[1]
    for _ in range(_STEPS):
        column = weights @ lags
        information = Toeplitz(column + column[0])
        ones = information.solve(np.ones(size))
        rows = information.solve(answers, refine=False)
        rows -= np.outer(answers @ ones, ones / ones.sum())
        transforms = np.fft.rfft(rows, 2 * size)
        products = np.fft.irfft((transforms.real**2 + transforms.imag**2).sum(axis=0), 2 * size)[:size]
        products[1:] *= 2
        weights = weights * np.maximum(lags @ products, 0.0) ** _EXPONENT
        weights /= weights.sum()
    return weights


def _integers(weights: Floats) -> tuple[int, ...]:
    """Return positive integers in proportion to weights, with the sum WEIGHT_SUM."""
    scaled = weights * (WEIGHT_SUM - len(weights))
    floors = np.floor(scaled).astype(np.int64) + 1
    order = np.argsort(np.floor(scaled) - scaled, kind="stable")
    floors[order[: WEIGHT_SUM - int(floors.sum())]] += 1
    return tuple(floors.tolist())
