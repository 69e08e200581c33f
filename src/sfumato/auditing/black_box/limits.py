"""Confidence limits on the probability of an event from its count.

The *Clopper-Pearson* limits decide. They are certified: the binomial tail is an incomplete beta function, Arb encloses
it, and a limit is returned only if its tail is certainly below alpha. The *Chernoff* limits rank events: they are
computed for whole arrays in doubles, and are slightly wider than Clopper-Pearson.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sfumato._core import Floats, Integers, arb_precision, to_arb

__all__ = ["chernoff_lower", "clopper_pearson_lower", "clopper_pearson_upper"]

_ARB_BITS = 64
#: Newton iteration: maximum number of steps, tail/alpha at which it stops, and a factor that keeps steps short.
_MOST_STEPS, _NEAR, _SHORTENED = 20, 1 - 1e-6, 1 - 1e-7
_CHERNOFF_STEPS = 64


def clopper_pearson_lower(count: int, trials: int, alpha: Fraction) -> Fraction:
    """Return a lower confidence limit on a probability, rounded down.

    The limit p satisfies P(Binomial(trials, p) ≥ count) ≤ alpha, and is very close to the largest such p. For every
    true probability, the limit exceeds it with probability at most alpha.

    >>> clopper_pearson_lower(0, 10, Fraction(1, 20))
    Fraction(0, 1)
    >>> round(float(clopper_pearson_lower(10, 10, Fraction(1, 1024))), 6)
    0.5
    """
    if count == 0:
        return Fraction(0)
    # The tail is a log-concave function of p (an incomplete beta function). Newton steps on its logarithm that start
    # below the root stay below it. The steps use doubles; the function returns only a limit that Arb has certified.
    ln_scale = math.lgamma(trials + 1) - math.lgamma(count) - math.lgamma(trials - count + 1)
    certified, p = 0.0, float(chernoff_lower(np.array([count]), trials, float(alpha))[0]) * (1 - 1e-9)
    with arb_precision(_ARB_BITS):
        a, b, limit = to_arb(Fraction(count)), to_arb(Fraction(trials - count + 1)), to_arb(alpha)
        for _ in range(_MOST_STEPS):
            tail = to_arb(Fraction(p)).beta_lower(a, b, True)
            if not (0.0 < p < 1.0 and tail <= limit):  # also if the enclosure is too wide to decide
                break
            certified, used = p, float(tail / limit)
            if used > _NEAR:
                break
            ln_density = ln_scale + (count - 1) * math.log(p) + (trials - count) * math.log1p(-p)
            p -= _SHORTENED * math.log(used) * float(tail) / math.exp(ln_density)
    return Fraction(certified)


def clopper_pearson_upper(count: int, trials: int, alpha: Fraction) -> Fraction:
    """Return an upper confidence limit on a probability, rounded up; see ``clopper_pearson_lower``."""
    return 1 - clopper_pearson_lower(trials - count, trials, alpha)


def chernoff_lower(counts: Integers, trials: int | Integers, alpha: float) -> Floats:
    """Return the p below the observed frequency q with trials·KL(q, p) = ln(1/alpha), for each count, in doubles."""
    q = counts / trials
    target = -math.log(alpha) / np.asarray(trials)
    low, high = np.zeros_like(q), q.copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_CHERNOFF_STEPS):
            p = (low + high) / 2
            divergence = np.where(q > 0, q * np.log(q / p), 0) + np.where(q < 1, (1 - q) * np.log((1 - q) / (1 - p)), 0)
            far = divergence > target
            low, high = np.where(far, p, low), np.where(far, high, p)
    return low
