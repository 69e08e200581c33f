"""Simultaneous confidence levels: several intervals that contain all true numbers together."""

from __future__ import annotations

import math

import numpy as np

from sfumato._core import Floats
from sfumato.randomness import insecure_generator

__all__ = ["LARGEST_BAND", "simultaneous_alphas"]

#: Maximum number of answers whose dependence is used; beyond it, the Bonferroni correction is used.
LARGEST_BAND = 2048
#: Least and greatest number of draws of the maximum of dependent normal variables, and the operations they may take.
_FEWEST, _MOST, _OPERATIONS = 5_000, 20_000, 5e9
#: Maximum number of normal variables in memory at once.
_CHUNK = 2**21
#: Least expected number of draws beyond the quantile; with fewer, the quantile is not known well enough.
_LEAST_BEYOND = 50
#: Standard deviations by which the quantile is raised because it is estimated from draws.
_CAUTION = 2.0
#: Largest relative error of a tail probability for which the dependence of normal variables is used.
_TAIL_ERROR = 0.5
#: Share added to the diagonal of correlations, so that rounding does not make a factor fail.
_RIDGE = 1e-9


def simultaneous_alphas(covariance: Floats, units: Floats, alpha: float) -> Floats:
    """Return the α of each interval such that all intervals together miss a true number with probability at most α.

    Intervals of answers that are nearly normal get the α at which the maximum of their standardized errors exceeds its
    quantile. The maximum is drawn from the multivariate normal distribution with their correlations, with a fixed seed.
    Other answers get their share of α by the Bonferroni correction. No α is below α divided by the number of answers.

    Parameters
    ----------
    covariance
        The covariance of the answers. An answer with variance 0 is known, and needs no part of α.
    units
        The greatest contribution of one report to each answer. The skewness of the answer is at most unit/deviation.
    alpha
        The probability with which any interval may miss.
    """
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    uncertain = np.flatnonzero(deviations > 0)
    tests = max(len(uncertain), 1)
    alphas = np.full(len(deviations), alpha / tests)
    if not 1 < tests <= LARGEST_BAND:
        return alphas
    # The skewness changes a tail at z deviations by a factor of about 1 + skewness·z³/6.
    farthest = _normal_quantile(alpha / tests)
    is_normal = units[uncertain] * farthest**3 / 6 <= _TAIL_ERROR * deviations[uncertain]
    chosen = uncertain[is_normal]
    share = alpha * len(chosen) / tests
    draws = int(min(_MOST, max(_FEWEST, _OPERATIONS / max(len(chosen), 1) ** 2)))
    if len(chosen) < 2 or share * draws < _LEAST_BEYOND:
        return alphas
    correlation = covariance[np.ix_(chosen, chosen)] / np.outer(deviations[chosen], deviations[chosen])
    alphas[chosen] = np.maximum(_tail_of_maximum(correlation, share, draws), alpha / tests)
    return alphas


def _normal_quantile(alpha: float) -> float:
    """Return the number that a normal variable exceeds in absolute value with probability α."""
    from scipy.special import ndtri

    return float(-ndtri(alpha / 2))


def _tail_of_maximum(correlation: Floats, alpha: float, draws: int) -> float:
    """Return the two-sided α of single normal variables at which all of them together have the given α."""
    from scipy.special import ndtr

    size = len(correlation)
    factor = np.linalg.cholesky(correlation + _RIDGE * np.eye(size)).T
    generator = insecure_generator(size)
    rows = max(1, _CHUNK // size)
    greatest = np.concatenate(
        [
            np.abs(generator.standard_normal((min(rows, draws - start), size)) @ factor).max(axis=1)
            for start in range(0, draws, rows)
        ]
    )
    place = draws * (1 - alpha) + _CAUTION * math.sqrt(draws * alpha * (1 - alpha))
    quantile = np.sort(greatest)[min(math.ceil(place), draws - 1)]
    return 2 * float(ndtr(-quantile))
