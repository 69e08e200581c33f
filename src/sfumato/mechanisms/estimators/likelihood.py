"""Maximum likelihood on the simplex: EM if the counts are a histogram, one equation if they are bit counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato._core import Floats
from sfumato.errors import Description, InvalidInput

__all__ = ["Fit", "fit_bit_counts", "fit_histogram"]


#: Replacement for zero in logarithms and quotients.
_TINY = 1e-300
#: Least fraction of the plain EM step's frequency that an accelerated step leaves for every value.
_LEAST_FRACTION = 0.01


@dataclass(frozen=True)
class Fit:
    """Result of an iterative maximum-likelihood search; :meth:`Estimator.fit` returns it.

    Parameters
    ----------
    frequencies
        The fitted probability of each value, shape (k,), in domain order.
    converged
        Whether ``bound`` is at most the tolerance of the search. If False, ``frequencies`` may not be optimal.
    iterations
        The number of iterations of the search.
    gain
        The mean log-likelihood per report of ``frequencies`` minus that of the uniform distribution, in nats. For
        bitmaps, the likelihood treats the counts of different bits as independent.
    bound
        An upper bound on how much any other distribution can increase ``gain``; near 0 if the search converged.

    Examples
    --------
    >>> import numpy as np
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), "ln 3")
    >>> fit = mechanism.estimator.fit(np.array([0.5, 0.5]), n=1000)
    >>> fit.converged
    True
    >>> fit.frequencies.round(6).tolist()
    [0.5, 0.5]
    """

    frequencies: Floats
    converged: bool
    iterations: int
    gain: float
    bound: float


def fit_histogram(
    fractions: Floats,
    law: Callable[[Floats], Floats],
    adjoint: Callable[[Floats], Floats],
    size: int,
    *,
    tolerance: float = 1e-9,
    most: int = 2000,
) -> Fit:
    """Fit a distribution to a histogram by EM, accelerated by SQUAREM (Varadhan and Roland 2008).

    One EM step is p ← p·adjoint(fractions/law(p)). Because ln is concave, the likelihood that any distribution gains
    over p is at most ln(max_x adjoint(fractions/law(p))_x). That bound is the stopping rule, so "converged" is a
    statement about the optimum and not about small steps. Outputs that no value can produce, which only a dishonest
    client sends, carry no information and are left out.
    """
    p = np.full(size, 1 / size)
    seen = (fractions > 0) & (law(p) > 0)
    if not seen.any():
        hint = "Check that the reports are those of this mechanism."
        must = "include an output that some value can produce"
        raise InvalidInput("estimate", "the reports", must, Description("none"), hint=hint)
    fractions = np.where(seen, fractions, 0.0) / fractions[seen].sum()

    def expected(p: Floats) -> Floats:
        return np.where(seen, np.maximum(law(p), _TINY), 1.0)  # rounding may turn a zero into a negative number

    def likelihood(p: Floats) -> float:
        return float(fractions @ np.log(expected(p)))

    def step(p: Floats, ratio: Floats) -> Floats:
        moved = np.maximum(p * ratio, 0.0)
        return np.asarray(moved / moved.sum())

    start = value = likelihood(p)
    longest = 1.0
    bound = np.inf
    for iteration in range(1, most + 1):
        ratio = adjoint(fractions / expected(p))
        bound = float(np.log(max(ratio.max(), 1.0)))
        if bound <= tolerance:
            return Fit(p, True, iteration, value - start, bound)
        first = step(p, ratio)
        second = step(first, adjoint(fractions / expected(first)))
        difference, curvature = first - p, second - 2 * first + p
        norm = float(np.linalg.norm(curvature))
        length = min(max(1.0, float(np.linalg.norm(difference)) / norm), longest) if norm > 0 else 1.0
        leap = p + 2 * length * difference + length**2 * curvature
        # Frequencies that the leap would make negative move towards zero instead; many are zero at the optimum.
        leap = np.maximum(leap, second * _LEAST_FRACTION)
        leap /= leap.sum()
        candidate = step(leap, adjoint(fractions / expected(leap)))
        candidate_value = likelihood(candidate)
        if not candidate_value >= value:  # the leap lost likelihood, which a plain EM step never does
            candidate, candidate_value = second, likelihood(second)
            longest = max(1.0, longest / 2)
        elif length == longest:
            longest *= 4
        p, value = candidate, candidate_value
    return Fit(p, False, most, value - start, bound)


def fit_bit_counts(fractions: Floats, other: float, gap: float, *, tolerance: float = 1e-9) -> Fit:
    """Fit a distribution to bit counts by maximum composite likelihood, with a separate binomial per bit.

    The objective is Σ_x s_x·ln q_x + (1-s_x)·ln(1-q_x) with q_x = other + gap·p_x. The optimum solves
    s/q - (1-s)/(1-q) = λ for one multiplier λ wherever p_x > 0. Bisection on Σ p = 1 finds λ.
    """

    def at(multiplier: float) -> Floats:
        # s(1-q) - (1-s)q = λq(1-q) is a quadratic in q with one root in [0, 1].
        half = (1 + multiplier) / 2
        root = np.sqrt(np.maximum(half * half - multiplier * fractions, 0.0))
        # The root has two forms; each is used where it does not cancel. At λ = -1 a bit that was never set has the
        # double root 0.
        q = fractions / np.maximum(half + root, _TINY) if half >= 0 else (half - root) / multiplier
        return np.clip((q - other) / gap, 0.0, 1.0)

    low, high = -1.0, 1.0
    while at(low).sum() < 1:
        low *= 2
    while at(high).sum() > 1:
        high *= 2
    iterations = 0
    while high - low > 1e-15 * max(1.0, abs(low), abs(high)) and iterations < 200:
        iterations += 1
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle).sum() > 1 else (low, middle)
    p = at(high)
    p = p / p.sum()
    fitted = other + gap * p
    # The likelihood is concave, so its slope at p bounds what any other distribution gains: max slope - slope·p.
    slope = gap * (_ratio(fractions, fitted) - _ratio(1 - fractions, 1 - fitted))
    bound = max(float(slope.max() - slope @ p), 0.0)
    gain = _bit_likelihood(fractions, fitted) - _bit_likelihood(fractions, np.full(len(p), other + gap / len(p)))
    return Fit(p, bound <= tolerance, iterations, gain, bound)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return part/whole, or 0 where part is 0."""
    return np.where(part > 0, part / np.maximum(whole, _TINY), 0.0)


def _bit_likelihood(fractions: Floats, fitted: Floats) -> float:
    """Return the composite log-likelihood of bit counts."""
    return float(
        fractions @ np.log(np.maximum(fitted, _TINY)) + (1 - fractions) @ np.log(np.maximum(1 - fitted, _TINY))
    )
