"""Localized information privacy (LIP) of a binary value in numbers: the errors of the paper's models, corrected.

Jiang, Li, Tandon: Context-aware Data Aggregation with Localized Information Privacy. Each function gives the error *per
user* of estimating Σ Xᵢ, for arrays of priors P₁ = Pr(X=1) and of levels ε alike; the paper plots its square root, and
by its Proposition 2 the errors of independent users add. Doubles, for curves and plans: no draw depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._core import Floats, checked_count
from sfumato.domain import read_numbers
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.policy import read_distribution

__all__ = [
    "EstimateError",
    "context_free_asymmetric_mse",
    "context_free_count",
    "context_free_mse",
    "estimate_error",
    "mmse",
    "optimal_ldp_mse",
    "optimal_mse",
    "posterior_range",
    "printed_mse",
    "symmetric_mse",
]


# -- prior-aware: the estimate is E[X|Y] -------------------------------------------------------------------


def posterior_range(prior: Any, epsilon: Any) -> tuple[Floats, Floats]:
    """The least and the greatest Pr(X=1|Y) that ε-LIP allows; the best mechanism's two reports reach them."""
    p, least = _checked(prior, epsilon)
    most = np.divide(1.0, least, out=np.full_like(least, np.inf), where=least > 0)
    with np.errstate(invalid="ignore"):  # 0·∞: no bound
        rise, fall = np.nan_to_num(p * most, nan=np.inf), np.nan_to_num((1 - p) * most, nan=np.inf)
    return np.maximum(p * least, 1 - fall), np.minimum(rise, 1 - (1 - p) * least)


def optimal_mse(prior: Any, epsilon: Any) -> Floats:
    """The least error of any ε-LIP mechanism, that of ``PriorBinary``: P₀P₁ - (hi-P₁)(P₁-lo).

    It replaces eq. 19 and 21, which are right only for 1/(e^ε+1) ≤ P₁ ≤ e^ε/(e^ε+1). The error is E[r(1-r)] for the
    posterior r, of mean P₁ and in [lo, hi]; r² is convex, so r on the two ends is best, for any number of reports.
    """
    p, _ = _checked(prior, epsilon)
    low, high = posterior_range(prior, epsilon)
    return np.maximum(p * (1 - p) - (high - p) * (p - low), 0.0)


def printed_mse(prior: Any, epsilon: Any) -> Floats:
    """Eq. 19 as printed, P₀P₁(2e^-ε - e^-2ε): the error of a mechanism that **breaks ε-LIP** for skewed priors."""
    p, least = _checked(prior, epsilon)
    return np.asarray(p * (1 - p) * (2 - least) * least)


def symmetric_mse(prior: Any, epsilon: Any) -> Floats:
    """The error of ``PriorSymmetric``; eq. 22 and 23 as printed are no errors (they turn negative).

    With p the smaller prior and s = e^-ε: p(1-p) - p²(1-p)(1-s)²/(s + p(1-2s)).
    """
    p, least = _checked(prior, epsilon)
    p = np.minimum(p, 1 - p)
    below = least + p * (1 - 2 * least)
    gain = np.divide(p**2 * (1 - p) * (1 - least) ** 2, below, out=np.zeros_like(below), where=below > 0)
    return np.maximum(p * (1 - p) - gain, 0.0)


def optimal_ldp_mse(prior: Any, epsilon: Any) -> Floats:
    """Opt-LDP, eq. 20: randomized response at ε with the prior-aware estimate. Never below ``optimal_mse``."""
    p, least = _checked(prior, epsilon)
    law = (1 - p) * least + p, (1 - p) + p * least  # of the two reports, times 1 + s
    below = law[0] * law[1]
    gain = np.divide((p * (1 - p) * (1 - least)) ** 2, below, out=np.zeros_like(below), where=below > 0)
    return np.maximum(p * (1 - p) - gain, 0.0)


# -- context-free: the estimate knows no prior ----------------------------------------------------------------


def context_free_mse(epsilon: Any) -> Floats:
    """Randomized response with the unbiased estimate, eq. 25: e^ε/(e^ε-1)² per user whatever the values are."""
    _, least = _checked(0.0, epsilon)
    return np.divide(least, (1 - least) ** 2, out=np.full_like(least, np.inf), where=least < 1)


def context_free_asymmetric_mse(prior: Any, epsilon: Any) -> Floats:
    """The asymmetric parameters of Wang et al. 2017 in Example 1, corrected: a one is kept with ½, a zero told as one
    with e^-ε/2. For one bit it is worse than ``context_free_mse``, not better."""
    p, least = _checked(prior, epsilon)
    flipped = least / 2
    noise = p / 4 + (1 - p) * flipped * (1 - flipped)
    return np.divide(noise, (0.5 - flipped) ** 2, out=np.full_like(noise, np.inf), where=least < 1)


def context_free_count(ones: Any, n: Any, epsilon: Any) -> Floats:
    """Eq. 24 corrected: an unbiased estimate of how many of n users hold a one, from how many reported one.

    The paper has e^ε/(e^ε+1) for the probability of a flip, with which it estimates n - Σ Xᵢ.
    """
    _, least = _checked(0.0, epsilon)
    if (least == 1).any():
        raise InvalidInput("context_free_count", "epsilon", "be above 0, as nothing is told at 0", epsilon)
    flip = least / (1 + least)
    return np.asarray((np.asarray(ones, np.float64) - np.asarray(n, np.float64) * flip) / (1 - 2 * flip))


# -- any mechanism, and a prior that is wrong ------------------------------------------------------------------


@dataclass(frozen=True)
class EstimateError:
    """The error of one user's E[X|Y]: its mean (``bias``), and its mean square."""

    bias: float
    mean_square: float

    def mse(self, n: int) -> float:
        """The mean square error of the sum over n users alike: variances add, and so do biases before squaring."""
        n = checked_count("EstimateError.mse", n)
        return n * (self.mean_square - self.bias**2) + (n * self.bias) ** 2


def mmse(mechanism: Mechanism, prior: Any, values: Sequence[float] | None = None) -> float:
    """The mean square error of E[f(X)|Y] for a value drawn from ``prior``; f is 0, 1, 2, … unless ``values`` says."""
    return estimate_error(mechanism, prior, prior, values).mean_square


def estimate_error(
    mechanism: Mechanism, assumed: Any, true: Any, values: Sequence[float] | None = None
) -> EstimateError:
    """The error of the estimate that takes ``assumed`` for the prior, if values are drawn from ``true``.

    At the assumed prior the bias is zero. The estimate is never unbiased for a given value: it leans to the prior.
    """
    size = len(mechanism.domain)
    numbers = np.arange(size, dtype=np.float64)
    if values is not None:
        numbers = read_numbers(mechanism.domain, values, "estimate_error", "values")
    believed, actual = (
        np.array([float(p) for p in read_distribution("estimate_error", parameter, prior, mechanism.domain)])
        for parameter, prior in (("the assumed prior", assumed), ("the true prior", true))
    )
    matrix = mechanism.matrix()
    law = believed @ matrix
    # A report that is impossible under the assumed prior tells nothing of it: the estimate stays at its mean.
    guesses = np.divide((believed * numbers) @ matrix, law, out=np.full_like(law, believed @ numbers), where=law > 0)
    errors = guesses - numbers[:, None]
    joint = actual[:, None] * matrix
    return EstimateError(float(np.sum(joint * errors)), float(np.sum(joint * errors**2)))


def _checked(prior: Any, epsilon: Any) -> tuple[Floats, Floats]:
    """Priors and e^-ε, of one shape."""
    p, epsilons = np.broadcast_arrays(_numbers("prior", prior), _numbers("epsilon", epsilon))
    if not ((p >= 0) & (p <= 1)).all():
        raise InvalidInput("information_privacy", "prior", "lie in [0, 1]", prior)
    if not (epsilons >= 0).all():
        raise InvalidInput("information_privacy", "epsilon", "be at least 0", epsilon)
    return p.copy(), np.exp(-epsilons)


def _numbers(parameter: str, numbers: Any) -> Floats:
    try:
        return np.asarray(numbers, np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("information_privacy", parameter, "be a number, or an array of them", numbers) from None
