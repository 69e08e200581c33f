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
    """Return the least and the greatest posterior Pr(X=1|Y) that ε-LIP allows.

    The two reports of the best mechanism reach these posteriors.

    Parameters
    ----------
    prior
        The prior probability P₁ = Pr(X=1).
    epsilon
        The ε of the policy.

    Returns
    -------
    tuple of arrays
        The least and the greatest posterior.

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
    """Return the least error of any ε-LIP mechanism.

    Parameters
    ----------
    prior
        The prior probability P₁ = Pr(X=1).
    epsilon
        The ε of the policy.

    Returns
    -------
    numpy.ndarray
        The mean squared error per user, P₀P₁ - (hi-P₁)(P₁-lo). The mechanism ``PriorBinary`` attains it.

    Raises
    ------
    InvalidInput
        If a prior does not lie in [0, 1], or an ε is negative.

    Notes
    -----
    The formula replaces eq. 19 and 21 of the paper, which are correct only for 1/(e^ε+1) ≤ P₁ ≤ e^ε/(e^ε+1). The error
    is E[r(1-r)] for the posterior r, which has mean P₁ and lies in [lo, hi]. Since r² is convex, placing r on the two
    ends is best for any number of reports.

    Examples
    --------
    >>> round(float(optimal_mse(0.2, 1)), 4)
    0.1166
    """
    p, _ = _checked(prior, epsilon)
    low, high = posterior_range(prior, epsilon)
    return np.maximum(p * (1 - p) - (high - p) * (p - low), 0.0)


def printed_mse(prior: Any, epsilon: Any) -> Floats:
    """Return eq. 19 as the paper prints it; its mechanism **violates ε-LIP** for skewed priors.

    Parameters
    ----------
    prior
        The prior probability P₁ = Pr(X=1).
    epsilon
        The ε of the policy.

    Returns
    -------
    numpy.ndarray
        P₀P₁(2e^-ε - e^-2ε) per user.

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
    """Return the error of the mechanism ``PriorSymmetric``.

    Parameters
    ----------
    prior
        The prior probability P₁ = Pr(X=1).
    epsilon
        The ε of the policy.

    Returns
    -------
    numpy.ndarray
        The mean squared error per user, p(1-p) - p²(1-p)(1-s)²/(s + p(1-2s)), with p the smaller of P₀ and P₁ and s =
        e^-ε.

    Raises
    ------
    InvalidInput
        If a prior does not lie in [0, 1], or an ε is negative.

    Notes
    -----
    Eq. 22 and 23 as the paper prints them cannot be errors, because they become negative.

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
    """Return the error of randomized response at ε with the prior-aware estimate (Opt-LDP, eq. 20).

    Parameters
    ----------
    prior
        The prior probability P₁ = Pr(X=1).
    epsilon
        The ε of randomized response.

    Returns
    -------
    numpy.ndarray
        The mean squared error per user. It is never below ``optimal_mse``.

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
    """Return the error of randomized response with the unbiased estimate, eq. 25.

    Parameters
    ----------
    epsilon
        The ε of randomized response.

    Returns
    -------
    numpy.ndarray
        The mean squared error per user, e^ε/(e^ε-1)², whatever the values are.

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
    """Return the error of the asymmetric parameters of Wang et al. 2017 in Example 1, corrected.

    A one is reported as one with probability ½, and a zero is reported as one with probability e^-ε/2.

    Parameters
    ----------
    prior
        The prior probability P₁ = Pr(X=1).
    epsilon
        The ε of the mechanism.

    Returns
    -------
    numpy.ndarray
        The mean squared error per user. For one bit it is worse than ``context_free_mse``, not better.

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
    """Return an unbiased estimate of the number of users who hold a one, from eq. 24 corrected.

    Parameters
    ----------
    ones
        Number of users who reported a one.
    n
        Number of users.
    epsilon
        The ε of randomized response; it must be above 0.

    Returns
    -------
    numpy.ndarray
        The estimated number of users who hold a one.

    Raises
    ------
    InvalidInput
        If an ε is not above 0.

    Notes
    -----
    The paper uses e^ε/(e^ε+1) as the probability of a flip, which would estimate n - Σ Xᵢ.

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
    """The error of one user's estimate E[X|Y].

    Parameters
    ----------
    bias
        The mean of the error.
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
        """Return the mean squared error of the sum over n users with this error.

        Parameters
        ----------
        n
            Number of users.

        Returns
        -------
        float
            The variance times n, plus the square of n times the bias.
        """
        n = checked_count("EstimateError.mse", n)
        return n * (self.mean_square - self.bias**2) + (n * self.bias) ** 2


def mmse(mechanism: Mechanism, prior: Any, values: Sequence[float] | None = None) -> float:
    """Return the mean squared error of E[f(X)|Y] for a value drawn from a prior.

    Parameters
    ----------
    mechanism
        The mechanism.
    prior
        The distribution of values, in domain order or with labels.
    values
        The number f(x) of each value; 0, 1, 2, … by default.

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
    """Return the error of an estimate that assumes one prior while values follow another.

    At the assumed prior the bias is zero. For a single value the estimate is biased towards the prior.

    Parameters
    ----------
    mechanism
        The mechanism.
    assumed
        The prior that the estimate assumes, in domain order or with labels.
    true
        The distribution from which values are drawn, in domain order or with labels.
    values
        The number f(x) of each value; 0, 1, 2, … by default.

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
