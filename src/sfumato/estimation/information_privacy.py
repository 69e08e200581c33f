"""Errors of estimates under localized information privacy (LIP) of a binary value, in closed form.

The formulas are those of Jiang, Li, Tandon: "Context-aware Data Aggregation with Localized Information Privacy", with
corrections that the docstrings state. Each function returns the error *per user* of estimating Σ Xᵢ. Priors P₁ =
Pr(X=1) and levels ε may be numbers or arrays. The paper plots the square root of this error. By its Proposition 2, the
errors of independent users add. The functions use double precision and serve curves and plans; no random draw depends
on them.
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
    """Return the least and the greatest posterior probability Pr(X=1|Y) that ε-LIP allows for a binary value X.

    ε-LIP (localized information privacy) limits what one report Y reveals: e^-ε ≤ Pr(X=x|Y)/Pr(X=x) ≤ e^ε for both
    values x. The two reports of the optimal mechanism :func:`PriorBinary` reach these posteriors.

    Parameters
    ----------
    prior
        The prior probability P₁ = Pr(X=1), a number or an array, in [0, 1].
    epsilon
        The ε of the policy, a number or an array, at least 0. Arrays are broadcast.

    Returns
    -------
    tuple of arrays
        The least and the greatest posterior, lo and hi.

    Raises
    ------
    InvalidInput
        If a prior does not lie in [0, 1], or an ε is negative.

    Examples
    --------
    >>> low, high = posterior_range(0.2, 1)
    >>> round(float(low), 3), round(float(high), 3)
    (0.074, 0.544)
    """
    p, least = _checked(prior, epsilon)
    most = np.divide(1.0, least, out=np.full_like(least, np.inf), where=least > 0)
    with np.errstate(invalid="ignore"):  # 0·∞ means no bound
        rise, fall = np.nan_to_num(p * most, nan=np.inf), np.nan_to_num((1 - p) * most, nan=np.inf)
    return np.maximum(p * least, 1 - fall), np.minimum(rise, 1 - (1 - p) * least)


def optimal_mse(prior: Any, epsilon: Any) -> Floats:
    """Return the least mean squared error of E[X|Y] over all ε-LIP mechanisms, for a binary value X and its report Y.

    ε-LIP (localized information privacy) requires e^-ε ≤ Pr(X=x|Y)/Pr(X=x) ≤ e^ε. It is the policy :class:`Prior`.

    Parameters
    ----------
    prior
        The prior probability P₁ = Pr(X=1), a number or an array, in [0, 1].
    epsilon
        The ε of the policy, a number or an array, at least 0. Arrays are broadcast.

    Returns
    -------
    numpy.ndarray
        The mean squared error per user, P₀P₁ - (hi-P₁)(P₁-lo). Here P₀ = 1-P₁, and [lo, hi] is
        :func:`posterior_range`. The mechanism :func:`PriorBinary` attains the error.

    Raises
    ------
    InvalidInput
        If a prior does not lie in [0, 1], or an ε is negative.

    Notes
    -----
    The formula replaces eq. 19 and 21 of Jiang, Li and Tandon, "Context-aware Data Aggregation with Localized
    Information Privacy", which are correct only for 1/(e^ε+1) ≤ P₁ ≤ e^ε/(e^ε+1). The error is E[r(1-r)] for the
    posterior r = Pr(X=1|Y), which has mean P₁ and lies in [lo, hi]. Since r² is convex, reports whose posteriors are
    the two ends are best, whatever the number of possible reports.

    Examples
    --------
    >>> round(float(optimal_mse(0.2, 1)), 4)
    0.1166
    """
    p, _ = _checked(prior, epsilon)
    low, high = posterior_range(prior, epsilon)
    return np.maximum(p * (1 - p) - (high - p) * (p - low), 0.0)


def printed_mse(prior: Any, epsilon: Any) -> Floats:
    """Return the error that Jiang, Li and Tandon print in eq. 19, whose mechanism **violates ε-LIP** for skewed priors.

    The paper is "Context-aware Data Aggregation with Localized Information Privacy". The formula serves comparison; the
    correct least error is :func:`optimal_mse`.

    Parameters
    ----------
    prior
        The prior probability P₁ = Pr(X=1), a number or an array, in [0, 1].
    epsilon
        The ε of the policy, a number or an array, at least 0. Arrays are broadcast.

    Returns
    -------
    numpy.ndarray
        The printed mean squared error per user, P₀P₁(2e^-ε - e^-2ε) with P₀ = 1-P₁.

    Raises
    ------
    InvalidInput
        If a prior does not lie in [0, 1], or an ε is negative.

    Examples
    --------
    >>> round(float(printed_mse(0.2, 1)), 4)
    0.0961
    """
    p, least = _checked(prior, epsilon)
    return np.asarray(p * (1 - p) * (2 - least) * least)


def symmetric_mse(prior: Any, epsilon: Any) -> Floats:
    """Return the mean squared error of E[X|Y] for a binary value X and its report Y by :func:`PriorSymmetric`.

    Parameters
    ----------
    prior
        The prior probability P₁ = Pr(X=1), a number or an array, in [0, 1].
    epsilon
        The ε of the policy, a number or an array, at least 0. Arrays are broadcast.

    Returns
    -------
    numpy.ndarray
        The mean squared error per user, p(1-p) - p²(1-p)(1-s)²/(s + p(1-2s)). Here p is the smaller of P₁ and 1-P₁,
        and s = e^-ε.

    Raises
    ------
    InvalidInput
        If a prior does not lie in [0, 1], or an ε is negative.

    Notes
    -----
    Eq. 22 and 23 of Jiang, Li and Tandon, "Context-aware Data Aggregation with Localized Information Privacy", cannot
    be errors, because they become negative.

    Examples
    --------
    >>> round(float(symmetric_mse(0.2, 1)), 4)
    0.1296
    """
    p, least = _checked(prior, epsilon)
    p = np.minimum(p, 1 - p)
    below = least + p * (1 - 2 * least)
    gain = np.divide(p**2 * (1 - p) * (1 - least) ** 2, below, out=np.zeros_like(below), where=below > 0)
    return np.maximum(p * (1 - p) - gain, 0.0)


def optimal_ldp_mse(prior: Any, epsilon: Any) -> Floats:
    """Return the mean squared error of E[X|Y] for a binary value X and its report Y by randomized response.

    The estimate uses the prior, but the mechanism does not. Jiang, Li and Tandon, "Context-aware Data Aggregation with
    Localized Information Privacy", call this combination Opt-LDP (eq. 20).

    Parameters
    ----------
    prior
        The prior probability P₁ = Pr(X=1), a number or an array, in [0, 1].
    epsilon
        The ε of randomized response, a number or an array, at least 0. Arrays are broadcast.

    Returns
    -------
    numpy.ndarray
        The mean squared error per user. It is never below :func:`optimal_mse` at the same ε.

    Raises
    ------
    InvalidInput
        If a prior does not lie in [0, 1], or an ε is negative.

    Examples
    --------
    >>> round(float(optimal_ldp_mse(0.2, 1)), 4)
    0.1363
    """
    p, least = _checked(prior, epsilon)
    law = (1 - p) * least + p, (1 - p) + p * least  # probabilities of the two reports, times 1 + s
    below = law[0] * law[1]
    gain = np.divide((p * (1 - p) * (1 - least)) ** 2, below, out=np.zeros_like(below), where=below > 0)
    return np.maximum(p * (1 - p) - gain, 0.0)


# -- context-free: the estimate does not use a prior ----------------------------------------------------------


def context_free_mse(epsilon: Any) -> Floats:
    """Return the mean squared error of the unbiased estimate from a report of binary randomized response.

    The estimate of the value (0 or 1) uses no prior; Jiang, Li and Tandon, "Context-aware Data Aggregation with
    Localized Information Privacy", call it context-free. This is their eq. 25.

    Parameters
    ----------
    epsilon
        The ε of randomized response, a number or an array, at least 0.

    Returns
    -------
    numpy.ndarray
        The mean squared error per user, e^ε/(e^ε-1)², whatever the values of the users are; infinite at ε = 0.

    Raises
    ------
    InvalidInput
        If an ε is negative.

    Examples
    --------
    >>> round(float(context_free_mse(1)), 4)
    0.9207
    """
    _, least = _checked(0.0, epsilon)
    return np.divide(least, (1 - least) ** 2, out=np.full_like(least, np.inf), where=least < 1)


def context_free_asymmetric_mse(prior: Any, epsilon: Any) -> Floats:
    """Return the mean squared error of the unbiased estimate from an asymmetric binary mechanism.

    The mechanism reports a one as one with probability ½, and a zero as one with probability e^-ε/2. These are the
    parameters of Wang et al. (2017) in Example 1 of Jiang, Li and Tandon, "Context-aware Data Aggregation with
    Localized Information Privacy", whose formula is corrected here. The estimate does not use the prior, but its error
    depends on the prior.

    Parameters
    ----------
    prior
        The prior probability P₁ = Pr(X=1), a number or an array, in [0, 1].
    epsilon
        The ε of the mechanism, a number or an array, at least 0. Arrays are broadcast.

    Returns
    -------
    numpy.ndarray
        The mean squared error per user; infinite at ε = 0. For one bit it is worse than :func:`context_free_mse`, not
        better.

    Raises
    ------
    InvalidInput
        If a prior does not lie in [0, 1], or an ε is negative.

    Examples
    --------
    >>> round(float(context_free_asymmetric_mse(0.2, 1)), 4)
    1.7027
    """
    p, least = _checked(prior, epsilon)
    flipped = least / 2
    noise = p / 4 + (1 - p) * flipped * (1 - flipped)
    return np.divide(noise, (0.5 - flipped) ** 2, out=np.full_like(noise, np.inf), where=least < 1)


def context_free_count(ones: Any, n: Any, epsilon: Any) -> Floats:
    """Return an unbiased estimate of the number of users who hold a one, from reports of binary randomized response.

    Parameters
    ----------
    ones
        Number of users who reported a one, a number or an array.
    n
        Number of users, a number or an array.
    epsilon
        The ε of randomized response, a number or an array, above 0.

    Returns
    -------
    numpy.ndarray
        The estimated number of users who hold a one. It may be negative or exceed n.

    Raises
    ------
    InvalidInput
        If an ε is not above 0.

    Notes
    -----
    This is eq. 24 of Jiang, Li and Tandon, "Context-aware Data Aggregation with Localized Information Privacy",
    corrected. The paper uses e^ε/(e^ε+1) as the probability that randomized response
    flips a value. With it, the formula would estimate the number of users who hold a zero.

    Examples
    --------
    >>> round(float(context_free_count(400, 1000, 1)), 1)
    283.6
    """
    _, least = _checked(0.0, epsilon)
    if (least == 1).any():
        must = "be above 0, because reports reveal nothing at 0"
        raise InvalidInput("context_free_count", "epsilon", must, epsilon)
    flip = least / (1 + least)
    return np.asarray((np.asarray(ones, np.float64) - np.asarray(n, np.float64) * flip) / (1 - 2 * flip))


# -- any mechanism, with a prior that may be wrong -------------------------------------------------------------


@dataclass(frozen=True)
class EstimateError:
    """Bias and mean squared error of the estimate E[f(X)|Y] of one user's number f(X) from the report Y.

    :func:`estimate_error` returns objects of this class.

    Parameters
    ----------
    bias
        The mean of the error, estimate minus true number.
    mean_square
        The mean of the squared error.

    Examples
    --------
    >>> error = EstimateError(bias=0.1, mean_square=0.25)
    >>> round(error.mse(100), 1)
    124.0
    """

    bias: float
    mean_square: float

    def mse(self, n: int) -> float:
        """Return the mean squared error of the sum of the estimates of n independent users.

        Parameters
        ----------
        n
            Number of users, each with this bias and mean squared error.

        Returns
        -------
        float
            The sum of the variances plus the square of the sum of the biases: n·(mean_square - bias²) + (n·bias)².
        """
        n = checked_count("EstimateError.mse", n)
        return n * (self.mean_square - self.bias**2) + (n * self.bias) ** 2


def mmse(mechanism: Mechanism, prior: Any, values: Sequence[float] | None = None) -> float:
    """Return the mean squared error of the estimate E[f(X)|Y] of one user's number f(X) from the report Y.

    Parameters
    ----------
    mechanism
        The mechanism that draws the report.
    prior
        The distribution from which the value X is drawn and which the estimate assumes: a sequence in domain order, or
        a mapping or pandas Series with the values as labels.
    values
        The number f(x) of each value x, in domain order; 0, 1, 2, … by default.

    Returns
    -------
    float
        The mean squared error per user.

    Raises
    ------
    InvalidInput
        If the prior is not a distribution over the domain, or the values are not numbers.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> round(mmse(RandomizedResponse(Domain([0, 1]), 1), [0.8, 0.2]), 4)
    0.1363
    """
    return estimate_error(mechanism, prior, prior, values).mean_square


def estimate_error(
    mechanism: Mechanism, assumed: Any, true: Any, values: Sequence[float] | None = None
) -> EstimateError:
    """Return the error of the estimate E[f(X)|Y] if it assumes one prior while values follow another.

    If both are the same, the bias is zero on average over values. For a fixed value, the estimate is still biased
    towards the mean of the prior.

    Parameters
    ----------
    mechanism
        The mechanism that draws the report Y of a user with value X.
    assumed
        The distribution that the estimate assumes: a sequence in domain order, or a mapping or pandas Series with the
        values as labels.
    true
        The distribution from which values are drawn, in the same form.
    values
        The number f(x) of each value x, in domain order; 0, 1, 2, … by default.

    Returns
    -------
    EstimateError
        The bias and the mean squared error per user.

    Raises
    ------
    InvalidInput
        If a prior is not a distribution over the domain, or the values are not numbers.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> error = estimate_error(RandomizedResponse(Domain([0, 1]), 1), assumed=[0.8, 0.2], true=[0.5, 0.5])
    >>> round(error.bias, 3), round(error.mean_square, 3)
    (-0.256, 0.267)
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
    # For a report that is impossible under the assumed prior, the estimate is the mean of that prior.
    guesses = np.divide((believed * numbers) @ matrix, law, out=np.full_like(law, believed @ numbers), where=law > 0)
    errors = guesses - numbers[:, None]
    joint = actual[:, None] * matrix
    return EstimateError(float(np.sum(joint * errors)), float(np.sum(joint * errors**2)))


def _checked(prior: Any, epsilon: Any) -> tuple[Floats, Floats]:
    """Return priors and e^-ε as arrays of one shape; raise InvalidInput unless they are valid."""
    p, epsilons = np.broadcast_arrays(_numbers("prior", prior), _numbers("epsilon", epsilon))
    if not ((p >= 0) & (p <= 1)).all():
        raise InvalidInput("information_privacy", "prior", "lie in [0, 1]", prior)
    if not (epsilons >= 0).all():
        raise InvalidInput("information_privacy", "epsilon", "be at least 0", epsilon)
    return p.copy(), np.exp(-epsilons)


def _numbers(parameter: str, numbers: Any) -> Floats:
    """Return numbers as an array; raise InvalidInput unless they are numbers."""
    try:
        return np.asarray(numbers, np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("information_privacy", parameter, "be a number or an array of numbers", numbers) from None
